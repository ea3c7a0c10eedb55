//! FQ: the fair queue that Linux puts in front of its own senders, as a bottleneck.
//!
//! Flows are hashed into queues, which take turns by deficit round robin, those that
//! were idle first; a full queue refuses what comes for it (Linux 7.3, `sch_fq`, as it
//! is for packets that the machine forwards). Nothing keeps a queue short but its limit
//! of `flow_limit` packets.
//!
//! - A packet that finds nothing queued, or only packets that passed so, and no more
//!   than seven of them, joins no queue: a short FIFO goes before all else.
//! - An empty queue keeps its place until its turn comes while others have packets.
//! - A queue has a first credit of `initial_quantum`, ten packets, in its life. Then each
//!   turn brings `quantum`. What it has left when it empties stays its own; after
//!   `refill_delay` without packets, that is raised to a quantum.
//! - There are three bands, by the three levels to which Linux maps the codepoint of a
//!   forwarded packet: `band`. A band is served until it has used up its own quantum,
//!   or has no packets, and then the next one: 9, 3 and 1 times 64 KiB.
//! - A queue moves to the band of its last packet only as it becomes old, and every
//!   queue begins in the first band, wherever its packets belong: this is what `sch_fq`
//!   does, which puts a queue on its list before it notes the band. So the first packets
//!   of a new flow share that band's nine thirteenths, but may wait until another band
//!   has had its quantum: 157 ms for 192 KiB at 10 Mbit/s.
//!
//! - With a `maxrate`, no queue sends faster: `max_rate.rs`.
//!
//! What is left out: pacing by a rate or a departure time that a socket sets, which only
//! packets of the same machine have and no forwarded one; with it the horizon;
//! `ce_threshold`, off by default; and the collection of queues that were idle for three seconds, which happens only
//! when a flow next to it in a small tree is looked up: 662 of the 1 024 default queues
//! have a tree to themselves and never see it.
//!
//! The cost is O(1) per packet while packets are no larger than a few quanta, and
//! O(log n) in queues with a `maxrate`. No band
//! owes more than a quantum and no queue more than the largest IP packet, so that no
//! packet of impossible size stops the rounds.

mod max_rate;

use std::collections::VecDeque;

use max_rate::MaxRate;

use super::flow_queues::{FlowQueues, Rotation};
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::FlowHash;
use crate::packet::{Dscp, Packet};
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Rate, Span, Time};

/// The registry's entry for [`Fq`].
pub const ENTRY: Entry = Entry {
    name: "fq",
    summary: "fair queues with a limit each, idle ones first, in three bands by codepoint",
    source: "Linux 7.3",
    linux: Some("fq"),
    drops: Drops::WhenFull,
    parameters: &[QUEUES, QUANTUM, INITIAL_QUANTUM, FLOW_LIMIT, REFILL_DELAY, MAX_RATE],
    fixed: &[QUEUES, MAX_RATE],
    build: |settings, Place { buffer, .. }, seed| {
        let sharing = Sharing::from_settings(settings);
        let most = settings.bandwidth(MAX_RATE.name);
        Box::new(Fq::new(settings.count(QUEUES.name), sharing, most, buffer, seed))
    },
};

/// `orphan_mask` and one.
const QUEUES: Parameter = Parameter {
    name: "queues",
    help: "number of queues that flows are hashed into",
    kind: Kind::Count { least: 1, most: 65_536 },
    default: "1024",
};

/// Two of `psched_mtu`, without the header of the link, which sizes do not have here.
const QUANTUM: Parameter = Parameter {
    name: "quantum",
    help: "what a queue may send in each turn",
    kind: Kind::Bytes { least: Bytes(256), most: Bytes(1_000_000) },
    default: "3000 B",
};

/// Ten of them.
const INITIAL_QUANTUM: Parameter = Parameter {
    name: "initial_quantum",
    help: "what a queue may send in the first turn of its life",
    kind: Kind::Bytes { least: Bytes(0), most: Bytes(1_000_000) },
    default: "15000 B",
};

/// `flow_plimit`.
const FLOW_LIMIT: Parameter = Parameter {
    name: "flow_limit",
    help: "packets that one queue holds at most",
    kind: Kind::Count { least: 1, most: 1_000_000_000 },
    default: "100",
};

const REFILL_DELAY: Parameter = Parameter {
    name: "refill_delay",
    help: "time without packets after which a queue has a whole quantum again",
    kind: Kind::Span { least: Span::ZERO, most: Span::seconds(60) },
    default: "40 ms",
};

