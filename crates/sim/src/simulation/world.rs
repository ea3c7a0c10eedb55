//! What all programs share: the links, the connections, the clock and the records.
//!
//! A segment's record lies in a slab from the host that sends it to the host
//! that gets it or the queue that loses it; what moves through links is its
//! number. Every packet is therefore accounted for: made = delivered + lost +
//! on the way, which is checked at the end of every run.

use std::collections::VecDeque;

use bytes::BytesMut;
use tidegate_core::{Bytes, Counters, Dscp, Ecn, FlowKey, Loss, Packet, Span, TcpFacts, Time};

use super::Programs;
use super::calls::MEDIA;
use super::lookups::Message;
use crate::connections::{AppId, Connection, ConnectionId, Connections, Opening, Over, Side};
use crate::datagrams::DatagramFlows;
use crate::kernel::Kernel;
use crate::lookups::Lookups;
use crate::lot::Lot;
use crate::metrics::{FlowRecord, LinkSample, PacketEvent, PacketRecord, Recorder, RunSummary};
use crate::network::{Network, Queue, SegmentId};
use crate::quic::{self, QuicConnection, QuicConnections, QuicId};
use crate::scenario::{DisciplineChoice, NodeId, Scenario};
use crate::slab::Slab;
use crate::tcp::{Endpoint, Flags, Header};
use crate::unloaded::Unloaded;

/// A future event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The first packet in flight on a link arrives.
    Arrival(u16),
    /// A link's sender may take the next packet.
    Ready(u16),
    /// A sender may begin to send in a wireless cell.
    Access(u16),
    /// A timer of one end of a connection may be due.
    Timer(ConnectionId, Side),
    /// The same of a QUIC connection.
    QuicTimer(QuicId, Side),
    /// A program wants to act; the number is its own.
    Wake(AppId, u64),
    /// Time to look at the links.
    Sample,
    /// The warm-up is over.
    WarmedUp,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) key: FlowKey,
    pub(super) destination: NodeId,
    pub(super) size: Bytes,
    pub(super) class: u16,
    pub(super) dscp: Dscp,
    pub(super) ecn: Ecn,
    pub(super) lot: Lot,
    pub(super) content: Content,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// To one side of a connection.
    Tcp { connection: ConnectionId, to: Side, header: Header },
    /// To one side of a QUIC connection; its payload is that of this number in
    /// [`World::payloads`].
    Quic { connection: QuicId, to: Side, payload: u32 },
    /// Of a datagram flow.
    Datagram { traffic: u16, flow: u32, sent: Time, tcp: Option<TcpFacts> },
    /// Of a call that adapts, by its number there.
    Media { traffic: u16, number: u32, sent: Time },
    /// What its receiver reports.
    Report { traffic: u16, number: u32 },
    /// Of a lookup of a name.
    Lookup(Message),
}

/// The network with all hosts, as their programs see it.
pub(crate) struct World<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) kernel: Kernel<Event>,
    pub(crate) network: Network,
    pub(crate) connections: Connections,
    pub(crate) quic: QuicConnections,
    pub(crate) lookups: Lookups,
    pub(crate) summary: RunSummary,
    pub(crate) recorder: &'a mut dyn Recorder,
    pub(crate) seed: u64,
    pub(super) segments: Slab<Segment>,
    /// The bytes of QUIC's packets on the way. They lie beside the segments, which are
    /// copied and must stay small; a packet's bytes go when it does.
    pub(super) payloads: Slab<BytesMut>,
    pub(super) datagrams: Vec<DatagramFlows>,
    /// Connections that have ended, whose programs do not know yet.
    pub(super) over: VecDeque<Ended>,
    /// The yardstick for slowdown; `None` while the yardstick itself is measured.
    unloaded: Option<Unloaded<'a>>,
    /// Link counters at the end of the warm-up.
    base: Vec<Counters>,
    tally: Tally,
    /// Whether the recorder takes the rows of packets.
    pub(super) takes_packets: bool,
    // Buffers that are reused for every event.
    headers: Vec<Header>,
    spare_headers: Vec<Vec<Header>>,
    pub(super) quic_packets: Vec<quic::Datagram>,
    pub(super) lost: Vec<SegmentId>,
    pub(super) handed_on: Vec<SegmentId>,
}

