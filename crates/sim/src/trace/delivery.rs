//! Capacity of a link over time, in the format of the Mahimahi emulator.
//!
//! One whole number a line: milliseconds from the start, never decreasing.
//! Each line is one opportunity to deliver up to [`OPPORTUNITY`] bytes; a
//! number that is there three times is three opportunities in that
//! millisecond. After the last line the trace starts again, with the last time
//! stamp as its new zero.

use std::path::Path;

use tidegate_core::{Bytes, Rate, Span, Time};

use super::ReadError;

/// What one opportunity delivers at most: a packet of 1 500 bytes and the
/// 4 bytes that Mahimahi's tunnel puts in front.
pub const OPPORTUNITY: Bytes = Bytes(1_504);

/// The opportunities of a link, repeated for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds from the start of a round; never decreasing, the last above zero.
    stamps: Vec<u32>,
}

/// A place in a [`DeliveryTrace`]: the opportunities before it are gone.
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
    /// When the file is empty, a line is no whole number or below the line
    /// before, or the last one is zero: the trace could not repeat.
    pub fn read(path: &Path) -> Result<DeliveryTrace, ReadError> {
        let _ = path;
        unimplemented!("next commit")
    }

    /// Reads a trace from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](DeliveryTrace::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<DeliveryTrace, ReadError> {
        let _ = (name, contents);
        unimplemented!("next commit")
    }

    /// The start of the trace.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor::default()
    }

    /// How long one round of the trace is.
    #[must_use]
    pub fn period(&self) -> Span {
        unimplemented!("next commit")
    }

    /// Opportunities in one round.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Always false: a trace without opportunities cannot be built.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// Mean rate over a round, when each opportunity is used to the full.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        unimplemented!("next commit")
    }
}

impl Cursor {
    /// Takes the first opportunity at or after `from` that was not taken yet.
    ///
    /// Constant time when the next one will do, as on a busy link; after an
    /// idle time a binary search, however long it was.
    pub fn next_opportunity(&mut self, trace: &DeliveryTrace, from: Time) -> Time {
        let _ = (trace, from);
        unimplemented!("next commit")
    }
}
