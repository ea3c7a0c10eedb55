//! X-Protect: Run2C that looks for long flows by chance.
//!
//! There are two FIFO levels. A packet of a flow that is not tracked is high, and
//! passes with a small probability a test that makes its flow tracked. The bytes of
//! a tracked flow count from the packet that passed the test: a packet is high
//! while they are fewer than a threshold, and low from then on (`EFD section 5.1`;
//! the test is that of Kortebi 2004). Flows of few packets are mostly never
//! tracked, which was meant to keep the table small; but short flows are so
//! numerous that some pass, and the table is only about half that of LAS (`EFD
//! section 5.1`).
//!
//! Tracked flows are forgotten as under LAS, but never while a packet is queued
//! that came since the flow was tracked. A low packet therefore always belongs to a
//! tracked flow, and the later packets of that flow are low too: a flow's packets
//! stay in order. The cost is O(1) per packet.

use super::flow_state::{Flows, Remembered};
use super::two_level::{Priority, TwoLevelQueue};
use super::{Backlog, Discipline, Level, LossReason, Losses, Memory};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::FlowId;
use crate::packet::Packet;
use crate::random::Stream;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Time};

/// The registry's entry for [`XProtect`].
pub const ENTRY: Entry = Entry {
    name: "x-protect",
    summary: "Run2C for flows with a packet that passed a random test; all others are high",
    source: "EFD section 5.1",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[THRESHOLD, PROBABILITY, Memory::SWEEP, Memory::IDLE],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        let threshold = settings.bytes(THRESHOLD.name);
        let probability = settings.number(PROBABILITY.name);
        let memory = Memory::from_settings(settings);
        Box::new(XProtect::new(threshold, probability, memory, buffer, seed))
    },
};

/// `th`, 30 kB (`EFD section 5.1`).
const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    help: "a tracked flow's packets are high until it has sent this much since tracking began",
    kind: Kind::Bytes { least: Bytes::ZERO, most: Bytes(1_000_000_000_000) },
    default: "30 kB",
};

/// 1% (`EFD section 5.1`).
const PROBABILITY: Parameter = Parameter {
    name: "probability",
    help: "probability with which a packet of an untracked flow makes the flow tracked",
    kind: Kind::Number { least: 0.0, most: 1.0 },
    default: "0.01",
};

/// A queue of two levels by what has come of each tracked flow.
#[derive(Debug)]
pub struct XProtect {
    threshold: Bytes,
    probability: f64,
    buffer: Buffer,
    /// Each packet with the entry that it was counted for, if any.
    queue: TwoLevelQueue<Option<FlowId>>,
    /// Bytes that arrived of each flow since it is tracked.
    sent: Remembered<Bytes>,
    /// One draw for each packet of a flow that is not tracked.
    tests: Stream,
    /// Whether flows may be held in low, since another threshold was set.
    has_held: bool,
}

impl XProtect {
    /// An empty queue that holds at most `buffer`, tracks a flow from each
    /// packet with `probability`, puts a tracked flow's first `threshold` bytes
    /// high and remembers tracked flows as `memory` says; tests and the hash of
    /// the flow table depend on `seed`.
    #[must_use]
    pub fn new(
        threshold: Bytes,
        probability: f64,
        memory: Memory,
        buffer: Buffer,
        seed: u64,
    ) -> XProtect {
        XProtect {
            threshold,
            probability,
            buffer,
            queue: TwoLevelQueue::new(),
            sent: Remembered::new(memory, seed),
            tests: Stream::new(seed, ENTRY.name),
            has_held: false,
        }
    }

    /// Finds the packet's level, and counts it when its flow is tracked.
    fn classify(&mut self, now: Time, packet: &Packet) -> (Priority, Option<FlowId>) {
        let count = |(flow, sent): (FlowId, &mut Bytes)| {
            let is_low = *sent >= self.threshold;
            *sent += packet.size;
            (flow, is_low)
        };
        let known = self.sent.join_known(now, &packet.flow).map(count);
        let tracked = match known {
            None if self.tests.uniform() < self.probability => {
                Some(count(self.sent.join(now, &packet.flow)))
            }
            known => known,
        };
        let Some((flow, is_low)) = tracked else { return (Priority::High, None) };
        let is_low = is_low || self.has_held && self.sent.is_held(flow);
        (if is_low { Priority::Low } else { Priority::High }, Some(flow))
    }

