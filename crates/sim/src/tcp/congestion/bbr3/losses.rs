//! The answer to congestion (sections 5.5.10 and 5.5.11).
//!
//! What a loss means depends on what the flow was doing. If it was probing, the question
//! is whether more than 2% of what was in flight has been lost, and the answer bounds the
//! long term. Otherwise the flow slows down to what still arrives, by no more than CUBIC
//! would in a round trip.

use tidegate_core::{Rate, Time};

use super::{Bbr, LostSegment, Sample, Start, State, UNBOUNDED};

/// 1 / `BBR.LossThresh`: one segment in fifty may be lost while probing.
const LOSS_SHARE: u64 = 50;
/// `BBR.Beta`: the most that a round trip with losses takes away, in tenths left.
const BETA_TENTHS: u64 = 7;

#[derive(Debug)]
pub(super) struct Losses {
    /// `C.has_selective_acks`.
    pub(super) selective: bool,
    /// `BBR.loss_round_start`: this acknowledgement ends a round trip of this clock, which
    /// begins with the first loss.
    pub(super) round_started: bool,
    /// Discontiguous ranges lost in this round trip.
    pub(super) ranges: u32,
    /// `BBR.inflight_latest`: the most that was delivered in a round trip, lately.
    pub(super) delivered_latest: u64,
    pub(super) undo: Undo,
    /// `BBR.bw_latest`: the highest rate, lately.
    rate_latest: Rate,
    /// `BBR.is_loss_in_round`.
    in_round: bool,
    /// `BBR.loss_round_delivered`.
    round_end: u64,
    /// One past the last byte found lost.
    last_end: u64,
    /// A recovery is under way.
    recovering: bool,
    /// The losses of this recovery, or of the one that begins, have had the state saved.
    saved: bool,
}

/// What a recovery that was spurious gives back (section 5.5.11).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `BBR.undo_state`: the state that losses have ended.
    pub(super) state: Option<State>,
    bandwidth_short: Rate,
    in_flight_short: u64,
    in_flight_long: u64,
}

impl Losses {
    pub(super) fn new(start: &Start) -> Losses {
        Losses {
            selective: start.selective,
            round_started: false,
            ranges: 0,
            delivered_latest: 0,
            undo: Undo::default(),
            rate_latest: Rate(0),
            in_round: false,
            round_end: 0,
            last_end: 0,
            recovering: false,
            saved: false,
        }
    }

    /// `IsInflightTooHigh` (section 5.5.10.2): `lost` bytes, of `in_flight`.
    pub(super) fn too_many(&self, lost: u64, in_flight: u64) -> bool {
        lost.saturating_mul(LOSS_SHARE) > in_flight || lost > 0 && !self.selective
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        self.in_round = false;
        self.rate_latest = Rate(0);
        self.delivered_latest = 0;
    }
}

/// `InflightAtLoss` (section 5.5.10.2): how much was in flight when losses crossed the
/// threshold, which may have happened in the middle of this segment. If they had before
/// it, none of it is counted.
pub(super) fn in_flight_at_loss(segment: &LostSegment) -> u64 {
    let in_flight_before = segment.in_flight.saturating_sub(segment.bytes);
    let lost_before = segment.lost.saturating_sub(segment.bytes);
    // (T before - lost) / (1 - T), with T = 1 / 50.
    let prefix = in_flight_before.saturating_sub(LOSS_SHARE.saturating_mul(lost_before));
    in_flight_before + prefix / (LOSS_SHARE - 1)
}

