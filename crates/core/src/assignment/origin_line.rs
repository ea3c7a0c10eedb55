//! Deadlines within a line through the origin: the Total Bandwidth Server (`BE section 4.1`).
//!
//! A packet is due `w / gamma` after the packet before it, or after it came,
//! whichever is later (Spuri 1996): best-effort packets have a share gamma of
//! the link.

use super::{Assignment, Blocking, Line, ShiftedLine};
use crate::units::{Bytes, Rate, Span, Time};

/// Remembers one deadline.
#[derive(Clone, Debug)]
pub struct OriginLine(ShiftedLine);

impl OriginLine {
    /// A server of this share of the link.
    #[must_use]
    pub fn new(slope: Rate) -> OriginLine {
        OriginLine(ShiftedLine::new(Line { start: Span::ZERO, slope }))
    }
}

impl Assignment for OriginLine {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        self.0.assign(arrived, size)
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn blocking(&self) -> Blocking {
        Blocking::Any
    }

    fn state(&self) -> usize {
        self.0.state()
    }
}
