//! One run: a scenario, a discipline, a seed.
//!
//! The loop takes the next event, lets the link, connection or source that it
//! names act, and carries out what that gives: segments to send, timers to set.
//! A segment's record lies in a slab from the host that sends it to the host
//! that gets it or the queue that loses it; what moves through links is its
//! number. Every packet is therefore accounted for: made = delivered + lost +
//! on the way, which is checked at the end of every run.

mod radio;

mod datagrams;

use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::{Bytes, Counters, Dscp, Ecn, FlowKey, Loss, Packet, Span, TcpFacts, Time};

use crate::connections::{Connection, ConnectionId, Connections, Side};
use crate::datagrams::DatagramFlows;
use crate::kernel::Kernel;
use crate::lot::Lot;
use crate::metrics::{
    FlowRecord, LinkSample, PacketEvent, PacketRecord, ProgressSample, Recorder, RunSummary,
};
use crate::network::{Network, Queue, SegmentId};
use crate::scenario::{DisciplineChoice, NodeId, Scenario, TrafficKind, Transfer};
use crate::slab::Slab;
use crate::tcp::{Flags, Header};
use crate::traffic::{self, Action, Source};
use crate::unloaded::Unloaded;

/// Something that will happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The first packet in flight on a link arrives.
    Arrival(u16),
    /// A link's sender may take the next packet.
    Ready(u16),
    /// Somebody may begin to send in a wireless cell.
    Access(u16),
    /// A timer of one end of a connection may be due.
    Timer(ConnectionId, Side),
    /// A source of traffic wants to act.
    Source(u16),
    /// Time to look at the links.
    Sample,
    /// The warm-up is over.
    WarmedUp,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Segment {
    key: FlowKey,
    destination: NodeId,
    size: Bytes,
    class: u16,
    ecn: Ecn,
    lot: Lot,
    content: Content,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    /// To one side of a connection.
    Tcp { connection: ConnectionId, to: Side, header: Header },
    /// Of a datagram flow.
    Datagram { traffic: u16, flow: u32, sent: Time, tcp: Option<TcpFacts> },
}

/// How many events pass between two looks at the stop flag.
const EVENTS_BETWEEN_STOPS: u64 = 1 << 14;

/// Runs `scenario` with `discipline` in the tested places. Rows go to
/// `recorder`; when `stop` becomes true the run ends early, with what it has.
pub fn run(
    scenario: &Scenario,
    discipline: &DisciplineChoice,
    seed: u64,
    recorder: &mut dyn Recorder,
    stop: &AtomicBool,
) -> RunSummary {
    let unloaded = Some(Unloaded::new(scenario));
    let simulation = Simulation::new(scenario, discipline, seed, unloaded, recorder);
    simulation.run(stop)
}

/// Runs a scenario with one flow, under FIFO, for the flow's row alone.
pub(crate) fn run_alone(scenario: &Scenario, recorder: &mut dyn Recorder) {
    let fifo = DisciplineChoice::with_defaults(&tidegate_core::discipline::fifo::ENTRY);
    Simulation::new(scenario, &fifo, 0, None, recorder).run(&AtomicBool::new(false));
}
struct Simulation<'a> {
    scenario: &'a Scenario,
    recorder: &'a mut dyn Recorder,
    kernel: Kernel<Event>,
    network: Network,
    segments: Slab<Segment>,
    connections: Connections,
    datagrams: Vec<DatagramFlows>,
    sources: Vec<Box<dyn Source>>,
    /// Transfers opened so far, by source.
    opened: Vec<u64>,
    seed: u64,
    summary: RunSummary,
    /// The yardstick for slowdown; `None` while the yardstick itself is measured.
    unloaded: Option<Unloaded<'a>>,
    /// Link counters at the end of the warm-up.
    base: Vec<Counters>,
    tally: Tally,
    /// Whether the recorder takes the rows of packets.
    takes_packets: bool,
    // Buffers that are used again for every event.
    headers: Vec<Header>,
    actions: Vec<Action>,
    lost: Vec<SegmentId>,
    handed_on: Vec<SegmentId>,
}

