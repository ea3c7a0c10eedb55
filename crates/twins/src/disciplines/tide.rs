//! Tide with its flows in one list, of which whatever is asked for is looked up.
//!
//! Tags are sums over what a flow has sent, in numbers without an end; who is next, who
//! pays and who gives way is found by sorting all flows. The twin shares with the real
//! one where slots of tags begin, the order in which idle flows are looked at, and
//! CoDel's own twin.

use std::cmp::Reverse;

use tidegate_core::entry::{Medium, Place};
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Discipline, FlowKey, LossReason, Losses, Packet, Span, Time};

use super::codel::{Law, Rules, backlog, bytes};

const PACKET: i128 = 1_514;
/// What a packet counts for at most.
const MOST: i128 = 1 << 19;
/// 8 credits of the largest size, and two packets.
const FARTHEST: i128 = 8 * 300_000 + 2 * MOST;
/// What waits counts up to this.
const WINDOW: i128 = 10 * PACKET;

pub(super) struct Tide {
    credit: i128,
    rules: Rules,
    buffer: Buffer,
    /// Backlogged, idle, and those that are only still in the list.
    flows: Vec<Flow>,
    /// Idle flows in the order in which they are looked at.
    idle: Vec<FlowKey>,
    /// Where virtual time has been since the queue was last empty.
    times: Vec<i128>,
    /// What flows in credit owe, and what they have had that has not moved virtual time.
    owed: i128,
    passed: i128,
    /// Counts whatever puts a flow somewhere.
    events: u64,
    /// Where shares are fair between hosts: those of each side, each with its tag.
    hosts: Option<Vec<(Side, i128)>>,
}

/// A source, or a destination.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Side {
    is_source: bool,
    host: FlowKey,
}

fn sides(flow: FlowKey) -> [Side; 2] {
    [
        Side { is_source: true, host: flow.source_host() },
        Side { is_source: false, host: flow.destination_host() },
    ]
}

struct Flow {
    key: FlowKey,
    packets: Vec<Packet>,
    law: Law,
    /// Where it began, or came back to, and what each packet that it has sent since counted.
    start: i128,
    sent: Vec<i128>,
    /// Its hosts have been counted.
    has_joined: bool,
    idle_since: Option<Time>,
    /// Since the last time that nothing was queued.
    is_of_now: bool,
    /// The rank by which it has its turn, and since when it has stood in that slot.
    turn: Option<(i128, u64)>,
    /// The slot of its tail, and since when.
    tail: Option<(i128, u64)>,
}

fn cost(packet: &Packet) -> i128 {
    i128::from(packet.size.0).min(MOST)
}

fn slot(tag: i128) -> i128 {
    tag.div_euclid(1_024)
}

impl Flow {
    fn tag(&self) -> i128 {
        self.start + self.sent.iter().sum::<i128>()
    }

    fn put_at(&mut self, tag: i128) {
        self.start = tag;
        self.sent.clear();
    }
}

impl Tide {
    pub(super) fn boxed(settings: &Settings, place: Place) -> Box<dyn Discipline> {
        Box::new(Tide {
            credit: i128::from(settings.bytes("credit").0),
            rules: rules(place),
            buffer: place.buffer,
            flows: Vec::new(),
            idle: Vec::new(),
            times: vec![0],
            owed: 0,
            passed: 0,
            events: 0,
            hosts: settings.switch("hosts").then(Vec::new),
        })
    }

    fn all(&self) -> Vec<Packet> {
        self.flows.iter().flat_map(|flow| flow.packets.iter().copied()).collect()
    }

    fn is_over(&self, packets: &[Packet]) -> bool {
        match self.buffer.amount() {
            Amount::Packets(limit) => packets.len() > limit as usize,
            Amount::Bytes(limit) => bytes(packets) > u128::from(limit.0),
        }
    }

    fn has_too_many(&self) -> bool {
        let most = match self.buffer.amount() {
            Amount::Packets(limit) => i128::from(limit),
            Amount::Bytes(limit) => (i128::from(limit.0) / PACKET).max(1),
        };
        self.flows.len() as i128 > most
    }

