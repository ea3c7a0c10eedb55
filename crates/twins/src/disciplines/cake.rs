//! CAKE over plain lists: a map of queues, whose hosts' loads are counted anew each
//! time, and a COBALT that steps through everything that decays.
//!
//! It shares with the real one the hash, the stream of random numbers, credits in
//! 2^-16 of a byte, and that an interval over a root is rounded down.

use std::collections::BTreeMap;

use tidegate_core::entry::Place;
use tidegate_core::flow_table::FlowHash;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, FlowKey, LossReason, Losses, Packet, Stream, Time,
};

use super::turns::Turns;

pub(super) struct Cake {
    buffer: Buffer,
    random: Stream,
    hash: FlowHash,
    interval: u64,
    isolation: &'static str,
    ack_filter: &'static str,
    lanes: BTreeMap<u32, Lane>,
    turns: Turns,
    refills: u64,
}

#[derive(Clone, Default)]
struct Lane {
    owner: Option<FlowKey>,
    packets: Vec<Packet>,
    is_shared: bool,
    cobalt: Cobalt,
    /// The number of its last arrival at an empty queue among all such arrivals.
    refill: u64,
}

impl Lane {
    fn bytes(&self) -> u128 {
        self.packets.iter().map(|packet| u128::from(packet.size.0)).sum()
    }
}

impl Cake {
    pub(super) fn boxed(settings: &Settings, buffer: Buffer, seed: u64) -> Box<dyn Discipline> {
        Box::new(Cake {
            buffer,
            random: Stream::new(seed, "cake"),
            hash: FlowHash::new(seed),
            interval: settings.span("rtt").0,
            isolation: settings.choice("isolation"),
            ack_filter: settings.choice("ack_filter"),
            lanes: BTreeMap::new(),
            turns: Turns::default(),
            refills: 0,
        })
    }

    fn flow(&self, packet: &Packet) -> FlowKey {
        match self.isolation {
            "hosts" => FlowKey::new(
                (packet.flow.source().ip(), 0).into(),
                (packet.flow.destination().ip(), 0).into(),
                0,
            ),
            _ => packet.flow,
        }
    }

    /// What a queue gets for a turn: less, the more old queues with packets its
    /// source or destination has.
    fn quantum(&self, old: &[u32], number: u32) -> i128 {
        let owner = |number: &u32| self.lanes[number].owner.expect("it has turns");
        let busy = |same: &dyn Fn(&FlowKey) -> bool| {
            let is_busy =
                |other: &&u32| !self.lanes[*other].packets.is_empty() && same(&owner(other));
            old.iter().filter(is_busy).count()
        };
        let own = owner(&number);
        let by_source = busy(&|other| other.source().ip() == own.source().ip());
        let by_destination = busy(&|other| other.destination().ip() == own.destination().ip());
        let load = match self.isolation {
            "triple-isolate" => by_source.max(by_destination),
            "dual-srchost" => by_source,
            "dual-dsthost" => by_destination,
            _ => 1,
        };
        1_514 * 65_536 / load.max(1) as i128
    }

    fn lane_of(&self, flow: FlowKey) -> (u32, bool) {
        let first = (self.hash.of(&flow) >> 54) as u32;
        let set = first / 8 * 8;
        let ways: Vec<u32> = (0..8).map(|way| set + (first % 8 + way) % 8).collect();
        let active = self.turns.active();
        let is = |way: &u32, what: &dyn Fn(&Lane) -> bool| self.lanes.get(way).is_some_and(what);
        let own = ways.iter().find(|way| is(way, &|lane| lane.owner == Some(flow)));
        let free = ways.iter().find(|way| !active.contains(way));
        match (own, free) {
            (Some(own), _) => (*own, false),
            (None, _) if is(&first, &|lane| lane.is_shared) => (first, true),
            (None, Some(free)) => (*free, false),
            (None, None) => (first, true),
        }
    }

    /// The index of the acknowledgement that goes when `packet` comes.
    fn superseded(&self, number: u32, packet: &Packet) -> Option<usize> {
        let newer = packet.tcp.filter(|facts| !facts.syn)?.acknowledgement?;
        let packets = self.lanes[&number].packets.iter().take(64).enumerate();
        let superseded = packets.filter(|(_, queued)| {
            let Some(facts) = queued.tcp.filter(|facts| facts.plain) else { return false };
            let ahead = |older: u32| newer.wrapping_sub(older).cast_signed() > 0;
            queued.flow == packet.flow
                && (facts.payload, facts.syn, facts.fin) == (0, false, false)
                && facts.acknowledgement.is_some_and(ahead)
        });
        let places: Vec<usize> = superseded.map(|(place, _)| place).collect();
        let least = match self.ack_filter {
            "off" => return None,
            "on" => 2,
            _ => 1,
        };
        places.first().filter(|_| places.len() >= least).copied()
    }

    fn is_over(&self, packets: usize, bytes: u128) -> bool {
        match self.buffer.amount() {
            Amount::Packets(limit) => packets > limit as usize,
            Amount::Bytes(limit) => bytes > u128::from(limit.0),
        }
    }

    fn packets(&self) -> usize {
        self.lanes.values().map(|lane| lane.packets.len()).sum()
    }

    fn bytes(&self) -> u128 {
        self.lanes.values().map(Lane::bytes).sum()
    }

    fn lane(&mut self, number: u32) -> &mut Lane {
        self.lanes.entry(number).or_default()
    }
}

