//! Super-packets, cut into packets of the link.
//!
//! A link has a queue of packets. A discipline that gets pieces of 64 kB can neither let
//! another flow in between nor drop one packet, and a slow link is busy with such a piece
//! for a long time: 52 ms at 10 Mbit/s. So what the kernel has merged is cut here as the
//! card would have cut it: each segment gets the headers of the whole with its own lengths,
//! numbers and flags.
//!
//! Checksums of TCP and UDP are left to the kernel: a segment says, as the super-packet
//! did, that its checksum covers the pseudo header so far. On a virtual interface nobody
//! ever computes it. Flags that belong to one segment stay with it: FIN and PSH with the
//! last, CWR with the first where the kernel says so.

use tidegate_core::{Bytes, FlowKey};
use tidegate_wire::Headers;

use crate::offload::{Cut, CutKind, Offload, PartialChecksum};

/// A super-packet that can be cut: where its parts are.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    network: usize,
    transport: usize,
    payload: usize,
    length: usize,
    cut: Cut,
}

/// Where TCP has its numbers, its flags and its checksum.
const TCP_SEQUENCE: usize = 4;
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;
const TCP_HEADER: usize = 20;
const FIN: u8 = 1;
const PSH: u8 = 8;
const CWR: u8 = 0x80;
/// The same of UDP.
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;
const UDP_HEADER: usize = 8;
/// The fixed headers of IP.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

impl Segments {
    /// How the super-packet in `frame` is cut; `None` if its headers contradict what the
    /// kernel says of it, as those of packets in tunnels do.
    #[must_use]
    pub fn of(frame: &[u8], headers: &Headers, offload: &Offload) -> Option<Segments> {
        let cut = offload.cut.filter(|cut| cut.size > 0)?;
        let transport = usize::from(offload.checksum?.start);
        let network = headers.link_header;
        let is_v4 = frame.get(network)? >> 4 == 4;
        let (expected_v4, protocol) = match cut.kind {
            CutKind::Tcp4 => (true, FlowKey::TCP),
            CutKind::Tcp6 => (false, FlowKey::TCP),
            CutKind::Udp => (is_v4, FlowKey::UDP),
            CutKind::Fragments => return None,
        };
        if is_v4 != expected_v4 || headers.flow.protocol() != protocol || headers.fragment {
            return None;
        }
        let ip_header = transport.checked_sub(network)?;
        let fits = match is_v4 {
            true => ip_header == usize::from(frame[network] & 0xf) * 4 && ip_header >= IPV4_HEADER,
            false => ip_header >= IPV6_HEADER,
        };
        let transport_header = match protocol {
            FlowKey::TCP => usize::from(*frame.get(transport + TCP_FLAGS - 1)? >> 4) * 4,
            _ => UDP_HEADER,
        };
        let least = if protocol == FlowKey::TCP { TCP_HEADER } else { UDP_HEADER };
        let payload = transport + transport_header;
        let length = network + usize::try_from(headers.ip_length.0).ok()?;
        (fits && transport_header >= least && payload < length && length <= frame.len())
            .then_some(Segments { network, transport, payload, length, cut })
    }

    /// Their number.
    #[must_use]
    pub fn count(&self) -> usize {
        (self.length - self.payload).div_ceil(self.cut.size.into())
    }

    /// The length of a segment as a frame.
    #[must_use]
    pub fn length(&self, index: usize) -> usize {
        let size = usize::from(self.cut.size);
        self.payload + size.min((self.length - self.payload).saturating_sub(index * size))
    }

    /// The size of a segment as an IP packet.
    #[must_use]
    pub fn ip_length(&self, index: usize) -> Bytes {
        Bytes((self.length(index) - self.network) as u64)
    }

    /// Writes a segment of `frame`, which is as long as [`Segments::length`] says; returns
    /// what is left to the kernel.
    ///
    /// # Panics
    /// When `segment` has another length, or `frame` is not the one that was asked about.
    pub fn write(&self, frame: &[u8], index: usize, segment: &mut [u8]) -> Offload {
        let start = self.payload + self.bytes_before(index) as usize;
        let (head, body) = segment.split_at_mut(self.payload);
        head.copy_from_slice(&frame[..self.payload]);
        body.copy_from_slice(&frame[start..start + body.len()]);
        let length = head.len() + body.len();
        let ip_length = length - self.network;
        let (ip, transport) = head[self.network..].split_at_mut(self.transport - self.network);
        let transport_length = length - self.transport;
        let is_v4 = ip[0] >> 4 == 4;
        if is_v4 {
            put16(ip, 2, ip_length as u16);
            let identification = u16::from_be_bytes([ip[4], ip[5]]);
            put16(ip, 4, identification.wrapping_add(index as u16));
            put16(ip, 10, 0);
            let checksum = !folded(sum(ip));
            put16(ip, 10, checksum);
        } else {
            put16(ip, 4, (ip_length - IPV6_HEADER) as u16);
        }
        let addresses = if is_v4 { &ip[12..20] } else { &ip[8..40] };
        let protocol = if self.cut.kind == CutKind::Udp { FlowKey::UDP } else { FlowKey::TCP };
        let pseudo = sum(addresses) + u64::from(protocol) + transport_length as u64;
        let offset = if protocol == FlowKey::UDP {
            put16(transport, UDP_LENGTH, transport_length as u16);
            UDP_CHECKSUM
        } else {
            self.write_tcp(index, transport);
            TCP_CHECKSUM
        };
        put16(transport, offset, folded(pseudo));
        let checksum = PartialChecksum { start: self.transport as u16, offset: offset as u16 };
        Offload { checksum: Some(checksum), cut: None, headers: self.payload as u16 }
    }

    fn write_tcp(&self, index: usize, header: &mut [u8]) {
        let sequence = &mut header[TCP_SEQUENCE..TCP_SEQUENCE + 4];
        let number = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
        sequence.copy_from_slice(&number.wrapping_add(self.bytes_before(index)).to_be_bytes());
        if !self.is_last(index) {
            header[TCP_FLAGS] &= !(FIN | PSH);
        }
        if index > 0 && self.cut.congestion_window_reduced_once {
            header[TCP_FLAGS] &= !CWR;
        }
    }

    fn bytes_before(&self, index: usize) -> u32 {
        index as u32 * u32::from(self.cut.size)
    }

    fn is_last(&self, index: usize) -> bool {
        index + 1 == self.count()
    }
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of RFC 1071 over an even number of bytes.
fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(2).map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests;
