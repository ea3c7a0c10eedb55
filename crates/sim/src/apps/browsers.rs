//! Browsers and the servers that they ask: pages over connections that carry many
//! responses.
//!
//! Each receiver of a source of pages is a user with a browser. A page names its
//! objects and what each waits for ([`crate::pages`]); the browser finds a connection
//! for each object that is due. Over HTTP/1.1 that is one without a request, a new one
//! if there are fewer than six to the host, or the first that becomes free. Over HTTP/2
//! it is the one to the host, opened by the first object. Connections stay open between
//! pages. The browser closes those that have had nothing to do for the keep-alive time;
//! that in reality servers close them, too, matters only when a request crosses their
//! FIN, and is left out. So are name resolution, the resumption of TLS sessions and
//! caches. What a recording has over HTTP/3 comes over HTTP/2, unless the source says that
//! everything comes over HTTP/3 ([`http3`]).
//!
//! A host is one of the source's servers, the same for all users of a run. A page that
//! begins while another one is loading shares its connections, as a second tab does.

mod books;
mod http3;
mod way;

use std::collections::BTreeMap;
use std::sync::Arc;

use quinn_proto::StreamId;
use slab::Slab;
use tidegate_core::{Bytes, Span, Stream, Time};

use self::way::Way;
use super::App;
use super::pool::{Choice, Pool};
use super::response::Response;
use super::senders::Senders;
use super::trouble::Trouble;
use crate::carrier::{Came, Carrier, Heard, Request, Use};
use crate::connections::{AppId, Connection, ConnectionId, Opening, Over, Side};
use crate::pages::{AT_ONCE, Loading, Pages, Plan};
use crate::quic::{QuicId, Settings};
use crate::scenario::sizes::Sampler;
use crate::scenario::{
    FrameOrder, NodeId, Opener, PageProfile, Protocol, Scenario, TrafficKind, TrafficSpec,
    Transfer, Visits,
};
use crate::simulation::World;
use crate::trace::HttpVersion;

/// The browsers of a run, and the servers that they ask.
pub(crate) struct Browsers<'a> {
    users: Vec<User<'a>>,
    pages: Slab<Page>,
    objects: Slab<Object>,
    carriers: Slab<Carried>,
    /// The reasons for which it is woken.
    alarms: Slab<Alarm>,
    /// The senders of each source of pages: every host has one of them.
    senders: Vec<Option<Senders>>,
    /// Objects of each source so far.
    asked: Vec<u64>,
    /// Connections so far.
    opened: u64,
    /// Connections whose browser has written something that TCP has not looked at.
    written: Vec<ConnectionId>,
    /// The same of QUIC.
    written_quic: Vec<QuicId>,
    /// By source: how QUIC carries its pages, if it does.
    settings: Vec<Option<Settings>>,
    seed: u64,
}

/// Why it acts.
#[derive(Clone, Copy, Debug)]
enum Alarm {
    /// A user asks for a page.
    Page { user: usize },
    /// An object is due.
    Due { page: usize, object: usize },
    /// A server has a response.
    Thought { carrier: usize, serial: u64, request: Request<()> },
    /// The same for the request of a stream of QUIC.
    ThoughtOfStream { carrier: usize, serial: u64, stream: StreamId },
    /// A connection may have had nothing to do for too long.
    Idle { carrier: usize, serial: u64, given: u64 },
}

/// A user of a source.
struct User<'a> {
    source: usize,
    spec: &'a TrafficSpec,
    transfer: &'a Transfer,
    profile: &'a PageProfile,
    node: NodeId,
    sizes: Sampler,
    stream: Stream,
    /// The connections to each host, or those that hosts share.
    pools: BTreeMap<Place, Pool<usize>>,
}

/// Whereto a connection leads: a host, or one of those that hosts share, by number.
type Place = (u32, HttpVersion);

/// A page on its way.
struct Page {
    user: usize,
    began: Time,
    loading: Loading,
    /// Whether an object of it was given up.
    broken: bool,
}

/// An object on its way.
struct Object {
    page: usize,
    /// Its number in the page.
    number: usize,
    response: Response,
    carrier: Option<usize>,
}

