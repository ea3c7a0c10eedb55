//! The cycle of ProbeBW (section 5.3.3): down, cruise, refill, up.
//!
//! A flow probes for more every two to three seconds, or when a Reno flow with the same
//! window would have grown by as much, if that is earlier. The times are drawn, so that
//! flows do not probe in step. The probe raises what may be in flight by 1, 2, 4, ...
//! segments in successive round trips: cautious at first, since the buffer may be shared.

use tidegate_core::random::Stream;
use tidegate_core::{Span, Time};

use super::{Bbr, Sample, Start, State, UNBOUNDED};

/// The shortest time between probes, and what is drawn on top of it.
const SHORTEST_WAIT: Span = Span::seconds(2);
const DRAWN_WAIT: Span = Span::seconds(1);
/// The most round trips between probes (section 5.3.3.8.2).
const MOST_ROUNDS: u64 = 63;
/// Growth per round trip doubles up to 2^30 segments.
const MOST_DOUBLINGS: u32 = 30;

#[derive(Debug)]
pub(super) struct Cycle {
    /// `BBR.is_bw_probe_sample`.
    pub(super) is_probe_sample: bool,
    /// `BBR.prev_probe_too_high`.
    pub(super) last_probe_too_high: bool,
    /// `BBR.rounds_since_probe_up`.
    pub(super) rounds_since_up: u64,
    /// `BBR.drain_start_round`.
    pub(super) drain_started: u64,
    /// The probe is over, and acknowledgements still are of it: `BBR.ack_phase` is
    /// `ACKS_PROBE_STOPPING`. Nothing depends on its other four values.
    pub(super) is_stopping: bool,
    /// `BBR.prev_probe_precautionary`.
    last_probe_precautionary: bool,
    /// `BBR.cycle_stamp`.
    started: Time,
    /// `BBR.bw_probe_wait`.
    pub(super) wait: Span,
    /// `BBR.bw_probe_up_rounds`.
    up_rounds: u32,
    /// `BBR.bw_probe_up_acked`.
    up_acked: u64,
    /// `BBR.probe_up_acked_per_inc`: bytes acknowledged for each segment more.
    acked_per_segment: u64,
    draws: Stream,
}

impl Cycle {
    pub(super) fn new(start: &Start) -> Cycle {
        Cycle {
            is_probe_sample: false,
            last_probe_too_high: false,
            rounds_since_up: 0,
            drain_started: 0,
            is_stopping: false,
            last_probe_precautionary: false,
            started: start.now,
            wait: Span::ZERO,
            up_rounds: 0,
            up_acked: 0,
            acked_per_segment: UNBOUNDED,
            draws: Stream::new(u64::from(start.seed), "bbr3 waits"),
        }
    }

    /// `PickProbeWait` (section 5.3.3.8.3).
    fn pick_wait(&mut self) {
        self.rounds_since_up = self.draws.index(2) as u64;
        self.wait = SHORTEST_WAIT + Span(self.draws.index(DRAWN_WAIT.0 as usize) as u64);
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, window: u64, mss: u64) {
        self.acked_per_segment = (window >> self.up_rounds).max(mss);
        self.up_rounds = (self.up_rounds + 1).min(MOST_DOUBLINGS);
    }
}

impl Bbr {
    /// `StartProbeBW_DOWN`, which is also `EnterProbeBW`.
    pub(super) fn start_down(&mut self, now: Time) {
        self.losses.reset();
        self.cycle.acked_per_segment = UNBOUNDED;
        self.cycle.pick_wait();
        self.cycle.started = now;
        self.cycle.is_stopping = true;
        self.rounds.start();
        self.state = State::Down;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self) {
        self.path.forget_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.last_probe_precautionary = false;
        self.cycle.is_stopping = false;
        self.rounds.start();
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, sample: &Sample) {
        self.cycle.is_stopping = false;
        self.rounds.start();
        self.full_pipe.reset(sample.rate);
        self.state = State::Up;
        self.cycle.raise_slope(self.control.window, self.mss);
    }

    /// `UpdateProbeBWCyclePhase` (section 5.3.3.9).
    pub(super) fn update_cycle(&mut self, sample: &Sample) {
        if !self.full_pipe.reached || self.adapt_long_term(sample) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(sample.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(sample) => self.state = State::Cruise,
            State::Refill if self.rounds.started => {
                self.cycle.is_probe_sample = true;
                self.start_up(sample);
            }
            State::Up if self.is_time_to_go_down(sample) => {
                // As far as is known until now.
                self.cycle.last_probe_too_high = false;
                self.start_down(sample.now);
            }
            _ => {}
        }
    }

    /// `IsTimeToProbeBW`.
    fn is_time_to_probe(&self, now: Time) -> bool {
        // A Reno flow grows by a segment in a round trip, so the target is in segments.
        let rounds = (self.target() / self.mss).min(MOST_ROUNDS);
        now > self.cycle.started + self.cycle.wait || self.cycle.rounds_since_up >= rounds
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.in_flight <= self.path.in_flight_with_headroom(self.mss, self.least_window())
            && sample.in_flight <= self.needed(self.path.max_bandwidth)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        let long = self.path.in_flight_long;
        if self.cycle.last_probe_too_high && sample.in_flight >= long {
            self.cycle.last_probe_precautionary = true;
            return true;
        }
        if self.rounds.was_limited(sample) && self.control.window >= long {
            // The bound, and not the path, keeps the rate from growing.
            self.full_pipe.reset(sample.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// `AdaptLongTermModel`; true if it has changed the state.
    fn adapt_long_term(&mut self, sample: &Sample) -> bool {
        if self.cycle.is_stopping && self.rounds.started {
            self.cycle.is_probe_sample = false;
            self.cycle.is_stopping = false;
            if self.state.is_cycling() {
                if !sample.app_limited {
                    self.path.advance_max_bandwidth();
                }
                if self.cycle.last_probe_precautionary && !self.cycle.last_probe_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.losses.too_many(sample.lost, sample.in_flight_then)
            || self.path.in_flight_long == UNBOUNDED
        {
            return false;
        }
        self.path.in_flight_long = self.path.in_flight_long.max(sample.in_flight_then);
        if self.state == State::Up {
            self.probe_upward(sample);
        }
        false
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, sample: &Sample) {
        if !self.rounds.was_limited(sample) || self.control.window < self.path.in_flight_long {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked += sample.acked;
        let segments = cycle.up_acked / cycle.acked_per_segment;
        cycle.up_acked %= cycle.acked_per_segment;
        let long = &mut self.path.in_flight_long;
        *long = long.saturating_add(segments * self.mss);
        if self.rounds.started {
            cycle.raise_slope(self.control.window, self.mss);
        }
    }
}
