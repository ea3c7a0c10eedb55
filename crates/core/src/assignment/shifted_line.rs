//! Deadlines within a line that rises from a given time on (`BE section 4.2`).
//!
//! Below `gamma (t - delta)`, only the previous packet matters: the earliest
//! deadline is `max(r' + delta, D) + w' / gamma`, where D is the previous deadline.
//! D is kept to the fraction of a nanosecond, and only the result is rounded, so
//! that errors do not add up over a long burst.

use super::{Assignment, Blocking, Line, SMALLEST_PACKET};
use crate::curve::PER_BYTE;
use crate::units::{Bytes, Rate, Span, Time};

/// Remembers one deadline.
#[derive(Clone, Debug)]
pub struct ShiftedLine {
    start: Span,
    slope: Rate,
    /// The last deadline, rounded down.
    last: Time,
    /// What was cut off, in parts of a nanosecond of which there are `slope`.
    part: u128,
}

impl ShiftedLine {
    /// The earliest deadlines within `line`.
    #[must_use]
    pub fn new(line: Line) -> ShiftedLine {
        ShiftedLine { start: line.start, slope: line.slope, last: Time::ZERO, part: 0 }
    }
}

impl Assignment for ShiftedLine {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        let slope = u128::from(self.slope.0);
        if slope == 0 {
            return Time::FAR_FUTURE;
        }
        let begin = arrived + self.start;
        if begin > self.last {
            (self.last, self.part) = (begin, 0);
        }
        let demand = u128::from(size.max(SMALLEST_PACKET).0) * PER_BYTE.unsigned_abs();
        let parts = self.part + demand;
        // Both almost always fit, and a division of 64 bits costs a third.
        let (whole, part) = match u64::try_from(parts) {
            Ok(parts) => (parts / self.slope.0, u128::from(parts % self.slope.0)),
            Err(_) => (u64::try_from(parts / slope).unwrap_or(u64::MAX), parts % slope),
        };
        self.part = part;
        self.last += Span(whole);
        self.last + Span(u64::from(part > 0))
    }

    fn reset(&mut self) {
        (self.last, self.part) = (Time::ZERO, 0);
    }

    fn blocking(&self) -> Blocking {
        Blocking::Any
    }

    fn state(&self) -> usize {
        1
    }
}
