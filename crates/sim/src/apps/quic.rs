//! Transfers over QUIC, each over a connection of its own with one or more streams.
//!
//! The opener opens all streams as soon as the handshake lets it, and writes on each what it
//! has to send: its share of the data, or the request. The acceptor answers each stream when
//! all of it has come: with its share of the data, or with nothing. When the opener has every
//! answer it closes the connection.

use std::collections::VecDeque;

use bytes::Bytes as Reason;
use quinn_proto::{Connection, Dir, Event, StreamEvent, StreamId, VarInt};
use slab::Slab;
use tidegate_core::{Span, Time};

use super::account::{Account, Asked, ENDLESS, Sent};
use super::streams::{self, Exchange};
use crate::connections::{AppId, Side};
use crate::metrics::{FlowRecord, ProgressSample};
use crate::quic::{QuicConnection, QuicId, QuicOpening, Settings};
use crate::scenario::{MOST_OPEN_QUIC, Marking, Opener, Scenario, TrafficKind};
use crate::simulation::World;

/// The transfers of all sources that use QUIC.
pub(super) struct QuicTransfers {
    /// By source; `None` for those that do not.
    settings: Vec<Option<Settings>>,
    transfers: Slab<Carried>,
    /// Transfers whose time has come, but which find no place among [`MOST_OPEN_QUIC`].
    waiting: VecDeque<Asked>,
    /// Transfers whose progress is recorded, oldest first.
    followed: Vec<usize>,
}

impl QuicTransfers {
    pub(super) fn new(scenario: &Scenario) -> QuicTransfers {
        let settings = scenario.traffic.iter().map(|spec| match &spec.kind {
            TrafficKind::Quic { profile, .. } => Some(Settings::new(profile, true)),
            _ => None,
        });
        QuicTransfers {
            settings: settings.collect(),
            transfers: Slab::new(),
            waiting: VecDeque::new(),
            followed: Vec::new(),
        }
    }

    /// Whether QUIC carries the transfers of a source.
    pub(super) fn carries(&self, traffic: usize) -> bool {
        self.settings[traffic].is_some()
    }

    /// A source asks for a transfer: it begins if there is a place for it.
    pub(super) fn ask(&mut self, world: &mut World<'_>, asked: Asked) {
        if self.transfers.len() < MOST_OPEN_QUIC as usize {
            self.open(world, asked);
        } else {
            world.summary.waited += 1;
            self.waiting.push_back(asked);
        }
    }

    fn open(&mut self, world: &mut World<'_>, asked: Asked) {
        let spec = &world.scenario.traffic[asked.traffic as usize];
        let TrafficKind::Quic { transfer, profile, .. } = &spec.kind else {
            unreachable!("a source of QUIC transfers")
        };
        let Marking { sender, receiver } = spec.marking;
        let settings = self.settings[asked.traffic as usize].as_ref();
        let settings = settings.expect("a source of QUIC transfers");
        let slot = self.transfers.vacant_entry();
        let tag = slot.key();
        let Asked { from, to, traffic, number, .. } = asked;
        let (nodes, dscp) = match transfer.opened_by {
            Opener::Sender => ([from, to], [sender, receiver]),
            Opener::Receiver { .. } => ([to, from], [receiver, sender]),
        };
        let (app, class) = (AppId::Traffic, spec.class);
        let opening = QuicOpening { nodes, app, class, dscp, traffic, number, tag };
        let connection = world.open_quic(&opening, settings);
        let (opened_by, streams) = (transfer.opened_by, profile.streams);
        let congestion = settings.control.name();
        slot.insert(Carried::new(connection, opened_by, streams, congestion, &asked));
        if transfer.follow {
            self.followed.push(tag);
        }
    }

    /// Runs the program at a side, after a packet or a timer.
    pub(super) fn on_activity(&mut self, now: Time, connection: &mut QuicConnection, side: Side) {
        let transfer = &mut self.transfers[connection.tag];
        if let Some(quinn) = connection.quinn(side) {
            transfer.on_activity(now, quinn, side);
        }
    }

    /// A connection has ended.
    pub(super) fn on_over(&mut self, world: &mut World<'_>, mut connection: QuicConnection) {
        let tag = connection.tag;
        let transfer = self.transfers.remove(tag);
        self.followed.retain(|followed| *followed != tag);
        let row = transfer.record(world.now(), &mut connection);
        world.report_transfer(row);
        if let Some(next) = self.waiting.pop_front() {
            self.open(world, next);
        }
    }

    pub(super) fn sample(&mut self, world: &mut World<'_>) {
        let now = world.now();
        for tag in &self.followed {
            let transfer = &self.transfers[*tag];
            let Some(connection) = world.quic.live(transfer.connection) else { continue };
            let Some(row) = transfer.progress(now, connection) else { continue };
            world.recorder.progress(&row);
            world.summary.progress.push(row);
        }
    }

    pub(super) fn forget_warm_up(&mut self, world: &mut World<'_>) {
        let now = world.now();
        for (_, transfer) in &mut self.transfers {
            let forgets = transfer.account.forget_warm_up(now);
            if let Some(connection) = world.quic.live(transfer.connection).filter(|_| forgets) {
                connection.lost = 0;
            }
        }
        let endless = self.waiting.iter_mut().filter(|asked| asked.size.is_none());
        endless.for_each(|asked| asked.at = now);
    }

