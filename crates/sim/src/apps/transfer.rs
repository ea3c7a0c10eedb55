//! One transfer over a connection of its own, and its record.

use tidegate_core::{Bytes, Time};

use super::account::{Account, Asked, ENDLESS, Sent};
use crate::connections::{Connection, ConnectionId, Side};
use crate::metrics::{FlowRecord, ProgressSample};
use crate::scenario::{Opener, Transfer};
use crate::simulation::World;
use crate::tcp::Endpoint;
use crate::tcp::congestion::Entry;

/// A transfer that has begun.
pub(super) struct Transferring {
    pub(super) connection: ConnectionId,
    /// Which side sends the data.
    sender: Side,
    /// What the opener sends first when it is the receiver of the data.
    request: Bytes,
    answered: bool,
    congestion: &'static Entry,
    /// Whether the receiver has closed its side.
    closed: bool,
    pub(super) account: Account,
}

impl Transferring {
    /// A transfer that begins now. Its opener writes first what it has to send.
    pub(super) fn begin(
        world: &mut World<'_>,
        connection: ConnectionId,
        transfer: &Transfer,
        congestion: &'static Entry,
        asked: Asked,
    ) -> Transferring {
        let (sender, request) = match transfer.opened_by {
            Opener::Sender => (Side::Opener, Bytes::ZERO),
            Opener::Receiver { request } => (Side::Acceptor, request),
        };
        if let Some(end) = world.end(connection, Side::Opener) {
            match sender {
                Side::Opener => write_all(end, asked.size),
                Side::Acceptor => end.write(request.0),
            }
        }
        Transferring {
            connection,
            sender,
            request,
            answered: false,
            congestion,
            closed: false,
            account: Account::new(&asked),
        }
    }

    /// Runs the program at a side after a segment; returns whether it did something.
    pub(super) fn on_segment(&mut self, now: Time, end: &mut Endpoint, side: Side) -> bool {
        if side != self.sender {
            // A transfer of no bytes is complete when its end has come.
            let complete = self.account.size == Some(Bytes::ZERO) && end.peer_finished();
            self.account.reached(now, end.delivered(), complete);
            if !self.closed && end.peer_finished() {
                self.closed = true;
                end.close();
                return true;
            }
        } else if side == Side::Acceptor
            && !self.answered
            && end.is_established()
            && end.delivered() >= self.request.0
        {
            self.answered = true;
            write_all(end, self.account.size);
            return true;
        }
        false
    }

    /// The warm-up is over: a transfer without end counts from now on.
    pub(super) fn forget_warm_up(&mut self, world: &mut World<'_>) {
        let forgets = self.account.forget_warm_up(world.now());
        if let Some(connection) = world.connections.live(self.connection).filter(|_| forgets) {
            connection.lost = 0;
        }
    }

    /// Its progress.
    pub(super) fn progress(&self, now: Time, connection: &mut Connection) -> ProgressSample {
        let arrived = connection.endpoint(self.sender.other()).arrived();
        let sender = connection.endpoint(self.sender);
        ProgressSample {
            traffic: self.account.traffic,
            number: self.account.number,
            at: now,
            delivered: self.account.delivered(),
            arrived: Bytes(arrived),
            congestion_window: Bytes(sender.congestion_window()),
            smoothed_rtt: sender.smoothed_rtt(),
            pacing_rate: sender.pacing_rate(),
        }
    }

    /// Its row: when it has `finished`, both directions are done.
    pub(super) fn record(
        &self,
        now: Time,
        connection: &mut Connection,
        finished: bool,
    ) -> FlowRecord {
        let statistics = *connection.endpoint(self.sender).statistics();
        let sent = Sent {
            congestion: self.congestion.name,
            lost: connection.lost,
            retransmissions: statistics.retransmissions as u32,
            timeouts: statistics.timeouts,
        };
        self.account.record(now, &sent, finished)
    }
}

/// The program writes the whole transfer and closes behind it.
fn write_all(end: &mut Endpoint, size: Option<Bytes>) {
    end.write(size.map_or(ENDLESS, |size| size.0));
    if size.is_some() {
        end.close();
    }
}
