//! One run: a setup, a scheduler, a seed.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::request::{
    ClassId, Decision, LinkReport, Permit, Reading, Request, Scheduler, UserId,
};
use tidegate_core::{Bytes, Counters, Rate, Span, Stream, Time};

use super::connection::{Connection, Leg, Segment, Side};
use super::demand::{Asker, Object, Sizes};
use super::outcome::{ClassOutcome, Outcome, SMALL, Sample};
use super::path::{Downlink, Wire};
use super::setup::{SchedulerChoice, Setup};
use crate::kernel::Kernel;
use crate::metrics::run_summary::Times;
use crate::slab::Slab;
use crate::tcp::{Endpoint, Header, TcpConfig};

/// How often the gateway reads the counters of its access link: many times in
/// an interval of the window, and within the read gate's memory.
const REPORT_EVERY: Span = Span::millis(100);

/// How many events pass between two looks at the stop flag.
const EVENTS_BETWEEN_STOPS: u64 = 1 << 14;

/// Something that will happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A packet has come to the end of a connection that it is for.
    Deliver(u32),
    /// A packet has come to the provider's queue.
    AtProvider(u32),
    /// The downlink's sender may take the next packet.
    DownlinkReady,
    /// A timer of one end of a connection may be due.
    Timer(u64, Side),
    /// A client begins a page.
    Page(u32),
    /// The scheduler may have something to do.
    Gate,
    /// The gateway reads the counters of its access link.
    Report,
    /// Time to look at everything.
    Sample,
    /// The warm-up is over.
    WarmedUp,
}

/// An object on its way to a client.
struct Exchange {
    asker: u32,
    object: Object,
    began: Time,
    /// When the request had come to the gateway.
    asked: Option<Time>,
    released: Option<Time>,
    permit: Option<Permit>,
    /// The client's connection, and the server's once there is one.
    client: u64,
    server: Option<u64>,
    /// Payload that the gateway has read and passed on.
    relayed: u64,
}

/// Runs `setup` with `scheduler`. When `stop` becomes true the run ends early,
/// with what it has.
#[must_use]
pub fn run(setup: &Setup, scheduler: &SchedulerChoice, seed: u64, stop: &AtomicBool) -> Outcome {
    let mut run = Run::new(setup, scheduler, seed);
    run.start();
    let end = Time(setup.duration.0);
    while let Some(event) = run.kernel.next(end) {
        run.handle(event);
        run.obey();
        let look = run.kernel.handled().is_multiple_of(EVENTS_BETWEEN_STOPS);
        if look && stop.load(Ordering::Relaxed) {
            let now = run.kernel.now();
            return run.finish(now);
        }
    }
    run.finish(end)
}

struct Run<'a> {
    setup: &'a Setup,
    kernel: Kernel<Event>,
    scheduler: Scheduler,
    /// When the scheduler is woken next.
    gate_at: Time,
    askers: Vec<Asker>,
    sizes: Sizes,
    // Packets and where they go.
    segments: Slab<Segment>,
    to_gateway: Vec<Wire>,
    to_client: Vec<Wire>,
    uplink: Wire,
    to_server: Vec<Wire>,
    to_provider: Vec<Wire>,
    downlink: Downlink,
    downlink_wakes: bool,
    // TCP.
    connections: BTreeMap<u64, Connection>,
    exchanges: BTreeMap<u64, Exchange>,
    opened: u64,
    seed: u64,
    server_side: Arc<TcpConfig>,
    headers: Vec<Header>,
    // The delay signal.
    least_round_trip: Vec<Option<Span>>,
    delays: (Span, u64),
    // Books.
    outcome: Outcome,
    received: Vec<Bytes>,
    base: Counters,
    received_base: Vec<Bytes>,
}

