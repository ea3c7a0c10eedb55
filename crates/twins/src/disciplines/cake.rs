//! CAKE over plain lists: tins by lists of codepoints, a map of queues in each, whose
//! hosts' loads are counted anew each time, and a shaper that goes through all that was
//! ever sent.
//!
//! It shares with the real one the hash, the stream of random numbers, credits in
//! 2^-16 of a byte, and that an interval over a root is rounded down.

use std::collections::BTreeMap;
use std::net::IpAddr;

use tidegate_core::entry::Place;
use tidegate_core::flow_table::FlowHash;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, Ecn, FlowKey, LossReason, Losses, Packet, Rate, Stream,
    Time,
};

use crate::shapers::paced::{Line, nanos};

mod cobalt;

use cobalt::{Cobalt, Parameters};

pub(super) struct Cake {
    buffer: Buffer,
    random: Stream,
    hash: FlowHash,
    settings: Settings,
    tins: Vec<Tin>,
    turn: usize,
    refills: u64,
    line: Line,
}

struct Tin {
    rate: Option<u64>,
    cobalt: Parameters,
    clock: u128,
    quantum: i128,
    deficit: i128,
    lanes: BTreeMap<u32, Lane>,
    sparse: Vec<u32>,
    busy: Vec<u32>,
    decaying: Vec<u32>,
}

#[derive(Clone, Default)]
struct Lane {
    owner: Option<FlowKey>,
    /// What its hosts are taken from.
    key: Option<FlowKey>,
    packets: Vec<Packet>,
    is_shared: bool,
    credits: i128,
    /// Whether it counts for its hosts.
    counts: bool,
    cobalt: Cobalt,
    /// The number of its last arrival at an empty queue among all such arrivals.
    refill: u64,
}

impl Lane {
    fn bytes(&self) -> u128 {
        self.packets.iter().map(|packet| u128::from(packet.size.0)).sum()
    }
}

impl Tin {
    fn new(settings: &Settings, share: u64, rate: Option<u64>) -> Tin {
        Tin {
            rate,
            cobalt: Parameters::new(settings.span("rtt").0, rate),
            clock: 0,
            quantum: share.into(),
            deficit: 0,
            lanes: BTreeMap::new(),
            sparse: Vec::new(),
            busy: Vec::new(),
            decaying: Vec::new(),
        }
    }

    fn lists(&mut self) -> [&mut Vec<u32>; 3] {
        [&mut self.sparse, &mut self.busy, &mut self.decaying]
    }

    fn leave(&mut self, queue: u32) {
        self.lists().into_iter().for_each(|list| list.retain(|other| *other != queue));
    }

    fn is_idle(&self, queue: u32) -> bool {
        ![&self.sparse, &self.busy, &self.decaying].iter().any(|list| list.contains(&queue))
    }

    fn has_turns(&self) -> bool {
        !self.sparse.is_empty() || !self.busy.is_empty()
    }

    fn packets(&self) -> usize {
        self.lanes.values().map(|lane| lane.packets.len()).sum()
    }

    fn lane(&mut self, queue: u32) -> &mut Lane {
        self.lanes.entry(queue).or_default()
    }

    /// What a queue gets for a turn: less, the more busy queues its source or
    /// destination has.
    fn share(&self, isolation: &str, queue: u32) -> i128 {
        let key = self.lanes[&queue].key.expect("it has had a packet");
        let busy = |host: fn(FlowKey) -> IpAddr| {
            let same = |lane: &&Lane| lane.counts && lane.key.map(host) == Some(host(key));
            self.lanes.values().filter(same).count()
        };
        let by_source = busy(|key| key.source().ip());
        let by_destination = busy(|key| key.destination().ip());
        let load = match isolation {
            "triple-isolate" => by_source.max(by_destination),
            "dual-srchost" => by_source,
            "dual-dsthost" => by_destination,
            _ => 1,
        };
        let bytes = self.rate.map_or(1_514, |rate| (rate / 8 / 4_096).clamp(300, 1_514));
        i128::from(bytes) * 65_536 / load.max(1) as i128
    }

