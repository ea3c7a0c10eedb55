//! Congestion avoidance of RFC 5681: the window grows by about one segment per
//! round trip, and a loss leaves half of what was in flight.

use super::loss_based::Window;
use super::{Ack, Controller, Entry, Loss};

pub(super) const ENTRY: Entry = Entry {
    name: "newreno",
    summary: "One segment more per round trip, and half after a loss",
    source: "RFC 5681, RFC 6582",
    scalable: false,
    start: |start| Box::new(Reno(Window::new(start))),
};

#[derive(Debug)]
struct Reno(Window);

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        let window = &mut self.0;
        window.search(ack);
        if !ack.may_grow() || !ack.window_limited {
            return;
        }
        if window.in_slow_start() {
            window.grow(ack);
        } else {
            // RFC 5681 equation 3, which ns-2 and ns-3 use too: the same whatever
            // the acknowledgement covers. With delayed acknowledgements it adds
            // half a segment per round trip, as the square-root law with `b` = 2
            // assumes; counting bytes would add a whole one.
            window.size += (window.mss * window.mss / window.size).max(1);
        }
    }

    /// RFC 5681 equation 4.
    fn on_loss(&mut self, loss: &Loss) {
        self.0.reduce(loss.flight / 2);
    }

    fn on_timeout(&mut self, _: u64) {
        self.0.collapse();
    }

    fn on_idle(&mut self, initial: u64) {
        self.0.size = self.0.size.min(initial);
    }

    fn on_recovered(&mut self, window: u64) {
        self.0.size = window;
    }

    fn window(&self) -> u64 {
        self.0.size
    }

    fn threshold(&self) -> u64 {
        self.0.threshold
    }
}
