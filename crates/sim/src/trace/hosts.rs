//! Which side of a capture is the user's, so that its packets can be divided into
//! up and down.
//!
//! A capture does not say where it was taken. These rules apply to IPv4 and IPv6
//! separately:
//!
//! 1. Addresses that are valid only on a user's own network reveal it (private
//!    IPv4, unique local IPv6): if packets pass between such addresses and the rest
//!    of the world, these addresses are the user's.
//! 2. Otherwise the address that takes part in most packets is the user's: a client
//!    talks to many servers, a server to many clients. Of two that take part in
//!    equally many, it is the one that spoke first. For IPv6, the same rule applies
//!    to networks (/64), of which a household has one, in which a host has several
//!    addresses.
//!
//! Callers that know better use [`Hosts::new`] or [`Hosts::within`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use tidegate_core::FlowKey;

use super::Capture;

/// The addresses on the user's side of the access link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    addresses: BTreeSet<IpAddr>,
    /// Whole networks beside them.
    networks: Vec<IpNet>,
}

/// The direction of a packet on the access link.
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
        Hosts { addresses: addresses.into_iter().collect(), networks: Vec::new() }
    }

    /// All addresses of these networks.
    ///
    /// ```
    /// use tidegate_core::FlowKey;
    /// use tidegate_sim::trace::{Direction, Hosts};
    ///
    /// let hosts = Hosts::within(["192.0.2.0/24".parse()?]);
    /// let flow = FlowKey::v4([192, 0, 2, 9], 50_000, [198, 51, 100, 7], 443, FlowKey::TCP);
    /// assert_eq!(hosts.direction(flow), Some(Direction::Up));
    /// # Ok::<(), ipnet::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn within(networks: impl IntoIterator<Item = IpNet>) -> Hosts {
        Hosts { addresses: BTreeSet::new(), networks: networks.into_iter().collect() }
    }

    /// Whether an address is on the user's side.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
            || self.networks.iter().any(|network| network.contains(&address))
    }

    /// The user's addresses that are named one by one, lowest first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.addresses.iter().copied()
    }

    /// The direction in which a packet of `flow` passes the access link: `None` if
    /// it stays on one side of it, as multicast and link-local traffic does.
    #[must_use]
    pub fn direction(&self, flow: FlowKey) -> Option<Direction> {
        let (source, destination) = ends(flow)?;
        match (self.contains(source), self.contains(destination)) {
            (true, false) => Some(Direction::Up),
            (false, true) => Some(Direction::Down),
            _ => None,
        }
    }
}

/// An address, or the prefix of a network such as `192.0.2.0/24`.
///
/// # Errors
/// When it is neither.
pub fn network_of(text: &str) -> Result<IpNet, ipnet::AddrParseError> {
    text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse())
}

impl Capture {
    /// The hosts on the user's side, by the rules of [`hosts`](self).
    #[must_use]
    pub fn local_hosts(&self) -> Hosts {
        let family = |v4: bool| {
            let ends = self.packets.iter().filter_map(|packet| ends(packet.flow));
            user_side(&ends.filter(|(source, _)| source.is_ipv4() == v4).collect::<Vec<_>>())
        };
        let mut addresses = family(true);
        addresses.append(&mut family(false));
        Hosts { addresses, networks: Vec::new() }
    }
}

/// Source and destination of a packet that can pass an access link at all.
fn ends(flow: FlowKey) -> Option<(IpAddr, IpAddr)> {
    let (source, destination) = (flow.source().ip(), flow.destination().ip());
    (!stays(source) && !stays(destination)).then_some((source, destination))
}

/// Packets from or to this address never leave the local network.
fn stays(address: IpAddr) -> bool {
    let by_family = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    by_family || address.is_multicast() || address.is_unspecified() || address.is_loopback()
}

/// The address is valid only on somebody's own network.
fn is_private(address: IpAddr) -> bool {
    match address {
        // 100.64.0.0/10 is not included: the addresses behind a carrier's NAT are
        // the user's in a phone, and somebody else's to a home behind a router.
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => v6.is_unique_local(),
    }
}

/// The user's addresses among the two ends of each packet of one family.
fn user_side(packets: &[(IpAddr, IpAddr)]) -> BTreeSet<IpAddr> {
    let seen = || packets.iter().flat_map(|&(source, destination)| [source, destination]);
    if packets.iter().any(|&(source, destination)| is_private(source) != is_private(destination)) {
        return seen().filter(|address| is_private(*address)).collect();
    }
    // The packets of each network, and the index of the first.
    let mut activity: BTreeMap<IpAddr, (usize, usize)> = BTreeMap::new();
    for (place, address) in seen().enumerate() {
        activity.entry(network(address)).or_insert((0, place)).0 += 1;
    }
    let busiest = activity
        .into_iter()
        .max_by_key(|&(_, (packets, first))| (packets, std::cmp::Reverse(first)))
        .map(|(network, _)| network);
    seen().filter(|address| Some(network(*address)) == busiest).collect()
}

/// What stands for the household of `address`.
fn network(address: IpAddr) -> IpAddr {
    const PREFIX: u128 = !0 << 64;
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & PREFIX).into(),
    }
}
