//! What a discipline sees of a packet: its size, its flow, its class, and the
//! few facts of the TCP header that some disciplines use. The payload stays
//! with the owner, who finds it again by [`Packet::handle`].

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::units::{Bytes, Time};

/// Identity of a flow: the 5-tuple (`EFD section 3.1`), for IPv4 and IPv6.
///
/// An IPv4 address is held in its IPv4-mapped IPv6 form, so that the key has
/// one shape and hashes in one pass. It has no padding: 37 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    source: [u8; 16],
    destination: [u8; 16],
    source_port: [u8; 2],
    destination_port: [u8; 2],
    protocol: u8,
}

impl FlowKey {
    /// IANA protocol number of TCP.
    pub const TCP: u8 = 6;
    /// IANA protocol number of UDP.
    pub const UDP: u8 = 17;

    /// The key of packets from `source` to `destination`. Protocols without
    /// ports use zero for both.
    #[must_use]
    pub fn new(source: SocketAddr, destination: SocketAddr, protocol: u8) -> FlowKey {
        let mapped = |address: IpAddr| match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        FlowKey {
            source: mapped(source.ip()),
            destination: mapped(destination.ip()),
            source_port: source.port().to_be_bytes(),
            destination_port: destination.port().to_be_bytes(),
            protocol,
        }
    }

    /// The key of an IPv4 flow, from its parts.
    #[must_use]
    pub fn v4(
        source: [u8; 4],
        source_port: u16,
        destination: [u8; 4],
        destination_port: u16,
        protocol: u8,
    ) -> FlowKey {
        FlowKey::new(
            (Ipv4Addr::from(source), source_port).into(),
            (Ipv4Addr::from(destination), destination_port).into(),
            protocol,
        )
    }

    /// The key of the opposite direction.
    #[must_use]
    pub fn reversed(self) -> FlowKey {
        FlowKey {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            protocol: self.protocol,
        }
    }

    /// The key of all that the flow's source sends: its address and nothing else.
    #[must_use]
    pub fn source_host(self) -> FlowKey {
        FlowKey { source: self.source, ..FlowKey::NOTHING }
    }

    /// The key of all that is sent to the flow's destination.
    #[must_use]
    pub fn destination_host(self) -> FlowKey {
        FlowKey { destination: self.destination, ..FlowKey::NOTHING }
    }

    /// The key of all that the flow's source sends to its destination.
    #[must_use]
    pub fn host_pair(self) -> FlowKey {
        FlowKey { destination: self.destination, ..self.source_host() }
    }

    pub(crate) const NOTHING: FlowKey = FlowKey {
        source: [0; 16],
        destination: [0; 16],
        source_port: [0; 2],
        destination_port: [0; 2],
        protocol: 0,
    };

    /// Feeds the whole key to a hash in five words, without the length
    /// prefixes that the derived [`Hash`](std::hash::Hash) writes.
    pub(crate) fn write_to(&self, hasher: &mut impl std::hash::Hasher) {
        hasher.write(&self.source);
        hasher.write(&self.destination);
        let ports = [self.source_port, self.destination_port].map(u16::from_be_bytes);
        hasher.write_u64(
            u64::from(ports[0]) | u64::from(ports[1]) << 16 | u64::from(self.protocol) << 32,
        );
    }

    /// Where the flow's packets come from.
    #[must_use]
    pub fn source(self) -> SocketAddr {
        socket_address(self.source, self.source_port)
    }

    /// Where the flow's packets go to.
    #[must_use]
    pub fn destination(self) -> SocketAddr {
        socket_address(self.destination, self.destination_port)
    }

    /// IANA protocol number.
    #[must_use]
    pub fn protocol(self) -> u8 {
        self.protocol
    }
}

