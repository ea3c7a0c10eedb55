//! DRR, deficit round robin: equal shares of the rate at constant cost.
//!
//! Every flow with a packet queued has a FIFO queue and a turn in each round. A
//! turn adds the quantum to the flow's deficit, and the flow sends as long as its
//! next packet is within it; what is left carries over to the next turn, unless the
//! queue is empty, which ends the flow's entry (Shreedhar 1996). Over any interval
//! during which two flows are backlogged, their service differs by no more than the
//! quantum and a packet of each: one turn, and a deficit on either side, which is
//! always less than the packet for which it was too small. A flow that returns
//! starts without a deficit at the end of the round.
//!
//! A packet that finds the buffer full is refused, as in the first form of
//! Shreedhar 1996. Alternatively, the flow with the most bytes queued loses the
//! last of its packets, which may be the one that just came: then a flow that
//! floods the buffer takes nothing from the others.
//!
//! The cost is O(1) per packet where packets are no larger than the quantum;
//! finding the queue to lose from costs O(log n) in the number of flows, once there
//! have been losses.

use super::deficits::DeficitRoundRobin;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::{FlowId, FlowTable};
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Time};

/// The registry's entry for [`Drr`].
pub const ENTRY: Entry = Entry {
    name: "drr",
    summary: "deficit round robin: equal shares of the rate, a quantum at a time",
    source: "Shreedhar 1996",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[QUANTUM, FULL],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        let when_full = WhenFull::from_settings(settings);
        Box::new(Drr::new(settings.bytes(QUANTUM.name), when_full, buffer, seed))
    },
};

/// The largest packet on most links, so that every turn sends something.
pub(crate) const QUANTUM: Parameter = Parameter {
    name: "quantum",
    help: "what a turn adds to the allowance of its queue; at least the largest packet for O(1)",
    kind: Kind::Bytes { least: Bytes(1), most: Bytes(1_000_000_000) },
    default: "1500 B",
};

const FULL: Parameter = Parameter {
    name: "full",
    help: "a full buffer refuses the arriving packet, or the longest queue loses its last one",
    kind: Kind::Choice(&["refuse", LONGEST]),
    default: "refuse",
};

const LONGEST: &str = "longest";

/// What a full buffer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The arriving packet is lost.
    Refuse,
    /// The flow with the most bytes queued loses its last packet.
    LoseFromLongest,
}

impl WhenFull {
    fn from_settings(settings: &Settings) -> WhenFull {
        let longest = settings.choice(FULL.name) == LONGEST;
        if longest { WhenFull::LoseFromLongest } else { WhenFull::Refuse }
    }
}

/// A queue for each backlogged flow, served in turn.
#[derive(Debug)]
pub struct Drr {
    buffer: Buffer,
    when_full: WhenFull,
    /// One queue for each slot of the table.
    queues: DeficitRoundRobin,
    /// The flows that have a packet queued.
    flows: FlowTable<()>,
}

impl Drr {
    /// An empty queue that holds at most `buffer` and adds `quantum`, at least a
    /// byte, in each turn; the hash of its flow table depends on `seed`.
    #[must_use]
    pub fn new(quantum: Bytes, when_full: WhenFull, buffer: Buffer, seed: u64) -> Drr {
        let (queues, flows) = (DeficitRoundRobin::new(quantum), FlowTable::new(seed));
        Drr { buffer, when_full, queues, flows }
    }

    /// An entry dies with the last queued packet of its flow.
    fn forget_if_empty(&mut self, queue: u32) {
        if self.queues.is_empty(queue) {
            self.flows.remove(FlowId::at_slot(queue));
        }
    }
}

