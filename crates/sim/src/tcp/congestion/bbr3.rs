//! BBR, version 3 (draft-ietf-ccwg-bbr), in integers.
//!
//! The controller keeps a model of the path: how fast it delivers, how long its round
//! trip is at least, how far acknowledgements come in lumps, and how much in flight it
//! has tolerated. The window and the pacing rate follow from that model and from what
//! the state machine does at the moment: it sends faster to find more bandwidth, slower
//! to drain the queue that this has built, as fast as data arrives for most of the time,
//! and now and then very little to see the round trip without a queue.
//!
//! A loss by itself halves nothing. While the controller probes, more than 2% lost of
//! what was in flight says that the path does not hold so much, and sets the long-term
//! bound. While it does not probe, a round trip with losses pulls the short-term bounds
//! down to what still arrives, and the next probe forgets them.
//!
//! One file has one part of the draft's section 5, in its names where the field has no
//! others: [`rounds`] counts round trips, [`path`] is the model, [`full_pipe`] tells
//! when more sending gives no more bandwidth, [`startup`] finds the path's rate and
//! [`cycle`] goes on probing for it, [`probe_rtt`] measures the round trip, [`losses`]
//! answers congestion, [`control`] sets window and rate. Numbers of sections are those
//! of the draft.
//!
//! Four things are not in the draft, or are departures from its letter:
//!
//! - Where its pseudocode compares a number of bytes with one of round trips (section
//!   5.3.3.9), the bytes are counted in segments, as section 5.3.3.8.2 explains it.
//! - The state to restore after a spurious recovery is saved once per recovery, as section
//!   5.5.11 says, and not once per round trip of it, as `NoteLoss` would.
//! - A queue's mark counts as the loss of a connection without SACK. The draft
//!   requires an answer to marks and does not say which (section 3.7). An echo tells of
//!   one mark per round trip and not how many there were, and for signals of that kind
//!   the draft has a rule: the first one means that too much is in flight.
//! - Rates are in bits per second, gains in hundredths, and quotients are rounded down.

mod control;
mod cycle;
mod full_pipe;
mod losses;
mod path;
mod probe_rtt;
mod rounds;
mod startup;
#[cfg(test)]
mod tests;

use tidegate_core::{Rate, Span, Time};

use self::control::Control;
use self::cycle::Cycle;
use self::full_pipe::FullPipe;
use self::losses::Losses;
use self::path::Path;
use self::probe_rtt::ProbeRtt;
use self::rounds::Rounds;
use super::{Ack, Before, Controller, Entry, Loss, LostSegment, Phase, Start};

pub(super) const ENTRY: Entry = Entry {
    name: "bbr3",
    summary: "A model of the path's bandwidth and round trip, bounded by losses above 2%",
    source: "draft-ietf-ccwg-bbr",
    scalable: false,
    start: |start| Box::new(Bbr::new(start)),
};

/// No bound: the draft's Infinity.
const UNBOUNDED: u64 = u64::MAX;
/// `BBR.MinPipeCwnd`, in segments.
const LEAST_SEGMENTS: u64 = 4;

/// `BBR.state` (section 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Doubles the rate in each round trip.
    Startup,
    /// Drains the queue that this has built.
    Drain,
    /// ProbeBW_DOWN: leaves room for others.
    Down,
    /// ProbeBW_CRUISE: sends as fast as data arrives.
    Cruise,
    /// ProbeBW_REFILL: fills the pipe, to start the probe from there.
    Refill,
    /// ProbeBW_UP: probes.
    Up,
    /// Lets the queue run empty.
    ProbeRtt,
}

impl State {
    /// `BBR.pacing_gain` in hundredths (table of section 5.6.1).
    fn pacing_gain(self) -> u64 {
        match self {
            State::Startup => 277,
            State::Drain => 50,
            State::Down => 90,
            State::Cruise | State::Refill | State::ProbeRtt => 100,
            State::Up => 125,
        }
    }

    /// `BBR.cwnd_gain` in hundredths (the same table).
    fn window_gain(self) -> u64 {
        match self {
            State::Up => 225,
            State::ProbeRtt => 50,
            _ => 200,
        }
    }

