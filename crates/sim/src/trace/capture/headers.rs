//! From a captured frame to a packet's facts: link layer, IP, ports, TCP.
//!
//! A frame may be cut anywhere (the capture's snapshot length). The IP header
//! must be whole, for the size is in it; of what follows, as much is used as
//! is there.

use etherparse::{Ipv6ExtensionSlice, LaxIpSlice, ip_number};
use tidegate_core::{Bytes, Ecn, FlowKey, TcpFacts, Time};

use super::CapturedPacket;

/// A link layer that can be taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    RawIp,
    /// Linux "cooked" capture, version 1: 16 bytes, the last two the protocol.
    LinuxCooked,
    /// Version 2: 20 bytes, the first two the protocol.
    LinuxCooked2,
    /// BSD and macOS loopback: 4 bytes of address family, in the byte order of
    /// the machine or of the network.
    Loopback,
}

impl Link {
    /// The link layer of a link type number of pcap and pcapng
    /// (<https://www.tcpdump.org/linktypes.html>).
    pub(super) fn from_number(number: u32) -> Option<Link> {
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

    /// For error messages.
    pub(super) const KNOWN: &str =
        "Ethernet (1), raw IP (101), Linux cooked (113, 276) or loopback (0, 108)";
}

/// Why a frame gives no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPacket {
    NonIp,
    Malformed,
}

mod ether_type {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const IPV6: u16 = 0x86dd;
    /// 802.1Q, 802.1ad, and what QinQ was before it was standardised.
    pub(super) const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
    pub(super) const PPPOE_SESSION: u16 = 0x8864;
}

/// The packet in `frame`, at time zero. `wire_length` is the whole frame's.
pub(super) fn read(link: Link, frame: &[u8], wire_length: u64) -> Result<CapturedPacket, NoPacket> {
    let packet = network_layer(link, frame)?;
    let link_bytes = (frame.len() - packet.len()) as u64;
    ip(packet, wire_length.saturating_sub(link_bytes))
}

/// Takes off the link layer.
fn network_layer(link: Link, frame: &[u8]) -> Result<&[u8], NoPacket> {
    let (mut protocol, mut rest) = match link {
        Link::RawIp => return Ok(frame),
        Link::Loopback => {
            let (family, rest) = split(frame, 4)?;
            let family = be32(family, 0);
            // AF_INET, and AF_INET6 of Linux, NetBSD, FreeBSD and macOS. They
            // are all below 256: the right byte order is the one that gives less.
            return match family.min(family.swap_bytes()) {
                2 | 10 | 24 | 28 | 30 => Ok(rest),
                _ => Err(NoPacket::NonIp),
            };
        }
        Link::Ethernet => split(frame, 14).map(|(header, rest)| (be16(header, 12), rest))?,
        Link::LinuxCooked => split(frame, 16).map(|(header, rest)| (be16(header, 14), rest))?,
        Link::LinuxCooked2 => split(frame, 20).map(|(header, rest)| (be16(header, 0), rest))?,
    };
    loop {
        // Each turn takes bytes off, so a tower of tags comes to its end.
        match protocol {
            ether_type::IPV4 | ether_type::IPV6 => return Ok(rest),
            tag if ether_type::VLAN.contains(&tag) => {
                let (header, inner) = split(rest, 4)?;
                (protocol, rest) = (be16(header, 2), inner);
            }
            ether_type::PPPOE_SESSION => {
                let (header, inner) = split(rest, 8)?;
                // The protocol numbers of PPP for IPv4 and IPv6.
                return match be16(header, 6) {
                    0x0021 | 0x0057 => Ok(inner),
                    _ => Err(NoPacket::NonIp),
                };
            }
            _ => return Err(NoPacket::NonIp),
        }
    }
}

