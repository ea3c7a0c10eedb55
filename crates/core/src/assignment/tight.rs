//! The earliest deadlines if best effort is sent in the order of its deadlines: ours,
//! not the paper's.
//!
//! The paper's capacity E sets aside a largest packet of any flow, which may be in
//! the way. If best effort is sent in order, none of its packets can be in the way of
//! a later one. So whenever best effort is due within t, what is in the way began
//! earlier and is due later: it is of a real-time flow whose deadline exceeds t, and
//! no larger than the largest packet of any such flow. That is the capacity F of
//! [`Residual::in_order`](crate::residual::Residual::in_order), which is nowhere below
//! E, and beyond the longest deadline higher by a largest packet. Real-time packets
//! alone are schedulable as before, whatever is in their way.
//!
//! Within F, no deadline can be earlier if each real-time flow may send its largest
//! packet just before, and all that its curve allows from then on: at the time at
//! which F binds, everything that is due by then and the packet in the way take a
//! nanosecond too long, so that some packet is late.
//!
//! The order of best effort has to hold on the link. So the past may be forgotten only
//! when the link is idle, not as soon as nothing waits; and a packet that is sent
//! with a later deadline than it was given can be in the way of the next one, and
//! counts as demand from that time on. [`Blocking::RealTime`] says so.

use super::{Assignment, Blocking, Bounded};
use crate::residual::Residual;
use crate::units::{Bytes, Time};

/// Remembers what [`Bounded`] does.
#[derive(Clone, Debug)]
pub struct Tight(Bounded);

impl Tight {
    /// The earliest deadlines in what `residual` leaves.
    #[must_use]
    pub fn new(residual: &Residual) -> Tight {
        Tight(Bounded::new(residual.in_order()))
    }
}

impl Assignment for Tight {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        self.0.assign(arrived, size)
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn blocking(&self) -> Blocking {
        Blocking::RealTime
    }

    fn state(&self) -> usize {
        self.0.state()
    }
}
