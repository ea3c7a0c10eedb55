//! CAKE: fair to hosts first, then to their flows, each queue under COBALT.
//!
//! The part of Linux's home gateway that decides about packets (`CAKE`,
//! `tc-cake(8)`). It consists of
//! - 1 024 queues in sets of eight: a flow may take any free queue of the set that
//!   it hashes to, so that two flows share one only when all eight are taken;
//! - turns by deficit round robin, idle queues first (`sparse_first.rs`). A queue's
//!   quantum is divided by the number of busy queues of its source or of its
//!   destination, whichever has more, so no host gains by opening more connections;
//! - COBALT in each queue, at departures (`cobalt.rs`);
//! - a filter of acknowledgements, if asked for (`ack_filter.rs`);
//! - losses at the head of the queue with the most bytes when the buffer is full.
//!
//! A queue is busy while it has packets and has used up a quantum since it was last
//! idle: flows that send less than their share do not count against their hosts.
//! The quantum is counted in 2^-16 of a byte, so that its parts are fair where
//! Linux rounds at random.
//!
//! There is one tin, and so no priorities; and there is no shaper, which the link
//! that asks for packets replaces. CAKE's shaper also knows the rate, and raises
//! the target of COBALT to one and a half times the time that a packet takes: here,
//! set `rtt` on links below 4 Mbit/s.
//!
//! A flow that finds all eight queues taken shares the first that it hashes to, for
//! as long as that has packets. In Linux it becomes the queue's owner, and the next
//! packets of the old owner may overtake those that the old owner has queued.
//!
//! The cost is O(1) per packet where a host has few busy queues, and otherwise up
//! to O(n) in busy queues for some packets, as turns get smaller than packets; it
//! is O(log n) once a full buffer has caused losses.

use std::mem;

use super::ack_filter::AckFilter;
use super::cobalt::{Cobalt, CobaltParameters};
use super::flow_queues::FlowQueues;
use super::form::Form;
use super::sparse_first::SparseFirst;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::{FlowHash, FlowId, FlowTable};
use crate::packet::{FlowKey, Packet};
use crate::random::Stream;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Span, Time};

/// The registry's entry for [`Cake`].
pub const ENTRY: Entry = Entry {
    name: "cake",
    summary: "fair between hosts, then between their flows, each flow under CoDel and BLUE",
    source: "CAKE",
    drops: Drops::Early,
    parameters: &[RTT, ISOLATION, ACK_FILTER],
    fixed: &[ISOLATION],
    build: |settings, Place { buffer, .. }, seed| {
        let isolation = match settings.choice(ISOLATION.name) {
            "flows" => Isolation::Flows,
            "hosts" => Isolation::HostPairs,
            "dual-srchost" => Isolation::Sources,
            "dual-dsthost" => Isolation::Destinations,
            _ => Isolation::Triple,
        };
        Box::new(Cake::new(settings.span(RTT.name), isolation, filter(settings), buffer, seed))
    },
};

const RTT: Parameter = Parameter {
    name: "rtt",
    help: "a long but usual round trip: the interval of COBALT, whose target is a twentieth of it",
    kind: Kind::Span { least: Span::micros(1), most: Span::seconds(3_600) },
    default: "100 ms",
};

const ISOLATION: Parameter = Parameter {
    name: "isolation",
    help: "between whom shares are fair, in the words of tc-cake",
    kind: Kind::Choice(&["triple-isolate", "dual-srchost", "dual-dsthost", "flows", "hosts"]),
    default: "triple-isolate",
};

const ACK_FILTER: Parameter = Parameter {
    name: "ack_filter",
    help: "an arriving TCP acknowledgement removes one that it supersedes",
    kind: Kind::Choice(&["off", "on", "aggressive"]),
    default: "off",
};

/// The value of [`ACK_FILTER`].
fn filter(settings: &Settings) -> Option<AckFilter> {
    match settings.choice(ACK_FILTER.name) {
        "on" => Some(AckFilter::Conservative),
        "aggressive" => Some(AckFilter::Aggressive),
        _ => None,
    }
}

/// COBALT for round trips of up to about `rtt`.
fn cobalt(rtt: Span) -> CobaltParameters {
    CobaltParameters { target: rtt / 20, interval: rtt }
}

