//! Round-trip estimate and retransmission timeout (RFC 6298).
//!
//! The sender decides which samples to take (Karn's algorithm); this module says
//! what a sample does. The smoothed values are whole nanoseconds.
//!
//! The RFC has one sample per round trip in mind, and with one per acknowledgement RTTVAR
//! forgets within a fraction of one. Linux can therefore be asked for: RTTVAR is the
//! largest deviation of a round trip, falls by a quarter of the difference at its end, and
//! a round trip that is shorter than expected counts for an eighth
//! (`tcp_rtt_estimator` of Linux 7.3).

use tidegate_core::{Span, Time};

use super::config::TcpConfig;
use super::ticks;

/// RFC 6298 (5.7): the timeout of the first data after a SYN has been lost.
const AFTER_SYN_LOSS: Span = Span::seconds(3);

#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    /// SRTT; zero before the first sample.
    smoothed: Span,
    /// The least measurement; the longest of times before the first one.
    least: Span,
    /// RTTVAR.
    variation: Span,
    /// RTO without back-off.
    timeout: Span,
    /// How often the timeout has been doubled.
    backoff: u8,
    /// Four times the deviation, smoothed, and the largest of this round trip, which ends
    /// when `round_end` is acknowledged.
    deviation: Span,
    largest: Span,
    round_end: u64,
}

impl RoundTrip {
    pub(super) fn new(config: &TcpConfig) -> RoundTrip {
        RoundTrip {
            smoothed: Span::ZERO,
            least: Span(u64::MAX),
            variation: Span::ZERO,
            timeout: config.initial_rto,
            backoff: 0,
            deviation: Span::ZERO,
            largest: Span::ZERO,
            round_end: 0,
        }
    }

    /// Takes a measured round trip (2.2, 2.3), which also ends the back-off
    /// (end of section 5), when all before `acknowledged` has arrived and all before
    /// `sent` is on its way.
    #[inline]
    pub(super) fn sample(
        &mut self,
        config: &TcpConfig,
        round_trip: Span,
        (acknowledged, sent): (u64, u64),
    ) {
        self.least = self.least.min(round_trip);
        let margin = if config.rttvar_per_round {
            self.vary_by_round(config.clock_granularity, round_trip, (acknowledged, sent));
            4 * self.variation.0
        } else {
            self.variation = if self.smoothed == Span::ZERO {
                round_trip / 2
            } else {
                let difference = self.smoothed.0.abs_diff(round_trip.0);
                Span((3 * self.variation.0 + difference) / 4)
            };
            (4 * self.variation.0).max(config.clock_granularity.0)
        };
        self.smoothed = if self.smoothed == Span::ZERO {
            Span(round_trip.0.max(1))
        } else {
            Span(((7 * self.smoothed.0 + round_trip.0) / 8).max(1))
        };
        let timeout = self.smoothed.0 + margin;
        // Not `clamp`, which panics when a configuration has its limits swapped.
        let timeout = Span(timeout.max(config.min_rto.0).min(config.max_rto.0));
        self.timeout = ticks::whole(config.timer_tick, timeout);
        self.backoff = 0;
    }

    /// RTTVAR as in Linux; four times it is no less than `least`. Out of line, so that
    /// the RFC's estimate stays short.
    #[inline(never)]
    fn vary_by_round(&mut self, least: Span, round_trip: Span, (acknowledged, sent): (u64, u64)) {
        if self.smoothed == Span::ZERO {
            self.deviation = round_trip * 2;
            self.largest = self.deviation.max(least);
            self.variation = self.largest / 4;
            self.round_end = sent;
            return;
        }
        let known = self.deviation / 4;
        let difference = Span(self.smoothed.0.abs_diff(round_trip.0));
        if difference <= known {
            self.deviation -= known - difference;
        } else {
            let damping = if round_trip < self.smoothed { 8 } else { 1 };
            self.deviation += (difference - known) / damping;
        }
        self.largest = self.largest.max(self.deviation);
        self.variation = self.variation.max(self.largest / 4);
        if acknowledged > self.round_end {
            self.variation = self.variation - (self.variation - self.largest / 4) / 4;
            self.round_end = sent;
            self.largest = least;
        }
    }

    /// Doubles the timeout (5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Ends the back-off without a sample: the peer has answered.
    pub(super) fn forgive(&mut self) {
        self.backoff = 0;
    }

    /// A SYN timed out before the connection came up (5.7).
    pub(super) fn syn_was_lost(&mut self) {
        self.timeout = self.timeout.max(AFTER_SYN_LOSS);
        self.backoff = 0;
    }