    /// Reports the transfers that are cut off, by source and number.
    pub(super) fn finish(&mut self, world: &mut World<'_>) {
        let mut cut_off: Vec<Carried> = self.transfers.drain().collect();
        cut_off.sort_by_key(|transfer| (transfer.account.traffic, transfer.account.number));
        let now = world.now();
        for transfer in cut_off {
            let mut connection = world.quic.remove(transfer.connection);
            let row = transfer.record(now, &mut connection);
            world.report_transfer(row);
        }
        for asked in self.waiting.drain(..) {
            world.report(&asked.record(now), now);
        }
    }
}

/// A transfer that has begun.
struct Carried {
    connection: QuicId,
    /// Which side sends the data.
    sender: Side,
    congestion: &'static str,
    streams: Vec<Exchange>,
    /// Streams of which the opener has the whole answer.
    answered: usize,
    /// Streams of which the receiver has all data.
    received: usize,
    /// Payload that has reached the receiver.
    delivered: u64,
    account: Account,
}

impl Carried {
    fn new(
        connection: QuicId,
        opened_by: Opener,
        streams: u16,
        congestion: &'static str,
        asked: &Asked,
    ) -> Carried {
        let count = u64::from(streams.max(1));
        let share = |number| match asked.size {
            Some(size) => size.0 / count + u64::from(number < size.0 % count),
            None => ENDLESS,
        };
        let parts = |number| match opened_by {
            Opener::Sender => [share(number), 0],
            Opener::Receiver { request } => [request.0, share(number)],
        };
        let exchange = |number| Exchange::new(parts(number));
        Carried {
            connection,
            sender: match opened_by {
                Opener::Sender => Side::Opener,
                Opener::Receiver { .. } => Side::Acceptor,
            },
            congestion,
            streams: (0..count).map(exchange).collect(),
            answered: 0,
            received: 0,
            delivered: 0,
            account: Account::new(asked),
        }
    }

    fn on_activity(&mut self, now: Time, quinn: &mut Connection, side: Side) {
        while let Some(event) = quinn.poll() {
            match event {
                Event::Connected if side == Side::Opener => self.ask(quinn),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = quinn.streams().accept(dir) {
                        self.read(now, quinn, side, id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(now, quinn, side, id),
                Event::Stream(StreamEvent::Writable { id }) => self.write(quinn, side, id),
                _ => {}
            }
        }
    }

    /// The handshake is over: the opener opens the streams. The peer's limit is a hundred of
    /// them, quinn's default, and no source has more.
    fn ask(&mut self, quinn: &mut Connection) {
        for _ in 0..self.streams.len() {
            if let Some(id) = quinn.streams().open(Dir::Bi) {
                self.begin(quinn, Side::Opener, id);
            }
        }
    }

    /// A side has something to write on a stream, or only its end.
    fn begin(&mut self, quinn: &mut Connection, side: Side, id: StreamId) {
        if let Some(exchange) = self.streams.get_mut(id.index() as usize) {
            exchange.begin(quinn, side, id);
        }
    }

    fn write(&mut self, quinn: &mut Connection, side: Side, id: StreamId) {
        if let Some(exchange) = self.streams.get_mut(id.index() as usize) {
            exchange.write(quinn, side, id);
        }
    }

    fn read(&mut self, now: Time, quinn: &mut Connection, side: Side, id: StreamId) {
        let (count, ended) = streams::read(quinn, id);
        if side != self.sender {
            self.delivered += count;
            self.received += usize::from(ended);
            let complete = self.received == self.streams.len() && ended;
            self.account.reached(now, self.delivered, complete);
        }
        match side {
            Side::Acceptor if ended => self.begin(quinn, side, id),
            Side::Opener if ended => {
                self.answered += 1;
                if self.is_answered() {
                    quinn.close(crate::quic::instant(now), VarInt::from_u32(0), Reason::new());
                }
            }
            _ => {}
        }
    }

    fn is_answered(&self) -> bool {
        self.answered == self.streams.len()
    }

    /// Its progress. What waits at the receiver for something lost is not known, so it counts
    /// as arrived when it is delivered.
    fn progress(&self, now: Time, connection: &mut QuicConnection) -> Option<ProgressSample> {
        let sender = connection.quinn(self.sender)?;
        let rtt = u64::try_from(sender.rtt().as_nanos()).ok();
        Some(ProgressSample {
            traffic: self.account.traffic,
            number: self.account.number,
            at: now,
            delivered: self.account.delivered(),
            arrived: self.account.delivered(),
            congestion_window: tidegate_core::Bytes(sender.congestion_state().window()),
            smoothed_rtt: rtt.map(Span),
            pacing_rate: None,
        })
    }

    /// Its row. What QUIC sends again are frames, not packets; each packet that its sender
    /// has found lost counts as sent again. Its probe timeouts are not told by quinn.
    fn record(&self, now: Time, connection: &mut QuicConnection) -> FlowRecord {
        let lost = connection.quinn(self.sender).map_or(0, |it| it.stats().path.lost_packets);
        let sent = Sent {
            congestion: self.congestion,
            lost: connection.lost,
            retransmissions: u32::try_from(lost).unwrap_or(u32::MAX),
            timeouts: 0,
        };
        self.account.record(now, &sent, self.is_answered())
    }
}
