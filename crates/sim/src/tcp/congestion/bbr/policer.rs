//! Whether a token bucket on the path drops what exceeds its rate.
//!
//! While such a policer has tokens, it lets more through than it will later, and the
//! largest bandwidth of ten rounds is then far too high: a fifth of all segments may be
//! lost for seconds. Two intervals in a row that begin and end with losses, lose much and
//! deliver at the same rate are taken for one. BBR then sends at that rate for 48 rounds
//! (Linux 7.3, `bbr_lt_bw_sampling`).

use tidegate_core::Time;

use super::{Bandwidth, UNIT};

/// Rounds in an interval, at least; four times as many at most.
const LEAST_ROUNDS: u32 = 4;
/// Lost of 256 delivered, at least: about a fifth.
const LOSS_THRESHOLD: u64 = 50;
/// Rates that differ by an eighth at most are equal, and so are those that differ by
/// 4 kbit/s.
const SAME_RATE: u64 = UNIT / 8;
const SAME_BYTES_PER_SECOND: u64 = 4_000 / 8;
/// Rounds at the rate of the policer.
const MOST_ROUNDS: u32 = 48;

/// What the connection has counted so far, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// When the latest byte was delivered.
    pub(super) at: Time,
    pub(super) delivered: u64,
    pub(super) lost: u64,
}

/// What an acknowledgement or a timeout says to the policer's detection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) losses: bool,
    pub(super) app_limited: bool,
    pub(super) round_start: bool,
    pub(super) probes_bandwidth: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    sampling: bool,
    /// Rounds of the interval, or at the policer's rate.
    rounds: u32,
    start: Counts,
    /// Rate of the latest interval, zero for none.
    rate: Bandwidth,
    found: bool,
}

impl Policer {
    /// The policer's rate, if there seems to be one.
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.found.then_some(self.rate)
    }

    /// Forgets all.
    pub(super) fn reset(&mut self, counts: Counts) {
        *self = Policer { start: counts, ..Policer::default() };
    }

    fn begin_interval(&mut self, counts: Counts) {
        self.start = counts;
        self.rounds = 0;
    }

    /// Returns whether the policer's rate has been used long enough.
    pub(super) fn update(&mut self, counts: Counts, event: Event, mss: u64) -> bool {
        if self.found {
            if event.probes_bandwidth && event.round_start {
                self.rounds += 1;
                if self.rounds >= MOST_ROUNDS {
                    self.reset(counts);
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            // Before the first loss the bucket still has tokens.
            if !event.losses {
                return false;
            }
            self.begin_interval(counts);
            self.sampling = true;
        }
        if event.app_limited {
            self.reset(counts);
            return false;
        }
        self.rounds += u32::from(event.round_start);
        if self.rounds > 4 * LEAST_ROUNDS {
            self.reset(counts);
        } else if self.rounds >= LEAST_ROUNDS && event.losses {
            // With a loss the tokens are used up again.
            self.end_interval(counts, mss);
        }
        false
    }

    fn end_interval(&mut self, counts: Counts, mss: u64) {
        let lost = counts.lost - self.start.lost;
        let delivered = counts.delivered - self.start.delivered;
        if delivered == 0 || lost * UNIT < LOSS_THRESHOLD * delivered {
            return;
        }
        let millis = |time: Time| time.0 / 1_000_000;
        let took = millis(counts.at).saturating_sub(millis(self.start.at));
        if took == 0 {
            return;
        }
        if took >= u64::from(u32::MAX) / 1_000 {
            return self.reset(counts);
        }
        let rate = Bandwidth::of(delivered, took * 1_000, mss);
        if self.rate != Bandwidth(0) {
            let difference = Bandwidth(rate.0.abs_diff(self.rate.0));
            if difference.0 * UNIT <= SAME_RATE * self.rate.0
                || difference.bytes_per_second(mss, UNIT) <= SAME_BYTES_PER_SECOND
            {
                self.rate = Bandwidth(rate.0.midpoint(self.rate.0));
                self.found = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = rate;
        self.begin_interval(counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const MILLISECOND: u64 = 1_000_000;

    /// Counts after so many milliseconds, segments delivered and segments lost.
    fn counts(at: u64, delivered: u64, lost: u64) -> Counts {
        Counts { at: Time(at * MILLISECOND), delivered: delivered * MSS, lost: lost * MSS }
    }

    const ROUND: Event =
        Event { losses: false, app_limited: false, round_start: true, probes_bandwidth: true };
    const LOSS: Event = Event { losses: true, ..ROUND };

    /// Four rounds of 100 ms between losses, in which 400 segments come and 100 are lost; then
    /// four more with 430. The rates differ by less than an eighth, so a policer lets through
    /// their mean. It is believed for 48 rounds.
    #[test]
    fn two_equal_lossy_intervals_are_a_policer() {
        for (second, found) in [(430, true), (460, false)] {
            let mut policer = Policer::default();
            policer.update(counts(0, 0, 0), ROUND, MSS);
            policer.update(counts(1_000, 0, 0), LOSS, MSS);
            for number in 1..=2 {
                policer.update(counts(1_000 + 100 * number, 0, 0), ROUND, MSS);
            }
            policer.update(counts(1_400, 400, 100), LOSS, MSS);
            assert_eq!((policer.rate, policer.found), (Bandwidth((1 << 24) / 1_000), false));
            for number in 1..=3 {
                policer.update(counts(1_400 + 100 * number, 400, 100), ROUND, MSS);
            }
            assert!(!policer.found);
            policer.update(counts(1_800, 400 + second, 200), LOSS, MSS);
            assert_eq!(policer.found, found, "{second}");
            if found {
                assert_eq!(policer.rate, Bandwidth((16_777 + 18_035) / 2));
                for _ in 1..MOST_ROUNDS {
                    assert!(!policer.update(counts(2_000, 1_000, 200), ROUND, MSS));
                }
                assert!(policer.update(counts(2_000, 1_000, 200), ROUND, MSS));
                assert_eq!(policer.rate(), None);
            }
        }
    }

    /// A fifth has to be lost, 50 of 256 delivered, and the application must not have paused.
    #[test]
    fn few_losses_are_no_policer() {
        for (lost, limited, rate) in [(78, false, 0), (79, false, 16_777), (79, true, 0)] {
            let mut policer = Policer::default();
            policer.update(counts(0, 0, 0), LOSS, MSS);
            for number in 1..=3 {
                let event = Event { app_limited: limited && number == 2, ..ROUND };
                policer.update(counts(100 * number, 0, 0), event, MSS);
            }
            policer.update(counts(400, 400, lost), LOSS, MSS);
            assert_eq!(policer.rate, Bandwidth(rate), "{lost} lost, limited: {limited}");
        }
    }
}
