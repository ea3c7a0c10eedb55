//! The request gateway: a program with two connections for every exchange, one
//! to a client and one to a server.
//!
//! [`tidegate_core::request::Proxy`] makes the decisions. This program only
//! moves bytes: it tells that state machine what happens at its sockets, and
//! carries out the replies.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::request::{
    self, Action, ClassId, Ending as Ended, ExchangeId, OriginId, Phase, ProxyConfig, REPORT_EVERY,
    Reading, Scheduler, UserId,
};
use tidegate_core::{Bytes, Span, Time};

use super::App;
use crate::connections::{AppId, Connection, ConnectionId, Opening, Over, Side};
use crate::metrics::run_summary::Times;
use crate::network::Queue;
use crate::requests::{
    ClassOutcome, Ending, Fate, Hosts, Pauses, Setup, Unfinished, Wanted, Way, Whereabouts,
};
use crate::scenario::NodeId;
use crate::simulation::World;
use crate::tcp::TcpConfig;

/// The reasons for which it is woken.
const GATE: u64 = 0;
const REPORT: u64 = 1;

/// The gateway of a run.
pub(crate) struct Proxy<'a> {
    setup: &'a Setup,
    core: request::Proxy,
    host: NodeId,
    servers: Vec<NodeId>,
    /// The link whose counters it reads.
    downlink: usize,
    /// TCP towards servers.
    server_side: Arc<TcpConfig>,
    relays: BTreeMap<ExchangeId, Relay>,
    /// The exchange of a connection, on either side.
    exchanges: BTreeMap<ConnectionId, ExchangeId>,
    /// The next time at which the state machine wants to be called.
    wakes_at: Time,
    /// Payload that has arrived for each class.
    received: Vec<Bytes>,
    books: Vec<Books>,
    longest_silence: Span,
}

/// An exchange with its connections.
struct Relay {
    wanted: Wanted,
    client: ConnectionId,
    server: Option<ConnectionId>,
    heard: Time,
    released: Option<Time>,
    /// Whether the round trip of the handshake has been recorded.
    timed: bool,
    /// Payload that was read and passed on, and the last time of that.
    relayed: u64,
    moved: Time,
}

#[derive(Clone, Debug, Default)]
struct Books {
    waiting: Times,
    service: Times,
}