/// `flow_max_rate`.
const MAX_RATE: Parameter = Parameter {
    name: "maxrate",
    help: "the rate that no queue exceeds, however idle the link",
    kind: Kind::Bandwidth { least: Rate(1_000) },
    default: "unlimited",
};

/// Packets of the FIFO that goes first (`fq_fastpath_check`).
const FRONT_PACKETS: usize = 8;

/// What the bands may send in a turn: 9, 3 and 1 in units of 64 KiB.
const BAND_QUANTA: [i128; 3] = [9 << 16, 3 << 16, 1 << 16];

/// The most that a queue owes: an IP packet is no larger.
const MOST_DEBT: i128 = 65_535;

/// The band of a forwarded packet: `ip_tos2prio` looks at two bits of what was the type
/// of service, and `sch_default_prio2band` at the result.
fn band(dscp: Dscp) -> usize {
    match dscp.number() >> 1 & 0b11 {
        0b01 => 2,
        0b10 => 0,
        _ => 1,
    }
}

/// How queues share the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// What a queue may send in each turn; not zero.
    pub quantum: Bytes,
    /// What it may send in the first turn of its life.
    pub initial_quantum: Bytes,
    /// The packets that it holds at most.
    pub flow_limit: u32,
    /// The time without packets after which it has a whole quantum.
    pub refill_delay: Span,
}

impl Sharing {
    fn from_settings(settings: &Settings) -> Sharing {
        Sharing {
            quantum: settings.bytes(QUANTUM.name),
            initial_quantum: settings.bytes(INITIAL_QUANTUM.name),
            flow_limit: settings.count(FLOW_LIMIT.name),
            refill_delay: settings.span(REFILL_DELAY.name),
        }
    }
}

/// What a queue keeps while it has packets and beyond.
#[derive(Debug, Default)]
struct Flow {
    /// `None` before its first packet.
    credits: Option<i128>,
    /// The band that it joins next.
    band: usize,
    listed: Option<Listed>,
    /// When it was last found empty and left its list.
    left: Time,
    /// Before this it may not send; the start of time if it never had to wait.
    next: Time,
}

/// The list in which a queue has its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    New,
    Old,
    /// In none: with packets, but too early.
    Throttled,
}

#[derive(Debug, Default)]
struct Band {
    new: Rotation,
    old: Rotation,
    credits: i128,
}

impl Band {
    /// The queue whose turn it is, if the band may send.
    fn first(&self) -> Option<(u32, Listed)> {
        if self.credits <= 0 {
            return None;
        }
        let new = self.new.first().map(|queue| (queue, Listed::New));
        new.or_else(|| self.old.first().map(|queue| (queue, Listed::Old)))
    }
}

/// Queues of flows in three bands.
#[derive(Debug)]
pub struct Fq {
    count: u32,
    sharing: Sharing,
    max_rate: Option<MaxRate>,
    buffer: Buffer,
    hash: FlowHash,
    /// What goes before all queues.
    front: VecDeque<Packet>,
    queues: FlowQueues<Flow>,
    bands: [Band; 3],
    /// The band being served.
    serving: usize,
    /// Queues on a list.
    listed: usize,
    backlog: Backlog,
}

impl Fq {
    /// An empty buffer of at most `buffer`, for flows that are hashed into `count` queues,
    /// at least one, by a hash that depends on `seed`, and none of which exceeds
    /// `max_rate`.
    #[must_use]
    pub fn new(
        count: u32,
        sharing: Sharing,
        max_rate: Option<Rate>,
        buffer: Buffer,
        seed: u64,
    ) -> Fq {
        Fq {
            count,
            sharing,
            max_rate: max_rate.map(MaxRate::new),
            buffer,
            hash: FlowHash::new(seed),
            front: VecDeque::with_capacity(FRONT_PACKETS),
            queues: FlowQueues::new(),
            bands: Default::default(),
            serving: 0,
            listed: 0,
            backlog: Backlog::default(),
        }
    }

    /// Puts a queue at the end of the list of its band.
    fn list(&mut self, queue: u32, list: Listed) {
        let flow = self.queues.state(queue);
        flow.listed = Some(list);
        let band = &mut self.bands[flow.band];
        match list {
            Listed::New => band.new.push_back(queue),
            Listed::Old => band.old.push_back(queue),
            Listed::Throttled => {}
        }
    }