/// A connection that has ended.
pub(super) enum Ended {
    Tcp(Box<Connection>, Over),
    Quic(Box<QuicConnection>),
}

/// The fate of all segments.
#[derive(Debug, Default)]
struct Tally {
    made: u64,
    delivered: u64,
    lost: u64,
}

impl<'a> World<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        tested: &DisciplineChoice,
        seed: u64,
        unloaded: Option<Unloaded<'a>>,
        datagrams: Vec<DatagramFlows>,
        recorder: &'a mut dyn Recorder,
    ) -> World<'a> {
        let network = Network::new(scenario, tested, seed);
        World {
            scenario,
            takes_packets: recorder.takes_packets(),
            recorder,
            kernel: Kernel::new(),
            base: vec![Counters::default(); network.links.len()],
            network,
            segments: Slab::new(),
            payloads: Slab::new(),
            connections: Connections::new(),
            quic: QuicConnections::default(),
            lookups: Lookups::new(),
            datagrams,
            over: VecDeque::new(),
            seed,
            summary: RunSummary::new(scenario, &tested.label, seed).in_parts(scenario),
            unloaded,
            tally: Tally::default(),
            headers: Vec::new(),
            spare_headers: Vec::new(),
            quic_packets: Vec::new(),
            lost: Vec::new(),
            handed_on: Vec::new(),
        }
    }

    /// Now.
    pub(crate) fn now(&self) -> Time {
        self.kernel.now()
    }

    /// Whether what begins at `at` is measured.
    pub(crate) fn is_measured(&self, at: Time) -> bool {
        at >= Time(self.scenario.warm_up.0)
    }

    /// Lets a program act at `at`.
    pub(crate) fn wake(&mut self, app: AppId, at: Time, number: u64) {
        self.kernel.schedule(at, Event::Wake(app, number));
    }

    // Links.

    /// The first packet in flight on a link has arrived at the far end. Returns
    /// it when it is there for the host at that end.
    #[must_use]
    pub(super) fn arrive(&mut self, link: usize) -> Option<SegmentId> {
        let now = self.kernel.now();
        let state = &mut self.network.links[link];
        let (_, segment, destination) =
            state.in_flight.pop_front().expect("an arrival has its packet");
        if let Some((at, ..)) = state.in_flight.front() {
            self.kernel.schedule(*at, Event::Arrival(link as u16));
        }
        let to = state.to;
        if destination == to {
            return Some(segment);
        }
        let next = self.network.next_link(to, destination);
        self.enter(next, segment, now);
        None
    }

    /// A packet comes to the queue of a link at `at`: now, or in the future for
    /// a link that has one feeder.
    pub(super) fn enter(&mut self, link: usize, segment: SegmentId, at: Time) {
        let record = &self.segments[segment];
        if let Some(sent) = self.network.links[link].queue.pass(at, record.size) {
            return self.travel(link, segment, sent);
        }
        let packet = Packet {
            handle: u64::from(segment),
            flow: record.key,
            size: record.size,
            class: self.network.links[link].class(record.destination, record.class),
            dscp: record.dscp,
            ecn: record.ecn,
            tcp: record.content.tcp_facts(),
            arrived: at,
        };
        let Queue::Scheduled(queue) = &mut self.network.links[link].queue else {
            unreachable!("a queue is unbounded or scheduled")
        };
        let losses = queue.offer(at, packet);
        self.lost.extend(losses.iter().map(segment_of));
        if self.takes_packets {
            self.recorder.packet(&PacketRecord { link, at, packet, event: PacketEvent::Arrived });
            record_losses(self.recorder, link, at, queue.port().losses());
        }
        self.drop_lost();
        self.serve(link, false);
    }

    /// Lets the sender of a link take a packet if it can; `woken` when the
    /// event that it has waited for is this one.
    pub(super) fn serve(&mut self, link: usize, woken: bool) {
        let now = self.kernel.now();
        let Queue::Scheduled(queue) = &mut self.network.links[link].queue else { return };
        if woken {
            queue.wakes = false;
        }
        if queue.wakes {
            return;
        }
        let Some(ready) = queue.next_ready(now) else { return };
        if let Some(radio) = queue.radio {
            return self.contend(radio);
        }
        if ready > now {
            queue.wakes = true;
            return self.kernel.schedule(ready, Event::Ready(link as u16));
        }
        let taken = queue.send(now);
        if let Some((packet, _)) = &taken {
            queue.delay.record(now.since(packet.arrived));
        }
        self.lost.extend(queue.port().losses().iter().map(segment_of));
        if self.takes_packets {
            record_losses(self.recorder, link, now, queue.port().losses());
            if let Some((packet, _)) = taken {
                let event = PacketEvent::Sent;
                self.recorder.packet(&PacketRecord { link, at: now, packet, event });
            }
        }
        if let Some(next) = queue.next_ready(taken.map_or(now, |(_, sent)| sent)) {
            queue.wakes = true;
            self.kernel.schedule(next, Event::Ready(link as u16));
        }
        self.drop_lost();
        if let Some((packet, sent)) = taken {
            let segment = packet.handle as SegmentId;
            if packet.ecn == Ecn::Ce {
                self.segments[segment].ecn = Ecn::Ce;
            }
            self.travel(link, segment, sent);
        }
    }

    /// A packet whose last bit leaves a link's sender at `sent` goes to the far
    /// end, and at once through links behind that it alone feeds.
    pub(super) fn travel(&mut self, link: usize, segment: SegmentId, sent: Time) {
        let Segment { lot, destination, .. } = self.segments[segment];
        let travelled = &self.network.links[link];
        if travelled.loses(lot) {
            self.lost.push(segment);
            return self.drop_lost();
        }
        let (at, to) = (travelled.arrival(sent), travelled.to);
        if to != destination {
            let next = self.network.next_link(to, destination);
            let behind = &self.network.links[next];
            if behind.fed_by_one && matches!(behind.queue, Queue::Unbounded { .. }) {
                return self.enter(next, segment, at);
            }
        }
        let in_flight = &mut self.network.links[link].in_flight;
        if in_flight.is_empty() {
            self.kernel.schedule(at, Event::Arrival(link as u16));
        }
        in_flight.push_back((at, segment, destination));
    }

    /// Tells the owners of lost packets.
    #[inline]
    pub(super) fn drop_lost(&mut self) {
        if !self.lost.is_empty() {
            self.drop_all_lost();
        }
    }

    fn drop_all_lost(&mut self) {
        while let Some(segment) = self.lost.pop() {
            self.tally.lost += 1;
            match self.segments.remove(segment).content {
                Content::Tcp { connection, .. } => self.connections.count_loss(connection),
                Content::Quic { connection, payload, .. } => {
                    self.lose_quic(connection, payload);
                }
                Content::Datagram { traffic, flow, sent, .. } => {
                    self.end_datagram(usize::from(traffic), flow, sent, None);
                }
                Content::Media { traffic, sent, .. } => {
                    self.end_datagram(usize::from(traffic), MEDIA, sent, None);
                }
                Content::Report { .. } => {}
                Content::Lookup(message) => {
                    self.lookups.count_loss(message.lookup, message.id());
                }
            }
        }
    }

    // Hosts.

    /// Opens a connection; its opener sends at the next [`World::act`].
    pub(crate) fn open(&mut self, opening: &Opening) -> ConnectionId {
        self.connections.open(opening, self.seed)
    }

    /// One end of a connection, unless it is over.
    pub(crate) fn end(&mut self, connection: ConnectionId, side: Side) -> Option<&mut Endpoint> {
        self.connections.live(connection).map(|state| state.endpoint(side))
    }

    /// Lets one end send what it may, after its program did something.
    pub(crate) fn act(&mut self, connection: ConnectionId, side: Side) {
        let now = self.kernel.now();
        let mut headers = self.spare_headers.pop().unwrap_or_default();
        if let Some(end) = self.end(connection, side) {
            end.poll(now, &mut headers);
        }
        self.after_activity(connection, side, &mut headers);
        self.spare_headers.push(headers);
    }

    /// Does so at the openers' ends of the connections at which programs have `written`.
    /// Returns whether `here` is one of them: the caller does so there.
    pub(crate) fn act_at(
        &mut self,
        written: impl Iterator<Item = ConnectionId>,
        here: Option<ConnectionId>,
    ) -> bool {
        let mut is_here = false;
        for connection in written {
            if Some(connection) == here {
                is_here = true;
            } else {
                self.act(connection, Side::Opener);
            }
        }
        is_here
    }

    /// Breaks a connection off, at once and at both ends.
    pub(crate) fn abort(&mut self, connection: ConnectionId, by: Side, reason: u16) {
        if self.connections.live(connection).is_some() {
            let state = self.connections.remove(connection);
            self.over.push_back(Ended::Tcp(state, Over::Aborted { by, reason }));
        }
    }

    /// Whether a connection has ended whose programs have to be told.
    #[inline]
    pub(super) fn has_over(&self) -> bool {
        !self.over.is_empty()
    }

    /// Such a connection: the one that ended first.
    pub(super) fn take_over(&mut self) -> Option<Ended> {
        self.over.pop_front()
    }

    /// A packet has arrived at the host that it was sent to. Tells the program there.
    pub(super) fn deliver(&mut self, segment: SegmentId, programs: &mut Programs<'_>) {
        self.tally.delivered += 1;
        let now = self.kernel.now();
        let record = self.segments.remove(segment);
        match record.content {
            Content::Tcp { connection, to, header } => {
                let Some(state) = self.connections.live(connection) else { return };
                let mut headers = std::mem::take(&mut self.headers);
                let marked = record.ecn == Ecn::Ce;
                state.endpoint(to).on_segment(now, &header, marked, &mut headers);
                let app = state.app(to);
                if programs.on_segment(app, self, connection, to)
                    && let Some(end) = self.end(connection, to)
                {
                    end.poll(now, &mut headers);
                }
                self.after_activity(connection, to, &mut headers);
                self.headers = headers;
            }
            Content::Media { traffic, number, sent } => {
                let size = record.size;
                self.deliver_media(usize::from(traffic), (number, sent), size, programs);
            }
            Content::Report { traffic, number } => {
                programs.calls.on_report(usize::from(traffic), number);
            }
            Content::Lookup(message) => {
                self.deliver_message(message, (record.destination, record.key), programs);
            }
            Content::Quic { connection, to, payload } => {
                self.deliver_quic(connection, to, record.ecn, payload, programs);
            }
            Content::Datagram { traffic, flow, sent, .. } => {
                self.end_datagram(usize::from(traffic), flow, sent, Some(record.size));
                if let Some(gateway) = &mut programs.gateway {
                    gateway.on_datagram(self, usize::from(traffic), record.size);
                }
            }
        }
    }

    pub(super) fn on_timer(&mut self, connection: ConnectionId, side: Side) {
        let now = self.kernel.now();
        let Some(state) = self.connections.live(connection) else { return };
        let mut headers = std::mem::take(&mut self.headers);
        if state.timer_came(now, side, &mut headers) {
            self.after_activity(connection, side, &mut headers);
        }
        self.headers = headers;
    }

    /// Sends what one side of a connection has to say, sets its timer, and
    /// removes the connection when it is over.
    fn after_activity(&mut self, id: ConnectionId, side: Side, headers: &mut Vec<Header>) {
        let Some(state) = self.connections.live(id) else { return headers.clear() };
        if let Some(at) = state.timer_to_set(side) {
            self.kernel.schedule(at, Event::Timer(id, side));
        }
        let over = state.is_over();
        let (class, dscp) = (state.class(), state.dscp(side));
        let (from, destination, key) = state.route(side);
        let mut lots = state.next_lots(side, headers.len());
        for header in headers.drain(..) {
            let to = side.other();
            let size = header.wire_size();
            let ecn = header.ecn;
            let content = Content::Tcp { connection: id, to, header };
            let lot = lots.next().expect("each packet has its lot");
            self.send(from, Segment { key, destination, size, class, dscp, ecn, lot, content });
        }
        if let Some(over) = over {
            let state = self.connections.remove(id);
            self.over.push_back(Ended::Tcp(state, over));
        }
    }

    /// Gives a packet to the first link of its way.
    pub(super) fn send(&mut self, from: NodeId, segment: Segment) {
        self.tally.made += 1;
        let link = self.network.next_link(from, segment.destination);
        let id = self.segments.insert(segment);
        self.enter(link, id, self.kernel.now());
    }

    // Books.

    pub(super) fn sample_links(&mut self) {
        let now = self.kernel.now();
        for (index, link) in self.network.links.iter().enumerate() {
            let Queue::Scheduled(queue) = &link.queue else { continue };
            let row = LinkSample {
                link: index,
                at: now,
                backlog: queue.port().backlog(),
                flows_tracked: queue.port().flows_tracked(),
                counters: *queue.port().counters(),
            };
            self.recorder.link(&row);
            self.summary.links[index].get_or_insert_default().add_sample(row);
        }
    }

    pub(super) fn forget_warm_up(&mut self) {
        let now = self.kernel.now();
        self.datagrams.iter_mut().for_each(|flows| flows.forget_warm_up(now));
        for (index, link) in self.network.links.iter_mut().enumerate() {
            if let Queue::Scheduled(queue) = &mut link.queue {
                self.base[index] = *queue.port().counters();
                queue.delay = Default::default();
                queue.airtime = Span::default();
            }
        }
        self.network.airs.iter_mut().for_each(|air| air.demand.forget(now));
    }

    /// Puts the row of a flow as it stands at `now` into the books, if it is measured.
    pub(crate) fn report(&mut self, row: &FlowRecord, now: Time) {
        if self.is_measured(row.start) {
            self.summary.add_flow(self.scenario, row, now);
            self.recorder.flow(row);
        }
    }

    /// The same for that of a transfer, with what it would have taken alone.
    pub(crate) fn report_transfer(&mut self, mut row: FlowRecord) {
        if let (Some(size), Some(_)) = (row.size, row.response) {
            row.unloaded = self.unloaded(row.traffic, size);
        }
        self.report(&row, self.now());
    }

    /// The response time of a transfer of `size` of a source that has the network for
    /// itself.
    pub(crate) fn unloaded(&mut self, traffic: usize, size: Bytes) -> Option<Span> {
        self.unloaded.as_mut()?.response(traffic, size)
    }

    /// Closes the books at `end`.
    pub(super) fn finish(&mut self, end: Time) {
        self.judge_datagrams_on_the_way(end);
        for traffic in 0..self.datagrams.len() {
            for flow in self.datagrams[traffic].unfinished() {
                let row = self.datagrams[traffic].record(traffic, flow);
                self.report(&row, end);
            }
        }
        let measured = end.since(Time(self.scenario.warm_up.0));
        let Network { links, airs, .. } = &mut self.network;
        for (index, link) in links.iter_mut().enumerate() {
            let Queue::Scheduled(queue) = &mut link.queue else { continue };
            assert!(queue.port().is_conserved(), "link {index}: a packet was made or lost unseen");
            let summary = self.summary.links[index].get_or_insert_default();
            summary.counters = queue.port().counters().since(&self.base[index]);
            summary.utilisation = queue.utilisation(summary.counters.delivered_bytes, measured);
            summary.medium_use = queue.radio.map(|radio| {
                airs[radio.cell].demand.total(end).as_seconds() / measured.as_seconds()
            });
            summary.delay = std::mem::take(&mut queue.delay);
        }
        let on_the_way = self.segments.len() as u64;
        let Tally { made, delivered, lost } = self.tally;
        assert_eq!(made, delivered + lost + on_the_way, "a segment was made or lost unseen");
        self.check_payloads();
        self.summary.reached = end;
        self.summary.events = self.kernel.handled();
    }
}

pub(super) fn segment_of(loss: &Loss) -> SegmentId {
    loss.packet.handle as SegmentId
}

pub(super) fn record_losses(recorder: &mut dyn Recorder, link: usize, at: Time, losses: &[Loss]) {
    for loss in losses {
        let event = PacketEvent::Lost(loss.reason);
        recorder.packet(&PacketRecord { link, at, packet: loss.packet, event });
    }
}

impl Content {
    fn tcp_facts(&self) -> Option<TcpFacts> {
        match self {
            Content::Tcp { header, .. } => Some(facts(header)),
            Content::Quic { .. } => None,
            Content::Datagram { tcp, .. } => *tcp,
            Content::Media { .. } | Content::Report { .. } | Content::Lookup(_) => None,
        }
    }
}

/// What a discipline may know of a segment's header.
fn facts(header: &Header) -> TcpFacts {
    TcpFacts {
        sequence: header.sequence,
        acknowledgement: header.flags.contains(Flags::ACK).then_some(header.acknowledgement),
        payload: header.payload,
        syn: header.flags.contains(Flags::SYN),
        fin: header.flags.contains(Flags::FIN),
        plain: header.flags == Flags::ACK && header.sack.as_slice().is_empty(),
    }
}