impl<'a> Run<'a> {
    fn new(setup: &'a Setup, choice: &SchedulerChoice, seed: u64) -> Run<'a> {
        let weights: Vec<NonZeroU32> = setup.classes.iter().map(|class| class.weight).collect();
        let config = (choice.entry.config)(&choice.settings);
        let clients: u32 = setup.classes.iter().map(|class| class.clients).sum();
        let client_wires = vec![Wire::new(setup.client_rate, setup.client_delay); clients as usize];
        let mut stream = Stream::new(seed, "servers");
        let mut servers = Vec::new();
        for group in &setup.servers {
            for _ in 0..group.count {
                let between = |stream: &mut Stream, (least, most): (u64, u64)| {
                    least + (stream.uniform() * (most - least) as f64) as u64
                };
                let delay = Span(between(&mut stream, (group.delay.0.0, group.delay.1.0)));
                let rate = Rate(between(&mut stream, (group.rate.0.0, group.rate.1.0)));
                servers.push(Wire::new(rate, delay));
            }
        }
        let classes = setup.classes.len();
        let askers = setup.classes.iter().enumerate();
        Run {
            setup,
            kernel: Kernel::new(),
            scheduler: Scheduler::new(config, setup.rate, &weights, seed),
            gate_at: Time::FAR_FUTURE,
            askers: askers.flat_map(|(n, class)| Asker::of_class(n, class, seed)).collect(),
            sizes: Sizes::new(&setup.sizes),
            segments: Slab::new(),
            to_gateway: client_wires.clone(),
            to_client: client_wires,
            uplink: Wire::new(setup.rate, setup.delay),
            least_round_trip: vec![None; servers.len()],
            to_server: servers.clone(),
            to_provider: servers,
            downlink: Downlink::new(setup.rate, setup.delay, setup.buffer),
            downlink_wakes: false,
            connections: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            opened: 0,
            seed,
            server_side: Arc::new(TcpConfig {
                receive_window: setup.server_window,
                ..(*setup.tcp).clone()
            }),
            headers: Vec::new(),
            delays: (Span::ZERO, 0),
            outcome: Outcome {
                classes: vec![ClassOutcome::default(); classes],
                samples: Vec::new(),
                queueing: Times::default(),
                downlink: Counters::default(),
                utilisation: 0.0,
                measured: Span::ZERO,
                reached: Time::ZERO,
            },
            received: vec![Bytes::ZERO; classes],
            base: Counters::default(),
            received_base: vec![Bytes::ZERO; classes],
        }
    }

    fn start(&mut self) {
        self.kernel.schedule(Time(self.setup.warm_up.0), Event::WarmedUp);
        self.kernel.schedule(Time::ZERO, Event::Report);
        self.kernel.schedule(Time::ZERO, Event::Sample);
        for asker in 0..self.askers.len() {
            self.plan_page(asker);
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.kernel.now();
        match event {
            Event::Deliver(segment) => self.deliver(segment),
            Event::AtProvider(segment) => {
                let size = self.segments[segment].header.wire_size();
                for lost in self.downlink.offer(now, segment, size) {
                    self.segments.remove(lost);
                }
                self.wake_downlink();
            }
            Event::DownlinkReady => {
                self.downlink_wakes = false;
                if let Some((segment, at)) = self.downlink.send(now) {
                    self.kernel.schedule(at, Event::Deliver(segment));
                }
                self.wake_downlink();
            }
            Event::Timer(connection, side) => self.on_timer(connection, side),
            Event::Page(asker) => self.begin_page(asker as usize),
            Event::Gate => self.gate_at = Time::FAR_FUTURE,
            Event::Report => self.report(),
            Event::Sample => self.sample(),
            Event::WarmedUp => {
                self.base = *self.downlink.port.counters();
                self.downlink.queueing = Times::default();
                self.received_base.clone_from(&self.received);
            }
        }
    }

    fn wake_downlink(&mut self) {
        if !self.downlink_wakes
            && let Some(at) = self.downlink.ready_at()
        {
            self.downlink_wakes = true;
            self.kernel.schedule(at, Event::DownlinkReady);
        }
    }

    // Clients.

    fn plan_page(&mut self, asker: usize) {
        let class = &self.setup.classes[self.askers[asker].class];
        let at = self.askers[asker].next(self.kernel.now(), class);
        self.kernel.schedule(at, Event::Page(asker as u32));
    }

    fn begin_page(&mut self, asker: usize) {
        let servers = self.to_server.len();
        let page = self.askers[asker].page(self.setup.objects, &self.sizes, servers);
        self.askers[asker].missing += page.len() as u32;
        for object in page {
            self.ask(asker, object);
        }
        if !self.askers[asker].waits_for_pages() {
            self.plan_page(asker);
        }
    }

    /// A client opens a connection to the gateway and sends a request.
    fn ask(&mut self, asker: usize, object: Object) {
        let exchange = self.opened;
        let wire = self.client_of(asker);
        let tcp = self.setup.tcp.clone();
        let client = self.open(Leg::Client(wire), exchange, [tcp.clone(), tcp]);
        let began = self.kernel.now();
        self.exchanges.insert(
            exchange,
            Exchange {
                asker: asker as u32,
                object,
                began,
                asked: None,
                released: None,
                permit: None,
                client,
                server: None,
                relayed: 0,
            },
        );
        self.act(client, Side::Opener);
    }

    /// The number of an asker's client among those of all classes.
    fn client_of(&self, asker: usize) -> usize {
        let Asker { class, client, .. } = self.askers[asker];
        let before: u32 = self.setup.classes[..class].iter().map(|class| class.clients).sum();
        (before + client) as usize
    }

    /// An object has come, or will not.
    fn end_exchange(&mut self, number: u64, complete: bool) {
        let Some(exchange) = self.exchanges.remove(&number) else { return };
        let now = self.kernel.now();
        let asker = exchange.asker as usize;
        if exchange.began >= Time(self.setup.warm_up.0) {
            let class = &mut self.outcome.classes[self.askers[asker].class];
            if complete {
                class.completed += 1;
                class.response.record(now.since(exchange.began));
                if exchange.object.size < SMALL {
                    class.small.record(now.since(exchange.began));
                }
            } else {
                class.failed += 1;
            }
        }
        if !complete {
            // Neither end has anything more to say.
            self.connections.remove(&exchange.client);
            exchange.server.into_iter().for_each(|server| drop(self.connections.remove(&server)));
        }
        self.askers[asker].missing -= 1;
        if self.askers[asker].missing == 0 && self.askers[asker].waits_for_pages() {
            self.plan_page(asker);
        }
    }

    // The gateway.

    /// Carries out what the scheduler wants, and sees to it that it is asked again.
    fn obey(&mut self) {
        let now = self.kernel.now();
        while let Some(decision) = self.scheduler.next(now) {
            match decision {
                Decision::Release { request, permit } => self.release(request.handle, permit),
                Decision::Read { handle, size } => self.read_on(handle, size),
            }
        }
        if let Some(at) = self.scheduler.next_ready(now)
            && at < self.gate_at
        {
            self.gate_at = at;
            self.kernel.schedule(at, Event::Gate);
        }
    }

    fn release(&mut self, number: u64, permit: Permit) {
        let now = self.kernel.now();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        exchange.permit = Some(permit);
        exchange.released = Some(now);
        let waited = exchange.asked.map(|asked| now.since(asked));
        let (began, server) = (exchange.began, exchange.object.server);
        let class = self.askers[exchange.asker as usize].class;
        if began >= Time(self.setup.warm_up.0)
            && let Some(waited) = waited
        {
            self.outcome.classes[class].waiting.record(waited);
        }
        let leg = Leg::Server { server, answered: false, timed: false };
        let configs = [self.server_side.clone(), self.setup.tcp.clone()];
        let connection = self.open(leg, number, configs);
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.server = Some(connection);
        }
        self.act(connection, Side::Opener);
    }

    /// A long response may be read for so much more.
    fn read_on(&mut self, number: u64, size: Bytes) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        let Some(connection) = exchange.server else { return };
        if let Some(state) = self.connections.get_mut(&connection) {
            let end = &mut state.ends[Side::Opener as usize];
            end.read_up_to(end.readable().saturating_add(size.0));
        }
        self.relay(number);
        self.act(connection, Side::Opener);
    }