/// Reads an IP packet that was `wire_length` bytes long on the wire, or longer
/// by the padding of short Ethernet frames.
fn ip(packet: &[u8], wire_length: u64) -> Result<CapturedPacket, NoPacket> {
    let (slice, _cut_extension) =
        LaxIpSlice::from_slice(packet).map_err(|_| NoPacket::Malformed)?;
    let (header_length, stated_length, ecn, mut protocol) = match &slice {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            let extension = v4.extensions().auth.map_or(0, |auth| auth.slice().len());
            let header_length = header.slice().len() + extension;
            (header_length, u64::from(header.total_len()), header.ecn(), v4.payload_ip_number())
        }
        LaxIpSlice::Ipv6(v6) => {
            let header = v6.header();
            let fixed = header.slice().len();
            let stated = match header.payload_length() {
                0 if header.next_header() != ip_number::IPV6_NO_NEXT_HEADER => 0,
                payload => fixed as u64 + u64::from(payload),
            };
            let header_length = fixed + v6.extensions().slice().len();
            (header_length, stated, header.ecn(), v6.payload().ip_number)
        }
    };
    let size = if stated_length == 0 { wire_length } else { stated_length };
    // Too short for its own headers; where the headers are cut by the snapshot
    // length, what is there is shorter still.
    let Some(payload_length) = size.checked_sub(header_length as u64) else {
        return Err(NoPacket::Malformed);
    };

    let fragment = slice.is_fragmenting_payload();
    let payload = if fragment { &[] } else { slice.payload().payload };
    if let (true, LaxIpSlice::Ipv6(v6)) = (fragment, &slice) {
        // Later fragments hold no extension headers, though the bytes may look
        // like some: the fragment header's own word is the same in all.
        for extension in v6.extensions().clone() {
            if let Ipv6ExtensionSlice::Fragment(header) = extension {
                protocol = header.next_header();
                break;
            }
        }
    }
    let (source_port, destination_port) = ports(protocol.0, payload);
    Ok(CapturedPacket {
        at: Time::ZERO,
        flow: FlowKey::new(
            (slice.source_addr(), source_port).into(),
            (slice.destination_addr(), destination_port).into(),
            protocol.0,
        ),
        size: Bytes(size),
        tcp: (protocol == ip_number::TCP).then(|| tcp(payload, payload_length)).flatten(),
        ecn: Ecn::of_octet(ecn.value()),
    })
}

/// TCP, UDP, DCCP, SCTP and UDP-Lite all begin with the two ports.
fn ports(protocol: u8, transport: &[u8]) -> (u16, u16) {
    match (protocol, transport) {
        (FlowKey::TCP | FlowKey::UDP | 33 | 132 | 136, [_, _, _, _, ..]) => {
            (be16(transport, 0), be16(transport, 2))
        }
        _ => (0, 0),
    }
}

/// Reads the fixed part of a TCP header up to the flags. The rest may be cut:
/// a parser for whole headers would lose the captures that were cut to the
/// usual 54 or 64 bytes of a frame.
fn tcp(segment: &[u8], length: u64) -> Option<TcpFacts> {
    const FLAGS: usize = 13;
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let flags = *segment.get(FLAGS)?;
    let header_length = u64::from(segment[12] >> 4) * 4;
    if header_length < 20 {
        return None;
    }
    Some(TcpFacts {
        sequence: be32(segment, 4),
        acknowledgement: (flags & ACK != 0).then(|| be32(segment, 8)),
        payload: u32::try_from(length.checked_sub(header_length)?).ok()?,
        syn: flags & SYN != 0,
        fin: flags & FIN != 0,
        // The low bits of the octet before the flags are flags too, or reserved.
        plain: flags == ACK && segment[12] & 0x0f == 0 && has_no_options_but_timestamps(segment),
    })
}

/// Also false when the options are cut off.
fn has_no_options_but_timestamps(segment: &[u8]) -> bool {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    // RFC 7323 section 3.
    const TIMESTAMPS: u8 = 8;
    const TIMESTAMPS_LENGTH: u8 = 10;
    let Some(mut options) = segment.get(20..usize::from(segment[12] >> 4) * 4) else {
        return false;
    };
    loop {
        options = match options {
            [] | [END, ..] => return true,
            [NOTHING, rest @ ..] => rest,
            [TIMESTAMPS, TIMESTAMPS_LENGTH, _, _, _, _, _, _, _, _, rest @ ..] => rest,
            _ => return false,
        };
    }
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), NoPacket> {
    bytes.split_at_checked(at).ok_or(NoPacket::Malformed)
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a header with these flags and options.
    fn is_plain(flags: u8, options: &[u8], cut: usize) -> bool {
        let length = 20 + options.len();
        let mut segment = vec![0; length];
        segment[12] = (length as u8 / 4) << 4;
        segment[13] = flags;
        segment[20..].copy_from_slice(options);
        let facts = tcp(&segment[..length - cut], length as u64).unwrap();
        facts.plain
    }

    #[test]
    fn plain_acknowledgements_have_no_options_but_timestamps() {
        let timestamps = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
        assert!(is_plain(0x10, &[], 0));
        assert!(is_plain(0x10, &timestamps, 0));
        assert!(is_plain(0x10, &[1, 1, 1, 0], 0));
        // Flags with PSH or ECE, a SACK block, options that are cut off.
        assert!(!is_plain(0x18, &[], 0));
        assert!(!is_plain(0x50, &[], 0));
        assert!(!is_plain(0x10, &[1, 1, 5, 10, 1, 2, 3, 4, 5, 6, 7, 8], 0));
        assert!(!is_plain(0x10, &timestamps, 1));
    }
}