    fn virtual_time(&self) -> i128 {
        *self.times.iter().max().expect("it began somewhere")
    }

    fn flow(&mut self, key: FlowKey) -> &mut Flow {
        self.flows.iter_mut().find(|flow| flow.key == key).expect("it is listed")
    }

    /// Backlogged flows in the order of service, each with its tag.
    fn turns(&self) -> Vec<(FlowKey, i128)> {
        let mut turns: Vec<_> = self.flows.iter().filter(|flow| !flow.packets.is_empty()).collect();
        turns.sort_by_key(|flow| flow.turn.map(|(rank, since)| (slot(rank), since)));
        turns.iter().map(|flow| (flow.key, flow.tag())).collect()
    }

    /// Where a backlogged flow has its turn: payers by their tags, and before them flows in
    /// credit by what they have had and have waiting.
    fn rank(&self, flow: &Flow) -> i128 {
        let line = slot(self.virtual_time());
        if slot(flow.tag()) >= line {
            return flow.tag();
        }
        let waiting = i128::try_from(bytes(&flow.packets)).expect("sizes have 64 bits");
        (flow.tag() + waiting.min(WINDOW)).min(line * 1_024 - 1)
    }

    /// The tag of an idle flow as it would come back; nothing if it would be new.
    fn standing(&self, flow: &Flow, now: Time) -> Option<i128> {
        let idle = now.0 - flow.idle_since.expect("it is idle").0;
        let start = self.virtual_time() - self.credit;
        let had = flow.tag() - start - i128::from(idle / 262_144);
        (flow.is_of_now && had > 0).then_some(start + had)
    }

    fn forget(&mut self, key: FlowKey) {
        self.idle.retain(|other| *other != key);
        self.flows.retain(|flow| flow.key != key);
        let Tide { hosts: Some(hosts), flows, .. } = self else { return };
        hosts.retain(|(side, _)| {
            flows.iter().any(|flow| flow.has_joined && sides(flow.key).contains(side))
        });
    }

    /// A flow in credit is not before its hosts.
    fn floor(&self, key: FlowKey, tag: i128) -> i128 {
        let shared = self.shared(key);
        let hosts = self.hosts.iter().flatten().filter(|(side, _)| shared.contains(side));
        hosts.map(|(_, tag)| *tag).fold(tag, i128::max)
    }

    /// The hosts of a backlogged flow beside which another of their side is.
    fn shared(&self, key: FlowKey) -> Vec<Side> {
        let backlogged = self.flows.iter().filter(|flow| !flow.packets.is_empty());
        let others: Vec<Side> = backlogged.flat_map(|flow| sides(flow.key)).collect();
        let is_shared = |side: &Side| {
            others.iter().any(|other| other.is_source == side.is_source && other != side)
        };
        sides(key).into_iter().filter(is_shared).collect()
    }

    /// The payers of the host that has more of them, where that counts.
    fn share(&self, key: FlowKey) -> i128 {
        if self.hosts.is_none() {
            return 1;
        }
        let line = slot(self.virtual_time());
        let pays = |flow: &&Flow| !flow.packets.is_empty() && slot(flow.tag()) >= line;
        let of = |side: Side| {
            self.flows.iter().filter(pays).filter(|flow| sides(flow.key).contains(&side)).count()
        };
        sides(key).map(of).into_iter().max().unwrap_or(0).max(1) as i128
    }

