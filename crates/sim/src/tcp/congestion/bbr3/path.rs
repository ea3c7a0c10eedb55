//! The model of the path (section 5.5): its bandwidth, its round trip, how it lumps
//! acknowledgements together, and what it has tolerated in flight.
//!
//! The long-term part says what the path has been able to do over the last two cycles of
//! probing; the short-term part what losses since the last probe have left of it.

use std::collections::VecDeque;

use tidegate_core::{Rate, Span, Time};

use super::{Sample, Start, UNBOUNDED, scaled};

/// Nanoseconds in a second times bits in a byte.
const BIT_NANOS: u64 = 8_000_000_000;
/// `BBR.ExtraAckedFilterLen`: round trips over which aggregation is remembered, once the
/// pipe has been full.
const AGGREGATION_ROUNDS: u64 = 10;
/// `BBR.Headroom` in hundredths: the share of the long-term bound that is left to others.
const HEADROOM: u64 = 15;

/// `bytes` in `interval`, rounded down to whole bits per second; zero for no time.
pub(super) fn rate(bytes: u64, interval: Span) -> Rate {
    if interval == Span::ZERO {
        return Rate(0);
    }
    // 64 bits hold 2.3 GB in flight; the 128-bit division costs three times as much.
    match bytes.checked_mul(BIT_NANOS) {
        Some(bit_nanos) => Rate(bit_nanos / interval.0),
        None => {
            let wide = u128::from(bytes) * u128::from(BIT_NANOS) / u128::from(interval.0);
            Rate(u64::try_from(wide).unwrap_or(u64::MAX))
        }
    }
}

/// What `rate` carries in `span`, rounded down to bytes.
fn volume(rate: Rate, span: Span) -> u64 {
    match rate.0.checked_mul(span.0) {
        Some(bit_nanos) => bit_nanos / BIT_NANOS,
        None => rate.volume(span).0,
    }
}

#[derive(Debug)]
pub(super) struct Path {
    /// `BBR.max_bw`.
    pub(super) max_bandwidth: Rate,
    /// `BBR.bw`: what is believed now, `max_bandwidth` unless losses say less.
    pub(super) bandwidth: Rate,
    /// `BBR.bw_shortterm`.
    pub(super) bandwidth_short: Rate,
    /// `BBR.inflight_shortterm`.
    pub(super) in_flight_short: u64,
    /// `BBR.inflight_longterm`.
    pub(super) in_flight_long: u64,
    /// `BBR.min_rtt`.
    pub(super) min_round_trip: Option<Span>,
    /// `BBR.min_rtt_stamp`.
    pub(super) min_round_trip_at: Time,
    /// `BBR.extra_acked`.
    pub(super) extra_acked: u64,
    /// `BBR.max_bw_filter`: the greatest samples of this cycle and of the last one.
    cycles: [Rate; 2],
    aggregation: Aggregation,
}

/// How far acknowledgements have run ahead of the bandwidth (section 5.5.9).
#[derive(Debug)]
struct Aggregation {
    /// `BBR.extra_acked_interval_start`.
    start: Time,
    /// `BBR.extra_acked_delivered`.
    delivered: u64,
    /// `BBR.extra_acked_filter`: rounds and what came in excess in them. The excess falls
    /// from front to back, so the front is the greatest.
    rounds: VecDeque<(u64, u64)>,
}

impl Path {
    pub(super) fn new(start: &Start) -> Path {
        Path {
            max_bandwidth: Rate(0),
            bandwidth: Rate(0),
            bandwidth_short: Rate(UNBOUNDED),
            in_flight_short: UNBOUNDED,
            in_flight_long: UNBOUNDED,
            min_round_trip: start.round_trip,
            min_round_trip_at: start.now,
            extra_acked: 0,
            cycles: [Rate(0); 2],
            aggregation: Aggregation { start: start.now, delivered: 0, rounds: VecDeque::new() },
        }
    }

    /// `UpdateMaxBw` (section 5.5.5), without the round trips. What the application has
    /// limited counts only if it is more than was thought possible.
    pub(super) fn update_max_bandwidth(&mut self, sample: &Sample) {
        if sample.rate > Rate(0) && (sample.rate >= self.max_bandwidth || !sample.app_limited) {
            self.cycles[0] = self.cycles[0].max(sample.rate);
            self.max_bandwidth = self.cycles[0].max(self.cycles[1]);
        }
    }

    /// `AdvanceMaxBwFilter` (section 5.5.6): a cycle is over, and the one before the last
    /// is forgotten. A cycle without a sample is none: nothing has replaced the last one.
    pub(super) fn advance_max_bandwidth(&mut self) {
        if self.cycles[0] > Rate(0) {
            self.cycles = [Rate(0), self.cycles[0]];
        }
    }

    /// `UpdateACKAggregation` (section 5.5.9).
    pub(super) fn update_aggregation(
        &mut self,
        sample: &Sample,
        window: u64,
        round: u64,
        full: bool,
    ) {
        let it = &mut self.aggregation;
        let mut expected = volume(self.bandwidth, sample.now.since(it.start));
        if it.delivered <= expected {
            it.delivered = 0;
            it.start = sample.now;
            expected = 0;
        }
        it.delivered += sample.acked;
        let extra = (it.delivered - expected).min(window);
        let length = if full { AGGREGATION_ROUNDS } else { 1 };
        while it.rounds.back().is_some_and(|last| last.1 <= extra) {
            it.rounds.pop_back();
        }
        it.rounds.push_back((round, extra));
        while it.rounds.front().is_some_and(|first| first.0 + length <= round) {
            it.rounds.pop_front();
        }
        self.extra_acked = it.rounds.front().map_or(0, |first| first.1);
    }

    /// Data leaves after a silence, which was no lack of acknowledgements.
    pub(super) fn restart_aggregation(&mut self, now: Time) {
        self.aggregation.start = now;
    }

    /// `BoundBWForModel` (section 5.5.10.3).
    pub(super) fn bound_bandwidth(&mut self) {
        self.bandwidth = self.max_bandwidth.min(self.bandwidth_short);
    }

    /// `ResetShortTermModel`.
    pub(super) fn forget_short_term(&mut self) {
        self.bandwidth_short = Rate(UNBOUNDED);
        self.in_flight_short = UNBOUNDED;
    }

    /// What `bandwidth` has in flight without a queue, if a round trip is known.
    pub(super) fn in_flight_at(&self, bandwidth: Rate) -> Option<u64> {
        self.min_round_trip.map(|round_trip| volume(bandwidth, round_trip))
    }

    /// `BBR.bdp`; zero before a round trip is known.
    pub(super) fn product(&self) -> u64 {
        self.in_flight_at(self.bandwidth).unwrap_or(0)
    }

    /// `InflightWithHeadroom` (section 5.3.3.9), at least `least`.
    pub(super) fn in_flight_with_headroom(&self, mss: u64, least: u64) -> u64 {
        if self.in_flight_long == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = scaled(self.in_flight_long, HEADROOM).max(mss);
        self.in_flight_long.saturating_sub(headroom).max(least)
    }
}
