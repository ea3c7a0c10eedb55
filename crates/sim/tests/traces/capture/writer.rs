//! Writes captures and packets byte by byte, from the formats' descriptions,
//! without the libraries that the readers use.

use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const ETHERNET: u16 = 1;
pub(crate) const RAW_IP: u16 = 101;
pub(crate) const LINUX_COOKED: u16 = 113;
pub(crate) const LINUX_COOKED_2: u16 = 276;
pub(crate) const NULL: u16 = 0;

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const ARP: u16 = 0x0806;

/// One record of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Nanoseconds of Unix time.
    pub(crate) nanos: u64,
    pub(crate) data: Vec<u8>,
    /// Length on the wire.
    pub(crate) wire: u32,
}

impl Frame {
    pub(crate) fn new(nanos: u64, data: Vec<u8>) -> Frame {
        let wire = data.len() as u32;
        Frame { nanos, data, wire }
    }

    /// Keeps only the first `length` bytes, as a snapshot length does.
    pub(crate) fn cut(mut self, length: usize) -> Frame {
        self.data.truncate(length);
        self
    }
}

/// Numbers in one byte order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) big: bool,
}

impl Order {
    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn u64(self, value: u64) -> [u8; 8] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

/// A pcap file: 24 bytes of header, then 16 bytes in front of each frame.
pub(crate) fn pcap(order: Order, nanoseconds: bool, link: u16, frames: &[Frame]) -> Vec<u8> {
    let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = Vec::new();
    file.extend(order.u32(magic));
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    file.extend([0; 8]);
    file.extend(order.u32(65_535));
    file.extend(order.u32(link.into()));
    for frame in frames {
        let (seconds, fraction) = (frame.nanos / 1_000_000_000, frame.nanos % 1_000_000_000);
        let fraction = if nanoseconds { fraction } else { fraction / 1_000 };
        for number in [seconds as u32, fraction as u32, frame.data.len() as u32, frame.wire] {
            file.extend(order.u32(number));
        }
        file.extend(&frame.data);
    }
    file
}

/// A pcapng file that grows block by block.
#[derive(Clone, Debug)]
pub(crate) struct Pcapng {
    pub(crate) order: Order,
    pub(crate) bytes: Vec<u8>,
}

impl Pcapng {
    pub(crate) fn new(order: Order) -> Pcapng {
        let mut file = Pcapng { order, bytes: Vec::new() };
        file.section(order);
        file
    }

    pub(crate) fn section(&mut self, order: Order) -> &mut Pcapng {
        self.order = order;
        let mut body = Vec::new();
        body.extend(order.u32(0x1a2b_3c4d));
        body.extend(order.u16(1));
        body.extend(order.u16(0));
        body.extend(order.u64(u64::MAX));
        self.block(0x0a0d_0d0a, &body)
    }

    pub(crate) fn block(&mut self, kind: u32, body: &[u8]) -> &mut Pcapng {
        let padded = body.len().next_multiple_of(4);
        let length = self.order.u32(12 + padded as u32);
        self.bytes.extend(self.order.u32(kind));
        self.bytes.extend(length);
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len() + padded - body.len(), 0);
        self.bytes.extend(length);
        self
    }

    /// An interface with options of (code, value).
    pub(crate) fn interface(&mut self, link: u16, options: &[(u16, &[u8])]) -> &mut Pcapng {
        let mut body = Vec::new();
        body.extend(self.order.u16(link));
        body.extend(self.order.u16(0));
        body.extend(self.order.u32(0));
        for (code, value) in options {
            body.extend(self.order.u16(*code));
            body.extend(self.order.u16(value.len() as u16));
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        if !options.is_empty() {
            body.extend([0; 4]);
        }
        self.block(1, &body)
    }

    pub(crate) fn enhanced(&mut self, interface: u32, ticks: u64, frame: &Frame) -> &mut Pcapng {
        let mut body = Vec::new();
        let numbers =
            [interface, (ticks >> 32) as u32, ticks as u32, frame.data.len() as u32, frame.wire];
        for number in numbers {
            body.extend(self.order.u32(number));
        }
        body.extend(&frame.data);
        self.block(6, &body)
    }

    pub(crate) fn simple(&mut self, frame: &Frame) -> &mut Pcapng {
        let mut body = self.order.u32(frame.wire).to_vec();
        body.extend(&frame.data);
        self.block(3, &body)
    }
}

/// An Ethernet frame.
pub(crate) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[0x02; 12], &ether_type.to_be_bytes()[..], payload].concat()
}

/// `payload` behind a VLAN tag of this kind; the frame's own type is `tag`.
pub(crate) fn vlan(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[0x20, 0x07], &ether_type.to_be_bytes()[..], payload].concat()
}

/// An IPv4 packet.
pub(crate) fn ipv4(from: [u8; 4], to: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
    [&header, &from[..], &to[..], payload].concat()
}

/// An IPv6 packet; `next` is what the payload starts with.
pub(crate) fn ipv6(from: Ipv6Addr, to: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let header = [0x60, 0, 0, 0, high, low, next, 64];
    [&header, &from.octets()[..], &to.octets()[..], payload].concat()
}

/// A UDP datagram with this many bytes of payload.
pub(crate) fn udp(from: u16, to: u16, payload: usize) -> Vec<u8> {
    let length = (8 + payload) as u16;
    let words = [from, to, length, 0].map(u16::to_be_bytes);
    [words.concat(), vec![0; payload]].concat()
}

/// A TCP segment without options and with this many bytes of payload.
pub(crate) fn tcp(
    from: u16,
    to: u16,
    sequence: u32,
    ack: u32,
    flags: u8,
    payload: usize,
) -> Vec<u8> {
    let mut segment = [from.to_be_bytes(), to.to_be_bytes()].concat();
    segment.extend(sequence.to_be_bytes());
    segment.extend(ack.to_be_bytes());
    segment.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.resize(segment.len() + payload, 0);
    segment
}

/// A UDP packet between two fixed hosts, 128 bytes long as IP counts.
pub(crate) fn any_packet() -> Vec<u8> {
    ipv4(HOME, SERVER, 17, &udp(5_000, 443, 100))
}

pub(crate) const HOME: [u8; 4] = [192, 168, 1, 7];
pub(crate) const SERVER: [u8; 4] = [203, 0, 113, 9];
pub(crate) const HOME_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 1, 0, 0, 0, 7);
pub(crate) const SERVER_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 9, 0, 0, 0, 9);

pub(crate) fn address(octets: [u8; 4]) -> std::net::IpAddr {
    Ipv4Addr::from(octets).into()
}
