//! Reno as Linux has it: a segment more for each window of segments delivered, and half
//! of the window after a loss.
//!
//! `newreno` counts acknowledgements, so that its window grows by half a segment per
//! round trip when every other one is delayed, and it halves what was in flight. This one
//! grows by a whole segment.

use super::linux::Window;
use super::slow_start::SlowStart;
use super::{Ack, Before, Controller, Entry, Loss};

pub(super) const ENTRY: Entry = Entry {
    name: "reno",
    summary: "As Linux has it: one segment more per window delivered, and half the window after a loss",
    source: "Linux 7.3, tcp_cong",
    scalable: false,
    start: |start| Box::new(Reno(Window::new(start, SlowStart::Classic))),
};

#[derive(Debug)]
struct Reno(Window);

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        self.0.search(ack);
        let delivered = self.0.slow_start(ack);
        if delivered > 0 {
            self.0.avoid(self.0.segments(), delivered);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.0.reduce(loss.window / self.0.mss / 2);
    }

    fn on_timeout(&mut self, in_flight: u64) {
        self.0.collapse(in_flight);
    }

    fn on_idle(&mut self, initial: u64) {
        self.0.restart(initial);
    }

    fn on_spurious_recovery(&mut self, before: &Before) {
        self.0.restore(before);
    }

    fn on_recovered(&mut self, window: u64) {
        self.0.size = window;
    }

    fn halves_when_idle(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.0.size
    }

    fn threshold(&self) -> u64 {
        self.0.threshold
    }
}