    /// The queue to look at.
    fn next(&mut self, isolation: &str, looks: bool) -> u32 {
        if looks && !self.decaying.is_empty() {
            return self.decaying[0];
        }
        loop {
            let is_sparse = !self.sparse.is_empty();
            let queue = if is_sparse { self.sparse[0] } else { self.busy[0] };
            if self.lanes[&queue].credits > 0 {
                return queue;
            }
            self.leave(queue);
            self.busy.push(queue);
            let lane = self.lane(queue);
            lane.counts |= is_sparse && !lane.packets.is_empty();
            let share = self.share(isolation, queue);
            self.lane(queue).credits += share;
            // A packet of 2^64 bytes takes as many rounds: those after which still
            // nobody has credits are made up for.
            if !is_sparse && self.busy.iter().all(|queue| self.lanes[queue].credits <= 0) {
                let shares: Vec<i128> =
                    self.busy.iter().map(|queue| self.share(isolation, *queue)).collect();
                let credits = self.busy.iter().map(|queue| self.lanes[queue].credits);
                let rounds = credits.zip(&shares).map(|(credits, share)| -credits / share).min();
                for (queue, share) in self.busy.clone().iter().zip(shares) {
                    self.lane(*queue).credits += rounds.expect("one is busy") * share;
                }
            }
        }
    }
}

/// The tin of a codepoint, by lists.
fn tin_of(scheme: &str, dscp: u8) -> usize {
    let lists: &[(usize, &[u8])] = match scheme {
        "besteffort" => &[],
        "precedence" => return usize::from(dscp >> 3),
        "diffserv3" => &[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])],
        "diffserv4" => &[
            (1, &[1, 8]),
            (2, &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]),
            (3, &[32, 40, 44, 46, 48, 56]),
        ],
        _ => &[
            (0, &[1]),
            (1, &[2, 8, 10, 12, 14]),
            (3, &[24, 26, 28, 30, 34, 36, 38]),
            (4, &[4, 18, 20, 22]),
            (5, &[16]),
            (6, &[32, 40, 44, 46]),
            (7, &[48, 56]),
        ],
    };
    let listed = lists.iter().find(|(_, codepoints)| codepoints.contains(&dscp));
    listed.map_or(if scheme == "diffserv8" { 2 } else { 0 }, |(tin, _)| *tin)
}

/// Parts of the rate and of a round, of a whole.
fn shares(scheme: &str, whole: u64) -> Vec<u64> {
    let part = |divisor: u64| whole / divisor;
    match scheme {
        "besteffort" => vec![whole],
        "diffserv3" => vec![whole, part(16), part(4)],
        "diffserv4" => vec![whole, part(16), part(2), part(4)],
        _ => {
            let seven_eighths = |rest: &u64| Some((u128::from(*rest) * 7 / 8) as u64);
            std::iter::successors(Some(whole), seven_eighths).take(8).collect()
        }
    }
}

impl Cake {
    pub(super) fn boxed(settings: &Settings, buffer: Buffer, seed: u64) -> Box<dyn Discipline> {
        let scheme = settings.choice("tins");
        let whole = match scheme {
            "besteffort" => 65_535,
            "diffserv3" | "diffserv4" => 1_024,
            _ => 256,
        };
        let rates = settings.bandwidth("bandwidth").map(|rate| shares(scheme, rate.0));
        let tin = |(number, share): (usize, u64)| {
            let rate = rates.as_ref().map(|rates| rates[number].max(512));
            Tin::new(settings, share, rate)
        };
        Box::new(Cake {
            buffer,
            random: Stream::new(seed, "cake"),
            hash: FlowHash::new(seed),
            settings: settings.clone(),
            tins: shares(scheme, whole).into_iter().enumerate().map(tin).collect(),
            turn: 0,
            refills: 0,
            line: Line::default(),
        })
    }

