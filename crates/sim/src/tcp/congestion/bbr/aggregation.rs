//! How much more is acknowledged at once than the bandwidth explains.
//!
//! Receivers, wireless links and offloading gather acknowledgements. While they do, a
//! sender with a window of twice the bandwidth-delay product may stand still. So the
//! window is allowed what has recently been acknowledged in excess (Linux 7.3,
//! `bbr_update_ack_aggregation`): the most in the present and in the previous five
//! rounds.

use tidegate_core::Time;

use super::Bandwidth;

/// Rounds that each of the two slots covers.
const SLOT_ROUNDS: u32 = 5;
/// An epoch with so many segments is too old to say anything.
const LONGEST_EPOCH: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// When the epoch began, and segments acknowledged in it.
    since: Time,
    acked: u64,
    /// The most excess in each slot, and which one is the present.
    excess: [u64; 2],
    present: usize,
    rounds: u32,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Aggregation {
        Aggregation { since: now, acked: 0, excess: [0; 2], present: 0, rounds: 0 }
    }

    /// The application has paused: what comes now is no excess over that time.
    pub(super) fn restart(&mut self, now: Time) {
        self.since = now;
        self.acked = 0;
    }

    /// Takes in an acknowledgement of `acked` segments, as the `bandwidth` is known.
    pub(super) fn update(
        &mut self,
        now: Time,
        acked: u64,
        bandwidth: Bandwidth,
        window: u64,
        round_start: bool,
    ) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= SLOT_ROUNDS {
                self.rounds = 0;
                self.present ^= 1;
                self.excess[self.present] = 0;
            }
        }
        let mut expected = bandwidth.segments(now.since(self.since));
        if self.acked <= expected || self.acked + acked >= LONGEST_EPOCH {
            self.restart(now);
            expected = 0;
        }
        self.acked = (self.acked + acked).min(LONGEST_EPOCH - 1);
        let excess = self.acked.saturating_sub(expected).min(window);
        let most = &mut self.excess[self.present];
        *most = (*most).max(excess);
    }

    /// The most excess of the last five to ten rounds.
    pub(super) fn most(&self) -> u64 {
        self.excess[0].max(self.excess[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// At one segment per millisecond: four at once are four more than expected, and so are
    /// seven in the three milliseconds that follow. When acknowledgements fall behind the
    /// bandwidth, counting begins anew.
    #[test]
    fn what_comes_at_once_is_excess() {
        // A little above one per millisecond, so that whole milliseconds expect whole segments.
        let bandwidth = Bandwidth(16_778);
        let mut aggregation = Aggregation::new(Time::ZERO);
        aggregation.update(Time(MILLISECOND), 4, bandwidth, 100, false);
        assert_eq!(aggregation.most(), 4);
        aggregation.update(Time(4 * MILLISECOND), 3, bandwidth, 100, false);
        assert_eq!(aggregation.most(), 4);
        aggregation.update(Time(4 * MILLISECOND), 5, bandwidth, 100, false);
        assert_eq!(aggregation.most(), 9);
        aggregation.update(Time(40 * MILLISECOND), 2, bandwidth, 100, false);
        aggregation.update(Time(40 * MILLISECOND), 20, bandwidth, 12, false);
        assert_eq!(aggregation.most(), 12);
        // Forgotten after five to ten rounds.
        for number in 0..9 {
            let at = Time((100 + 10 * number) * MILLISECOND);
            aggregation.update(at, 1, bandwidth, 100, true);
        }
        assert_eq!(aggregation.most(), 12);
        aggregation.update(Time(200 * MILLISECOND), 1, bandwidth, 100, true);
        assert_eq!(aggregation.most(), 1);
    }
}
