//! What real-time flows leave of a link, and whether their deadlines can all be met.
//!
//! Flow k sends at most `A_k(t)` in any interval of length t, and its packets have
//! the deadline `d_k`. Earliest deadline first meets all deadlines, whatever else
//! is sent in packets of at most `s_max`, if and only if the residual capacity
//! `R(t) = C t - sum A_k(t - d_k) - s_max` is nowhere negative from the shortest
//! deadline on (Liebeherr 1996, Georgiadis 1996). What best-effort packets may ask
//! for within t is the effective residual capacity `E(t)`, the minimum of R from t
//! on, and never below zero (`BE section 3`).
//!
//! If best effort is sent in the order of its deadlines, none of it is ever in the way
//! of best effort that is due earlier. Within an interval of length t in which best
//! effort is due, only a packet of a real-time flow with a deadline of more than t can
//! be in the way. With the largest of those, or none, in place of `s_max`, R is higher,
//! and its minimum from t on, never below zero, is [`Residual::in_order`], F.
//!
//! Both curves are computed from the corners of the flows' curves. If the periods
//! of these have no common measure of a sensible size, R never repeats itself. Then
//! the tails are cut: every demand lies below a straight line, and the lines
//! together rise more slowly than the link sends, so R cannot be negative from some
//! horizon on. Up to there the curves are taken as they are, and from there on the
//! lines are. The answer to whether all deadlines can be met remains exact, because
//! both curves are equal up to the horizon and neither is negative after it. E is
//! exact as far as it lies below the value of R at the horizon, and too small,
//! which is safe, above.
//!
//! A link that takes a whole number of nanoseconds for each packet sends a little
//! less than its rate if its byte times are not whole numbers. C is therefore the
//! rate at which it is certain to send packets of any size from [`SMALLEST_PACKET`]
//! on; it is the link's own rate if 8 Gbit/s is a multiple of that. Anyone who
//! counts packets against these curves counts smaller ones as packets of that size.

mod demand;
mod unschedulable;

use crate::contract::Contracts;
use crate::curve::{Curve, FARTHEST, PER_BYTE};
use crate::units::{Bytes, NANOS_PER_SECOND, Rate, Span};

use demand::Demand;
pub use unschedulable::Unschedulable;

/// Packets are at least as large as an IPv4 and a TCP header; smaller ones count as
/// much as this.
pub const SMALLEST_PACKET: Bytes = Bytes(40);

/// What the real-time flows of a link leave of it. It exists only if all their
/// deadlines can be met.
#[derive(Clone, Debug)]
pub struct Residual {
    rate: Rate,
    largest_packet: Bytes,
    demands: Vec<Demand>,
    capacity: Curve,
    effective: Curve,
    in_order: Curve,
}

impl Residual {
    /// What the real-time flows of `contracts` leave.
    ///
    /// # Errors
    /// When a deadline cannot be met; the error says which and why.
    pub fn new(contracts: &Contracts) -> Result<Residual, Unschedulable> {
        let largest_packet = contracts.largest_packet;
        if largest_packet < SMALLEST_PACKET {
            let what = "the link".into();
            return Err(Unschedulable::TooSmall { what, largest: largest_packet });
        }
        let rate = certain_rate(contracts.link, largest_packet);
        let demands = demand::cut(demand::all(contracts)?, rate, largest_packet)?;
        let too_many = |_| Unschedulable::TooManyPieces { what: "the flows together".into() };
        let capacity = demand::capacity(&demands, rate, largest_packet).map_err(too_many)?;
        if let Some(late) = unschedulable::first_late(&capacity, &demands) {
            return Err(late);
        }
        let left = |capacity: &Curve| {
            let least = capacity.least_from_here_on().expect("the flows are slower than the link");
            least.positive_part()
        };
        let effective = left(&capacity).map_err(too_many)?;
        let unblocked = capacity.plus(&demand::unblocked(&demands, largest_packet));
        let in_order = unblocked.and_then(|capacity| left(&capacity)).map_err(too_many)?;
        Ok(Residual { rate, largest_packet, demands, capacity, effective, in_order })
    }

    /// R: what is left of the link after real-time flows have sent all that they
    /// may and a packet was in the way; negative before the first deadline.
    #[must_use]
    pub fn capacity(&self) -> &Curve {
        &self.capacity
    }

    /// E: what best-effort packets may ask for within any interval of a given
    /// length.
    #[must_use]
    pub fn effective(&self) -> &Curve {
        &self.effective
    }

    /// F: what best-effort packets may ask for within any interval of a given length
    /// if they are sent in the order of their deadlines; nowhere below E.
    #[must_use]
    pub fn in_order(&self) -> &Curve {
        &self.in_order
    }

    /// The rate at which the link is certain to send packets of any size.
    #[must_use]
    pub fn certain_rate(&self) -> Rate {
        self.rate
    }