/// A connection with the place that it leads to.
struct Carried {
    /// Distinguishes it from others that have had its place.
    serial: u64,
    way: Way,
    user: usize,
    place: Place,
    /// What sets the congestion window, by name.
    congestion: &'static str,
}

impl<'a> Browsers<'a> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64) -> Browsers<'a> {
        let mut users = Vec::new();
        for (source, spec) in scenario.traffic.iter().enumerate() {
            let TrafficKind::Pages { transfer, profile } = &spec.kind else { continue };
            users.extend(transfer.to.iter().enumerate().map(|(number, node)| User {
                source,
                spec,
                transfer,
                profile,
                node: *node,
                sizes: Sampler::new(&profile.sizes),
                stream: Stream::new(seed, &format!("{} user {number}", spec.name)),
                pools: BTreeMap::new(),
            }));
        }
        let senders = scenario.traffic.iter().enumerate().map(|(source, spec)| match &spec.kind {
            TrafficKind::Pages { transfer, .. } => Some(Senders::new(&transfer.tcp, seed, source)),
            _ => None,
        });
        let settings = scenario.traffic.iter().map(|spec| match &spec.kind {
            TrafficKind::Pages { profile, .. } => {
                let fair = profile.order == FrameOrder::RoundRobin;
                profile.quic.map(|quic| Settings::new(&quic, fair))
            }
            _ => None,
        });
        Browsers {
            settings: settings.collect(),
            users,
            pages: Slab::new(),
            objects: Slab::new(),
            carriers: Slab::new(),
            alarms: Slab::new(),
            senders: senders.collect(),
            asked: vec![0; scenario.traffic.len()],
            opened: 0,
            written: Vec::new(),
            written_quic: Vec::new(),
            seed,
        }
    }

    fn wake_at(&mut self, world: &mut World<'_>, at: Time, alarm: Alarm) {
        let number = self.alarms.insert(alarm) as u64;
        world.wake(AppId::Browsers, at, number);
    }

    // Pages.

    fn plan_page(&mut self, world: &mut World<'_>, user: usize) {
        let state = &mut self.users[user];
        let (Visits::Every(mean) | Visits::After(mean)) = state.profile.visits;
        let at = world.now().max(state.spec.start) + state.stream.exponential_span(mean);
        if at < state.spec.stop {
            self.wake_at(world, at, Alarm::Page { user });
        }
    }

    fn begin_page(&mut self, world: &mut World<'_>, user: usize) {
        let state = &mut self.users[user];
        let plan = state.draw();
        let began = world.now();
        if world.is_measured(began) {
            world.summary.traffic[state.source].pages += 1;
        }
        let page = Page { user, began, loading: Loading::new(plan), broken: false };
        let page = self.pages.insert(page);
        if let Visits::Every(_) = self.users[user].profile.visits {
            self.plan_page(world, user);
        }
        self.go_on(world, page);
    }

    /// Asks for the objects of a page that have become due, and plans the next ones.
    fn go_on(&mut self, world: &mut World<'_>, page: usize) {
        while let Some((object, gap)) = self.pages[page].loading.next_due() {
            if gap > Span::ZERO {
                self.wake_at(world, world.now() + gap, Alarm::Due { page, object });
            } else {
                self.ask(world, page, object);
            }
        }
    }

    /// All objects of a page have arrived, or never will.
    fn end_page(&mut self, world: &mut World<'_>, page: usize) {
        let Page { user, began, broken, .. } = self.pages.remove(page);
        if world.is_measured(began) && !broken {
            let took = world.now().since(began);
            world.summary.traffic[self.users[user].source].page_loads.record(took);
        }
        if let Visits::After(_) = self.users[user].profile.visits {
            self.plan_page(world, user);
        }
    }

    // Objects.

    /// An object is due: it goes to a connection, or waits for one.
    fn ask(&mut self, world: &mut World<'_>, page: usize, number: usize) {
        let Page { user, loading, .. } = &self.pages[page];
        let (user, planned, site) = (*user, loading.object(number), loading.site(number));
        let state = &mut self.users[user];
        let place = match state.profile.protocol {
            Protocol::Http10 | Protocol::Http11 => (site, HttpVersion::One),
            Protocol::Http2 => (planned.shared, HttpVersion::Two),
            Protocol::Recorded => match planned.version {
                HttpVersion::One => (site, HttpVersion::One),
                HttpVersion::Two => (planned.shared, HttpVersion::Two),
            },
        };
        let source = state.source;
        let now = world.now();
        let object = self.objects.insert(Object {
            page,
            number,
            response: Response::new(source, self.asked[source], planned.size, now),
            carrier: None,
        });
        self.asked[source] += 1;
        let pool = state.pools.entry(place).or_default();
        let is_free = |it: usize| self.carriers[it].way.objects().is_empty();
        let choice = match place.1 {
            HttpVersion::Two => pool.choose(1, |_| true),
            HttpVersion::One => pool.choose(AT_ONCE as usize, is_free),
        };
        match choice {
            Choice::Free(carrier) => self.give(world, carrier, object),
            Choice::Open => {
                let carrier = self.open(world, user, place);
                self.give(world, carrier, object);
            }
            Choice::Wait => pool.waiting.push_back(object),
        }
    }

    /// Opens a connection to a place.
    fn open(&mut self, world: &mut World<'_>, user: usize, place: Place) -> usize {
        if let Some(key) = self.open_quic(world, user, place) {
            return key;
        }
        let User { transfer, profile, node, spec, source, .. } = self.users[user];
        let senders = self.senders[source].as_ref().expect("it has pages");
        let tcp = senders.of(u64::from(place.0));
        let slot = self.carriers.vacant_entry();
        let servers = &transfer.from;
        let mut stream = Stream::new(self.seed, &format!("{} host {}", spec.name, place.0));
        let connection = world.open(&Opening {
            nodes: [node, servers[stream.index(servers.len())]],
            tcp: [tcp.clone(), tcp.clone()],
            apps: [AppId::Browsers; 2],
            class: spec.class,
            dscp: [spec.marking.receiver, spec.marking.sender],
            tag: slot.key() as u64,
        });
        let end = world.end(connection, Side::Opener).expect("it was opened just now");
        let usage = match place.1 {
            HttpVersion::One => Use::InTurn,
            HttpVersion::Two => Use::Multiplexed(profile.order),
        };
        let carrier = Carrier::open(usage, profile.handshakes, end);
        let serial = self.opened;
        self.opened += 1;
        let key = slot.key();
        let congestion = tcp.congestion.name;
        let way = Way::Tcp { connection, carrier };
        slot.insert(Carried { serial, way, user, place, congestion });
        self.users[user].pools.entry(place).or_default().open.push(key);
        self.written.push(connection);
        key
    }

    /// The browser sends the request for an object over a connection, or will when the
    /// handshake is over.
    fn give(&mut self, world: &mut World<'_>, key: usize, object: usize) {
        let Carried { way, user, .. } = &mut self.carriers[key];
        let state = &mut self.objects[object];
        let planned = self.pages[state.page].loading.object(state.number);
        state.carrier = Some(key);
        state.response.before = way.trouble(world).expect("what is in a pool is open");
        let Opener::Receiver { request } = self.users[*user].transfer.opened_by else {
            unreachable!("browsers open connections")
        };
        let request = Request {
            object,
            size: planned.request.unwrap_or(request).0,
            response: planned.size.0,
            think: planned.think,
            urgency: planned.urgency.0,
            words: (),
        };
        match way {
            Way::Tcp { connection, carrier } => {
                let end = world.end(*connection, Side::Opener);
                carrier.ask(request, end.expect("what is in a pool is open"));
                self.written.push(*connection);
            }
            Way::Quic { .. } => self.give_quic(world, key, request),
        }
    }

    /// So many bytes more of an object have arrived.
    fn take(&mut self, world: &mut World<'_>, object: usize, bytes: u64) {
        let state = &mut self.objects[object];
        state.response.take(world.now(), bytes);
        let page = state.page;
        if state.response.is_complete() {
            self.end_object(world, object, None);
        } else if self.pages[page].loading.arrived(state.number, state.response.taken()) {
            self.go_on(world, page);
        }
    }

    /// An object has arrived, or never will; with the troubles of its connection if that has
    /// ended.
    fn end_object(&mut self, world: &mut World<'_>, object: usize, trouble: Option<Trouble>) {
        self.report(world, object, trouble);
        let Object { page, number, carrier, response } = self.objects.remove(object);
        if let Some(key) = carrier.filter(|key| self.carriers.contains(*key)) {
            self.carriers[key].way.objects().remove(&object);
            self.free(world, key);
        }
        let state = &mut self.pages[page];
        state.broken |= !response.is_complete();
        state.loading.over(number);
        if state.loading.is_over() {
            self.end_page(world, page);
        } else {
            self.go_on(world, page);
        }
    }

    /// A connection may have become free: another object gets it, or it waits for one.
    fn free(&mut self, world: &mut World<'_>, key: usize) {
        let Carried { serial, way, user, place, .. } = &mut self.carriers[key];
        if !way.objects().is_empty() {
            return;
        }
        let (user, place) = (*user, *place);
        let (serial, given) = (*serial, way.given());
        let profile = self.users[user].profile;
        let pool = self.users[user].pools.get_mut(&place).expect("a connection is in its pool");
        if profile.protocol == Protocol::Http10 {
            let next = pool.waiting.pop_front();
            self.close(world, key);
            if let Some(next) = next {
                let carrier = self.open(world, user, place);
                self.give(world, carrier, next);
            }
        } else if let Some(next) = pool.waiting.pop_front() {
            self.give(world, key, next);
        } else {
            let alarm = Alarm::Idle { carrier: key, serial, given };
            self.wake_at(world, world.now() + profile.keep_alive, alarm);
        }
    }

    /// The browser closes a connection that has nothing to do.
    fn close(&mut self, world: &mut World<'_>, key: usize) {
        let Carried { way, user, place, .. } = &self.carriers[key];
        let pool = self.users[*user].pools.get_mut(place).expect("a connection is in its pool");
        pool.leave(key);
        match way {
            Way::Tcp { connection, .. } => {
                if let Some(end) = world.end(*connection, Side::Opener) {
                    end.close();
                    self.written.push(*connection);
                }
            }
            Way::Quic { connection, .. } => self.close_quic(world, *connection),
        }
    }

    // Ends of connections.

    /// Payload has arrived at the browser.
    fn come(&mut self, world: &mut World<'_>, id: ConnectionId, key: usize) {
        // What an object's end lets others do may take the connection away.
        while let Some(Carried { way: Way::Tcp { carrier, .. }, .. }) = self.carriers.get_mut(key)
            && let Some(end) = world.end(id, Side::Opener)
        {
            let delivered = end.delivered();
            match carrier.come(delivered, end) {
                Some(Came::Flight(_)) => self.written.push(id),
                Some(Came::Object(object, bytes)) => self.take(world, object, bytes),
                Some(Came::Reset(..)) => unreachable!("the servers of browsers do not fail"),
                None => break,
            }
        }
    }

    /// Payload or an acknowledgement has arrived at the server; returns whether it has
    /// written or closed.
    fn hear(&mut self, world: &mut World<'_>, id: ConnectionId, key: usize) -> bool {
        let now = world.now();
        let Some(end) = world.connections.live(id).map(|it| it.endpoint(Side::Acceptor)) else {
            return false;
        };
        let Carried { way: Way::Tcp { carrier, .. }, serial, .. } = &mut self.carriers[key] else {
            return false;
        };
        let delivered = end.delivered();
        let mut acts = false;
        let mut thinks = Vec::new();
        while let Some(heard) = carrier.hear(delivered, end) {
            match heard {
                Heard::Request(request) if request.think > Span::ZERO => thinks.push(request),
                Heard::Request(request) => carrier.respond(request),
                Heard::Flight => acts = true,
                Heard::Cancelled(_) => unreachable!("browsers wait for what they ask for"),
            }
        }
        acts |= carrier.fill(end);
        if end.peer_finished() {
            end.close();
            acts = true;
        }
        let serial = *serial;
        for request in thinks {
            let alarm = Alarm::Thought { carrier: key, serial, request };
            self.wake_at(world, now + request.think, alarm);
        }
        acts
    }
}

