//! FQ-CoDel with its two lists written out (RFC 8290 section 4).
//!
//! The next queue is derived from the number of turns that each queue in debt has
//! to wait, instead of going through the turns. The twin shares with the real one
//! the hash that distributes flows among queues.

use std::collections::BTreeMap;

use tidegate_core::entry::Place;
use tidegate_core::flow_table::FlowHash;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Discipline, LossReason, Losses, Packet, Time};

use super::codel::{Law, Rules, backlog, bytes};

struct Queue {
    packets: Vec<Packet>,
    law: Law,
    credits: i128,
    /// When it was last empty, as a number that grows with every packet.
    empty_at: u64,
}

pub(super) struct FqCodel {
    buffer: Buffer,
    rules: Rules,
    hash: FlowHash,
    flows: u32,
    quantum: i128,
    drop_batch: u32,
    queues: BTreeMap<u32, Queue>,
    new: Vec<u32>,
    old: Vec<u32>,
    arrivals: u64,
}

impl FqCodel {
    pub(super) fn boxed(settings: &Settings, place: Place, seed: u64) -> Box<dyn Discipline> {
        Box::new(FqCodel {
            buffer: place.buffer,
            rules: Rules {
                ce_only_ect1: settings.choice("ce_threshold_selector") == "ect1",
                ..Rules::new(settings, place.rate)
            },
            hash: FlowHash::new(seed),
            flows: settings.count("flows"),
            quantum: i128::from(settings.bytes("quantum").0),
            drop_batch: settings.count("drop_batch"),
            queues: BTreeMap::new(),
            new: Vec::new(),
            old: Vec::new(),
            arrivals: 0,
        })
    }

    fn all(&self) -> Vec<Packet> {
        self.queues.values().flat_map(|queue| queue.packets.iter().copied()).collect()
    }

    fn is_over(&self, packets: &[Packet]) -> bool {
        match self.buffer.amount() {
            Amount::Packets(limit) => packets.len() > limit as usize,
            Amount::Bytes(limit) => bytes(packets) > u128::from(limit.0),
        }
    }

    /// The queue whose turn it is to send, after all turns of those in debt
    /// before it; it may be one without packets.
    fn next(&mut self) -> Option<u32> {
        let turns: Vec<u32> = self.new.iter().chain(&self.old).copied().collect();
        let quantum = self.quantum;
        // Quanta that it takes to have credits again.
        let waits = |number: &u32| {
            let credits = self.queues[number].credits;
            if credits > 0 { 0 } else { -credits / quantum + 1 }
        };
        let (position, wait) = turns
            .iter()
            .map(waits)
            .enumerate()
            .min_by_key(|(position, wait)| (*wait, *position))?;
        for (other, number) in turns.iter().enumerate() {
            let quanta = wait + i128::from(other < position);
            self.queues.get_mut(number).expect("it is listed").credits += quanta * quantum;
        }
        let (before, from) = turns.split_at(position);
        if wait > 0 {
            // All have had a turn and are old.
            self.new.clear();
            self.old = [from, before].concat();
        } else if position < self.new.len() {
            self.new.drain(..position);
            self.old.extend(before);
        } else {
            let new = std::mem::take(&mut self.new);
            let old_before = position - new.len();
            let skipped: Vec<u32> = self.old.drain(..old_before).collect();
            self.old.extend(new);
            self.old.extend(skipped);
        }
        turns.get(position).copied()
    }
}

impl Discipline for FqCodel {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        if self.is_over(&[packet]) {
            return losses.push(packet, LossReason::Refused);
        }
        let number = self.hash.bucket(&packet.flow, self.flows);
        let law = Law::new(&self.rules);
        let fresh = || Queue { packets: Vec::new(), law, credits: 0, empty_at: 0 };
        let queue = self.queues.entry(number).or_insert_with(fresh);
        self.arrivals += 1;
        if queue.packets.is_empty() {
            queue.empty_at = self.arrivals;
        }
        queue.packets.push(packet);
        if !self.new.contains(&number) && !self.old.contains(&number) {
            queue.credits = self.quantum;
            self.new.push(number);
        }
        while self.is_over(&self.all()) {
            let longest = self.queues.values_mut().filter(|queue| !queue.packets.is_empty());
            let longest = longest
                .max_by_key(|queue| (bytes(&queue.packets), std::cmp::Reverse(queue.empty_at)))
                .expect("something is queued");
            let half = if self.rules.is_linux {
                // So many that half of the bytes, rounded down, are gone.
                let half = bytes(&longest.packets) / 2;
                let is_half = |taken: &usize| bytes(&longest.packets[..*taken]) >= half;
                (1..=longest.packets.len()).find(is_half).expect("all are at least half")
            } else {
                longest.packets.len() / 2
            };
            let batch = half.min(self.drop_batch as usize).max(1);
            longest.law.pushed_out(batch as u32);
            for victim in longest.packets.drain(..batch) {
                losses.push_out(victim, &packet);
            }
        }
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        loop {
            let number = self.next()?;
            let all = bytes(&self.all());
            let queue = self.queues.get_mut(&number).expect("it is listed");
            let elsewhere = all - bytes(&queue.packets);
            let sent = queue.law.dequeue(&self.rules, &mut queue.packets, elsewhere, now, losses);
            if let Some(packet) = sent {
                queue.credits -= i128::from(packet.size.0);
                return Some(packet);
            }
            if self.new.first() == Some(&number) {
                self.new.remove(0);
                if !(self.rules.is_linux && self.old.is_empty()) {
                    self.old.push(number);
                }
            } else {
                self.old.retain(|other| *other != number);
            }
        }
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        backlog(&self.all())
    }

    fn flows_tracked(&self) -> usize {
        self.new.len() + self.old.len()
    }
}