fn socket_address(address: [u8; 16], port: [u8; 2]) -> SocketAddr {
    (Ipv6Addr::from(address).to_canonical(), u16::from_be_bytes(port)).into()
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            FlowKey::TCP => "tcp",
            FlowKey::UDP => "udp",
            other => return write!(f, "{} > {} ip{other}", self.source(), self.destination()),
        };
        write!(f, "{} > {} {protocol}", self.source(), self.destination())
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The congestion field of the IP header: the two lowest bits of what IPv4 called
/// type of service and IPv6 calls traffic class (RFC 3168 section 5).
///
/// ```
/// use tidegate_core::Ecn;
///
/// let octet = 0xb9; // expedited forwarding, ECT(1)
/// assert_eq!(Ecn::of_octet(octet), Ecn::Ect1);
/// assert_eq!(Ecn::Ce.on(octet), 0xbb);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not-ECT: the sender does not understand marks, and learns of congestion by loss.
    #[default]
    NotEct = 0b00,
    /// ECT(1): the sender understands marks. By it senders ask for the treatment of
    /// low-latency, low-loss, scalable traffic (RFC 9331 section 2); disciplines
    /// that do not offer it treat ECT(1) as ECT(0).
    Ect1 = 0b01,
    /// ECT(0): the sender understands marks.
    Ect0 = 0b10,
    /// CE, congestion experienced: a queue on the way has marked the packet.
    Ce = 0b11,
}

impl Ecn {
    /// The field of an octet that holds it beside the DSCP.
    #[must_use]
    pub const fn of_octet(octet: u8) -> Ecn {
        match octet & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The octet with this field in place of its own; the DSCP stays.
    #[must_use]
    pub const fn on(self, octet: u8) -> u8 {
        octet & !0b11 | self as u8
    }

    /// Whether a queue may mark the packet: any codepoint but Not-ECT. A mark
    /// leaves CE as it is (RFC 3168 section 5).
    #[must_use]
    pub const fn is_markable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }

    /// Whether the packet is one of low-latency, low-loss, scalable traffic: ECT(1), or
    /// CE, which may have been that (RFC 9331 section 5.1).
    #[must_use]
    pub const fn is_low_latency(self) -> bool {
        matches!(self, Ecn::Ect1 | Ecn::Ce)
    }
}

/// The differentiated services codepoint: the six bits above [`Ecn`], by which
/// senders ask for a treatment (RFC 2474 section 3).
///
/// ```
/// use tidegate_core::Dscp;
///
/// assert_eq!(Dscp::of_octet(0xb9), Dscp::EF);
/// assert_eq!(Dscp::EF.on(0x01), 0xb9);
/// assert_eq!((Dscp::new(46), Dscp::new(64)), (Some(Dscp::EF), None));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// The default: best effort (RFC 2474 section 4.1).
    pub const DEFAULT: Dscp = Dscp(0);
    /// Lower effort: goes behind all else (RFC 8622).
    pub const LE: Dscp = Dscp(1);
    /// Expedited forwarding: calls and the like (RFC 3246).
    pub const EF: Dscp = Dscp(46);

    /// A codepoint by its number; nothing beyond 63.
    #[must_use]
    pub const fn new(number: u8) -> Option<Dscp> {
        if number < 64 { Some(Dscp(number)) } else { None }
    }

    /// A codepoint by the name of its per-hop behaviour: `CS0` to `CS7` (RFC 2474),
    /// `AF11` to `AF43` (RFC 2597), `EF`, `VA` (RFC 5865) or `LE`.
    ///
    /// ```
    /// use tidegate_core::Dscp;
    ///
    /// assert_eq!(Dscp::named("EF"), Some(Dscp::EF));
    /// assert_eq!(Dscp::named("CS1"), Dscp::new(8));
    /// assert_eq!(Dscp::named("AF41"), Dscp::new(34));
    /// assert_eq!(Dscp::named("AF51"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Dscp> {
        match *name.as_bytes() {
            [b'C', b'S', class @ b'0'..=b'7'] => Some(Dscp((class - b'0') << 3)),
            [b'A', b'F', class @ b'1'..=b'4', drops @ b'1'..=b'3'] => {
                Some(Dscp((class - b'0') << 3 | (drops - b'0') << 1))
            }
            [b'E', b'F'] => Some(Dscp::EF),
            [b'V', b'A'] => Some(Dscp(44)),
            [b'L', b'E'] => Some(Dscp::LE),
            _ => None,
        }
    }

    /// The codepoint of an octet that holds it beside the congestion field.
    #[must_use]
    pub const fn of_octet(octet: u8) -> Dscp {
        Dscp(octet >> 2)
    }

    /// The octet with this codepoint in place of its own; the congestion field stays.
    #[must_use]
    pub const fn on(self, octet: u8) -> u8 {
        self.0 << 2 | octet & 0b11
    }

    /// The number, below 64.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// What the TCP header of a packet says, for disciplines that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TcpFacts {
    /// Sequence number of the first payload byte.
    pub sequence: u32,
    /// Acknowledgement number, when the ACK flag is set.
    pub acknowledgement: Option<u32>,
    /// Payload bytes.
    pub payload: u32,
    /// The segment opens a connection.
    pub syn: bool,
    /// The segment closes its direction.
    pub fin: bool,
    /// The header says nothing more: no flags but ACK, no options but timestamps.
    pub plain: bool,
}