    /// A packet has come: its flow begins no earlier than its hosts, which move on.
    fn charge_hosts(&mut self, packet: &Packet, begins: i128) {
        if self.hosts.is_none() {
            return;
        }
        let key = packet.flow;
        self.flow(key).has_joined = true;
        let hosts = self.hosts.as_mut().expect("there are hosts");
        for side in sides(key) {
            if hosts.iter().all(|(known, _)| *known != side) {
                hosts.push((side, begins));
            }
        }
        if self.flow(key).packets.is_empty() {
            let floor = self.floor(
                key,
                self.flows.iter().find(|it| it.key == key).expect("it is listed").tag(),
            );
            self.flow(key).put_at(floor);
        }
        let (farthest, shared) = (self.virtual_time() + 8 * self.credit, self.shared(key));
        for (side, tag) in self.hosts.iter_mut().flatten() {
            if shared.contains(side) {
                *tag = ((*tag).max(begins) + (cost(packet) + 7) / 8).min(farthest);
            }
        }
    }

    fn look_at_idle(&mut self, now: Time) {
        let Some(key) = self.idle.first().copied() else { return };
        let flow = self.flows.iter().find(|flow| flow.key == key).expect("it is listed");
        if self.has_too_many() || self.standing(flow, now).is_none() {
            self.forget(key);
        } else {
            self.idle.rotate_left(1);
        }
    }

    fn arrive(&mut self, now: Time, packet: Packet) {
        let key = packet.flow;
        let start = self.virtual_time() - self.credit;
        let at = self.flows.iter().position(|flow| flow.key == key);
        let was_idle = self.idle.contains(&key);
        let standing = at.filter(|_| was_idle).and_then(|at| self.standing(&self.flows[at], now));
        self.events += 1;
        let has_joined = at.is_some_and(|at| self.flows[at].has_joined);
        if at.is_none() || was_idle && standing.is_none() {
            self.flows.retain(|flow| flow.key != key);
            self.flows.push(Flow {
                key,
                packets: Vec::new(),
                law: Law::new(&self.rules),
                start,
                sent: Vec::new(),
                has_joined,
                idle_since: None,
                is_of_now: true,
                turn: None,
                tail: None,
            });
        }
        self.idle.retain(|other| *other != key);
        if !was_idle
            && self.has_too_many()
            && let Some(longest) = self.idle.first().copied()
        {
            self.forget(longest);
        }
        let flow = self.flow(key);
        if let Some(tag) = standing {
            flow.put_at(tag);
        }
        flow.idle_since = None;
        self.charge_hosts(&packet, start);
        self.flow(key).packets.push(packet);
    }

    /// What has happened to a flow may have moved its turn and its tail, or have left it
    /// idle.
    fn settle(&mut self, now: Time, key: FlowKey) {
        let (farthest, events) = (self.virtual_time() + FARTHEST, self.events);
        let rank = self.rank(self.flows.iter().find(|flow| flow.key == key).expect("it is listed"));
        let (share, least) = (self.share(key), if self.hosts.is_some() { 1 } else { 2 });
        let flow = self.flow(key);
        let since = match flow.turn {
            Some((before, since)) if slot(before) == slot(rank) => since,
            _ => events,
        };
        flow.turn = (!flow.packets.is_empty()).then_some((rank, since));
        let bytes = i128::try_from(bytes(&flow.packets)).expect("sizes have 64 bits");
        let tail = slot((flow.tag() + bytes * share).min(farthest));
        if flow.packets.len() < least {
            flow.tail = None;
        } else if flow.tail.is_none_or(|(before, _)| before != tail) {
            flow.tail = Some((tail, events));
        }
        if flow.packets.is_empty() {
            flow.idle_since = Some(now);
            self.idle.push(key);
            let flow = self.flows.iter().find(|flow| flow.key == key).expect("it is listed");
            if self.standing(flow, now).is_none() {
                self.forget(key);
            }
        }
    }

    /// Virtual time goes there, but not further than a credit and a packet beyond where the
    /// turn is.
    fn move_on(&mut self, to: i128, rank: i128) {
        self.times.push(to.min(rank + self.credit + PACKET));
    }

    fn is_due(&mut self, (key, tag): (FlowKey, i128), rank: i128) -> bool {
        let loan = 8 * self.credit;
        if self.owed < 8 * self.credit {
            return false;
        }
        if tag - self.virtual_time() > loan {
            // A packet of each payer of the host.
            let more = (self.share(key) - 1) * PACKET;
            self.move_on(tag - loan, rank + more);
        }
        tag - self.virtual_time() <= loan
    }
}