    /// The gateway reads what has come from the server and passes it on.
    fn relay(&mut self, number: u64) {
        let now = self.kernel.now();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let Some(server) = exchange.server.and_then(|id| self.connections.get_mut(&id)) else {
            return;
        };
        let end = &mut server.ends[Side::Opener as usize];
        let fresh = end.delivered() - exchange.relayed;
        let Some(permit) = exchange.permit.as_ref().filter(|_| fresh > 0) else { return };
        exchange.relayed += fresh;
        let class = self.askers[exchange.asker as usize].class;
        self.received[class] += Bytes(fresh);
        match self.scheduler.received(now, permit, Bytes(fresh)) {
            Reading::Freely => {}
            Reading::UpTo(left) => end.read_up_to(exchange.relayed + left.0),
        }
        let complete = exchange.relayed >= exchange.object.size.0;
        if complete {
            exchange.permit = None;
            end.close();
            if exchange.began >= Time(self.setup.warm_up.0)
                && let Some(released) = exchange.released
            {
                self.outcome.classes[class].service.record(now.since(released));
            }
        }
        let client = exchange.client;
        if let Some(state) = self.connections.get_mut(&client) {
            let end = &mut state.ends[Side::Acceptor as usize];
            end.write(fresh);
            if complete {
                end.close();
            }
        }
        self.act(client, Side::Acceptor);
    }

