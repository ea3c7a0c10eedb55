//! Frames composed from random layers, byte by byte from the formats' descriptions,
//! with what should be read from them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::{Bytes, Dscp, Ecn, FlowKey, TcpFacts};
use tidegate_wire::{Headers, Link};

/// A whole frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) link: Link,
    pub(crate) bytes: Vec<u8>,
    /// What should be read.
    pub(crate) headers: Headers,
}

impl Frame {
    /// Where the IP packet ends, and padding begins.
    pub(crate) fn end(&self) -> usize {
        self.headers.link_header + self.headers.ip_length.0 as usize
    }

    pub(crate) fn is_v4(&self) -> bool {
        self.bytes[self.headers.link_header] >> 4 == 4
    }
}

/// The sum of a header's words in ones' complement (RFC 1071), the slow way.
/// With the checksum in it, it is 0xffff when that is right.
pub(crate) fn sum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What IP carries: its protocol, its bytes, and what should be read of them.
#[derive(Clone, Debug)]
struct Transport {
    protocol: u8,
    bytes: Vec<u8>,
    ports: (u16, u16),
    tcp: Option<TcpFacts>,
}

fn transport() -> impl Strategy<Value = Transport> {
    let with_ports =
        (select(vec![17_u8, 33, 132, 136]), any::<(u16, u16)>(), vec(any::<u8>(), 4..60)).prop_map(
            |(protocol, ports, rest)| Transport {
                protocol,
                bytes: [&ports.0.to_be_bytes()[..], &ports.1.to_be_bytes(), &rest].concat(),
                ports,
                tcp: None,
            },
        );
    // ICMP, IPv4 and IPv6 in a tunnel, GRE, ESP, ICMPv6, no next header, OSPF.
    let others = (select(vec![1_u8, 4, 41, 47, 50, 58, 59, 89]), vec(any::<u8>(), 0..60))
        .prop_map(|(protocol, bytes)| Transport { protocol, bytes, ports: (0, 0), tcp: None });
    prop_oneof![3 => tcp(), 2 => with_ports, 1 => others]
}

/// Options, and whether a plain header may have them.
const OPTIONS: [(&[u8], bool); 8] = [
    (&[], true),
    (&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8], true),
    (&[8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 0, 5], true),
    (&[1, 1, 1, 0], true),
    (&[2, 4, 5, 180], false),
    (&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2], false),
    (&[1, 1, 8, 9, 1, 2, 3, 4, 5, 6, 7, 1], false),
    (&[1, 1, 1, 8], false),
];

fn tcp() -> impl Strategy<Value = Transport> {
    let flags = prop_oneof![Just(0x10_u16), 0..0x1000_u16];
    let parts = (
        any::<(u16, u16)>(),
        any::<(u32, u32)>(),
        flags,
        select(&OPTIONS[..]),
        vec(any::<u8>(), 0..60),
    );
    parts.prop_map(|(ports, (sequence, ack), flags, (options, harmless), payload)| {
        let words = (5 + options.len() / 4) as u16;
        let bytes = [
            &ports.0.to_be_bytes()[..],
            &ports.1.to_be_bytes(),
            &sequence.to_be_bytes(),
            &ack.to_be_bytes(),
            &(words << 12 | flags).to_be_bytes(),
            &[0xff; 6],
            options,
            &payload,
        ]
        .concat();
        let tcp = Some(TcpFacts {
            sequence,
            acknowledgement: (flags & 0x10 != 0).then_some(ack),
            payload: payload.len() as u32,
            syn: flags & 2 != 0,
            fin: flags & 1 != 0,
            plain: flags == 0x10 && harmless,
        });
        Transport { protocol: 6, bytes, ports, tcp }
    })
}

/// An authentication header of 12 bytes and an integrity value (RFC 4302).
fn authentication(next: u8, words: u8) -> Vec<u8> {
    let mut header = vec![next, words + 1, 0, 0];
    header.resize(12 + 4 * usize::from(words), 0xa5);
    header
}