impl Bbr {
    /// `UpdateLatestDeliverySignals` (section 5.5.10.3).
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &Sample) {
        let losses = &mut self.losses;
        losses.rate_latest = losses.rate_latest.max(sample.rate);
        losses.delivered_latest = losses.delivered_latest.max(sample.delivered);
        losses.round_started = sample.measures && sample.prior_delivered >= losses.round_end;
        if losses.round_started {
            losses.round_end = self.rounds.delivered;
        }
    }

    /// `UpdateCongestionSignals`.
    pub(super) fn update_congestion_signals(&mut self, sample: &Sample) {
        self.update_round(sample);
        self.path.update_max_bandwidth(sample);
        if !self.losses.round_started {
            return;
        }
        if self.losses.in_round && !self.state.is_probing() {
            self.lower_short_term();
        }
        self.losses.in_round = false;
    }

    /// `InitLowerBounds` and `LossLowerBounds`.
    fn lower_short_term(&mut self) {
        let (path, losses) = (&mut self.path, &self.losses);
        if path.bandwidth_short == Rate(UNBOUNDED) {
            path.bandwidth_short = path.max_bandwidth;
        }
        if path.in_flight_short == UNBOUNDED {
            path.in_flight_short = self.control.window;
        }
        let left = |value: u64| value.saturating_mul(BETA_TENTHS) / 10;
        path.bandwidth_short = losses.rate_latest.max(Rate(left(path.bandwidth_short.0)));
        path.in_flight_short = losses.delivered_latest.max(left(path.in_flight_short));
    }

    /// `AdvanceLatestDeliverySignals`. The ranges of the round trip are looked at until
    /// here too.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &Sample) {
        if self.losses.round_started {
            self.losses.rate_latest = sample.rate;
            self.losses.delivered_latest = sample.delivered;
            self.losses.ranges = 0;
        }
    }

    /// `NoteLoss`, for marks as well: those begin no recovery that may be spurious.
    fn note_congestion(&mut self, lost: bool) {
        if !self.losses.in_round {
            self.losses.round_end = self.rounds.delivered;
            if lost {
                self.save_state();
            }
        }
        self.losses.in_round = true;
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost_segment(&mut self, segment: &LostSegment) {
        self.rounds.delivered = segment.total_delivered;
        self.note_congestion(true);
        if segment.start != self.losses.last_end || self.losses.ranges == 0 {
            self.losses.ranges += 1;
        }
        self.losses.last_end = segment.start + segment.bytes;
        if self.cycle.is_probe_sample && self.losses.too_many(segment.lost, segment.in_flight) {
            let in_flight = in_flight_at_loss(segment);
            let was_up = self.state == State::Up;
            self.handle_in_flight_too_high(self.latest.0, in_flight, segment.app_limited);
            if was_up {
                self.losses.undo.state = Some(State::Up);
            }
        }
    }

    /// `HandleInflightTooHigh`.
    fn handle_in_flight_too_high(&mut self, now: Time, in_flight: u64, app_limited: bool) {
        self.cycle.last_probe_too_high = true;
        // One answer per probe.
        self.cycle.is_probe_sample = false;
        if !app_limited {
            let least = self.target().saturating_mul(BETA_TENTHS) / 10;
            self.path.in_flight_long = in_flight.max(least);
        }
        if self.state == State::Up {
            self.start_down(now);
        }
    }

    /// A queue has marked one of `in_flight` bytes, or more: an echo tells of one. As the
    /// loss of a connection without SACK it ends Startup, and says of a probe that it was
    /// too much; at other times it is a loss like any other.
    pub(super) fn handle_mark(&mut self, in_flight: u64) {
        self.note_congestion(false);
        if self.state == State::Startup {
            self.leave_startup_for_losses();
        } else if self.cycle.is_probe_sample {
            self.handle_in_flight_too_high(self.latest.0, in_flight, self.latest.1);
        }
    }

    /// `SaveStateUponLoss`, once per recovery: what the recovery itself has taken away
    /// must not be what it gives back.
    fn save_state(&mut self) {
        self.save_window();
        if !self.losses.saved {
            self.losses.saved = true;
            self.losses.undo = Undo {
                state: None,
                bandwidth_short: self.path.bandwidth_short,
                in_flight_short: self.path.in_flight_short,
                in_flight_long: self.path.in_flight_long,
            };
        }
    }

    /// `SaveCwnd` (section 5.6.4.4).
    pub(super) fn save_window(&mut self) {
        let control = &mut self.control;
        control.prior_window = if self.losses.recovering || self.state == State::ProbeRtt {
            control.prior_window.max(control.window)
        } else {
            control.window
        };
    }

    /// `OnEnterFastRecovery` and `OnEnterRTO`, but for the window.
    pub(super) fn begin_recovery(&mut self) {
        self.save_state();
        self.losses.recovering = true;
    }

    /// `HandleSpuriousLossDetection` (section 5.5.11.2): nothing was lost, so nothing
    /// follows from it, and a search that it has ended goes on. The recovery is over.
    pub(super) fn undo_recovery(&mut self) {
        let undo = self.losses.undo;
        self.losses.undo.state = None;
        self.losses.in_round = false;
        self.losses.recovering = false;
        self.losses.saved = false;
        self.control.restore_window();
        self.full_pipe.reset(Rate(0));
        let path = &mut self.path;
        path.bandwidth_short = path.bandwidth_short.max(undo.bandwidth_short);
        path.in_flight_short = path.in_flight_short.max(undo.in_flight_short);
        path.in_flight_long = path.in_flight_long.max(undo.in_flight_long);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }

    /// The end of a recovery, by whatever it began: the window is what it was, as far as
    /// the model allows.
    pub(super) fn end_recovery(&mut self) {
        self.losses.recovering = false;
        self.losses.saved = false;
        self.control.restore_window();
        self.bound_window();
    }
}
