//! The delay signal: how much longer connections to servers take than the path to
//! each server would without queues.
//!
//! The handshake of each connection is one sample of its origin's round trip. The
//! minimum round trip ever seen of an origin is what its path takes by itself; the
//! mean by which the samples since the last report exceed it is the queueing delay
//! that the scheduler's window follows.

use std::collections::BTreeMap;

use super::proxy::OriginId;
use crate::units::Span;

/// The number of origins that each of the two generations remembers. An origin to
/// which no connection was opened while that many others were is forgotten, so that
/// strangers cannot fill the memory. An entry takes some 30 bytes.
const MOST_ORIGINS: usize = 4_096;

/// Least round trips, and the delays since the last report.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    young: BTreeMap<OriginId, Span>,
    old: BTreeMap<OriginId, Span>,
    excess: Span,
    samples: u64,
}

impl RoundTrips {
    /// The time that a connection to this origin took to come up.
    pub(super) fn add(&mut self, origin: OriginId, round_trip: Span) {
        let known = self.young.get(&origin).or_else(|| self.old.get(&origin));
        let least = known.map_or(round_trip, |least| round_trip.min(*least));
        self.young.insert(origin, least);
        self.excess += round_trip - least;
        self.samples += 1;
        if self.young.len() >= MOST_ORIGINS {
            self.old = std::mem::take(&mut self.young);
        }
    }

    /// The mean delay since this was asked last; `None` without a sample.
    pub(super) fn take_delay(&mut self) -> Option<Span> {
        let (excess, samples) =
            (std::mem::take(&mut self.excess), std::mem::take(&mut self.samples));
        (samples > 0).then(|| excess / samples)
    }
}

/// The latest round trip of a connection: that of its handshake, or the one that has moved
/// the smoothed value, which counts an eighth of it (RFC 6298 section 2.3). TCP tells a
/// gateway no other. `None` if there has been no other since `before`.
#[must_use]
pub fn latest_round_trip(before: Option<Span>, smoothed: Span) -> Option<Span> {
    match before {
        None => Some(smoothed),
        Some(before) if before == smoothed => None,
        Some(before) => Some(Span((8 * smoothed.0).saturating_sub(7 * before.0))),
    }
}
