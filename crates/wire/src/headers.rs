//! From a frame to the facts of the packet in it: IP, ports, TCP.
//!
//! The IP header must be complete, because it contains the packet's size. Of what
//! follows, as much is used as is there and makes sense: a packet whose transport
//! header is cut or broken still takes its time on the link, without ports or
//! without TCP facts.

use etherparse::err::ip::{HeaderError, LaxHeaderSliceError};
use etherparse::{IpNumber, Ipv6ExtensionSlice, LaxIpSlice, LaxIpv6Slice, ip_number};
use tidegate_core::{Bytes, Dscp, Ecn, FlowKey, Packet, TcpFacts};

use crate::error::FrameError;
use crate::link::Link;
use crate::{be16, tcp};

/// The facts that the headers of a frame state about its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The flow to which the packet belongs. Ports are zero for protocols without
    /// ports, for fragments, and where the ports were not captured.
    pub flow: FlowKey,
    /// Bytes of the IP packet: header and payload, without link layer and padding.
    pub ip_length: Bytes,
    /// Bytes of the frame in front of the IP header: Ethernet with its VLAN
    /// tags and PPPoE, for example.
    pub link_header: usize,
    /// Whether the packet is one of several pieces of a datagram.
    pub fragment: bool,
    /// Codepoint of the IP header.
    pub dscp: Dscp,
    /// The congestion field of the IP header.
    pub ecn: Ecn,
    /// Facts of the TCP header, if the packet is TCP, is not a fragment, and enough
    /// of the header is there.
    pub tcp: Option<TcpFacts>,
}

impl Headers {
    /// Reads a whole frame.
    ///
    /// ```
    /// use tidegate_core::Bytes;
    /// use tidegate_wire::{Headers, Link};
    ///
    /// let packet = [
    ///     0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7, // IPv4
    ///     0, 53, 0xc3, 0x50, 0, 8, 0, 0, // UDP
    /// ];
    /// let headers = Headers::read(Link::RawIp, &packet)?;
    /// assert_eq!(headers.flow.to_string(), "192.0.2.1:53 > 198.51.100.7:50000 udp");
    /// assert_eq!(headers.ip_length, Bytes(28));
    /// # Ok::<(), tidegate_wire::FrameError>(())
    /// ```
    ///
    /// # Errors
    /// When the frame does not hold IP, when its lengths contradict each other,
    /// or when it ends before its IP packet does. If the IP header states no length,
    /// the frame's is used, and only a cut within the IP header is noticed.
    pub fn read(link: Link, frame: &[u8]) -> Result<Headers, FrameError> {
        let headers = Headers::read_captured(link, frame, frame.len() as u64)?;
        let found = (frame.len() - headers.link_header) as u64;
        match headers.ip_length {
            Bytes(expected) if expected > found => {
                Err(FrameError::Short { part: "IP packet", found, expected })
            }
            _ => Ok(headers),
        }
    }

    /// Reads the captured start of a frame that was `wire_length` bytes long on the
    /// wire, because a capture may keep only the first bytes of each frame.
    ///
    /// # Errors
    /// When the frame does not hold IP, when its lengths contradict each other,
    /// or when it is cut before the end of the fixed IP header and the options
    /// of IPv4.
    pub fn read_captured(
        link: Link,
        captured: &[u8],
        wire_length: u64,
    ) -> Result<Headers, FrameError> {
        let packet = link.network_layer(captured)?;
        let link_header = captured.len() - packet.len();
        let headers = Headers::of_ip(packet, wire_length.saturating_sub(link_header as u64))?;
        Ok(Headers { link_header, ..headers })
    }

    /// Reads an IP packet that was `wire_length` bytes long on the wire, or
    /// longer by the padding of short Ethernet frames.
    fn of_ip(packet: &[u8], wire_length: u64) -> Result<Headers, FrameError> {
        let (slice, _cut_extension) = LaxIpSlice::from_slice(packet).map_err(not_ip)?;
        let fragment = slice.is_fragmenting_payload();
        // Header with extensions, stated length, octet of DSCP and congestion
        // field, protocol.
        let (headers, stated, octet, protocol) = match &slice {
            LaxIpSlice::Ipv4(v4) => {
                let header = v4.header();
                // Only the first piece of a fragmented datagram contains the
                // authentication header.
                let (extension, protocol) = match v4.extensions().auth {
                    Some(auth) if !fragment => (auth.slice().len(), auth.next_header()),
                    _ => (0, header.protocol()),
                };
                let length = header.slice().len() + extension;
                (length, u64::from(header.total_len()), header.slice()[1], protocol)
            }
            LaxIpSlice::Ipv6(v6) => {
                let header = v6.header();
                let fixed = header.slice().len();
                let stated = match header.payload_length() {
                    0 if header.next_header() != ip_number::IPV6_NO_NEXT_HEADER => 0,
                    payload => fixed as u64 + u64::from(payload),
                };
                // What follows the fragment header of a later piece is none of its own.
                let extensions = if fragment { 0 } else { v6.extensions().slice().len() };
                let length = fixed + extensions;
                (length, stated, header.traffic_class(), ipv6_protocol(v6))
            }
        };
        let ip_length = if stated == 0 { wire_length } else { stated };
        // The stated length is too short for the packet's own headers; where the
        // headers are cut by the snapshot length, what is there is shorter still.
        let Some(payload_length) = ip_length.checked_sub(headers as u64) else {
            return Err(FrameError::PacketLength { stated: ip_length, headers: headers as u64 });
        };
        let payload = if fragment { &[] } else { slice.payload().payload };
        let (source_port, destination_port) = ports(protocol, payload);
        Ok(Headers {
            flow: FlowKey::new(
                (slice.source_addr(), source_port).into(),
                (slice.destination_addr(), destination_port).into(),
                protocol.0,
            ),
            ip_length: Bytes(ip_length),
            link_header: 0,
            fragment,
            dscp: Dscp::of_octet(octet),
            ecn: Ecn::of_octet(octet),
            tcp: match protocol {
                ip_number::TCP => tcp::facts(payload, payload_length),
                _ => None,
            },
        })
    }

