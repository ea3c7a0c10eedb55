//! SFQ, stochastic fairness queueing: round robin without a table of flows.
//!
//! There is a fixed number of FIFO queues; a flow's packets join the queue to which
//! it hashes (McKenney 1990). Flows that hash to the same queue share its turn,
//! which is the price for memory that does not depend on the number of flows. The
//! queues that are not empty are served by deficit round robin, a quantum at a
//! time, as in Linux: with the round robin of packets that McKenney 1990 describes,
//! flows of large packets would get more. A full buffer takes the last packet of
//! the longest queue, which may be the one that just came.
//!
//! The hash depends on the seed and stays the same for the whole run. Changing it
//! every few seconds, so that no two flows share a queue for long, is part of
//! McKenney 1990, but lets later packets of a flow overtake earlier ones; more
//! queues do better. The longest queue is the one with the most bytes, in which
//! shares are counted here, not the one with the most packets. A queue has no limit
//! of its own: there is only the buffer.
//!
//! The cost is O(1) per packet where packets are no larger than the quantum;
//! finding the queue to lose from costs O(log n) in the number of queues in use,
//! once there have been losses.

use super::deficits::DeficitRoundRobin;
use super::drr::QUANTUM;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::FlowHash;
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Time};

/// The registry's entry for [`Sfq`].
pub const ENTRY: Entry = Entry {
    name: "sfq",
    summary: "stochastic fairness queueing: round robin over queues that flows are hashed to",
    source: "McKenney 1990",
    drops: Drops::WhenFull,
    parameters: &[QUEUES, QUANTUM],
    fixed: &[QUEUES],
    build: |settings, Place { buffer, .. }, seed| {
        Box::new(Sfq::new(settings.count(QUEUES.name), settings.bytes(QUANTUM.name), buffer, seed))
    },
};

/// As many as Linux has.
const QUEUES: Parameter = Parameter {
    name: "queues",
    help: "the number of queues that flows are hashed to",
    kind: Kind::Count { least: 1, most: 65_536 },
    default: "1024",
};

/// A queue for each value of a hash, served in turn.
#[derive(Debug)]
pub struct Sfq {
    count: u32,
    buffer: Buffer,
    hash: FlowHash,
    queues: DeficitRoundRobin,
}

impl Sfq {
    /// An empty queue that holds at most `buffer` and puts flows into `count`
    /// queues, at least one, by a hash that depends on `seed`; each adds
    /// `quantum`, at least a byte, in its turn.
    #[must_use]
    pub fn new(count: u32, quantum: Bytes, buffer: Buffer, seed: u64) -> Sfq {
        let (hash, queues) = (FlowHash::new(seed), DeficitRoundRobin::new(quantum));
        Sfq { count, buffer, hash, queues }
    }
}

impl Discipline for Sfq {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queues.backlog());
        self.queues.push(self.hash.bucket(&packet.flow, self.count), packet);
        while !room.holds(self.queues.backlog()) {
            let Some((_, victim)) = self.queues.pop_last_of_fattest() else { return };
            losses.push_out(victim, &packet);
        }
    }

    fn dequeue(&mut self, _now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.queues.pop_next().map(|(_, packet)| packet)
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.queues.set_quantum(settings.bytes(QUANTUM.name));
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    /// The number of queues in use: SFQ does not know flows.
    fn flows_tracked(&self) -> usize {
        self.queues.backlogged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;

    fn sfq(count: u32, packets: u32) -> Trial<Sfq> {
        Trial::new(Sfq::new(count, Bytes(1_500), Buffer::packets(packets), 1))
    }

    #[test]
    fn flows_in_queues_of_their_own_take_turns_by_bytes() {
        let mut trial = sfq(65_536, 20);
        trial.arrive_all([('a', 1_500), ('a', 1_500), ('a', 1_500)]);
        trial.arrive_all([('b', 500), ('b', 500), ('b', 500), ('b', 500)]);
        assert_eq!(trial.discipline.flows_tracked(), 2);
        assert_eq!(trial.drain(), [0, 3, 4, 5, 1, 6, 2]);
    }

    #[test]
    fn flows_in_one_queue_leave_as_they_came() {
        let mut trial = sfq(1, 20);
        trial.arrive_all([('a', 1_500), ('b', 1_500), ('a', 40), ('c', 40)]);
        assert_eq!(trial.discipline.flows_tracked(), 1);
        assert_eq!(trial.drain(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_full_buffer_takes_from_the_end_of_the_longest_queue() {
        let mut trial = sfq(65_536, 3);
        trial.arrive_all([('a', 500), ('a', 500), ('b', 900), ('c', 40), ('b', 200)]);
        // `a` has 1 000 bytes; then `b` has 1 100 with the packet that arrives.
        assert_eq!(trial.lost(), [(1, LossReason::PushedOut), (4, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0, 2, 3]);
    }
}
