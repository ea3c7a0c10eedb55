//! HyStart as Linux has it in CUBIC (Linux 7.3, tcp_cubic; Ha 2011).
//!
//! It looks at two things in each round trip of a slow start. The first is how long the
//! acknowledgements of a round keep coming without a gap: when they do so for half of
//! the least round trip, what was sent at once has been spread over as much by the
//! bottleneck, and a window twice as large fills the path. The second is the least
//! round trip of the round: when it exceeds that of the connection by an eighth, a queue
//! stands.
//!
//! What marks a gap is a constant, 2 ms, so that below 6 Mbit/s full segments make no
//! train, and delay alone decides.

use tidegate_core::{Bytes, Span, Time};

use super::Ack;

/// No search below so many segments (`hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// Acknowledgements further apart are no train (`hystart_ack_delta_us`).
const GAP: Span = Span::millis(2);
/// Samples before a round's least round trip counts (`HYSTART_MIN_SAMPLES`).
const SAMPLES: u32 = 8;
/// By how much it must be above the connection's: an eighth of it, within these limits.
const LEAST_RISE: Span = Span::millis(4);
const MOST_RISE: Span = Span::millis(16);
/// A train may be as long as four of the sender's largest bursts take, up to a
/// millisecond, on top of the round trip: segments of a burst are acknowledged late.
const LARGEST_BURST: Bytes = Bytes(65_536);
const MOST_BURST_TIME: Span = Span::millis(1);

#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// Pacing spreads what is sent over half a round trip, so that a train is only one
    /// when it lasts for a whole one.
    paced: bool,
    /// `LOW_WINDOW` in bytes.
    low_window: u64,
    /// `delay_min`: the least round trip of the connection.
    least: Option<Span>,
    /// Slow start has been ended.
    found: bool,
    /// When the round began, and the last acknowledgement of its train.
    round_start: Time,
    train: Time,
    /// The round is over when more than this is acknowledged.
    round_end: u64,
    /// SND.NXT at the last acknowledgement.
    sent: u64,
    /// `curr_rtt`: the least round trip of the round.
    round_least: Span,
    samples: u32,
}

impl HyStart {
    pub(super) fn new(mss: u64, paced: bool) -> HyStart {
        HyStart {
            paced,
            low_window: LOW_WINDOW * mss,
            least: None,
            found: false,
            round_start: Time::ZERO,
            train: Time::ZERO,
            round_end: 0,
            sent: 0,
            round_least: Span(u64::MAX),
            samples: 0,
        }
    }

    #[inline(never)]
    pub(super) fn ends(&mut self, ack: &Ack, window: u64, slow_start: bool) -> bool {
        let Some(delay) = ack.latest_round_trip else { return false };
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        self.sent = ack.sent;
        if self.found || !slow_start {
            return false;
        }
        if ack.acknowledged > self.round_end {
            self.round_start = ack.now;
            self.train = ack.now;
            self.round_end = ack.sent;
            self.round_least = Span(u64::MAX);
            self.samples = 0;
        }
        if window < self.low_window {
            return false;
        }
        if ack.now.since(self.train) <= GAP {
            self.train = ack.now;
            let whole = least + burst_time(window, ack.smoothed_round_trip);
            let most = if self.paced { whole } else { whole / 2 };
            self.found = ack.now.since(self.round_start) > most;
        }
        self.round_least = self.round_least.min(delay);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let rise = (least / 8).clamp(LEAST_RISE, MOST_RISE);
            self.found |= self.round_least > least + rise;
        }
        self.found
    }

    /// After a timeout the search begins anew, and its first round ends with all that
    /// has been sent.
    pub(super) fn reset(&mut self) {
        self.found = false;
        self.least = None;
        self.round_end = self.sent;
        self.round_least = Span(u64::MAX);
        self.samples = 0;
    }
}

/// How long four bursts take at twice the window per round trip, the rate at which Linux
/// would pace a slow start.
fn burst_time(window: u64, smoothed: Option<Span>) -> Span {
    let Some(smoothed) = smoothed else { return Span::ZERO };
    let bursts = u128::from(4 * LARGEST_BURST.0) * u128::from(smoothed.0);
    let span = bursts / u128::from(2 * window).max(1);
    MOST_BURST_TIME.min(Span(u64::try_from(span).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::tests::ack;

    const MSS: u64 = 1_000;

    /// Round trip of 40 ms, acknowledgements 1.2 ms apart, as at 10 Mbit/s. A window of 20
    /// is acknowledged from 40 ms on; half of 40 ms and a burst's millisecond are over
    /// after 20.5 ms, so with the 18th further acknowledgement, at 21.6 ms. Paced segments
    /// need 41 ms, and the 35th.
    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        for (paced, end) in [(false, 18), (true, 35)] {
            let mut search = HyStart::new(MSS, paced);
            let ended = (0..40).find(|at| {
                let now = Time::ZERO + Span::millis(40) + Span::micros(1_200) * *at;
                let ack = ack(now, Some(Span::millis(40)), (1 + at) * MSS + 1, 100 * MSS);
                search.ends(&ack, (20 + at) * MSS, true)
            });
            assert_eq!(ended, Some(end), "paced: {paced}");
        }
    }

    /// Acknowledgements 2.4 ms apart are no train. Each round trip of a round is 5 ms
    /// above the 40 ms of the connection, and 4 ms is no rise: an eighth is 5 ms.
    #[test]
    fn a_rise_by_more_than_an_eighth_ends_slow_start_after_eight_samples() {
        for (rise, end) in [(Span::micros(5_001), Some(9)), (Span::millis(5), None)] {
            let mut search = HyStart::new(MSS, false);
            let acks = (0..20).map(|at| {
                let now = Time::ZERO + Span::micros(2_400) * at;
                let rise = if at == 0 { Span::ZERO } else { rise };
                // The first acknowledgement is a round of its own.
                let sent = if at == 0 { MSS } else { 100 * MSS };
                ack(now, Some(Span::millis(40) + rise), at * MSS + 1, sent)
            });
            let ended = acks.map(|ack| search.ends(&ack, 20 * MSS, true)).position(|ends| ends);
            assert_eq!(ended, end, "{rise:?}");
        }
    }

    #[test]
    fn a_small_window_is_not_searched() {
        let mut search = HyStart::new(MSS, false);
        for at in 0..40 {
            let now = Time::ZERO + Span::millis(1) * at;
            let ack = ack(now, Some(Span::millis(10)), MSS, 100 * MSS);
            assert!(!search.ends(&ack, 15 * MSS, true));
        }
    }
}
