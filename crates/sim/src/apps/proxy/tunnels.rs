//! Tunnels through the gateway: it sees bytes and where records begin, and no requests.
//!
//! A tunnel is dialled for at once. What a client says comes out at the other end piece by
//! piece, unless the state machine holds it; what the server sends goes back in its order.

use std::collections::VecDeque;

use tidegate_core::Bytes;
use tidegate_core::request::{self, OriginId, Piece as Said, Reading, TunnelId, Verdict};

use super::{Proxy, path_of};
use crate::apps::pool::Place;
use crate::carrier::{Came, Heard, Piece};
use crate::connections::{ConnectionId, Over, Side};
use crate::requests::{Ending, Through, Wanted};
use crate::simulation::World;

/// A tunnel with its connections.
pub(super) struct Tunnel {
    class: usize,
    client: ConnectionId,
    server: ConnectionId,
    /// The number of its server, until the time of a round trip to it is told.
    untimed: Option<usize>,
    /// What the client has said and must not go on yet.
    held: VecDeque<Piece<Wanted>>,
}

impl Proxy<'_> {
    /// Whether a connection belongs to a tunnel, or a client's is to become one.
    pub(super) fn is_tunnel(&self, world: &mut World<'_>, id: ConnectionId, side: Side) -> bool {
        match side {
            Side::Opener => self.tunnel_of.contains_key(&id),
            Side::Acceptor => world.connections.live(id).is_some_and(|state| {
                let class = self.setup.class_of(Place::of(state.tag).client);
                self.setup.classes[class].through.is_hidden()
            }),
        }
    }

    /// Data has arrived at either end of a tunnel; returns whether there was anything to do.
    pub(super) fn hear_tunnel(
        &mut self,
        world: &mut World<'_>,
        id: ConnectionId,
        side: Side,
    ) -> bool {
        if !world.end(id, side).is_some_and(|end| end.is_established()) {
            return false;
        }
        let tunnel = match self.tunnel_of.get(&id) {
            Some(tunnel) => *tunnel,
            None => match self.open_tunnel(world, id) {
                Some(tunnel) => tunnel,
                None => return false,
            },
        };
        match side {
            Side::Acceptor => self.enter(world, tunnel, id),
            Side::Opener => self.go_back(world, tunnel),
        }
        true
    }

    /// A client's connection is a new tunnel, whose other end is dialled for.
    fn open_tunnel(&mut self, world: &mut World<'_>, client: ConnectionId) -> Option<TunnelId> {
        let state = world.connections.live(client)?;
        let usage = state.carrier.as_ref()?.usage;
        let Place { client: number, server } = Place::of(state.tag);
        let class = self.setup.class_of(number);
        let before: u32 = self.setup.classes[..class].iter().map(|class| class.clients).sum();
        let (whole, user) = self.setup.user(class, number as u32 - before);
        let tunnel = self.core.open(world.now(), whole, user).ok()?;
        if self.setup.classes[class].through == Through::WebSocket {
            // Its request to be one is seen.
            self.core.exempt(tunnel);
        }
        let connection = self.reach(world, server, usage);
        world.act(connection, Side::Opener);
        let held = VecDeque::new();
        self.tunnels.insert(
            tunnel,
            Tunnel { class, client, server: connection, untimed: Some(server), held },
        );
        self.tunnel_of.insert(client, tunnel);
        self.tunnel_of.insert(connection, tunnel);
        Some(tunnel)
    }

    /// What has arrived from the client goes on, or is held.
    fn enter(&mut self, world: &mut World<'_>, tunnel: TunnelId, client: ConnectionId) {
        let state = world.connections.live(client);
        let Some((carrier, end)) = state.and_then(|it| it.saying(Side::Acceptor)) else { return };
        let delivered = end.delivered();
        let pieces: Vec<_> = std::iter::from_fn(|| carrier.enter(delivered)).collect();
        let is_over = end.peer_finished();
        if is_over {
            end.close();
        }
        let now = world.now();
        for piece in pieces {
            let said = match piece {
                Piece::Last(Heard::Flight, bytes) => Said::Handshake(Bytes(bytes)),
                Piece::Last(_, bytes) | Piece::Part(bytes) => Said::Data(Bytes(bytes)),
            };
            let Some(state) = self.tunnels.get_mut(&tunnel) else { return };
            match self.core.send(now, tunnel, said) {
                Ok(Verdict::Pass) => {
                    let server = state.server;
                    leave(world, server, piece);
                }
                Ok(Verdict::Hold) => state.held.push_back(piece),
                Err(_) => return world.abort(client, Side::Acceptor, Ending::Refused.reason()),
            }
        }
        if let Some(Tunnel { server, .. }) = self.tunnels.get(&tunnel) {
            if let (true, Some(end)) = (is_over, world.end(*server, Side::Opener)) {
                end.close();
            }
            world.act(*server, Side::Opener);
        }
    }

    /// All that is held goes on.
    pub(super) fn pass(&mut self, world: &mut World<'_>, tunnel: TunnelId) {
        let Some(Tunnel { server, held, .. }) = self.tunnels.get_mut(&tunnel) else { return };
        for piece in held.drain(..) {
            leave(world, *server, piece);
        }
        world.act(*server, Side::Opener);
    }

    /// The server's end of a tunnel is read as stated, from what has been read so far.
    pub(super) fn read_tunnel(
        &mut self,
        world: &mut World<'_>,
        tunnel: TunnelId,
        reading: Reading,
    ) {
        let Some(Tunnel { server, .. }) = self.tunnels.get(&tunnel) else { return };
        let server = *server;
        if let Some(end) = world.end(server, Side::Opener) {
            end.read_up_to(limit(end.delivered(), reading));
        }
        self.go_back(world, tunnel);
        world.act(server, Side::Opener);
    }

    /// What has arrived from the server goes back to the client.
    fn go_back(&mut self, world: &mut World<'_>, tunnel: TunnelId) {
        let Some(state) = self.tunnels.get_mut(&tunnel) else { return };
        let (class, client, server) = (state.class, state.client, state.server);
        let now = world.now();
        let live = world.connections.live(server);
        let Some((carrier, end)) = live.and_then(|it| it.saying(Side::Opener)) else { return };
        let delivered = end.delivered();
        if let Some(path) = path_of(end)
            && let Some(server) = state.untimed.take()
        {
            if let Some(round_trip) = request::latest_round_trip(None, path) {
                self.core.timed(OriginId(server as u64), round_trip);
            }
            self.core.tunnel_path(now, tunnel, path.smoothed);
        }
        let (mut all, mut fresh) = (Vec::new(), 0);
        while let Some(came) = carrier.come(delivered, end) {
            if let Came::Object(object, bytes) = came {
                self.received[class] += Bytes(bytes);
                carrier.objects.remove(&object);
            }
            if let Came::Object(_, bytes) | Came::Flight(bytes) = came {
                fresh += bytes;
            }
            all.push(came);
        }
        if fresh > 0 {
            let reading = self.core.tunnel_read(now, tunnel, Bytes(fresh));
            end.read_up_to(limit(delivered, reading));
            if let Some(size) = self.core.tunnel_buffer(tunnel) {
                end.resize_buffer(size.min(self.server_side.receive_window));
            }
        }
        self.core.tunnel_came(now, tunnel, Bytes(end.unread()));
        // What may not be read yet comes first.
        let is_over = end.peer_finished() && end.unread() == 0;
        if is_over {
            end.close();
        }
        let state = world.connections.live(client);
        let Some((carrier, end)) = state.and_then(|it| it.saying(Side::Acceptor)) else { return };
        for came in all {
            carrier.go_back(came, end);
        }
        if is_over {
            end.close();
        }
        world.act(client, Side::Acceptor);
    }

    /// A connection of a tunnel is over, and with it the tunnel.
    pub(super) fn close_tunnel(
        &mut self,
        world: &mut World<'_>,
        tunnel: TunnelId,
        connection: ConnectionId,
        over: Over,
    ) {
        self.core.close(tunnel);
        let Some(Tunnel { client, server, .. }) = self.tunnels.remove(&tunnel) else { return };
        let reason = match over {
            // The other one is being closed as well.
            Over::Closed => return,
            Over::Failed => Ending::Broken.reason(),
            Over::Aborted { reason, .. } => reason,
        };
        if connection == client {
            world.abort(server, Side::Opener, reason);
        } else {
            world.abort(client, Side::Acceptor, reason);
        }
    }
}

/// A piece leaves the tunnel towards its server.
fn leave(world: &mut World<'_>, server: ConnectionId, piece: Piece<Wanted>) {
    let state = world.connections.live(server);
    if let Some((carrier, end)) = state.and_then(|state| state.saying(Side::Opener)) {
        carrier.leave(piece, end);
    }
}

/// The end of what may be read when `read` bytes have been.
fn limit(read: u64, reading: Reading) -> u64 {
    match reading {
        Reading::Freely => u64::MAX,
        Reading::UpTo(size) => read.saturating_add(size.0),
    }
}
