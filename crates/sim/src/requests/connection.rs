//! Connections of either leg, and their packets.

use std::sync::Arc;

use tidegate_core::{Bytes, Time};

use crate::lot::mix;
use crate::tcp::{Endpoint, Header, TcpConfig};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Which sent the SYN: the client, or the gateway towards a server.
    Opener,
    /// Which answered.
    Acceptor,
}

impl Side {
    pub(super) fn other(self) -> Side {
        match self {
            Side::Opener => Side::Acceptor,
            Side::Acceptor => Side::Opener,
        }
    }
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) connection: u64,
    /// Where it goes, even when its connection is over.
    pub(super) leg: Leg,
    pub(super) to: Side,
    pub(super) header: Header,
}

/// A connection between a client and the gateway, or the gateway and a server, or
/// without a gateway between a client and a server.
pub(super) struct Connection {
    pub(super) ends: [Endpoint; 2],
    /// The events that will look at the timers of either end.
    pub(super) alarms: [Time; 2],
    pub(super) exchange: u64,
    pub(super) leg: Leg,
}

/// Which half of the way, or all of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leg {
    /// Between this client and the gateway.
    Client(usize),
    /// Between the gateway and this server.
    Server {
        server: usize,
        /// Whether the server has answered.
        answered: bool,
        /// Whether the round trip of the handshake has been looked at.
        timed: bool,
    },
    /// Between this client and this server.
    Direct {
        client: usize,
        server: usize,
        /// Whether the server has answered.
        answered: bool,
    },
}

impl Connection {
    /// A connection that is to begin, on which the opener asks for an object.
    /// `seed` and its number among all give it sequence numbers of its own.
    pub(super) fn new(
        leg: Leg,
        exchange: u64,
        request: Bytes,
        configs: [Arc<TcpConfig>; 2],
        (seed, number): (u64, u64),
    ) -> Connection {
        let first = mix(seed ^ mix(number));
        let [opener, acceptor] = configs;
        let mut opener = Endpoint::connect(opener, first as u32);
        opener.write(request.0);
        let acceptor = Endpoint::listen(acceptor, (first >> 32) as u32);
        Connection { ends: [opener, acceptor], alarms: [Time::FAR_FUTURE; 2], exchange, leg }
    }
}