/// Queues, and ways of a set (`tc-cake(8)`).
const QUEUES: u32 = 1_024;
const WAYS: u32 = 8;

/// Credits per byte.
const BYTE: i128 = 1 << 16;
/// An Ethernet frame, in credits.
const QUANTUM: u32 = 1_514 << 16;

/// What shares are fair between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Sources and destinations, then their flows.
    Triple,
    /// Sources, then their flows.
    Sources,
    /// Destinations, then their flows.
    Destinations,
    /// Flows.
    Flows,
    /// Pairs of a source and a destination, each of which is one flow.
    HostPairs,
}

impl Isolation {
    /// What counts as one flow.
    fn flow(self, key: FlowKey) -> FlowKey {
        if self == Isolation::HostPairs { key.host_pair() } else { key }
    }
}

/// Queues that are fair to hosts.
#[derive(Debug)]
pub struct Cake {
    cobalt: CobaltParameters,
    isolation: Isolation,
    filter: Option<AckFilter>,
    buffer: Buffer,
    hash: FlowHash,
    random: Stream,
    queues: FlowQueues<Lane>,
    turns: SparseFirst,
    hosts: Hosts,
}

/// What is kept for a queue.
#[derive(Debug, Default)]
struct Lane {
    /// Hash of the flow that it belongs to, or last did.
    tag: Option<u64>,
    /// Whether it has packets of flows that found no queue of their own.
    is_shared: bool,
    cobalt: Cobalt,
    /// Its source and its destination, while it has turns and they matter.
    hosts: [Option<FlowId>; 2],
    is_busy: bool,
}

impl Cake {
    /// An empty queue that holds at most `buffer`, for round trips of up to about
    /// `rtt`. Hash and draws depend on `seed`.
    #[must_use]
    pub(crate) fn new(
        rtt: Span,
        isolation: Isolation,
        filter: Option<AckFilter>,
        buffer: Buffer,
        seed: u64,
    ) -> Cake {
        Cake {
            cobalt: cobalt(rtt),
            isolation,
            filter,
            buffer,
            hash: FlowHash::new(seed),
            random: Stream::new(seed, ENTRY.name),
            queues: FlowQueues::new(),
            turns: SparseFirst::new(Form::Published),
            hosts: Hosts::new(seed),
        }
    }

    /// The queue for packets of the flow with this hash: its own, or else one that
    /// has been shared since all were taken, or a free one, or one to share.
    fn lane(&mut self, hash: u64) -> u32 {
        let first = (hash >> (u64::BITS - QUEUES.ilog2())) as u32;
        let mut ways = (0..WAYS).map(|way| first / WAYS * WAYS + (first + way) % WAYS);
        if let Some(own) = ways.clone().find(|way| self.queues.state(*way).tag == Some(hash)) {
            return own;
        }
        if self.queues.state(first).is_shared {
            return first;
        }
        if let Some(free) = ways.find(|way| !self.turns.is_active(*way)) {
            return free;
        }
        self.queues.state(first).is_shared = true;
        first
    }

    /// Makes the idle queue that of a flow.
    fn open(&mut self, queue: u32, hash: u64, flow: FlowKey) {
        let lane = self.queues.state(queue);
        if lane.tag != Some(hash) {
            *lane = Lane { tag: Some(hash), ..Lane::default() };
        }
        lane.hosts = self.hosts.join(self.isolation, flow);
        self.turns.arrived(queue, || self.hosts.share(self.queues.state(queue)));
    }

    /// The queue has lost its last packet, or sent it.
    fn emptied(&mut self, queue: u32) {
        let lane = self.queues.state(queue);
        lane.is_shared = false;
        if mem::take(&mut lane.is_busy) {
            self.hosts.relieve(lane);
        }
    }

    fn drop_superseded(&mut self, queue: u32, packet: &Packet, losses: &mut Losses) {
        let Some(filter) = self.filter else { return };
        let Some(slot) = filter.superseded(packet, self.queues.packets(queue)) else { return };
        let superseded = self.queues.remove(queue, slot);
        losses.push(superseded.expect("it has just been found"), LossReason::Superseded);
    }

