//! FQ-PIE: the queues and turns of FQ-CoDel, with PIE in place of CoDel.
//!
//! Flows are hashed into queues, which take turns by deficit round robin; a queue
//! that was idle goes first (`RFC 8290 section 4`, `sparse_first.rs`). Each queue
//! has a PIE controller of its own (`RFC 8033`, see [`pie`](super::pie)), so a flow
//! is signalled for its own delay and no other's. No RFC describes the combination:
//! Linux and ns-3 have it, and where they differ this discipline follows RFC 8290.
//!
//! - A controller stays with its queue even while the queue is empty, and its
//!   updates continue. They are made up for when the queue is next used.
//! - A full buffer accepts the arriving packet and then loses half of the packets
//!   of the queue with the most bytes, at most 64, from its head (`RFC 8290 section
//!   4.1`; ns-3 does the same). Linux refuses the arriving packet instead.
//!
//! The cost is O(1) per packet where packets are no larger than the quantum, and
//! O(log n) in the number of queues once there have been losses.

use super::flow_queues::FlowQueues;
use super::pie::{Controller, Tuning};
use super::sparse_first::SparseFirst;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::FlowHash;
use crate::packet::Packet;
use crate::random::Stream;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Time};

/// The registry's entry for [`FqPie`].
pub const ENTRY: Entry = Entry {
    name: "fq-pie",
    summary: "fair queues, idle ones first, each under a PIE controller of its own",
    source: "RFC 8033, RFC 8290",
    drops: Drops::Early,
    parameters: &[
        Tuning::TARGET,
        Tuning::UPDATE,
        Tuning::BURST,
        Tuning::ALPHA,
        Tuning::BETA,
        Tuning::ECN_THRESHOLD,
        QUANTUM,
        QUEUES,
    ],
    fixed: &[QUEUES],
    build: |settings, Place { buffer, .. }, seed| {
        let tuning = Tuning::from_settings(settings);
        let (quantum, queues) = (settings.bytes(QUANTUM.name), settings.count(QUEUES.name));
        Box::new(FqPie::new(tuning, quantum, queues, buffer, seed))
    },
};

/// An Ethernet frame (`RFC 8290 section 5.2.4`).
const QUANTUM: Parameter = Parameter {
    name: "quantum",
    help: "what a queue may send in each turn; at least the largest packet for O(1)",
    kind: Kind::Bytes { least: Bytes(1), most: Bytes(1_000_000_000) },
    default: "1514 B",
};

/// Collisions are rare up to a hundred flows (`RFC 8290 section 5.2.5`).
const QUEUES: Parameter = Parameter {
    name: "queues",
    help: "number of queues that flows are hashed into",
    kind: Kind::Count { least: 1, most: 65_536 },
    default: "1024",
};

/// The most packets that are lost at once (`RFC 8290 section 4.1`).
const LARGEST_BATCH: u32 = 64;

/// Queues of flows, with a PIE controller each.
#[derive(Debug)]
pub struct FqPie {
    tuning: Tuning,
    quantum: i128,
    count: u32,
    buffer: Buffer,
    hash: FlowHash,
    random: Stream,
    queues: FlowQueues<Controller>,
    turns: SparseFirst,
}

impl FqPie {
    /// An empty buffer of at most `buffer`, for flows that are hashed into
    /// `queues`, and served by `quantum`, which are at least one. Hash and draws
    /// depend on `seed`.
    #[must_use]
    pub fn new(tuning: Tuning, quantum: Bytes, queues: u32, buffer: Buffer, seed: u64) -> FqPie {
        FqPie {
            tuning,
            quantum: quantum.0.into(),
            count: queues,
            buffer,
            hash: FlowHash::new(seed),
            random: Stream::new(seed, ENTRY.name),
            queues: FlowQueues::new(),
            turns: SparseFirst::default(),
        }
    }

    /// Drops packets at the heads of the longest queues until the rest fits into
    /// the buffer.
    fn push_out(&mut self, now: Time, room: Buffer, arriving: &Packet, losses: &mut Losses) {
        while !room.holds(self.queues.backlog()) {
            let Some(queue) = self.queues.fattest() else { return };
            let batch = (self.queues.packets_of(queue) / 2).clamp(1, LARGEST_BATCH);
            for _ in 0..batch {
                let Some(victim) = self.queues.pop_first(queue) else { return };
                losses.push_out(victim, arriving);
            }
            if self.queues.is_empty(queue) {
                let controller = self.queues.state(queue);
                controller.advance(&self.tuning, now);
                controller.emptied();
            }
        }
    }
}

