//! Deadlines for best-effort packets, so early that real-time packets just keep theirs.
//!
//! Every best-effort packet gets a deadline when it comes, and earliest
//! deadline first serves it among the real-time packets (`BE section 3`). The
//! *demand curve* of the packets so far says how much of them is due within a
//! time: a packet i that came at `r_i` puts the point
//! `(D_n - r_i, w_i + .. + w_n)` on the curve that ends with packet n and its
//! deadline `D_n`. All deadlines are met if no such point ever lies above the
//! effective residual capacity E, and the earliest deadline that has this
//! property is
//!
//! `D_n = max over i of (r_i + E^-1(w_i + .. + w_n))`,
//!
//! Algorithm 1 of `BE`, written in absolute times. [`Exact`] works that out
//! as it stands; [`Bounded`] gives the same deadlines without the whole history.
//!
//! All are exact in whole nanoseconds and bytes; what is rounded is rounded to
//! later deadlines. A packet smaller than [`SMALLEST_PACKET`] counts as one of
//! that size. Deadlines follow the order of arrival (Theorem 1 of `BE`).

mod bounded;
mod exact;

use std::fmt;

use crate::units::{Bytes, Time};

pub use crate::residual::SMALLEST_PACKET;
pub use bounded::Bounded;
pub use exact::Exact;

/// Gives deadlines to best-effort packets.
pub trait Assignment: Send + fmt::Debug {
    /// The deadline of a packet that comes at `arrived`, no earlier than the
    /// one before: by then it is on the wire.
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time;

    /// Forgets all packets. To be called only when the link is idle: when
    /// nothing is left of the packets that have deadlines (`BE section 3.1`).
    fn reset(&mut self);

    /// How many earlier packets it still takes into account, or numbers that
    /// stand for them.
    fn state(&self) -> usize;
}

/// A packet that came, as a point from which on demand is counted.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// When it came, in nanoseconds.
    arrived: u64,
    /// Bytes that came before it.
    before: u64,
}
