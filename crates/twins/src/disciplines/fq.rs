//! FQ with its lists written out: for each band one of new queues and one of old, by
//! number. What a queue has, and whether any queue waits, is looked for in all packets.

use std::collections::BTreeMap;

use tidegate_core::entry::Place;
use tidegate_core::flow_table::FlowHash;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Discipline, LossReason, Losses, Packet, Time};

use super::codel::{backlog, bytes};

pub(super) struct Fq {
    buffer: Buffer,
    hash: FlowHash,
    count: u32,
    quantum: i128,
    initial_quantum: i128,
    flow_limit: usize,
    refill_delay: u64,
    /// Packets in order of arrival: of queues, and of none for what goes first.
    packets: Vec<(Option<u32>, Packet)>,
    max_rate: Option<u64>,
    flows: BTreeMap<u32, Flow>,
    bands: [Band; 3],
    serving: usize,
}

struct Flow {
    credit: i128,
    band: usize,
    left: Time,
    /// In nanoseconds.
    next: u64,
    is_throttled: bool,
}

#[derive(Default)]
struct Band {
    new: Vec<u32>,
    old: Vec<u32>,
    credit: i128,
}

impl Fq {
    pub(super) fn boxed(settings: &Settings, buffer: Buffer, seed: u64) -> Box<dyn Discipline> {
        Box::new(Fq {
            buffer,
            hash: FlowHash::new(seed),
            count: settings.count("queues"),
            quantum: settings.bytes("quantum").0.into(),
            initial_quantum: settings.bytes("initial_quantum").0.into(),
            flow_limit: settings.count("flow_limit") as usize,
            refill_delay: settings.span("refill_delay").0,
            packets: Vec::new(),
            max_rate: settings.bandwidth("maxrate").map(|rate| rate.0),
            flows: BTreeMap::new(),
            bands: Default::default(),
            serving: 0,
        })
    }

    fn all(&self) -> Vec<Packet> {
        self.packets.iter().map(|(_, packet)| *packet).collect()
    }

    fn packets_of(&self, queue: Option<u32>) -> usize {
        self.packets.iter().filter(|(other, _)| *other == queue).count()
    }

    fn take_first(&mut self, queue: Option<u32>) -> Option<Packet> {
        let at = self.packets.iter().position(|(other, _)| *other == queue)?;
        Some(self.packets.remove(at).1)
    }

    fn listed(&self) -> Vec<u32> {
        let with_turns = self.bands.iter().flat_map(|band| band.new.iter().chain(&band.old));
        with_turns.copied().chain(self.throttled()).collect()
    }

    fn throttled(&self) -> impl Iterator<Item = u32> + '_ {
        self.flows.iter().filter(|(_, flow)| flow.is_throttled).map(|(queue, _)| *queue)
    }

    /// Queues whose time has come become old, in the order of their times.
    fn release(&mut self, now: Time) {
        let mut due: Vec<_> =
            self.throttled().map(|queue| (self.flows[&queue].next, queue)).collect();
        due.sort_unstable();
        for (_, queue) in due.into_iter().filter(|(next, _)| *next <= now.0) {
            let flow = self.flows.get_mut(&queue).expect("it is throttled");
            flow.is_throttled = false;
            self.bands[flow.band].old.push(queue);
        }
    }

    /// What a queue that has sent `size` owes to the rate.
    fn charge(&mut self, now: Time, queue: u32, size: u64) {
        let (Some(rate), quantum) = (self.max_rate, self.quantum) else { return };
        let flow = self.flows.get_mut(&queue).expect("it has sent");
        let mut size = i128::from(size);
        if rate <= 550_000 {
            flow.credit = 0;
        } else if flow.credit > 0 {
            return;
        } else {
            size = size.max(quantum);
        }
        let nanos = (size * 8_000_000_000 + i128::from(rate) - 1) / i128::from(rate);
        let wait = nanos.min(1_000_000_000) as u64;
        let late = if flow.next == 0 { 0 } else { now.0 - flow.next };
        flow.next = now.0.saturating_add(wait - late.min(wait / 2));
    }

    fn quantum_of(band: usize) -> i128 {
        65_536 * [9, 3, 1][band]
    }
}

