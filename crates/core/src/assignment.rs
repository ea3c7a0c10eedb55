//! Deadlines for best-effort packets with which no real-time packet misses its own.
//!
//! Every best-effort packet receives a deadline on arrival, and earliest deadline
//! first serves it among the real-time packets (`BE section 3`). The *demand curve*
//! of the packets so far says how much of them is due within a time: a packet i
//! that came at `r_i` puts the point `(D_n - r_i, w_i + .. + w_n)` on the curve
//! that ends with packet n and its deadline `D_n`. All deadlines are met if no such
//! point ever lies above the effective residual capacity E. That is necessary, too, if
//! a largest packet that is due later may be in the way when a packet comes. The
//! earliest deadline that has this property is
//!
//! `D_n = max over i of (r_i + E^-1(w_i + .. + w_n))`,
//!
//! Algorithm 1 of `BE`, written in absolute times. [`Exact`] computes that
//! literally. [`Bounded`] gives the same deadlines without the whole history.
//! [`Tight`] gives earlier ones, within a larger capacity that is there because best
//! effort keeps its order. The others put a simpler curve below E: a line through the origin ([`OriginLine`]),
//! a line that starts later ([`ShiftedLine`]), two segments ([`TwoSegments`]), and
//! two segments with a state of constant size ([`ConstantState`]).
//!
//! All are exact in whole nanoseconds and bytes; rounding is always towards later
//! deadlines. A packet smaller than [`SMALLEST_PACKET`] counts as one of that size.
//! Deadlines follow the order of arrival (Theorem 1 of `BE`).

mod bounded;
mod constant_state;
mod exact;
pub mod fit;
mod origin_line;
mod shifted_line;
mod tight;
mod two_segments;

use std::fmt;
use std::str::FromStr;

use crate::residual::Residual;
use crate::units::{Bytes, Time};

pub use crate::residual::SMALLEST_PACKET;
pub use bounded::{Bounded, StraightPiece};
pub use constant_state::ConstantState;
pub use exact::Exact;
pub use fit::{Line, Segments, Typical};
pub use origin_line::OriginLine;
pub use shifted_line::ShiftedLine;
pub use tight::Tight;
pub use two_segments::TwoSegments;

/// Gives deadlines to best-effort packets.
pub trait Assignment: Send + fmt::Debug {
    /// The deadline of a packet that comes at `arrived`, no earlier than the packet
    /// before it: the packet is on the wire by then.
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time;

    /// Forgets all packets. Call this only when nothing is left of the packets that
    /// have deadlines: none waits (`BE section 3.1`), and with [`Blocking::RealTime`]
    /// none is being sent either.
    fn reset(&mut self);

    /// What may be in the way of a best-effort packet.
    fn blocking(&self) -> Blocking;

    /// The number of earlier packets that it still takes into account, or of
    /// numbers that stand for them.
    fn state(&self) -> usize;
}

/// What an assignment expects to be in the way of packets with earlier deadlines,
/// since it is being sent when they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// A largest packet of any flow.
    Any,
    /// A packet of a real-time flow, or best effort whose demand it counts. Best
    /// effort has to be sent in the order of its deadlines. A packet that is sent with
    /// a later deadline than [`Assignment::assign`] gave has to be assigned one once
    /// more as its transmission begins, so that it counts from then on.
    RealTime,
}

/// A packet, as a point from which demand is counted.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// When the packet came, in nanoseconds.
    arrived: u64,
    /// Bytes that came before the packet.
    before: u64,
}

/// The ways of assigning deadlines, as written in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// [`Exact`], `exact`.
    Exact,
    /// [`Bounded`], `bounded`.
    Bounded,
    /// [`Tight`], `tight`.
    Tight,
    /// [`OriginLine`], `line`.
    OriginLine,
    /// [`ShiftedLine`], `shifted-line`.
    ShiftedLine,
    /// [`TwoSegments`], `two-segments`.
    TwoSegments,
    /// [`ConstantState`], `constant-state`.
    ConstantState,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Scheme; 7] = [
        Scheme::Exact,
        Scheme::Bounded,
        Scheme::Tight,
        Scheme::OriginLine,
        Scheme::ShiftedLine,
        Scheme::TwoSegments,
        Scheme::ConstantState,
    ];

    /// Their names, in the same order.
    pub const NAMES: &'static [&'static str] =
        &["exact", "bounded", "tight", "line", "shifted-line", "two-segments", "constant-state"];

    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Scheme::NAMES[self as usize]
    }

    /// Assigns deadlines in what `residual` leaves. Approximations are fitted to
    /// `typical` traffic.
    #[must_use]
    pub fn build(self, residual: &Residual, typical: Typical) -> Box<dyn Assignment> {
        let capacity = residual.effective();
        match self {
            Scheme::Exact => Box::new(Exact::new(capacity.clone())),
            Scheme::Bounded => Box::new(Bounded::new(capacity)),
            Scheme::Tight => Box::new(Tight::new(residual)),
            Scheme::OriginLine => Box::new(OriginLine::new(fit::origin_line(capacity))),
            Scheme::ShiftedLine => Box::new(ShiftedLine::new(fit::shifted_line(capacity, typical))),
            Scheme::TwoSegments => Box::new(TwoSegments::new(fit::two_segments(capacity, typical))),
            Scheme::ConstantState => {
                Box::new(ConstantState::new(fit::two_segments(capacity, typical)))
            }
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is the name of no scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not one of {names}", names = Scheme::NAMES.join(", "))]
pub struct UnknownScheme(pub String);

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(text: &str) -> Result<Scheme, UnknownScheme> {
        let found = Scheme::ALL.into_iter().find(|scheme| scheme.name() == text);
        found.ok_or_else(|| UnknownScheme(text.into()))
    }
}
