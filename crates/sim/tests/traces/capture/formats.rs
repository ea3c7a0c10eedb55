//! pcap and pcapng in both byte orders, with all kinds of time stamps.

use proptest::prelude::*;
use tidegate_core::{Bytes, Dscp, Ecn, FlowKey, Span, TcpFacts, Time};
use tidegate_sim::trace::CapturedPacket;

use super::read;
use super::writer::*;

const ORDERS: [Order; 2] = [Order { big: false }, Order { big: true }];

/// Interface options of pcapng.
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

fn times(contents: &[u8]) -> Vec<u64> {
    read(contents).packets.iter().map(|packet| packet.at.0).collect()
}

fn two_frames(first: u64, second: u64) -> [Frame; 2] {
    [first, second].map(|nanos| Frame::new(nanos, any_packet()))
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_resolutions() {
    let frames = two_frames(1_700_000_000_999_999_000, 1_700_000_001_000_001_234);
    for order in ORDERS {
        assert_eq!(times(&pcap(order, true, RAW_IP, &frames)), [0, 2_234], "{order:?}");
        assert_eq!(times(&pcap(order, false, RAW_IP, &frames)), [0, 2_000], "{order:?}");
    }
}

#[test]
fn pcapng_is_read_in_both_byte_orders() {
    for order in ORDERS {
        let mut file = Pcapng::new(order);
        file.interface(RAW_IP, &[]);
        for (ticks, frame) in [(5_000_000, 1), (5_000_007, 2)] {
            let data = ipv4(HOME, SERVER, 17, &udp(frame, 53, 10));
            file.enhanced(0, ticks, &Frame::new(0, data));
        }
        let capture = read(&file.bytes);
        assert_eq!(capture.packets[1].at, Time(7_000), "{order:?}");
        assert_eq!(capture.packets[1].flow.source().port(), 2);
        assert_eq!(capture.packets[1].size, Bytes(38));
    }
}

#[test]
fn pcapng_interfaces_have_their_own_resolution_and_offset() {
    let frame = Frame::new(0, any_packet());
    for order in ORDERS {
        let offset = order.u64(100);
        let mut file = Pcapng::new(order);
        file.interface(RAW_IP, &[(IF_TSRESOL, &[9])])
            .interface(RAW_IP, &[(IF_TSRESOL, &[0x80 | 10])])
            .interface(RAW_IP, &[(IF_TSRESOL, &[0]), (IF_TSOFFSET, &offset)])
            .interface(RAW_IP, &[(IF_TSRESOL, &[12])])
            .enhanced(0, 1_000_000_001, &frame)
            .enhanced(1, 1_024 + 512, &frame)
            .enhanced(3, 2_000_000_000_999, &frame)
            .enhanced(2, 1, &frame);
        let expected = [0, 499_999_999, 999_999_999, 99_999_999_999];
        assert_eq!(times(&file.bytes), expected, "{order:?}");
    }
}

#[test]
fn extreme_resolutions_do_not_overflow() {
    let frame = Frame::new(0, any_packet());
    for resolution in [0, 9, 10, 28, 29, 47, 48, 127, 0x80, 0x80 | 63, 0xff] {
        for offset in [i64::MIN, -1, i64::MAX] {
            let offset = offset.to_le_bytes();
            let options: [(u16, &[u8]); 2] = [(IF_TSRESOL, &[resolution]), (IF_TSOFFSET, &offset)];
            let mut file = Pcapng::new(Order { big: false });
            file.interface(RAW_IP, &[]).interface(RAW_IP, &options);
            file.enhanced(0, 0, &frame).enhanced(1, 0, &frame).enhanced(1, u64::MAX, &frame);
            assert_eq!(read(&file.bytes).packets.len(), 3);
        }
    }
}

#[test]
fn simple_packets_take_the_time_of_the_packet_before() {
    let frame = Frame::new(0, ethernet(IPV4, &any_packet()));
    let mut file = Pcapng::new(Order { big: false });
    file.interface(ETHERNET, &[]).simple(&frame).enhanced(0, 10, &frame);
    file.enhanced(0, 25, &frame).simple(&frame.clone().cut(60));
    let capture = read(&file.bytes);
    let at: Vec<_> = capture.packets.iter().map(|packet| packet.at.0).collect();
    assert_eq!(at, [0, 0, 15_000, 15_000]);
    assert_eq!(capture.without_time, 2);
    assert!(capture.packets.iter().all(|packet| packet.size == Bytes(128)));
}

#[test]
fn other_blocks_are_passed_over_and_sections_start_anew() {
    let frame = Frame::new(0, any_packet());
    let mut file = Pcapng::new(Order { big: false });
    // A comment of a vendor larger than any block that is kept.
    file.block(0x0bad, &vec![7; 3 << 20]).interface(RAW_IP, &[]).enhanced(0, 0, &frame);
    file.section(Order { big: true }).interface(ETHERNET, &[]);
    file.enhanced(0, 5, &Frame::new(0, ethernet(IPV4, &any_packet())));
    let capture = read(&file.bytes);
    assert_eq!(capture.packets.len(), 2);
    assert_eq!(capture.packets[0].flow, capture.packets[1].flow);
}

#[test]
fn packets_of_unknown_interfaces_are_counted() {
    let frame = Frame::new(0, any_packet());
    let mut file = Pcapng::new(Order { big: false });
    // 189 is USB.
    file.interface(189, &[]).interface(RAW_IP, &[]);
    file.enhanced(0, 0, &frame).enhanced(1, 5, &frame);
    let capture = read(&file.bytes);
    assert_eq!((capture.packets.len(), capture.skipped.other_link), (1, 1));
}

#[test]
fn steps_back_are_held_and_counted() {
    let stamps = [10, 30, 20, 25, 40, 5, 50].map(|micros| 1_000 * micros);
    let frames = stamps.map(|nanos| Frame::new(nanos, any_packet()));
    let capture = read(&pcap(Order { big: false }, false, RAW_IP, &frames));
    let micros: Vec<_> = capture.packets.iter().map(|packet| packet.at.0 / 1_000).collect();
    assert_eq!(micros, [0, 20, 20, 20, 30, 30, 40]);
    assert_eq!(capture.clock_steps_back, 2);
    assert_eq!(capture.duration, Span::micros(40));
}

#[test]
fn time_counts_from_the_first_record_whatever_it_is() {
    let arp = Frame::new(1_000, ethernet(ARP, &[0; 28]));
    let packet = Frame::new(9_000, ethernet(IPV4, &any_packet()));
    let last = Frame { nanos: 20_000, ..arp.clone() };
    let capture = read(&pcap(Order { big: false }, false, ETHERNET, &[arp, packet, last]));
    assert_eq!(capture.packets[0].at, Time(8_000));
    assert_eq!(capture.duration, Span(19_000));
    assert_eq!(capture.skipped.non_ip, 2);
}

#[test]
fn a_capture_without_packets_is_no_error() {
    let capture = read(&pcap(Order { big: false }, false, ETHERNET, &[]));
    assert_eq!(capture, Default::default());
    assert_eq!(read(&Pcapng::new(Order { big: true }).bytes), Default::default());
}

/// A packet as it should come out, with the bytes that say so.
fn packets() -> impl Strategy<Value = (CapturedPacket, Vec<u8>)> {
    let ends = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>(), any::<u16>());
    let facts = (any::<u32>(), any::<u32>(), 0..64_u8, 0..1_400_usize);
    let kind = (any::<bool>(), any::<bool>(), any::<u8>());
    (ends, facts, kind).prop_map(|((from, to, port, peer), facts, (six, is_tcp, octet))| {
        let (sequence, ack, flags, payload) = facts;
        let (protocol, transport) = if is_tcp {
            (6, tcp(port, peer, sequence, ack, flags, payload))
        } else {
            (17, udp(port, peer, payload))
        };
        let mapped = |address: [u8; 4]| {
            let [a, b, c, d] = address.map(u16::from);
            std::net::Ipv6Addr::new(0x2001, 0xdb8, a, b, c, d, 0, 1)
        };
        let (mut bytes, flow) = if six {
            let flow =
                FlowKey::new((mapped(from), port).into(), (mapped(to), peer).into(), protocol);
            (ipv6(mapped(from), mapped(to), protocol, &transport), flow)
        } else {
            let flow = FlowKey::v4(from, port, to, peer, protocol);
            (ipv4(from, to, protocol, &transport), flow)
        };
        if six {
            bytes[0] |= octet >> 4;
            bytes[1] |= octet << 4;
        } else {
            bytes[1] = octet;
        }
        let packet = CapturedPacket {
            at: Time::ZERO,
            flow,
            size: Bytes(bytes.len() as u64),
            tcp: is_tcp.then_some(TcpFacts {
                sequence,
                acknowledgement: (flags & 16 != 0).then_some(ack),
                payload: payload as u32,
                syn: flags & 2 != 0,
                fin: flags & 1 != 0,
                plain: flags == 16,
            }),
            dscp: Dscp::new(octet >> 2).expect("six bits are a codepoint"),
            ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(octet & 3)],
        };
        (packet, bytes)
    })
}

