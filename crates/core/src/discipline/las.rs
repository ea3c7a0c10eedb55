//! LAS, least attained service: who has had least goes first.
//!
//! A packet's rank is the number of bytes of its flow that arrived before it
//! (`LAS section 7`); packets leave by ascending rank, equal ones in order of
//! arrival. The first packets of a flow therefore pass everything, and a long
//! flow waits until all others have had as much. No threshold is needed, but a
//! flow that never ends is starved by younger ones, and every flow needs a
//! counter, which is forgotten some time after the flow falls silent.
//!
//! Within a flow ranks never fall while the flow has anything queued, so its
//! packets stay in order. O(log n) per packet in the number of queued packets.

use super::flow_state::Remembered;
use super::ranked::RankedQueue;
use super::{Backlog, Discipline, LossReason, Losses, Memory};
use crate::buffer::Buffer;
use crate::packet::Packet;
use crate::registry::Entry;
use crate::units::{Bytes, Time};

/// The registry's entry for [`Las`].
pub const ENTRY: Entry = Entry {
    name: "las",
    summary: "least attained service: ascending bytes that the packet's flow has sent so far",
    source: "LAS section 7",
    parameters: &[Memory::SWEEP, Memory::IDLE],
    build: |settings, buffer, seed| {
        Box::new(Las::new(Memory::from_settings(settings), buffer, seed))
    },
};

/// A queue by attained service of each packet's flow.
#[derive(Debug)]
pub struct Las {
    buffer: Buffer,
    queue: RankedQueue<Bytes>,
    /// Bytes that arrived of each flow: `S_f`.
    attained: Remembered<Bytes>,
}

impl Las {
    /// An empty queue that holds at most `buffer` and remembers flows as
    /// `memory` says; the hash of its flow table depends on `seed`.
    #[must_use]
    pub fn new(memory: Memory, buffer: Buffer, seed: u64) -> Las {
        Las { buffer, queue: RankedQueue::new(), attained: Remembered::new(memory, seed) }
    }

    /// A full buffer gives up the packet at the tail of the queue, which may be
    /// the one that just came (`LAS section 5.2`). Its bytes stay counted.
    fn push_out(&mut self, now: Time, arriving: &Packet, losses: &mut Losses) {
        while !self.buffer.holds(self.queue.backlog()) {
            let Some(victim) = self.queue.pop_last() else { return };
            self.attained.leave(now, victim.flow);
            losses.push_out(victim.packet, arriving);
        }
    }
}

impl Discipline for Las {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let (flow, attained) = self.attained.join(now, &packet.flow);
        let rank = *attained;
        *attained += packet.size;
        self.queue.insert(rank, packet, flow);
        self.push_out(now, &packet, losses);
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        let next = self.queue.pop_first()?;
        self.attained.leave(now, next.flow);
        Some(next.packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.attained.len()
    }
}
