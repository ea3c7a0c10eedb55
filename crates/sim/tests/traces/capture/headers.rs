//! What is read from frames: link layers, extension headers, fragments, and frames
//! that are cut.

use tidegate_core::{Bytes, Ecn, FlowKey};

use super::writer::*;
use super::{read, read_one};

fn expected_flow() -> FlowKey {
    FlowKey::v4(HOME, 5_000, SERVER, 443, FlowKey::UDP)
}

#[test]
fn every_link_layer_is_taken_off() {
    let packet = any_packet();
    let cooked = |fields: &[u8]| [fields, &packet].concat();
    let ppp = [&[0x11, 0, 0, 1, 0, 130, 0, 0x21], &packet[..]].concat();
    let frames = [
        (ETHERNET, ethernet(IPV4, &packet)),
        (ETHERNET, ethernet(0x8100, &vlan(IPV4, &packet))),
        (ETHERNET, ethernet(0x88a8, &vlan(0x8100, &vlan(IPV4, &packet)))),
        (ETHERNET, ethernet(0x9100, &vlan(0x9100, &vlan(0x8100, &vlan(IPV4, &packet))))),
        (ETHERNET, ethernet(0x8864, &ppp)),
        (ETHERNET, ethernet(0x8100, &vlan(0x8864, &ppp))),
        (RAW_IP, packet.clone()),
        (12, packet.clone()),
        (228, packet.clone()),
        (LINUX_COOKED, cooked(&[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0])),
        (LINUX_COOKED_2, cooked(&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0])),
        (NULL, cooked(&[2, 0, 0, 0])),
        (NULL, cooked(&[0, 0, 0, 2])),
        (108, cooked(&[0, 0, 0, 2])),
    ];
    for (link, frame) in frames {
        let read = read_one(link, frame);
        assert_eq!(read.flow, expected_flow(), "link {link}");
        assert_eq!(read.size, Bytes(128), "link {link}");
    }
}

#[test]
fn a_pppoe_session_in_stacked_tags_holds_either_version() {
    let session = |protocol: u8, packet: &[u8]| {
        let length = (packet.len() as u16 + 2).to_be_bytes();
        let ppp = [&[0x11, 0, 0x12, 0x34], &length[..], &[0, protocol], packet].concat();
        ethernet(0x88a8, &vlan(0x8100, &vlan(0x8864, &ppp)))
    };
    let v4 = read_one(ETHERNET, session(0x21, &any_packet()));
    assert_eq!((v4.flow, v4.size), (expected_flow(), Bytes(128)));
    let segment = tcp(1_111, 443, 7, 0, 2, 0);
    let mut marked = ipv6(HOME_6, SERVER_6, 6, &segment);
    marked[1] = 0x30;
    let v6 = read_one(ETHERNET, session(0x57, &marked));
    let expected = FlowKey::new((HOME_6, 1_111).into(), (SERVER_6, 443).into(), FlowKey::TCP);
    assert_eq!((v6.flow, v6.size, v6.ecn), (expected, Bytes(60), Ecn::Ce));
    assert_eq!(v6.tcp.map(|facts| facts.syn), Some(true));

    // Cut within the session's header; PADT, which ends a session, is of
    // another EtherType, and the session's own control is not IP.
    let frames = [
        ethernet(0x8864, &[0x11, 0, 0, 1, 0, 130, 0]),
        ethernet(0x8863, &[0x11, 0xa7, 0, 1, 0, 0]),
        session(0x21, &[]),
        ethernet(0x8864, &[0x11, 0, 0, 1, 0, 8, 0xc0, 0x21, 9, 1, 0, 8]),
    ];
    let frames = frames.map(|data| Frame::new(0, data));
    let skipped = read(&pcap(Order { big: false }, false, ETHERNET, &frames)).skipped;
    assert_eq!((skipped.non_ip, skipped.malformed, skipped.total()), (2, 2, 4));
}

