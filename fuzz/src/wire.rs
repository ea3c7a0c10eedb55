//! Any bytes as a frame, beside a twin that reads them field by field.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0 | link layer: Ethernet, raw IP, Linux cooked 1 and 2, loopback; modulo 5 |
//! | 1, 2 | by how much the frame was longer on the wire |
//! | then | what was captured of the frame |
//!
//! The twin takes each field by the numbers of its bits in the figures of the
//! RFCs, and computes checksums in full.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tidegate_core::{Bytes, Dscp, Ecn, FlowKey, TcpFacts};
use tidegate_wire::{FrameError, Headers, Link, mark_congested, set_ecn};

/// What may stand in front of IP, by the first byte.
pub const LINKS: [Link; 5] =
    [Link::Ethernet, Link::RawIp, Link::LinuxCooked, Link::LinuxCooked2, Link::Loopback];

/// Reads and rewrites the frame of `input`.
///
/// # Panics
/// When the twin reads or writes something else.
pub fn fuzz_one(input: &[u8]) {
    let [link, high, low, frame @ ..] = input else { return };
    let link = LINKS[usize::from(*link) % LINKS.len()];
    let wire_length = (frame.len() + usize::from(u16::from_be_bytes([*high, *low]))) as u64;
    let kind = |error: FrameError| match error.is_other_protocol() {
        true => Refused::OtherProtocol,
        false => Refused::Malformed,
    };

    let captured = Headers::read_captured(link, frame, wire_length);
    assert_eq!(captured.map_err(kind), read(link, frame, wire_length));

    let expected = read(link, frame, frame.len() as u64).and_then(|headers| {
        let end = headers.link_header as u64 + headers.ip_length.0;
        if end <= frame.len() as u64 { Ok(headers) } else { Err(Refused::Malformed) }
    });
    let whole = Headers::read(link, frame);
    assert_eq!(whole.map_err(kind), expected);

    for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
        let mut found = frame.to_vec();
        assert_eq!(set_ecn(link, &mut found, ecn), whole.map(drop));
        let rewritten = expected.map(|headers| with_ecn(frame, headers, ecn));
        assert_eq!(found, rewritten.unwrap_or(frame.to_vec()));
        if ecn == Ecn::Ce {
            let mut marked = frame.to_vec();
            let refused = mark_congested(link, &mut marked).is_err();
            assert_eq!(refused, expected.map_or(true, |headers| headers.ecn == Ecn::NotEct));
            assert_eq!(marked, if refused { frame.to_vec() } else { found });
        }
    }
}

/// Why the twin reads no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    OtherProtocol,
    Malformed,
}

/// The field of `width` bits from the bit `first` on, as the figures of the
/// RFCs count them. Nothing when the bytes end before it does.
fn field(bytes: &[u8], first: usize, width: usize) -> Option<u128> {
    let bit = |at: usize| bytes.get(at / 8).map(|byte| u128::from(byte >> (7 - at % 8) & 1));
    (first..first + width).try_fold(0, |number, at| Some(number << 1 | bit(at)?))
}

/// A field that is known to be there.
fn known(bytes: &[u8], first: usize, width: usize) -> u64 {
    field(bytes, first, width).expect("the header is whole") as u64
}

fn read(link: Link, frame: &[u8], wire_length: u64) -> Result<Headers, Refused> {
    let at = packet_start(link, frame)?;
    let packet = frame.get(at..).ok_or(Refused::Malformed)?;
    let wire_length = wire_length.saturating_sub(at as u64);
    let headers = match field(packet, 0, 4).ok_or(Refused::Malformed)? {
        4 => ipv4(packet, wire_length),
        6 => ipv6(packet, wire_length),
        _ => None,
    };
    Ok(Headers { link_header: at, ..headers.ok_or(Refused::Malformed)? })
}

