//! What servers do when they fail, and how long anybody waits for them.

use tidegate_core::{Bytes, Span};

use super::super::connection::Side;
use super::super::failures::Fate;
use super::super::outcome::Ending;
use super::{Event, Exchange, Run};
use crate::tcp::Endpoint;

/// How often a slow server sends a piece.
const PIECE_EVERY: Span = Span::seconds(1);

impl Fate {
    /// The server answers, at its end of the connection; whether it does so piece
    /// by piece.
    ///
    /// A reset travels as one more byte behind those before it: it comes when and
    /// where a packet would, and after all that was sent.
    pub(super) fn answer(self, size: Bytes, end: &mut Endpoint) -> bool {
        match self {
            Fate::Answered => {
                end.write(size.0);
                end.close();
            }
            Fate::Stalls { after } => end.write(after),
            Fate::Resets { after } => end.write(after + 1),
            Fate::Trickles { .. } => return true,
        }
        false
    }

    /// What has come of the response when so much was read, and whether a reset has.
    pub(super) fn seen(self, delivered: u64) -> (u64, bool) {
        match self {
            Fate::Resets { after } => (delivered.min(after), delivered > after),
            _ => (delivered, false),
        }
    }
}

impl Run<'_> {
    /// A slow server sends its next piece.
    pub(super) fn trickle(&mut self, number: u64) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let Fate::Trickles { rate } = exchange.object.fate else { return };
        let left = exchange.object.size.0 - exchange.trickled;
        let piece = rate.volume(PIECE_EVERY).0.max(1).min(left);
        exchange.trickled += piece;
        let connection = exchange.server.unwrap_or(exchange.client);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let end = &mut state.ends[Side::Acceptor as usize];
        end.write(piece);
        if piece == left {
            end.close();
        } else {
            self.kernel.schedule(self.kernel.now() + PIECE_EVERY, Event::Trickle(number));
        }
        self.act(connection, Side::Acceptor);
    }

    /// Gives a response up when nothing has come of it for too long. While
    /// something is there that may not be read, the server is not to blame.
    pub(super) fn watch(&mut self, number: u64) {
        let now = self.kernel.now();
        let Some(patience) = self.setup.patience else { return };
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        if exchange.permit.is_none() {
            return;
        }
        let connection = exchange.server.unwrap_or(exchange.client);
        let connection = self.connections.get(&connection);
        if connection.is_some_and(|state| state.ends[Side::Opener as usize].unread() > 0) {
            exchange.moved = now;
        }
        let due = exchange.moved + patience;
        if due <= now {
            return self.end_exchange(number, Ending::Stalled);
        }
        self.kernel.schedule(due, Event::Watch(number));
    }

    /// A response has read all that it was granted.
    pub(super) fn ungrant(&mut self, number: u64) {
        let now = self.kernel.now();
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.ungranted.get_or_insert(now);
        }
    }

    /// It may read on.
    pub(super) fn granted(&mut self, number: u64) {
        let now = self.kernel.now();
        if let Some(exchange) = self.exchanges.get_mut(&number)
            && let Some(since) = exchange.ungranted.take()
        {
            let pauses = &mut self.outcome.pauses;
            pauses.ungranted = pauses.ungranted.max(now.since(since));
        }
    }

    /// A response is over, or the run is: its pause, if it has one, is.
    pub(super) fn end_pause(&mut self, exchange: &Exchange) {
        let now = self.kernel.now();
        if let Some(since) = exchange.ungranted {
            let pauses = &mut self.outcome.pauses;
            pauses.ungranted = pauses.ungranted.max(now.since(since));
        }
    }
}