    /// `IsInAProbeBWState`.
    fn is_cycling(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// `IsProbingBW`.
    fn is_probing(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// `value` times a gain in hundredths.
fn scaled(value: u64, hundredths: u64) -> u64 {
    value.saturating_mul(hundredths) / 100
}

/// What an acknowledgement says, in the draft's terms: `RS` and what of `C` it changes.
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: Time,
    /// `RS.newly_acked`.
    acked: u64,
    /// `C.inflight`.
    in_flight: u64,
    /// `RS.rtt`.
    round_trip: Option<Span>,
    phase: Phase,
    /// Whether it measures anything; if not, what follows is zero.
    measures: bool,
    /// `RS.delivery_rate`.
    rate: Rate,
    /// `RS.delivered`.
    delivered: u64,
    /// `RS.prior_delivered`.
    prior_delivered: u64,
    /// `RS.tx_in_flight`.
    in_flight_then: u64,
    /// `RS.lost`.
    lost: u64,
    /// `RS.is_app_limited`.
    app_limited: bool,
}

impl Sample {
    fn new(ack: &Ack) -> Sample {
        let sample = Sample {
            now: ack.now,
            acked: ack.delivered,
            in_flight: ack.in_flight,
            round_trip: ack.latest_round_trip,
            phase: ack.phase,
            measures: false,
            rate: Rate(0),
            delivered: 0,
            prior_delivered: 0,
            in_flight_then: 0,
            lost: 0,
            app_limited: false,
        };
        ack.rate.map_or(sample, |rate| Sample {
            measures: true,
            rate: path::rate(rate.delivered, rate.interval),
            delivered: rate.delivered,
            prior_delivered: rate.prior_delivered,
            in_flight_then: rate.in_flight,
            lost: rate.lost,
            app_limited: rate.app_limited,
            ..sample
        })
    }
}

#[derive(Debug)]
struct Bbr {
    /// `C.SMSS`.
    mss: u64,
    /// `C.InitialCwnd`.
    initial_window: u64,
    state: State,
    rounds: Rounds,
    path: Path,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    losses: Losses,
    control: Control,
    /// When the latest acknowledgement came in, and whether the application set the pace
    /// of what it measured.
    latest: (Time, bool),
}

impl Bbr {
    /// Section 5.2.1.
    fn new(start: &Start) -> Bbr {
        Bbr {
            mss: start.mss,
            initial_window: start.window,
            state: State::Startup,
            rounds: Rounds::default(),
            path: Path::new(start),
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(start),
            probe_rtt: ProbeRtt::new(start),
            losses: Losses::new(start),
            control: Control::new(start),
            latest: (start.now, false),
        }
    }

    /// `BBR.MinPipeCwnd` in bytes.
    fn least_window(&self) -> u64 {
        LEAST_SEGMENTS * self.mss
    }

    /// `UpdateModelAndState` (section 5.2.3).
    fn update_model_and_state(&mut self, sample: &Sample) {
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(sample);
        self.path.update_aggregation(
            sample,
            self.control.window,
            self.rounds.count,
            self.full_pipe.reached,
        );
        self.full_pipe.check(sample, self.rounds.started);
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_cycle(sample);
        self.update_min_round_trip(sample);
        self.check_probe_rtt(sample);
        self.advance_latest_delivery_signals(sample);
        self.path.bound_bandwidth();
    }

    /// `UpdateControlParameters` (section 5.2.3).
    fn update_control(&mut self, sample: &Sample) {
        self.set_pacing_rate(self.state.pacing_gain());
        self.control.set_quantum(self.mss);
        self.set_window(sample);
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, ack: &Ack) {
        let sample = Sample::new(ack);
        self.control.on_first_round_trip(ack.smoothed_round_trip, self.initial_window);
        self.rounds.on_ack(ack, self.control.window, self.mss);
        self.update_model_and_state(&sample);
        self.update_control(&sample);
        self.latest = (sample.now, sample.app_limited);
    }

    fn on_loss(&mut self, _: &Loss) {
        self.begin_recovery();
    }

    fn on_ecn(&mut self, mark: &Loss) {
        self.handle_mark(mark.flight);
    }

    fn on_timeout(&mut self, in_flight: u64) {
        self.begin_recovery();
        // Section 5.6.4.4.
        self.control.window = in_flight + self.mss;
    }

    /// Section 5.4.2: nothing slow-starts after a silence, the pacing rate sees to it
    /// that no burst leaves.
    fn on_idle(&mut self, _: u64) {}

    fn on_recovered(&mut self, _: u64) {
        self.end_recovery();
    }

    fn on_segment_lost(&mut self, segment: &LostSegment) {
        self.handle_lost_segment(segment);
    }

    fn on_spurious_recovery(&mut self, _: &Before) {
        self.undo_recovery();
    }

    /// `HandleRestartFromIdle` (section 5.4.1).
    fn on_restart(&mut self, now: Time) {
        self.probe_rtt.idle_restart = true;
        self.path.restart_aggregation(now);
        if self.state.is_cycling() {
            self.set_pacing_rate(100);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    fn samples_rate(&self) -> bool {
        true
    }

    fn holds_back(&self) -> bool {
        self.state == State::ProbeRtt
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.control.window
    }

    fn threshold(&self) -> u64 {
        u64::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.control.pacing_rate)
    }
}
