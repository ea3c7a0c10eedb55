//! Between whom shares are fair, and how many busy queues each host has.
//!
//! A queue's share is divided by the number of busy queues of its source or of its
//! destination, so that a host gains nothing by more connections. Linux keeps hosts in
//! a table of 1 024 places by their hash, where two may meet; here each has its own.

use crate::discipline::hosts;
pub(super) use crate::discipline::hosts::Sides;
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

/// The busy queues of hosts that have queues with turns: of sources, and of destinations.
#[derive(Debug)]
pub(super) struct Hosts(hosts::Hosts<u32>);

impl Hosts {
    pub(super) fn new(seed: u64) -> Hosts {
        Hosts(hosts::Hosts::new(seed))
    }

    /// A queue of the flow gets turns: the hosts that its share depends on.
    pub(super) fn join(&mut self, isolation: Isolation, flow: FlowKey) -> Sides {
        self.0.join(isolation.sides(), flow, || 0)
    }

    /// A queue of these hosts has no turns any more.
    pub(super) fn leave(&mut self, sides: Sides) {
        self.0.leave(sides);
    }

    /// A queue of these hosts is busy from now on.
    pub(super) fn burden(&mut self, sides: Sides) {
        self.0.of(sides).for_each(|busy| *busy += 1);
    }

    /// A queue of these hosts is not busy any more.
    pub(super) fn relieve(&mut self, sides: Sides) {
        self.0.of(sides).for_each(|busy| *busy -= 1);
    }

    /// The busy queues of the source or of the destination, whichever has more.
    pub(super) fn load(&mut self, sides: Sides) -> u32 {
        self.0.of(sides).map(|busy| *busy).fold(1, u32::max)
    }

    /// The sources and the destinations that are known.
    #[cfg(test)]
    pub(super) fn known(&self) -> [usize; 2] {
        self.0.known()
    }
}
