//! HyStart++ (RFC 9406): a slow start that notices a rise of the round trips slows down
//! for five rounds, in which it may find that the rise was none.

use tidegate_core::Span;

use super::Ack;

/// `MIN_RTT_THRESH`, `MAX_RTT_THRESH` and `MIN_RTT_DIVISOR`: the rise that counts.
const LEAST_RISE: Span = Span::millis(4);
const MOST_RISE: Span = Span::millis(16);
const RISE_DIVISOR: u64 = 8;
/// `N_RTT_SAMPLE`.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`.
const GROWTH_DIVISOR: u64 = 4;
/// `CSS_ROUNDS`.
const ROUNDS: u32 = 5;
/// `L`: the most segments that one acknowledgement adds, unless segments are paced.
const LIMIT: u64 = 8;

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// `cssBaselineMinRtt`.
    baseline: Span,
    /// Rounds begun, the one in which it began included.
    rounds: u32,
}

/// What the RFC keeps; its names are in the comments.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStartPlusPlus {
    /// `windowEnd`.
    round_end: u64,
    /// `lastRoundMinRTT` and `currentRoundMinRTT`, once they are known.
    last_least: Option<Span>,
    least: Option<Span>,
    /// `rttSampleCount`.
    samples: u32,
    conservative: Option<Conservative>,
    paced: bool,
    /// Only the first slow start is searched (section 4.3).
    stopped: bool,
}

impl HyStartPlusPlus {
    pub(super) fn new(paced: bool) -> HyStartPlusPlus {
        HyStartPlusPlus { paced, ..HyStartPlusPlus::default() }
    }

    pub(super) fn ends(&mut self, ack: &Ack) -> bool {
        if self.stopped {
            return false;
        }
        if ack.acknowledged > self.round_end {
            self.round_end = ack.sent;
            self.last_least = self.least.take();
            self.samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds > ROUNDS {
                    self.stop();
                    return true;
                }
            }
        }
        let Some(delay) = ack.latest_round_trip else { return false };
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        self.samples += 1;
        if self.samples < SAMPLES {
            return false;
        }
        match self.conservative {
            Some(Conservative { baseline, .. }) if least < baseline => self.conservative = None,
            Some(_) => {}
            None => {
                let rise = |last: Span| (last / RISE_DIVISOR).clamp(LEAST_RISE, MOST_RISE);
                if self.last_least.is_some_and(|last| least >= last + rise(last)) {
                    self.conservative = Some(Conservative { baseline: least, rounds: 1 });
                }
            }
        }
        false
    }

    pub(super) fn growth(&self, acked: u64, mss: u64) -> u64 {
        let whole = if self.paced { acked } else { acked.min(LIMIT * mss) };
        if self.conservative.is_some() { whole / GROWTH_DIVISOR } else { whole }
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.conservative = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::tests::ack;
    use tidegate_core::Time;

    const MSS: u64 = 1_000;

    /// Ten acknowledgements of round `round`, which has this least round trip. Returns
    /// whether slow start ended, and what an acknowledgement of 1 000 bytes adds then.
    fn round(search: &mut HyStartPlusPlus, round: u64, delay: u64) -> (bool, u64) {
        let mut ended = false;
        for at in 1..=10 {
            let now = Time::ZERO + Span::millis(100) * round + Span::millis(at);
            let acknowledged = round * 10 * MSS + at * MSS;
            let delay = Some(Span::millis(delay));
            ended |= search.ends(&ack(now, delay, acknowledged, (round + 1) * 10 * MSS));
        }
        (ended, search.growth(MSS, MSS))
    }

    /// 40 ms, then 45 ms, which is an eighth more: growth falls to a quarter within the
    /// round. That one and four more are conservative, and the next ends slow start.
    #[test]
    fn a_rise_by_an_eighth_is_followed_by_five_slower_rounds() {
        let mut search = HyStartPlusPlus::default();
        assert_eq!(round(&mut search, 0, 40), (false, 1_000));
        for slow in 1..=5 {
            assert_eq!(round(&mut search, slow, 45), (false, 250), "round {slow}");
        }
        assert_eq!(round(&mut search, 6, 45), (true, 1_000));
        // What follows is no business of the search.
        assert_eq!(round(&mut search, 7, 90), (false, 1_000));
    }

    #[test]
    fn a_rise_that_goes_away_lets_slow_start_resume() {
        let mut search = HyStartPlusPlus::default();
        round(&mut search, 0, 40);
        assert_eq!(round(&mut search, 1, 50), (false, 250));
        assert_eq!(round(&mut search, 2, 49), (false, 1_000));
        // 44 ms is less than 49 and an eighth, and a rise needs 4 ms at least.
        assert_eq!(round(&mut search, 3, 20), (false, 1_000));
        assert_eq!(round(&mut search, 4, 23), (false, 1_000));
        assert_eq!(round(&mut search, 5, 27), (false, 250));
    }

    #[test]
    fn without_pacing_no_acknowledgement_adds_more_than_eight_segments() {
        assert_eq!(HyStartPlusPlus::new(false).growth(20 * MSS, MSS), 8 * MSS);
        assert_eq!(HyStartPlusPlus::new(true).growth(20 * MSS, MSS), 20 * MSS);
    }
}
