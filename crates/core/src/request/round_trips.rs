//! The delay signal: how much longer the round trips to servers take than the path to
//! each server would without queues.
//!
//! The handshake of each connection is one sample of its origin's round trip, and so is
//! each request on an open one. The minimum ever seen of an origin is what its path takes
//! by itself, and by how much a sample exceeds it is the queueing delay that the
//! scheduler's window follows. Three rules keep that from meaning something else:
//!
//! - What was sent more than once is no sample (Karn's rule, RFC 6298 section 3). A
//!   packet that was lost in a burst would otherwise count as a queue of seconds.
//! - The first sample of an origin says what its path takes, and nothing of delay.
//! - The signal is the median over the origins that were heard last. A server that is
//!   slow to answer, or wants to seem so, is one of them however often it is asked, and
//!   cannot slow others down. Whoever has three of the five still can.

use std::collections::{BTreeMap, VecDeque};

use super::proxy::OriginId;
use crate::units::Span;

/// The number of origins that each of the two generations remembers. An origin to
/// which no connection was opened while that many others were is forgotten, so that
/// strangers cannot fill the memory. An entry takes some 30 bytes.
const MOST_ORIGINS: usize = 4_096;

/// The number of origins whose latest delays make the signal: two of them may be slow for
/// reasons of their own.
const HEARD_LAST: usize = 5;

/// Least round trips, and the latest delays.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    young: BTreeMap<OriginId, Span>,
    old: BTreeMap<OriginId, Span>,
    /// The latest delay of each origin that was heard last, in the order of hearing.
    heard: VecDeque<(OriginId, Span)>,
    /// Whether there was a sample since the last report.
    is_fresh: bool,
}

impl RoundTrips {
    /// A round trip to this origin took so long.
    pub(super) fn add(&mut self, origin: OriginId, round_trip: Span) {
        let known = self.young.get(&origin).or_else(|| self.old.get(&origin)).copied();
        let least = known.map_or(round_trip, |least| round_trip.min(least));
        self.young.insert(origin, least);
        if self.young.len() >= MOST_ORIGINS {
            self.old = std::mem::take(&mut self.young);
        }
        if known.is_some() {
            self.heard.retain(|(heard, _)| *heard != origin);
            self.heard.push_back((origin, round_trip - least));
            if self.heard.len() > HEARD_LAST {
                self.heard.pop_front();
            }
            self.is_fresh = true;
        }
    }

    /// The median of the latest delays, the lower one of two; `None` without a sample
    /// since this was asked last, after which the earlier ones are forgotten.
    pub(super) fn take_delay(&mut self) -> Option<Span> {
        if !std::mem::take(&mut self.is_fresh) {
            self.heard.clear();
            return None;
        }
        let mut delays: Vec<Span> = self.heard.iter().map(|(_, delay)| *delay).collect();
        delays.sort_unstable();
        delays.get(delays.len().saturating_sub(1) / 2).copied()
    }
}

/// What TCP says of the path of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPath {
    /// Its smoothed round trip, in which a sample counts an eighth (RFC 6298 section 2.3).
    pub smoothed: Span,
    /// The segments that this side has sent again, SYNs with them.
    pub retransmissions: u64,
}