    /// Takes the queue whose turn it is out of the list.
    fn unlist(&mut self, queue: u32, list: Listed) {
        let band = &mut self.bands[self.serving];
        match list {
            Listed::New => band.new.remove(queue),
            Listed::Old => band.old.remove(queue),
            Listed::Throttled => {}
        }
    }

    /// The queue whose turn it is, after all turns of those that have used up theirs.
    fn next(&mut self) -> Option<(u32, Listed)> {
        let mut passed = 0;
        loop {
            let Some((queue, list)) = self.bands[self.serving].first() else {
                passed += 1;
                if passed > self.bands.len() {
                    return None;
                }
                self.serving = (self.serving + 1) % self.bands.len();
                let quantum = BAND_QUANTA[self.serving];
                let credits = &mut self.bands[self.serving].credits;
                *credits = (*credits + quantum).min(quantum);
                continue;
            };
            passed = 0;
            let quantum = i128::from(self.sharing.quantum.0);
            match &mut self.queues.state(queue).credits {
                Some(credits) if *credits <= 0 => *credits += quantum,
                _ => return Some((queue, list)),
            }
            self.unlist(queue, list);
            self.list(queue, Listed::Old);
        }
    }
}

/// What a `maxrate` adds.
impl Fq {
    /// Queues whose time has come by `now` have turns again, as old ones.
    fn release(&mut self, now: Time) {
        while let Some(queue) = self.max_rate.as_mut().and_then(|rate| rate.release(now)) {
            self.list(queue, Listed::Old);
        }
    }

    /// Takes a queue whose turn it is, and that has packets, out of the list if it is
    /// too early for it.
    fn throttle(&mut self, now: Time, queue: u32, list: Listed) -> bool {
        let Some(max_rate) = &mut self.max_rate else { return false };
        let flow = self.queues.state(queue);
        if flow.next <= now {
            return false;
        }
        max_rate.throttle(flow.next, queue);
        flow.listed = Some(Listed::Throttled);
        self.unlist(queue, list);
        true
    }

    /// A queue has sent a packet of `size` at `now`.
    fn charge(&mut self, now: Time, queue: u32, size: Bytes) {
        let Some(max_rate) = &mut self.max_rate else { return };
        let has_more = !self.queues.is_empty(queue);
        let flow = self.queues.state(queue);
        let before = flow.next;
        let credits = flow.credits.as_mut().expect("a queue with packets has them");
        if let Some(span) = max_rate.span(credits, size, self.sharing.quantum) {
            // The link was late, which a queue makes up for as far as half of its wait.
            let late = if before == Time::ZERO { Span::ZERO } else { now.since(before) };
            flow.next = now + (span - late.min(span / 2));
        }
        max_rate.sent(queue, before, has_more.then_some(flow.next));
    }
}