impl Discipline for FqPie {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queues.backlog());
        let queue = self.hash.bucket(&packet.flow, self.count);
        let queued = self.queues.bytes_of(queue);
        let controller = self.queues.state(queue);
        controller.advance(&self.tuning, now);
        let random = &mut self.random;
        let admitted = controller.admit(&self.tuning, packet, queued, random, losses);
        let Some(packet) = admitted else { return };
        self.queues.push(queue, packet);
        self.turns.arrived(queue, || self.quantum);
        self.push_out(now, room, &packet, losses);
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        loop {
            let queue = self.turns.next(|_| self.quantum)?;
            let Some(packet) = self.queues.pop_first(queue) else {
                self.turns.found_empty(queue);
                continue;
            };
            self.turns.spend(queue, packet.size.0.into());
            let is_empty = self.queues.is_empty(queue);
            let controller = self.queues.state(queue);
            controller.advance(&self.tuning, now);
            if is_empty {
                controller.emptied();
            } else {
                controller.sent(now, &packet);
            }
            return Some(packet);
        }
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        for controller in self.queues.states() {
            controller.advance(&self.tuning, now);
        }
        self.tuning = Tuning::from_settings(settings);
        self.quantum = settings.bytes(QUANTUM.name).0.into();
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    /// Queues that have turns: those with packets, and a few that were just emptied.
    fn flows_tracked(&self) -> usize {
        self.turns.active()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;
    use crate::units::Span;

    fn fq_pie(packets: u32) -> Trial<FqPie> {
        let tuning = Tuning::from_settings(&ENTRY.settings(&[]).unwrap());
        Trial::new(FqPie::new(tuning, Bytes(1_500), 1_024, Buffer::packets(packets), 1))
    }

    #[test]
    fn flows_take_turns_and_one_that_was_idle_goes_first() {
        let mut trial = fq_pie(300);
        trial.arrive_all([('a', 1_500), ('a', 1_500), ('a', 1_500), ('b', 1_500), ('b', 1_500)]);
        assert_eq!([trial.send(), trial.send(), trial.send()], [Some(0), Some(3), Some(1)]);
        trial.arrive('c', 40);
        assert_eq!(trial.drain(), [5, 4, 2]);
        assert_eq!(trial.discipline.flows_tracked(), 0);
    }

    #[test]
    fn a_flow_is_dropped_for_its_own_delay_only() {
        let mut trial = fq_pie(100_000);
        // Two packets leave each millisecond: the one that comes of `b`, and one
        // of the 20 that come of `a`.
        let mut lost = Vec::new();
        for _ in 0..2_000 {
            trial.arrive_all([('a', 1_000); 20]);
            trial.arrive('b', 100);
            trial.send();
            trial.send();
            trial.now += Span::millis(1);
            lost.extend(trial.lost());
        }
        // Every 21st packet, from number 20 on, is of `b`.
        assert!(lost.len() > 100);
        assert!(lost.iter().all(|loss| loss.0 % 21 != 20 && loss.1 == LossReason::Early));
    }

    #[test]
    fn a_full_buffer_loses_half_of_the_longest_queue_from_its_head() {
        let mut trial = fq_pie(10);
        trial.arrive_all([('b', 1_500), ('b', 1_500)]);
        trial.arrive_all([('a', 1_000); 8]);
        assert_eq!(trial.lost(), []);
        trial.arrive('b', 100);
        // `a` has 8 000 bytes in packets 2 to 9.
        let lost = [2, 3, 4, 5].map(|handle| (handle, LossReason::PushedOut));
        assert_eq!(trial.lost(), lost);
        // A lone packet is lost when its queue is the longest.
        let mut trial = fq_pie(1);
        trial.arrive_all([('a', 100), ('b', 200)]);
        assert_eq!(trial.lost(), [(1, LossReason::Refused)]);
    }

    #[test]
    fn no_more_than_64_packets_are_lost_at_once() {
        let mut trial = fq_pie(200);
        trial.arrive_all([('a', 1_000); 201]);
        assert_eq!(trial.lost().len(), 64);
    }
}
