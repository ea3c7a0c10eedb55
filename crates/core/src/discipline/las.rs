//! LAS, least attained service: the flow that has had least goes first.
//!
//! A packet's rank is the number of bytes of its flow that arrived before it (`LAS
//! section 7`); packets leave by ascending rank, equal ones in order of arrival.
//! The first packets of a flow therefore pass all others, and a long flow waits
//! until all others have had as much. No threshold is needed, but younger flows
//! starve a flow that never ends, and every flow needs a counter, which is
//! forgotten some time after the flow falls silent.
//!
//! Within a flow, ranks never fall while the flow has anything queued, so its
//! packets stay in order. The cost is O(log n) per packet in the number of queued
//! packets.

use super::attained::AttainedQueue;
use super::{Backlog, Discipline, Losses, Memory};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::Settings;
use crate::units::{Bytes, Time};

/// The registry's entry for [`Las`].
pub const ENTRY: Entry = Entry {
    name: "las",
    summary: "least attained service: ascending bytes that the packet's flow has sent so far",
    source: "LAS section 7",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[Memory::SWEEP, Memory::IDLE],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        Box::new(Las::new(Memory::from_settings(settings), buffer, seed))
    },
};

/// A queue by attained service of each packet's flow.
#[derive(Debug)]
pub struct Las {
    /// By `S_f`, the bytes that arrived of each flow.
    queue: AttainedQueue<Bytes, Bytes>,
}

impl Las {
    /// An empty queue that holds at most `buffer` and remembers flows as
    /// `memory` says; the hash of its flow table depends on `seed`.
    #[must_use]
    pub fn new(memory: Memory, buffer: Buffer, seed: u64) -> Las {
        Las { queue: AttainedQueue::new(memory, buffer, seed) }
    }
}

impl Discipline for Las {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.queue.enqueue(now, packet, losses, |attained| {
            let rank = *attained;
            *attained += packet.size;
            rank
        });
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.queue.dequeue(now)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.queue.reconfigure(now, Memory::from_settings(settings), buffer);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.queue.flows_tracked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::LossReason;
    use crate::discipline::trial::Trial;
    use crate::units::Span;

    fn las(packets: u32) -> Trial<Las> {
        Trial::new(Las::new(Memory::default(), Buffer::packets(packets), 1))
    }

    #[test]
    fn serves_by_attained_service_then_by_arrival() {
        let mut trial = las(10);
        // Ranks: 0, 1500, 0, 40, 3000, 80.
        trial.arrive_all([('a', 1_500), ('a', 1_500), ('b', 40), ('b', 40), ('a', 1), ('b', 1)]);
        assert_eq!(trial.drain(), [0, 2, 3, 5, 1, 4]);
    }

    #[test]
    fn a_full_buffer_gives_up_the_tail_which_may_be_the_arriving_packet() {
        let mut trial = las(2);
        trial.arrive_all([('a', 100), ('a', 100), ('b', 100)]);
        assert_eq!(trial.lost(), [(1, LossReason::PushedOut)]);
        // Lost bytes stay counted: the next packet of `a` ranks at 200.
        trial.arrive_all([('a', 100), ('b', 100)]);
        assert_eq!(trial.lost(), [(3, LossReason::Refused), (4, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0, 2]);
    }

    #[test]
    fn a_buffer_in_bytes_gives_up_as_many_as_it_takes_but_nothing_for_a_giant() {
        let buffer = Buffer::bytes(Bytes(1_000));
        let mut trial = Trial::new(Las::new(Memory::default(), buffer, 1));
        trial.arrive_all([('a', 300), ('a', 300), ('a', 300), ('b', 700)]);
        assert_eq!(trial.lost(), [(2, LossReason::PushedOut), (1, LossReason::PushedOut)]);
        trial.arrive('c', 1_001);
        assert_eq!(trial.lost(), [(4, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0, 3]);
    }

    #[test]
    fn an_idle_flow_is_forgotten_at_the_sweep_and_starts_afresh() {
        let mut trial = las(10);
        trial.arrive_all([('a', 1_500), ('b', 1_500)]);
        assert_eq!(trial.drain(), [0, 1]);
        trial.now = Time::ZERO + Span::seconds(29);
        trial.arrive('b', 1_500);
        assert_eq!(trial.discipline.flows_tracked(), 2);
        trial.now = Time::ZERO + Span::seconds(34);
        // The sweep at 30 s has forgotten `a`, idle since 0 s, but not `b`.
        trial.arrive_all([('b', 1), ('a', 1)]);
        assert_eq!(trial.discipline.flows_tracked(), 2);
        assert_eq!(trial.drain(), [4, 2, 3]);
    }

    #[test]
    fn a_starved_flow_is_not_forgotten_while_it_has_a_packet_queued() {
        let mut trial = las(10);
        trial.arrive_all([('a', 1_500), ('a', 1_500)]);
        assert_eq!(trial.send(), Some(0));
        trial.now = Time::FAR_FUTURE;
        trial.arrive_all([('b', 40), ('a', 40)]);
        assert_eq!(trial.drain(), [2, 1, 3], "3 must not overtake 1");
    }
}
