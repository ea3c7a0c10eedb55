//! The earliest deadlines within two segments (`BE section 4.3`, Algorithm 2).
//!
//! The paper keeps the packets whose points lie before the corner, and of those
//! beyond it the one nearest to the second segment. [`Bounded`] does the same with
//! the corner as last corner, so this is [`Bounded`] with another curve. It departs
//! from the listing, whose sums run from packet n+1 to packet i and whose time is
//! taken since packet j: as section 3 of the paper says, the point of packet i has
//! the sizes of packets i to n+1 and the time since i came.

use super::{Assignment, Blocking, Bounded, Segments};
use crate::units::{Bytes, Time};

/// Remembers the packets whose points lie on the first segment, and one more.
#[derive(Clone, Debug)]
pub struct TwoSegments(Bounded);

impl TwoSegments {
    /// The earliest deadlines within `segments`.
    #[must_use]
    pub fn new(segments: Segments) -> TwoSegments {
        TwoSegments(Bounded::new(&segments.curve()))
    }
}

impl Assignment for TwoSegments {
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
