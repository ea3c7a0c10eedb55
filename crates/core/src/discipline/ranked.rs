//! A queue in ascending order of a rank that each packet is given as it comes.
//!
//! Packets of equal rank leave in the order of their arrival. Both the next
//! packet to serve and the last one, the first to give up, are O(log n) away.

use std::cmp::Ordering;

use super::Backlog;
use crate::double_ended_heap::DoubleEndedHeap;
use crate::flow_table::FlowId;
use crate::packet::Packet;

/// A queue of packets ordered by rank, then by arrival.
#[derive(Debug)]
pub(crate) struct RankedQueue<R> {
    heap: DoubleEndedHeap<Queued<R>>,
    arrivals: u64,
    backlog: Backlog,
}

/// A packet in a [`RankedQueue`].
#[derive(Debug)]
pub(crate) struct Queued<R> {
    /// Its place in the order.
    pub(crate) rank: R,
    /// Breaks ties; 2^64 arrivals are not reached.
    arrival: u64,
    /// The packet itself.
    pub(crate) packet: Packet,
    /// The entry of its flow.
    pub(crate) flow: FlowId,
}

impl<R: Ord> RankedQueue<R> {
    /// An empty queue.
    pub(crate) fn new() -> RankedQueue<R> {
        RankedQueue { heap: DoubleEndedHeap::new(), arrivals: 0, backlog: Backlog::default() }
    }

    /// Puts a packet where its rank belongs, behind those of equal rank.
    pub(crate) fn insert(&mut self, rank: R, packet: Packet, flow: FlowId) {
        self.heap.push(Queued { rank, arrival: self.arrivals, packet, flow });
        self.arrivals += 1;
        self.backlog.add(packet.size);
    }

    /// Takes out the packet to serve next.
    pub(crate) fn pop_first(&mut self) -> Option<Queued<R>> {
        let queued = self.heap.pop_least()?;
        self.backlog.remove(queued.packet.size);
        Some(queued)
    }

    /// Takes out the packet that would be served last.
    pub(crate) fn pop_last(&mut self) -> Option<Queued<R>> {
        let queued = self.heap.pop_greatest()?;
        self.backlog.remove(queued.packet.size);
        Some(queued)
    }

    /// What is queued.
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<R: Ord> Ord for Queued<R> {
    fn cmp(&self, other: &Queued<R>) -> Ordering {
        self.rank.cmp(&other.rank).then(self.arrival.cmp(&other.arrival))
    }
}

impl<R: Ord> PartialOrd for Queued<R> {
    fn partial_cmp(&self, other: &Queued<R>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Ord> PartialEq for Queued<R> {
    fn eq(&self, other: &Queued<R>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<R: Ord> Eq for Queued<R> {}