/// An IP packet and what should be read of it.
type Packet = (Vec<u8>, Headers);

fn headers(ends: (SocketAddr, SocketAddr), octet: u8, length: usize) -> Headers {
    Headers {
        flow: FlowKey::new(ends.0, ends.1, 0),
        ip_length: Bytes(length as u64),
        link_header: 0,
        fragment: false,
        dscp: Dscp::of_octet(octet),
        ecn: Ecn::of_octet(octet),
        tcp: None,
    }
}

/// What should be read when `transport` is reached, or of a piece of it whose
/// header says that it is of `protocol`.
fn carrying(headers: Headers, transport: &Transport, piece_of: Option<u8>) -> Headers {
    let (mut source, mut destination) = (headers.flow.source(), headers.flow.destination());
    let flow = |source, destination, protocol| FlowKey::new(source, destination, protocol);
    if let Some(protocol) = piece_of {
        return Headers { flow: flow(source, destination, protocol), fragment: true, ..headers };
    }
    source.set_port(transport.ports.0);
    destination.set_port(transport.ports.1);
    let flow = flow(source, destination, transport.protocol);
    Headers { flow, tcp: transport.tcp, ..headers }
}

fn ipv4() -> impl Strategy<Value = Packet> {
    let ends = any::<(Ipv4Addr, Ipv4Addr)>();
    // More fragments, and the offset; most packets are whole.
    let fragment = prop_oneof![3 => Just((false, 0)), 1 => any::<(bool, u16)>()];
    let parts = (ends, any::<u8>(), 0..=10_usize, option::of(0..5_u8), fragment, transport());
    parts.prop_map(|((from, to), octet, options, auth, (more, offset), transport)| {
        let mut payload = transport.bytes.clone();
        let mut protocol = transport.protocol;
        if let Some(words) = auth {
            payload = [authentication(protocol, words), payload].concat();
            protocol = 51;
        }
        let offset = offset & 0x1fff;
        let header_length = 20 + 4 * options;
        let mut packet = vec![0x40 | (header_length / 4) as u8, octet];
        packet.extend(((header_length + payload.len()) as u16).to_be_bytes());
        packet.extend([0x12, 0x34]);
        packet.extend((u16::from(more) << 13 | offset).to_be_bytes());
        packet.extend([64, protocol, 0, 0]);
        packet.extend(from.octets());
        packet.extend(to.octets());
        packet.resize(header_length, 1);
        let checksum = !sum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(payload);
        let ends = ((from, 0).into(), (to, 0).into());
        let headers = headers(ends, octet, packet.len());
        let piece_of = (more || offset > 0).then_some(protocol);
        (packet, carrying(headers, &transport, piece_of))
    })
}

/// An extension header of IPv6.
#[derive(Clone, Copy, Debug)]
enum Extension {
    /// Options or routing: its number, and its length in eights of bytes, less one.
    Raw(u8, u8),
    Authentication(u8),
    /// More fragments, and the offset.
    Fragment(bool, u16),
}

fn extension() -> impl Strategy<Value = Extension> {
    let whole = Extension::Fragment(false, 0);
    prop_oneof![
        (select(vec![43_u8, 60]), 0..3_u8).prop_map(|(kind, eights)| Extension::Raw(kind, eights)),
        (0..5_u8).prop_map(Extension::Authentication),
        Just(whole),
        any::<(bool, u16)>().prop_map(|(more, offset)| Extension::Fragment(more, offset & 0x1fff)),
    ]
}