    /// The packet as a discipline sees it, of class 0. `framing` is what the link
    /// adds to each IP packet and its rate pays for: 38 bytes on Ethernet (14 of
    /// header, 4 of checksum, 8 of preamble, 12 of gap), and nothing where IP
    /// lengths count, as in captures and in the simulator.
    #[must_use]
    pub fn packet(&self, handle: u64, framing: Bytes) -> Packet {
        let packet = Packet::new(handle, self.flow, self.ip_length + framing);
        Packet { dscp: self.dscp, ecn: self.ecn, tcp: self.tcp, ..packet }
    }
}

/// What the TCP or UDP in a captured frame carries, as far as it was captured: `None` for
/// other protocols, pieces of a datagram, and frames that do not hold IP.
///
/// ```
/// use tidegate_wire::{Link, payload};
///
/// let packet = [
///     0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7, // IPv4
///     0, 53, 0xc3, 0x50, 0, 10, 0, 0, // UDP
///     b'h', b'i',
/// ];
/// assert_eq!(payload(Link::RawIp, &packet), Some(&b"hi"[..]));
/// ```
#[must_use]
pub fn payload(link: Link, captured: &[u8]) -> Option<&[u8]> {
    const UDP_HEADER: usize = 8;

    let packet = link.network_layer(captured).ok()?;
    let (slice, _) = LaxIpSlice::from_slice(packet).ok()?;
    if slice.is_fragmenting_payload() {
        return None;
    }
    let protocol = match &slice {
        LaxIpSlice::Ipv4(v4) => {
            v4.extensions().auth.map_or(v4.header().protocol(), |it| it.next_header())
        }
        LaxIpSlice::Ipv6(v6) => ipv6_protocol(v6),
    };
    let transport = slice.payload().payload;
    match protocol {
        ip_number::TCP => tcp::payload(transport),
        ip_number::UDP => transport.get(UDP_HEADER..),
        _ => None,
    }
}

/// What the packet carries after its extension headers. All pieces of a datagram
/// state in their fragment header what the datagram carries; what follows that
/// header is in the first piece only (RFC 8200 section 4.5), though the bytes of a
/// later one may look like further extension headers.
fn ipv6_protocol(packet: &LaxIpv6Slice) -> IpNumber {
    let fragment_header = || {
        packet.extensions().clone().into_iter().find_map(|extension| match extension {
            Ipv6ExtensionSlice::Fragment(header) if header.is_fragmenting_payload() => {
                Some(header.next_header())
            }
            _ => None,
        })
    };
    packet
        .is_payload_fragmented()
        .then(fragment_header)
        .flatten()
        .unwrap_or(packet.payload().ip_number)
}

/// TCP, UDP, DCCP, SCTP and UDP-Lite all begin with the two ports.
fn ports(protocol: IpNumber, transport: &[u8]) -> (u16, u16) {
    use ip_number::{DCCP, SCTP, TCP, UDP, UDP_LITE};
    match (protocol, transport) {
        (TCP | UDP | DCCP | SCTP | UDP_LITE, [_, _, _, _, ..]) => {
            (be16(transport, 0), be16(transport, 2))
        }
        _ => (0, 0),
    }
}

fn not_ip(error: LaxHeaderSliceError) -> FrameError {
    match error {
        LaxHeaderSliceError::Len(short) => FrameError::Short {
            part: "IP header",
            found: short.len as u64,
            expected: short.required_len as u64,
        },
        LaxHeaderSliceError::Content(HeaderError::UnsupportedIpVersion { version_number }) => {
            FrameError::Version(version_number)
        }
        LaxHeaderSliceError::Content(HeaderError::Ipv4HeaderLengthSmallerThanHeader { ihl }) => {
            FrameError::HeaderLength(ihl * 4)
        }
    }
}
