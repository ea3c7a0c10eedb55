//! Capacity of a link over time, in the format of the Mahimahi emulator.
//!
//! Each line holds one whole number: milliseconds from the start, never decreasing.
//! Each line is one opportunity to deliver up to [`OPPORTUNITY`] bytes; a number
//! that occurs three times gives three opportunities in that millisecond. After the
//! last line, the trace starts again, with the last time stamp as its new zero.

use std::path::Path;

use tidegate_core::{Bytes, Rate, Span, Time};

use super::ReadError;
use super::error::{Mismatch, contents, quote};
use super::text::{lines, trimmed};

/// The most that one opportunity delivers: a packet of 1 500 bytes and the 4 bytes
/// that Mahimahi's tunnel puts in front.
pub const OPPORTUNITY: Bytes = Bytes(1_504);

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The opportunities of a link, repeated for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds from the start of a round; never decreasing, the last above zero.
    stamps: Vec<u32>,
    /// The last stamp.
    period: u32,
}

/// A position in a [`DeliveryTrace`]: the opportunities before it are gone. The
/// trace is an argument, so that many links can share one.
///
/// ```
/// use tidegate_core::Time;
/// use tidegate_sim::trace::DeliveryTrace;
///
/// let trace = DeliveryTrace::parse("trace", b"2\n2\n5\n")?;
/// let mut next = trace.cursor();
/// let at = |millis: u64| Time(millis * 1_000_000);
/// assert_eq!(next.next_opportunity(&trace, Time::ZERO), at(2));
/// assert_eq!(next.next_opportunity(&trace, Time::ZERO), at(2));
/// // Nothing was to be sent for a while: opportunities pass unused.
/// assert_eq!(next.next_opportunity(&trace, at(6)), at(7));
/// # Ok::<(), tidegate_sim::trace::ReadError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Start of the round, in milliseconds.
    round: u64,
    /// The next opportunity of the round.
    index: usize,
}

impl DeliveryTrace {
    /// Reads a trace file.
    ///
    /// # Errors
    /// When the file is empty, a line is not a whole number or is below the line
    /// before, or the last line is zero: the trace could not repeat.
    pub fn read(path: &Path) -> Result<DeliveryTrace, ReadError> {
        let (file, contents) = contents(path)?;
        DeliveryTrace::parse(&file, &contents)
    }

    /// Reads a trace from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](DeliveryTrace::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<DeliveryTrace, ReadError> {
        let mut stamps: Vec<u32> = Vec::new();
        let mut last_line = 1;
        for (number, line) in lines(contents) {
            let stamp: u32 = trimmed(line).and_then(|text| text.parse().ok()).ok_or_else(|| {
                // 2^32 milliseconds are 49 days.
                let expected = "whole milliseconds below 2^32";
                Mismatch::new(quote(line), expected).at_line(name, number)
            })?;
            if let Some(before) = stamps.last().filter(|before| stamp < **before) {
                let expected = format!("at least {before}, as on the line before");
                return Err(Mismatch::new(stamp.to_string(), expected).at_line(name, number));
            }
            stamps.push(stamp);
            last_line = number;
        }
        match stamps.last() {
            None => Err(Mismatch::new("the end of the file", "a time in milliseconds")
                .at_line(name, last_line)),
            Some(0) => Err(Mismatch::new("0 as the last time", "a time above 0 to repeat from")
                .at_line(name, last_line)),
            Some(&period) => Ok(DeliveryTrace { stamps, period }),
        }
    }

    /// The start of the trace.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor::default()
    }

    /// How long one round of the trace is.
    #[must_use]
    pub fn period(&self) -> Span {
        Span::millis(self.period.into())
    }

    /// Opportunities in one round: at least one.
    #[must_use]
    pub fn opportunities(&self) -> usize {
        self.stamps.len()
    }

    /// What the link carries from the start until `at` if each opportunity is fully used.
    ///
    /// ```
    /// use tidegate_core::{Bytes, Span, Time};
    /// use tidegate_sim::trace::DeliveryTrace;
    ///
    /// let trace = DeliveryTrace::parse("trace", b"2\n2\n5\n")?;
    /// let at = |millis: u64| Time(millis * 1_000_000);
    /// let carried = [1, 2, 5, 7].map(|millis| trace.volume(at(millis)).0);
    /// assert_eq!(carried, [0, 2 * 1_504, 3 * 1_504, 5 * 1_504]);
    /// // The third opportunity from then on comes at 7 ms.
    /// assert_eq!(trace.transmission(at(4), Bytes(3_100)), Span::millis(3));
    /// # Ok::<(), tidegate_sim::trace::ReadError>(())
    /// ```
    #[must_use]
    pub fn volume(&self, at: Time) -> Bytes {
        OPPORTUNITY * self.opportunities_until(at)
    }

    /// The time from `from` on that the link takes for `size` if each opportunity is fully used.
    #[must_use]
    pub fn transmission(&self, from: Time, size: Bytes) -> Span {
        let needed = size.0.div_ceil(OPPORTUNITY.0);
        if needed == 0 {
            return Span::ZERO;
        }
        let last = self.opportunities_until(from) + needed - 1;
        let each = self.stamps.len() as u64;
        let stamp = u64::from(self.stamps[(last % each) as usize]);
        let millis = (last / each).saturating_mul(self.period.into()).saturating_add(stamp);
        Time(millis.saturating_mul(NANOS_PER_MILLI)).since(from)
    }

    /// The number of opportunities up to and including `at`.
    fn opportunities_until(&self, at: Time) -> u64 {
        let (millis, period) = (at.0 / NANOS_PER_MILLI, u64::from(self.period));
        let rest = millis % period;
        let in_round = self.stamps.partition_point(|stamp| u64::from(*stamp) <= rest);
        millis / period * self.stamps.len() as u64 + in_round as u64
    }

    /// The mean rate over a round if each opportunity is fully used.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        super::mean_rate(OPPORTUNITY * self.stamps.len() as u64, self.period())
    }
}

impl Cursor {
    /// Takes the first opportunity at or after `from` that was not taken yet.
    ///
    /// This takes constant time if the next opportunity will do, as on a busy link;
    /// after an idle time it is a binary search, however long that was.
    pub fn next_opportunity(&mut self, trace: &DeliveryTrace, from: Time) -> Time {
        let from_millis = from.0.div_ceil(NANOS_PER_MILLI);
        let period = u64::from(trace.period);
        if self.index == trace.stamps.len() {
            self.index = 0;
            self.round = self.round.saturating_add(period);
        }
        if self.next_millis(trace) < from_millis {
            // Whole rounds pass unused while even their last opportunity is too
            // early; the round after them has one that is not.
            let idle_rounds = from_millis.saturating_sub(self.round + 1) / period;
            if idle_rounds > 0 {
                self.index = 0;
                self.round += idle_rounds * period;
            }
            let rest = &trace.stamps[self.index..];
            let round = self.round;
            self.index += rest.partition_point(|stamp| round + u64::from(*stamp) < from_millis);
        }
        let next = self.next_millis(trace);
        self.index += 1;
        Time(next.saturating_mul(NANOS_PER_MILLI))
    }

    fn next_millis(&self, trace: &DeliveryTrace) -> u64 {
        self.round.saturating_add(trace.stamps[self.index].into())
    }
}