    /// A full buffer gives up the head of the queue with the most bytes.
    fn push_out(&mut self, now: Time, room: Buffer, arriving: &Packet, losses: &mut Losses) {
        while !room.holds(self.queues.backlog()) {
            let Some(queue) = self.queues.fattest() else { return };
            let Some(victim) = self.queues.pop_first(queue) else { return };
            losses.push_out(victim, arriving);
            let is_empty = self.queues.is_empty(queue);
            self.queues.state(queue).cobalt.overflowed(&self.cobalt, now, is_empty);
            if is_empty {
                self.emptied(queue);
            }
        }
    }

    /// The queue to take a packet from.
    fn next(&mut self) -> Option<u32> {
        let Cake { queues, turns, hosts, .. } = self;
        turns.next(|queue| {
            let has_packets = !queues.is_empty(queue);
            let lane = queues.state(queue);
            if has_packets && !mem::replace(&mut lane.is_busy, true) {
                hosts.burden(lane);
            }
            hosts.share(lane)
        })
    }
}

impl Discipline for Cake {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queues.backlog());
        let flow = self.isolation.flow(packet.flow);
        let hash = self.hash.of(&flow);
        let queue = self.lane(hash);
        if !self.turns.is_active(queue) {
            self.open(queue, hash, flow);
        }
        let is_old = self.turns.is_old(queue);
        let was_empty = self.queues.is_empty(queue);
        let lane = self.queues.state(queue);
        if was_empty {
            lane.cobalt.refilled(&self.cobalt, now);
        }
        if is_old && !mem::replace(&mut lane.is_busy, true) {
            self.hosts.burden(lane);
        }
        self.queues.push(queue, packet);
        self.drop_superseded(queue, &packet, losses);
        self.push_out(now, room, &packet, losses);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        loop {
            let queue = self.next()?;
            let queues = &mut self.queues;
            let mut cobalt = mem::take(&mut queues.state(queue).cobalt);
            let sent = cobalt.dequeue(&self.cobalt, now, &mut self.random, losses, || {
                let packet = queues.pop_first(queue)?;
                Some((packet, queues.is_empty(queue)))
            });
            queues.state(queue).cobalt = cobalt;
            let Some(packet) = sent else {
                self.turns.found_empty(queue);
                if !self.turns.is_active(queue) {
                    let hosts = mem::take(&mut self.queues.state(queue).hosts);
                    self.hosts.leave(hosts);
                }
                continue;
            };
            self.turns.spend(queue, i128::from(packet.size.0) * BYTE);
            if self.queues.is_empty(queue) {
                self.emptied(queue);
            }
            return Some(packet);
        }
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.cobalt = cobalt(settings.span(RTT.name));
        self.filter = filter(settings);
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    /// Queues that have turns: those with packets, and a few that were just emptied.
    fn flows_tracked(&self) -> usize {
        self.turns.active()
    }
}

/// The hosts of queues that have turns: sources, and destinations.
#[derive(Debug)]
struct Hosts([FlowTable<Host>; 2]);

#[derive(Debug, Default)]
struct Host {
    queues: u32,
    busy: u32,
}

impl Hosts {
    fn new(seed: u64) -> Hosts {
        Hosts([FlowTable::new(seed), FlowTable::new(seed)])
    }

    /// A queue of the flow gets turns: the hosts that its share depends on.
    fn join(&mut self, isolation: Isolation, flow: FlowKey) -> [Option<FlowId>; 2] {
        let Hosts([sources, destinations]) = self;
        let join = |table: &mut FlowTable<Host>, key: FlowKey| {
            let (id, host) = table.entry(&key, Host::default);
            host.queues += 1;
            id
        };
        let (by_source, by_destination) = match isolation {
            Isolation::Triple => (true, true),
            Isolation::Sources => (true, false),
            Isolation::Destinations => (false, true),
            Isolation::Flows | Isolation::HostPairs => (false, false),
        };
        [
            by_source.then(|| join(sources, flow.source_host())),
            by_destination.then(|| join(destinations, flow.destination_host())),
        ]
    }

    /// A queue of these hosts has no turns any more.
    fn leave(&mut self, hosts: [Option<FlowId>; 2]) {
        for (table, id) in self.0.iter_mut().zip(hosts) {
            let Some(id) = id else { continue };
            let host = table.state(id);
            host.queues -= 1;
            if host.queues == 0 {
                table.remove(id);
            }
        }
    }

    /// A queue is busy from now on.
    fn burden(&mut self, lane: &Lane) {
        self.of(lane).for_each(|host| host.busy += 1);
    }