impl User<'_> {
    /// The next page that it asks for.
    fn draw(&mut self) -> Arc<Plan> {
        let User { sizes, stream, .. } = self;
        match &self.profile.pages {
            Pages::Recorded(pages) => pages.draw(stream),
            Pages::Outlined(table) => {
                let size = |stream: &mut Stream| sizes.draw(stream).unwrap_or(Bytes(1));
                Plan::outlined(table, stream, size).into()
            }
            Pages::Drawn => Plan::at_once(vec![sizes.draw(stream).unwrap_or(Bytes(1))]).into(),
        }
    }
}

impl App for Browsers<'_> {
    fn start(&mut self, world: &mut World<'_>) {
        for user in 0..self.users.len() {
            self.plan_page(world, user);
        }
    }

    fn on_wake(&mut self, world: &mut World<'_>, number: u64) {
        match self.alarms.remove(number as usize) {
            Alarm::Page { user } => self.begin_page(world, user),
            Alarm::Due { page, object } => self.ask(world, page, object),
            Alarm::Thought { carrier, serial, request } => {
                let carried = self.carriers.get_mut(carrier).filter(|it| it.serial == serial);
                let Some(Carried { way: Way::Tcp { connection, carrier }, .. }) = carried else {
                    return;
                };
                if let Some(end) = world.end(*connection, Side::Acceptor) {
                    carrier.respond(request);
                    carrier.fill(end);
                    world.act(*connection, Side::Acceptor);
                }
            }
            Alarm::ThoughtOfStream { carrier, serial, stream } => {
                self.respond_quic(world, carrier, serial, stream);
            }
            Alarm::Idle { carrier: key, serial, given } => {
                let is_same = |it: &&Carried| (it.serial, it.way.given()) == (serial, given);
                if self.carriers.get(key).filter(is_same).is_some() {
                    self.close(world, key);
                }
            }
        }
        self.act(world, None);
    }

    fn on_segment(&mut self, world: &mut World<'_>, id: ConnectionId, side: Side) -> bool {
        let Some(connection) = world.connections.live(id) else { return false };
        let key = connection.tag as usize;
        match side {
            Side::Acceptor => self.hear(world, id, key),
            Side::Opener => {
                self.come(world, id, key);
                self.act(world, Some(id))
            }
        }
    }

    fn on_over(
        &mut self,
        world: &mut World<'_>,
        connection: &mut Connection,
        side: Side,
        _over: Over,
    ) {
        // Both ends are here: one of them does what is to be done.
        if side == Side::Acceptor {
            return;
        }
        self.over(world, connection.tag as usize, Trouble::of(connection));
    }
}

