//! Whether sending more still gives more (section 5.3.1.2).
//!
//! Three round trips in a row in which the delivery rate has not grown by a quarter mean
//! that the pipe is full. Three, because a receiver may just be opening its window, or a
//! burst of others may be passing.

use tidegate_core::Rate;

use super::Sample;

/// Round trips without growth that mean a full pipe.
const ROUNDS: u32 = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// `BBR.full_bw_reached`: the pipe has once been full.
    pub(super) reached: bool,
    /// `BBR.full_bw_now`: full since the estimate has begun anew.
    pub(super) now: bool,
    /// `BBR.full_bw`.
    baseline: Rate,
    /// `BBR.full_bw_count`.
    rounds: u32,
}

impl FullPipe {
    /// `ResetFullBW`, with a new `BBR.full_bw`.
    pub(super) fn reset(&mut self, baseline: Rate) {
        self.baseline = baseline;
        self.rounds = 0;
        self.now = false;
    }

    /// `CheckFullBWReached`.
    pub(super) fn check(&mut self, sample: &Sample, round_started: bool) {
        if self.now || !round_started || sample.app_limited {
            return;
        }
        if sample.rate.0.saturating_mul(4) >= self.baseline.0.saturating_mul(5) {
            self.reset(sample.rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
        self.reached |= self.now;
    }

    /// Losses say that it is full.
    pub(super) fn declare(&mut self) {
        self.now = true;
        self.reached = true;
    }
}
