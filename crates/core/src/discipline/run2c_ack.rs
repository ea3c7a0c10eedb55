//! Run2CACK: Run2C, with what a flow sends the other way.
//!
//! This is Run2C in which an acknowledgement counts as the bytes that it newly
//! acknowledges (`WLAN section IV`). Long uploads reach the low level just as long
//! downloads do; there they meet in a FIFO queue, so for long-lived flows this is
//! no better than FIFO.
//!
//! A flow's volume never falls while it has anything queued, and low is behind
//! high, so its packets stay in order. The cost is O(1) per packet.

use super::bidirectional::BidirectionalVolume;
use super::flow_state::Remembered;
use super::threshold::ThresholdQueue;
use super::two_level::Order;
use super::{Backlog, Discipline, Level, Losses, Memory, run2c};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::{Parameter, Settings};
use crate::units::{Bytes, Time};

/// The registry's entry for [`Run2cAck`].
pub const ENTRY: Entry = Entry {
    name: "run2c-ack",
    summary: "Run2C that counts both directions: an acknowledgement counts as the data it \
              acknowledges",
    source: "WLAN section IV",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[THRESHOLD, Memory::SWEEP, Memory::IDLE],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        let threshold = settings.bytes(THRESHOLD.name);
        Box::new(Run2cAck::new(threshold, Memory::from_settings(settings), buffer, seed))
    },
};

/// The same as EFD's (`WLAN section V-2`).
const THRESHOLD: Parameter = Parameter {
    help: "a flow's packets are high until this much has been sent in its life, both ways",
    ..run2c::THRESHOLD
};

/// A queue of two levels by what each flow has sent in its life, in both directions.
#[derive(Debug)]
pub struct Run2cAck {
    queue: ThresholdQueue<Remembered<BidirectionalVolume>>,
}

impl Run2cAck {
    /// An empty queue that holds at most `buffer`, puts a flow's first
    /// `threshold` bytes high and remembers flows as `memory` says; the hash
    /// of its flow table depends on `seed`.
    #[must_use]
    pub fn new(threshold: Bytes, memory: Memory, buffer: Buffer, seed: u64) -> Run2cAck {
        let sent = Remembered::new(memory, seed);
        Run2cAck { queue: ThresholdQueue::new(threshold.0, [Order::Fifo; 2], buffer, sent) }
    }
}

impl Discipline for Run2cAck {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.queue.enqueue(now, packet, losses, |sent| sent.count(&packet).0);
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

    fn run2c_ack(threshold: u64, packets: u32) -> Trial<Run2cAck> {
        let (threshold, buffer) = (Bytes(threshold), Buffer::packets(packets));
        Trial::new(Run2cAck::new(threshold, Memory::default(), buffer, 1))
    }

    #[test]
    fn an_upload_becomes_low_by_what_is_acknowledged_and_stays_low() {
        let mut trial = run2c_ack(3_000, 10);
        // What came before each: 0, 0, 2 999, 3 000 and 3 000.
        for number in [1, 3_000, 3_001, 3_001, 2_000] {
            trial.acknowledge('u', number);
        }
        trial.arrive('d', 1_500);
        assert_eq!(trial.drain(), [0, 1, 2, 5, 3, 4]);
        trial.acknowledge('u', 3_001);
        trial.arrive('d', 1_500);
        assert_eq!(trial.drain(), [7, 6]);
    }

    #[test]
    fn a_full_buffer_gives_up_the_acknowledgements_of_a_long_upload_first() {
        let mut trial = run2c_ack(1_000, 2);
        for number in [0, 2_000, 2_000] {
            trial.acknowledge('u', number);
        }
        trial.arrive('d', 1_500);
        assert_eq!(trial.lost(), [(2, LossReason::Refused), (3, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0, 1]);
        trial.acknowledge('u', 2_000);
        trial.arrive_all([('e', 1_500), ('f', 1_500)]);
        assert_eq!(trial.lost(), [(4, LossReason::PushedOut)]);
    }

    #[test]
    fn without_acknowledgements_it_is_run2c() {
        let mut trial = run2c_ack(3_000, 10);
        trial.arrive_all([('a', 1_500), ('a', 1_499), ('a', 1_500), ('a', 40), ('b', 40)]);
        assert_eq!(trial.drain(), [0, 1, 2, 4, 3]);
    }
}
