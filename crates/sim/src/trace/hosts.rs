//! Which side of a capture is the user's, so that its packets can be split
//! into up and down.
//!
//! A capture does not say where it was taken. Addresses that are only valid on
//! the user's own network tell it (private IPv4, carrier-grade NAT, unique
//! local IPv6, link-local). If no packet passes between such an address and
//! the rest of the world, the one address that takes part in most packets is
//! taken for the user's: a server's capture shows many clients, a client's
//! many servers. Who knows better says so with [`Hosts::new`].

use std::collections::BTreeSet;
use std::net::IpAddr;

use tidegate_core::FlowKey;

use super::Capture;

/// The addresses on the user's side of the access link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    addresses: BTreeSet<IpAddr>,
}

/// The way of a packet through the access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the user.
    Up,
    /// To the user.
    Down,
}

impl Hosts {
    /// Exactly these addresses.
    #[must_use]
    pub fn new(addresses: impl IntoIterator<Item = IpAddr>) -> Hosts {
        Hosts { addresses: addresses.into_iter().collect() }
    }

    /// The user's addresses, lowest first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.addresses.iter().copied()
    }

    /// Which way a packet of `flow` passes the access link: `None` when it
    /// stays on one side of it.
    #[must_use]
    pub fn direction(&self, flow: FlowKey) -> Option<Direction> {
        let _ = flow;
        unimplemented!("next commit")
    }
}

impl Capture {
    /// The hosts on the user's side, by the rules of this [module](self).
    #[must_use]
    pub fn local_hosts(&self) -> Hosts {
        unimplemented!("next commit")
    }
}
