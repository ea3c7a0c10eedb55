//! Deadlines within two segments that need only the previous packet: a safe form of
//! `BE section 4.3.1`, Algorithm 3.
//!
//! Let E~ be the two segments, and let the last packet have come at r with the
//! relative deadline delta. A packet of size w' that comes at r' gets
//!
//! `delta' = max(E~^-1(w'), E~^-1(E~(delta) + w') + r - r')`.
//!
//! No point of the demand curve then ever lies above E~. For the packet's own
//! point, the first term ensures it. The new deadline moves every older point `(x,
//! y)`, which was not above E~, by some `s >= 0` to the right and by w' up. Its x
//! is at least delta, because it came no later than the last packet. E~ is convex,
//! so it gains at least as much from x to x + s as from delta to delta + s, and
//! that is at least w', which the second term ensures.
//!
//! This departs from Algorithm 3 as printed, which has the last packet's size
//! instead of `E~(delta)`. That is right only while no packet waits for another;
//! otherwise the printed form grants more than E~.

use super::{Assignment, Blocking, SMALLEST_PACKET, Segments};
use crate::curve::PER_BYTE;
use crate::units::{Bytes, Time};

/// Remembers when the last packet came, and its deadline.
#[derive(Clone, Debug)]
pub struct ConstantState {
    segments: Segments,
    last: Option<(Time, Time)>,
}

impl ConstantState {
    /// Safe deadlines within `segments`.
    #[must_use]
    pub fn new(segments: Segments) -> ConstantState {
        ConstantState { segments, last: None }
    }
}

impl Assignment for ConstantState {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        let demand = i128::from(size.max(SMALLEST_PACKET).0) * PER_BYTE;
        let alone = arrived + self.segments.wait(demand);
        let behind = self.last.map_or(Time::ZERO, |(came, deadline)| {
            let used = self.segments.value(deadline.since(came));
            came + self.segments.wait(used + demand)
        });
        let deadline = alone.max(behind);
        self.last = Some((arrived, deadline));
        deadline
    }

    fn reset(&mut self) {
        self.last = None;
    }

    fn blocking(&self) -> Blocking {
        Blocking::Any
    }

    fn state(&self) -> usize {
        2
    }
}
