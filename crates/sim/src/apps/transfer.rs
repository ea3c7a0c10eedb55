//! One transfer over a connection of its own, and its record.

use tidegate_core::{Bytes, Span, Time};

use crate::connections::{Connection, ConnectionId, Side};
use crate::metrics::{FlowRecord, ProgressSample};
use crate::scenario::{NodeId, Opener, Transfer};
use crate::simulation::World;
use crate::tcp::Endpoint;
use crate::tcp::congestion::Entry;

/// More than any run can carry, and far from overflow.
const ENDLESS: u64 = 1 << 60;

/// A transfer that a source has asked for: what is known of it before it begins.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) at: Time,
    pub(super) size: Option<Bytes>,
    /// Its source, and its number there.
    pub(super) traffic: u32,
    pub(super) number: u64,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
}

impl Asked {
    /// The row of one that has waited until `now` and never began.
    pub(super) fn record(&self, now: Time) -> FlowRecord {
        FlowRecord {
            traffic: self.traffic as usize,
            number: self.number,
            size: self.size,
            start: self.at,
            congestion: None,
            response: None,
            end: None,
            delivered: Bytes::ZERO,
            lost: 0,
            late: None,
            retransmissions: 0,
            timeouts: 0,
            longest_stall: now.since(self.at),
            unloaded: None,
            recorded: None,
        }
    }
}

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
    size: Option<Bytes>,
    /// Its source, and its number there.
    pub(super) traffic: usize,
    pub(super) number: u64,
    started: Time,
    response: Option<Span>,
    /// Payload that had reached the receiver when the record began: at the
    /// start, or at the end of the warm-up.
    delivered_before: u64,
    /// Payload that had reached the receiver at the last progress, and the time of that.
    delivered: u64,
    progressed: Time,
    longest_stall: Span,
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
        let Asked { at, size, traffic, number, .. } = asked;
        let (sender, request) = match transfer.opened_by {
            Opener::Sender => (Side::Opener, Bytes::ZERO),
            Opener::Receiver { request } => (Side::Acceptor, request),
        };
        if let Some(end) = world.end(connection, Side::Opener) {
            match sender {
                Side::Opener => write_all(end, size),
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
            size,
            traffic: traffic as usize,
            number,
            started: at,
            response: None,
            delivered_before: 0,
            delivered: 0,
            progressed: at,
            longest_stall: Span::ZERO,
        }
    }

    /// Runs the program at a side after a segment; returns whether it did something.
    pub(super) fn on_segment(&mut self, now: Time, end: &mut Endpoint, side: Side) -> bool {
        if side != self.sender {
            let delivered = end.delivered();
            // A transfer of no bytes is complete when its end has come.
            let complete = self.size == Some(Bytes::ZERO) && end.peer_finished();
            if delivered > self.delivered || complete {
                self.delivered = delivered;
                self.longest_stall = self.longest_stall.max(now.since(self.progressed));
                self.progressed = now;
                if self.size.is_some_and(|size| delivered >= size.0) && self.response.is_none() {
                    self.response = Some(now.since(self.started));
                }
            }
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
            write_all(end, self.size);
            return true;
        }
        false
    }

    /// The warm-up is over: a transfer without end counts from now on.
    pub(super) fn forget_warm_up(&mut self, world: &mut World<'_>) {
        if self.size.is_none() {
            let now = world.now();
            (self.started, self.progressed) = (now, now);
            self.longest_stall = Span::ZERO;
            self.delivered_before = self.delivered;
            if let Some(connection) = world.connections.live(self.connection) {
                connection.lost = 0;
            }
        }
    }

    /// Its progress.
    pub(super) fn progress(&self, now: Time, connection: &mut Connection) -> ProgressSample {
        let arrived = connection.endpoint(self.sender.other()).arrived();
        let sender = connection.endpoint(self.sender);
        ProgressSample {
            traffic: self.traffic,
            number: self.number,
            at: now,
            delivered: Bytes(self.delivered),
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
        let sent = *connection.endpoint(self.sender).statistics();
        let still = if self.response.is_none() { now.since(self.progressed) } else { Span::ZERO };
        FlowRecord {
            traffic: self.traffic,
            number: self.number,
            size: self.size,
            start: self.started,
            congestion: Some(self.congestion.name),
            response: self.response,
            end: (finished && self.response.is_some()).then_some(now),
            delivered: Bytes(self.delivered - self.delivered_before),
            lost: connection.lost,
            late: None,
            retransmissions: sent.retransmissions as u32,
            timeouts: sent.timeouts,
            longest_stall: self.longest_stall.max(still),
            unloaded: None,
            recorded: None,
        }
    }
}

/// The program writes the whole transfer and closes behind it.
fn write_all(end: &mut Endpoint, size: Option<Bytes>) {
    end.write(size.map_or(ENDLESS, |size| size.0));
    if size.is_some() {
        end.close();
    }
}
