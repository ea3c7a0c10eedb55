//! EFD, early flow discard: the start of every burst goes first.
//!
//! Two FIFO levels. A flow has an entry only while it has a packet in the
//! queue, and the entry counts what has come of the flow since it was made. The
//! first `threshold` of that is high, the rest low (`EFD section 3.1`). A flow
//! that is sending faster than it is served stays in the queue, outgrows
//! the threshold and becomes low; one that pauses long enough to be served out
//! starts afresh. So both volume and rate count, slow flows stay high for ever,
//! and there are never more entries than queued packets. No sweep is needed.
//!
//! While an entry lives its counter only grows, so a flow's packets go high
//! first and low later, and low is served behind high: they stay in order. O(1)
//! per packet.

use super::flow_state::Backlogged;
use super::two_level::{Priority, TwoLevelQueue};
use super::{Backlog, Discipline, Level, LossReason, Losses};
use crate::buffer::Buffer;
use crate::packet::Packet;
use crate::registry::{Drops, Entry, Kind, Parameter};
use crate::units::{Amount, Time};

/// The registry's entry for [`Efd`].
pub const ENTRY: Entry = Entry {
    name: "efd",
    summary: "early flow discard: two levels; the start of each burst of a flow is high",
    source: "EFD section 3",
    drops: Drops::WhenFull,
    parameters: &[THRESHOLD],
    build: |settings, buffer, seed| {
        Box::new(Efd::new(settings.amount(THRESHOLD.name), buffer, seed))
    },
};

/// `th`, 20 packets (`EFD section 3.1`). In bytes EFD is called BEFD.
const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    help: "a flow is high until this much of it came since it last had nothing queued",
    kind: Kind::Amount,
    default: "20 packets",
};

/// A queue of two levels by what has come of each backlogged flow.
#[derive(Debug)]
pub struct Efd {
    threshold: Amount,
    buffer: Buffer,
    queue: TwoLevelQueue,
    /// Packets or bytes, as the threshold, that came of each flow since its
    /// entry was made. Neither departures nor losses are taken off.
    arrived: Backlogged<u64>,
}

impl Efd {
    /// An empty queue that holds at most `buffer` and puts the first
    /// `threshold` of a flow's entry high; the hash of its flow table depends
    /// on `seed`.
    #[must_use]
    pub fn new(threshold: Amount, buffer: Buffer, seed: u64) -> Efd {
        let arrived = Backlogged::new(seed);
        Efd { threshold, buffer, queue: TwoLevelQueue::new(), arrived }
    }

    /// A full buffer gives up the packet at the end of low, else of high,
    /// which may be the one that just came (`EFD section 3.2`).
    fn push_out(&mut self, arriving: &Packet, losses: &mut Losses) {
        while !self.buffer.holds(self.queue.backlog()) {
            let Some((victim, flow)) = self.queue.pop_last() else { return };
            self.arrived.leave(flow);
            losses.push_out(victim, arriving);
        }
    }
}

impl Discipline for Efd {
    /// A packet is high while less than the threshold came before it: `th`
    /// packets of an entry go high and packet `th` + 1 low. `EFD section 3.1`
    /// lets a counter that does not exceed `th` pass; `WLAN section II` settles
    /// that it counts the packet at hand, with `th` of a burst high. It
    /// departs from both only for a threshold of zero, where they still put the
    /// packet that makes an entry high and this does not: then all are low.
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        // Larger than the whole buffer, it would push out all else and still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let (amount, threshold) = match self.threshold {
            Amount::Packets(threshold) => (1, u64::from(threshold)),
            Amount::Bytes(threshold) => (packet.size.0, threshold.0),
        };
        let (flow, arrived) = self.arrived.join(&packet.flow);
        let priority = if *arrived < threshold { Priority::High } else { Priority::Low };
        *arrived = arrived.saturating_add(amount);
        self.queue.push(priority, packet, flow);
        self.push_out(&packet, losses);
    }

    fn dequeue(&mut self, _now: Time, _losses: &mut Losses) -> Option<Packet> {
        let (packet, flow) = self.queue.pop_first()?;
        self.arrived.leave(flow);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.arrived.len()
    }

    fn levels(&self) -> &[Level] {
        self.queue.levels()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;
    use crate::units::Bytes;

    fn efd(threshold: Amount, packets: u32) -> Trial<Efd> {
        Trial::new(Efd::new(threshold, Buffer::packets(packets), 1))
    }

    fn queued(trial: &Trial<Efd>) -> [u32; 2] {
        [0, 1].map(|level| trial.discipline.levels()[level].backlog.packets)
    }

    #[test]
    fn threshold_packets_of_a_burst_are_high_and_the_next_is_low() {
        let mut trial = efd(Amount::Packets(20), 300);
        trial.arrive_all([('a', 1_500); 20]);
        assert_eq!(queued(&trial), [20, 0]);
        trial.arrive('a', 1_500);
        assert_eq!(queued(&trial), [20, 1]);
        trial.arrive('b', 40);
        let high = (0..20).chain([21]);
        assert_eq!(trial.drain(), high.chain([20]).collect::<Vec<_>>());
    }

    #[test]
    fn in_bytes_a_packet_is_high_while_less_than_the_threshold_came_before_it() {
        let mut trial = efd(Amount::Bytes(Bytes(3_000)), 300);
        trial.arrive_all([('a', 1_500), ('a', 1_499), ('a', 1_500), ('a', 40)]);
        assert_eq!(queued(&trial), [3, 1]);
    }

    #[test]
    fn a_flow_that_was_served_out_starts_afresh_and_one_that_was_not_does_not() {
        let mut trial = efd(Amount::Packets(2), 300);
        trial.arrive_all([('a', 100); 3]);
        assert_eq!(trial.send(), Some(0));
        assert_eq!(trial.send(), Some(1));
        trial.arrive('a', 100);
        assert_eq!(queued(&trial), [0, 2]);
        assert_eq!(trial.drain(), [2, 3]);
        assert_eq!(trial.discipline.flows_tracked(), 0);
        trial.arrive('a', 100);
        assert_eq!(queued(&trial), [1, 0]);
    }

    #[test]
    fn an_entry_dies_with_the_last_packet_also_when_that_is_pushed_out() {
        let mut trial = efd(Amount::Packets(1), 2);
        trial.arrive_all([('a', 100), ('a', 100)]);
        assert_eq!(trial.send(), Some(0));
        trial.arrive_all([('b', 100), ('c', 100)]);
        assert_eq!(trial.lost(), [(1, LossReason::PushedOut)]);
        assert_eq!(trial.discipline.flows_tracked(), 2);
        assert_eq!(trial.send(), Some(2));
        trial.arrive('a', 100);
        assert_eq!(queued(&trial), [2, 0], "`a` is fresh");
    }

    #[test]
    fn a_full_buffer_of_high_packets_refuses_the_arriving_one() {
        let mut trial = efd(Amount::Packets(20), 2);
        trial.arrive_all([('a', 100), ('b', 100), ('c', 100)]);
        assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
        assert_eq!(trial.discipline.flows_tracked(), 2);
    }
}
