//! Datagrams of one size at a constant rate: a call, or a stream that comes and goes.

use tidegate_core::{Rate, Time};

use super::{Action, Datagram, DatagramFlow, Source};
use crate::scenario::{Pauses, TrafficSpec};

pub(super) struct Cbr {
    datagram: Datagram,
    stop: Time,
    rate: Rate,
    pauses: Option<Pauses>,
    /// When it went on last, or will.
    on_since: Time,
    /// Datagrams sent since then.
    sent: u64,
}

impl Cbr {
    pub(super) fn new(
        spec: &TrafficSpec,
        datagram: Datagram,
        rate: Rate,
        pauses: Option<Pauses>,
    ) -> Cbr {
        let on_since = pauses.map_or(spec.start, |pauses| spec.start + pauses.off);
        Cbr { datagram, stop: spec.stop, rate, pauses, on_since, sent: 0 }
    }

    /// Counted from the time when it went on, so that roundings do not add up.
    fn due(&mut self) -> Option<Time> {
        let mut at = self.on_since + self.rate.transmission(self.datagram.size * self.sent);
        if let Some(Pauses { off, on }) = self.pauses
            && at >= self.on_since + on
        {
            self.on_since = self.on_since + on + off;
            self.sent = 0;
            at = self.on_since;
        }
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
        vec![DatagramFlow::default()]
    }
}