/// Where the IP packet begins.
fn packet_start(link: Link, frame: &[u8]) -> Result<usize, Refused> {
    // Where the header ends, and where the type of its payload is, in bytes.
    let (mut end, mut type_at) = match link {
        Link::RawIp => return Ok(0),
        Link::Loopback => {
            let field = |at| field(frame, at, 8).ok_or(Refused::Malformed);
            let family = [field(0)?, field(8)?, field(16)?, field(24)?];
            let families = [2, 10, 24, 28, 30];
            let is_ip = |known| family == [0, 0, 0, known] || family == [known, 0, 0, 0];
            return match families.into_iter().any(is_ip) {
                true => Ok(4),
                false => Err(Refused::OtherProtocol),
            };
        }
        Link::LinuxCooked => (16, 14),
        Link::LinuxCooked2 => (20, 0),
        _ => (14, 12),
    };
    loop {
        if frame.len() < end {
            return Err(Refused::Malformed);
        }
        match known(frame, type_at * 8, 16) {
            0x0800 | 0x86dd => return Ok(end),
            0x8100 | 0x88a8 | 0x9100 => (type_at, end) = (end + 2, end + 4),
            0x8864 => {
                return match field(frame, (end + 6) * 8, 16) {
                    Some(0x0021 | 0x0057) => Ok(end + 8),
                    Some(_) => Err(Refused::OtherProtocol),
                    None => Err(Refused::Malformed),
                };
            }
            _ => return Err(Refused::OtherProtocol),
        }
    }
}

/// RFC 791 section 3.1.
fn ipv4(packet: &[u8], wire_length: u64) -> Option<Headers> {
    let header_length = field(packet, 4, 4)? as usize * 4;
    if header_length < 20 || packet.len() < header_length {
        return None;
    }
    let length = match known(packet, 16, 16) {
        0 => wire_length,
        stated => stated,
    };
    let fragment = known(packet, 50, 1) == 1 || known(packet, 51, 13) > 0;
    let mut transport = known(packet, 72, 8) as u8;
    let mut payload = &packet[header_length..end(packet, known(packet, 16, 16), header_length)];
    let mut headers = header_length;
    if !fragment
        && transport == 51
        && let Some((next, size)) = authentication(payload)
    {
        (transport, payload, headers) = (next, &payload[size..], headers + size);
    }
    let address = |at| IpAddr::from(Ipv4Addr::from_bits(known(packet, at, 32) as u32));
    Some(Headers {
        dscp: Dscp::new(known(packet, 8, 6) as u8).expect("six bits"),
        ecn: ECN[known(packet, 14, 2) as usize],
        ..above((address(96), address(128)), fragment, transport, payload, length, headers)?
    })
}

/// By the number of the codepoint (RFC 3168 section 5).
const ECN: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

/// RFC 8200 sections 3 and 4.
fn ipv6(packet: &[u8], wire_length: u64) -> Option<Headers> {
    if packet.len() < 40 {
        return None;
    }
    let (stated, mut transport) = (known(packet, 32, 16), known(packet, 48, 8) as u8);
    let has_length = stated > 0 || transport == 59;
    let length = if has_length { 40 + stated } else { wire_length };
    let mut payload = &packet[40..end(packet, 40 + stated, 41)];
    let mut headers = 40;
    let mut piece_of = None;
    loop {
        let byte = |at: usize| field(payload, at * 8, 8);
        let next = match transport {
            0 if headers > 40 => None,
            0 | 43 | 60 => {
                byte(0).zip(byte(1)).map(|(next, size)| (next as u8, size as usize * 8 + 8))
            }
            44 => byte(0).map(|next| (next as u8, 8)),
            51 => authentication(payload),
            _ => None,
        };
        let Some((next, size)) = next.filter(|(_, size)| *size <= payload.len()) else { break };
        if transport == 44 && (known(payload, 16, 13) > 0 || known(payload, 31, 1) == 1) {
            piece_of = piece_of.or(Some(next));
        }
        (transport, payload, headers) = (next, &payload[size..], headers + size);
    }
    let address = |at| {
        let bits = field(packet, at, 128).expect("the header is whole");
        IpAddr::from(Ipv6Addr::from_bits(bits))
    };
    let (transport, headers) = match piece_of {
        Some(protocol) => (protocol, 40),
        None => (transport, headers),
    };
    let ends = (address(64), address(192));
    Some(Headers {
        dscp: Dscp::new(known(packet, 4, 6) as u8).expect("six bits"),
        ecn: ECN[known(packet, 10, 2) as usize],
        ..above(ends, piece_of.is_some(), transport, payload, length, headers)?
    })
}

