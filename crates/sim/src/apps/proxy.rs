//! The request gateway: a program with connections to clients and to servers, which
//! passes each response from one to the other.
//!
//! [`tidegate_core::request::Proxy`] makes the decisions. This program only
//! moves bytes: it tells that state machine what happens at its sockets, and
//! carries out the replies.
//!
//! A connection to a server has one response at a time, as that of most proxies has, so
//! that the gateway can stop reading one response without stopping others. Unless every
//! response has a connection of its own, those without a response are kept for the next
//! request to the same server, the one that was used last first: its congestion window
//! has had the least time to expire.

mod kept;
mod slow;
mod tunnels;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tidegate_core::request::{
    self, Action, Debts, Ending as Ended, ExchangeId, OriginId, Phase, ProxyConfig, REPORT_EVERY,
    Reading, Scheduler, TcpPath, TunnelId,
};
use tidegate_core::{Bytes, Dscp, Span, Time};

use self::kept::debt_of;
use self::tunnels::Tunnel;
use super::App;
use crate::carrier::{Came, Carrier, Heard, Request, Use};
use crate::connections::{AppId, Connection, ConnectionId, Opening, Over, Side};
use crate::metrics::run_summary::Times;
use crate::network::Queue;
use crate::requests::{
    ClassOutcome, Ending, Fate, Hosts, Pauses, Setup, Unfinished, Wanted, Way, Whereabouts,
};
use crate::scenario::NodeId;
use crate::simulation::World;
use crate::tcp::{Endpoint, TcpConfig};

/// The reasons for which it is woken.
const GATE: u64 = 0;
const REPORT: u64 = 1;

/// The gateway of a run.
pub(crate) struct Proxy<'a> {
    setup: &'a Setup,
    core: request::Proxy,
    /// Whether its scheduler holds responses back, and so has buffers sized.
    holds_back: bool,
    host: NodeId,
    servers: Vec<NodeId>,
    /// The link whose counters it reads.
    downlink: usize,
    /// TCP towards servers.
    server_side: Arc<TcpConfig>,
    relays: BTreeMap<ExchangeId, Relay>,
    /// The exchanges of clients' connections, by the objects that they asked for.
    asked: BTreeMap<(ConnectionId, usize), ExchangeId>,
    /// Exchanges that wait until a client takes what it has been sent.
    stopped: BTreeMap<ConnectionId, VecDeque<ExchangeId>>,
    /// The exchange of a connection to a server.
    exchanges: BTreeMap<ConnectionId, ExchangeId>,
    /// Connections to each server that have no response, and since when: the one that
    /// was used last is the last.
    kept: BTreeMap<usize, VecDeque<(ConnectionId, Time)>>,
    /// By class, client and server.
    debts: Debts<(usize, u32, usize)>,
    tunnels: BTreeMap<TunnelId, Tunnel>,
    /// The tunnel of a connection, on either side, even after the tunnel's end.
    tunnel_of: BTreeMap<ConnectionId, TunnelId>,
    /// The next time at which the state machine wants to be called.
    wakes_at: Time,
    /// Payload that has arrived for each class.
    received: Vec<Bytes>,
    books: Vec<Books>,
    longest_silence: Span,
}

