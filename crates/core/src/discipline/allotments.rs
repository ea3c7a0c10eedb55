//! SFQ's queues as Linux has them (7.3, `sch_sfq`).
//!
//! Backlogged queues take turns in the order in which they became so. A queue sends
//! while its allotment is above zero, which a packet may overdraw; then it gets another
//! quantum and goes to the end. An empty queue leaves and takes nothing with it. There
//! are at most `flows` queues of at most `depth` packets.
//!
//! The queue to lose from is that with the most packets; among equal ones, that whose
//! length has changed last, for Linux keeps a list of queues of each length and takes its
//! newest member. Where all have one packet, it is the queue whose turn it is.

use super::Backlog;
use super::flow_queues::FlowQueues;
use super::form::Form;
use super::sparse_first::SparseFirst;
use crate::packet::Packet;
use crate::units::Bytes;

/// Queues that are served by turns of bytes and measured by packets.
#[derive(Debug)]
pub(crate) struct Allotments {
    quantum: i128,
    flows: u32,
    depth: u32,
    queues: FlowQueues<()>,
    turns: SparseFirst,
}

impl Allotments {
    /// Queues without packets; `quantum` is at least a byte.
    pub(crate) fn new(quantum: Bytes, flows: u32, depth: u32) -> Allotments {
        Allotments {
            quantum: quantum.0.into(),
            flows,
            depth,
            queues: FlowQueues::by_packets(),
            turns: SparseFirst::new(Form::Linux),
        }
    }

    /// Sets the same while packets are queued, which stay where they are.
    pub(crate) fn set(&mut self, quantum: Bytes, flows: u32, depth: u32) {
        (self.quantum, self.flows, self.depth) = (quantum.0.into(), flows, depth);
    }

    /// Whether the queue may have another packet.
    pub(crate) fn has_room(&self, queue: u32) -> bool {
        match self.queues.packets_of(queue) {
            0 => self.turns.active() < self.flows as usize,
            packets => packets < self.depth,
        }
    }

    /// Puts a packet at the end of a queue, and an empty one last in turn.
    pub(crate) fn push(&mut self, queue: u32, packet: Packet) {
        self.queues.push(queue, packet);
        self.turns.arrived_last(queue, self.quantum);
    }

    /// Takes out the packet to serve next.
    pub(crate) fn pop_next(&mut self) -> Option<Packet> {
        let queue = self.turns.next(|_| self.quantum)?;
        let packet = self.queues.pop_first(queue)?;
        self.turns.spend(queue, packet.size.0.into());
        self.retire_if_empty(queue);
        Some(packet)
    }

    /// Takes out the packet at the tail of the queue with the most packets.
    pub(crate) fn pop_last_of_longest(&mut self) -> Option<Packet> {
        let longest = self.queues.fattest()?;
        let queue = match self.queues.packets_of(longest) {
            1 => self.turns.first_old()?,
            _ => longest,
        };
        let packet = self.queues.pop_last(queue);
        self.retire_if_empty(queue);
        packet
    }

    fn retire_if_empty(&mut self, queue: u32) {
        if self.queues.is_empty(queue) {
            self.turns.found_empty(queue);
        }
    }

    /// The number of backlogged queues.
    pub(crate) fn backlogged(&self) -> usize {
        self.turns.active()
    }

    /// What is queued in all.
    pub(crate) fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }
}
