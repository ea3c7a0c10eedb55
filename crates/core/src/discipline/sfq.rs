//! SFQ, stochastic fairness queueing: round robin without a table of flows.
//!
//! There is a fixed number of FIFO queues; a flow's packets join the queue to which
//! it hashes (McKenney 1990). Flows that hash to the same queue share its turn,
//! which is the price for memory that does not depend on the number of flows. A turn
//! is a quantum of bytes in both forms: with the round robin of packets that McKenney
//! 1990 describes, flows of large packets would get more. A full buffer takes the last
//! packet of the longest queue, which may be the one that just came.
//!
//! The forms differ in this (Linux 7.3: `sch_sfq`):
//!
//! - In Linux a queue sends until its turn is overdrawn (`allotments.rs`); in the other
//!   form it sends only what its turn pays for (`deficits.rs`, Shreedhar 1996).
//! - The longest queue is that with the most packets in Linux, and in the other form
//!   that with the most bytes, in which shares are counted.
//! - Linux has at most 128 queues in use (`flows`), of at most 127 packets each
//!   (`depth`), and refuses what comes beyond; in the other form there is only the
//!   buffer.
//!
//! The hash depends on the seed and stays the same for the whole run, as in Linux unless
//! it is told to `perturb`. Changing it every few seconds, so that no two flows share a
//! queue for long, is part of McKenney 1990, but lets later packets of a flow overtake
//! earlier ones; more queues do better. Linux's options to drop at the head and to run
//! RED in each queue are off by default and left out.
//!
//! The cost is O(1) per packet where packets are no larger than the quantum;
//! finding the queue to lose from costs O(log n) in the number of queues in use,
//! once there have been losses.

use super::allotments::Allotments;
use super::deficits::DeficitRoundRobin;
use super::drr::QUANTUM;
use super::form::Form;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::FlowHash;
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::Time;

/// The registry's entry for [`Sfq`].
pub const ENTRY: Entry = Entry {
    name: "sfq",
    summary: "stochastic fairness queueing: round robin over queues that flows are hashed to",
    source: "Linux 7.3, McKenney 1990",
    linux: Some("sfq"),
    drops: Drops::WhenFull,
    parameters: &[Form::OR_PAPER, QUEUES, QUANTUM, FLOWS, DEPTH],
    fixed: &[Form::OR_PAPER, QUEUES],
    build: |settings, Place { buffer, .. }, seed| Box::new(Sfq::new(settings, buffer, seed)),
};

/// As many as Linux has (`divisor`).
const QUEUES: Parameter = Parameter {
    name: "queues",
    help: "the number of queues that flows are hashed to",
    kind: Kind::Count { least: 1, most: 65_536 },
    default: "1024",
};

/// `SFQ_DEFAULT_FLOWS`.
const FLOWS: Parameter = Parameter {
    name: "flows",
    help: "in Linux's form, the most queues that are in use at a time",
    kind: Kind::Count { least: 1, most: 65_408 },
    default: "128",
};

/// `SFQ_MAX_DEPTH`.
const DEPTH: Parameter = Parameter {
    name: "depth",
    help: "in Linux's form, the most packets of a queue",
    kind: Kind::Count { least: 1, most: 127 },
    default: "127",
};

/// The queues of either form.
#[derive(Debug)]
enum Queues {
    Linux(Allotments),
    Paper(DeficitRoundRobin),
}

/// A queue for each value of a hash, served in turn.
#[derive(Debug)]
pub struct Sfq {
    count: u32,
    buffer: Buffer,
    hash: FlowHash,
    queues: Queues,
}

impl Sfq {
    /// An empty queue that holds at most `buffer`; which flow hashes to which queue
    /// depends on `seed`.
    fn new(settings: &Settings, buffer: Buffer, seed: u64) -> Sfq {
        let [flows, depth] = [FLOWS, DEPTH].map(|parameter| settings.count(parameter.name));
        let quantum = settings.bytes(QUANTUM.name);
        let queues = match Form::from_settings(settings) {
            Form::Linux => Queues::Linux(Allotments::new(quantum, flows, depth)),
            Form::Published => Queues::Paper(DeficitRoundRobin::new(quantum)),
        };
        Sfq { count: settings.count(QUEUES.name), buffer, hash: FlowHash::new(seed), queues }
    }
}

