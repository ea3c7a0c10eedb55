//! The earliest deadlines of `BE`, from the whole history (`BE Algorithm 1`).
//!
//! Cost and memory grow with every packet since the link was last idle. The other
//! assignments are measured against this one.

use super::{Assignment, Blocking, Point, SMALLEST_PACKET};
use crate::curve::{Curve, PER_BYTE};
use crate::units::{Bytes, Time};

/// Remembers all packets since the link was idle.
#[derive(Clone, Debug)]
pub struct Exact {
    capacity: Curve,
    points: Vec<Point>,
    /// Bytes of all packets that are remembered.
    sum: u64,
}

impl Exact {
    /// The earliest deadlines within `capacity`, which must not fall.
    #[must_use]
    pub fn new(capacity: Curve) -> Exact {
        Exact { capacity, points: Vec::new(), sum: 0 }
    }
}

impl Assignment for Exact {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        self.points.push(Point { arrived: arrived.0, before: self.sum });
        self.sum = self.sum.saturating_add(size.max(SMALLEST_PACKET).0);
        let due = |point: &Point| {
            let demand = i128::from(self.sum - point.before) * PER_BYTE;
            let wait = self.capacity.first_reaching(demand).unwrap_or(u64::MAX);
            point.arrived.saturating_add(wait)
        };
        Time(self.points.iter().map(due).max().expect("the packet itself is among them"))
    }

    fn reset(&mut self) {
        self.points.clear();
        self.sum = 0;
    }

    fn blocking(&self) -> Blocking {
        Blocking::Any
    }

    fn state(&self) -> usize {
        self.points.len()
    }
}