fn ipv6() -> impl Strategy<Value = Packet> {
    let ends = any::<(Ipv6Addr, Ipv6Addr)>();
    let label = 0..1_u32 << 20;
    let parts =
        (ends, any::<u8>(), label, option::of(0..3_u8), vec(extension(), 0..4), transport());
    parts
        .prop_map(|((from, to), octet, label, hop_by_hop, extensions, transport)| {
            let (mut payload, mut next) = (transport.bytes.clone(), transport.protocol);
            let mut piece_of = None;
            // From the innermost out: each header tells what comes after it.
            for extension in extensions.into_iter().rev() {
                let (header, kind) = match extension {
                    Extension::Raw(kind, eights) => (raw_extension(next, eights), kind),
                    Extension::Authentication(words) => (authentication(next, words), 51),
                    Extension::Fragment(more, offset) => {
                        if more || offset > 0 {
                            piece_of = Some(next);
                        }
                        let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
                        (vec![next, 0, high, low, 1, 2, 3, 4], 44)
                    }
                };
                payload = [header, payload].concat();
                next = kind;
            }
            if let Some(eights) = hop_by_hop {
                payload = [raw_extension(next, eights), payload].concat();
                next = 0;
            }
            let mut packet = (6 << 28 | u32::from(octet) << 20 | label).to_be_bytes().to_vec();
            packet.extend((payload.len() as u16).to_be_bytes());
            packet.extend([next, 64]);
            packet.extend(from.octets());
            packet.extend(to.octets());
            packet.extend(payload);
            let ends = ((from, 0).into(), (to, 0).into());
            let headers = headers(ends, octet, packet.len());
            (packet, carrying(headers, &transport, piece_of))
        })
        // No payload and yet a next header means that the length is not stated.
        .prop_filter("the length is stated", |(packet, _)| packet.len() > 40 || packet[6] == 59)
}

fn raw_extension(next: u8, eights: u8) -> Vec<u8> {
    let mut header = vec![next, eights];
    header.resize(8 * (usize::from(eights) + 1), 1);
    header
}

/// A frame of any link layer, with VLAN tags, PPPoE and padding where there may be.
pub(crate) fn frames() -> impl Strategy<Value = Frame> {
    let links =
        vec![Link::Ethernet, Link::RawIp, Link::LinuxCooked, Link::LinuxCooked2, Link::Loopback];
    let link = prop_oneof![Just(Link::Ethernet), select(links)];
    let tags = vec((select(vec![0x8100_u16, 0x88a8, 0x9100]), any::<u16>()), 0..4);
    let packet = prop_oneof![ipv4(), ipv6()];
    let parts = (link, tags, any::<bool>(), packet, vec(any::<u8>(), 0..20));
    parts.prop_map(|(link, tags, pppoe, (packet, headers), padding)| {
        let is_v4 = packet[0] >> 4 == 4;
        let mut ether_type: u16 = if is_v4 { 0x0800 } else { 0x86dd };
        let mut front = Vec::new();
        if pppoe {
            let protocol: u16 = if is_v4 { 0x0021 } else { 0x0057 };
            front.extend([0x11, 0, 0, 7]);
            front.extend((packet.len() as u16 + 2).to_be_bytes());
            front.extend(protocol.to_be_bytes());
            ether_type = 0x8864;
        }
        for (kind, tag) in tags {
            front = [&tag.to_be_bytes()[..], &ether_type.to_be_bytes(), &front].concat();
            ether_type = kind;
        }
        let ether_type = ether_type.to_be_bytes();
        let front = match link {
            Link::Ethernet => [&[2; 12], &ether_type[..], &front].concat(),
            Link::LinuxCooked => [&[0; 14], &ether_type[..], &front].concat(),
            Link::LinuxCooked2 => [&ether_type[..], &[0; 18], &front].concat(),
            // In both byte orders.
            Link::Loopback if is_v4 => vec![0, 0, 0, 2],
            Link::Loopback => vec![30, 0, 0, 0],
            _ => Vec::new(),
        };
        let headers = Headers { link_header: front.len(), ..headers };
        Frame { link, bytes: [front, packet, padding].concat(), headers }
    })
}
