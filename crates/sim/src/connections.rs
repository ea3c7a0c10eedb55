//! TCP connections: two endpoints and the transfer that they make.
//!
//! A slot keeps its connection's memory for the next one, and its generation
//! tells late packets of the last one from those of the next.

use tidegate_core::{Bytes, FlowKey, Span, Time};

use crate::lot::{Lot, mix};
use crate::metrics::FlowRecord;
use crate::network::address;
use crate::scenario::{NodeId, Opener, Transfer};
use crate::tcp::{Endpoint, Header};

/// Names a connection, also after it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    slot: u32,
    generation: u32,
}

/// One side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Which sent the SYN.
    Opener,
    /// Which answered.
    Acceptor,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Opener => Side::Acceptor,
            Side::Acceptor => Side::Opener,
        }
    }
}

/// A connection that carries one transfer.
pub(crate) struct Connection {
    ends: [End; 2],
    /// From the opener to the acceptor.
    key: FlowKey,
    /// Which side sends the data.
    sender: Side,
    /// What the opener sends first when it is the receiver of the data.
    request: Bytes,
    answered: bool,
    size: Option<Bytes>,
    traffic: usize,
    number: u64,
    /// Stands for the connection wherever chance meets one of its packets.
    identity: u64,
    follow: bool,
    started: Time,
    response: Option<Span>,
    lost: u32,
    /// Payload that had reached the receiver when the books were opened: at the
    /// start, or at the end of the warm-up.
    delivered_before: u64,
    /// Payload that had reached the receiver at the last progress, and when that was.
    delivered: u64,
    progressed: Time,
    longest_stall: Span,
}

struct End {
    endpoint: Endpoint,
    node: NodeId,
    /// The time of the event that will look at the timers; the far future when
    /// there is none. Timers are mostly pushed back: the event stays where it
    /// is, and when it comes too early it is set again.
    alarm: Time,
    /// Packets sent.
    sent: u64,
    closed: bool,
}

/// More than any run can carry, and far from overflow.
const ENDLESS: u64 = 1 << 60;

impl Connection {
    /// A connection of a transfer of `size` between `nodes` (from, to) that is
    /// to begin now. `name` is its source and number there; `serial` is how
    /// many connections there were before, and gives it ports and, with the
    /// seed, sequence numbers of its own.
    pub(crate) fn new(
        now: Time,
        transfer: &Transfer,
        nodes: (NodeId, NodeId),
        size: Option<Bytes>,
        name: (usize, u64),
        (serial, seed): (u64, u64),
    ) -> Connection {
        let (sender, request, opener, acceptor) = match transfer.opened_by {
            Opener::Sender => (Side::Opener, Bytes::ZERO, nodes.0, nodes.1),
            Opener::Receiver { request } => (Side::Acceptor, request, nodes.1, nodes.0),
        };
        // Ports from 1024 up; a million million connections have different pairs.
        const PORTS: u64 = 64_512;
        let port = |n: u64| 1_024 + (n % PORTS) as u16;
        let key = FlowKey::v4(
            address(opener),
            port(serial),
            address(acceptor),
            port(serial / PORTS),
            FlowKey::TCP,
        );
        let end = |endpoint, node| End {
            endpoint,
            node,
            alarm: Time::FAR_FUTURE,
            sent: 0,
            closed: false,
        };
        let first = mix(seed ^ mix(serial));
        let mut connection = Connection {
            ends: [
                end(Endpoint::connect(transfer.tcp.clone(), first as u32), opener),
                end(Endpoint::listen(transfer.tcp.clone(), (first >> 32) as u32), acceptor),
            ],
            key,
            sender,
            request,
            answered: false,
            size,
            traffic: name.0,
            number: name.1,
            identity: first,
            follow: transfer.follow,
            started: now,
            response: None,
            lost: 0,
            delivered_before: 0,
            delivered: 0,
            progressed: now,
            longest_stall: Span::ZERO,
        };
        match sender {
            Side::Opener => connection.write_all(Side::Opener),
            Side::Acceptor => connection.end(Side::Opener).endpoint.write(request.0),
        }
        connection
    }

    fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }

    /// The application writes the whole transfer and closes behind it.
    fn write_all(&mut self, side: Side) {
        let size = self.size;
        let end = self.end(side);
        end.endpoint.write(size.map_or(ENDLESS, |size| size.0));
        if size.is_some() {
            end.endpoint.close();
            end.closed = true;
        }
    }

    /// Lets one side send what it may.
    pub(crate) fn poll(&mut self, now: Time, side: Side, out: &mut Vec<Header>) {
        self.end(side).endpoint.poll(now, out);
    }

    /// A segment has come to one side, `marked` when a queue saw congestion.
    pub(crate) fn on_segment(
        &mut self,
        now: Time,
        side: Side,
        header: &Header,
        marked: bool,
        out: &mut Vec<Header>,
    ) {
        let end = &mut self.ends[side as usize];
        end.endpoint.on_segment(now, header, marked, out);
        if side != self.sender {
            let delivered = end.endpoint.delivered();
            if delivered > self.delivered {
                self.delivered = delivered;
                self.longest_stall = self.longest_stall.max(now.since(self.progressed));
                self.progressed = now;
                if self.size.is_some_and(|size| delivered >= size.0) && self.response.is_none() {
                    self.response = Some(now.since(self.started));
                }
            }
            if !end.closed && end.endpoint.peer_finished() {
                end.closed = true;
                end.endpoint.close();
                end.endpoint.poll(now, out);
            }
        } else if side == Side::Acceptor
            && !self.answered
            && end.endpoint.is_established()
            && end.endpoint.delivered() >= self.request.0
        {
            self.answered = true;
            self.write_all(Side::Acceptor);
            self.poll(now, Side::Acceptor, out);
        }
    }

    /// The event that looks at a side's timers has come; false when it is an
    /// old one that a nearer one has replaced.
    pub(crate) fn timer_came(&mut self, now: Time, side: Side, out: &mut Vec<Header>) -> bool {
        let end = self.end(side);
        if end.alarm != now {
            return false;
        }
        end.alarm = Time::FAR_FUTURE;
        if end.endpoint.next_timer().is_some_and(|at| at <= now) {
            end.endpoint.on_timer(now, out);
        }
        true
    }

    /// When a new event has to look at a side's timers; `None` when the one
    /// that is set comes early enough.
    pub(crate) fn timer_to_set(&mut self, side: Side) -> Option<Time> {
        let end = self.end(side);
        let at = end.endpoint.next_timer().filter(|at| *at < end.alarm)?;
        end.alarm = at;
        Some(at)
    }

    /// The warm-up is over: a transfer without end counts from now on.
    pub(crate) fn forget_warm_up(&mut self, now: Time) {
        if self.size.is_none() {
            (self.started, self.progressed) = (now, now);
            (self.longest_stall, self.lost) = (Span::ZERO, 0);
            self.delivered_before = self.delivered;
        }
    }

    /// Whether both sides are done, or one has given up.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.endpoint.is_closed())
            || self.ends.iter().any(|end| end.endpoint.has_failed())
    }

    /// From where and to where a side sends, and under which 5-tuple.
    pub(crate) fn route(&self, side: Side) -> (NodeId, NodeId, FlowKey) {
        let key = match side {
            Side::Opener => self.key,
            Side::Acceptor => self.key.reversed(),
        };
        (self.ends[side as usize].node, self.ends[side.other() as usize].node, key)
    }

    /// Numbers the next packet of a side: the n-th one of a connection draws the
    /// same lot under every discipline.
    pub(crate) fn next_lot(&mut self, side: Side) -> Lot {
        let end = self.end(side);
        end.sent += 1;
        let sent = end.sent;
        Lot::new(self.identity ^ side as u64, sent)
    }

    pub(crate) fn traffic(&self) -> usize {
        self.traffic
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn delivered(&self) -> Bytes {
        Bytes(self.delivered)
    }

    pub(crate) fn congestion_window(&self) -> Bytes {
        Bytes(self.ends[self.sender as usize].endpoint.congestion_window())
    }

    pub(crate) fn smoothed_rtt(&self) -> Option<Span> {
        self.ends[self.sender as usize].endpoint.smoothed_rtt()
    }

    /// The flow's row, at its end or while it is cut off.
    pub(crate) fn record(&self, now: Time, end: Option<Time>) -> FlowRecord {
        let sent = self.ends[self.sender as usize].endpoint.statistics();
        let finished = self.ends.iter().all(|end| end.endpoint.is_closed());
        let still = if self.response.is_none() { now.since(self.progressed) } else { Span::ZERO };
        FlowRecord {
            traffic: self.traffic,
            number: self.number,
            size: self.size,
            start: self.started,
            response: self.response,
            end: end.filter(|_| finished && self.response.is_some()),
            delivered: Bytes(self.delivered - self.delivered_before),
            lost: self.lost,
            late: None,
            retransmissions: sent.retransmissions as u32,
            timeouts: sent.timeouts,
            longest_stall: self.longest_stall.max(still),
            unloaded: None,
        }
    }
}

/// The connections of a run.
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
    opened: u64,
    /// Live connections whose progress is recorded.
    followed: Vec<ConnectionId>,
}

struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

impl Connections {
    pub(crate) fn new() -> Connections {
        Connections { slots: Vec::new(), free: Vec::new(), opened: 0, followed: Vec::new() }
    }

    /// Adds the connection that `make` gives for the next serial number.
    pub(crate) fn open(&mut self, make: impl FnOnce(u64) -> Connection) -> ConnectionId {
        let connection = Box::new(make(self.opened));
        self.opened += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            u32::try_from(self.slots.len() - 1).expect("under 2^32 connections at once")
        });
        let state = &mut self.slots[slot as usize];
        let id = ConnectionId { slot, generation: state.generation };
        if connection.follow {
            self.followed.push(id);
        }
        state.connection = Some(connection);
        id
    }

    /// The connection, unless it is over.
    pub(crate) fn live(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = &mut self.slots[id.slot as usize];
        if slot.generation != id.generation {
            return None;
        }
        slot.connection.as_deref_mut()
    }

    /// Counts a packet that was lost, if its connection is still there.
    pub(crate) fn count_loss(&mut self, id: ConnectionId) {
        if let Some(connection) = self.live(id) {
            connection.lost += 1;
        }
    }

    /// Takes a live connection out.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> Box<Connection> {
        let slot = &mut self.slots[id.slot as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        self.followed.retain(|followed| *followed != id);
        slot.connection.take().expect("only a live connection is removed")
    }

    /// The live connections whose progress is recorded, oldest first.
    pub(crate) fn followed(&self) -> impl Iterator<Item = &Connection> {
        self.followed.iter().filter_map(|id| self.slots[id.slot as usize].connection.as_deref())
    }

    /// All live connections, in no useful order.
    pub(crate) fn all_live(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().filter_map(|slot| slot.connection.as_deref_mut())
    }

    /// Takes all live connections out, by source and number.
    pub(crate) fn drain(&mut self) -> Vec<Connection> {
        let mut live: Vec<_> = self
            .slots
            .iter_mut()
            .filter_map(|slot| slot.connection.take().map(|boxed| *boxed))
            .collect();
        live.sort_by_key(|connection| (connection.traffic, connection.number));
        live
    }
}