    #[inline]
    pub(super) fn timeout(&self, config: &TcpConfig) -> Span {
        let factor = 1_u64.checked_shl(u32::from(self.backoff)).unwrap_or(u64::MAX);
        (self.timeout * factor).min(config.max_rto)
    }

    /// SRTT, once there has been a sample.
    pub(super) fn smoothed(&self) -> Option<Span> {
        (self.smoothed != Span::ZERO).then_some(self.smoothed)
    }

    /// The least round trip of the connection; the longest of times before one has
    /// been measured.
    pub(super) fn least(&self) -> Span {
        self.least
    }

    #[inline]
    pub(super) fn deadline(&self, config: &TcpConfig, now: Time) -> Time {
        ticks::fires(config.timer_tick, now, self.timeout(config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_rfc_6298() {
        let config = TcpConfig { min_rto: Span::millis(1), ..TcpConfig::papers() };
        let mut trip = RoundTrip::new(&config);
        assert_eq!(trip.timeout(&config), Span::seconds(3));
        // (2.2): SRTT = 100 ms, RTTVAR = 50 ms, RTO = 100 + 4 * 50.
        trip.sample(&config, Span::millis(100), (1, 1));
        assert_eq!((trip.smoothed(), trip.timeout), (Some(Span::millis(100)), Span::millis(300)));
        // (2.3): RTTVAR = 3/4 * 50 + 1/4 * |100 - 180| = 57.5 ms first, then
        // SRTT = 7/8 * 100 + 1/8 * 180 = 110 ms; RTO = 110 + 230.
        trip.sample(&config, Span::millis(180), (1, 1));
        assert_eq!((trip.smoothed(), trip.timeout), (Some(Span::millis(110)), Span::millis(340)));
        trip.back_off();
        trip.back_off();
        assert_eq!(trip.timeout(&config), Span::millis(1_360));
        for _ in 0..200 {
            trip.back_off();
        }
        assert_eq!(trip.timeout(&config), config.max_rto);
    }

    /// Four samples of 100 ms, of which the third ends the first round trip and the fourth
    /// the second one. Four deviations: 200 ms, 200 - 50 = 150, 112.5, 84.375; the RFC's
    /// timeout is 184.375 ms then. Linux's RTTVAR stays at 200 / 4 until a whole round
    /// trip's largest is less, and goes a quarter of the way from 200 to 84.375.
    #[test]
    fn the_variation_falls_once_per_round_trip() {
        let config = TcpConfig {
            min_rto: Span::ZERO,
            clock_granularity: Span::millis(40),
            rttvar_per_round: true,
            ..TcpConfig::papers()
        };
        let timeouts = |config: &TcpConfig| {
            let mut trip = RoundTrip::new(config);
            [(1, 10), (5, 20), (11, 30), (31, 50)].map(|at| {
                trip.sample(config, Span::millis(100), at);
                trip.timeout.0 / 1_000
            })
        };
        assert_eq!(timeouts(&config), [300_000, 300_000, 300_000, 271_093]);
        let rfc = TcpConfig { rttvar_per_round: false, ..config };
        assert_eq!(timeouts(&rfc), [300_000, 250_000, 212_500, 184_375]);
    }

    /// At 100 ms with a deviation of 50: 20 ms counts for (80 - 50) / 8 more, 180 ms for
    /// the whole of 30.
    #[test]
    fn a_shorter_round_trip_counts_for_an_eighth() {
        let config = TcpConfig {
            min_rto: Span::ZERO,
            clock_granularity: Span::millis(1),
            rttvar_per_round: true,
            ..TcpConfig::papers()
        };
        for (round_trip, deviation) in [(20, 203_750), (180, 230_000)] {
            let mut trip = RoundTrip::new(&config);
            trip.sample(&config, Span::millis(100), (1, 10));
            trip.sample(&config, Span::millis(round_trip), (5, 10));
            assert_eq!(trip.deviation.0 / 1_000, deviation);
        }
    }

    #[test]
    fn constant_round_trips_leave_the_granularity() {
        let config = TcpConfig { min_rto: Span::ZERO, ..TcpConfig::papers() };
        let mut trip = RoundTrip::new(&config);
        for _ in 0..200 {
            trip.sample(&config, Span::millis(100), (1, 1));
        }
        assert_eq!(trip.timeout(&config), Span::millis(101));
        // A lost SYN counts only for timeouts below three seconds.
        trip.syn_was_lost();
        assert_eq!(trip.timeout(&config), Span::seconds(3));
    }
}