    fn report(&mut self) {
        let now = self.kernel.now();
        self.kernel.schedule(now + REPORT_EVERY, Event::Report);
        let (sum, count) = std::mem::take(&mut self.delays);
        let queueing_delay = (count > 0).then(|| sum / count);
        let carried = self.downlink.port.counters().delivered_bytes;
        self.scheduler.report(now, LinkReport { carried, queueing_delay });
    }

    // TCP.

    fn open(&mut self, leg: Leg, exchange: u64, configs: [Arc<TcpConfig>; 2]) -> u64 {
        let number = self.opened;
        self.opened += 1;
        let name = (self.seed, number);
        let connection = Connection::new(leg, exchange, self.setup.request, configs, name);
        self.connections.insert(number, connection);
        number
    }

    fn deliver(&mut self, segment: u32) {
        let Segment { connection, to, header } = self.segments.remove(segment);
        let now = self.kernel.now();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.ends[to as usize].on_segment(now, &header, false, &mut self.headers);
        self.send(connection, to);
        self.serve(connection, to);
    }

    fn on_timer(&mut self, connection: u64, side: Side) {
        let now = self.kernel.now();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if state.alarms[side as usize] != now {
            return;
        }
        state.alarms[side as usize] = Time::FAR_FUTURE;
        let end = &mut state.ends[side as usize];
        if end.next_timer().is_some_and(|at| at <= now) {
            end.on_timer(now, &mut self.headers);
        }
        self.send(connection, side);
    }

