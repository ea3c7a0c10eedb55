//! ProbeRTT (section 5.3.4): the round trip of the path without a queue.
//!
//! The least round trip of the last ten seconds is taken for it. If five seconds bring
//! none that is as short, the flow lets half of what it has in flight go, for 200 ms and
//! at least a round trip, so that the queue can run empty. Flows that do so at the same
//! time empty it together.

use tidegate_core::{Span, Time};

use super::{Bbr, Sample, Start, State, scaled};

/// `BBR.MinRTTFilterLen`.
const MEMORY: Span = Span::seconds(10);
/// `BBR.ProbeRTTInterval`.
const INTERVAL: Span = Span::seconds(5);
/// `BBR.ProbeRTTDuration`.
const DURATION: Span = Span::millis(200);

#[derive(Debug)]
pub(super) struct ProbeRtt {
    /// `BBR.idle_restart`: what is sent follows a silence, which has drained the queue as
    /// well as ProbeRTT would.
    pub(super) idle_restart: bool,
    /// `BBR.probe_rtt_min_delay`.
    least: Option<Span>,
    /// `BBR.probe_rtt_min_stamp`.
    least_at: Time,
    /// `BBR.probe_rtt_expired`.
    expired: bool,
    /// `BBR.probe_rtt_done_stamp`, once there is little enough in flight.
    done_at: Option<Time>,
    /// `BBR.probe_rtt_round_done`.
    round_done: bool,
}

impl ProbeRtt {
    pub(super) fn new(start: &Start) -> ProbeRtt {
        ProbeRtt {
            idle_restart: false,
            least: start.round_trip,
            least_at: start.now,
            expired: false,
            done_at: None,
            round_done: false,
        }
    }
}

impl Bbr {
    /// `UpdateMinRTT` (section 5.3.4.3).
    pub(super) fn update_min_round_trip(&mut self, sample: &Sample) {
        let (probe, path) = (&mut self.probe_rtt, &mut self.path);
        probe.expired = sample.now > probe.least_at + INTERVAL;
        if let Some(round_trip) = sample.round_trip
            && (probe.expired || probe.least.is_none_or(|least| round_trip < least))
        {
            probe.least = Some(round_trip);
            probe.least_at = sample.now;
        }
        let expired = sample.now > path.min_round_trip_at + MEMORY;
        if let Some(least) = probe.least
            && (expired || path.min_round_trip.is_none_or(|known| least < known))
        {
            path.min_round_trip = Some(least);
            path.min_round_trip_at = probe.least_at;
        }
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        let probe = &mut self.probe_rtt;
        if self.state != State::ProbeRtt && probe.expired && !probe.idle_restart {
            probe.done_at = None;
            self.state = State::ProbeRtt;
            self.save_window();
            self.cycle.is_stopping = true;
            self.rounds.start();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if sample.delivered > 0 {
            self.probe_rtt.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`. The sender marks what it sends as limited by itself, because the
    /// controller [holds back](super::super::Controller::holds_back).
    fn handle_probe_rtt(&mut self, sample: &Sample) {
        if self.probe_rtt.done_at.is_none() {
            if sample.in_flight <= self.probe_rtt_window() {
                self.probe_rtt.done_at = Some(sample.now + DURATION);
                self.probe_rtt.round_done = false;
                self.rounds.start();
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.started;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(sample.now);
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT` (sections 5.3.4.3 and 5.3.4.4). The pipe
    /// has just been emptied, so there is nothing to drain before cruising.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.done_at.is_some_and(|done| now > done) {
            self.probe_rtt.least_at = now;
            self.control.restore_window();
            self.path.forget_short_term();
            if self.full_pipe.reached {
                self.start_down(now);
                self.state = State::Cruise;
            } else {
                self.state = State::Startup;
            }
        }
    }

    /// `ProbeRTTCwnd` (section 5.6.4.5).
    pub(super) fn probe_rtt_window(&self) -> u64 {
        let product = self.path.in_flight_at(self.path.bandwidth).unwrap_or(self.initial_window);
        scaled(product, State::ProbeRtt.window_gain()).max(self.least_window())
    }
}