/// A packet in a frame of one of the link layers.
fn framed(link: u16, packet: &[u8]) -> Vec<u8> {
    let six = packet[0] >> 4 == 6;
    let protocol = if six { IPV6 } else { IPV4 };
    match link {
        ETHERNET => ethernet(protocol, packet),
        LINUX_COOKED => [&[0; 14], &protocol.to_be_bytes()[..], packet].concat(),
        LINUX_COOKED_2 => [&protocol.to_be_bytes()[..], &[0; 18], packet].concat(),
        NULL => [&[if six { 30 } else { 2 }, 0, 0, 0], packet].concat(),
        _ => packet.to_vec(),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        packets in prop::collection::vec((packets(), 0..10_000_000_u64), 1..20),
        big: bool,
        nanoseconds: bool,
        as_pcapng: bool,
        link in prop::sample::select(vec![ETHERNET, RAW_IP, LINUX_COOKED, LINUX_COOKED_2, NULL]),
    ) {
        const START: u64 = 1_700_000_000_000_000_000;
        let tick = if nanoseconds { 1 } else { 1_000 };
        let mut nanos = START;
        let mut expected = Vec::new();
        let mut frames = Vec::new();
        for (index, ((packet, bytes), ticks)) in packets.iter().enumerate() {
            nanos += if index == 0 { 0 } else { ticks * tick };
            expected.push(CapturedPacket { at: Time(nanos - START), ..*packet });
            frames.push(Frame::new(nanos, framed(link, bytes)));
        }
        let order = Order { big };
        let file = if as_pcapng {
            let mut file = Pcapng::new(order);
            file.interface(link, &[(IF_TSRESOL, &[if nanoseconds { 9 } else { 6 }])]);
            for frame in &frames {
                file.enhanced(0, frame.nanos / tick, frame);
            }
            file.bytes
        } else {
            pcap(order, nanoseconds, link, &frames)
        };
        let capture = read(&file);
        prop_assert_eq!(capture.packets, expected);
        prop_assert_eq!(capture.skipped.total(), 0);
    }
}
