//! The hosts of flows: their sources, and their destinations, each with a state of its own.
//!
//! A host is known while a flow of it is, so there are never more hosts of a side than flows.

use crate::flow_table::{FlowId, FlowTable};
use crate::packet::FlowKey;

/// The source and the destination of a flow, as far as they matter.
pub(super) type Sides = [Option<FlowId>; 2];

/// A `T` for each host of known flows.
#[derive(Debug)]
pub(super) struct Hosts<T>([FlowTable<Host<T>>; 2]);

#[derive(Debug)]
struct Host<T> {
    flows: u32,
    state: T,
}

impl<T> Hosts<T> {
    pub(super) fn new(seed: u64) -> Hosts<T> {
        Hosts([FlowTable::new(seed), FlowTable::new(seed)])
    }

    /// A flow becomes known: its source and its destination, where `sides` says that they
    /// matter. A host that was not known begins as `fresh`.
    pub(super) fn join(&mut self, sides: [bool; 2], flow: FlowKey, fresh: impl Fn() -> T) -> Sides {
        let Hosts([sources, destinations]) = self;
        let join = |table: &mut FlowTable<Host<T>>, key: FlowKey| {
            let (id, host) = table.entry(&key, || Host { flows: 0, state: fresh() });
            host.flows += 1;
            id
        };
        let [by_source, by_destination] = sides;
        [
            by_source.then(|| join(sources, flow.source_host())),
            by_destination.then(|| join(destinations, flow.destination_host())),
        ]
    }

    /// A flow of these hosts is not known any more.
    pub(super) fn leave(&mut self, sides: Sides) {
        for (table, id) in self.0.iter_mut().zip(sides) {
            let Some(id) = id else { continue };
            let host = table.state(id);
            host.flows -= 1;
            if host.flows == 0 {
                table.remove(id);
            }
        }
    }

    /// The states of these hosts.
    pub(super) fn of(&mut self, sides: Sides) -> impl Iterator<Item = &mut T> {
        let tables = self.0.iter_mut().zip(sides);
        tables.filter_map(|(table, id)| id.map(|id| &mut table.state(id).state))
    }

    /// The sources and the destinations that are known.
    #[cfg(test)]
    pub(super) fn known(&self) -> [usize; 2] {
        [self.0[0].len(), self.0[1].len()]
    }
}
