//! LASACK: least attained service, with what a flow sends the other way.
//!
//! LAS in which an acknowledgement counts as the bytes that it newly
//! acknowledges (`WLAN section II`). On the downlink of a wireless LAN an upload
//! is a stream of small acknowledgements, which LAS would serve first for
//! long; here they wait like the data of a download that has got as far. So
//! the downlink alone controls both. Memory and faults are those of LAS:
//! a flow that never ends is starved by younger ones.
//!
//! A flow's volume never falls, so its packets stay in order. O(log n) per
//! packet in the number of queued packets.

use super::attained::AttainedQueue;
use super::bidirectional::BidirectionalVolume;
use super::{Backlog, Discipline, Losses, Memory};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::Settings;
use crate::units::{Bytes, Time};

/// The registry's entry for [`LasAck`].
pub const ENTRY: Entry = Entry {
    name: "las-ack",
    summary: "LAS that counts both directions: an acknowledgement counts as the data it \
              acknowledges",
    source: "WLAN section II",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[Memory::SWEEP, Memory::IDLE],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        Box::new(LasAck::new(Memory::from_settings(settings), buffer, seed))
    },
};

/// A queue by the service of each packet's flow in both directions.
#[derive(Debug)]
pub struct LasAck {
    queue: AttainedQueue<Bytes, BidirectionalVolume>,
}

impl LasAck {
    /// An empty queue that holds at most `buffer` and remembers flows as
    /// `memory` says; the hash of its flow table depends on `seed`.
    #[must_use]
    pub fn new(memory: Memory, buffer: Buffer, seed: u64) -> LasAck {
        LasAck { queue: AttainedQueue::new(memory, buffer, seed) }
    }
}

impl Discipline for LasAck {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.queue.enqueue(now, packet, losses, |volume| volume.count(&packet));
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.queue.dequeue(now)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.queue.reconfigure(now, Memory::from_settings(settings), buffer);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.queue.flows_tracked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::LossReason;
    use crate::discipline::trial::Trial;
    use crate::units::Span;

    fn las_ack(packets: u32) -> Trial<LasAck> {
        Trial::new(LasAck::new(Memory::default(), Buffer::packets(packets), 1))
    }

    #[test]
    fn an_upload_waits_as_a_download_does() {
        let mut trial = las_ack(20);
        // Ranks of the upload: 0, 0, 2 920 and 5 840.
        for number in [1, 2_921, 5_841, 8_761] {
            trial.acknowledge('u', number);
        }
        // Of the download: 0, 1 500, 3 000, 4 500 and 6 000.
        trial.arrive_all([('d', 1_500); 5]);
        assert_eq!(trial.drain(), [0, 1, 4, 5, 2, 6, 7, 3, 8]);
    }

    #[test]
    fn a_lost_acknowledgement_stays_counted_and_the_next_counts_the_rest() {
        let mut trial = las_ack(2);
        trial.acknowledge('u', 0);
        trial.arrive_all([('d', 1_000)]);
        trial.acknowledge('u', 500);
        assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0, 1]);
        trial.acknowledge('u', 700);
        trial.drain();
        // `u` has had 700 in all.
        trial.arrive('e', 699);
        trial.arrive('f', 701);
        trial.drain();
        trial.arrive('f', 1);
        trial.acknowledge('u', 700);
        assert_eq!(trial.drain(), [7, 6]);
        trial.acknowledge('u', 700);
        trial.arrive('e', 1);
        assert_eq!(trial.drain(), [9, 8]);
    }

    #[test]
    fn a_flow_that_was_forgotten_has_a_new_base() {
        let mut trial = las_ack(10);
        trial.acknowledge('u', 0);
        trial.acknowledge('u', 9_000);
        trial.drain();
        trial.now = Time::ZERO + Span::seconds(60);
        trial.acknowledge('u', 99_000);
        trial.arrive('d', 1_000);
        trial.acknowledge('u', 99_100);
        assert_eq!(trial.drain(), [2, 3, 4], "all of them rank at 0");
    }
}
