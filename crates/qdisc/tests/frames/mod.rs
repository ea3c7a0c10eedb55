//! Frames of all kinds, and what `core` knows of them.

use std::net::{Ipv4Addr, SocketAddr};

use proptest::prelude::*;
use tidegate_core::{Bytes, FlowKey, Packet, Span};
use tidegate_wire::{Headers, Link};

/// A frame on its way in.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// After the one before.
    pub(crate) gap: Span,
    pub(crate) frame: Vec<u8>,
}

/// What a discipline knows of a frame.
pub(crate) fn packet(handle: u64, frame: &[u8]) -> Packet {
    match Headers::read(Link::Ethernet, frame) {
        Ok(headers) => {
            Packet { ecn: headers.ecn, ..Packet::new(handle, headers.flow, headers.ip_length) }
        }
        Err(_) => {
            let ether_type = frame.get(12..14).map_or(0, |it| u16::from_be_bytes([it[0], it[1]]));
            let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, ether_type));
            let size = Bytes(frame.len().saturating_sub(14) as u64);
            Packet::new(handle, FlowKey::new(nobody, nobody, 255), size)
        }
    }
}

/// The transport header and payload of a packet.
fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let protocol = prop_oneof![4 => Just(6_u8), 3 => Just(17), 1 => Just(132), 1 => Just(1)];
    let length = prop_oneof![2 => 0..60_usize, 1 => 60..1_400_usize];
    (protocol, 0..4_u8, length).prop_map(|(protocol, port, length)| {
        let mut bytes = vec![0, port, 0, 80, 0, 0, 0, 0];
        bytes.extend((0..length).map(|at| at as u8));
        (protocol, bytes)
    })
}

/// An extension header of IPv6, or the authentication header.
fn extension() -> impl Strategy<Value = (u8, Vec<u8>)> {
    prop_oneof![
        Just((0_u8, vec![0, 0, 1, 4, 0, 0, 0, 0])),
        Just((60, [vec![0, 1, 1, 12], vec![0; 12]].concat())),
        Just((43, vec![0, 0, 0, 0, 0, 0, 0, 0])),
        (any::<bool>(), 0..3_u8).prop_map(|(more, offset)| (
            44,
            vec![0, 0, 0, offset << 3 | u8::from(more), 0, 0, 0, 1]
        )),
        Just((51, [vec![0, 1, 0, 0], vec![7; 8]].concat())),
    ]
}

fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![5 => Just(0_u16), 1 => Just(0x2000), 1 => Just(0x0010)];
    let options = prop_oneof![4 => Just(0), 1 => Just(2_u8)];
    (transport(), fragment, 0..3_u8, options, any::<bool>(), 0..4_u8).prop_map(
        |((protocol, body), fragment, host, options, authenticated, ecn)| {
            let mut payload = Vec::new();
            let mut protocol = protocol;
            if authenticated && host == 2 {
                payload.extend([protocol, 1, 0, 0, 9, 9, 9, 9, 0, 0, 0, 1]);
                protocol = 51;
            }
            payload.extend(body);
            let header = 20 + usize::from(options) * 4;
            let mut packet = vec![0x45 + options, ecn];
            packet.extend(((header + payload.len()) as u16).to_be_bytes());
            packet.extend([0, 1]);
            packet.extend(fragment.to_be_bytes());
            packet.extend([64, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, host]);
            packet.resize(header, 1);
            packet.extend(payload);
            packet
        },
    )
}

fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let extensions = prop_oneof![
        3 => Just(Vec::new()),
        2 => prop::collection::vec(extension(), 1..5),
    ];
    (transport(), extensions, 0..3_u8).prop_map(|((protocol, body), extensions, host)| {
        let mut kinds: Vec<u8> = extensions.iter().map(|(kind, _)| *kind).collect();
        kinds.push(protocol);
        let mut payload = Vec::new();
        for ((_, bytes), next) in extensions.iter().zip(&kinds[1..]) {
            payload.push(*next);
            payload.extend(&bytes[1..]);
        }
        payload.extend(body);
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([kinds[0], 64]);
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        packet.extend(payload);
        packet
    })
}