    /// A packet leaves the queue, sent or lost.
    fn leave(&mut self, now: Time, flow: Option<FlowId>) {
        match flow {
            Some(flow) => self.sent.leave(now, flow),
            None => self.sent.sweep(now),
        }
        self.has_held &= self.queue.backlog().packets > 0;
    }
}

impl Discipline for XProtect {
    /// A full buffer gives up the packet at the end of low, or else of high, which
    /// may be the one that just came (`EFD section 3.2`). Its bytes stay counted.
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queue.backlog());
        let (priority, flow) = self.classify(now, &packet);
        self.queue.push(priority, 0, packet, flow);
        while !room.holds(self.queue.backlog()) {
            let Some((victim, flow)) = self.queue.pop_last() else { return };
            self.leave(now, flow);
            losses.push_out(victim, &packet);
        }
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        let (packet, flow) = self.queue.pop_first()?;
        self.leave(now, flow);
        Some(packet)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        let XProtect { queue, sent, has_held, .. } = self;
        // Whoever has low packets queued stays low until it has none.
        queue.low().flatten().for_each(|flow| {
            sent.hold(flow);
            *has_held = true;
        });
        sent.set_memory(now, Memory::from_settings(settings));
        self.threshold = settings.bytes(THRESHOLD.name);
        self.probability = settings.number(PROBABILITY.name);
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.sent.len()
    }

    fn levels(&self) -> &[Level] {
        self.queue.levels()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;

    fn x_protect(threshold: u64, probability: f64, packets: u32) -> Trial<XProtect> {
        let (threshold, buffer) = (Bytes(threshold), Buffer::packets(packets));
        Trial::new(XProtect::new(threshold, probability, Memory::default(), buffer, 1))
    }

    fn queued(trial: &Trial<XProtect>) -> [u32; 2] {
        [0, 1].map(|level| trial.discipline.levels()[level].backlog.packets)
    }

    #[test]
    fn bytes_count_from_the_packet_that_passes_the_test() {
        let mut trial = x_protect(3_000, 0.0, 10);
        trial.arrive_all([('a', 1_500); 3]);
        assert_eq!((queued(&trial), trial.discipline.flows_tracked()), ([3, 0], 0));
        trial.discipline.probability = 1.0;
        trial.arrive('a', 1_500);
        assert_eq!((queued(&trial), trial.discipline.flows_tracked()), ([4, 0], 1));
        trial.discipline.probability = 0.0;
        trial.arrive_all([('a', 1_500), ('a', 1_500), ('b', 1_500)]);
        assert_eq!((queued(&trial), trial.discipline.flows_tracked()), ([6, 1], 1));
        assert_eq!(trial.drain(), [0, 1, 2, 3, 4, 6, 5]);
    }

    #[test]
    fn a_flow_with_low_packets_queued_is_not_forgotten_and_another_is() {
        let mut trial = x_protect(100, 1.0, 10);
        trial.arrive_all([('b', 100), ('a', 100), ('a', 100)]);
        trial.discipline.probability = 0.0;
        assert_eq!(trial.send(), Some(0));
        assert_eq!(trial.send(), Some(1));
        trial.now = Time::FAR_FUTURE;
        trial.arrive_all([('a', 100), ('b', 100)]);
        assert_eq!((queued(&trial), trial.discipline.flows_tracked()), ([1, 2], 1));
        assert_eq!(trial.drain(), [4, 2, 3], "3 must not overtake 2");
    }

    #[test]
    fn as_many_packets_pass_as_should() {
        let mut trial = x_protect(30_000, 0.01, 1);
        let mut tracked = 0;
        for _ in 0..100_000 {
            trial.arrive('a', 100);
            if trial.discipline.flows_tracked() == 1 {
                tracked += 1;
                // Silent for long enough to be forgotten.
                trial.drain();
                trial.now += crate::units::Span::seconds(60);
            }
        }
        // 1 000 with a deviation of 31.5: five of them.
        assert!((843..=1_157).contains(&tracked), "{tracked}");
    }

    #[test]
    fn a_full_buffer_gives_up_the_end_of_low_then_the_end_of_high() {
        let mut trial = x_protect(100, 1.0, 2);
        trial.arrive_all([('a', 100), ('a', 100), ('b', 100), ('c', 100)]);
        assert_eq!(trial.lost(), [(1, LossReason::PushedOut), (3, LossReason::Refused)]);
    }
}
