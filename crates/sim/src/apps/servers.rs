//! Web servers: each answers its requests, and some fail while they do.

use slab::Slab;
use tidegate_core::{Bytes, Rate, Span};

use super::App;
use crate::connections::{AppId, Connection, ConnectionId, Over, Side};
use crate::requests::{Fate, Setup};
use crate::simulation::World;
use crate::tcp::Endpoint;

/// The interval at which a slow server sends a piece.
const PIECE_EVERY: Span = Span::seconds(1);

/// All servers of a run.
pub(crate) struct Servers<'a> {
    setup: &'a Setup,
    slow: Slab<Slow>,
}

/// A response that is sent piece by piece.
struct Slow {
    connection: ConnectionId,
    rate: Rate,
    left: u64,
}

impl<'a> Servers<'a> {
    pub(crate) fn new(setup: &'a Setup) -> Servers<'a> {
        Servers { setup, slow: Slab::new() }
    }
}

impl App for Servers<'_> {
    fn start(&mut self, _world: &mut World<'_>) {}

    /// A slow response continues.
    fn on_wake(&mut self, world: &mut World<'_>, number: u64) {
        let slow = &mut self.slow[number as usize];
        let connection = slow.connection;
        let Some(end) = world.end(connection, Side::Acceptor) else {
            self.slow.remove(number as usize);
            return;
        };
        if slow.send(end) {
            self.slow.remove(number as usize);
        } else {
            world.wake(AppId::Servers, world.now() + PIECE_EVERY, number);
        }
        world.act(connection, Side::Acceptor);
    }

    fn on_segment(&mut self, world: &mut World<'_>, id: ConnectionId, side: Side) -> bool {
        let Some(connection) = world.connections.live(id) else { return false };
        let end = connection.endpoint(side);
        if !end.is_established() || end.delivered() < self.setup.request.0 {
            return false;
        }
        let Some(wanted) = connection.wanted.take() else { return false };
        let end = connection.endpoint(side);
        answer(end, wanted.fate, wanted.size);
        if let Fate::Trickles { rate } = wanted.fate {
            let mut slow = Slow { connection: id, rate, left: wanted.size.0 };
            if !slow.send(end) {
                let number = self.slow.insert(slow) as u64;
                world.wake(AppId::Servers, world.now() + PIECE_EVERY, number);
            }
        }
        true
    }

    fn on_over(&mut self, _: &mut World<'_>, _: &mut Connection, _: Side, _: Over) {}
}

/// A server writes the part of a response that it sends at once.
///
/// A reset travels as one more byte behind the others: it arrives when and
/// where a packet would, after everything that was sent.
fn answer(end: &mut Endpoint, fate: Fate, size: Bytes) {
    match fate {
        Fate::Answered => {
            end.write(size.0);
            end.close();
        }
        Fate::Stalls { after } => end.write(after),
        Fate::Resets { after } => end.write(after + 1),
        Fate::Trickles { .. } => {}
    }
}

impl Slow {
    /// Writes the next piece; returns whether it was the last.
    fn send(&mut self, end: &mut Endpoint) -> bool {
        let piece = self.rate.volume(PIECE_EVERY).0.max(1).min(self.left);
        self.left -= piece;
        end.write(piece);
        if self.left == 0 {
            end.close();
        }
        self.left == 0
    }
}
