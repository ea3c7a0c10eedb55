//! Startup and Drain (sections 5.3.1 and 5.3.2).
//!
//! Startup doubles the rate in each round trip until the pipe is full: the delivery rate
//! says so by not growing, or the path by losing. What has then gathered in the queue
//! Drain takes out again.

use super::{Bbr, Phase, Sample, State};

/// `BBRStartupFullLossCnt`: ranges lost in a round trip below which losses are a burst
/// of others and no full pipe.
const LOST_RANGES: u32 = 6;
/// Round trips after which Drain ends whatever is in flight: the bandwidth has then been
/// overestimated, and only new samples can mend that.
const LONGEST_DRAIN: u64 = 3;

impl Bbr {
    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        self.check_startup_high_loss(sample);
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain;
            self.cycle.drain_started = self.rounds.count;
        }
    }

    /// `CheckStartupHighLoss` (section 5.3.1.3). Without SACK a recovery finds one loss
    /// per round trip, and that one is enough.
    fn check_startup_high_loss(&mut self, sample: &Sample) {
        let losses = &self.losses;
        let high = if losses.selective {
            losses.round_started
                && losses.ranges >= LOST_RANGES
                && losses.too_many(sample.lost, sample.in_flight_then)
        } else {
            losses.ranges > 0
        };
        if high && sample.phase == Phase::Recovery && self.state == State::Startup {
            self.losses.undo.state = Some(State::Startup);
            self.leave_startup_for_losses();
        }
    }

    /// The path has lost too much: it holds what it has delivered in a round trip.
    pub(super) fn leave_startup_for_losses(&mut self) {
        self.full_pipe.declare();
        let held = self.path.product().max(self.losses.delivered_latest);
        // A mark may come before anything has been measured.
        if held > 0 {
            self.path.in_flight_long = held;
        }
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        if self.state == State::Drain
            && (sample.in_flight <= self.needed(self.path.bandwidth)
                || self.rounds.count > self.cycle.drain_started + LONGEST_DRAIN)
        {
            self.start_down(sample.now);
        }
    }
}
