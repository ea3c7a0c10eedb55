//! One run: a setup, a scheduler, a seed.

mod books;
mod clients;
mod gateway;
mod network;
mod passing;
mod pools;
mod presence;
mod servers;
mod shaping;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::request::{Permit, Scheduler, Ticket};
use tidegate_core::{Bytes, Counters, Rate, Span, Stream, Time};

use self::passing::Passing;
use self::pools::Pool;
use self::presence::Visitor;
use self::shaping::Shaper;
use super::connection::{Connection, Segment, Side};
use super::demand::{Asker, Object, Sizes};
use super::outcome::{ClassOutcome, Outcome, Pauses};
use super::pages::Loading;
use super::path::{Downlink, Wire};
use super::setup::{SchedulerChoice, Setup};
use super::ways::Way;
use crate::kernel::Kernel;
use crate::metrics::run_summary::Times;
use crate::slab::Slab;
use crate::tcp::{Header, TcpConfig};

/// How many events pass between two looks at the stop flag.
const EVENTS_BETWEEN_STOPS: u64 = 1 << 14;

/// Something that will happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A packet has come to the end of a connection that it is for.
    Deliver(u32),
    /// A packet has come to the provider's queue.
    AtProvider(u32),
    /// A packet between a client and a server has come to the access link.
    AtUplink(u32),
    /// One has come over the downlink.
    AtUsers(u32),
    /// The shaper may have something to send.
    ShaperReady,
    /// The pools fill.
    Refill,
    /// A datagram of this source has come to the provider's queue.
    Passing(u32),
    /// The downlink's sender may take the next packet.
    DownlinkReady,
    /// A timer of one end of a connection may be due.
    Timer(u64, Side),
    /// A client begins a page, if its user has not come or gone since.
    Page(u32, u32),
    /// An object of a page is due.
    Due(u64, u32),
    /// A user comes or goes.
    Visit(u32),
    /// A slow server sends some more of a response.
    Trickle(u64),
    /// A response may have been silent for too long.
    Watch(u64),
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
    /// Its page, and its number there.
    page: (u64, usize),
    object: Object,
    began: Time,
    /// When the request had come to the gateway.
    asked: Option<Time>,
    released: Option<Time>,
    /// While the request waits, or after that.
    ticket: Option<Ticket>,
    permit: Option<Permit>,
    /// The client's connection, and the server's once there is one.
    client: u64,
    server: Option<u64>,
    /// Payload that the gateway has read and passed on.
    relayed: u64,
    /// Payload that a slow server has sent.
    trickled: u64,
    /// When something of the response was read last; before that, its release.
    moved: Time,
    /// Since when all is read that was granted.
    ungranted: Option<Time>,
}

/// Runs `setup` with a gateway and this scheduler. When `stop` becomes true the run
/// ends early, with what it has.
#[must_use]
pub fn run(setup: &Setup, scheduler: &SchedulerChoice, seed: u64, stop: &AtomicBool) -> Outcome {
    run_way(setup, &scheduler.clone().into(), seed, stop)
}

/// Runs `setup` in any way, as [`run`].
#[must_use]
pub fn run_way(setup: &Setup, way: &Way, seed: u64, stop: &AtomicBool) -> Outcome {
    let mut run = Run::new(setup, way, seed);
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
    /// Without one, TCP goes from clients to servers.
    has_gateway: bool,
    /// One for each class, if the gateway limits what it reads.
    pools: Vec<Pool>,
    /// When the scheduler is woken next.
    gate_at: Time,
    askers: Vec<Asker>,
    /// Pages on their way, with their askers.
    pages: BTreeMap<u64, (usize, Loading)>,
    begun: u64,
    visitors: Vec<Visitor>,
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
    passing: Vec<Passing>,
    shaper: Option<Shaper>,
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
    fn new(setup: &'a Setup, way: &Way, seed: u64) -> Run<'a> {
        let weights: Vec<NonZeroU32> = setup.classes.iter().map(|class| class.weight).collect();
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
            scheduler: Scheduler::new(way.config(), setup.rate, &weights, seed),
            has_gateway: !way.is_end_to_end(),
            pools: way.caps(setup).into_iter().flatten().map(Pool::new).collect(),
            gate_at: Time::FAR_FUTURE,
            askers: askers.flat_map(|(n, class)| Asker::of_class(n, class, seed)).collect(),
            pages: BTreeMap::new(),
            begun: 0,
            visitors: Visitor::all(&setup.classes, seed),
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
            passing: setup.passing.iter().copied().map(Passing::new).collect(),
            shaper: way.shaper(setup, seed).map(Shaper::new),
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
                pauses: Pauses::default(),
                shaper: None,
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
        self.start_visits();
        for asker in 0..self.askers.len() {
            self.plan_page(asker);
        }
        self.start_passing();
        if !self.pools.is_empty() {
            self.plan_refill();
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.kernel.now();
        match event {
            Event::Deliver(segment) => self.deliver(segment),
            Event::AtProvider(segment) => {
                let size = self.segments[segment].header.wire_size();
                self.queue_at_provider(Some(segment), size);
            }
            Event::AtUplink(segment) => self.enter_uplink(segment),
            Event::AtUsers(segment) => self.arrive_at_users(segment),
            Event::ShaperReady => self.shape(),
            Event::Refill => self.refill(),
            Event::Passing(source) => self.pass(source as usize),
            Event::DownlinkReady => {
                self.downlink_wakes = false;
                if let Some((Some(segment), at)) = self.downlink.send(now) {
                    let arrives = if self.has_gateway { Event::Deliver } else { Event::AtUsers };
                    self.kernel.schedule(at, arrives(segment));
                }
                self.wake_downlink();
            }
            Event::Timer(connection, side) => self.on_timer(connection, side),
            Event::Page(asker, visit) => self.begin_page(asker as usize, visit),
            Event::Due(page, object) => self.ask_if_possible(page, object as usize),
            Event::Visit(visitor) => self.visit(visitor as usize),
            Event::Trickle(number) => self.trickle(number),
            Event::Watch(number) => self.watch(number),
            // One that an earlier wake has replaced does nothing, or each would plan another.
            Event::Gate if self.gate_at > now => {}
            Event::Gate => self.gate_at = Time::FAR_FUTURE,
            Event::Report => self.report(),
            Event::Sample => self.sample(),
            Event::WarmedUp => {
                self.base = *self.downlink.port.counters();
                self.downlink.queueing = Times::default();
                self.shaper.iter_mut().for_each(Shaper::start_books);
                self.received_base.clone_from(&self.received);
            }
        }
    }
}
