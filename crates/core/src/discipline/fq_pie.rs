//! FQ-PIE: the queues and turns of FQ-CoDel, with PIE in place of CoDel.
//!
//! Flows are hashed into queues, which take turns by deficit round robin; a queue
//! that was idle goes first (`RFC 8290 section 4`, `sparse_first.rs`). Each queue
//! has a PIE controller of its own (`pie_law.rs`), so a flow is signalled for its own
//! delay and no other's. A controller stays with its queue even while the queue is
//! empty, and its updates continue; they are made up for when the queue is next used.
//!
//! No RFC describes the combination. Linux 7.3 (`sch_fq_pie`) and the form after RFC
//! 8033 and RFC 8290, which ns-3 has too, differ as [`pie`](super::pie) does, and in:
//!
//! - The full buffer. In Linux it refuses the arriving packet. In the other form it
//!   accepts the packet and then loses half of the packets of the queue with the most
//!   bytes, at most 64, from its head (`RFC 8290 section 4.1`).
//! - A new queue that turns out to be empty while there are no old ones. In Linux it
//!   is forgotten at once, and may soon be new again; in the RFC it becomes old.
//!
//! Linux's limit on memory is left out: `sch_fq_pie` counts what exceeds it and drops
//! nothing.
//!
//! The cost is O(1) per packet where packets are no larger than the quantum, and
//! O(log n) in the number of queues once there have been losses.

use super::flow_queues::FlowQueues;
use super::form::Form;
use super::pie_law::Controller;
use super::pie_tuning::Tuning;
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
    source: "Linux 7.3, RFC 8033, RFC 8290",
    linux: Some("fq_pie"),
    drops: Drops::Early,
    parameters: &[
        Form::OR_RFC,
        Tuning::TARGET,
        Tuning::UPDATE,
        Tuning::BURST,
        Tuning::ALPHA,
        Tuning::BETA,
        Tuning::ECN,
        Tuning::ECN_THRESHOLD,
        QUANTUM,
        QUEUES,
    ],
    fixed: &[Form::OR_RFC, QUEUES],
    build: |settings, Place { buffer, .. }, seed| {
        let tuning = Tuning::from_settings(settings);
        let (quantum, queues) = (settings.bytes(QUANTUM.name), settings.count(QUEUES.name));
        Box::new(FqPie::new(tuning, quantum, queues, buffer, seed))
    },
};

/// The largest packet (`RFC 8290 section 5.2.4`; `psched_mtu` in Linux), of which
/// sizes do not include the header of the link here.
const QUANTUM: Parameter = Parameter {
    name: "quantum",
    help: "what a queue may send in each turn; at least the largest packet for O(1)",
    kind: Kind::Bytes { least: Bytes(1), most: Bytes(1_000_000_000) },
    default: "1500 B",
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
            turns: SparseFirst::new(tuning.form),
        }
    }

    /// Drops packets at the heads of the longest queues until the rest fits into
    /// the buffer.
    fn push_out(&mut self, now: Time, room: Buffer, arriving: &Packet, losses: &mut Losses) {
        while !room.holds(self.queues.backlog()) {
            let Some(queue) = self.queues.fattest() else { return };
            let queued = self.queues.bytes_of(queue);
            self.queues.state(queue).advance(&self.tuning, now, queued);
            let batch = (self.queues.packets_of(queue) / 2).clamp(1, LARGEST_BATCH);
            for _ in 0..batch {
                let Some(victim) = self.queues.pop_first(queue) else { return };
                losses.push_out(victim, arriving);
            }
            if self.queues.is_empty(queue) {
                self.queues.state(queue).emptied();
            }
        }
    }
}

impl Discipline for FqPie {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let queue = self.hash.bucket(&packet.flow, self.count);
        let backlog = match self.tuning.form {
            Form::Linux => self.queues.backlog(),
            // Only a packet larger than the whole buffer is not let in at all.
            Form::Published => Backlog::default(),
        };
        let queued = self.queues.bytes_of(queue);
        let room = self.buffer.stretched_to(self.queues.backlog());
        let has_room = self.buffer.has_room(backlog, packet.size);
        let controller = self.queues.state(queue);
        controller.advance(&self.tuning, now, queued);
        if !has_room {
            controller.lost();
            return losses.push(packet, LossReason::Refused);
        }
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
            let queued = self.queues.bytes_of(queue);
            let Some(packet) = self.queues.pop_first(queue) else {
                self.turns.found_empty(queue);
                continue;
            };
            self.turns.spend(queue, packet.size.0.into());
            let left = self.queues.bytes_of(queue);
            let controller = self.queues.state(queue);
            controller.advance(&self.tuning, now, queued);
            controller.sent(&self.tuning, now, &packet, left);
            return Some(packet);
        }
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        let tuning = self.tuning;
        self.queues.each_state(|controller, queued| controller.advance(&tuning, now, queued));
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
        of_form("linux", packets)
    }

    fn of_form(form: &str, packets: u32) -> Trial<FqPie> {
        let tuning = Tuning::from_settings(&ENTRY.settings(&[("form", form)]).unwrap());
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
        for form in ["linux", "rfc"] {
            flood(form);
        }
    }

    fn flood(form: &str) {
        let mut trial = of_form(form, 100_000);
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
    fn in_linux_a_full_buffer_refuses() {
        let mut trial = fq_pie(2);
        trial.arrive_all([('a', 1_000), ('a', 1_000), ('b', 40)]);
        assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0, 1]);
    }

    #[test]
    fn in_the_rfc_a_full_buffer_loses_half_of_the_longest_queue_from_its_head() {
        let mut trial = of_form("rfc", 10);
        trial.arrive_all([('b', 1_500), ('b', 1_500)]);
        trial.arrive_all([('a', 1_000); 8]);
        assert_eq!(trial.lost(), []);
        trial.arrive('b', 100);
        // `a` has 8 000 bytes in packets 2 to 9.
        let lost = [2, 3, 4, 5].map(|handle| (handle, LossReason::PushedOut));
        assert_eq!(trial.lost(), lost);
        // A lone packet is lost when its queue is the longest.
        let mut trial = of_form("rfc", 1);
        trial.arrive_all([('a', 100), ('b', 200)]);
        assert_eq!(trial.lost(), [(1, LossReason::Refused)]);
    }

    #[test]
    fn no_more_than_64_packets_are_lost_at_once() {
        let mut trial = of_form("rfc", 200);
        trial.arrive_all([('a', 1_000); 201]);
        assert_eq!(trial.lost().len(), 64);
    }
}
