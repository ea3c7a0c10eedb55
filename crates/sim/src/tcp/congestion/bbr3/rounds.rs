//! Round trips counted in packets (section 5.5.1).
//!
//! A round trip is over when something that was sent after its start is acknowledged.
//! Pauses of the application and timers count for nothing in this clock.

use super::super::Ack;
use super::{Bbr, Sample};

#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// `C.delivered`.
    pub(super) delivered: u64,
    /// `BBR.round_count`.
    pub(super) count: u64,
    /// `BBR.round_start`: this acknowledgement starts a round trip.
    pub(super) started: bool,
    /// `BBR.next_round_delivered`.
    end: u64,
    /// `C.delivered` when the window was last full.
    limited_at: Option<u64>,
}

impl Rounds {
    /// Takes in what the sender has done until now, under the `window` that was in force.
    pub(super) fn on_ack(&mut self, ack: &Ack, window: u64, mss: u64) {
        let before = self.delivered;
        self.delivered = ack.rate.map_or(before + ack.delivered, |it| it.total_delivered);
        if ack.in_flight_before + mss > window {
            self.limited_at = Some(self.delivered.saturating_sub(ack.delivered));
        }
    }

    /// `StartRound`.
    pub(super) fn start(&mut self) {
        self.end = self.delivered;
    }

    /// `C.is_cwnd_limited` (section 2.2): whether the window was full within the round
    /// trip that this sample ends.
    pub(super) fn was_limited(&self, sample: &Sample) -> bool {
        sample.measures && self.limited_at.is_some_and(|at| at >= sample.prior_delivered)
    }
}

impl Bbr {
    /// `UpdateRound`.
    pub(super) fn update_round(&mut self, sample: &Sample) {
        let rounds = &mut self.rounds;
        rounds.started = sample.measures && sample.prior_delivered >= rounds.end;
        if rounds.started {
            rounds.start();
            rounds.count += 1;
            self.cycle.rounds_since_up += 1;
        }
    }
}