/// A frame, sometimes with tags, sometimes broken.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let inner = prop_oneof![
        5 => ipv4().prop_map(|packet| (0x0800_u16, packet)),
        4 => ipv6().prop_map(|packet| (0x86dd, packet)),
        1 => Just((0x0806, vec![0; 46])),
        1 => (ipv4(), any::<bool>()).prop_map(|(packet, is_ip)| {
            let kind = if is_ip { [0, 0x21] } else { [0xc0, 0x21] };
            (0x8864, [vec![0x11, 0, 0, 1, 0, 0], kind.to_vec(), packet].concat())
        }),
    ];
    let tags =
        prop::collection::vec(prop_oneof![Just(0x8100_u16), Just(0x88a8), Just(0x9100)], 0..4);
    let tags = prop_oneof![3 => Just(Vec::new()), 1 => tags];
    let damage = prop_oneof![
        8 => Just(None),
        1 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(Some),
    ];
    let cut = prop_oneof![12 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    (inner, tags, damage, cut).prop_map(|((kind, packet), tags, damage, cut)| {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 5]);
        }
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        if let Some((place, byte)) = damage {
            // Headers are where it matters.
            let most = frame.len().min(90);
            frame[place.index(most)] = byte;
        }
        if let Some(place) = cut {
            frame.truncate(place.index(frame.len()));
        }
        frame
    })
}

/// A frame with a datagram from this port, `size` bytes of IP in all.
pub(crate) fn datagram(port: u8, size: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(size.to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1, 0, port, 0, 80]);
    frame.resize(14 + usize::from(size), 0);
    frame
}

/// Datagrams from few ports, mostly in bursts, of about as much as `rate` carries: `load` of
/// it, in percent.
pub(crate) fn datagrams(rate: u64, load: u64) -> impl Strategy<Value = Vec<Arrival>> {
    let size = prop_oneof![3 => Just(1_400_u16), 2 => 64..1_400_u16, 1 => Just(40)];
    let burst = (0..5_u8, size, 1..12_usize, 0..2_000_u64);
    bursts(rate, load, prop::collection::vec(burst, 30..80))
}

/// As much from two ports that send long bursts, and from many that send few packets.
pub(crate) fn bulk(rate: u64, load: u64) -> impl Strategy<Value = Vec<Arrival>> {
    let burst = prop_oneof![
        2 => (0..2_u8, Just(1_400_u16), 5..60_usize, 0..2_000_u64),
        1 => (2..9_u8, prop_oneof![Just(1_400_u16), 40..1_400_u16], 1..30_usize, 0..500_u64),
        2 => (any::<u8>(), 40..1_400_u16, 1..4_usize, 0..500_u64),
    ];
    bursts(rate, load, prop::collection::vec(burst, 30..120))
}

/// Datagrams of a size from a port, so many at once, after a pause in thousandths of what they
/// take of `load` percent of the rate.
fn bursts(
    rate: u64,
    load: u64,
    bursts: impl Strategy<Value = Vec<(u8, u16, usize, u64)>>,
) -> impl Strategy<Value = Vec<Arrival>> {
    bursts.prop_map(move |bursts| {
        let mut all = Vec::new();
        for (port, size, count, pause) in bursts {
            let bits = u64::from(size) * 8 * count as u64;
            let taken = bits * 1_000_000_000 / rate * 100 / load;
            let pause = taken * pause / 1_000;
            for number in 0..count {
                let gap = if number == 0 { pause } else { 0 };
                all.push(Arrival { gap: Span(gap), frame: datagram(port, size) });
            }
        }
        all
    })
}

/// Frames that arrive one after the other.
pub(crate) fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![
        4 => Just(0_u64),
        4 => 0..2_000_000_u64,
        2 => 0..40_000_000_u64,
        1 => 0..3_000_000_000_u64,
    ];
    let arrival = (gap, frame()).prop_map(|(gap, frame)| Arrival { gap: Span(gap), frame });
    // The same few frames come again and again, so that flows have many packets.
    (
        prop::collection::vec(arrival, 1..12),
        prop::collection::vec((any::<prop::sample::Index>(), 0..30_000_000_u64), 0..120),
    )
        .prop_map(|(few, again)| {
            let mut all = few.clone();
            all.extend(again.iter().map(|(which, gap)| {
                let Arrival { frame, .. } = few[which.index(few.len())].clone();
                let gap = if gap % 3 == 0 { 0 } else { *gap };
                Arrival { gap: Span(gap), frame }
            }));
            all
        })
}