impl Browsers<'_> {
    /// A connection with this trouble has ended; what it was to carry has been given up with
    /// it.
    fn over(&mut self, world: &mut World<'_>, key: usize, trouble: Trouble) {
        let Carried { mut way, user, place, .. } = self.carriers.remove(key);
        let pool = self.users[user].pools.get_mut(&place).expect("a connection is in its pool");
        pool.leave(key);
        for object in way.objects().iter() {
            self.objects[*object].carrier = None;
        }
        for object in std::mem::take(way.objects()) {
            self.end_object(world, object, Some(trouble));
        }
        self.reopen(world, user, place);
        self.act(world, None);
    }

    /// Lets connections send at which browsers have written. Returns whether `here` is one of
    /// them: the caller does so there.
    fn act(&mut self, world: &mut World<'_>, here: Option<ConnectionId>) -> bool {
        for connection in self.written_quic.drain(..) {
            world.act_quic(connection, Side::Opener);
        }
        world.act_at(self.written.drain(..), here)
    }

    /// Objects that wait for a connection where none is left get new ones.
    fn reopen(&mut self, world: &mut World<'_>, user: usize, place: Place) {
        while let Some(next) = self.users[user].pools.get_mut(&place).and_then(Pool::next_to_open) {
            let carrier = self.open(world, user, place);
            self.give(world, carrier, next);
        }
    }
}
