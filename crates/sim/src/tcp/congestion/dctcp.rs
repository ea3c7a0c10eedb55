//! DCTCP as Linux has it (Linux 7.3, tcp_dctcp; RFC 8257): Reno, but a mark lowers the
//! window by half of the share of marks, once in a round trip.
//!
//! It is here for comparison with [`prague`](super::prague), which began as it. Made for
//! data centres, it is no good neighbour on the internet: on short paths it takes the link
//! from those on longer ones, and a queue that marks nothing with ECT(1) but drops treats it
//! like any other. Two things differ from Linux: marks are counted by accurate ECN and
//! not by an echo of its own, and segments say ECT(1), as the authors of L4S had them do in
//! their experiments, where Linux says ECT(0).

use super::linux::Window;
use super::scalable::MarkedShare;
use super::slow_start::SlowStart;
use super::{Ack, Before, Controller, Entry, Loss, Phase};

pub(super) const ENTRY: Entry = Entry {
    name: "dctcp",
    summary: "Reno that gives up half of the share of marks once per round trip; sends ECT(1)",
    source: "RFC 8257; Linux 7.3, tcp_dctcp",
    scalable: true,
    start: |start| {
        Box::new(Dctcp {
            window: Window::new(start, SlowStart::Classic),
            share: MarkedShare::UNKNOWN,
            round_end: 0,
            reduced_until: 0,
        })
    },
};

#[derive(Debug)]
struct Dctcp {
    window: Window,
    share: MarkedShare,
    /// The mean moves once this has been acknowledged.
    round_end: u64,
    /// A reduction covers everything below this offset, and meanwhile nothing grows.
    reduced_until: u64,
}

impl Controller for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.share.on_ack(ack.delivered, ack.marked);
        if ack.acknowledged >= self.round_end {
            self.share.end_round(true);
            self.round_end = ack.sent;
        }
        if ack.marked > 0 && ack.acknowledged >= self.reduced_until && ack.phase == Phase::Open {
            // In whole segments, and what is taken is rounded down (`dctcp_ssthresh`).
            let left = self.share.reduced(self.window.segments() as f64).ceil();
            self.window.reduce(left as u64);
            self.reduced_until = ack.sent;
        }
        let delivered = self.window.slow_start(ack);
        if delivered > 0 && ack.acknowledged >= self.reduced_until {
            self.window.avoid(self.window.segments(), delivered);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss.window / self.window.mss / 2);
    }

    fn on_timeout(&mut self, in_flight: u64) {
        self.window.collapse(in_flight);
    }

    fn on_idle(&mut self, initial: u64) {
        self.window.restart(initial);
    }

    fn on_spurious_recovery(&mut self, before: &Before) {
        self.window.restore(before);
    }

    fn on_recovered(&mut self, window: u64) {
        self.window.size = window;
    }

    fn halves_when_idle(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.window.size
    }

    fn threshold(&self) -> u64 {
        self.window.threshold
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Span, Time};

    use super::*;
    use crate::tcp::congestion::tests::{MSS, ack, start};

    fn marked(millis: u64, acknowledged: u64, sent: u64, marked: u64) -> Ack {
        let now = Time::ZERO + Span::millis(millis);
        Ack { marked, ..ack(now, Some(Span::millis(10)), acknowledged, sent) }
    }

    /// The first mark halves, since nothing is known; further marks of the same round trip
    /// change nothing, and nothing grows meanwhile. The mean is 15/16 by the next round, in
    /// which one of five segments has a mark.
    #[test]
    fn a_mark_counts_once_per_round_trip() {
        let mut dctcp = (ENTRY.start)(&start(Span::millis(10)));
        dctcp.on_ack(&marked(10, MSS, 10 * MSS, MSS));
        assert_eq!((dctcp.window(), dctcp.threshold()), (5 * MSS, 5 * MSS));
        for segment in 2..10 {
            dctcp.on_ack(&marked(10 + segment, segment * MSS, 14 * MSS, MSS));
        }
        assert_eq!(dctcp.window(), 5 * MSS);
        // The round ends with all segments marked: the mean stays one, and 2.5 are left, of
        // which Linux takes two away.
        dctcp.on_ack(&marked(20, 10 * MSS, 14 * MSS, MSS));
        assert_eq!(dctcp.window(), 3 * MSS);
    }
}