impl<'a> Proxy<'a> {
    pub(crate) fn new(setup: &'a Setup, way: &Way, hosts: &Hosts, seed: u64) -> Proxy<'a> {
        let weights: Vec<_> = setup.classes.iter().map(|class| class.weight).collect();
        let scheduler = Scheduler::new(way.config(), setup.rate, &weights, seed);
        let config = ProxyConfig {
            patience: setup.patience,
            pools: way.caps(setup).unwrap_or_default(),
            ..ProxyConfig::default()
        };
        Proxy {
            setup,
            core: request::Proxy::new(Time::ZERO, scheduler, config),
            host: hosts.gateway,
            servers: hosts.servers.clone(),
            downlink: hosts.downlink,
            server_side: Arc::new(TcpConfig {
                receive_window: setup.server_window.max(setup.tcp.receive_window),
                ..(*setup.tcp).clone()
            }),
            relays: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            wakes_at: Time::FAR_FUTURE,
            received: vec![Bytes::ZERO; setup.classes.len()],
            books: vec![Books::default(); setup.classes.len()],
            longest_silence: Span::ZERO,
        }
    }

    /// A request has arrived completely.
    fn hear(&mut self, world: &mut World<'_>, client: ConnectionId, wanted: Wanted) {
        let (class, user) = (ClassId(wanted.class as u32), UserId(u64::from(wanted.client)));
        let now = world.now();
        match self.core.hear(class, user) {
            Ok(exchange) => {
                self.exchanges.insert(client, exchange);
                let relay = Relay {
                    wanted,
                    client,
                    server: None,
                    heard: now,
                    released: None,
                    timed: false,
                    relayed: 0,
                    moved: now,
                };
                self.relays.insert(exchange, relay);
            }
            Err(_) => world.abort(client, Side::Acceptor, Ending::Refused.reason()),
        }
    }

    /// Carries out everything that the state machine wants, and arranges the next call.
    fn obey(&mut self, world: &mut World<'_>) {
        let now = world.now();
        while let Some(action) = self.core.next_action(now) {
            match action {
                Action::Dial { exchange, reading } => self.dial(world, exchange, reading),
                Action::Read { exchange, size } => self.read_on(world, exchange, size),
                Action::End { exchange, ending } => self.end(world, exchange, ending),
                Action::Pass { .. } | Action::ReadTunnel { .. } => {
                    unreachable!("clients open no tunnels")
                }
            }
        }
        self.plan(world);
    }

    /// Sees to it that the state machine is asked when it has something to say.
    fn plan(&mut self, world: &mut World<'_>) {
        let now = world.now();
        if let Some(at) = self.core.next_timeout(now)
            && at < self.wakes_at
        {
            self.wakes_at = at;
            world.wake(AppId::Proxy, at, GATE);
        }
    }

    fn dial(&mut self, world: &mut World<'_>, exchange: ExchangeId, reading: Reading) {
        let now = world.now();
        let Some(relay) = self.relays.get_mut(&exchange) else { return };
        relay.released = Some(now);
        relay.moved = now;
        if world.is_measured(relay.wanted.asked) {
            self.books[relay.wanted.class].waiting.record(now.since(relay.heard));
        }
        let connection = world.open(&Opening {
            nodes: [self.host, self.servers[relay.wanted.server]],
            tcp: [self.server_side.clone(), self.setup.tcp.clone()],
            apps: [AppId::Proxy, AppId::Servers],
            class: 0,
            tag: 0,
            wanted: Some(relay.wanted),
        });
        relay.server = Some(connection);
        self.exchanges.insert(connection, exchange);
        if let Some(end) = world.end(connection, Side::Opener) {
            end.resize_buffer(self.setup.server_window);
            end.write(self.setup.request.0);
            if let Reading::UpTo(size) = reading {
                end.read_up_to(size.0);
            }
        }
        world.act(connection, Side::Opener);
    }

    fn read_on(&mut self, world: &mut World<'_>, exchange: ExchangeId, size: Bytes) {
        let Some(server) = self.relays.get(&exchange).and_then(|relay| relay.server) else {
            return;
        };
        if let Some(end) = world.end(server, Side::Opener) {
            end.read_up_to(end.readable().saturating_add(size.0));
        }
        self.relay(world, exchange);
        world.act(server, Side::Opener);
    }

    /// An exchange is over; an incomplete one ends for both sides.
    fn end(&mut self, world: &mut World<'_>, exchange: ExchangeId, ending: Ended) {
        let Some(relay) = self.relays.remove(&exchange) else { return };
        let connections =
            [Some((relay.client, Side::Acceptor)), relay.server.map(|s| (s, Side::Opener))];
        for (connection, side) in connections.into_iter().flatten() {
            self.exchanges.remove(&connection);
            if ending != Ended::Completed {
                world.abort(connection, side, Ending::from(ending).reason());
            }
        }
    }

    /// Reads data from a server, as far as permitted, and passes it on.
    fn relay(&mut self, world: &mut World<'_>, exchange: ExchangeId) {
        let now = world.now();
        let Some(relay) = self.relays.get_mut(&exchange) else { return };
        let Some(end) = relay.server.and_then(|server| world.end(server, Side::Opener)) else {
            return;
        };
        let (delivered, is_reset) = relay.wanted.fate.seen(end.delivered());
        let fresh = delivered - relay.relayed;
        let complete = delivered >= relay.wanted.size.0;
        if fresh > 0 {
            let reading = self.core.read(now, exchange, Bytes(fresh), complete);
            if let (Reading::UpTo(left), false) = (reading, complete) {
                end.read_up_to(delivered + left.0);
            }
            if let Some(size) = self.core.buffer(exchange) {
                let most = self.server_side.receive_window;
                end.resize_buffer(size.max(self.setup.server_window).min(most));
            }
        }
        if complete {
            end.close();
        }
        let unread = end.unread();
        relay.relayed = delivered;
        if fresh > 0 {
            self.received[relay.wanted.class] += Bytes(fresh);
            if relay.wanted.fate == Fate::Answered {
                self.longest_silence = self.longest_silence.max(now.since(relay.moved));
            }
            relay.moved = now;
            if complete
                && world.is_measured(relay.wanted.asked)
                && let Some(released) = relay.released
            {
                self.books[relay.wanted.class].service.record(now.since(released));
            }
            let client = relay.client;
            if let Some(end) = world.end(client, Side::Acceptor) {
                end.write(fresh);
                if complete {
                    end.close();
                }
            }
            world.act(client, Side::Acceptor);
        }
        if is_reset {
            self.core.reset(now, exchange);
        } else {
            // Even if it is nothing: a response that finds the bucket of its class empty
            // gets in line.
            self.core.came(now, exchange, Bytes(unread));
        }
    }

    /// Data has arrived from a server.
    fn hear_server(&mut self, world: &mut World<'_>, id: ConnectionId, exchange: ExchangeId) {
        let now = world.now();
        if let Some(relay) = self.relays.get_mut(&exchange)
            && let (false, Some(end)) = (relay.timed, world.end(id, Side::Opener))
            && let Some(round_trip) = end.smoothed_rtt()
        {
            relay.timed = true;
            self.core.timed(OriginId(relay.wanted.server as u64), round_trip);
            self.core.connected(now, exchange);
            self.core.path(now, exchange, round_trip);
        }
        self.relay(world, exchange);
    }

    /// A datagram that nobody requested has arrived. It counts where it belongs to a
    /// user; the link's counters show the others.
    pub(crate) fn hear_unrequested(&mut self, world: &mut World<'_>, traffic: usize, size: Bytes) {
        // Classes are the first sources.
        let passing = traffic.checked_sub(self.setup.classes.len());
        let source = passing.and_then(|number| self.setup.passing.get(number));
        let Some((class, client)) = source.and_then(|source| source.whose) else { return };
        self.received[class] += size;
        let whose = Some((ClassId(class as u32), UserId(u64::from(client))));
        self.core.received_unasked(world.now(), whose, size);
        self.plan(world);
    }

    // Books.

    /// *W+*, *W*, and how many responses are outstanding and requests wait.
    pub(crate) fn window(&mut self) -> (f64, u32, usize, usize) {
        let core = &mut self.core;
        (core.window(), core.held(), core.outstanding(), core.waiting())
    }

    /// Payload that has arrived for each class.
    pub(crate) fn received(&self) -> &[Bytes] {
        &self.received
    }

    pub(crate) fn pauses(&self, end: Time) -> Pauses {
        let request::Pauses { ungranted, long } = self.core.pauses(end);
        Pauses { ungranted, long, silent: self.longest_silence }
    }

    /// Where the request of a client's connection is.
    pub(crate) fn whereabouts(&self, world: &mut World<'_>, client: ConnectionId) -> Whereabouts {
        let phase = self.exchanges.get(&client).and_then(|exchange| self.core.phase(*exchange));
        let heard = world.connections.live(client).is_none_or(|state| state.wanted.is_none());
        match phase {
            Some(Phase::Waiting) => Whereabouts::Waiting,
            Some(Phase::Dialling | Phase::Reading(_)) => Whereabouts::Outstanding,
            None if heard => Whereabouts::Leaving,
            None => Whereabouts::Arriving,
        }
    }

    /// Compares what remains at the end with what clients miss: no place is lost.
    pub(crate) fn leave_off(&mut self, unfinished: &Unfinished) {
        let left = (self.core.waiting() as u64, self.core.outstanding() as u64);
        assert_eq!(left, (unfinished.waiting, unfinished.outstanding), "a place was lost");
    }

    pub(crate) fn add_to(&self, class: usize, books: &mut ClassOutcome) {
        books.waiting = self.books[class].waiting.clone();
        books.service = self.books[class].service.clone();
    }
}

impl App for Proxy<'_> {
    fn start(&mut self, world: &mut World<'_>) {
        world.wake(AppId::Proxy, world.now(), REPORT);
        self.obey(world);
    }