/// The latest round trip of a connection: that of its handshake, or the one that has moved
/// the smoothed value, as TCP tells a gateway no other. `None` if there has been no other
/// since `before`, or this side has sent something again: which copy was answered is not
/// known (Karn's rule, RFC 6298 section 3).
///
/// ```
/// use tidegate_core::Span;
/// use tidegate_core::request::{TcpPath, latest_round_trip};
///
/// let path = |smoothed, retransmissions| {
///     TcpPath { smoothed: Span::millis(smoothed), retransmissions }
/// };
/// assert_eq!(latest_round_trip(None, path(40, 0)), Some(Span::millis(40)));
/// // A request that took 120 ms moves it by 10 ms.
/// assert_eq!(latest_round_trip(Some(path(40, 0)), path(50, 0)), Some(Span::millis(120)));
/// assert_eq!(latest_round_trip(Some(path(40, 0)), path(50, 1)), None);
/// ```
#[must_use]
pub fn latest_round_trip(before: Option<TcpPath>, now: TcpPath) -> Option<Span> {
    if now.retransmissions != before.map_or(0, |before| before.retransmissions) {
        return None;
    }
    match before.map(|before| before.smoothed) {
        None => Some(now.smoothed),
        Some(before) if before == now.smoothed => None,
        Some(before) => Some(Span((8 * now.smoothed.0).saturating_sub(7 * before.0))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The delay after these excesses, in milliseconds, over the paths of numbered origins.
    fn delay(excesses: &[(u64, u64)]) -> u64 {
        let path = |origin: u64| Span::millis(20 + 280 * (origin % 2));
        let mut trips = RoundTrips::default();
        let origins: BTreeSet<u64> = excesses.iter().map(|(origin, _)| *origin).collect();
        for origin in origins {
            trips.add(OriginId(origin), path(origin));
        }
        for (origin, excess) in excesses {
            trips.add(OriginId(*origin), path(*origin) + Span::millis(*excess));
        }
        trips.take_delay().expect("there were samples").0 / 1_000_000
    }

    #[test]
    fn it_is_the_median_over_the_origins_that_were_heard_last() {
        assert_eq!(delay(&[(1, 149)]), 149);
        assert_eq!(delay(&[(1, 9_000), (2, 149)]), 149);
        assert_eq!(delay(&[(1, 900), (2, 149), (3, 0), (4, 148), (5, 9_000)]), 149);
        // Five others have been heard since.
        let others = [(2, 10), (3, 20), (4, 30), (5, 0), (6, 0)];
        assert_eq!(delay(&[[(1, 40)].as_slice(), &others].concat()), 10);
    }

    #[test]
    fn a_server_that_seems_far_away_is_one_of_them_however_often_it_is_asked() {
        assert_eq!(delay(&[[(1, 0), (2, 30)].as_slice(), &[(7, 9_000); 100]].concat()), 30);
    }

    #[test]
    fn an_origins_first_round_trip_is_no_sample() {
        let mut trips = RoundTrips::default();
        trips.add(OriginId(0), Span::millis(20));
        assert_eq!(trips.take_delay(), None);
        // A crowd of strangers does not hide a queue.
        trips.add(OriginId(0), Span::millis(170));
        (1..50).for_each(|stranger| trips.add(OriginId(stranger), Span::millis(300)));
        assert_eq!(trips.take_delay(), Some(Span::millis(150)));
    }

    #[test]
    fn silence_forgets_delays_but_not_paths() {
        let mut trips = RoundTrips::default();
        for (origin, round_trip) in [(1, 20), (2, 20), (1, 170), (2, 120)] {
            trips.add(OriginId(origin), Span::millis(round_trip));
        }
        assert_eq!(trips.take_delay(), Some(Span::millis(100)));
        trips.add(OriginId(1), Span::millis(180));
        assert_eq!(trips.take_delay(), Some(Span::millis(100)), "the other one counts still");
        assert_eq!(trips.take_delay(), None);
        trips.add(OriginId(1), Span::millis(180));
        assert_eq!(trips.take_delay(), Some(Span::millis(160)), "it no longer does");
    }

    #[test]
    fn what_was_sent_again_is_no_sample() {
        let path = |millis, retransmissions| {
            let smoothed = Span::millis(millis);
            TcpPath { smoothed, retransmissions }
        };
        assert_eq!(latest_round_trip(None, path(1_040, 1)), None);
        assert_eq!(latest_round_trip(Some(path(40, 1)), path(40, 1)), None);
        assert_eq!(latest_round_trip(Some(path(40, 1)), path(165, 2)), None);
        assert_eq!(latest_round_trip(Some(path(40, 2)), path(45, 2)), Some(Span::millis(80)));
    }
}
