//! Why the deadlines of real-time flows cannot all be met.

use super::{SMALLEST_PACKET, demand::Demand};
use crate::curve::{Curve, PER_BYTE, ceiling};
use crate::units::{Bytes, Rate, Span};

/// Real-time flows whose deadlines cannot all be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unschedulable {
    /// In the long run they send as much as the link does, or more.
    #[error(
        "the real-time flows send {total} in the long run ({flows}), which is not less than the \
         {link} that the link is certain to send"
    )]
    Unstable {
        /// Each flow with its rate.
        flows: String,
        /// Their sum.
        total: Rate,
        /// What the link sends.
        link: Rate,
    },
    /// At some time, more is due than the link can have sent.
    #[error(
        "the deadline of '{flow}', {deadline}, is too short: if all real-time flows send as much \
         as they may, what they must have sent {at} later is {short} more than the link can send \
         by then, after a largest packet that was in its way; it is too much from {from} on"
    )]
    Late {
        /// The flow whose demand exceeds the limit: the one that grows most there.
        flow: String,
        /// The deadline of that flow.
        deadline: Span,
        /// The length of the shortest interval in which too much is due.
        from: Span,
        /// The time after that, while too much is due, at which the most is
        /// missing.
        at: Span,
        /// How much is missing.
        short: Bytes,
    },
    /// Packets would have to be smaller than any packet is.
    #[error("{what} lets packets of at most {largest} pass, but packets have {SMALLEST_PACKET}")]
    TooSmall {
        /// The link or the flow.
        what: String,
        /// The largest packet that it lets pass.
        largest: Bytes,
    },
    /// The periods have no common measure, and too little of the link is left to do
    /// without one.
    #[error(
        "the curve of {what} has too many corners to be checked: let the periods have a common \
         multiple, or leave more of the link free"
    )]
    TooManyPieces {
        /// Whose curve.
        what: String,
    },
}

impl Unschedulable {
    pub(super) fn unstable(demands: &[Demand], link: Rate) -> Unschedulable {
        let rate = |demand: &Demand| demand.curve.long_run_rate();
        let each = |demand: &Demand| format!("'{}' {}", demand.name, rate(demand));
        let flows = demands.iter().map(each).collect::<Vec<_>>().join(", ");
        Unschedulable::Unstable { flows, total: demands.iter().map(rate).sum(), link }
    }
}

/// The first point at which more is due than can have been sent.
pub(super) fn first_late(capacity: &Curve, demands: &[Demand]) -> Option<Unschedulable> {
    let shortest = demands.iter().map(|demand| demand.deadline.0).min()?;
    let from = first_negative(capacity, shortest)?;
    // The demand that came due last is what was too much: a step, or else the
    // steepest slope.
    let grown = |demand: &Demand| {
        let due = demand.due();
        due.value(from) - due.value(from - 1)
    };
    let most = demands.iter().map(grown).max()?;
    let flow = demands.iter().find(|demand| grown(demand) == most)?;
    let (at, missing) = most_missing(capacity, from);
    Some(Unschedulable::Late {
        flow: flow.name.clone(),
        deadline: flow.deadline,
        from: Span(from),
        at: Span(at),
        short: Bytes(u64::try_from(ceiling(missing, PER_BYTE)).unwrap_or(u64::MAX)),
    })
}

/// The first nanosecond from `from` on at which `curve`, which does not fall in
/// the long run, is negative.
pub(super) fn first_negative(curve: &Curve, from: u64) -> Option<u64> {
    // A curve that is not negative in one period of the tail never is.
    let until = curve.tail().max(from).saturating_add(curve.period());
    let mut pieces = curve.pieces_between(from, until).peekable();
    while let Some(piece) = pieces.next() {
        if piece.value < 0 {
            return Some(piece.start);
        }
        let last = pieces.peek().map_or(until, |next| next.start) - 1;
        if piece.at(last) < 0 {
            let wait = piece.value.div_euclid(-piece.slope) + 1;
            return Some(piece.start + u64::try_from(wait).expect("it is before the piece's end"));
        }
    }
    None
}

/// The point of the stretch below zero that begins at `from` at which the curve is
/// lowest, and how far below zero it is there.
fn most_missing(curve: &Curve, from: u64) -> (u64, i128) {
    let (mut at, mut lowest) = (from, curve.value(from));
    let until = curve.tail().max(from).saturating_add(2 * curve.period());
    let mut pieces = curve.pieces_between(from, until).peekable();
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().map_or(until, |next| next.start) - 1;
        for place in [piece.start, last] {
            if piece.at(place) < lowest {
                (at, lowest) = (place, piece.at(place));
            }
        }
        if piece.at(last) >= 0 {
            break;
        }
    }
    (at, -lowest)
}
