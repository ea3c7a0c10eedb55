//! Clients of a gateway: they begin pages, ask for objects, and receive them.
//!
//! Each client asks from a host of its own. Everything that a client does comes
//! from its own random streams, so that it asks for the same objects under
//! every way of sharing the link.
//!
//! Over HTTP/1.1 and HTTP/2, a client's connections stay open and belong to all of its
//! pages; with a connection for each response, a page asks a host for six at a time.

mod places;
mod presence;

use std::collections::BTreeMap;

use slab::Slab;
use tidegate_core::{Bytes, Span, Time};

use self::presence::Visitor;
use super::App;
use super::pool::{Place, Pool};
use super::trouble::Trouble;
use crate::carrier::{Came, Use};
use crate::connections::{AppId, Connection, ConnectionId, Over, Side};
use crate::metrics::FlowRecord;
use crate::pages::{AT_ONCE, Loading, Turns};
use crate::requests::{
    Asker, ClassOutcome, Ending, Fate, Hosts, SMALL, Setup, Sizes, Through, Unfinished, Wanted,
    Whereabouts,
};
use crate::scenario::NodeId;
use crate::simulation::World;

/// All clients of a run.
pub(crate) struct Clients<'a> {
    setup: &'a Setup,
    hosts: Vec<NodeId>,
    /// The hosts that they ask: a gateway, or without one the servers themselves.
    gateway: Option<NodeId>,
    servers: Vec<NodeId>,
    askers: Vec<Asker>,
    visitors: Vec<Visitor>,
    /// Sizes of each class's objects.
    sizes: Vec<Sizes>,
    /// Pages on their way.
    pages: BTreeMap<u64, Page>,
    begun: u64,
    /// Objects on their way, by number.
    objects: BTreeMap<usize, Object>,
    asked: usize,
    /// The connections of each client to each server, or to the gateway in its place.
    pools: BTreeMap<Place, Pool<ConnectionId>>,
    /// Connections with something new to send.
    written: Vec<ConnectionId>,
    /// The reasons for which they are woken.
    alarms: Slab<Alarm>,
    books: Vec<ClassOutcome>,
    /// Requests of each class so far.
    made: Vec<u64>,
    /// Payload that has arrived for each class.
    received: Vec<Bytes>,
    longest_silence: Span,
}

/// A page on its way to an asker.
struct Page {
    asker: usize,
    loading: Loading,
    turns: Turns,
}

/// Why a client acts.
#[derive(Clone, Copy, Debug)]
enum Alarm {
    /// It begins a page, if its user has not come or gone since.
    Page { asker: usize, visit: u32 },
    /// An object of a page is due.
    Due { page: u64, object: usize },
    /// A user comes or goes.
    Visit(usize),
    /// A response may have been silent for too long.
    Watch(usize),
    /// A connection that had been given so many objects may have been idle for too long.
    Idle { connection: ConnectionId, given: u64 },
}

/// An object on its way to a client.
struct Object {
    wanted: Wanted,
    asker: usize,
    /// Its page, and its number there.
    page: (u64, usize),
    /// Its number within its class.
    number: u64,
    /// Its connection, once it has one, and what had happened there before.
    connection: Option<ConnectionId>,
    before: Trouble,
    /// The payload of it that has arrived, and the time of the last arrival.
    taken: u64,
    moved: Time,
    longest_stall: Span,
}