    fn isolation(&self) -> &'static str {
        self.settings.choice("isolation")
    }

    fn flow(&self, packet: &Packet) -> FlowKey {
        let nobody = IpAddr::from([0_u16; 8]);
        let source = packet.flow.source().ip();
        let destination = packet.flow.destination().ip();
        let (source, destination) = match self.isolation() {
            "hosts" => (source, destination),
            "srchost" => (source, nobody),
            "dsthost" => (nobody, destination),
            "flowblind" => (nobody, nobody),
            _ => return packet.flow,
        };
        FlowKey::new((source, 0).into(), (destination, 0).into(), 0)
    }

    fn charge(&self, size: Bytes) -> Bytes {
        let size = size.0.saturating_add(self.settings.bytes("overhead").0);
        let size = u128::from(size.max(self.settings.bytes("mpu").0));
        let carried = match self.settings.choice("framing") {
            "atm" => size.div_ceil(48) * 53,
            "ptm" => size + size.div_ceil(64),
            _ => size,
        };
        Bytes(u64::try_from(carried).unwrap_or(u64::MAX))
    }

    /// The queue for a packet, whether it becomes that of the packet's flow, and
    /// whether it is shared from now on.
    fn lane_of(&self, tin: &Tin, flow: FlowKey) -> (u32, bool, bool) {
        let first = (self.hash.of(&flow) >> 54) as u32;
        let set = first / 8 * 8;
        let ways: Vec<u32> = (0..8).map(|way| set + (first % 8 + way) % 8).collect();
        let is = |way: &u32, what: &dyn Fn(&Lane) -> bool| tin.lanes.get(way).is_some_and(what);
        let own = ways.iter().find(|way| is(way, &|lane| lane.owner == Some(flow)));
        let has_packets = is(&first, &|lane| !lane.packets.is_empty());
        let free = ways.iter().find(|way| tin.is_idle(**way));
        match (own, free) {
            (Some(own), _) => (*own, tin.is_idle(*own), false),
            (None, _) if has_packets && is(&first, &|lane| lane.is_shared) => (first, false, true),
            (None, Some(free)) => (*free, true, false),
            (None, None) => (first, !has_packets, has_packets),
        }
    }

    /// The index of the acknowledgement that goes when `packet` comes.
    fn superseded(&self, queued: &[Packet], packet: &Packet) -> Option<usize> {
        let newer = packet.tcp.filter(|facts| !facts.syn)?.acknowledgement?;
        let superseded = queued.iter().take(64).enumerate().filter(|(_, queued)| {
            let Some(facts) = queued.tcp.filter(|facts| facts.plain) else { return false };
            let ahead = |older: u32| newer.wrapping_sub(older).cast_signed() > 0;
            queued.flow == packet.flow
                && (facts.payload, facts.syn, facts.fin) == (0, false, false)
                && facts.acknowledgement.is_some_and(ahead)
        });
        let places: Vec<usize> = superseded.map(|(place, _)| place).collect();
        let least = match self.settings.choice("ack_filter") {
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

    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.tins.iter().flat_map(|tin| tin.lanes.values())
    }

    fn packets(&self) -> usize {
        self.lanes().map(|lane| lane.packets.len()).sum()
    }

    fn bytes(&self) -> u128 {
        self.lanes().map(Lane::bytes).sum()
    }

    /// The tin to be served.
    fn next_tin(&mut self, now: Time) -> usize {
        let now = u128::from(now.0);
        let with_turns: Vec<usize> =
            (0..self.tins.len()).filter(|tin| self.tins[*tin].has_turns()).collect();
        if self.tins[0].rate.is_some() {
            let clock = |tin: &usize| self.tins[*tin].clock;
            let below = with_turns.iter().rev().find(|tin| clock(tin) <= now);
            let soonest = with_turns.iter().rev().min_by_key(|tin| clock(tin));
            return *below.or(soonest).expect("there is a packet");
        }
        loop {
            for _ in 0..self.tins.len() {
                let tin = &mut self.tins[self.turn];
                if tin.has_turns() && tin.deficit >= 0 {
                    return self.turn;
                }
                tin.deficit += if tin.deficit <= 0 { tin.quantum } else { 0 };
                self.turn = (self.turn + 1) % self.tins.len();
            }
            let rounds = |tin: &usize| (-self.tins[*tin].deficit).max(0) / self.tins[*tin].quantum;
            let rounds = with_turns.iter().map(rounds).min().expect("there is a packet");
            for tin in &mut self.tins {
                let takes = if tin.deficit <= 0 { 1 - tin.deficit / tin.quantum } else { 0 };
                tin.deficit += takes.min(rounds) * tin.quantum;
            }
        }
    }
}