impl Discipline for Sfq {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        let queue = self.hash.bucket(&packet.flow, self.count);
        let has_room = match &self.queues {
            Queues::Linux(queues) => queues.has_room(queue),
            Queues::Paper(_) => true,
        };
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !has_room || !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.backlog());
        match &mut self.queues {
            Queues::Linux(queues) => queues.push(queue, packet),
            Queues::Paper(queues) => queues.push(queue, packet),
        }
        while !room.holds(self.backlog()) {
            let victim = match &mut self.queues {
                Queues::Linux(queues) => queues.pop_last_of_longest(),
                Queues::Paper(queues) => queues.pop_last_of_fattest().map(|(_, packet)| packet),
            };
            let Some(victim) = victim else { return };
            losses.push_out(victim, &packet);
        }
    }

    fn dequeue(&mut self, _now: Time, _losses: &mut Losses) -> Option<Packet> {
        match &mut self.queues {
            Queues::Linux(queues) => queues.pop_next(),
            Queues::Paper(queues) => queues.pop_next().map(|(_, packet)| packet),
        }
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        let quantum = settings.bytes(QUANTUM.name);
        match &mut self.queues {
            Queues::Linux(queues) => {
                queues.set(quantum, settings.count(FLOWS.name), settings.count(DEPTH.name));
            }
            Queues::Paper(queues) => queues.set_quantum(quantum),
        }
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        match &self.queues {
            Queues::Linux(queues) => queues.backlog(),
            Queues::Paper(queues) => queues.backlog(),
        }
    }

    /// The number of queues in use: SFQ does not know flows.
    fn flows_tracked(&self) -> usize {
        match &self.queues {
            Queues::Linux(queues) => queues.backlogged(),
            Queues::Paper(queues) => queues.backlogged(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;

    fn sfq(given: &[(&str, &str)], packets: u32) -> Trial<Sfq> {
        let settings = ENTRY.settings(given).unwrap();
        Trial::new(Sfq::new(&settings, Buffer::packets(packets), 1))
    }

    const APART: (&str, &str) = ("queues", "65536");
    const PAPER: (&str, &str) = ("form", "paper");

    #[test]
    fn flows_in_queues_of_their_own_take_turns_by_bytes() {
        for given in [&[APART][..], &[APART, PAPER]] {
            let mut trial = sfq(given, 20);
            trial.arrive_all([('a', 1_500), ('a', 1_500), ('a', 1_500)]);
            trial.arrive_all([('b', 500), ('b', 500), ('b', 500), ('b', 500)]);
            assert_eq!(trial.discipline.flows_tracked(), 2);
            assert_eq!(trial.drain(), [0, 3, 4, 5, 1, 6, 2]);
        }
    }

    #[test]
    fn in_linux_a_packet_may_overdraw_the_turn_and_in_the_other_form_it_waits() {
        for (form, order) in [("linux", [0, 1, 4, 2, 3]), ("paper", [0, 4, 1, 2, 3])] {
            let mut trial = sfq(&[APART, ("form", form)], 20);
            trial.arrive_all([('a', 1_000); 4]);
            trial.arrive('b', 1_500);
            // Linux: `a` has 500 left after one packet, which pays for another, and owes
            // 500 of its next turn. Deficits: 1 waits for 2 000, and then 2 for 1 000.
            assert_eq!(trial.drain(), order, "{form}");
        }
    }

    #[test]
    fn flows_in_one_queue_leave_as_they_came() {
        for form in ["linux", "paper"] {
            let mut trial = sfq(&[("queues", "1"), ("form", form)], 20);
            trial.arrive_all([('a', 1_500), ('b', 1_500), ('a', 40), ('c', 40)]);
            assert_eq!(trial.discipline.flows_tracked(), 1);
            assert_eq!(trial.drain(), [0, 1, 2, 3]);
        }
    }

    #[test]
    fn in_the_papers_form_a_full_buffer_takes_from_the_end_of_the_queue_of_most_bytes() {
        let mut trial = sfq(&[APART, PAPER], 3);
        trial.arrive_all([('a', 500), ('a', 500), ('b', 900), ('c', 40), ('b', 200)]);
        // `a` has 1 000 bytes; then `b` has 1 100 with the packet that arrives.
        assert_eq!(trial.lost(), [(1, LossReason::PushedOut), (4, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0, 2, 3]);
    }

    #[test]
    fn in_linux_a_full_buffer_takes_from_the_end_of_the_queue_of_most_packets() {
        let mut trial = sfq(&[APART], 3);
        trial.arrive_all([('a', 40), ('a', 40), ('b', 1_500), ('c', 40)]);
        assert_eq!(trial.lost(), [(1, LossReason::PushedOut)]);
        // All have one packet: that of the queue whose turn it is, which is `a`.
        trial.arrive('d', 40);
        assert_eq!(trial.lost(), [(0, LossReason::PushedOut)]);
        // `c` and `d` have as many: the one whose length changed last.
        trial.arrive_all([('d', 40)]);
        assert_eq!(trial.lost(), [(5, LossReason::Refused)]);
        assert_eq!(trial.drain(), [2, 3, 4]);
    }

    #[test]
    fn in_linux_queues_and_their_number_are_limited() {
        let mut trial = sfq(&[APART, ("flows", "2"), ("depth", "2")], 10);
        trial.arrive_all([('a', 40), ('a', 40), ('a', 40), ('b', 40), ('c', 40)]);
        assert_eq!(trial.lost(), [2, 4].map(|handle| (handle, LossReason::Refused)));
        // `a` leaves with its last packet.
        assert_eq!([trial.send(), trial.send()], [Some(0), Some(1)]);
        trial.arrive('c', 40);
        assert_eq!(trial.lost(), []);
        assert_eq!(trial.drain(), [3, 5]);
    }
}