impl Discipline for Drr {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        let backlog = match self.when_full {
            WhenFull::Refuse => self.queues.backlog(),
            // Only a packet larger than the whole buffer is not let in at all.
            WhenFull::LoseFromLongest => Backlog::default(),
        };
        if !self.buffer.has_room(backlog, packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queues.backlog());
        let (flow, ()) = self.flows.entry(&packet.flow, || ());
        self.queues.push(flow.slot(), packet);
        while !room.holds(self.queues.backlog()) {
            let Some((queue, victim)) = self.queues.pop_last_of_fattest() else { return };
            self.forget_if_empty(queue);
            losses.push_out(victim, &packet);
        }
    }

    fn dequeue(&mut self, _now: Time, _losses: &mut Losses) -> Option<Packet> {
        let (queue, packet) = self.queues.pop_next()?;
        self.forget_if_empty(queue);
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.queues.set_quantum(settings.bytes(QUANTUM.name));
        self.when_full = WhenFull::from_settings(settings);
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.flows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;

    fn drr(quantum: u64, when_full: WhenFull, packets: u32) -> Trial<Drr> {
        Trial::new(Drr::new(Bytes(quantum), when_full, Buffer::packets(packets), 1))
    }

    #[test]
    fn a_turn_sends_what_the_deficit_pays_for() {
        let mut trial = drr(500, WhenFull::Refuse, 20);
        trial.arrive_all([('a', 200), ('a', 750), ('a', 20), ('b', 500), ('b', 500)]);
        trial.arrive_all([('c', 200), ('c', 600), ('c', 100)]);
        // Round 1: a sends 200 and keeps 300, b sends 500, c sends 200 and keeps
        // 300. Round 2: a has 800, sends 750 and 20; b sends 500; c has 800, sends all.
        assert_eq!(trial.drain(), [0, 3, 5, 1, 2, 4, 6, 7]);
    }

    #[test]
    fn a_packet_larger_than_the_quantum_waits_for_its_turns() {
        let mut trial = drr(100, WhenFull::Refuse, 20);
        // `a` can pay in its fourth turn, in which `b` has not had its own.
        trial.arrive_all([('a', 350), ('b', 100), ('b', 100), ('b', 100), ('b', 100)]);
        assert_eq!(trial.drain(), [1, 2, 3, 0, 4]);
    }

    #[test]
    fn gigantic_packets_and_a_tiny_quantum_take_no_more_time() {
        let mut trial = drr(1, WhenFull::Refuse, 20);
        trial.arrive_all([('a', u64::MAX), ('b', u64::MAX - 1), ('c', u64::MAX), ('d', u64::MAX)]);
        assert_eq!(trial.drain(), [1, 0, 2, 3]);
    }

    #[test]
    fn a_flow_that_returns_has_no_deficit_left() {
        let mut trial = drr(1_000, WhenFull::Refuse, 20);
        trial.arrive_all([('a', 1), ('b', 600), ('b', 600)]);
        assert_eq!(trial.send(), Some(0));
        // The 999 that `a` did not use are gone: 1 100 take two turns.
        trial.arrive_all([('a', 1_100)]);
        assert_eq!(trial.drain(), [1, 2, 3]);
    }

    #[test]
    fn a_full_buffer_refuses_without_a_trace_or_takes_from_the_longest_queue() {
        let arrivals = [('a', 100), ('a', 100), ('b', 150), ('c', 10), ('a', 100), ('b', 200)];
        let mut trial = drr(1_500, WhenFull::Refuse, 3);
        trial.arrive_all(arrivals);
        assert_eq!(trial.lost(), [3, 4, 5].map(|handle| (handle, LossReason::Refused)));
        assert_eq!(trial.discipline.flows_tracked(), 2);
        let mut trial = drr(1_500, WhenFull::LoseFromLongest, 3);
        trial.arrive_all(arrivals);
        // `a` has 200 bytes and loses 1; then with 200 again the arriving packet,
        // and `b` has 350 and loses the arriving one too.
        let lost = [(1, LossReason::PushedOut), (4, LossReason::Refused), (5, LossReason::Refused)];
        assert_eq!(trial.lost(), lost);
        assert_eq!(trial.discipline.flows_tracked(), 3);
        assert_eq!(trial.drain(), [0, 2, 3]);
    }

    #[test]
    fn a_flow_that_loses_all_it_has_loses_its_turn() {
        let mut trial = drr(100, WhenFull::LoseFromLongest, 2);
        // `a` saves up for 150 while `b` sends; then it is the longest.
        trial.arrive_all([('a', 150), ('b', 100)]);
        assert_eq!(trial.send(), Some(1));
        trial.arrive_all([('c', 10), ('d', 10)]);
        assert_eq!(trial.lost(), [(0, LossReason::PushedOut)]);
        trial.arrive('a', 150);
        assert_eq!(trial.lost(), [(4, LossReason::Refused)]);
        assert_eq!(trial.drain(), [2, 3]);
        assert_eq!(trial.discipline.flows_tracked(), 0);
    }
}
