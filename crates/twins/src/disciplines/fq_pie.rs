//! FQ-PIE over plain lists: one list of packets and one PIE for each number to
//! which a flow hashes. A PIE ticks up to the present whenever its queue is
//! touched: a queue's own silence ticks at most 4 000 times.

use std::collections::BTreeMap;

use tidegate_core::entry::Place;
use tidegate_core::flow_table::FlowHash;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Bytes, Discipline, LossReason, Losses, Packet, Stream, Time};

use super::pie::Law;
use super::turns::Turns;

pub(super) struct FqPie {
    is_linux: bool,
    buffer: Buffer,
    random: Stream,
    hash: FlowHash,
    count: u32,
    quantum: i128,
    fresh: Law,
    queues: BTreeMap<u32, Queue>,
    turns: Turns,
    refills: u64,
}

struct Queue {
    law: Law,
    packets: Vec<Packet>,
    /// The number of its last arrival at an empty queue among all such arrivals.
    refill: u64,
}

impl Queue {
    fn bytes(&self) -> u128 {
        self.packets.iter().map(|packet| u128::from(packet.size.0)).sum()
    }
}

impl FqPie {
    pub(super) fn boxed(settings: &Settings, buffer: Buffer, seed: u64) -> Box<dyn Discipline> {
        let is_linux = settings.choice("form") == "linux";
        Box::new(FqPie {
            is_linux,
            buffer,
            random: Stream::new(seed, "fq-pie"),
            hash: FlowHash::new(seed),
            count: settings.count("queues"),
            quantum: settings.bytes("quantum").0.into(),
            fresh: Law::new(settings),
            queues: BTreeMap::new(),
            turns: Turns::new(is_linux),
            refills: 0,
        })
    }

    fn packets(&self) -> usize {
        self.queues.values().map(|queue| queue.packets.len()).sum()
    }

    fn bytes(&self) -> u128 {
        self.queues.values().map(Queue::bytes).sum()
    }

    fn is_over(&self, packets: usize, bytes: u128) -> bool {
        match self.buffer.amount() {
            Amount::Packets(limit) => packets > limit as usize,
            Amount::Bytes(limit) => bytes > u128::from(limit.0),
        }
    }
}

impl Discipline for FqPie {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let number = self.hash.bucket(&packet.flow, self.count);
        let size = u128::from(packet.size.0);
        let is_full = match self.is_linux {
            true => self.is_over(self.packets() + 1, self.bytes() + size),
            false => self.is_over(1, size),
        };
        let fresh = || Queue { law: self.fresh.clone(), packets: Vec::new(), refill: 0 };
        let queue = self.queues.entry(number).or_insert_with(fresh);
        queue.law.tick_until(now, queue.bytes());
        if is_full {
            queue.law.forget_sum();
            return losses.push(packet, LossReason::Refused);
        }
        let bytes = queue.bytes();
        let Some(packet) = queue.law.admit(packet, bytes, &mut self.random, losses) else { return };
        if queue.packets.is_empty() {
            queue.refill = self.refills;
            self.refills += 1;
        }
        queue.packets.push(packet);
        self.turns.arrived(number, self.quantum);
        while self.is_over(self.packets(), self.bytes()) {
            let queues = self.queues.values_mut().filter(|queue| !queue.packets.is_empty());
            let longest =
                queues.max_by_key(|queue| (queue.bytes(), std::cmp::Reverse(queue.refill)));
            let longest = longest.expect("an empty buffer is not full");
            longest.law.tick_until(now, longest.bytes());
            for _ in 0..(longest.packets.len() / 2).clamp(1, 64) {
                losses.push_out(longest.packets.remove(0), &packet);
            }
            if longest.packets.is_empty() {
                longest.law.emptied();
            }
        }
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        loop {
            let number = self.turns.next(|_, _| self.quantum)?;
            let queue = self.queues.get_mut(&number).expect("it has turns");
            if queue.packets.is_empty() {
                self.turns.found_empty(number);
                continue;
            }
            queue.law.tick_until(now, queue.bytes());
            let packet = queue.packets.remove(0);
            queue.law.sample(now, packet, queue.bytes());
            self.turns.spend(number, packet.size.0.into());
            return Some(packet);
        }
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        let bytes = u64::try_from(self.bytes()).unwrap_or(u64::MAX);
        Backlog { packets: self.packets() as u32, bytes: Bytes(bytes) }
    }

    fn flows_tracked(&self) -> usize {
        self.turns.active().len()
    }
}
