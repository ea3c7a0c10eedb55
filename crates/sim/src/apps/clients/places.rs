//! The connections of clients: which object goes over which.

use tidegate_core::Dscp;

use super::{Alarm, Clients, Object};
use crate::apps::pool::{Choice, Place, Pool};
use crate::apps::trouble::Trouble;
use crate::carrier::{Carrier, Request, Use};
use crate::connections::{AppId, Connection, ConnectionId, Opening, Side};
use crate::pages::AT_ONCE;
use crate::requests::{Ending, Wanted};
use crate::simulation::World;

impl Clients<'_> {
    /// Finds a connection for an object, or lets it wait for one.
    pub(super) fn place(&mut self, world: &mut World<'_>, number: usize) {
        let object = &self.objects[&number];
        let place = self.place_of(object);
        let usage = self.setup.usage(object.wanted.class);
        let pool = self.pools.entry(place).or_default();
        let mut is_free = |it: ConnectionId, shared: bool| {
            let carrier = world.connections.live(it).and_then(|it| it.carrier.as_ref());
            carrier.is_some_and(|carrier| shared || carrier.objects.is_empty())
        };
        let choice = match usage {
            Use::Once => Choice::Open,
            Use::InTurn => pool.choose(AT_ONCE as usize, |it| is_free(it, false)),
            Use::Multiplexed(_) => pool.choose(1, |it| is_free(it, true)),
        };
        match choice {
            Choice::Free(connection) => self.give(world, connection, number),
            Choice::Open => {
                let connection = self.open(world, place);
                self.give(world, connection, number);
            }
            Choice::Wait => pool.waiting.push_back(number),
        }
    }

    fn place_of(&self, object: &Object) -> Place {
        Place { client: self.client_of(object.asker), server: object.wanted.server }
    }

    /// Opens a connection to the gateway, or without one to the server.
    fn open(&mut self, world: &mut World<'_>, place: Place) -> ConnectionId {
        let (to, app) = match self.gateway {
            Some(gateway) => (gateway, AppId::Proxy),
            None => (self.servers[place.server], AppId::Servers),
        };
        let connection = world.open(&Opening {
            nodes: [self.hosts[place.client], to],
            tcp: [self.setup.tcp.clone(), self.setup.tcp.clone()],
            apps: [AppId::Clients, app],
            class: 0,
            dscp: [Dscp::DEFAULT; 2],
            tag: place.tag(),
        });
        let class = self.setup.class_of(place.client);
        let (usage, handshakes) = (self.setup.usage(class), self.setup.handshakes(class));
        if let Some(state) = world.connections.live(connection) {
            let end = state.endpoint(Side::Opener);
            state.carrier = Some(Carrier::open(usage, handshakes, end));
        }
        if usage != Use::Once {
            self.pools.entry(place).or_default().open.push(connection);
        }
        connection
    }

    /// Sends the request for an object over a connection.
    fn give(&mut self, world: &mut World<'_>, connection: ConnectionId, number: usize) {
        let now = world.now();
        let Some(state) = world.connections.live(connection) else { return };
        let Some(object) = self.objects.get_mut(&number) else { return };
        object.before = Trouble::of(state);
        object.connection = Some(connection);
        object.moved = now;
        let class = object.wanted.class;
        if let Some((carrier, end)) = state.saying(Side::Opener) {
            carrier.ask(object.wanted.as_request(number), end);
        }
        self.written.push(connection);
        let watches = self.gateway.is_none() || self.setup.classes[class].through.is_hidden();
        if let (true, Some(patience)) = (watches, self.setup.patience) {
            self.wake_at(world, now + patience, Alarm::Watch(number));
        }
    }

    /// An object that is over leaves its connection to others.
    pub(super) fn leave(
        &mut self,
        world: &mut World<'_>,
        number: usize,
        object: &Object,
        ending: Ending,
    ) {
        let place = self.place_of(object);
        let Some(connection) = object.connection else {
            let pool = self.pools.get_mut(&place);
            pool.into_iter().for_each(|pool| pool.waiting.retain(|it| *it != number));
            return;
        };
        let usage = self.setup.usage(object.wanted.class);
        let Some(state) = world.connections.live(connection) else { return };
        let Some((carrier, end)) = state.saying(Side::Opener) else { return };
        match (usage, ending) {
            (_, Ending::Completed) => {
                carrier.objects.remove(&number);
            }
            // Its last words are not heard there: only the end of the connection is.
            (Use::Once | Use::InTurn, _) => {
                world.abort(connection, Side::Opener, ending.reason());
                if let Some(pool) = self.pools.get_mut(&place) {
                    pool.leave(connection);
                }
                return self.reopen(world, place);
            }
            (Use::Multiplexed(_), Ending::Abandoned | Ending::Stalled) => {
                carrier.cancel(number, end);
                self.written.push(connection);
            }
            (Use::Multiplexed(_), _) => {
                carrier.objects.remove(&number);
            }
        }
        if usage != Use::Once {
            self.free(world, connection, place);
        }
    }

    /// A connection may have become free: another object gets it, or it waits for one.
    fn free(&mut self, world: &mut World<'_>, connection: ConnectionId, place: Place) {
        let live = world.connections.live(connection);
        let Some(carrier) = live.and_then(|state| state.carrier.as_ref()) else { return };
        if !carrier.objects.is_empty() {
            return;
        }
        let given = carrier.given;
        let next = self.pools.get_mut(&place).and_then(|pool| pool.waiting.pop_front());
        match next {
            Some(next) => self.give(world, connection, next),
            None => {
                let at = world.now() + self.setup.http.keep_alive;
                self.wake_at(world, at, Alarm::Idle { connection, given });
            }
        }
    }

    /// Closes a connection that has had nothing to do since it had been given so many
    /// objects.
    pub(super) fn close_idle(
        &mut self,
        world: &mut World<'_>,
        connection: ConnectionId,
        given: u64,
    ) {
        let Some(state) = world.connections.live(connection) else { return };
        let place = Place::of(state.tag);
        let Some((carrier, end)) = state.saying(Side::Opener) else { return };
        if carrier.given != given || !carrier.objects.is_empty() {
            return;
        }
        end.close();
        self.written.push(connection);
        if let Some(pool) = self.pools.get_mut(&place) {
            pool.leave(connection);
        }
    }

    /// A connection is over, and with it what it was to carry.
    pub(super) fn lose(
        &mut self,
        world: &mut World<'_>,
        connection: &mut Connection,
        ending: Ending,
    ) {
        let place = Place::of(connection.tag);
        if let Some(pool) = self.pools.get_mut(&place) {
            pool.leave(connection.id());
        }
        let objects = connection.carrier.as_mut().map(|it| std::mem::take(&mut it.objects));
        for object in objects.unwrap_or_default() {
            self.end(world, object, ending, Some(&mut *connection));
        }
        self.reopen(world, place);
    }

    /// Objects that wait for a connection where none is left get new ones.
    fn reopen(&mut self, world: &mut World<'_>, place: Place) {
        while let Some(next) = self.pools.get_mut(&place).and_then(Pool::next_to_open) {
            let connection = self.open(world, place);
            self.give(world, connection, next);
        }
    }
}

impl Wanted {
    /// The request for it, by the number that clients have given it.
    pub(in crate::apps) fn as_request(self, object: usize) -> Request<Wanted> {
        Request {
            object,
            size: self.request.0,
            response: self.size.0,
            think: self.think,
            urgency: self.urgency,
            words: self,
        }
    }
}
