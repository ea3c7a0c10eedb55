//! A connection of a browser, over TCP or over QUIC.

use std::collections::BTreeSet;

use super::http3::Streams;
use crate::apps::trouble::Trouble;
use crate::carrier::Carrier;
use crate::connections::ConnectionId;
use crate::quic::QuicId;
use crate::simulation::World;

/// What carries objects.
pub(super) enum Way {
    Tcp { connection: ConnectionId, carrier: Carrier<()> },
    Quic { connection: QuicId, streams: Streams },
}

impl Way {
    /// The objects that it carries or is to carry.
    pub(super) fn objects(&mut self) -> &mut BTreeSet<usize> {
        match self {
            Way::Tcp { carrier, .. } => &mut carrier.objects,
            Way::Quic { streams, .. } => &mut streams.objects,
        }
    }

    /// How many objects it has been given.
    pub(super) fn given(&self) -> u64 {
        match self {
            Way::Tcp { carrier, .. } => carrier.given,
            Way::Quic { streams, .. } => streams.given,
        }
    }

    /// What it has lost and repeated, unless it is over.
    pub(super) fn trouble(&self, world: &mut World<'_>) -> Option<Trouble> {
        match self {
            Way::Tcp { connection, .. } => world.connections.live(*connection).map(Trouble::of),
            Way::Quic { connection, .. } => world.quic.live(*connection).map(Trouble::of_quic),
        }
    }
}
