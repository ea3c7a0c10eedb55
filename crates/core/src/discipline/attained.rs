//! A queue ordered by what each packet's flow has had so far: LAS and its kin.
//!
//! These disciplines differ in how a flow's service becomes a rank. In all of them,
//! a packet is ranked once, as it comes; a flow's ranks never fall while it has
//! anything queued, which keeps its packets in order; and a full buffer gives up
//! the packet at the tail of the queue, which may be the one that just came (`LAS
//! section 5.2`). A lost packet stays counted.

use super::flow_state::Remembered;
use super::ranked::RankedQueue;
use super::{Backlog, LossReason, Losses, Memory};
use crate::buffer::Buffer;
use crate::packet::Packet;
use crate::units::Time;

/// Packets by rank `R`, and what is known of each flow's service as `S`.
#[derive(Debug)]
pub(crate) struct AttainedQueue<R, S> {
    buffer: Buffer,
    queue: RankedQueue<R>,
    attained: Remembered<S>,
}

impl<R: Copy + Ord, S: Default> AttainedQueue<R, S> {
    /// An empty queue that holds at most `buffer` and remembers flows as
    /// `memory` says; the hash of its flow table depends on `seed`.
    pub(crate) fn new(memory: Memory, buffer: Buffer, seed: u64) -> AttainedQueue<R, S> {
        let attained = Remembered::new(memory, seed);
        AttainedQueue { buffer, queue: RankedQueue::new(), attained }
    }

    /// Holds at most `buffer` from `now` on, and remembers flows as `memory` says.
    pub(crate) fn reconfigure(&mut self, now: Time, memory: Memory, buffer: Buffer) {
        self.attained.set_memory(now, memory);
        self.buffer = buffer;
    }

    /// Takes in a packet; `count` says its rank and counts it for its flow.
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        losses: &mut Losses,
        count: impl FnOnce(&mut S) -> R,
    ) {
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queue.backlog());
        let (flow, attained) = self.attained.join(now, &packet.flow);
        self.queue.insert(count(attained), packet, flow);
        while !room.holds(self.queue.backlog()) {
            let Some(victim) = self.queue.pop_last() else { return };
            self.attained.leave(now, victim.flow);
            losses.push_out(victim.packet, &packet);
        }
    }

    /// Takes out the packet to serve next.
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<Packet> {
        let next = self.queue.pop_first()?;
        self.attained.leave(now, next.flow);
        Some(next.packet)
    }

    /// What is queued.
    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// The number of flows that are remembered.
    pub(crate) fn flows_tracked(&self) -> usize {
        self.attained.len()
    }
}
