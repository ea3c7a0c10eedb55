//! LAS-log(k): LAS in which the service of some flows counts far less.
//!
//! A flow of the priority class that has had `x` ranks as an ordinary one that has
//! had only `(log2 x)^(1/k)` (`LAS section 6`), so that a transfer that must not
//! starve continues at a rate of its own. The larger `k` is, the stronger the
//! preference. Any class but 0 is the priority class. Service is counted in
//! packets, as in the plots of `LAS section 6`, or in bytes. The logarithm takes
//! the number as it is, so the unit matters: a million packets rank as 20 (k = 1)
//! or 400 (k = 0.5) of an ordinary flow, while a million bytes rank as 20 or 400
//! bytes, behind little but the first packet of every flow, whatever `k` is. For
//! `x` of 1 or 0, the rank is 0.
//!
//! `LAS section 6` says that (log2 x)^2 < x for x > 4, for k = 0.5. That holds only
//! for x > 16: both are the same at 4 and at 16, and between these the square is
//! larger. Up to 16 packets, a priority flow is behind its ordinary equals.
//!
//! While its flow is remembered, no packet ranks before an earlier one of the flow:
//! neither the last bits of a logarithm nor a change of its class can make the flow
//! overtake itself. A flow that became long before it got priority therefore stays
//! where it is until it is forgotten. The cost is O(log n) per packet in the number
//! of queued packets.

use super::attained::AttainedQueue;
use super::{Backlog, Discipline, Losses, Memory};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::Time;

/// The registry's entry for [`LasLog`].
pub const ENTRY: Entry = Entry {
    name: "las-log",
    summary: "LAS in which flows of a priority class rank by a logarithm of their service",
    source: "LAS section 6",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[K, UNIT, Memory::SWEEP, Memory::IDLE],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        let (k, unit) = (settings.number(K.name), Unit::from_settings(settings));
        Box::new(LasLog::new(k, unit, Memory::from_settings(settings), buffer, seed))
    },
};

/// The milder of the two values of `LAS section 6`.
const K: Parameter = Parameter {
    name: "k",
    help: "a packet of a class other than 0 ranks at (log2 x)^(1/k), where x is its flow's service",
    kind: Kind::Number { least: 0.1, most: 10.0 },
    default: "0.5",
};

const UNIT: Parameter = Parameter {
    name: "unit",
    help: "unit in which service is counted",
    kind: Kind::Choice(&["packets", BYTES]),
    default: "packets",
};

const BYTES: &str = "bytes";

/// What attained service is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets, whatever their size.
    Packets,
    /// Bytes.
    Bytes,
}

impl Unit {
    fn from_settings(settings: &Settings) -> Unit {
        if settings.choice(UNIT.name) == BYTES { Unit::Bytes } else { Unit::Packets }
    }
}

/// A queue by attained service of each packet's flow, or its logarithm.
#[derive(Debug)]
pub struct LasLog {
    /// `1/k`.
    power: f64,
    unit: Unit,
    queue: AttainedQueue<Rank, Service>,
}

/// In steps of 2^-64 of the unit: exact for every service and every logarithm.
type Rank = u128;

#[derive(Clone, Copy, Debug, Default)]
struct Service {
    /// What arrived of the flow.
    attained: u64,
    /// Where its last packet ranked.
    rank: Rank,
}

impl LasLog {
    /// An empty queue that holds at most `buffer` and remembers flows as
    /// `memory` says; `k` is at least 0.1, and the hash of the flow table
    /// depends on `seed`.
    #[must_use]
    pub fn new(k: f64, unit: Unit, memory: Memory, buffer: Buffer, seed: u64) -> LasLog {
        LasLog { power: 1.0 / k, unit, queue: AttainedQueue::new(memory, buffer, seed) }
    }
}

/// `P(x)` of `LAS section 6` for the class. At most 64^10 = 2^60: no overflow.
fn rank(attained: u64, class: u16, power: f64) -> Rank {
    const STEPS: u32 = 64;
    if class == 0 {
        return u128::from(attained) << STEPS;
    }
    let log = libm::log2(attained.max(1) as f64);
    (libm::pow(log, power) * (1_u128 << STEPS) as f64) as u128
}

impl Discipline for LasLog {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let LasLog { power, unit, .. } = *self;
        self.queue.enqueue(now, packet, losses, |service| {
            service.rank = service.rank.max(rank(service.attained, packet.class, power));
            let more = match unit {
                Unit::Packets => 1,
                Unit::Bytes => packet.size.0,
            };
            service.attained = service.attained.saturating_add(more);
            service.rank
        });
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.queue.dequeue(now)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.power = 1.0 / settings.number(K.name);
        self.unit = Unit::from_settings(settings);
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

    fn las_log(k: f64, unit: Unit, packets: u32) -> Trial<LasLog> {
        let buffer = Buffer::packets(packets);
        Trial::new(LasLog::new(k, unit, Memory::default(), buffer, 1))
    }

    #[test]
    fn a_priority_flow_ranks_by_the_logarithm_of_its_packets() {
        let mut trial = las_log(1.0, Unit::Packets, 20);
        trial.arrive_all([('o', 1_500); 8]);
        trial.class = 1;
        // Ranks: 0, 0, 1, 1.58, 2, 2.32, 2.58, 2.81.
        trial.arrive_all([('p', 40); 8]);
        let sent = trial.drain();
        assert_eq!(sent, [0, 8, 9, 1, 10, 11, 2, 12, 13, 14, 15, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn in_bytes_a_priority_flow_is_behind_first_packets_only() {
        let mut trial = las_log(0.5, Unit::Bytes, 20);
        trial.class = 1;
        // Ranks: 0, then 10.6 squared, which is 111, and 11.6 squared, 133.
        trial.arrive_all([('p', 1_500), ('p', 1_500), ('p', 1_500)]);
        trial.class = 0;
        trial.arrive_all([('o', 112), ('o', 22), ('o', 1_500)]);
        assert_eq!(trial.drain(), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn the_square_of_the_logarithm_is_smaller_from_seventeen_packets_on_only() {
        let order = |attained| rank(attained, 1, 2.0).cmp(&rank(attained, 0, 2.0));
        assert!([1, 2, 3].map(order).iter().all(|order| order.is_lt()));
        assert!([0, 4, 16].map(order).iter().all(|order| order.is_eq()));
        assert!((5..16).map(order).all(std::cmp::Ordering::is_gt));
        assert!((17..10_000).map(order).all(std::cmp::Ordering::is_lt));
        assert!(order(u64::MAX).is_lt());
    }

    #[test]
    fn a_flow_that_gets_priority_does_not_overtake_itself() {
        let mut trial = las_log(1.0, Unit::Packets, 20);
        trial.arrive_all([('a', 100), ('a', 100), ('a', 100), ('a', 100)]);
        trial.class = 7;
        trial.arrive_all([('a', 100), ('b', 100)]);
        assert_eq!(trial.drain(), [0, 5, 1, 2, 3, 4]);
    }

    #[test]
    fn a_full_buffer_gives_up_the_tail() {
        let mut trial = las_log(1.0, Unit::Packets, 4);
        trial.arrive_all([('o', 100), ('o', 100), ('o', 100)]);
        trial.class = 1;
        trial.arrive_all([('p', 100), ('p', 100), ('p', 100)]);
        assert_eq!(trial.lost(), [(2, LossReason::PushedOut), (5, LossReason::Refused)]);
    }
}