impl Discipline for Fq {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if !self.buffer.has_room(self.backlog, packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let no_queue_waits = self.queues.backlog().packets == 0;
        if self.max_rate.is_none() && no_queue_waits && self.front.len() < FRONT_PACKETS {
            self.backlog.add(packet.size);
            return self.front.push_back(packet);
        }
        let queue = self.hash.bucket(&packet.flow, self.count);
        if self.queues.packets_of(queue) >= self.sharing.flow_limit {
            return losses.push(packet, LossReason::Refused);
        }
        let Sharing { quantum, initial_quantum, refill_delay, .. } = self.sharing;
        let flow = self.queues.state(queue);
        let is_idle = flow.listed.is_none();
        match &mut flow.credits {
            None => flow.credits = Some(initial_quantum.0.into()),
            Some(credits) if is_idle && now.since(flow.left) > refill_delay => {
                *credits = (*credits).max(quantum.0.into());
            }
            Some(_) => {}
        }
        if is_idle {
            self.listed += 1;
            self.list(queue, Listed::New);
        }
        let is_empty = self.queues.is_empty(queue);
        let flow = self.queues.state(queue);
        flow.band = band(packet.dscp);
        if let Some(max_rate) = self.max_rate.as_mut().filter(|_| is_empty) {
            max_rate.wait(flow.next, queue);
        }
        self.backlog.add(packet.size);
        self.queues.push(queue, packet);
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        if let Some(packet) = self.front.pop_front() {
            self.backlog.remove(packet.size);
            return Some(packet);
        }
        // An empty queue stays on its list until the next packet leaves.
        if self.next_ready(now)? > now {
            return None;
        }
        self.release(now);
        loop {
            let (queue, list) = self.next()?;
            if !self.queues.is_empty(queue) && self.throttle(now, queue, list) {
                continue;
            }
            let Some(packet) = self.queues.pop_first(queue) else {
                self.unlist(queue, list);
                if list == Listed::New {
                    self.list(queue, Listed::Old);
                } else {
                    let flow = self.queues.state(queue);
                    (flow.listed, flow.left) = (None, now);
                    self.listed -= 1;
                }
                continue;
            };
            self.backlog.remove(packet.size);
            let size = i128::from(packet.size.0);
            let credits = &mut self.bands[self.serving].credits;
            *credits = (*credits - size).max(1 - BAND_QUANTA[self.serving]);
            if let Some(credits) = &mut self.queues.state(queue).credits {
                *credits = (*credits - size).max(-MOST_DEBT);
            }
            self.charge(now, queue, packet.size);
            return Some(packet);
        }
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.sharing = Sharing::from_settings(settings);
        self.buffer = buffer;
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        match &self.max_rate {
            None => (self.backlog.packets > 0).then_some(now),
            Some(max_rate) => max_rate.first().map(|at| at.max(now)),
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Queues that have turns or wait for their time: those with packets, and a few that
    /// were just emptied.
    fn flows_tracked(&self) -> usize {
        self.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;

    fn fq(given: &[(&str, &str)], packets: u32) -> Trial<Fq> {
        let settings = ENTRY.settings(given).unwrap();
        let sharing = Sharing::from_settings(&settings);
        let most = settings.bandwidth(MAX_RATE.name);
        Trial::new(Fq::new(65_536, sharing, most, Buffer::packets(packets), 1))
    }

    /// Fills the FIFO that goes first with packets 0 to 7.
    fn behind_the_front(given: &[(&str, &str)], packets: u32) -> Trial<Fq> {
        let mut trial = fq(given, packets);
        trial.arrive_all([('z', 100); 8]);
        trial
    }

    #[test]
    fn the_bits_of_delay_and_throughput_choose_the_band() {
        let found = [0, 8, 46, 10, 18, 34, 12, 20, 1].map(|dscp| band(Dscp::new(dscp).unwrap()));
        // Best effort, CS1, EF; AF11, AF21, AF41 (bulk); AF12, AF22 (interactive); LE.
        assert_eq!(found, [1, 1, 1, 2, 2, 2, 0, 0, 1]);
    }

    #[test]
    fn eight_packets_pass_in_order_of_arrival_while_no_queue_waits() {
        let mut trial = fq(&[], 100);
        trial.arrive_all([('a', 1_500), ('b', 1_500), ('a', 1_500), ('b', 1_500)]);
        assert_eq!(trial.discipline.flows_tracked(), 0);
        trial.arrive_all([('a', 1_500); 5]);
        trial.arrive_all([('b', 1_500), ('a', 1_500)]);
        // Packets 0 to 7 go first; then `a` has 8 and 10, and ten packets' credits.
        assert_eq!(trial.discipline.flows_tracked(), 2);
        assert_eq!(trial.drain(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 9]);
    }

    #[test]
    fn a_queue_begins_with_ten_packets_and_then_has_two_in_each_turn() {
        let mut trial = behind_the_front(&[], 100);
        trial.arrive_all([('a', 1_500); 15]);
        trial.arrive_all([('b', 1_500); 3]);
        // `a` is 8 to 22 and `b` 23 to 25, which are no more than ten.
        let order: Vec<_> = (0..18).chain([23, 24, 25]).chain(18..23).collect();
        assert_eq!(trial.drain(), order);
        // `a` has 1 500 left and is still old; `b` left with 10 500 and is new again.
        trial.arrive_all([('z', 100); 8]);
        trial.arrive_all([('a', 1_500); 4]);
        trial.arrive_all([('b', 1_500); 9]);
        // `a` is 34 to 37, of which it may send one, and `b` 38 to 46.
        let order: Vec<_> = (26..34).chain(38..45).chain([34, 45, 46, 35, 36, 37]).collect();
        assert_eq!(trial.drain(), order);
    }

    #[test]
    fn a_queue_that_was_idle_for_more_than_40_ms_has_a_quantum_again() {
        for (micros, order) in [(40_000, [20, 23, 21, 22]), (40_001, [20, 21, 23, 22])] {
            let mut trial = behind_the_front(&[("initial_quantum", "2000 B")], 100);
            trial.arrive_all([('a', 1_500), ('b', 1_500), ('b', 1_500), ('b', 1_500)]);
            // `a` sends 8 and has 500 left; it leaves as 11, the last of `b`, is sent.
            assert_eq!(trial.drain().len(), 12);
            trial.now += Span::micros(micros);
            trial.arrive_all([('z', 100); 8]);
            trial.arrive_all([('a', 1_500), ('a', 1_500), ('a', 1_500), ('b', 1_500)]);
            // `a` has those 500, or 3 000; then it is old, behind `b`, which has 500.
            assert_eq!(trial.drain()[8..], order, "{micros} us");
        }
    }

    #[test]
    fn a_queue_of_100_packets_is_full_and_a_full_buffer_refuses() {
        let mut trial = behind_the_front(&[], 1_000);
        trial.arrive_all([('a', 100); 102]);
        assert_eq!(trial.lost(), [108, 109].map(|handle| (handle, LossReason::Refused)));
        let mut trial = fq(&[], 9);
        trial.arrive_all([('a', 100), ('b', 100), ('a', 100), ('b', 100), ('a', 100)]);
        trial.arrive_all([('a', 100), ('b', 100), ('a', 100), ('b', 100), ('a', 100)]);
        assert_eq!(trial.lost(), [(9, LossReason::Refused)]);
    }

    /// Every new queue is in the first band; `a` and `b` become old in the second.
    #[test]
    fn a_new_queue_waits_until_the_second_band_has_had_its_192_kib() {
        let mut trial = behind_the_front(&[("flow_limit", "1000")], 1_000);
        trial.arrive_all([('a', 1_500); 300]);
        // The front, and ten packets of the first band.
        assert_eq!(
            (0..18).map(|_| trial.send().unwrap()).collect::<Vec<_>>(),
            (0..18).collect::<Vec<_>>()
        );
        // The eleventh is that of the second band, which has 196 608 bytes.
        assert_eq!(trial.send(), Some(18));
        trial.arrive('b', 1_500);
        let before = (19..).take_while(|expected| trial.send() == Some(*expected)).count();
        // 132 packets of 1 500 use them up, one of which was 18.
        assert_eq!(before, 131);
    }

    fn millis(at: u64) -> Time {
        Time(Span::millis(at).0)
    }

    /// A packet of 1 500 bytes takes 1 ms at the rate, and a quantum is two of them.
    #[test]
    fn a_queue_at_its_maxrate_sends_a_quantum_and_waits_for_as_long_as_that_takes() {
        let given = [("maxrate", "12 Mbit/s"), ("initial_quantum", "3000 B")];
        let mut trial = fq(&given, 100);
        trial.arrive_all([('a', 1_500); 7]);
        trial.arrive_all([('b', 1_500); 2]);
        assert_eq!(trial.drain(), [0, 1, 7, 8]);
        assert_eq!(trial.discipline.next_ready(trial.now), Some(millis(2)));
        // A poll that is late by less than half of the wait costs nothing.
        trial.now = millis(2) + Span::micros(900);
        assert_eq!(trial.drain(), [2, 3]);
        assert_eq!(trial.discipline.next_ready(trial.now), Some(millis(4)));
        // Later ones cost the rest, and an empty queue keeps its time.
        trial.now = millis(7);
        assert_eq!(trial.drain(), [4, 5]);
        assert_eq!(trial.discipline.next_ready(trial.now), Some(millis(8)));
        trial.arrive_all([('b', 1_500); 2]);
        assert_eq!(trial.drain(), [9, 10]);
        trial.now = millis(8);
        assert_eq!(trial.drain(), [6]);
        assert_eq!(trial.discipline.next_ready(trial.now), None);
    }

    #[test]
    fn a_queue_with_a_low_maxrate_waits_after_each_packet_for_a_second_at_most() {
        let mut trial = fq(&[("maxrate", "550 kbit/s")], 100);
        trial.arrive_all([('a', 550), ('a', 550), ('a', 1_100), ('a', 550)]);
        for (at, sent) in [(0, 0), (8, 1), (16, 2), (32, 3)] {
            trial.now = millis(at);
            assert_eq!(trial.drain(), [sent], "{at} ms");
        }
        let mut trial = fq(&[("maxrate", "1 kbit/s")], 100);
        trial.arrive_all([('a', 1_500); 2]);
        assert_eq!(trial.drain(), [0]);
        assert_eq!(trial.discipline.next_ready(trial.now), Some(millis(1_000)));
    }
}