/// Where a packet ends within what was captured, if its stated length makes
/// sense: padding is no part of it.
fn end(packet: &[u8], stated: u64, least: usize) -> usize {
    let stated = stated as usize;
    if stated < least { packet.len() } else { stated.min(packet.len()) }
}

/// RFC 4302 section 2: what follows, and how long the header is.
fn authentication(bytes: &[u8]) -> Option<(u8, usize)> {
    let (next, words) = (field(bytes, 0, 8)?, field(bytes, 8, 8)? as usize);
    let size = 4 * (words + 2);
    (words > 0 && size <= bytes.len()).then_some((next as u8, size))
}

/// What follows from the payload of a packet of `length` bytes, of which the
/// first `headers` are IP's.
fn above(
    ends: (IpAddr, IpAddr),
    fragment: bool,
    transport: u8,
    payload: &[u8],
    length: u64,
    headers: usize,
) -> Option<Headers> {
    let rest = length.checked_sub(headers as u64)?;
    let has_ports = !fragment && [6, 17, 33, 132, 136].contains(&transport);
    let port = |at| if has_ports && payload.len() >= 4 { known(payload, at, 16) as u16 } else { 0 };
    Some(Headers {
        flow: FlowKey::new((ends.0, port(0)).into(), (ends.1, port(16)).into(), transport),
        ip_length: Bytes(length),
        link_header: 0,
        fragment,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        tcp: if !fragment && transport == 6 { tcp(payload, rest) } else { None },
    })
}

/// RFC 9293 section 3.1.
fn tcp(segment: &[u8], length: u64) -> Option<TcpFacts> {
    let flag = |at| field(segment, at, 1).map(|bit| bit == 1);
    let fin = flag(111)?;
    let header_length = known(segment, 96, 4) * 4;
    if header_length < 20 {
        return None;
    }
    let acknowledgement = known(segment, 64, 32) as u32;
    Some(TcpFacts {
        sequence: known(segment, 32, 32) as u32,
        acknowledgement: flag(107)?.then_some(acknowledgement),
        payload: u32::try_from(length.checked_sub(header_length)?).ok()?,
        syn: flag(110)?,
        fin,
        plain: known(segment, 100, 12) == 16
            && header_length <= segment.len() as u64
            && harmless(segment[20..header_length as usize].to_vec()),
    })
}

/// Whether the options are nothing but timestamps (RFC 7323 section 3.2), before
/// they end.
fn harmless(mut options: Vec<u8>) -> bool {
    while !options.is_empty() && options[0] != 0 {
        let size = match options[0] {
            1 => 1,
            8 if options.get(1) == Some(&10) => 10,
            _ => return false,
        };
        if options.len() < size {
            return false;
        }
        options.drain(..size);
    }
    true
}

/// The frame with another codepoint in its IP header, bit by bit, and with the
/// checksum computed in full. A checksum that was wrong stays wrong by as much.
fn with_ecn(frame: &[u8], headers: Headers, ecn: Ecn) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if ecn == headers.ecn {
        return frame;
    }
    let packet = &mut frame[headers.link_header..];
    let is_v4 = known(packet, 0, 4) == 4;
    let header_length = known(packet, 4, 4) as usize * 4;
    let sum = |packet: &[u8]| (0..header_length / 2).map(|word| known(packet, word * 16, 16)).sum();
    let before: u64 = if is_v4 { sum(packet) } else { 0 };
    let first = if is_v4 { 14 } else { 10 };
    for (at, value) in [(first, ecn as u8 >> 1), (first + 1, ecn as u8 & 1)] {
        let bit = 0x80 >> (at % 8);
        packet[at / 8] = packet[at / 8] & !bit | if value == 1 { bit } else { 0 };
    }
    if is_v4 {
        // What makes the sum what it was, modulo 2^16 - 1. Of zero and all ones,
        // which are the same there, it is zero.
        packet[10..12].fill(0);
        let short = (before % 0xffff + 0xffff - sum(packet) % 0xffff) % 0xffff;
        packet[10..12].copy_from_slice(&(short as u16).to_be_bytes());
    }
    frame
}