impl Discipline for Fq {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let mut all = self.all();
        all.push(packet);
        let is_over = match self.buffer.amount() {
            Amount::Packets(limit) => all.len() > limit as usize,
            Amount::Bytes(limit) => bytes(&all) > u128::from(limit.0),
        };
        if is_over {
            return losses.push(packet, LossReason::Refused);
        }
        let in_front = self.packets_of(None);
        if self.max_rate.is_none() && in_front == self.packets.len() && in_front < 8 {
            return self.packets.push((None, packet));
        }
        let queue = self.hash.bucket(&packet.flow, self.count);
        if self.packets_of(Some(queue)) >= self.flow_limit {
            return losses.push(packet, LossReason::Refused);
        }
        let is_listed = self.listed().contains(&queue);
        let first =
            Flow { credit: self.initial_quantum, band: 0, left: now, next: 0, is_throttled: false };
        let flow = self.flows.entry(queue).or_insert(first);
        if !is_listed {
            if now.0 - flow.left.0 > self.refill_delay {
                flow.credit = flow.credit.max(self.quantum);
            }
            self.bands[flow.band].new.push(queue);
        }
        // Bits of the type of service: 0x10 asks for low delay, 0x08 for throughput.
        let tos = packet.dscp.number() << 2;
        flow.band = match (tos & 0x10 > 0, tos & 0x08 > 0) {
            (true, false) => 0,
            (false, true) => 2,
            _ => 1,
        };
        self.packets.push((Some(queue), packet));
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        if let Some(packet) = self.take_first(None) {
            return Some(packet);
        }
        if self.next_ready(now)? > now {
            return None;
        }
        self.release(now);
        let mut empty_bands = 0;
        loop {
            let serving = self.serving;
            let band = &mut self.bands[serving];
            let from_new = !band.new.is_empty();
            if band.credit <= 0 || !from_new && band.old.is_empty() {
                empty_bands += 1;
                if empty_bands == 4 {
                    return None;
                }
                self.serving = (serving + 1) % 3;
                let quantum = Self::quantum_of(self.serving);
                let next = &mut self.bands[self.serving];
                next.credit = (next.credit + quantum).min(quantum);
                continue;
            }
            empty_bands = 0;
            let list = if from_new { &mut band.new } else { &mut band.old };
            let queue = list[0];
            let flow = self.flows.get_mut(&queue).expect("it was put on a list");
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.remove(0);
                self.bands[flow.band].old.push(queue);
                continue;
            }
            if flow.next > now.0 && self.packets.iter().any(|(other, _)| *other == Some(queue)) {
                flow.is_throttled = true;
                list.remove(0);
                continue;
            }
            if let Some(packet) = self.take_first(Some(queue)) {
                let size = i128::from(packet.size.0);
                let flow = self.flows.get_mut(&queue).expect("it was put on a list");
                flow.credit = (flow.credit - size).max(-65_535);
                let band = &mut self.bands[serving];
                band.credit = (band.credit - size).max(1 - Self::quantum_of(serving));
                self.charge(now, queue, packet.size.0);
                return Some(packet);
            }
            let band = &mut self.bands[serving];
            let list = if from_new { &mut band.new } else { &mut band.old };
            list.remove(0);
            let flow = self.flows.get_mut(&queue).expect("it was put on a list");
            if from_new {
                self.bands[flow.band].old.push(queue);
            } else {
                flow.left = now;
            }
        }
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        let of = |queue: Option<u32>| queue.map_or(0, |queue| self.flows[&queue].next);
        let first = self.packets.iter().map(|(queue, _)| of(*queue)).min()?;
        Some(Time(first.max(now.0)))
    }

    fn backlog(&self) -> Backlog {
        backlog(&self.all())
    }

    fn flows_tracked(&self) -> usize {
        self.listed().len()
    }
}
