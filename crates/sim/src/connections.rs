//! TCP connections: two endpoints on two hosts, and the programs that use them.
//!
//! Payload is counted, not carried. What the bytes of a gateway's users mean is in the
//! connection's [`Carrier`], which both programs see.
//!
//! The next connection reuses a slot, and the slot's generation distinguishes
//! late packets of the last connection from those of the next.

use std::sync::Arc;

use tidegate_core::{Dscp, FlowKey, Time};

use crate::carrier::Carrier;
use crate::lot::{Lot, mix};
use crate::requests::Wanted;
use crate::scenario::NodeId;
use crate::tcp::{Endpoint, Header, TcpConfig};

/// Names a connection, even after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId {
    slot: u32,
    generation: u32,
}

/// One side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The side that sent the SYN.
    Opener,
    /// The side that answered.
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

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Both ends have closed it.
    Closed,
    /// TCP gave it up.
    Failed,
    /// The program at this end broke it off, for a reason of its own.
    Aborted {
        by: Side,
        /// Its meaning for the programs at both ends.
        reason: u16,
    },
}

/// Which program of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppId {
    /// The sources of a scenario's traffic, on all of its hosts.
    Traffic,
    /// The browsers of a scenario's users, and the servers that they ask.
    Browsers,
    /// The players of a scenario's viewers, and the servers that they ask.
    Viewers,
    /// Calls that adapt, at both of their ends.
    Calls,
    /// The stub resolvers of hosts that look names up.
    Resolvers,
    /// The clients that ask for pages, each on a host of its own.
    Clients,
    /// Web servers, each on a host of its own.
    Servers,
    /// The request gateway.
    Proxy,
}

/// A connection to open; in pairs, the opener comes first.
pub(crate) struct Opening {
    /// The hosts.
    pub(crate) nodes: [NodeId; 2],
    /// How TCP behaves there.
    pub(crate) tcp: [Arc<TcpConfig>; 2],
    /// The programs that use it.
    pub(crate) apps: [AppId; 2],
    /// The class of its packets.
    pub(crate) class: u16,
    /// The codepoints of what they send.
    pub(crate) dscp: [Dscp; 2],
    /// The name that its programs use.
    pub(crate) tag: u64,
}

/// A connection between two hosts.
pub(crate) struct Connection {
    id: ConnectionId,
    ends: [End; 2],
    /// From the opener to the acceptor.
    key: FlowKey,
    class: u16,
    /// Identifies the connection wherever chance affects one of its packets.
    identity: u64,
    /// The name that its programs use.
    pub(crate) tag: u64,
    /// What a gateway, its clients and its servers say over it.
    pub(crate) carrier: Option<Carrier<Wanted>>,
    /// Packets lost on the way, in both directions.
    pub(crate) lost: u32,
}

struct End {
    endpoint: Endpoint,
    node: NodeId,
    app: AppId,
    dscp: Dscp,
    /// The time of the event that will check the timers; the far future if
    /// there is none. Timers are mostly postponed: the event keeps its time,
    /// and is scheduled again if it comes too early.
    alarm: Time,
    /// Packets sent.
    sent: u64,
}

impl Connection {
    /// A new connection. `serial` is the number of earlier connections; it
    /// gives the connection ports and, with the seed, sequence numbers of its
    /// own.
    pub(crate) fn new(opening: &Opening, id: ConnectionId, serial: u64, seed: u64) -> Connection {
        // Ports from 1024 up; a million million connections have different pairs.
        const PORTS: u64 = 64_512;
        let port = |n: u64| 1_024 + (n % PORTS) as u16;
        let [opener, acceptor] = opening.nodes;
        let key = FlowKey::v4(
            opener.address(),
            port(serial),
            acceptor.address(),
            port(serial / PORTS),
            FlowKey::TCP,
        );
        let identity = mix(seed ^ mix(serial));
        let [tcp, tcp_of_acceptor] = opening.tcp.clone();
        let end = |endpoint, side: Side| End {
            endpoint,
            node: opening.nodes[side as usize],
            app: opening.apps[side as usize],
            dscp: opening.dscp[side as usize],
            alarm: Time::FAR_FUTURE,
            sent: 0,
        };
        let first = identity as u32;
        let second = (identity >> 32) as u32;
        Connection {
            id,
            ends: [
                end(Endpoint::connect(tcp, first), Side::Opener),
                end(Endpoint::listen(tcp_of_acceptor, second), Side::Acceptor),
            ],
            key,
            class: opening.class,
            identity,
            tag: opening.tag,
            carrier: None,
            lost: 0,
        }
    }

