//! Objects over HTTP/3 (RFC 9114): a stream of QUIC for each, which begins with its request.
//!
//! A connection has up to a hundred streams at a time, which is what quinn grants by default;
//! other requests wait for one. The connection closes for the keep-alive time like others, or
//! when nothing has been said for 30 s, quinn's limit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quinn_proto::{Connection, Dir, Event, StreamEvent, StreamId, VarInt};
use tidegate_core::{Span, Stream};

use super::{Alarm, Browsers, Carried, Place, Way};
use crate::apps::streams::{self, Exchange};
use crate::apps::trouble::Trouble;
use crate::carrier::Request;
use crate::connections::{AppId, Side};
use crate::quic::{self, QuicConnection, QuicId, QuicOpening};
use crate::scenario::FrameOrder;
use crate::simulation::World;

/// The streams of a connection, seen from both ends.
#[derive(Default)]
pub(super) struct Streams {
    /// The objects that it carries or is to carry.
    pub(super) objects: BTreeSet<usize>,
    /// How many objects it has been given.
    pub(super) given: u64,
    connected: bool,
    /// Whether the more urgent response goes first.
    by_urgency: bool,
    /// Requests that wait for the handshake, or for a stream.
    waiting: VecDeque<Request<()>>,
    /// By the number of the stream.
    open: BTreeMap<u64, Asked>,
}

/// A request that has a stream.
struct Asked {
    request: Request<()>,
    exchange: Exchange,
}

/// So many bytes of an object, which may be its last.
type Came = (usize, u64);

impl Streams {
    fn ask(&mut self, request: Request<()>, quinn: &mut Connection) {
        self.objects.insert(request.object);
        self.given += 1;
        self.waiting.push_back(request);
        self.open(quinn);
    }

    /// Gives streams to requests that wait, if the handshake is over.
    fn open(&mut self, quinn: &mut Connection) {
        while self.connected
            && !self.waiting.is_empty()
            && let Some(id) = quinn.streams().open(Dir::Bi)
            && let Some(request) = self.waiting.pop_front()
        {
            let mut exchange = Exchange::new([request.size, request.response]);
            exchange.begin(quinn, Side::Opener, id);
            self.open.insert(id.index(), Asked { request, exchange });
        }
    }