#[test]
fn padding_of_short_frames_is_no_part_of_the_packet() {
    let mut frame = ethernet(IPV4, &ipv4(HOME, SERVER, 6, &tcp(1, 2, 3, 4, 16, 0)));
    frame.resize(60, 0xee);
    let packet = read_one(ETHERNET, frame);
    assert_eq!(packet.size, Bytes(40));
    assert_eq!(packet.tcp.map(|tcp| tcp.payload), Some(0));
}

#[test]
fn extension_headers_lead_to_the_ports() {
    let segment = tcp(1_111, 443, 7, 0, 2, 0);
    let hop_by_hop = [&[60, 0, 5, 2, 0, 0, 1, 0][..]].concat();
    let destination_options = [6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let payload = [&hop_by_hop, &destination_options[..], &segment].concat();
    let packet = read_one(RAW_IP, ipv6(HOME_6, SERVER_6, 0, &payload));
    let expected = FlowKey::new((HOME_6, 1_111).into(), (SERVER_6, 443).into(), FlowKey::TCP);
    assert_eq!(packet.flow, expected);
    assert_eq!(packet.size, Bytes(40 + 8 + 16 + 20));
    let facts = packet.tcp.expect("the segment is whole");
    assert_eq!((facts.sequence, facts.payload, facts.syn), (7, 0, true));
}

#[test]
fn fragments_are_keyed_without_ports() {
    let datagram = udp(5_000, 443, 600);
    let expected = FlowKey::v4(HOME, 0, SERVER, 0, FlowKey::UDP);
    let mut first = ipv4(HOME, SERVER, 17, &datagram[..304]);
    first[6] = 0x20;
    let mut second = ipv4(HOME, SERVER, 17, &datagram[304..]);
    second[7] = 38;
    for fragment in [first, second] {
        assert_eq!(read_one(RAW_IP, fragment).flow, expected);
    }

    // In IPv6 too; the second's bytes look like another extension header.
    let expected = FlowKey::new((HOME_6, 0).into(), (SERVER_6, 0).into(), FlowKey::TCP);
    let header = |offset_and_more| [6, 0, 0, offset_and_more, 0, 0, 0, 9];
    for fragment in [
        [&header(1)[..], &tcp(1, 2, 3, 4, 16, 100)].concat(),
        [&header(120)[..], &[60; 40]].concat(),
    ] {
        let packet = read_one(RAW_IP, ipv6(HOME_6, SERVER_6, 44, &fragment));
        assert_eq!(packet.flow, expected);
        assert_eq!(packet.tcp, None);
    }

    // The authentication header of a datagram is in its first piece alone; the
    // second's bytes look like one that UDP follows.
    let authentication = [17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
    let mut first = ipv4(HOME, SERVER, 51, &[&authentication, &udp(1, 2, 300)[..]].concat());
    first[6] = 0x20;
    let mut second = ipv4(HOME, SERVER, 51, &[&authentication[..], &[0; 8]].concat());
    second[7] = 40;
    for fragment in [first, second] {
        assert_eq!(read_one(RAW_IP, fragment).flow, FlowKey::v4(HOME, 0, SERVER, 0, 51));
    }

    // A fragment header on a whole packet does not take the ports away.
    let atomic = [&header(0)[..], &tcp(1, 2, 3, 4, 16, 0)].concat();
    let packet = read_one(RAW_IP, ipv6(HOME_6, SERVER_6, 44, &atomic));
    assert_eq!(packet.flow.destination().port(), 2);
}

#[test]
fn frames_cut_by_the_snapshot_length_keep_their_size() {
    let whole = ethernet(IPV4, &ipv4(HOME, SERVER, 6, &tcp(80, 2_000, 3, 4, 17, 1_000)));
    let cut = |length| {
        let frames = [Frame::new(0, whole.clone()).cut(length)];
        read(&pcap(Order { big: false }, false, ETHERNET, &frames))
    };
    // To the TCP flags, the ports, the IP header: what is there is read.
    for (length, facts, port) in [(48, true, 80), (47, false, 80), (38, false, 80), (34, false, 0)]
    {
        let packet = cut(length).packets[0];
        assert_eq!(packet.size, Bytes(1_040), "{length}");
        assert_eq!(packet.tcp.is_some(), facts, "{length}");
        assert_eq!(packet.flow.source().port(), port, "{length}");
    }
    let facts = cut(48).packets[0].tcp.expect("the flags are there");
    assert_eq!((facts.payload, facts.fin, facts.acknowledgement), (1_000, true, Some(4)));
    for length in [33, 15, 14, 13, 0] {
        let capture = cut(length);
        assert_eq!((capture.packets.len(), capture.skipped.malformed), (0, 1), "{length}");
    }
}

#[test]
fn packets_without_a_length_take_that_of_the_wire() {
    let mut packet = any_packet();
    packet[2..4].fill(0);
    assert_eq!(read_one(ETHERNET, ethernet(IPV4, &packet)).size, Bytes(128));
    // An IPv6 segment that the network card was to cut into packets.
    let mut packet = ipv6(HOME_6, SERVER_6, 6, &tcp(1, 2, 3, 4, 16, 5_000));
    packet[4..6].fill(0);
    let packet = read_one(ETHERNET, ethernet(IPV6, &packet));
    assert_eq!(packet.size, Bytes(5_060));
    assert_eq!(packet.tcp.map(|tcp| tcp.payload), Some(5_000));
    // No next header and no payload is simply a packet of 40 bytes.
    let packet = read_one(ETHERNET, ethernet(IPV6, &ipv6(HOME_6, SERVER_6, 59, &[])));
    assert_eq!(packet.size, Bytes(40));
}

#[test]
fn other_protocols_have_no_ports() {
    let ping = read_one(RAW_IP, ipv4(HOME, SERVER, 1, &[8, 0, 1, 2, 3, 4, 5, 6]));
    assert_eq!(ping.flow, FlowKey::v4(HOME, 0, SERVER, 0, 1));
    let sctp = read_one(RAW_IP, ipv4(HOME, SERVER, 132, &udp(7, 8, 4)));
    assert_eq!(sctp.flow, FlowKey::v4(HOME, 7, SERVER, 8, 132));
}

#[test]
fn what_is_no_packet_is_counted() {
    let mut short_total = any_packet();
    short_total[3] = 19;
    let mut short_header = any_packet();
    short_header[0] = 0x44;
    let mut version = any_packet();
    version[0] = 0x55;
    let frames = [
        ethernet(ARP, &[0; 28]),
        ethernet(60, &[0xaa; 46]),
        ethernet(0x8864, &[0x11, 0, 0, 1, 0, 2, 0xc0, 0x21]),
        ethernet(IPV4, &[]),
        ethernet(IPV4, &short_total),
        ethernet(IPV4, &short_header),
        ethernet(IPV4, &version),
        ethernet(0x8100, &[0, 1]),
    ];
    let frames = frames.map(|data| Frame::new(0, data));
    let skipped = read(&pcap(Order { big: false }, false, ETHERNET, &frames)).skipped;
    assert_eq!((skipped.non_ip, skipped.malformed, skipped.total()), (3, 5, 8));
}

#[test]
fn payload_is_what_transport_carries() {
    let frames = [
        ipv4(HOME, SERVER, 17, &udp(1, 2, 700)),
        ipv6(HOME_6, SERVER_6, 17, &udp(1, 2, 800)),
        ipv4(HOME, SERVER, 6, &tcp(1, 2, 3, 4, 16, 900)),
        ipv4(HOME, SERVER, 1, &[0; 30]),
    ];
    let frames = frames.map(|data| Frame::new(0, data));
    let capture = read(&pcap(Order { big: false }, false, RAW_IP, &frames));
    let payloads: Vec<_> = capture.packets.iter().map(|packet| packet.payload().0).collect();
    assert_eq!(payloads, [700, 800, 900, 0]);
}
