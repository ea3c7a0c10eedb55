//! Run2C, running number two class: the start of every flow goes first.
//!
//! There are two FIFO levels. A packet is high while its flow has sent fewer bytes
//! in its life than a threshold, and low from then on (`EFD section 2`). Long flows
//! share the low level among themselves, so none locks out another as under LAS;
//! but a flow that once was long stays low for the rest of its life, however slowly
//! it sends.
//!
//! The original reads a flow's volume from TCP sequence numbers, which requires a
//! changed TCP at the senders. Here a counter for each flow does, kept and
//! forgotten as under LAS (`EFD section 5.1`). A flow's counter never falls while
//! it has anything queued, and low is behind high, so its packets stay in order.
//! The cost is O(1) per packet.

use super::flow_state::Remembered;
use super::threshold::ThresholdQueue;
use super::two_level::Order;
use super::{Backlog, Discipline, Level, Losses, Memory};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Time};

/// The registry's entry for [`Run2c`].
pub const ENTRY: Entry = Entry {
    name: "run2c",
    summary: "two levels: the first bytes of each flow's life are high, the rest low",
    source: "EFD sections 2 and 5.2",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[THRESHOLD, Memory::SWEEP, Memory::IDLE],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        let threshold = settings.bytes(THRESHOLD.name);
        Box::new(Run2c::new(threshold, Memory::from_settings(settings), buffer, seed))
    },
};

/// `th`, 30 kB (`EFD section 5.1`).
pub(super) const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    help: "a flow's packets are high until it has sent this much in its life",
    kind: Kind::Bytes { least: Bytes::ZERO, most: Bytes(1_000_000_000_000) },
    default: "30 kB",
};

/// A queue of two levels by what each flow has sent in its life.
#[derive(Debug)]
pub struct Run2c {
    /// By the bytes that arrived of each flow.
    queue: ThresholdQueue<Remembered<Bytes>>,
}

impl Run2c {
    /// An empty queue that holds at most `buffer`, puts a flow's first
    /// `threshold` bytes high and remembers flows as `memory` says; the hash
    /// of its flow table depends on `seed`.
    #[must_use]
    pub fn new(threshold: Bytes, memory: Memory, buffer: Buffer, seed: u64) -> Run2c {
        let sent = Remembered::new(memory, seed);
        Run2c { queue: ThresholdQueue::new(threshold.0, [Order::Fifo; 2], buffer, sent) }
    }
}

impl Discipline for Run2c {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.queue.enqueue(now, packet, losses, |sent| {
            let before = *sent;
            *sent += packet.size;
            before.0
        });
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.queue.dequeue(now)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.queue.flows().set_memory(now, Memory::from_settings(settings));
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

    fn run2c(threshold: u64, packets: u32) -> Trial<Run2c> {
        let (threshold, buffer) = (Bytes(threshold), Buffer::packets(packets));
        Trial::new(Run2c::new(threshold, Memory::default(), buffer, 1))
    }

    #[test]
    fn the_first_bytes_of_a_life_are_high_even_after_the_queue_was_empty() {
        let mut trial = run2c(3_000, 10);
        trial.arrive_all([('a', 1_500), ('a', 1_499), ('a', 1_500)]);
        assert_eq!(trial.drain(), [0, 1, 2]);
        // `a` has sent 4 499 bytes and stays low.
        trial.arrive_all([('a', 40), ('b', 40)]);
        assert_eq!(trial.drain(), [4, 3]);
    }

    #[test]
    fn a_full_buffer_gives_up_the_end_of_low_then_the_end_of_high() {
        let mut trial = run2c(100, 3);
        trial.arrive_all([('a', 100), ('a', 100), ('a', 100), ('b', 100), ('c', 100), ('d', 1)]);
        assert_eq!(
            trial.lost(),
            [(2, LossReason::PushedOut), (1, LossReason::PushedOut), (5, LossReason::Refused),]
        );
        assert_eq!(trial.drain(), [0, 3, 4]);
    }

    #[test]
    fn a_flow_with_low_packets_queued_is_not_forgotten() {
        let mut trial = run2c(100, 10);
        trial.arrive_all([('a', 100), ('a', 100)]);
        assert_eq!(trial.send(), Some(0));
        trial.now = Time::FAR_FUTURE;
        trial.arrive_all([('a', 100), ('b', 100)]);
        assert_eq!(trial.drain(), [3, 1, 2], "2 must not overtake 1");
    }
}
