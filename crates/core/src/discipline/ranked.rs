//! A queue in ascending order of a rank that each packet receives on arrival.
//!
//! Packets of equal rank leave in the order of their arrival. The next packet to
//! serve and the last one, which is the first to give up, each cost O(log n).
//! Packets stay where they are put, and the heap moves only their ranks, which are
//! a fifth of the size: this takes a quarter fewer instructions for a queue of 300.

use super::Backlog;
use crate::double_ended_heap::DoubleEndedHeap;
use crate::flow_table::FlowId;
use crate::packet::Packet;

/// A queue of packets ordered by rank, then by arrival. Every packet carries the
/// identifier of its flow's entry, an `E`.
#[derive(Debug)]
pub(crate) struct RankedQueue<R, E = FlowId> {
    order: DoubleEndedHeap<Place<R>>,
    /// No slab: without a mark of which slots are free, a packet costs less.
    slots: Vec<(Packet, E)>,
    free: Vec<u32>,
    arrivals: u64,
    backlog: Backlog,
}

/// The position of a packet in the order; fields are compared from first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place<R> {
    rank: R,
    /// Breaks ties; 2^64 arrivals are not reached.
    arrival: u64,
    slot: u32,
}

/// A packet taken out of a [`RankedQueue`].
#[derive(Debug)]
pub(crate) struct Ranked<R, E> {
    pub(crate) rank: R,
    pub(crate) packet: Packet,
    /// The entry of its flow.
    pub(crate) flow: E,
}

impl<R: Copy + Ord, E: Copy> RankedQueue<R, E> {
    /// An empty queue.
    pub(crate) fn new() -> RankedQueue<R, E> {
        RankedQueue {
            order: DoubleEndedHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            arrivals: 0,
            backlog: Backlog::default(),
        }
    }

    /// Puts a packet where its rank belongs, behind those of equal rank.
    #[inline]
    pub(crate) fn insert(&mut self, rank: R, packet: Packet, flow: E) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = (packet, flow);
                slot
            }
            None => {
                self.slots.push((packet, flow));
                // The backlog counts packets in 32 bits too.
                (self.slots.len() - 1) as u32
            }
        };
        self.order.push(Place { rank, arrival: self.arrivals, slot });
        self.arrivals += 1;
        self.backlog.add(packet.size);
    }

    /// The rank of the packet to serve next.
    pub(crate) fn first_rank(&self) -> Option<R> {
        self.order.least().map(|place| place.rank)
    }

    /// Takes out the packet to serve next.
    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<Ranked<R, E>> {
        self.order.pop_least().map(|place| self.take(place))
    }

    /// Takes out the packet that would be served last.
    pub(crate) fn pop_last(&mut self) -> Option<Ranked<R, E>> {
        self.order.pop_greatest().map(|place| self.take(place))
    }

    /// Takes out all packets whose entry is `taken`, in their order. This looks at every
    /// packet.
    pub(crate) fn take_out(&mut self, taken: impl Fn(E) -> bool, mut each: impl FnMut(Packet)) {
        let RankedQueue { order, slots, free, backlog, .. } = self;
        let is_taken = |place: &Place<R>| taken(slots[place.slot as usize].1);
        order.take_out(is_taken, |place| {
            let packet = slots[place.slot as usize].0;
            free.push(place.slot);
            backlog.remove(packet.size);
            each(packet);
        });
    }

    /// What names the flows of the packets, once for each, in no order.
    pub(crate) fn flows(&self) -> impl Iterator<Item = E> + '_ {
        self.order.iter().map(|place| self.slots[place.slot as usize].1)
    }

    fn take(&mut self, Place { rank, slot, .. }: Place<R>) -> Ranked<R, E> {
        let (packet, flow) = self.slots[slot as usize];
        self.free.push(slot);
        self.backlog.remove(packet.size);
        Ranked { rank, packet, flow }
    }

    /// What is queued.
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }
}
