//! Window, pacing rate and quantum (section 5.6).
//!
//! The pacing rate decides in the usual case; the window is twice what the path holds,
//! to cover delayed and lumped acknowledgements, and has the last word when the model is
//! wrong. It falls to what the model says at once, and grows by no more than arrives.

use tidegate_core::{Rate, Span};

use super::{Bbr, Sample, Start, State, UNBOUNDED, path, scaled};

/// The round trip that is assumed before one is known (section 5.6.2): so the initial
/// window leaves at once.
const ASSUMED_ROUND_TRIP: Span = Span::millis(1);
/// What `BBR.PacingMarginPercent` leaves of the bandwidth, in hundredths: a little less
/// than arrives, so that queues drain on average.
const PACING_MARGIN: u64 = 99;
/// The time that a quantum takes (section 5.6.3).
const QUANTUM: Span = Span::millis(1);
/// The largest quantum, in bytes.
const LARGEST_QUANTUM: u64 = 65_536;
/// Quanta in flight that hosts need: one queued, one being cut into segments, one being
/// put together again (section 5.5.8).
const OFFLOADED_QUANTA: u64 = 3;

#[derive(Debug)]
pub(super) struct Control {
    /// `C.cwnd`.
    pub(super) window: u64,
    /// `BBR.prior_cwnd`: the window before a recovery or ProbeRTT.
    pub(super) prior_window: u64,
    /// `C.pacing_rate`.
    pub(super) pacing_rate: Rate,
    /// `C.send_quantum`: how much the sender's bursts need in flight. It forms them by
    /// Linux's rule, which is the same but for longer ones on paths of a few milliseconds.
    quantum: u64,
    /// A round trip has been measured.
    timed: bool,
}

impl Control {
    pub(super) fn new(start: &Start) -> Control {
        let round_trip = start.round_trip.unwrap_or(ASSUMED_ROUND_TRIP);
        let mut control = Control {
            window: start.window,
            prior_window: 0,
            pacing_rate: initial_rate(start.window, round_trip),
            quantum: 0,
            timed: start.round_trip.is_some(),
        };
        control.set_quantum(start.mss);
        control
    }

    /// `InitPacingRate` (section 5.6.2), again with the first round trip that is known.
    pub(super) fn on_first_round_trip(&mut self, round_trip: Option<Span>, window: u64) {
        if !self.timed
            && let Some(round_trip) = round_trip
        {
            self.timed = true;
            self.pacing_rate = initial_rate(window, round_trip);
        }
    }

    /// `SetSendQuantum` (section 5.6.3).
    pub(super) fn set_quantum(&mut self, mss: u64) {
        let paced = self.pacing_rate.volume(QUANTUM).0;
        self.quantum = paced.min(LARGEST_QUANTUM).max(2 * mss);
    }

    /// `RestoreCwnd` (section 5.6.4.4).
    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }
}

fn initial_rate(window: u64, round_trip: Span) -> Rate {
    let nominal = path::rate(window, round_trip.max(Span(1)));
    Rate(scaled(nominal.0, State::Startup.pacing_gain()))
}

impl Bbr {
    /// `SetPacingRateWithGain` (section 5.6.2). Until the pipe has once been full the
    /// rate only grows: samples may all be the application's.
    pub(super) fn set_pacing_rate(&mut self, gain: u64) {
        // Two hundredths each.
        let rate = Rate(scaled(self.path.bandwidth.0, gain * PACING_MARGIN) / 100);
        // A mark on the first flight may say that the pipe is full before the bandwidth is
        // known; at no rate nothing would ever become known.
        let known = self.full_pipe.reached && rate > Rate(0);
        if known || rate > self.control.pacing_rate {
            self.control.pacing_rate = rate;
        }
    }

    /// `QuantizationBudget` (section 5.6.4.2).
    fn quantized(&self, in_flight: u64) -> u64 {
        let least = (OFFLOADED_QUANTA * self.control.quantum).max(self.least_window());
        let more = if self.state == State::Up { 2 * self.mss } else { 0 };
        in_flight.max(least).saturating_add(more)
    }

    /// `BDPMultiple`, for a gain in hundredths.
    fn multiple(&self, bandwidth: Rate, gain: u64) -> u64 {
        let product = self.path.in_flight_at(bandwidth);
        product.map_or(self.initial_window, |product| scaled(product, gain))
    }

    /// `Inflight(1.0)`: what has to be in flight to keep the path busy at this bandwidth.
    pub(super) fn needed(&self, bandwidth: Rate) -> u64 {
        self.quantized(self.multiple(bandwidth, 100))
    }

    /// `BBR.max_inflight`.
    fn max_in_flight(&self) -> u64 {
        let product = self.multiple(self.path.bandwidth, self.state.window_gain());
        self.quantized(product.saturating_add(self.path.extra_acked))
    }

    /// `SetCwnd` (section 5.6.4.6).
    pub(super) fn set_window(&mut self, sample: &Sample) {
        let most = self.max_in_flight();
        let window = &mut self.control.window;
        if self.full_pipe.reached {
            *window = window.saturating_add(sample.acked).min(most);
        } else if *window < most || self.rounds.delivered < self.initial_window {
            *window = window.saturating_add(sample.acked);
        }
        self.control.window = self.control.window.max(self.least_window());
        self.bound_window();
    }

    /// `BoundCwndForProbeRTT` and `BoundCwndForModel` (sections 5.6.4.5 and 5.6.4.7).
    pub(super) fn bound_window(&mut self) {
        self.control.window = self.control.window.min(self.window_bound());
    }

    /// The volume cap of the table in section 5.6.1.
    pub(super) fn window_bound(&self) -> u64 {
        let least = self.least_window();
        let long = match self.state {
            State::Startup | State::Drain => UNBOUNDED,
            State::Down | State::Refill | State::Up => self.path.in_flight_long,
            State::Cruise => self.path.in_flight_with_headroom(self.mss, least),
            State::ProbeRtt => {
                let headroom = self.path.in_flight_with_headroom(self.mss, least);
                headroom.min(self.probe_rtt_window())
            }
        };
        long.min(self.path.in_flight_short).max(least)
    }

    /// `TargetInflight` (section 5.3.3.8.3).
    pub(super) fn target(&self) -> u64 {
        self.path.product().min(self.control.window)
    }
}