    /// A queue is not busy any more.
    fn relieve(&mut self, lane: &Lane) {
        self.of(lane).for_each(|host| host.busy -= 1);
    }

    /// A queue's part of the quantum, which is divided by the busy queues of the
    /// source or the destination, whichever has more. A busy host's queues take
    /// many turns for a packet, so this is computed in 32 bits.
    fn share(&mut self, lane: &Lane) -> i128 {
        let busy = self.of(lane).map(|host| host.busy).fold(1, u32::max);
        (QUANTUM / busy).into()
    }

    fn of(&mut self, lane: &Lane) -> impl Iterator<Item = &mut Host> {
        let tables = self.0.iter_mut().zip(lane.hosts);
        tables.filter_map(|(table, id)| id.map(|id| table.state(id)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::TcpFacts;
    use crate::units::Bytes;

    fn cake(isolation: Isolation, filter: Option<AckFilter>, packets: u32) -> Cake {
        Cake::new(Span::millis(100), isolation, filter, Buffer::packets(packets), 1)
    }

    fn key(source: u8, destination: u8, port: u16) -> FlowKey {
        FlowKey::v4([192, 0, 2, source], port, [198, 51, 100, destination], 443, FlowKey::TCP)
    }

    fn packet(handle: u64, flow: FlowKey) -> Packet {
        Packet::new(handle, flow, Bytes(1_000))
    }

    /// Packets that each flow has sent of 1 200, while all are backlogged.
    fn shares(isolation: Isolation, flows: &[FlowKey]) -> Vec<usize> {
        let (mut cake, mut losses) = (cake(isolation, None, 100_000), Losses::new());
        for round in 0..1_200 {
            for flow in flows {
                cake.enqueue(Time::ZERO, packet(round, *flow), &mut losses);
            }
        }
        let mut sent = BTreeMap::<FlowKey, usize>::new();
        for _ in 0..1_200 {
            let packet = cake.dequeue(Time::ZERO, &mut losses).unwrap();
            *sent.entry(packet.flow).or_default() += 1;
        }
        assert_eq!(losses.as_slice(), []);
        flows.iter().map(|flow| sent[flow]).collect()
    }

    #[track_caller]
    fn assert_shares(isolation: Isolation, flows: &[FlowKey], expected: &[usize]) {
        let shares = shares(isolation, flows);
        // The start of each flow is served as that of a sparse one.
        let near = |(share, expected): (&usize, &usize)| share.abs_diff(*expected) <= 5;
        assert!(shares.iter().zip(expected).all(near), "{isolation:?}: {shares:?}");
    }

    #[test]
    fn hosts_get_equal_shares_and_so_do_the_flows_of_each() {
        // Source 1 has three flows and source 2 has one, each to a host of its own.
        let flows = [key(1, 1, 1), key(1, 2, 2), key(1, 3, 3), key(2, 4, 4)];
        assert_shares(Isolation::Flows, &flows, &[300; 4]);
        assert_shares(Isolation::Destinations, &flows, &[300; 4]);
        for isolation in [Isolation::Triple, Isolation::Sources] {
            assert_shares(isolation, &flows, &[200, 200, 200, 600]);
        }
        let answers = flows.map(FlowKey::reversed);
        assert_shares(Isolation::Sources, &answers, &[300; 4]);
        for isolation in [Isolation::Triple, Isolation::Destinations] {
            assert_shares(isolation, &answers, &[200, 200, 200, 600]);
        }
        // To one server, three flows of one host are as one, in one queue.
        let pairs = [key(1, 9, 1), key(1, 9, 2), key(1, 9, 3), key(2, 9, 4)];
        let shares = shares(Isolation::HostPairs, &pairs);
        assert!(shares[3].abs_diff(600) <= 5, "{shares:?}");
    }

    #[test]
    fn a_flow_that_was_idle_goes_first() {
        let (mut cake, mut losses) = (cake(Isolation::Triple, None, 100), Losses::new());
        for handle in 0..10 {
            cake.enqueue(Time::ZERO, packet(handle, key(1, 1, 1)), &mut losses);
        }
        let mut send = |cake: &mut Cake| cake.dequeue(Time::ZERO, &mut losses).unwrap().handle;
        // The flow has spent its quantum after two packets.
        assert_eq!([send(&mut cake), send(&mut cake)], [0, 1]);
        cake.enqueue(Time::ZERO, packet(10, key(2, 2, 2)), &mut Losses::new());
        assert_eq!([send(&mut cake), send(&mut cake)], [10, 2]);
    }

    #[test]
    fn a_full_buffer_loses_the_head_of_the_longest_queue() {
        let (mut cake, mut losses) = (cake(Isolation::Triple, None, 3), Losses::new());
        for (handle, port) in [(0, 1), (1, 2), (2, 2), (3, 1)] {
            cake.enqueue(Time::ZERO, packet(handle, key(1, 1, port)), &mut losses);
        }
        // Both have 2 000 bytes; that of port 1 has been backlogged for longer.
        let lost: Vec<_> = losses.drain().map(|loss| (loss.packet.handle, loss.reason)).collect();
        assert_eq!(lost, [(0, LossReason::PushedOut)]);
    }

    #[test]
    fn an_acknowledgement_supersedes_one_in_its_queue_and_does_not_empty_it() {
        let filter = Some(AckFilter::Aggressive);
        let (mut cake, mut losses) = (cake(Isolation::Triple, filter, 100), Losses::new());
        for number in 1..=3 {
            let facts = TcpFacts {
                sequence: 1,
                acknowledgement: Some(number),
                payload: 0,
                syn: false,
                fin: false,
                plain: true,
            };
            let plain = packet(number.into(), key(1, 1, 1));
            cake.enqueue(Time::ZERO, Packet { tcp: Some(facts), ..plain }, &mut losses);
        }
        let lost: Vec<_> = losses.drain().map(|loss| (loss.packet.handle, loss.reason)).collect();
        assert_eq!(lost, [(1, LossReason::Superseded), (2, LossReason::Superseded)]);
        assert_eq!(cake.dequeue(Time::ZERO, &mut losses).map(|packet| packet.handle), Some(3));
    }

    /// Twelve flows that hash to one set of eight queues.
    fn crowd(cake: &Cake) -> Vec<FlowKey> {
        let flows = (0..u16::MAX).map(|port| key(1, 1, port));
        let set = |flow: &FlowKey| cake.hash.of(flow) >> (64 - (QUEUES / WAYS).ilog2());
        flows.filter(|flow| set(flow) == 5).take(12).collect()
    }

    #[test]
    fn eight_flows_of_a_set_have_queues_of_their_own_and_the_ninth_shares() {
        let (mut cake, mut losses) = (cake(Isolation::Triple, None, 100), Losses::new());
        let crowd = crowd(&cake);
        for (flow, active) in crowd.iter().zip([1, 2, 3, 4, 5, 6, 7, 8, 8]) {
            cake.enqueue(Time::ZERO, packet(0, *flow), &mut losses);
            assert_eq!(cake.flows_tracked(), active);
        }
    }

    proptest! {
        /// Where queues are shared, and owners come and go.
        #[test]
        fn flows_that_crowd_a_set_stay_in_order(
            operations in prop::collection::vec(prop::option::of(0..12_usize), 0..400),
        ) {
            let mut cake = cake(Isolation::Triple, None, 60);
            let crowd = crowd(&cake);
            let mut losses = Losses::new();
            let mut latest = BTreeMap::new();
            for (handle, operation) in (1_u64..).zip(operations) {
                if let Some(flow) = operation {
                    cake.enqueue(Time::ZERO, packet(handle, crowd[flow]), &mut losses);
                    continue;
                }
                let Some(packet) = cake.dequeue(Time::ZERO, &mut losses) else { continue };
                let before = latest.insert(packet.flow, packet.handle).unwrap_or(0);
                prop_assert!(before < packet.handle);
            }
        }
    }

    #[test]
    fn nothing_is_left_of_hosts_once_their_queues_are_idle() {
        let (mut cake, mut losses) = (cake(Isolation::Triple, None, 20), Losses::new());
        for handle in 0..200 {
            let host = (handle * 7 % 50) as u8;
            cake.enqueue(Time::ZERO, packet(handle, key(host, host % 5, 1)), &mut losses);
        }
        while cake.dequeue(Time::ZERO, &mut losses).is_some() {}
        assert_eq!(cake.flows_tracked(), 0);
        assert!(cake.hosts.0.iter().all(FlowTable::is_empty));
    }
}
