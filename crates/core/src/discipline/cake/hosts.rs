//! Between whom shares are fair, and how many busy queues each host has.
//!
//! A queue's share is divided by the number of busy queues of its source or of its
//! destination, so that a host gains nothing by more connections. Linux keeps hosts in
//! a table of 1 024 places by their hash, where two may meet; here each has its own.

use crate::flow_table::{FlowId, FlowTable};
use crate::packet::FlowKey;

/// What shares are fair between, in the order of [`ISOLATIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    /// Sources and destinations, then their flows.
    Triple,
    /// Sources, then their flows.
    DualSource,
    /// Destinations, then their flows.
    DualDestination,
    /// Flows.
    Flows,
    /// Pairs of a source and a destination, each of which is one flow.
    HostPairs,
    /// Sources, each of which is one flow.
    Sources,
    /// Destinations, each of which is one flow.
    Destinations,
    /// Nobody: all packets are one flow.
    Nobody,
}

/// The words of tc-cake.
pub(super) const ISOLATIONS: &[&str] = &[
    "triple-isolate",
    "dual-srchost",
    "dual-dsthost",
    "flows",
    "hosts",
    "srchost",
    "dsthost",
    "flowblind",
];

impl Isolation {
    /// By a word of [`ISOLATIONS`].
    pub(super) fn named(word: &str) -> Isolation {
        match word {
            "dual-srchost" => Isolation::DualSource,
            "dual-dsthost" => Isolation::DualDestination,
            "flows" => Isolation::Flows,
            "hosts" => Isolation::HostPairs,
            "srchost" => Isolation::Sources,
            "dsthost" => Isolation::Destinations,
            "flowblind" => Isolation::Nobody,
            _ => Isolation::Triple,
        }
    }

    /// What counts as one flow.
    pub(super) fn flow(self, key: FlowKey) -> FlowKey {
        match self {
            Isolation::HostPairs => key.host_pair(),
            Isolation::Sources => key.source_host(),
            Isolation::Destinations => key.destination_host(),
            Isolation::Nobody => FlowKey::NOTHING,
            _ => key,
        }
    }

    /// Whether a queue's share depends on its source, and on its destination.
    fn sides(self) -> [bool; 2] {
        match self {
            Isolation::Triple => [true, true],
            Isolation::DualSource => [true, false],
            Isolation::DualDestination => [false, true],
            _ => [false, false],
        }
    }
}

/// The source and the destination of a queue, where its share depends on them.
pub(super) type Sides = [Option<FlowId>; 2];

/// The hosts of queues that have turns: sources, and destinations.
#[derive(Debug)]
pub(super) struct Hosts([FlowTable<Host>; 2]);

#[derive(Debug, Default)]
struct Host {
    queues: u32,
    busy: u32,
}

impl Hosts {
    pub(super) fn new(seed: u64) -> Hosts {
        Hosts([FlowTable::new(seed), FlowTable::new(seed)])
    }

    /// A queue of the flow gets turns: the hosts that its share depends on.
    pub(super) fn join(&mut self, isolation: Isolation, flow: FlowKey) -> Sides {
        let Hosts([sources, destinations]) = self;
        let [by_source, by_destination] = isolation.sides();
        let join = |table: &mut FlowTable<Host>, key: FlowKey| {
            let (id, host) = table.entry(&key, Host::default);
            host.queues += 1;
            id
        };
        [
            by_source.then(|| join(sources, flow.source_host())),
            by_destination.then(|| join(destinations, flow.destination_host())),
        ]
    }

    /// A queue of these hosts has no turns any more.
    pub(super) fn leave(&mut self, sides: Sides) {
        for (table, id) in self.0.iter_mut().zip(sides) {
            let Some(id) = id else { continue };
            let host = table.state(id);
            host.queues -= 1;
            if host.queues == 0 {
                table.remove(id);
            }
        }
    }

    /// A queue of these hosts is busy from now on.
    pub(super) fn burden(&mut self, sides: Sides) {
        self.of(sides).for_each(|host| host.busy += 1);
    }

    /// A queue of these hosts is not busy any more.
    pub(super) fn relieve(&mut self, sides: Sides) {
        self.of(sides).for_each(|host| host.busy -= 1);
    }

    /// The busy queues of the source or of the destination, whichever has more.
    pub(super) fn load(&mut self, sides: Sides) -> u32 {
        self.of(sides).map(|host| host.busy).fold(1, u32::max)
    }

    fn of(&mut self, sides: Sides) -> impl Iterator<Item = &mut Host> {
        let tables = self.0.iter_mut().zip(sides);
        tables.filter_map(|(table, id)| id.map(|id| table.state(id)))
    }

    /// The sources and the destinations that are known.
    #[cfg(test)]
    pub(super) fn known(&self) -> [usize; 2] {
        [self.0[0].len(), self.0[1].len()]
    }
}