    /// What has happened at one end: what has come of objects, and requests that are there,
    /// with their streams.
    fn come(
        &mut self,
        quinn: &mut Connection,
        side: Side,
        objects: &mut Vec<Came>,
        requests: &mut Vec<(StreamId, Request<()>)>,
    ) {
        while let Some(event) = quinn.poll() {
            let mut readable = Vec::new();
            match event {
                Event::Connected => self.connected |= side == Side::Opener,
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = quinn.streams().accept(dir) {
                        readable.push(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
                Event::Stream(StreamEvent::Writable { id }) => {
                    if let Some(asked) = self.open.get_mut(&id.index()) {
                        asked.exchange.write(quinn, side, id);
                    }
                }
                _ => {}
            }
            for id in readable {
                let (count, ended) = streams::read(quinn, id);
                let Some(Asked { request, .. }) = self.open.get(&id.index()) else { continue };
                match side {
                    Side::Acceptor if ended => requests.push((id, *request)),
                    Side::Acceptor => {}
                    Side::Opener => {
                        if count > 0 || ended && request.response == 0 {
                            objects.push((request.object, count));
                        }
                        if ended {
                            self.open.remove(&id.index());
                        }
                    }
                }
            }
        }
        if side == Side::Opener {
            self.open(quinn);
        }
    }

    /// The server has the response to the request of a stream.
    fn respond(&mut self, quinn: &mut Connection, id: StreamId) {
        let Some(asked) = self.open.get_mut(&id.index()) else { return };
        if self.by_urgency {
            // It fails only when the connection is at its end.
            let _ = quinn.send_stream(id).set_priority(-i32::from(asked.request.urgency));
        }
        asked.exchange.begin(quinn, Side::Acceptor, id);
    }
}

impl Browsers<'_> {
    /// Opens a QUIC connection to a place.
    pub(super) fn open_quic(
        &mut self,
        world: &mut World<'_>,
        user: usize,
        place: Place,
    ) -> Option<usize> {
        let user_state = &self.users[user];
        let (source, spec) = (user_state.source, user_state.spec);
        let settings = self.settings[source].as_ref()?;
        let servers = &user_state.transfer.from;
        let mut stream = Stream::new(self.seed, &format!("{} host {}", spec.name, place.0));
        let slot = self.carriers.vacant_entry();
        let key = slot.key();
        let connection = world.open_quic(
            &QuicOpening {
                nodes: [user_state.node, servers[stream.index(servers.len())]],
                app: AppId::Browsers,
                class: spec.class,
                dscp: [spec.marking.receiver, spec.marking.sender],
                traffic: source as u32,
                number: self.opened,
                tag: key,
            },
            settings,
        );
        let by_urgency = user_state.profile.order == FrameOrder::Priority;
        let streams = Streams { by_urgency, ..Streams::default() };
        let serial = self.opened;
        self.opened += 1;
        let congestion = settings.control.name();
        let way = Way::Quic { connection, streams };
        slot.insert(Carried { serial, way, user, place, congestion });
        self.users[user].pools.entry(place).or_default().open.push(key);
        Some(key)
    }

    /// The browser sends a request over a QUIC connection, or will when it can.
    pub(super) fn give_quic(&mut self, world: &mut World<'_>, key: usize, request: Request<()>) {
        let Way::Quic { connection, streams } = &mut self.carriers[key].way else { return };
        let quinn = world.quic.live(*connection).and_then(|it| it.quinn(Side::Opener));
        if let Some(quinn) = quinn {
            streams.ask(request, quinn);
            self.written_quic.push(*connection);
        }
    }

    /// The browser closes a QUIC connection.
    pub(super) fn close_quic(&mut self, world: &mut World<'_>, connection: QuicId) {
        let now = quic::instant(world.now());
        if let Some(quinn) = world.quic.live(connection).and_then(|it| it.quinn(Side::Opener)) {
            quinn.close(now, VarInt::from_u32(0), bytes::Bytes::new());
            self.written_quic.push(connection);
        }
    }

    /// Something may have happened at a side of a QUIC connection.
    pub(crate) fn on_quic(&mut self, world: &mut World<'_>, id: QuicId, side: Side) {
        let (mut objects, mut requests) = (Vec::new(), Vec::new());
        let now = world.now();
        let Some(connection) = world.quic.live(id) else { return };
        let key = connection.tag;
        let Some(Carried { way: Way::Quic { streams, .. }, serial, .. }) =
            self.carriers.get_mut(key)
        else {
            return;
        };
        let Some(quinn) = connection.quinn(side) else { return };
        streams.come(quinn, side, &mut objects, &mut requests);
        for (stream, request) in &requests {
            if request.think == Span::ZERO {
                streams.respond(quinn, *stream);
            }
        }
        let serial = *serial;
        for (stream, request) in requests {
            if request.think > Span::ZERO {
                let alarm = Alarm::ThoughtOfStream { carrier: key, serial, stream };
                self.wake_at(world, now + request.think, alarm);
            }
        }
        for (object, bytes) in objects {
            self.take(world, object, bytes);
        }
        self.act(world, None);
    }

    /// A server has a response.
    pub(super) fn respond_quic(
        &mut self,
        world: &mut World<'_>,
        key: usize,
        serial: u64,
        stream: StreamId,
    ) {
        let carried = self.carriers.get_mut(key).filter(|it| it.serial == serial);
        let Some(Carried { way: Way::Quic { connection, streams }, .. }) = carried else { return };
        let id = *connection;
        if let Some(quinn) = world.quic.live(id).and_then(|it| it.quinn(Side::Acceptor)) {
            streams.respond(quinn, stream);
            world.act_quic(id, Side::Acceptor);
        }
    }

    /// A QUIC connection has ended, and with it what it was to carry.
    pub(crate) fn on_quic_over(&mut self, world: &mut World<'_>, mut connection: QuicConnection) {
        let trouble = Trouble::of_quic(&mut connection);
        self.over(world, connection.tag, trouble);
    }
}