    /// The largest packet that may be sent while these promises hold.
    #[must_use]
    pub fn largest_packet(&self) -> Bytes {
        self.largest_packet
    }

    /// The earliest deadline that a best-effort packet that comes alone can have:
    /// the inverse of [`Residual::effective`].
    #[must_use]
    pub fn earliest_deadline(&self, size: Bytes) -> Span {
        let size = size.max(SMALLEST_PACKET);
        let at = self.effective.first_reaching(i128::from(size.0) * PER_BYTE);
        Span(at.unwrap_or(u64::MAX))
    }

    /// The shortest deadline of the real-time flow called `name` with which all
    /// deadlines can still be met, while those of the others stay as they are.
    /// `None` if there is no such flow.
    ///
    /// The search is binary and exact to the nanosecond: a shorter deadline only
    /// means more demand.
    #[must_use]
    pub fn shortest_deadline(&self, name: &str) -> Option<Span> {
        let flow = self.demands.iter().find(|demand| demand.name == name)?;
        let others = self.capacity.plus(&flow.due());
        let others = others.expect("a tail that starts no later and the same period");
        // `enough` can be met, `too_short` cannot: nothing is sent in no time.
        let (mut too_short, mut enough) = (0, flow.deadline.0);
        while enough - too_short > 1 {
            let middle = too_short + (enough - too_short) / 2;
            let left = others.minus(&flow.curve.delayed(middle));
            if never_negative_from(&left.expect("as before"), middle) {
                enough = middle;
            } else {
                too_short = middle;
            }
        }
        Some(Span(enough))
    }

    /// How much shorter the deadline of that flow could be.
    #[must_use]
    pub fn slack(&self, name: &str) -> Option<Span> {
        let flow = self.demands.iter().find(|demand| demand.name == name)?;
        Some(flow.deadline - self.shortest_deadline(name)?)
    }

    /// The highest rate of a further flow that sends at most `burst + rate t` and
    /// whose packets have this deadline, such that all deadlines can still be met.
    /// `None` if not even 1 bit/s fits.
    ///
    /// The search is binary and exact to the bit per second, as far as E is exact.
    #[must_use]
    pub fn highest_rate(&self, burst: Bytes, deadline: Span) -> Option<Rate> {
        let deadline = deadline.min(Span(FARTHEST));
        let fits = |rate: u64| {
            let due = Curve::token_bucket(burst, Rate(rate)).delayed(deadline.0);
            let left = self.effective.minus(&due).expect("one of them ends in a straight line");
            never_negative_from(&left, deadline.0)
        };
        let sent: Rate = self.demands.iter().map(|demand| demand.curve.long_run_rate()).sum();
        let (mut fitting, mut too_fast) = (0, self.rate.0 - sent.0);
        while too_fast - fitting > 1 {
            let middle = fitting + (too_fast - fitting) / 2;
            if fits(middle) {
                fitting = middle;
            } else {
                too_fast = middle;
            }
        }
        (fitting > 0).then_some(Rate(fitting))
    }
}

/// Whether a curve that does not fall in the long run is nowhere negative from
/// `from` on.
fn never_negative_from(curve: &Curve, from: u64) -> bool {
    unschedulable::first_negative(curve, from).is_none()
}

/// The rate at which a link sends packets of any size up to `largest` when it
/// takes a whole number of nanoseconds for each.
fn certain_rate(link: Rate, largest: Bytes) -> Rate {
    const BYTE: u64 = 8 * NANOS_PER_SECOND;
    if BYTE.is_multiple_of(link.0) {
        return link;
    }
    let mut least = u128::from(link.0);
    for size in SMALLEST_PACKET.0..=largest.0 {
        let amount = u128::from(size * BYTE);
        // At worst a packet takes one nanosecond more. If even that is not slower
        // than the rate found so far, no larger packet can be.
        if least * (amount + u128::from(link.0)) <= amount * u128::from(link.0) {
            break;
        }
        least = least.min(amount / u128::from(link.transmission(Bytes(size)).0));
    }
    Rate(u64::try_from(least).expect("no more than the link's rate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_any_size_are_sent_at_the_certain_rate() {
        assert_eq!(certain_rate(Rate(10_000_000), Bytes(1_536)), Rate(10_000_000));
        for link in [3, 7_000_001, 30_000_000, 999_999_937, 3_000_000_000, 1_000_000_000_000] {
            let link = Rate(link);
            let certain = certain_rate(link, Bytes(9_000));
            assert!(certain <= link);
            for size in 40..=9_000 {
                assert!(link.transmission(Bytes(size)) <= certain.transmission(Bytes(size)));
            }
            let faster = Rate(certain.0 + 1);
            let amount = |size: u64| u128::from(size * 8 * NANOS_PER_SECOND);
            let sent = |size: u64| {
                u128::from(faster.0) * u128::from(link.transmission(Bytes(size)).0) <= amount(size)
            };
            assert!(!(40..=9_000).all(sent), "{link} could be taken for more");
        }
    }
}