impl Discipline for Cake {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if self.is_over(1, packet.size.0.into()) {
            return losses.push(packet, LossReason::Refused);
        }
        let flow = self.flow(&packet);
        let (number, is_shared) = self.lane_of(flow);
        if !self.turns.active().contains(&number) {
            let lane = self.lane(number);
            if lane.owner != Some(flow) {
                *lane = Lane { owner: Some(flow), ..Lane::default() };
            }
            let quantum = self.quantum(self.turns.old(), number);
            self.turns.arrived(number, quantum);
        }
        let superseded = self.superseded(number, &packet);
        let (interval, refill) = (self.interval, self.refills);
        let lane = self.lane(number);
        if lane.packets.is_empty() {
            lane.cobalt.decay(interval, now.0);
            lane.refill = refill;
        }
        lane.is_shared |= is_shared;
        lane.packets.push(packet);
        if let Some(place) = superseded {
            losses.push(lane.packets.remove(place), LossReason::Superseded);
        }
        self.refills += 1;
        while self.is_over(self.packets(), self.bytes()) {
            let lanes = self.lanes.values_mut().filter(|lane| !lane.packets.is_empty());
            let longest = lanes.max_by_key(|lane| (lane.bytes(), std::cmp::Reverse(lane.refill)));
            let longest = longest.expect("an empty buffer is not full");
            losses.push_out(longest.packets.remove(0), &packet);
            longest.cobalt.overflow(interval, now.0);
            if longest.packets.is_empty() {
                longest.cobalt.empty_since = now.0;
                longest.is_shared = false;
            }
        }
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        loop {
            let mut turns = std::mem::take(&mut self.turns);
            let number = turns.next(|old, number| self.quantum(old, number));
            self.turns = turns;
            let number = number?;
            if self.lanes[&number].packets.is_empty() {
                self.turns.found_empty(number);
                continue;
            }
            let interval = self.interval;
            let lane = self.lanes.get_mut(&number).expect("it has packets");
            let sent = loop {
                let packet = lane.packets.remove(0);
                let is_last = lane.packets.is_empty();
                if is_last {
                    lane.cobalt.empty_since = now.0;
                    lane.is_shared = false;
                }
                let verdict = lane.cobalt.judge(interval, now.0, &packet, &mut self.random);
                if verdict.drop && !is_last {
                    losses.push(packet, LossReason::Early);
                } else if verdict.mark {
                    break losses.signal(packet).expect("it can be marked");
                } else {
                    break packet;
                }
            };
            self.turns.spend(number, i128::from(sent.size.0) * 65_536);
            return Some(sent);
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

/// What to do with a packet; one that must not be dropped may still be marked.
struct Verdict {
    drop: bool,
    mark: bool,
}

/// CoDel whose count goes up and down, and BLUE in 4 096 x 2^20 steps.
#[derive(Clone, Default)]
struct Cobalt {
    count: u64,
    above: bool,
    next: u64,
    blue: u64,
    blue_at: u64,
    empty_since: u64,
}

impl Cobalt {
    /// Nanoseconds from one signal to the next.
    fn gap(&self, interval: u64) -> u64 {
        // The largest number whose square, times the count, is within the interval's.
        let fits = |gap: u128| {
            gap * gap * u128::from(self.count.max(1)) <= u128::from(interval) * u128::from(interval)
        };
        // An interval of an hour has 42 bits.
        let bits = (0..42).rev().map(|bit| 1_u128 << bit);
        bits.fold(0, |gap, bit| if fits(gap | bit) { gap | bit } else { gap }) as u64
    }

    fn judge(&mut self, interval: u64, now: u64, packet: &Packet, random: &mut Stream) -> Verdict {
        let due = self.count > 0 && self.next <= now;
        let waited_long = now - packet.arrived.0 > interval / 20;
        if waited_long && !self.above {
            self.next = now.saturating_add(self.gap(interval));
        }
        self.above = waited_long;
        if waited_long && self.count == 0 {
            self.count = 1;
        }
        let signal = due && waited_long;
        if signal {
            self.count = (self.count + 1).min(u64::from(u32::MAX));
            self.next = self.next.saturating_add(self.gap(interval));
        } else if due {
            self.unwind(interval, now);
        }
        let can_be_marked = packet.ecn.is_markable();
        let struck = self.blue > 0 && random.bits() >> 32 < self.blue;
        let drop = struck || signal && !can_be_marked;
        if self.count == 0 {
            self.next = now.saturating_add(interval);
        } else if !drop {
            self.next = self.next.max(now);
        }
        Verdict { drop, mark: signal && can_be_marked }
    }

    fn unwind(&mut self, interval: u64, now: u64) {
        while self.count > 0 && self.next <= now {
            self.count -= 1;
            self.next = self.next.saturating_add(self.gap(interval));
        }
    }

    fn overflow(&mut self, interval: u64, now: u64) {
        if now - self.blue_at > interval / 20 {
            self.blue = (self.blue + (1 << 24)).min(1 << 32);
            self.blue_at = now;
        }
        self.above = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// While the queue was empty, until `now`.
    fn decay(&mut self, interval: u64, now: u64) {
        self.above = false;
        self.unwind(interval, now);
        let mut step = u128::from(self.blue_at.max(self.empty_since)) + u128::from(interval / 20);
        while self.blue > 0 && step <= u128::from(now) {
            self.blue = self.blue.saturating_sub(1 << 20);
            step += u128::from(interval / 20);
        }
    }
}
