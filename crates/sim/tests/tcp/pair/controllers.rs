//! Congestion controllers for tests.

use std::cell::RefCell;

use tidegate_core::{Rate, Time};
use tidegate_sim::tcp::congestion::{Ack, Controller, Entry, Loss, LostSegment, NEW_RENO};

/// A window of `SEGMENTS` and a pacing rate of `RATE` bit/s, whatever happens.
pub(crate) fn fixed<const SEGMENTS: u64, const RATE: u64>() -> &'static Entry {
    const {
        &Entry {
            name: "fixed",
            summary: "a window and a rate that never change",
            source: "",
            scalable: false,
            start: |start| Box::new(Fixed { window: SEGMENTS * start.mss, rate: Rate(RATE) }),
        }
    }
}

#[derive(Debug)]
struct Fixed {
    window: u64,
    rate: Rate,
}

impl Controller for Fixed {
    fn on_ack(&mut self, _: &Ack) {}
    fn on_loss(&mut self, _: &Loss) {}
    fn on_timeout(&mut self, _: u64) {}
    fn on_idle(&mut self, _: u64) {}
    fn on_recovered(&mut self, _: u64) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn threshold(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}

/// NewReno at a pacing rate of `RATE` bit/s, which is none for zero. What it hears
/// goes into the log of this thread.
pub(crate) fn paced_reno<const RATE: u64>() -> &'static Entry {
    const {
        &Entry {
            name: "paced reno",
            summary: "NewReno at a fixed pacing rate",
            source: "",
            scalable: false,
            start: |start| {
                let rate = if RATE == 0 { None } else { Some(Rate(RATE)) };
                Box::new(PacedReno { reno: (NEW_RENO.start)(start), rate })
            },
        }
    }
}

/// What a controller has heard.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    Ack(Ack),
    Loss(Loss),
    Ecn,
    Timeout,
    Idle,
    Recovered(u64),
    Lost(LostSegment),
    Restart(Time),
}

thread_local! {
    static LOG: RefCell<Vec<Heard>> = const { RefCell::new(Vec::new()) };
}

/// What the controllers of this thread have heard since the last call.
pub(crate) fn take_log() -> Vec<Heard> {
    LOG.take()
}

#[derive(Debug)]
struct PacedReno {
    reno: Box<dyn Controller>,
    rate: Option<Rate>,
}

fn note(heard: Heard) {
    LOG.with_borrow_mut(|log| log.push(heard));
}

impl Controller for PacedReno {
    fn on_ack(&mut self, ack: &Ack) {
        note(Heard::Ack(*ack));
        self.reno.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        note(Heard::Loss(*loss));
        self.reno.on_loss(loss);
    }

    fn on_ecn(&mut self, loss: &Loss) {
        note(Heard::Ecn);
        self.reno.on_ecn(loss);
    }

    fn on_timeout(&mut self, in_flight: u64) {
        note(Heard::Timeout);
        self.reno.on_timeout(in_flight);
    }

    fn on_idle(&mut self, initial: u64) {
        note(Heard::Idle);
        self.reno.on_idle(initial);
    }

    fn on_recovered(&mut self, window: u64) {
        note(Heard::Recovered(window));
        self.reno.on_recovered(window);
    }

    fn window(&self) -> u64 {
        self.reno.window()
    }

    fn threshold(&self) -> u64 {
        self.reno.threshold()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }
}

/// NewReno for a connection that counts marks, of which it hears and makes nothing. What it
/// hears goes into the log of this thread.
pub(crate) fn counting() -> &'static Entry {
    const {
        &Entry {
            name: "counting",
            summary: "NewReno with accurate ECN",
            source: "",
            scalable: true,
            start: |start| Box::new(PacedReno { reno: (NEW_RENO.start)(start), rate: None }),
        }
    }
}

/// A window of `SEGMENTS` that samples rates, rules recovery and is never paced. What
/// it hears goes into the log of this thread.
pub(crate) fn sampling<const SEGMENTS: u64>() -> &'static Entry {
    const {
        &Entry {
            name: "sampling",
            summary: "a window that never changes, with samples of the delivery rate",
            source: "",
            scalable: false,
            start: |start| Box::new(Sampling(SEGMENTS * start.mss)),
        }
    }
}

#[derive(Debug)]
struct Sampling(u64);

impl Controller for Sampling {
    fn on_ack(&mut self, ack: &Ack) {
        note(Heard::Ack(*ack));
    }

    fn on_loss(&mut self, loss: &Loss) {
        note(Heard::Loss(*loss));
    }

    fn on_timeout(&mut self, _: u64) {
        note(Heard::Timeout);
    }

    fn on_idle(&mut self, _: u64) {}

    fn on_recovered(&mut self, window: u64) {
        note(Heard::Recovered(window));
    }

    fn on_segment_lost(&mut self, segment: &LostSegment) {
        note(Heard::Lost(*segment));
    }

    fn on_restart(&mut self, now: Time) {
        note(Heard::Restart(now));
    }

    fn samples_rate(&self) -> bool {
        true
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.0
    }

    fn threshold(&self) -> u64 {
        self.0
    }
}
