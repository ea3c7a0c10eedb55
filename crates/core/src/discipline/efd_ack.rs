//! EFDACK: early flow discard, with what a flow sends the other way.
//!
//! This is EFD in bytes, in which an acknowledgement counts as the bytes that it
//! newly acknowledges since the flow has its entry (`WLAN section II-A`). EFD in
//! bytes lets the acknowledgements of an upload pass, at 40 bytes each, for
//! hundreds of packets, and the upload takes the medium from the downloads; here
//! the upload becomes low by what it uploads. An entry lives while its flow has a
//! packet in the queue, so the base is the first number seen since then, and
//! nothing has to be remembered.
//!
//! While an entry lives, its volume only grows, so a flow's packets stay in order,
//! in levels of LAS too. The cost is O(1) per packet, and O(log n) in a level of
//! LAS.

use super::bidirectional::BidirectionalVolume;
use super::efd::{HIGH, LOW, orders};
use super::flow_state::Backlogged;
use super::threshold::ThresholdQueue;
use super::two_level::Order;
use super::{Backlog, Discipline, Level, Losses, run2c};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::{Parameter, Settings};
use crate::units::{Bytes, Time};

/// The registry's entry for [`EfdAck`].
pub const ENTRY: Entry = Entry {
    name: "efd-ack",
    summary: "EFD that counts both directions: an acknowledgement counts as the data it \
              acknowledges",
    source: "WLAN section II-A",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[THRESHOLD, HIGH, LOW],
    fixed: &[HIGH, LOW],
    build: |settings, Place { buffer, .. }, seed| {
        let [high, low] = orders(settings);
        Box::new(EfdAck::new(settings.bytes(THRESHOLD.name), high, low, buffer, seed))
    },
};

/// `th`, 30 kB, which is 20 packets of data (`WLAN section II`).
const THRESHOLD: Parameter = Parameter {
    help: "a flow is high until this much has been sent, both ways, since it last had no packet \
           queued",
    ..run2c::THRESHOLD
};

/// A queue of two levels by what each backlogged flow has sent in both directions.
#[derive(Debug)]
pub struct EfdAck {
    queue: ThresholdQueue<Backlogged<BidirectionalVolume>>,
}

impl EfdAck {
    /// An empty queue that holds at most `buffer` and puts the first
    /// `threshold` of a flow's entry high, with these orders in the two levels;
    /// the hash of its flow table depends on `seed`.
    #[must_use]
    pub fn new(threshold: Bytes, high: Order, low: Order, buffer: Buffer, seed: u64) -> EfdAck {
        let flows = Backlogged::new(seed);
        EfdAck { queue: ThresholdQueue::new(threshold.0, [high, low], buffer, flows) }
    }
}

impl Discipline for EfdAck {
    /// A packet is high while less than the threshold came before it, as under
    /// [`Efd`](super::efd::Efd).
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.queue.enqueue(now, packet, losses, |volume| volume.count(&packet).0);
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.queue.dequeue(now)
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.queue.reconfigure(settings.bytes(THRESHOLD.name).0, buffer);
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

    fn efd_ack(threshold: u64, packets: u32) -> Trial<EfdAck> {
        let (threshold, buffer) = (Bytes(threshold), Buffer::packets(packets));
        Trial::new(EfdAck::new(threshold, Order::Fifo, Order::Fifo, buffer, 1))
    }

    fn queued(trial: &Trial<EfdAck>) -> [u32; 2] {
        [0, 1].map(|level| trial.discipline.levels()[level].backlog.packets)
    }

    #[test]
    fn an_upload_becomes_low_by_what_is_acknowledged() {
        let mut trial = efd_ack(30_000, 300);
        // Every second segment of 1 460 bytes is acknowledged: 2 920 bytes. Before
        // the twelfth there are ten of those, 29 200 bytes, and before the next 32 120.
        for count in 0..13 {
            trial.acknowledge('u', 1_000 + 2_920 * count);
        }
        assert_eq!(queued(&trial), [12, 1]);
        trial.arrive_all([('d', 1_500); 21]);
        assert_eq!(queued(&trial), [32, 2]);
    }

    #[test]
    fn the_base_is_the_first_number_that_the_entry_has_seen() {
        let mut trial = efd_ack(1_000, 300);
        for number in [5_000, 6_000, 6_000] {
            trial.acknowledge('u', number);
        }
        assert_eq!(queued(&trial), [2, 1]);
        trial.drain();
        for number in [9_000, 9_999, 10_000, 10_000] {
            trial.acknowledge('u', number);
        }
        assert_eq!(queued(&trial), [3, 1], "what came while nothing was queued is not known");
    }

    #[test]
    fn the_entry_of_an_upload_dies_with_its_last_acknowledgement_also_when_pushed_out() {
        let mut trial = efd_ack(1_000, 2);
        trial.acknowledge('u', 0);
        trial.acknowledge('u', 1_000);
        assert_eq!(trial.send(), Some(0));
        trial.acknowledge('u', 1_500);
        assert_eq!(trial.send(), Some(1));
        trial.arrive_all([('b', 100), ('c', 100)]);
        assert_eq!(trial.lost(), [(2, LossReason::PushedOut)]);
        assert_eq!(trial.discipline.flows_tracked(), 2);
        assert_eq!(trial.send(), Some(3));
        trial.acknowledge('u', 90_000);
        assert_eq!(queued(&trial), [2, 0], "`u` is fresh");
    }

    #[test]
    fn levels_of_las_go_by_the_volume_of_both_directions() {
        let drained = |high, low| {
            let buffer = Buffer::packets(300);
            let mut trial = Trial::new(EfdAck::new(Bytes(2_000), high, low, buffer, 1));
            for number in [0, 1_000, 2_000, 4_000, 4_000] {
                trial.acknowledge('u', number);
            }
            trial.arrive_all([('d', 900); 4]);
            trial.drain()
        };
        // Of `u` 0, 0 and 1 000 are high, 2 000 and 4 000 low; of `d` 0, 900 and
        // 1 800 are high, 2 700 low.
        assert_eq!(drained(Order::Fifo, Order::Fifo), [0, 1, 2, 5, 6, 7, 3, 4, 8]);
        assert_eq!(drained(Order::Las, Order::Fifo), [0, 1, 5, 6, 2, 7, 3, 4, 8]);
        assert_eq!(drained(Order::Fifo, Order::Las), [0, 1, 2, 5, 6, 7, 3, 8, 4]);
        assert_eq!(drained(Order::Las, Order::Las), [0, 1, 5, 6, 2, 7, 3, 8, 4]);
    }
}
