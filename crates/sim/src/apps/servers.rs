//! Web servers: each answers its requests, and some fail while they do.

use slab::Slab;
use tidegate_core::{Rate, Span, Time};

use super::App;
use crate::carrier::{Carrier, Heard, Request, Use};
use crate::connections::{AppId, Connection, ConnectionId, Over, Side};
use crate::requests::{Ending, Fate, Wanted};
use crate::simulation::World;
use crate::tcp::Endpoint;

/// The interval at which a slow server sends a piece.
const PIECE_EVERY: Span = Span::seconds(1);

/// All servers of a run.
pub(crate) struct Servers {
    alarms: Slab<Alarm>,
}

/// Why a server acts.
enum Alarm {
    /// It has thought about a request.
    Thought(ConnectionId, Request<Wanted>),
    /// The next piece of a slow response is due.
    Piece(Slow),
}

/// A response that is sent piece by piece.
struct Slow {
    connection: ConnectionId,
    request: Request<Wanted>,
    rate: Rate,
    left: u64,
}

/// One end of a connection, and what is said over it.
type Saying<'a> = (&'a mut Carrier<Wanted>, &'a mut Endpoint);

impl Servers {
    pub(crate) fn new() -> Servers {
        Servers { alarms: Slab::new() }
    }

    fn wake_at(&mut self, world: &mut World<'_>, at: Time, alarm: Alarm) {
        let number = self.alarms.insert(alarm) as u64;
        world.wake(AppId::Servers, at, number);
    }

    /// A server writes the part of a response that it sends at once.
    fn answer(&mut self, world: &mut World<'_>, id: ConnectionId, request: Request<Wanted>) {
        let saying = world.connections.live(id).and_then(|it| it.saying(Side::Acceptor));
        let Some((carrier, end)) = saying else { return };
        match request.words.fate {
            Fate::Answered => {
                carrier.respond(request);
                write((carrier, end), true);
            }
            Fate::Stalls { after } => {
                carrier.offer(request, after);
                write((carrier, end), false);
            }
            Fate::Resets { after } => {
                carrier.offer(request, after);
                write((carrier, end), false);
                carrier.reset(request.object, Ending::Reset.reason(), end);
            }
            Fate::Trickles { rate } => {
                let left = request.response;
                let mut slow = Slow { connection: id, request, rate, left };
                if !slow.send((carrier, end)) {
                    self.wake_at(world, world.now() + PIECE_EVERY, Alarm::Piece(slow));
                }
            }
        }
    }
}

impl App for Servers {
    fn start(&mut self, _world: &mut World<'_>) {}

    fn on_wake(&mut self, world: &mut World<'_>, number: u64) {
        match self.alarms.remove(number as usize) {
            Alarm::Thought(connection, request) => {
                self.answer(world, connection, request);
                world.act(connection, Side::Acceptor);
            }
            Alarm::Piece(mut slow) => {
                let connection = slow.connection;
                let live = world.connections.live(connection);
                let Some(saying) = live.and_then(|it| it.saying(Side::Acceptor)) else { return };
                if !slow.send(saying) {
                    self.wake_at(world, world.now() + PIECE_EVERY, Alarm::Piece(slow));
                }
                world.act(connection, Side::Acceptor);
            }
        }
    }

    fn on_segment(&mut self, world: &mut World<'_>, id: ConnectionId, side: Side) -> bool {
        let saying = world.connections.live(id).and_then(|it| it.saying(side));
        let Some((carrier, end)) = saying else { return false };
        let delivered = end.delivered();
        let mut heard = Vec::new();
        let mut acts = false;
        while let Some(what) = carrier.hear(delivered, end) {
            match what {
                Heard::Request(request) => heard.push(request),
                Heard::Flight => acts = true,
                Heard::Cancelled(_) => {}
            }
        }
        if carrier.usage != Use::Once {
            acts |= carrier.fill(end);
            // The client has nothing more to ask.
            if end.peer_finished() {
                end.close();
                acts = true;
            }
        }
        for request in heard {
            acts = true;
            if request.think > Span::ZERO {
                let at = world.now() + request.think;
                self.wake_at(world, at, Alarm::Thought(id, request));
            } else {
                self.answer(world, id, request);
            }
        }
        acts
    }

    fn on_over(&mut self, _: &mut World<'_>, _: &mut Connection, _: Side, _: Over) {}
}

/// A server hands over what it has, which may be the last of a response.
fn write((carrier, end): Saying<'_>, is_last: bool) {
    carrier.fill(end);
    if is_last && carrier.usage == Use::Once {
        end.close();
    }
}

impl Slow {
    /// Writes the next piece; returns whether it was the last.
    fn send(&mut self, (carrier, end): Saying<'_>) -> bool {
        let piece = self.rate.volume(PIECE_EVERY).0.max(1).min(self.left);
        self.left -= piece;
        carrier.offer(self.request, piece);
        write((carrier, end), self.left == 0);
        self.left == 0
    }
}