impl<'a> Clients<'a> {
    pub(crate) fn new(setup: &'a Setup, hosts: &Hosts, direct: bool, seed: u64) -> Clients<'a> {
        let askers = setup.classes.iter().enumerate();
        let classes = setup.classes.len();
        Clients {
            setup,
            hosts: hosts.clients.clone(),
            gateway: (!direct).then_some(hosts.gateway),
            servers: hosts.servers.clone(),
            askers: askers.flat_map(|(n, class)| Asker::of_class(n, class, seed)).collect(),
            visitors: Visitor::all(&setup.classes, seed),
            sizes: setup.classes.iter().map(|class| Sizes::of(class, setup)).collect(),
            pages: BTreeMap::new(),
            begun: 0,
            objects: BTreeMap::new(),
            asked: 0,
            pools: BTreeMap::new(),
            written: Vec::new(),
            alarms: Slab::new(),
            books: vec![ClassOutcome::default(); classes],
            made: vec![0; classes],
            received: vec![Bytes::ZERO; classes],
            longest_silence: Span::ZERO,
        }
    }

    fn wake_at(&mut self, world: &mut World<'_>, at: Time, alarm: Alarm) {
        let number = self.alarms.insert(alarm) as u64;
        world.wake(AppId::Clients, at, number);
    }

    // Pages.

    fn plan_page(&mut self, world: &mut World<'_>, asker: usize) {
        if !self.is_present(asker) {
            return;
        }
        let class = &self.setup.classes[self.askers[asker].class];
        if let Some(at) = self.askers[asker].next(world.now(), class) {
            let visit = self.askers[asker].visit;
            self.wake_at(world, at, Alarm::Page { asker, visit });
        }
    }

    fn begin_page(&mut self, world: &mut World<'_>, asker: usize, visit: u32) {
        if self.askers[asker].visit != visit {
            return;
        }
        let servers = self.servers.len();
        let class = self.askers[asker].class;
        let (plan, servers) = self.askers[asker].page(self.setup, &self.sizes[class], servers);
        let at_once = if self.setup.usage(class) == Use::Once { AT_ONCE } else { u32::MAX };
        let turns = Turns::new(&plan, servers.into_iter(), at_once);
        let number = self.begun;
        self.begun += 1;
        self.pages.insert(number, Page { asker, loading: Loading::new(plan), turns });
        self.go_on(world, number);
        if !self.askers[asker].waits_for_pages() {
            self.plan_page(world, asker);
        }
    }

    /// Asks for the objects of a page that have become due, and plans the next ones.
    fn go_on(&mut self, world: &mut World<'_>, page: u64) {
        while let Some(state) = self.pages.get_mut(&page)
            && let Some((object, gap)) = state.loading.next_due()
        {
            if gap > Span::ZERO {
                self.wake_at(world, world.now() + gap, Alarm::Due { page, object });
            } else {
                self.ask_if_possible(world, page, object);
            }
        }
    }

    fn ask_if_possible(&mut self, world: &mut World<'_>, page: u64, object: usize) {
        let Some(Page { loading, turns, .. }) = self.pages.get_mut(&page) else { return };
        if turns.ask(loading, object) {
            self.ask(world, page, object);
        }
    }

    /// An object of a page has arrived, or never will: the page continues without it.
    fn over(&mut self, world: &mut World<'_>, (page, object): (u64, usize)) {
        let Some(Page { asker, loading, turns }) = self.pages.get_mut(&page) else { return };
        let asker = *asker;
        loading.over(object);
        let next = turns.over(loading, object);
        if loading.is_over() {
            self.pages.remove(&page);
            if self.askers[asker].waits_for_pages() {
                self.plan_page(world, asker);
            }
            return;
        }
        if let Some(next) = next {
            self.ask(world, page, next);
        }
        self.go_on(world, page);
    }

    // Objects.

    /// A request is made: it goes to a connection, or waits for one.
    fn ask(&mut self, world: &mut World<'_>, page: u64, number_of_page: usize) {
        let Some(Page { asker, loading, turns }) = self.pages.get(&page) else { return };
        let planned = loading.object(number_of_page);
        let (asker, size, mut server) = (*asker, planned.size, turns.server(planned));
        let (request, think, urgency) = (planned.request, planned.think, planned.urgency.0);
        let (class, client) = (self.askers[asker].class, self.askers[asker].client);
        let of_class = &self.setup.classes[class];
        let failures = of_class.failures.as_ref().unwrap_or(&self.setup.failures);
        let fate = self.askers[asker].fate(failures, size);
        let request = request.or(of_class.request).unwrap_or(self.setup.request);
        if of_class.through == Through::WebSocket {
            server = client as usize % self.servers.len();
        }
        let now = world.now();
        let wanted =
            Wanted { class, client, server, size, request, think, urgency, fate, asked: now };
        let number = self.asked;
        self.asked += 1;
        let object = Object {
            wanted,
            asker,
            page: (page, number_of_page),
            number: self.made[class],
            connection: None,
            before: Trouble::default(),
            taken: 0,
            moved: now,
            longest_stall: Span::ZERO,
        };
        self.made[class] += 1;
        self.objects.insert(number, object);
        if world.is_measured(now) {
            self.books[class].asked += 1;
            if self.gateway.is_none() {
                self.books[class].waiting.record(Span::ZERO);
            }
        }
        self.place(world, number);
    }

    /// So many bytes more of an object have arrived.
    fn take(&mut self, world: &mut World<'_>, number: usize, fresh: u64) {
        let Some(object) = self.objects.get_mut(&number) else { return };
        let now = world.now();
        let silent = now.since(object.moved);
        object.longest_stall = object.longest_stall.max(silent);
        object.taken += fresh;
        object.moved = now;
        let (taken, wanted) = (object.taken, object.wanted);
        self.received[wanted.class] += Bytes(fresh);
        if wanted.fate == Fate::Answered {
            self.longest_silence = self.longest_silence.max(silent);
        }
        let (page, of_page) = object.page;
        let state = self.pages.get_mut(&page);
        if state.is_some_and(|state| state.loading.arrived(of_page, taken)) {
            self.go_on(world, page);
        }
        if taken >= wanted.size.0 {
            self.end(world, number, Ending::Completed, None);
        }
    }

    /// An object has arrived, or will not; with its connection if that has ended.
    fn end(
        &mut self,
        world: &mut World<'_>,
        number: usize,
        ending: Ending,
        connection: Option<&mut Connection>,
    ) {
        let Some(object) = self.objects.remove(&number) else { return };
        let now = world.now();
        let Wanted { class, asked, size, .. } = object.wanted;
        if world.is_measured(asked) {
            let books = &mut self.books[class];
            books.count(ending);
            if ending == Ending::Completed {
                let took = now.since(asked);
                books.response.record(took);
                if self.gateway.is_none() {
                    books.service.record(took);
                }
                if size < SMALL {
                    books.small.record(took);
                }
            }
            let completed = ending == Ending::Completed;
            report(world, &object, completed, connection);
        }
        self.leave(world, number, &object, ending);
        self.over(world, object.page);
    }

    /// The number of an asker's client among those of all classes.
    fn client_of(&self, asker: usize) -> usize {
        let Asker { class, client, .. } = self.askers[asker];
        let before: u32 = self.setup.classes[..class].iter().map(|class| class.clients).sum();
        (before + client) as usize
    }

    /// Gives up a response when nothing of it has arrived for too long.
    fn watch(&mut self, world: &mut World<'_>, number: usize) {
        let Some(patience) = self.setup.patience else { return };
        let Some(object) = self.objects.get(&number) else { return };
        let due = object.moved + patience;
        if due <= world.now() {
            self.end(world, number, Ending::Stalled, None);
        } else {
            self.wake_at(world, due, Alarm::Watch(number));
        }
    }

    // Books.

    pub(crate) fn books(&self) -> &[ClassOutcome] {
        &self.books
    }

    /// Payload that has arrived for each class.
    pub(crate) fn received(&self) -> &[Bytes] {
        &self.received
    }

    /// How many objects are on their way.
    pub(crate) fn on_their_way(&self) -> usize {
        self.objects.len()
    }

    /// The longest time from one byte of a response to its next.
    pub(crate) fn longest_silence(&self) -> Span {
        self.longest_silence
    }

    /// Counts the requests that the end cuts off, by `whereabouts`, including
    /// those that are not measured.
    pub(crate) fn leave_off(
        &mut self,
        world: &mut World<'_>,
        mut whereabouts: impl FnMut(&mut World<'_>, ConnectionId, usize) -> Whereabouts,
    ) -> Unfinished {
        let mut all = Unfinished::default();
        for (number, object) in std::mem::take(&mut self.objects) {
            let place = match object.connection {
                Some(connection) => whereabouts(world, connection, number),
                None => Whereabouts::Arriving,
            };
            all.count(place);
            if world.is_measured(object.wanted.asked) {
                self.books[object.wanted.class].unfinished.count(place);
                report(world, &object, false, None);
            }
        }
        all
    }
}

/// Records the row of an object. Losses and repetitions are those of its connection to the
/// client, since it was there.
fn report(
    world: &mut World<'_>,
    object: &Object,
    completed: bool,
    connection: Option<&mut Connection>,
) {
    let now = world.now();
    let Wanted { class, size, asked, .. } = object.wanted;
    let state = match connection {
        Some(state) => Some(state),
        None => object.connection.and_then(|connection| world.connections.live(connection)),
    };
    let trouble = state.map_or(object.before, Trouble::of).since(object.before);
    let still = if completed { Span::ZERO } else { now.since(object.moved) };
    let row = FlowRecord {
        // Classes are the first sources.
        traffic: class,
        number: object.number,
        size: Some(size),
        start: asked,
        congestion: None,
        response: completed.then(|| now.since(asked)),
        end: completed.then_some(now),
        delivered: Bytes(object.taken),
        lost: trouble.lost,
        late: None,
        retransmissions: trouble.retransmissions as u32,
        timeouts: trouble.timeouts,
        longest_stall: object.longest_stall.max(still),
        unloaded: None,
        recorded: None,
    };
    world.report(&row, now);
}

impl App for Clients<'_> {
    fn start(&mut self, world: &mut World<'_>) {
        self.start_visits(world);
        for asker in 0..self.askers.len() {
            self.plan_page(world, asker);
        }
    }

    fn on_wake(&mut self, world: &mut World<'_>, number: u64) {
        match self.alarms.remove(number as usize) {
            Alarm::Page { asker, visit } => self.begin_page(world, asker, visit),
            Alarm::Due { page, object } => self.ask_if_possible(world, page, object),
            Alarm::Visit(visitor) => self.visit(world, visitor),
            Alarm::Watch(object) => self.watch(world, object),
            Alarm::Idle { connection, given } => self.close_idle(world, connection, given),
        }
        world.act_at(self.written.drain(..), None);
    }

    fn on_segment(&mut self, world: &mut World<'_>, id: ConnectionId, side: Side) -> bool {
        let mut closes = false;
        if let Some(end) = world.end(id, side)
            && end.peer_finished()
        {
            end.close();
            closes = true;
        }
        // What an object's end lets others do may take the connection away.
        while let Some(connection) = world.connections.live(id)
            && let Some((carrier, end)) = connection.saying(side)
        {
            let delivered = end.delivered();
            match carrier.come(delivered, end) {
                Some(Came::Flight(_)) => self.written.push(id),
                Some(Came::Object(number, bytes)) => self.take(world, number, bytes),
                Some(Came::Reset(number, reason)) => {
                    self.end(world, number, Ending::of(reason), None);
                }
                None => break,
            }
        }
        world.act_at(self.written.drain(..), Some(id)) || closes
    }

    fn on_over(
        &mut self,
        world: &mut World<'_>,
        connection: &mut Connection,
        _side: Side,
        over: Over,
    ) {
        let ending = match over {
            Over::Closed | Over::Failed => Ending::Broken,
            Over::Aborted { reason, .. } => Ending::of(reason),
        };
        self.lose(world, connection, ending);
        world.act_at(self.written.drain(..), None);
    }
}
