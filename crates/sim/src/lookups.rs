//! The lookups of a run that are open, each with a port of its own.
//!
//! A stub resolver takes another source port for every lookup (`RFC 5452 section 9.2`), so
//! that each is a flow of its own for whatever queue it meets. Here a lookup gets the port
//! that has been free for the longest time: a discipline that remembers flows sees a
//! 5-tuple again after as many lookups as there are ports, as late as possible. (A real host
//! takes one at random, and so now and then one of a moment ago.) The run has as many ports
//! as Linux gives to a host, which also bounds the memory: 56 kB of ports, and some 200
//! bytes for each lookup that is open, with its timeout.

use std::collections::VecDeque;

use slab::Slab;
use tidegate_core::{Bytes, FlowKey, Span, Time};

use crate::metrics::FlowRecord;
use crate::scenario::{MOST_OPEN, NodeId};

/// The first of the ports that Linux gives to sockets.
const FIRST_PORT: u16 = 32_768;
/// The port of a server of names.
const DNS: u16 = 53;

/// Which lookup: the place of its source, and its number there.
pub(crate) type LookupId = (u16, u64);

/// A lookup that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup {
    pub(crate) id: LookupId,
    pub(crate) began: Time,
    /// The host that asks, and the resolver.
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// IP size of the answer.
    pub(crate) answer: Bytes,
    /// The queries sent so far.
    pub(crate) asked: u8,
    /// Its queries and answers that were lost so far.
    lost: u32,
    port: u16,
}

/// All of them, by number; numbers are used again.
pub(crate) struct Lookups {
    open: Slab<Lookup>,
    /// Free ports, the one that was given back first in front; none before the first lookup.
    ports: VecDeque<u16>,
    is_used: bool,
}

impl Lookup {
    pub(crate) fn new(
        id: LookupId,
        began: Time,
        (from, to): (NodeId, NodeId),
        answer: Bytes,
    ) -> Lookup {
        Lookup { id, began, from, to, answer, asked: 0, lost: 0, port: 0 }
    }

    /// The 5-tuple of its queries.
    pub(crate) fn key(&self) -> FlowKey {
        FlowKey::v4(self.from.address(), self.port, self.to.address(), DNS, FlowKey::UDP)
    }

    /// Its row as it ends with an answer that arrives at this time, or without one.
    pub(crate) fn record(&self, answered: Option<Time>, timeouts: u32) -> FlowRecord {
        FlowRecord {
            traffic: usize::from(self.id.0),
            number: self.id.1,
            size: Some(self.answer),
            start: self.began,
            congestion: None,
            response: answered.map(|at| at.since(self.began)),
            end: answered,
            delivered: answered.map_or(Bytes::ZERO, |_| self.answer),
            lost: self.lost,
            late: None,
            retransmissions: u32::from(self.asked.saturating_sub(1)),
            timeouts,
            longest_stall: Span::ZERO,
            unloaded: None,
            recorded: None,
        }
    }
}

impl Lookups {
    pub(crate) fn new() -> Lookups {
        Lookups { open: Slab::new(), ports: VecDeque::new(), is_used: false }
    }

    /// Opens a lookup; returns its number, or `None` when no port is free.
    pub(crate) fn open(&mut self, lookup: Lookup) -> Option<u32> {
        if !self.is_used {
            self.ports = (FIRST_PORT..).take(MOST_OPEN as usize).collect();
            self.is_used = true;
        }
        let port = self.ports.pop_front()?;
        Some(self.open.insert(Lookup { port, ..lookup }) as u32)
    }

    /// The lookup with this number, if it is this one and still open.
    pub(crate) fn live(&mut self, number: u32, id: LookupId) -> Option<&mut Lookup> {
        self.open.get_mut(number as usize).filter(|lookup| lookup.id == id)
    }

    /// Ends the lookup with this number, if it is this one and still open; its port is free.
    pub(crate) fn close(&mut self, number: u32, id: LookupId) -> Option<Lookup> {
        self.live(number, id)?;
        let lookup = self.open.remove(number as usize);
        self.ports.push_back(lookup.port);
        Some(lookup)
    }

    /// Counts a packet of a lookup that is lost; nobody counts those of lookups that are over.
    pub(crate) fn count_loss(&mut self, number: u32, id: LookupId) {
        if let Some(lookup) = self.live(number, id) {
            lookup.lost += 1;
        }
    }

    /// Ends all that are open, by source and number.
    pub(crate) fn drain(&mut self) -> Vec<Lookup> {
        let mut open: Vec<Lookup> = self.open.drain().collect();
        open.sort_by_key(|lookup| lookup.id);
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(number: u64) -> Lookup {
        Lookup::new((0, number), Time::ZERO, (NodeId(0), NodeId(1)), Bytes(100))
    }

    #[test]
    fn a_port_returns_as_late_as_possible_and_there_are_no_more_than_there_are() {
        let mut lookups = Lookups::new();
        let mut ports = std::collections::BTreeSet::new();
        for number in 0..u64::from(MOST_OPEN) {
            let slot = lookups.open(lookup(number)).expect("a port is free");
            assert!(ports.insert(lookups.close(slot, (0, number)).unwrap().port));
        }
        let first = lookups.open(lookup(0)).unwrap();
        assert_eq!(lookups.live(first, (0, 0)).unwrap().port, FIRST_PORT);
        for number in 1..u64::from(MOST_OPEN) {
            assert!(lookups.open(lookup(number)).is_some());
        }
        assert_eq!(lookups.open(lookup(0)), None);
        lookups.close(first, (0, 0)).unwrap();
        assert!(lookups.open(lookup(0)).is_some());
    }

    #[test]
    fn what_belongs_to_a_lookup_that_is_over_finds_none() {
        let mut lookups = Lookups::new();
        let slot = lookups.open(lookup(7)).unwrap();
        assert!(lookups.close(slot, (0, 7)).is_some());
        assert_eq!(lookups.open(lookup(8)), Some(slot), "the number is used again");
        assert!(lookups.live(slot, (0, 7)).is_none());
        lookups.count_loss(slot, (0, 7));
        assert_eq!(lookups.live(slot, (0, 8)).unwrap().lost, 0);
    }
}
