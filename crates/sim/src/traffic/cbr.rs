//! Datagrams of one size at a constant rate: a call, or a stream.

use tidegate_core::{Rate, Span, Time};

use super::{Action, Datagram, DatagramFlow, Source};
use crate::scenario::TrafficSpec;

pub(super) struct Cbr {
    datagram: Datagram,
    start: Time,
    stop: Time,
    rate: Rate,
    sent: u64,
}

impl Cbr {
    pub(super) fn new(spec: &TrafficSpec, datagram: Datagram, rate: Rate) -> Cbr {
        Cbr { datagram, start: spec.start, stop: spec.stop, rate, sent: 0 }
    }

    /// Counted from the start, so that roundings do not add up.
    fn due(&self) -> Option<Time> {
        let volume = self.datagram.size * self.sent;
        let at = self.start + Span(self.rate.transmission(volume).0);
        (at < self.stop).then_some(at)
    }
}

impl Source for Cbr {
    fn first(&mut self) -> Option<Time> {
        self.due()
    }

    fn wake(&mut self, _now: Time, actions: &mut Vec<Action>) -> Option<Time> {
        actions.push(Action::Send(self.datagram));
        self.sent += 1;
        self.due()
    }

    fn datagram_flows(&self) -> Vec<DatagramFlow> {
        vec![DatagramFlow { datagrams: None, size: None }]
    }
}