impl Discipline for Cake {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if self.is_over(1, packet.size.0.into()) {
            return losses.push(packet, LossReason::Refused);
        }
        let number = tin_of(self.settings.choice("tins"), packet.dscp.number());
        let (flow, isolation, refill) = (self.flow(&packet), self.isolation(), self.refills);
        let (queue, is_claimed, is_shared) = self.lane_of(&self.tins[number], flow);
        let queued = self.tins[number].lane(queue).packets.clone();
        let superseded = self.superseded(&queued, &packet);
        let tin = &mut self.tins[number];
        if tin.packets() == 0 {
            tin.clock = tin.clock.max(u128::from(now.0));
        }
        let (was_sparse, was_busy) = (tin.sparse.contains(&queue), tin.busy.contains(&queue));
        let lane = tin.lane(queue);
        if is_claimed {
            (lane.owner, lane.key) = (Some(flow), Some(packet.flow));
        }
        lane.is_shared = is_shared || lane.is_shared && !lane.packets.is_empty();
        if lane.packets.is_empty() {
            lane.refill = refill;
        }
        lane.counts |= was_busy;
        lane.packets.push(packet);
        if let Some(place) = superseded {
            losses.push(lane.packets.remove(place), LossReason::Superseded);
        }
        if !was_sparse && !was_busy {
            tin.leave(queue);
            let share = tin.share(isolation, queue);
            tin.lane(queue).credits = share;
            tin.sparse.push(queue);
        }
        self.refills += 1;
        while self.is_over(self.packets(), self.bytes()) {
            let lanes = self.tins.iter_mut().flat_map(|tin| {
                let cobalt = tin.cobalt;
                tin.lanes.values_mut().map(move |lane| (lane, cobalt))
            });
            let (longest, cobalt) = lanes
                .filter(|(lane, _)| !lane.packets.is_empty())
                .max_by_key(|(lane, _)| (lane.bytes(), std::cmp::Reverse(lane.refill)))
                .expect("an empty buffer is not full");
            losses.push_out(longest.packets.remove(0), &packet);
            longest.cobalt.overflow(cobalt, now.0);
        }
        self.line.call(now, None, self.packets() > 0);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.line.times().1.filter(|due| *due <= now)?;
        let isolation = self.isolation();
        let mut looks = true;
        loop {
            let number = self.next_tin(now);
            let tin = &mut self.tins[number];
            let queue = tin.next(isolation, looks);
            looks = false;
            let cobalt = tin.cobalt;
            let lane = tin.lane(queue);
            if lane.packets.is_empty() {
                lane.cobalt.found_empty(cobalt, now.0);
                lane.counts = false;
                let is_at_rest = lane.cobalt.is_at_rest(now.0);
                tin.leave(queue);
                if !is_at_rest {
                    tin.decaying.push(queue);
                }
                continue;
            }
            let sent = loop {
                let packet = lane.packets.remove(0);
                let is_last = lane.packets.is_empty();
                let verdict = lane.cobalt.judge(cobalt, now.0, &packet, &mut self.random);
                if verdict.drop && !is_last {
                    losses.push(packet, LossReason::Early);
                } else if verdict.mark {
                    break losses.signal(packet).expect("it can be marked");
                } else {
                    break packet;
                }
            };
            let threshold = self.settings.span("ce_threshold").0;
            let is_late = threshold > 0 && now.0 - sent.arrived.0 > threshold;
            let sent = match sent.ecn {
                Ecn::Ect1 if is_late => losses.signal(sent).expect("it can be marked"),
                _ => sent,
            };
            let size = self.charge(sent.size);
            let tin = &mut self.tins[number];
            tin.lane(queue).credits -= i128::from(size.0) * 65_536;
            match tin.rate {
                None => tin.deficit -= i128::from(size.0),
                Some(rate) => {
                    let end = |from: u128| {
                        (from + nanos(size, Rate(rate)).min(u64::MAX.into())).min(u64::MAX.into())
                    };
                    let now = u128::from(now.0);
                    let is_behind = tin.clock < now;
                    tin.clock = if is_behind { end(tin.clock) } else { tin.clock.max(end(now)) };
                }
            }
            let rate = self.settings.bandwidth("bandwidth");
            let takes = rate.map_or(0, |rate| nanos(size, rate));
            self.line.call(now, Some(takes), self.packets() > 0);
            return Some(sent);
        }
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.line.times().1.map(|due| due.max(now))
    }

    fn backlog(&self) -> Backlog {
        let bytes = u64::try_from(self.bytes()).unwrap_or(u64::MAX);
        Backlog { packets: self.packets() as u32, bytes: Bytes(bytes) }
    }

    fn rate(&self) -> Option<Rate> {
        self.settings.bandwidth("bandwidth")
    }

    fn flows_tracked(&self) -> usize {
        let lists = |tin: &Tin| tin.sparse.len() + tin.busy.len() + tin.decaying.len();
        self.tins.iter().map(lists).sum()
    }
}
