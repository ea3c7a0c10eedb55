//! Link layers, and how each is removed from an IP packet.
//!
//! Only two things matter about a link layer: where the next layer begins and what
//! it is, which are two bytes at a known place. They are read here, in the same way
//! for all link layers; `etherparse` lacks PPPoE, loopback and the second Linux
//! "cooked" header, and refuses cooked headers of interfaces whose hardware type it
//! does not know.

use etherparse::ether_type;

use crate::error::FrameError;
use crate::{be16, be32};

/// The link layer with which a frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Link {
    /// Ethernet II, with any number of VLAN tags (IEEE 802.1Q and 802.1ad) and
    /// with PPPoE sessions (RFC 2516). The frame has neither preamble nor
    /// checksum.
    Ethernet,
    /// No link layer: the frame is an IP packet, as on a tun device.
    RawIp,
    /// Linux "cooked" capture, version 1: 16 bytes, of which the last two tell
    /// the protocol.
    LinuxCooked,
    /// Linux "cooked" capture, version 2: 20 bytes, of which the first two tell
    /// the protocol.
    LinuxCooked2,
    /// Loopback of BSD and macOS: 4 bytes of address family, in the byte order
    /// of the machine or of the network.
    Loopback,
}

impl Link {
    /// The link layer for a link type number of pcap and pcapng
    /// (<https://www.tcpdump.org/linktypes.html>).
    ///
    /// ```
    /// use tidegate_wire::Link;
    ///
    /// assert_eq!(Link::from_number(1), Some(Link::Ethernet));
    /// // USB.
    /// assert_eq!(Link::from_number(189), None);
    /// ```
    #[must_use]
    pub fn from_number(number: u32) -> Option<Link> {
        match number {
            1 => Some(Link::Ethernet),
            // 12 and 14 are what "raw" is called on some systems in older
            // files; 228 and 229 are raw IPv4 and raw IPv6.
            101 | 12 | 14 | 228 | 229 => Some(Link::RawIp),
            113 => Some(Link::LinuxCooked),
            276 => Some(Link::LinuxCooked2),
            0 | 108 => Some(Link::Loopback),
            _ => None,
        }
    }

    /// The link layers with their numbers, for error messages.
    pub const KNOWN: &str =
        "Ethernet (1), raw IP (101), Linux cooked (113, 276) or loopback (0, 108)";

    /// Removes the link layer.
    pub(crate) fn network_layer(self, frame: &[u8]) -> Result<&[u8], FrameError> {
        // The length of the header, and where in it the protocol is.
        let (part, length, at) = match self {
            Link::RawIp => return Ok(frame),
            Link::Loopback => return loopback(frame),
            Link::Ethernet => ("Ethernet header", 14, 12),
            Link::LinuxCooked => ("Linux cooked header", 16, 14),
            Link::LinuxCooked2 => ("Linux cooked header", 20, 0),
        };
        let (header, rest) = split(frame, length, part)?;
        ethernet_payload(be16(header, at), rest)
    }
}

/// Removes what may stand between an EtherType and an IP packet.
fn ethernet_payload(mut protocol: u16, mut rest: &[u8]) -> Result<&[u8], FrameError> {
    const IPV4: u16 = ether_type::IPV4.0;
    const IPV6: u16 = ether_type::IPV6.0;
    const CUSTOMER_TAG: u16 = ether_type::VLAN_TAGGED_FRAME.0;
    const SERVICE_TAG: u16 = ether_type::PROVIDER_BRIDGING.0;
    // The type of stacked tags before 802.1ad.
    const DOUBLE_TAG: u16 = ether_type::VLAN_DOUBLE_TAGGED_FRAME.0;
    const PPPOE_SESSION: u16 = 0x8864;
    loop {
        match protocol {
            IPV4 | IPV6 => return Ok(rest),
            // Each turn removes bytes, so a tower of tags comes to an end.
            CUSTOMER_TAG | SERVICE_TAG | DOUBLE_TAG => {
                let (tag, inner) = split(rest, 4, "VLAN tag")?;
                (protocol, rest) = (be16(tag, 2), inner);
            }
            PPPOE_SESSION => return pppoe_payload(rest),
            other => return Err(FrameError::EtherType(other)),
        }
    }
}

/// Removes the six bytes of a PPPoE session (RFC 2516 section 4) and the two of
/// PPP. A compressed protocol field, which RFC 2516 section 7 advises against, is
/// read as another protocol. The header's length is not used, because the IP header
/// has its own.
fn pppoe_payload(session: &[u8]) -> Result<&[u8], FrameError> {
    let (header, rest) = split(session, 8, "PPPoE session header")?;
    match be16(header, 6) {
        0x0021 | 0x0057 => Ok(rest),
        other => Err(FrameError::PppProtocol(other)),
    }
}

fn loopback(frame: &[u8]) -> Result<&[u8], FrameError> {
    let (family, rest) = split(frame, 4, "loopback header")?;
    // AF_INET, and AF_INET6 of Linux, NetBSD, FreeBSD and macOS. They are all below
    // 256: the right byte order is the one that gives the smaller number.
    let family = be32(family, 0);
    match family.min(family.swap_bytes()) {
        2 | 10 | 24 | 28 | 30 => Ok(rest),
        other => Err(FrameError::AddressFamily(other)),
    }
}

fn split<'a>(
    bytes: &'a [u8],
    length: usize,
    part: &'static str,
) -> Result<(&'a [u8], &'a [u8]), FrameError> {
    let short = FrameError::Short { part, found: bytes.len() as u64, expected: length as u64 };
    bytes.split_at_checked(length).ok_or(short)
}