    /// What is said over it, with the end of a side.
    pub(crate) fn saying(&mut self, side: Side) -> Option<(&mut Carrier<Wanted>, &mut Endpoint)> {
        let end = &mut self.ends[side as usize].endpoint;
        self.carrier.as_mut().map(|carrier| (carrier, end))
    }

    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    pub(crate) fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side as usize].endpoint
    }

    /// The program at a side.
    pub(crate) fn app(&self, side: Side) -> AppId {
        self.ends[side as usize].app
    }

    pub(crate) fn class(&self) -> u16 {
        self.class
    }

    /// The codepoint of what a side sends.
    pub(crate) fn dscp(&self, side: Side) -> Dscp {
        self.ends[side as usize].dscp
    }

    /// The event that checks a side's timers has come; false if it is an old
    /// one that an earlier one has replaced.
    pub(crate) fn timer_came(&mut self, now: Time, side: Side, out: &mut Vec<Header>) -> bool {
        let end = &mut self.ends[side as usize];
        if end.alarm != now {
            return false;
        }
        end.alarm = Time::FAR_FUTURE;
        if end.endpoint.next_timer().is_some_and(|at| at <= now) {
            end.endpoint.on_timer(now, out);
        }
        true
    }

    /// The time at which a new event has to check a side's timers; `None` if
    /// the scheduled one comes early enough.
    pub(crate) fn timer_to_set(&mut self, side: Side) -> Option<Time> {
        let end = &mut self.ends[side as usize];
        let at = end.endpoint.next_timer().filter(|at| *at < end.alarm)?;
        end.alarm = at;
        Some(at)
    }

    /// Whether both sides have finished, or one has given up.
    pub(crate) fn is_over(&self) -> Option<Over> {
        if self.ends.iter().all(|end| end.endpoint.is_closed()) {
            return Some(Over::Closed);
        }
        self.ends.iter().any(|end| end.endpoint.has_failed()).then_some(Over::Failed)
    }

    /// The hosts between which a side sends, and its 5-tuple.
    pub(crate) fn route(&self, side: Side) -> (NodeId, NodeId, FlowKey) {
        let key = match side {
            Side::Opener => self.key,
            Side::Acceptor => self.key.reversed(),
        };
        (self.ends[side as usize].node, self.ends[side.other() as usize].node, key)
    }

    /// Numbers the next packets of a side: the n-th one of a connection draws the same
    /// lot under every discipline.
    pub(crate) fn next_lots(
        &mut self,
        side: Side,
        count: usize,
    ) -> impl Iterator<Item = Lot> + use<> {
        let end = &mut self.ends[side as usize];
        let before = end.sent;
        end.sent += count as u64;
        let flow = self.identity ^ side as u64;
        (before + 1..=end.sent).map(move |number| Lot::new(flow, number))
    }
}

/// The connections of a run.
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
    opened: u64,
}

struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

impl Connections {
    pub(crate) fn new() -> Connections {
        Connections { slots: Vec::new(), free: Vec::new(), opened: 0 }
    }

    /// Adds a connection.
    pub(crate) fn open(&mut self, opening: &Opening, seed: u64) -> ConnectionId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            u32::try_from(self.slots.len() - 1).expect("under 2^32 connections at once")
        });
        let state = &mut self.slots[slot as usize];
        let id = ConnectionId { slot, generation: state.generation };
        state.connection = Some(Box::new(Connection::new(opening, id, self.opened, seed)));
        self.opened += 1;
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

    /// Counts a lost packet, if its connection still exists.
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
        slot.connection.take().expect("only a live connection is removed")
    }
}