    fn on_wake(&mut self, world: &mut World<'_>, number: u64) {
        let now = world.now();
        if number == REPORT {
            world.wake(AppId::Proxy, now + REPORT_EVERY, REPORT);
            if let Queue::Scheduled(queue) = &world.network.links[self.downlink].queue {
                self.core.report(now, queue.port().counters().delivered_bytes);
            }
        } else if self.wakes_at <= now {
            self.wakes_at = Time::FAR_FUTURE;
        } else {
            // An earlier one has taken its place.
            return;
        }
        self.obey(world);
    }

    fn on_segment(&mut self, world: &mut World<'_>, id: ConnectionId, side: Side) -> bool {
        let heard = match side {
            Side::Acceptor => {
                let request = self.setup.request.0;
                let Some(connection) = world.connections.live(id) else { return false };
                let end = connection.endpoint(side);
                let is_whole = end.is_established() && end.delivered() >= request;
                let wanted = if is_whole { connection.wanted.take() } else { None };
                wanted.inspect(|wanted| self.hear(world, id, *wanted)).is_some()
            }
            Side::Opener => {
                let exchange = self.exchanges.get(&id).copied();
                exchange.inspect(|exchange| self.hear_server(world, id, *exchange)).is_some()
            }
        };
        // The segment's acknowledgement goes first. An update of the window that overtook
        // it would be undone by it, since the later of two with the same number sets the
        // window (RFC 9293 section 3.10.7.4).
        if heard {
            self.plan(world);
        }
        heard
    }

    fn on_over(
        &mut self,
        world: &mut World<'_>,
        connection: &mut Connection,
        side: Side,
        over: Over,
    ) {
        let Some(exchange) = self.exchanges.remove(&connection.id()) else { return };
        let now = world.now();
        match (over, side) {
            (Over::Aborted { .. }, Side::Acceptor) => self.core.left(now, exchange),
            (Over::Closed | Over::Aborted { .. }, _) => self.core.reset(now, exchange),
            (Over::Failed, _) => self.core.broken(now, exchange),
        }
        self.obey(world);
    }
}