/// An exchange with its connections.
struct Relay {
    request: Request<Wanted>,
    client: ConnectionId,
    server: Option<ConnectionId>,
    /// What TCP said before the request, on a connection that was kept.
    path: Option<TcpPath>,
    heard: Time,
    released: Option<Time>,
    /// Whether the round trip of the handshake, or of the request, has been looked at.
    timed: bool,
    /// Payload that was read and passed on, and the last time of that.
    relayed: u64,
    moved: Time,
    /// While the client takes nothing: how much may be read in all when it does.
    stopped: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Books {
    waiting: Times,
    service: Times,
}

impl<'a> Proxy<'a> {
    pub(crate) fn new(setup: &'a Setup, way: &Way, hosts: &Hosts, seed: u64) -> Proxy<'a> {
        let weights: Vec<_> = setup.weights().collect();
        let scheduler = Scheduler::new(way.config(), setup.rate, &weights, seed);
        let config = ProxyConfig {
            patience: setup.patience,
            pools: way.caps(setup).unwrap_or_default(),
            receive_buffer: setup.server_window,
            ..ProxyConfig::default()
        };
        Proxy {
            setup,
            holds_back: scheduler.holds_back(),
            core: request::Proxy::new(Time::ZERO, scheduler, config),
            host: hosts.gateway,
            servers: hosts.servers.clone(),
            downlink: hosts.downlink,
            server_side: Arc::new(TcpConfig {
                receive_window: setup.server_window.max(setup.tcp.receive_window),
                ..(*setup.tcp).clone()
            }),
            relays: BTreeMap::new(),
            asked: BTreeMap::new(),
            stopped: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            kept: BTreeMap::new(),
            debts: Debts::default(),
            tunnels: BTreeMap::new(),
            tunnel_of: BTreeMap::new(),
            wakes_at: Time::FAR_FUTURE,
            received: vec![Bytes::ZERO; setup.classes.len()],
            books: vec![Books::default(); setup.classes.len()],
            longest_silence: Span::ZERO,
        }
    }

    /// A request has arrived completely.
    fn hear(&mut self, world: &mut World<'_>, client: ConnectionId, request: Request<Wanted>) {
        let wanted = request.words;
        let (class, user) = self.setup.user(wanted.class, wanted.client);
        let now = world.now();
        match self.core.hear(class, user) {
            Ok(exchange) => {
                self.asked.insert((client, request.object), exchange);
                let relay = Relay {
                    request,
                    client,
                    server: None,
                    path: None,
                    heard: now,
                    released: None,
                    timed: false,
                    relayed: 0,
                    moved: now,
                    stopped: None,
                };
                self.relays.insert(exchange, relay);
            }
            Err(_) => break_off(world, client, request.object, Ending::Refused),
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
                Action::Pass { tunnel } => self.pass(world, tunnel),
                Action::ReadTunnel { tunnel, reading } => self.read_tunnel(world, tunnel, reading),
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
        let request = relay.request;
        let wanted = request.words;
        if world.is_measured(wanted.asked) {
            self.books[wanted.class].waiting.record(now.since(relay.heard));
        }
        let kept = self.take_kept(world, wanted);
        let connection = kept.unwrap_or_else(|| self.open(world, wanted.server));
        let Some(relay) = self.relays.get_mut(&exchange) else { return };
        relay.server = Some(connection);
        self.exchanges.insert(connection, exchange);
        let state = world.connections.live(connection);
        if let Some((carrier, end)) = state.and_then(|state| state.saying(Side::Opener)) {
            if self.holds_back {
                end.resize_buffer(self.setup.server_window);
            }
            if kept.is_some() {
                relay.path = path_of(end);
                self.core.connected(now, exchange);
                if let Some(path) = relay.path {
                    self.core.path(now, exchange, path.smoothed);
                }
            }
            carrier.ask(request, end);
            if let Reading::UpTo(size) = reading {
                end.read_up_to(end.delivered() + size.0);
            }
        }
        world.act(connection, Side::Opener);
    }

    /// Opens a connection to a server, for requests.
    fn open(&mut self, world: &mut World<'_>, server: usize) -> ConnectionId {
        let usage = if self.keeps() { Use::InTurn } else { Use::Once };
        self.reach(world, server, usage)
    }

    /// Opens a connection to a server, for this use.
    fn reach(&mut self, world: &mut World<'_>, server: usize, usage: Use) -> ConnectionId {
        let connection = world.open(&Opening {
            nodes: [self.host, self.servers[server]],
            tcp: [self.server_side.clone(), self.setup.tcp.clone()],
            apps: [AppId::Proxy, AppId::Servers],
            class: 0,
            dscp: [Dscp::DEFAULT; 2],
            tag: server as u64,
        });
        if let Some(state) = world.connections.live(connection) {
            state.carrier = Some(Carrier::open(usage, 0, state.endpoint(Side::Opener)));
            let end = state.endpoint(Side::Opener);
            match self.holds_back {
                true => end.resize_buffer(self.setup.server_window),
                false => end.grow_buffer(),
            }
        }
        connection
    }

    fn read_on(&mut self, world: &mut World<'_>, exchange: ExchangeId, size: Bytes) {
        let Some(relay) = self.relays.get_mut(&exchange) else { return };
        let Some(server) = relay.server else { return };
        if let Some(readable) = &mut relay.stopped {
            *readable = readable.saturating_add(size.0);
            return;
        }
        if let Some(end) = world.end(server, Side::Opener) {
            end.read_up_to(end.readable().saturating_add(size.0));
        }
        self.relay(world, exchange);
        world.act(server, Side::Opener);
    }

    /// An exchange is over; an incomplete one ends for both sides.
    fn end(&mut self, world: &mut World<'_>, exchange: ExchangeId, ending: Ended) {
        let Some(relay) = self.relays.remove(&exchange) else { return };
        let object = relay.request.object;
        self.asked.remove(&(relay.client, object));
        if let Some(server) = relay.server {
            self.exchanges.remove(&server);
        }
        if ending == Ended::Completed {
            return;
        }
        let ending = Ending::from(ending);
        break_off(world, relay.client, object, ending);
        if let Some(server) = relay.server {
            self.debts.broke_off(debt_of(relay.request.words));
            world.abort(server, Side::Opener, ending.reason());
        }
    }

    /// Reads data from a server, as far as permitted, and passes it on.
    fn relay(&mut self, world: &mut World<'_>, exchange: ExchangeId) {
        let now = world.now();
        let Some(relay) = self.relays.get_mut(&exchange) else { return };
        let Some(server) = relay.server else { return };
        let state = world.connections.live(server);
        let Some((carrier, end)) = state.and_then(|it| it.saying(Side::Opener)) else { return };
        let wanted = relay.request.words;
        let delivered = end.delivered();
        let (mut fresh, mut is_reset) = (0, false);
        while let Some(came) = carrier.come(delivered, end) {
            match came {
                Came::Object(_, bytes) => fresh += bytes,
                Came::Reset(..) => is_reset = true,
                Came::Flight(_) => {}
            }
        }
        relay.relayed += fresh;
        let complete = relay.relayed >= wanted.size.0;
        if fresh > 0 {
            let reading = self.core.read(now, exchange, Bytes(fresh), complete);
            if let (Reading::UpTo(left), false) = (reading, complete) {
                end.read_up_to(delivered + left.0);
            }
            if let Some(size) = self.core.buffer(exchange) {
                let most = self.server_side.receive_window;
                end.resize_buffer(size.min(most));
            }
        }
        if complete && carrier.usage == Use::Once {
            end.close();
        }
        let is_kept = complete && carrier.usage != Use::Once;
        if is_kept {
            carrier.objects.remove(&relay.request.object);
            relay.server = None;
        }
        let (unread, relayed) = (end.unread(), relay.relayed);
        if fresh > 0 {
            self.received[wanted.class] += Bytes(fresh);
            if wanted.fate == Fate::Answered {
                self.longest_silence = self.longest_silence.max(now.since(relay.moved));
            }
            relay.moved = now;
            if complete
                && world.is_measured(wanted.asked)
                && let Some(released) = relay.released
            {
                self.books[wanted.class].service.record(now.since(released));
            }
            let (client, request) = (relay.client, relay.request);
            let state = world.connections.live(client);
            if let Some((carrier, end)) = state.and_then(|it| it.saying(Side::Acceptor)) {
                carrier.offer(request, fresh);
                carrier.fill(end);
                if complete && carrier.usage == Use::Once {
                    end.close();
                }
            }
            world.act(client, Side::Acceptor);
            if !complete {
                self.stop_if_full(world, exchange);
            }
        }
        if is_kept {
            self.exchanges.remove(&server);
            self.keep(world, wanted.server, server);
        }
        if is_reset {
            self.core.reset(now, exchange);
        } else {
            // Even if it is nothing: a response that finds the bucket of its class empty
            // gets in line.
            let all = relayed + unread >= wanted.size.0;
            self.core.came(now, exchange, Bytes(unread), all);
        }
    }

    /// Data has arrived from a server.
    fn hear_server(&mut self, world: &mut World<'_>, id: ConnectionId, exchange: ExchangeId) {
        let now = world.now();
        if let Some(relay) = self.relays.get_mut(&exchange)
            && let (false, Some(end)) = (relay.timed, world.end(id, Side::Opener))
            && let Some(path) = path_of(end)
        {
            relay.timed = true;
            let round_trip = request::latest_round_trip(relay.path, path);
            if let Some(round_trip) = round_trip {
                self.core.timed(OriginId(relay.request.words.server as u64), round_trip);
            }
            self.core.connected(now, exchange);
            self.core.path(now, exchange, round_trip.unwrap_or(path.smoothed));
        }
        self.relay(world, exchange);
    }

    /// Data has arrived from a client; returns whether there was anything to do.
    fn hear_client(&mut self, world: &mut World<'_>, id: ConnectionId) -> bool {
        let state = world.connections.live(id);
        let Some((carrier, end)) = state.and_then(|it| it.saying(Side::Acceptor)) else {
            return false;
        };
        let delivered = end.delivered();
        let mut all = Vec::new();
        while let Some(heard) = carrier.hear(delivered, end) {
            all.push(heard);
        }
        let mut acts = !all.is_empty();
        if carrier.usage != Use::Once {
            acts |= carrier.fill(end);
            // The client has nothing more to ask.
            if end.peer_finished() {
                end.close();
                acts = true;
            }
        }
        for heard in all {
            match heard {
                Heard::Flight => {}
                Heard::Request(request) => self.hear(world, id, request),
                Heard::Cancelled(object) => {
                    if let Some(exchange) = self.asked.get(&(id, object)).copied() {
                        self.core.left(world.now(), exchange);
                    }
                }
            }
        }
        acts
    }

    /// A datagram that nobody requested has arrived. It counts where it belongs to a
    /// user; the link's counters show the others.
    pub(crate) fn hear_unrequested(&mut self, world: &mut World<'_>, traffic: usize, size: Bytes) {
        // Classes are the first sources.
        let passing = traffic.checked_sub(self.setup.classes.len());
        let source = passing.and_then(|number| self.setup.passing.get(number));
        let Some((class, client)) = source.and_then(|source| source.whose) else { return };
        self.received[class] += size;
        let whose = self.setup.user(class, client);
        self.core.received_unasked(world.now(), Some(whose), size);
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

    /// Where the request for an object of a client's connection is.
    pub(crate) fn whereabouts(
        &self,
        world: &mut World<'_>,
        client: ConnectionId,
        object: usize,
    ) -> Whereabouts {
        if self.tunnel_of.contains_key(&client) {
            return Whereabouts::Outstanding;
        }
        let exchange = self.asked.get(&(client, object));
        let phase = exchange.and_then(|exchange| self.core.phase(*exchange));
        let carrier = world.connections.live(client).and_then(|state| state.carrier.as_ref());
        match phase {
            Some(Phase::Waiting) => Whereabouts::Waiting,
            Some(Phase::Dialling | Phase::Reading(_)) => Whereabouts::Outstanding,
            None if carrier.is_some_and(|it| it.is_unheard(object)) => Whereabouts::Arriving,
            None => Whereabouts::Leaving,
        }
    }

    /// Compares what remains at the end with what clients miss: no place is lost.
    /// Tunnels hide their responses.
    pub(crate) fn leave_off(&mut self, unfinished: &Unfinished) {
        if self.setup.classes.iter().any(|class| class.through.is_hidden()) {
            return;
        }
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
            self.close_idle(world);
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
            _ if self.is_tunnel(world, id, side) => self.hear_tunnel(world, id, side),
            Side::Acceptor => {
                let went_on = self.go_on(world, id);
                self.hear_client(world, id) || went_on
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
        let id = connection.id();
        let now = world.now();
        if let Some(tunnel) = self.tunnel_of.remove(&id) {
            self.close_tunnel(world, tunnel, id, over);
        }
        let exchanges: Vec<ExchangeId> = match side {
            Side::Acceptor => {
                self.stopped.remove(&id);
                let of_client = self.asked.range((id, 0)..=(id, usize::MAX));
                of_client.map(|(_, exchange)| *exchange).collect()
            }
            Side::Opener => {
                self.forget_kept(connection);
                self.exchanges.remove(&id).into_iter().collect()
            }
        };
        if exchanges.is_empty() {
            return;
        }
        for exchange in exchanges {
            match (over, side) {
                (Over::Aborted { .. }, Side::Acceptor) => self.core.left(now, exchange),
                (Over::Closed | Over::Aborted { .. }, _) => self.core.reset(now, exchange),
                (Over::Failed, _) => self.core.broken(now, exchange),
            }
        }
        self.obey(world);
    }
}

/// What TCP says of the path of a connection, once there was a round trip.
fn path_of(end: &Endpoint) -> Option<TcpPath> {
    let counts = end.statistics();
    // A SYN that is sent again counts as a timeout only.
    let retransmissions = counts.retransmissions + u64::from(counts.timeouts);
    Some(TcpPath { smoothed: end.smoothed_rtt()?, retransmissions })
}

/// A response to a client ends before its time: its stream, or where there are none its
/// connection.
fn break_off(world: &mut World<'_>, client: ConnectionId, object: usize, ending: Ending) {
    let state = world.connections.live(client);
    let saying = state.and_then(|state| state.saying(Side::Acceptor));
    match saying {
        Some((carrier, _)) if ending == Ending::Abandoned && carrier.usage.is_shared() => {}
        Some((carrier, end)) if carrier.usage.is_shared() => {
            carrier.reset(object, ending.reason(), end);
            carrier.fill(end);
            world.act(client, Side::Acceptor);
        }
        _ => world.abort(client, Side::Acceptor, ending.reason()),
    }
}