/// CoDel of 5 and 100 ms with a floor of ten packets, and one and a half packets as the
/// least target; on the air 20 in place of 5 ms.
fn rules(Place { rate, medium, .. }: Place) -> Rules {
    let packet = rate.map_or(0, |rate| (8_000_000_000 * 1_514_u128).div_ceil(u128::from(rate.0)));
    let target = u64::try_from(packet * 3 / 2).expect("slower than any rate that is tried");
    Rules {
        is_linux: false,
        target: Span(target.max(match medium {
            Medium::Wire => 5_000_000,
            Medium::Radio => 20_000_000,
        })),
        interval: Span(100_000_000),
        mtu: 15_140,
        ecn: true,
        ce_threshold: Span(0),
        ce_only_ect1: false,
    }
}

impl Discipline for Tide {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if self.is_over(&[packet]) {
            return losses.push(packet, LossReason::Refused);
        }
        self.arrive(now, packet);
        self.settle(now, packet.flow);
        while self.is_over(&self.all()) {
            let long = self.flows.iter().filter_map(|flow| Some((flow.tail?, flow.key)));
            let last = long.max_by_key(|((slot, since), _)| (*slot, Reverse(*since)));
            self.events += 1;
            let key = last.map_or(packet.flow, |(_, key)| key);
            // Of a flow that is alone, head and tail are the same.
            losses.push_out(self.flow(key).packets.remove(0), &packet);
            self.settle(now, key);
        }
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.look_at_idle(now);
        let turns = self.turns();
        let (first, tag_of_first) = *turns.first()?;
        let (rank, _) = self.flow(first).turn.expect("it is backlogged");
        let line = slot(self.virtual_time());
        let payer = turns.iter().find(|(_, tag)| slot(*tag) >= line).copied();
        let is_in_turn = payer.is_some_and(|(key, _)| key == first);
        let pays = is_in_turn || payer.is_some_and(|payer| self.is_due(payer, rank));
        let key = if pays { payer.expect("one does").0 } else { first };
        if is_in_turn {
            self.times.push(tag_of_first);
        }
        let (rules, share) = (self.rules, self.share(key));
        let flow = self.flow(key);
        let packet = if pays {
            let Flow { law, packets, .. } = flow;
            law.dequeue(&rules, packets, 0, now, losses).expect("CoDel leaves one")
        } else {
            flow.packets.remove(0)
        };
        if pays {
            self.owed = (self.owed - 8 * cost(&packet)).max(0);
        } else {
            self.owed = if payer.is_some() { self.owed + cost(&packet) } else { 0 };
            // The eighth of an equal share, to the whole byte.
            let part = 8 * turns.len() as i128;
            let share = (self.passed + cost(&packet)) / part;
            self.passed = (self.passed + cost(&packet)) % part;
            let to = self.virtual_time() + share;
            self.move_on(payer.map_or(to, |(_, tag)| to.min(tag)), rank);
        }
        self.events += 1;
        let line = slot(self.virtual_time());
        let flow = self.flow(key);
        flow.sent.push(if pays { (cost(&packet) * share).min(MOST) } else { cost(&packet) });
        if !pays {
            let tag = flow.tag();
            let floor = self.floor(key, tag);
            self.flow(key).put_at(floor);
        }
        let flow = self.flow(key);
        if slot(flow.tag()) >= line {
            // It goes behind those that are equal.
            flow.turn = None;
        }
        if self.all().is_empty() {
            self.times = vec![0];
            self.owed = 0;
            self.passed = 0;
            self.flows.iter_mut().for_each(|flow| flow.is_of_now = false);
            self.hosts.iter_mut().flatten().for_each(|(_, tag)| *tag = -self.credit);
        }
        self.settle(now, key);
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        backlog(&self.all())
    }

    fn flows_tracked(&self) -> usize {
        self.flows.len()
    }
}
