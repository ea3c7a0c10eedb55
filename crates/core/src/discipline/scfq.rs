//! SCFQ, self-clocked fair queueing: every backlogged flow gets an equal share.
//!
//! Each packet gets a finish tag `F = max(F_flow, v) + L`, where `F_flow` is the
//! tag of the flow's previous packet, `L` its size and `v` the tag of the packet in
//! service; packets leave by ascending tag, equal ones in order of arrival
//! (Golestani, INFOCOM 1994). `v` stands for the virtual time of fair queueing and
//! costs nothing to maintain. The service of two flows that are both backlogged
//! never differs by more than a packet of each. A packet that finds the buffer full
//! is refused, and leaves no trace in its flow's tag: the fair share of bandwidth
//! is not a fair share of the buffer (`EFD section 5.4`).
//!
//! All flows weigh the same, so a tag is a sum of packet sizes, an integer. A
//! flow's tag exceeds `v` only while its last packet is queued, so an entry is
//! needed exactly that long, and there are never more entries than queued packets.
//! Once the queue is empty, only `v` is left of the past, and it moves all later
//! tags by the same amount: it restarts from zero there, which orders packets as
//! the original's reset at the end of the last transmission does. 2^128 is more
//! than 2^64 packets of 2^64 bytes, so tags never overflow, even if the queue never
//! empties. The cost is O(log n) per packet.

use super::flow_state::Backlogged;
use super::ranked::RankedQueue;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::Settings;
use crate::units::Time;

/// The registry's entry for [`Scfq`].
pub const ENTRY: Entry = Entry {
    name: "scfq",
    summary: "self-clocked fair queueing: equal shares of the rate for all backlogged flows",
    source: "Golestani 1994",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[],
    fixed: &[],
    build: |_, Place { buffer, .. }, seed| Box::new(Scfq::new(buffer, seed)),
};

/// A finish tag: bytes of service per unit of weight.
type Tag = u128;

/// A queue by finish tags.
#[derive(Debug)]
pub struct Scfq {
    buffer: Buffer,
    queue: RankedQueue<Tag>,
    /// The tag of the last packet that arrived of each flow.
    last_tag: Backlogged<Tag>,
    /// `v`, the tag of the packet in service.
    virtual_time: Tag,
}

impl Scfq {
    /// An empty queue that holds at most `buffer`; the hash of its flow table
    /// depends on `seed`.
    #[must_use]
    pub fn new(buffer: Buffer, seed: u64) -> Scfq {
        let (queue, last_tag) = (RankedQueue::new(), Backlogged::new(seed));
        Scfq { buffer, queue, last_tag, virtual_time: 0 }
    }
}

impl Discipline for Scfq {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        if !self.buffer.has_room(self.queue.backlog(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let (flow, last_tag) = self.last_tag.join(&packet.flow);
        *last_tag = self.virtual_time.max(*last_tag) + Tag::from(packet.size.0);
        let tag = *last_tag;
        self.queue.insert(tag, packet, flow);
    }

    fn dequeue(&mut self, _now: Time, _losses: &mut Losses) -> Option<Packet> {
        let next = self.queue.pop_first()?;
        self.last_tag.leave(next.flow);
        self.virtual_time = if self.queue.backlog().packets == 0 { 0 } else { next.rank };
        Some(next.packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, Place { buffer, .. }: Place) {
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.last_tag.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;

    fn scfq(packets: u32) -> Trial<Scfq> {
        Trial::new(Scfq::new(Buffer::packets(packets), 1))
    }

    #[test]
    fn serves_by_finish_tag() {
        let mut trial = scfq(10);
        // Tags: 1500, 3000, 500, 1000, 1500 (after the first of `a`), 2000.
        trial.arrive_all([('a', 1_500), ('a', 1_500)]);
        trial.arrive_all([('b', 500); 4]);
        assert_eq!(trial.drain(), [2, 3, 0, 4, 5, 1]);
    }

    #[test]
    fn a_flow_that_returns_starts_at_the_tag_in_service() {
        let mut trial = scfq(10);
        trial.arrive_all([('a', 100); 4]);
        assert_eq!(trial.send(), Some(0));
        assert_eq!(trial.send(), Some(1));
        // v = 200: tags 300 and 400, each behind the packet of `a` with that tag.
        trial.arrive_all([('b', 100), ('b', 100)]);
        assert_eq!(trial.drain(), [2, 4, 3, 5]);
    }

    #[test]
    fn a_refused_packet_leaves_no_trace() {
        let mut trial = scfq(2);
        trial.arrive_all([('a', 100), ('b', 150), ('a', 100), ('c', 1)]);
        assert_eq!(trial.lost(), [(2, LossReason::Refused), (3, LossReason::Refused)]);
        assert_eq!(trial.discipline.flows_tracked(), 2);
        assert_eq!(trial.send(), Some(0));
        // Tag 100 + 60; were the refused packet counted, it would be 260.
        trial.arrive('a', 60);
        assert_eq!(trial.send(), Some(1));
        assert_eq!(trial.drain(), [4]);
    }
}
