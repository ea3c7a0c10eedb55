//! EFD, early flow discard: the start of every burst goes first.
//!
//! There are two FIFO levels. A flow has an entry only while it has a packet in the
//! queue, and the entry counts what has come of the flow since it was made. The
//! first `threshold` of that is high, the rest low (`EFD section 3.1`). A flow that
//! is sending faster than it is served stays in the queue, outgrows the threshold
//! and becomes low; a flow that pauses long enough for its packets to be served
//! starts afresh. Both volume and rate therefore count, slow flows stay high for
//! ever, and there are never more entries than queued packets. No sweep is needed.
//!
//! While an entry lives, its counter only grows, so a flow's packets go high first
//! and low later, and low is served after high: they stay in order.
//!
//! Instead of FIFO, either level may be in the order of LAS (`WLAN section V-1`):
//! by what the flow's entry had counted when the packet came, in the unit of the
//! threshold, equal ones by arrival. The end of the level, from which a full buffer
//! takes its victim, is the end of that order. The cost is O(1) per packet, and
//! O(log n) in the number of packets of a level of LAS.

use super::flow_state::Backlogged;
use super::threshold::ThresholdQueue;
use super::two_level::Order;
use super::{Backlog, Discipline, Level, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Amount, Time};

/// The registry's entry for [`Efd`].
pub const ENTRY: Entry = Entry {
    name: "efd",
    summary: "early flow discard: two levels; the start of each burst of a flow is high",
    source: "EFD section 3",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[THRESHOLD, HIGH, LOW],
    fixed: &[HIGH, LOW],
    build: |settings, Place { buffer, .. }, seed| {
        let [high, low] = orders(settings);
        Box::new(Efd::with_orders(settings.amount(THRESHOLD.name), high, low, buffer, seed))
    },
};

/// `th`, 20 packets (`EFD section 3.1`). In bytes EFD is called BEFD.
const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    help: "a flow is high until this much of it has arrived since it last had no packet queued",
    kind: Kind::Amount,
    default: "20 packets",
};

pub(super) const HIGH: Parameter = Parameter {
    name: "high",
    help: "the order within the high level",
    kind: Kind::Choice(&["fifo", LAS]),
    default: "fifo",
};

pub(super) const LOW: Parameter =
    Parameter { name: "low", help: "the order within the low level", ..HIGH };

const LAS: &str = "las";

/// The values of [`HIGH`] and [`LOW`].
pub(super) fn orders(settings: &Settings) -> [Order; 2] {
    let is_las = |level: Parameter| settings.choice(level.name) == LAS;
    [HIGH, LOW].map(|level| if is_las(level) { Order::Las } else { Order::Fifo })
}

/// A queue of two levels by what has come of each backlogged flow.
#[derive(Debug)]
pub struct Efd {
    threshold: Amount,
    /// By what has come of each flow since its entry was made, in packets or bytes
    /// as the threshold. Neither departures nor losses are subtracted.
    queue: ThresholdQueue<Backlogged<u64>>,
}

impl Efd {
    /// An empty queue that holds at most `buffer` and puts the first
    /// `threshold` of a flow's entry high; the hash of its flow table depends
    /// on `seed`.
    #[must_use]
    pub fn new(threshold: Amount, buffer: Buffer, seed: u64) -> Efd {
        Efd::with_orders(threshold, Order::Fifo, Order::Fifo, buffer, seed)
    }

    /// As [`Efd::new`], with these orders in the two levels.
    #[must_use]
    pub fn with_orders(
        threshold: Amount,
        high: Order,
        low: Order,
        buffer: Buffer,
        seed: u64,
    ) -> Efd {
        let flows = Backlogged::new(seed);
        let queue = ThresholdQueue::new(number(threshold), [high, low], buffer, flows);
        Efd { threshold, queue }
    }
}

/// The threshold as a number of its unit.
fn number(threshold: Amount) -> u64 {
    match threshold {
        Amount::Packets(threshold) => threshold.into(),
        Amount::Bytes(threshold) => threshold.0,
    }
}

impl Discipline for Efd {
    /// A packet is high while less than the threshold came before it: `th` packets
    /// of an entry go high and packet `th` + 1 low. `EFD section 3.1` lets a
    /// counter that does not exceed `th` pass; `WLAN section II` settles that it
    /// counts the packet at hand, with `th` of a burst high. This departs from both
    /// only for a threshold of zero: there they still put the packet that makes an
    /// entry high, and this discipline makes all packets low.
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let amount = match self.threshold {
            Amount::Packets(_) => 1,
            Amount::Bytes(_) => packet.size.0,
        };
        self.queue.enqueue(now, packet, losses, |arrived| {
            let before = *arrived;
            *arrived = before.saturating_add(amount);
            before
        });
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.queue.dequeue(now)
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        // After a change of the unit, a flow that has an entry counts on in the new
        // one: its counter may not fall.
        self.threshold = settings.amount(THRESHOLD.name);
        self.queue.reconfigure(number(self.threshold), buffer);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.queue.flows_tracked()
    }

    fn levels(&self) -> &[Level] {
        self.queue.levels()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::LossReason;
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
    fn levels_of_las_go_by_the_volume_of_the_entry() {
        let arrivals = [('a', 9), ('a', 9), ('a', 9), ('a', 9), ('b', 9), ('b', 9), ('b', 9)];
        let drained = |high, low| {
            let threshold = Amount::Packets(2);
            let efd = Efd::with_orders(threshold, high, low, Buffer::packets(300), 1);
            let mut trial = Trial::new(efd);
            trial.arrive_all(arrivals);
            trial.drain()
        };
        assert_eq!(drained(Order::Fifo, Order::Fifo), [0, 1, 4, 5, 2, 3, 6]);
        assert_eq!(drained(Order::Las, Order::Fifo), [0, 4, 1, 5, 2, 3, 6]);
        assert_eq!(drained(Order::Fifo, Order::Las), [0, 1, 4, 5, 2, 6, 3]);
        assert_eq!(drained(Order::Las, Order::Las), [0, 4, 1, 5, 2, 6, 3]);
    }

    #[test]
    fn a_full_buffer_gives_up_the_end_of_the_order_of_a_level() {
        let (threshold, buffer) = (Amount::Bytes(Bytes(1_000)), Buffer::packets(4));
        let mut trial = Trial::new(Efd::with_orders(threshold, Order::Las, Order::Las, buffer, 1));
        // High at 0, 700, 0 and 600; then low at 1 400, which is refused.
        trial.arrive_all([('a', 700), ('a', 700), ('b', 600), ('b', 100), ('a', 1), ('c', 1)]);
        assert_eq!(trial.lost(), [(4, LossReason::Refused), (1, LossReason::PushedOut)]);
        assert_eq!(trial.drain(), [0, 2, 5, 3]);
    }

    #[test]
    fn a_full_buffer_of_high_packets_refuses_the_arriving_one() {
        let mut trial = efd(Amount::Packets(20), 2);
        trial.arrive_all([('a', 100), ('b', 100), ('c', 100)]);
        assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
        assert_eq!(trial.discipline.flows_tracked(), 2);
    }
}