/// How far `later` is ahead of `earlier`, or zero when it is not: numbers of TCP
/// wrap around, and half of them are ahead of any (RFC 9293 section 3.4).
pub(crate) fn sequence_advance(earlier: u32, later: u32) -> u32 {
    let advance = later.wrapping_sub(earlier);
    if advance < 1 << 31 { advance } else { 0 }
}

/// One packet as a discipline sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The owner's name for the packet; a discipline hands it back untouched.
    pub handle: u64,
    /// The flow it belongs to.
    pub flow: FlowKey,
    /// Size on the wire, with all headers that the link's rate pays for.
    pub size: Bytes,
    /// Configured class; 0 unless something sets it.
    pub class: u16,
    /// Codepoint of the IP header.
    pub dscp: Dscp,
    /// Congestion field of the IP header.
    pub ecn: Ecn,
    /// Facts of the TCP header, for TCP packets.
    pub tcp: Option<TcpFacts>,
    /// When the packet came to the queue: set by [`Port::offer`](crate::Port::offer).
    pub arrived: Time,
}

impl Packet {
    /// A packet of the default class and codepoint, without ECN and TCP facts.
    #[must_use]
    pub fn new(handle: u64, flow: FlowKey, size: Bytes) -> Packet {
        Packet {
            handle,
            flow,
            size,
            class: 0,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            tcp: None,
            arrived: Time::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_both_address_families_and_reverses() {
        let v4 = FlowKey::v4([192, 0, 2, 1], 443, [198, 51, 100, 7], 50_000, FlowKey::TCP);
        assert_eq!(v4.to_string(), "192.0.2.1:443 > 198.51.100.7:50000 tcp");
        assert_eq!(v4.reversed().reversed(), v4);
        assert_ne!(v4.reversed(), v4);
        let v6 = FlowKey::new(
            "[2001:db8::1]:53".parse().unwrap(),
            "[2001:db8::2]:5353".parse().unwrap(),
            FlowKey::UDP,
        );
        assert_eq!(v6.to_string(), "[2001:db8::1]:53 > [2001:db8::2]:5353 udp");
        assert_eq!(size_of::<FlowKey>(), 37);
    }

    #[test]
    fn every_octet_falls_into_codepoint_and_congestion_field_and_comes_together_again() {
        for octet in 0..=u8::MAX {
            let (dscp, ecn) = (Dscp::of_octet(octet), Ecn::of_octet(octet));
            assert_eq!(dscp.on(ecn.on(!octet)), octet);
            assert_eq!(ecn.on(dscp.on(!octet)), octet);
            assert_eq!(Dscp::new(dscp.number()), Some(dscp));
        }
    }

    #[test]
    fn a_packet_takes_88_bytes() {
        assert_eq!(size_of::<Packet>(), 88);
    }

    #[test]
    fn flows_of_the_same_hosts_have_the_same_host_keys() {
        let flow = |host: u8, port| FlowKey::v4([192, 0, 2, host], port, [198, 51, 100, 7], 1, 6);
        assert_eq!(flow(1, 443).source_host(), flow(1, 80).source_host());
        assert_eq!(flow(1, 443).host_pair(), flow(1, 80).host_pair());
        assert_ne!(flow(1, 443).source_host(), flow(2, 443).source_host());
        assert_ne!(flow(1, 443).host_pair(), flow(2, 443).host_pair());
        assert_eq!(flow(1, 443).destination_host(), flow(2, 443).destination_host());
        assert_ne!(flow(1, 443).destination_host(), flow(1, 443).reversed().destination_host());
    }
}
