//! Datagrams that pass the provider's queue and belong to no class.

use tidegate_core::{Rate, Span, Time};

use super::super::setup::Cbr;
use super::{Event, Run};

/// A source of datagrams on its way through on and off.
pub(super) struct Passing {
    source: Cbr,
    /// When it went on last, or will.
    on_since: Time,
    /// Datagrams sent since then.
    sent: u64,
}

impl Passing {
    pub(super) fn new(source: Cbr) -> Passing {
        Passing { source, on_since: Time(source.off.0), sent: 0 }
    }

    /// When the next datagram comes, counted from the beginning of its time on, so
    /// that roundings do not add up; `None` when there is none ever.
    fn next(&mut self) -> Option<Time> {
        let Cbr { rate, packet, off, on } = self.source;
        if rate == Rate(0) || on == Span::ZERO {
            return None;
        }
        let at = self.on_since + rate.transmission(packet * self.sent);
        if at >= self.on_since + on {
            self.on_since = self.on_since + on + off;
            self.sent = 0;
            return Some(self.on_since);
        }
        Some(at)
    }
}

impl Run<'_> {
    pub(super) fn start_passing(&mut self) {
        for source in 0..self.passing.len() {
            self.plan_datagram(source);
        }
    }

    fn plan_datagram(&mut self, source: usize) {
        if let Some(at) = self.passing[source].next() {
            self.kernel.schedule(at, Event::Passing(source as u32));
        }
    }

    pub(super) fn pass(&mut self, source: usize) {
        let size = self.passing[source].source.packet;
        self.queue_at_provider(None, size);
        self.passing[source].sent += 1;
        self.plan_datagram(source);
    }
}
