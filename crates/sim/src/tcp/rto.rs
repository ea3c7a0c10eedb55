//! Round-trip estimate and retransmission timeout (RFC 6298).
//!
//! The sender decides which samples to take (Karn's algorithm); this module says
//! what a sample does. The smoothed values are whole nanoseconds.

use tidegate_core::{Span, Time};

use super::config::TcpConfig;

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
}

impl RoundTrip {
    pub(super) fn new(config: &TcpConfig) -> RoundTrip {
        RoundTrip {
            smoothed: Span::ZERO,
            least: Span(u64::MAX),
            variation: Span::ZERO,
            timeout: config.initial_rto,
            backoff: 0,
        }
    }

    /// Takes a measured round trip (2.2, 2.3), which also ends the back-off
    /// (end of section 5).
    #[inline]
    pub(super) fn sample(&mut self, config: &TcpConfig, round_trip: Span) {
        self.least = self.least.min(round_trip);
        if self.smoothed == Span::ZERO {
            self.smoothed = Span(round_trip.0.max(1));
            self.variation = round_trip / 2;
        } else {
            let difference = self.smoothed.0.abs_diff(round_trip.0);
            self.variation = Span((3 * self.variation.0 + difference) / 4);
            self.smoothed = Span(((7 * self.smoothed.0 + round_trip.0) / 8).max(1));
        }
        let margin = (4 * self.variation.0).max(config.clock_granularity.0);
        let timeout = self.smoothed.0 + margin;
        // Not `clamp`, which panics when a configuration has its limits swapped.
        self.timeout = Span(timeout.max(config.min_rto.0).min(config.max_rto.0));
        self.backoff = 0;
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
        now + self.timeout(config)
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
        trip.sample(&config, Span::millis(100));
        assert_eq!((trip.smoothed(), trip.timeout), (Some(Span::millis(100)), Span::millis(300)));
        // (2.3): RTTVAR = 3/4 * 50 + 1/4 * |100 - 180| = 57.5 ms first, then
        // SRTT = 7/8 * 100 + 1/8 * 180 = 110 ms; RTO = 110 + 230.
        trip.sample(&config, Span::millis(180));
        assert_eq!((trip.smoothed(), trip.timeout), (Some(Span::millis(110)), Span::millis(340)));
        trip.back_off();
        trip.back_off();
        assert_eq!(trip.timeout(&config), Span::millis(1_360));
        for _ in 0..200 {
            trip.back_off();
        }
        assert_eq!(trip.timeout(&config), config.max_rto);
    }

    #[test]
    fn constant_round_trips_leave_the_granularity() {
        let config = TcpConfig { min_rto: Span::ZERO, ..TcpConfig::papers() };
        let mut trip = RoundTrip::new(&config);
        for _ in 0..200 {
            trip.sample(&config, Span::millis(100));
        }
        assert_eq!(trip.timeout(&config), Span::millis(101));
        // A lost SYN counts only for timeouts below three seconds.
        trip.syn_was_lost();
        assert_eq!(trip.timeout(&config), Span::seconds(3));
    }
}