/// What has become of all segments.
#[derive(Debug, Default)]
struct Tally {
    made: u64,
    delivered: u64,
    lost: u64,
}

impl<'a> Simulation<'a> {
    fn new(
        scenario: &'a Scenario,
        discipline: &DisciplineChoice,
        seed: u64,
        unloaded: Option<Unloaded<'a>>,
        recorder: &'a mut dyn Recorder,
    ) -> Simulation<'a> {
        let sources: Vec<_> = scenario
            .traffic
            .iter()
            .enumerate()
            .map(|(index, spec)| traffic::source(spec, seed, index))
            .collect();
        let network = Network::new(scenario, discipline, seed);
        let takes_packets = recorder.takes_packets();
        Simulation {
            scenario,
            takes_packets,
            recorder,
            kernel: Kernel::new(),
            base: vec![Counters::default(); network.links.len()],
            network,
            segments: Slab::new(),
            connections: Connections::new(),
            datagrams: sources
                .iter()
                .zip(&scenario.traffic)
                .map(|(source, spec)| DatagramFlows::new(&**source, spec.deadline.is_some()))
                .collect(),
            opened: vec![0; sources.len()],
            sources,
            seed,
            summary: RunSummary::new(scenario, &discipline.label, seed),
            unloaded,
            tally: Tally::default(),
            headers: Vec::new(),
            actions: Vec::new(),
            lost: Vec::new(),
            handed_on: Vec::new(),
        }
    }

    fn run(mut self, stop: &AtomicBool) -> RunSummary {
        self.start();
        let end = Time(self.scenario.duration.0);
        while let Some(event) = self.kernel.next(end) {
            self.handle(event);
            let look = self.kernel.handled().is_multiple_of(EVENTS_BETWEEN_STOPS);
            if look && stop.load(Ordering::Relaxed) {
                let now = self.kernel.now();
                return self.finish(now);
            }
        }
        self.finish(end)
    }

    fn start(&mut self) {
        self.kernel.schedule(Time(self.scenario.warm_up.0), Event::WarmedUp);
        self.kernel.schedule(Time(self.scenario.sample_every.0), Event::Sample);
        for index in 0..self.sources.len() {
            if let Some(first) = self.sources[index].first() {
                self.kernel.schedule(first, Event::Source(index as u16));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival(link) => self.arrive(usize::from(link)),
            Event::Ready(link) => self.serve(usize::from(link), true),
            Event::Access(cell) => self.access(usize::from(cell)),
            Event::Timer(connection, side) => self.on_timer(connection, side),
            Event::Source(index) => self.wake(usize::from(index)),
            Event::Sample => self.sample(),
            Event::WarmedUp => self.forget_warm_up(),
        }
    }

    // Links.

    /// The first packet in flight on a link has come to the far end.
    fn arrive(&mut self, link: usize) {
        let now = self.kernel.now();
        let (to, segment) = {
            let link_state = &mut self.network.links[link];
            let (_, segment) = link_state.in_flight.pop_front().expect("an arrival has its packet");
            if let Some((at, _)) = link_state.in_flight.front() {
                self.kernel.schedule(*at, Event::Arrival(link as u16));
            }
            (link_state.to, segment)
        };
        if self.segments[segment].destination == to {
            self.deliver(segment);
        } else {
            let next = self.network.next_link(to, self.segments[segment].destination);
            self.enter(next, segment, now);
        }
    }

    /// A packet comes to the queue of a link at `at`: now, or in the future for
    /// a link that has one feeder.
    fn enter(&mut self, link: usize, segment: SegmentId, at: Time) {
        let record = &self.segments[segment];
        if let Some(sent) = self.network.links[link].queue.pass(at, record.size) {
            return self.travel(link, segment, sent);
        }
        let packet = Packet {
            handle: u64::from(segment),
            flow: record.key,
            size: record.size,
            class: record.class,
            dscp: Dscp::DEFAULT,
            ecn: record.ecn,
            tcp: record.content.tcp_facts(),
            arrived: at,
        };
        let Queue::Scheduled(queue) = &mut self.network.links[link].queue else {
            unreachable!("a queue is unbounded or scheduled")
        };
        let losses = queue.port.offer(at, packet);
        self.lost.extend(losses.iter().map(segment_of));
        if self.takes_packets {
            self.recorder.packet(&PacketRecord { link, at, packet, event: PacketEvent::Arrived });
            record_losses(self.recorder, link, at, queue.port.losses());
        }
        self.drop_lost();
        self.serve(link, false);
    }

    /// Lets the sender of a link take a packet if it can; `woken` when the
    /// event that it has waited for is this one.
    fn serve(&mut self, link: usize, woken: bool) {
        let now = self.kernel.now();
        let Queue::Scheduled(queue) = &mut self.network.links[link].queue else { return };
        if woken {
            queue.wakes = false;
        }
        if queue.wakes || queue.port.backlog().packets == 0 {
            return;
        }
        if let Some(radio) = queue.radio {
            return self.contend(radio);
        }
        let ready = queue.ready_at(now);
        if ready > now {
            queue.wakes = true;
            return self.kernel.schedule(ready, Event::Ready(link as u16));
        }
        let taken = queue.send(now);
        if let Some((packet, _)) = &taken {
            queue.delay.record(now.since(packet.arrived));
        }
        self.lost.extend(queue.port.losses().iter().map(segment_of));
        if self.takes_packets {
            record_losses(self.recorder, link, now, queue.port.losses());
            if let Some((packet, _)) = taken {
                let event = PacketEvent::Sent;
                self.recorder.packet(&PacketRecord { link, at: now, packet, event });
            }
        }
        if queue.port.backlog().packets > 0 {
            let next = match &taken {
                Some((_, sent)) => queue.ready_at(*sent),
                // The discipline holds its packets back.
                None => queue.port.next_ready(now).unwrap_or(Time::FAR_FUTURE),
            };
            queue.wakes = true;
            self.kernel.schedule(next, Event::Ready(link as u16));
        }
        self.drop_lost();
        if let Some((packet, sent)) = taken {
            let segment = packet.handle as SegmentId;
            self.segments[segment].ecn = packet.ecn;
            self.travel(link, segment, sent);
        }
    }

    /// A packet whose last bit leaves a link's sender at `sent` goes to the far
    /// end, and at once through links behind that it alone feeds.
    fn travel(&mut self, link: usize, segment: SegmentId, sent: Time) {
        if self.network.links[link].loses(self.segments[segment].lot) {
            self.lost.push(segment);
            return self.drop_lost();
        }
        let at = self.network.links[link].arrival(sent);
        let to = self.network.links[link].to;
        let destination = self.segments[segment].destination;
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
        in_flight.push_back((at, segment));
    }

    /// Tells the owners of lost packets.
    fn drop_lost(&mut self) {
        while let Some(segment) = self.lost.pop() {
            self.tally.lost += 1;
            match self.segments.remove(segment).content {
                Content::Tcp { connection, .. } => self.connections.count_loss(connection),
                Content::Datagram { traffic, flow, sent, .. } => {
                    self.end_datagram(usize::from(traffic), flow, sent, None);
                }
            }
        }
    }

    // Hosts.

    /// A packet has come to the host it was sent to.
    fn deliver(&mut self, segment: SegmentId) {
        self.tally.delivered += 1;
        let now = self.kernel.now();
        let record = self.segments.remove(segment);
        match record.content {
            Content::Tcp { connection, to, header } => {
                let Some(state) = self.connections.live(connection) else { return };
                let marked = record.ecn == Ecn::Ce;
                state.on_segment(now, to, &header, marked, &mut self.headers);
                self.after_activity(connection, to);
            }
            Content::Datagram { traffic, flow, sent, .. } => {
                self.end_datagram(usize::from(traffic), flow, sent, Some(record.size));
            }
        }
    }

    fn on_timer(&mut self, connection: ConnectionId, side: Side) {
        let now = self.kernel.now();
        let Some(state) = self.connections.live(connection) else { return };
        if state.timer_came(now, side, &mut self.headers) {
            self.after_activity(connection, side);
        }
    }

    /// Sends what one side of a connection has to say, sets its timer, and
    /// closes the books when the connection is over.
    fn after_activity(&mut self, connection: ConnectionId, side: Side) {
        let now = self.kernel.now();
        let Some(state) = self.connections.live(connection) else { return };
        if let Some(at) = state.timer_to_set(side) {
            self.kernel.schedule(at, Event::Timer(connection, side));
        }
        let over = state.is_over();
        let class = self.scenario.traffic[state.traffic()].class;
        let (from, destination, key) = state.route(side);
        for index in 0..self.headers.len() {
            let header = self.headers[index];
            let to = side.other();
            let size = header.wire_size();
            let ecn = if header.ecn_capable { Ecn::Ect0 } else { Ecn::NotEct };
            let content = Content::Tcp { connection, to, header };
            let state = self.connections.live(connection).expect("it has just been there");
            let lot = state.next_lot(side);
            self.send(from, Segment { key, destination, size, class, ecn, lot, content });
        }
        self.headers.clear();
        if over {
            let state = self.connections.remove(connection);
            self.report_connection(&state, Some(now));
        }
    }

    /// Gives a packet to the first link of its way.
    fn send(&mut self, from: NodeId, segment: Segment) {
        self.tally.made += 1;
        let link = self.network.next_link(from, segment.destination);
        let id = self.segments.insert(segment);
        self.enter(link, id, self.kernel.now());
    }

    // Sources.

    fn wake(&mut self, index: usize) {
        let now = self.kernel.now();
        let mut actions = std::mem::take(&mut self.actions);
        if let Some(next) = self.sources[index].wake(now, &mut actions) {
            self.kernel.schedule(next, Event::Source(index as u16));
        }
        for action in actions.drain(..) {
            match action {
                Action::Open { from, to, size } => self.open(index, from, to, size),
                Action::Send(datagram) => self.send_datagram(index, &datagram),
            }
        }
        self.actions = actions;
    }

    fn open(&mut self, traffic: usize, from: NodeId, to: NodeId, size: Option<Bytes>) {
        let now = self.kernel.now();
        let number = self.opened[traffic];
        self.opened[traffic] += 1;
        let transfer = transfer_of(&self.scenario.traffic[traffic].kind);
        let opened = self.connections.open(|serial| {
            Connection::new(now, transfer, (from, to), size, (traffic, number), (serial, self.seed))
        });
        let state = self.connections.live(opened).expect("it has just been opened");
        state.poll(now, Side::Opener, &mut self.headers);
        self.after_activity(opened, Side::Opener);
    }

    // Books.

    fn sample(&mut self) {
        let now = self.kernel.now();
        self.kernel.schedule(now + self.scenario.sample_every, Event::Sample);
        for (index, link) in self.network.links.iter().enumerate() {
            let Queue::Scheduled(queue) = &link.queue else { continue };
            let row = LinkSample {
                link: index,
                at: now,
                backlog: queue.port.backlog(),
                flows_tracked: queue.port.flows_tracked(),
                counters: *queue.port.counters(),
            };
            self.recorder.link(&row);
            self.summary.links[index].get_or_insert_default().add_sample(row);
        }
        for state in self.connections.followed() {
            let row = ProgressSample {
                traffic: state.traffic(),
                number: state.number(),
                at: now,
                delivered: state.delivered(),
                congestion_window: state.congestion_window(),
                smoothed_rtt: state.smoothed_rtt(),
            };
            self.recorder.progress(&row);
            self.summary.progress.push(row);
        }
        self.recorder.reached(now);
    }

    fn forget_warm_up(&mut self) {
        let now = self.kernel.now();
        self.connections.all_live().for_each(|state| state.forget_warm_up(now));
        self.datagrams.iter_mut().for_each(|flows| flows.forget_warm_up(now));
        for (index, link) in self.network.links.iter_mut().enumerate() {
            if let Queue::Scheduled(queue) = &mut link.queue {
                self.base[index] = *queue.port.counters();
                queue.delay = Default::default();
                queue.airtime = Span::default();
            }
        }
    }

    fn report_connection(&mut self, state: &Connection, end: Option<Time>) {
        let now = self.kernel.now();
        let mut row = state.record(now, end);
        if let (Some(size), Some(_), Some(unloaded)) = (row.size, row.response, &mut self.unloaded)
        {
            row.unloaded = unloaded.response(row.traffic, size);
        }
        self.report(&row, now);
    }

    fn report(&mut self, row: &FlowRecord, now: Time) {
        if row.start >= Time(self.scenario.warm_up.0) {
            self.summary.add_flow(self.scenario, row, now);
            self.recorder.flow(row);
        }
    }

    /// Closes the books at `end`.
    fn finish(mut self, end: Time) -> RunSummary {
        for state in self.connections.drain() {
            self.report_connection(&state, None);
        }
        self.judge_datagrams_on_the_way(end);
        for traffic in 0..self.datagrams.len() {
            for flow in self.datagrams[traffic].unfinished() {
                let row = self.datagrams[traffic].record(traffic, flow);
                self.report(&row, end);
            }
        }
        let measured = end.since(Time(self.scenario.warm_up.0));
        for (index, link) in self.network.links.iter_mut().enumerate() {
            let Queue::Scheduled(queue) = &mut link.queue else { continue };
            assert!(queue.port.is_conserved(), "link {index}: a packet was made or lost unseen");
            let summary = self.summary.links[index].get_or_insert_default();
            summary.counters = queue.port.counters().since(&self.base[index]);
            summary.utilisation = queue.utilisation(summary.counters.delivered_bytes, measured);
            summary.delay = std::mem::take(&mut queue.delay);
        }
        let on_the_way = self.segments.len() as u64;
        let Tally { made, delivered, lost } = self.tally;
        assert_eq!(made, delivered + lost + on_the_way, "a segment was made or lost unseen");
        self.summary.reached = end;
        self.summary.events = self.kernel.handled();
        self.summary
    }
}

fn segment_of(loss: &Loss) -> SegmentId {
    loss.packet.handle as SegmentId
}

/// The transfer that a source of connections makes.
fn transfer_of(kind: &TrafficKind) -> &Transfer {
    match kind {
        TrafficKind::Transfers { transfer, .. } | TrafficKind::Web { transfer, .. } => transfer,
        TrafficKind::Cbr { .. }
        | TrafficKind::Frames { .. }
        | TrafficKind::Greedy { .. }
        | TrafficKind::Packets { .. } => {
            unreachable!("sources of datagrams open no connections")
        }
    }
}

fn record_losses(recorder: &mut dyn Recorder, link: usize, at: Time, losses: &[Loss]) {
    for loss in losses {
        let event = PacketEvent::Lost(loss.reason);
        recorder.packet(&PacketRecord { link, at, packet: loss.packet, event });
    }
}

impl Content {
    fn tcp_facts(&self) -> Option<TcpFacts> {
        match self {
            Content::Tcp { header, .. } => Some(facts(header)),
            Content::Datagram { tcp, .. } => *tcp,
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
