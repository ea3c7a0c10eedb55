//! What has to be sent of real-time flows by their deadlines, in a form that can be
//! added up.

use super::{SMALLEST_PACKET, Unschedulable};
use crate::contract::{Contracts, RealTime};
use crate::curve::{Curve, FARTHEST, PER_BYTE, Piece, TooManyPieces, ceiling};
use crate::units::{Bytes, Rate, Span};

/// Up to this many pieces of all curves together are written out rather than
/// cutting their tails: a search over them takes milliseconds.
const FEW_PIECES: u64 = 1 << 14;

/// Up to this many are written out when nothing else helps, which takes a second or
/// two.
const MANY_PIECES: u64 = 1 << 18;

/// What a real-time flow asks of the link.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) name: String,
    /// What the flow may send in an interval.
    pub(super) curve: Curve,
    pub(super) deadline: Span,
    /// Its largest packet.
    pub(super) largest: Bytes,
}

impl Demand {
    /// What has to be sent of the flow within an interval.
    pub(super) fn due(&self) -> Curve {
        self.curve.delayed(self.deadline.0)
    }

    /// The number of pieces that its demand has up to `until`.
    fn pieces_until(&self, until: u64) -> u64 {
        let pieces = self.curve.pieces().len() as u64;
        if self.curve.is_affine_in_the_end() {
            return pieces;
        }
        let in_period =
            self.curve.pieces().iter().filter(|piece| piece.start >= self.curve.tail()).count();
        let periods = until.saturating_sub(self.curve.tail()) / self.curve.period();
        pieces.saturating_add(periods.saturating_mul(in_period as u64))
    }

    /// The time from which its demand is periodic.
    fn tail(&self) -> u64 {
        self.curve.tail().saturating_add(self.deadline.0)
    }
}

/// The demands of all real-time flows.
pub(super) fn all(contracts: &Contracts) -> Result<Vec<Demand>, Unschedulable> {
    let demand = |flow: RealTime<'_>| {
        let name = flow.name.to_owned();
        let largest = flow.envelope.largest_packet();
        if largest < SMALLEST_PACKET {
            return Err(Unschedulable::TooSmall { what: format!("'{name}'"), largest });
        }
        let what = format!("'{name}'");
        let curve = flow.envelope.curve().map_err(|_| Unschedulable::TooManyPieces { what })?;
        // A curve is meaningless beyond that.
        let deadline = flow.deadline.min(Span(FARTHEST));
        Ok(Demand { name, curve, deadline, largest: largest.min(contracts.largest_packet) })
    };
    contracts.real_time().map(demand).collect()
}

/// The same demands, but none longer than can be added up; see the principles of
/// [`super`].
pub(super) fn cut(
    demands: Vec<Demand>,
    rate: Rate,
    largest_packet: Bytes,
) -> Result<Vec<Demand>, Unschedulable> {
    let rates = demands.iter().map(|demand| i128::from(demand.curve.long_run_rate().0));
    // Whole bits per second, so that lines of these rates leave something, too.
    let spare = i128::from(rate.0) - rates.sum::<i128>();
    if spare <= 0 {
        return Err(Unschedulable::unstable(&demands, rate));
    }
    let pieces = |until: u64| {
        demands.iter().fold(0_u64, |sum, demand| sum.saturating_add(demand.pieces_until(until)))
    };
    let tail = demands.iter().map(Demand::tail).max().unwrap_or(0);
    let repeats = common_period(&demands).and_then(|period| tail.checked_add(period));
    if repeats.is_some_and(|until| pieces(until) <= FEW_PIECES) {
        return Ok(demands);
    }
    // Lines above the demands, all continued back to zero, where they add up.
    let above: i128 = demands
        .iter()
        .map(|demand| {
            let line = demand.curve.line_above_from(demand.curve.tail());
            let last = line.pieces()[line.pieces().len() - 1];
            last.value - last.slope * (i128::from(last.start) + i128::from(demand.deadline.0))
        })
        .sum();
    let missing = (above + i128::from(largest_packet.0) * PER_BYTE).max(0);
    let settled = u64::try_from(ceiling(missing, spare)).unwrap_or(u64::MAX);
    let horizon = settled.max(tail);
    if pieces(horizon) > MANY_PIECES {
        return Err(Unschedulable::TooManyPieces { what: "the flows together".into() });
    }
    let cut = |demand: Demand| Demand {
        curve: demand.curve.line_above_from(horizon - demand.deadline.0),
        ..demand
    };
    Ok(demands.into_iter().map(cut).collect())
}

/// The least common multiple of the periods; straight tails have any.
fn common_period(demands: &[Demand]) -> Option<u64> {
    demands.iter().try_fold(1_u64, |multiple, demand| {
        let period = demand.curve.period();
        (multiple / common_divisor(multiple, period)).checked_mul(period)
    })
}

fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

/// R: what the demands leave.
pub(super) fn capacity(
    demands: &[Demand],
    rate: Rate,
    largest_packet: Bytes,
) -> Result<Curve, TooManyPieces> {
    let link = Curve::line(-i128::from(largest_packet.0) * PER_BYTE, i128::from(rate.0));
    demands.iter().try_fold(link, |left, demand| left.minus(&demand.due()))
}

/// How much smaller than `largest_packet` a packet is at most that is in the way within
/// an interval, if it is of a flow whose deadline exceeds the interval's length.
pub(super) fn unblocked(demands: &[Demand], largest_packet: Bytes) -> Curve {
    let mut by_deadline: Vec<&Demand> = demands.iter().collect();
    by_deadline.sort_by_key(|demand| demand.deadline);
    // From the longest deadline down: nothing is in the way from there on.
    let mut pieces = Vec::with_capacity(demands.len() + 1);
    let mut blocking = Bytes::ZERO;
    let mut piece = |start: u64, blocking: Bytes| {
        let value = i128::from(largest_packet.0 - blocking.0) * PER_BYTE;
        pieces.push(Piece { start, value, slope: 0 });
    };
    for (place, demand) in by_deadline.iter().enumerate().rev() {
        if by_deadline.get(place + 1).is_none_or(|next| next.deadline > demand.deadline) {
            piece(demand.deadline.0, blocking);
        }
        blocking = blocking.max(demand.largest);
    }
    piece(0, blocking);
    pieces.reverse();
    Curve::affine_tail(pieces)
}