    /// What the program at this end does after something has come in.
    fn serve(&mut self, connection: u64, side: Side) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let (number, end) = (state.exchange, &mut state.ends[side as usize]);
        let exchange = self.exchanges.get(&number);
        match (&mut state.leg, side) {
            (Leg::Client(_), Side::Acceptor) => {
                let request = self.setup.request.0;
                let asks = exchange.is_some_and(|exchange| exchange.asked.is_none());
                if asks && end.is_established() && end.delivered() >= request {
                    self.arrive(number);
                }
            }
            (Leg::Client(_), Side::Opener) => {
                if end.peer_finished() {
                    end.close();
                }
                let size = exchange.map_or(u64::MAX, |exchange| exchange.object.size.0);
                if end.delivered() >= size {
                    self.end_exchange(number, true);
                }
            }
            (Leg::Server { server, timed, .. }, Side::Opener) => {
                if let (false, Some(round_trip)) = (*timed, end.smoothed_rtt()) {
                    *timed = true;
                    let least = &mut self.least_round_trip[*server];
                    let least = *least.insert(least.map_or(round_trip, |l| l.min(round_trip)));
                    self.delays.0 += round_trip - least;
                    self.delays.1 += 1;
                }
                self.relay(number);
            }
            (Leg::Server { answered, .. }, Side::Acceptor) => {
                let ready = end.is_established() && end.delivered() >= self.setup.request.0;
                if let (false, true, Some(exchange)) = (*answered, ready, exchange) {
                    *answered = true;
                    end.write(exchange.object.size.0);
                    end.close();
                }
            }
        }
        self.act(connection, side);
    }

    /// A request has come to the gateway.
    fn arrive(&mut self, number: u64) {
        let now = self.kernel.now();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        exchange.asked = Some(now);
        let Asker { class, client, .. } = self.askers[exchange.asker as usize];
        let request = Request {
            handle: number,
            class: ClassId(class as u32),
            user: UserId(u64::from(client)),
        };
        if self.scheduler.arrive(request).is_err() {
            self.end_exchange(number, false);
        }
    }

    /// Lets an end send what it may after its program did something.
    fn act(&mut self, connection: u64, side: Side) {
        let now = self.kernel.now();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.ends[side as usize].poll(now, &mut self.headers);
        self.send(connection, side);
    }

    /// Sends what an end has to say, sets its timer, and forgets the connection
    /// when it is over.
    fn send(&mut self, connection: u64, side: Side) {
        let now = self.kernel.now();
        let headers = std::mem::take(&mut self.headers);
        for header in &headers {
            self.route(connection, side, *header);
        }
        self.headers = headers;
        self.headers.clear();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let alarm = &mut state.alarms[side as usize];
        if let Some(at) = state.ends[side as usize].next_timer().filter(|at| *at < *alarm) {
            *alarm = at;
            self.kernel.schedule(at.max(now), Event::Timer(connection, side));
        }
        if state.ends.iter().any(Endpoint::has_failed) {
            let number = state.exchange;
            self.connections.remove(&connection);
            self.end_exchange(number, false);
        } else if state.ends.iter().all(Endpoint::is_closed) {
            self.connections.remove(&connection);
        }
    }

    /// Puts a packet on its way.
    fn route(&mut self, connection: u64, from: Side, header: Header) {
        let now = self.kernel.now();
        let Some(state) = self.connections.get(&connection) else { return };
        let size = header.wire_size();
        let segment = self.segments.insert(Segment { connection, to: from.other(), header });
        let event = match (state.leg, from) {
            (Leg::Client(client), Side::Opener) => {
                (self.to_gateway[client].carry(now, size), Event::Deliver(segment))
            }
            (Leg::Client(client), Side::Acceptor) => {
                (self.to_client[client].carry(now, size), Event::Deliver(segment))
            }
            (Leg::Server { server, .. }, Side::Opener) => {
                let at = self.uplink.carry(now, size);
                (self.to_server[server].carry(at, size), Event::Deliver(segment))
            }
            (Leg::Server { server, .. }, Side::Acceptor) => {
                (self.to_provider[server].carry(now, size), Event::AtProvider(segment))
            }
        };
        self.kernel.schedule(event.0, event.1);
    }

    // Books.

    fn sample(&mut self) {
        let now = self.kernel.now();
        self.kernel.schedule(now + self.setup.sample_every, Event::Sample);
        self.outcome.samples.push(Sample {
            at: now,
            window: self.scheduler.window(),
            held: self.scheduler.held(),
            outstanding: self.scheduler.outstanding(),
            waiting: self.scheduler.waiting(),
            queued: self.downlink.port.backlog().packets,
            received: self.received.clone(),
            carried: self.downlink.port.counters().delivered_bytes,
        });
    }

    fn finish(mut self, end: Time) -> Outcome {
        assert!(self.downlink.port.is_conserved(), "a packet was made or lost unseen");
        let outstanding = self.exchanges.values().filter(|exchange| exchange.permit.is_some());
        assert_eq!(self.scheduler.outstanding(), outstanding.count(), "a place was lost");
        let measured = end.since(Time(self.setup.warm_up.0));
        let mut outcome = self.outcome;
        for (class, outcome) in outcome.classes.iter_mut().enumerate() {
            outcome.received = self.received[class] - self.received_base[class];
        }
        outcome.downlink = self.downlink.port.counters().since(&self.base);
        let could = self.setup.rate.volume(measured);
        outcome.utilisation = outcome.downlink.delivered_bytes.0 as f64 / could.0.max(1) as f64;
        outcome.queueing = self.downlink.queueing;
        outcome.measured = measured;
        outcome.reached = end;
        outcome
    }
}
