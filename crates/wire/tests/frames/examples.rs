//! Frames worked by hand.

use tidegate_core::{Bytes, Dscp, Ecn, FlowKey, Packet};
use tidegate_wire::{FrameError, Headers, Link, mark_congested};

/// An IPv4 header of 20 bytes with a payload of `length` - 20, of UDP.
fn ipv4(length: u16, fragment: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let [flags, offset] = fragment.to_be_bytes();
    let header = [0x45, 0xba, high, low, 0, 0, flags, offset, 64, 17, 0, 0];
    let ports = [0xc3, 0x50, 0, 53];
    let mut packet = [&header[..], &[192, 0, 2, 1, 198, 51, 100, 7], &ports].concat();
    packet.resize(length.into(), 0);
    packet
}

fn error(link: Link, frame: &[u8]) -> String {
    Headers::read(link, frame).expect_err("the frame is broken").to_string()
}

#[test]
fn a_packet_has_the_facts_of_its_frame_and_the_framing_that_is_paid_for() {
    let frame = [&[2; 12], &[8, 0][..], &ipv4(28, 0)].concat();
    let headers = Headers::read(Link::Ethernet, &frame).unwrap();
    let flow = FlowKey::v4([192, 0, 2, 1], 50_000, [198, 51, 100, 7], 53, FlowKey::UDP);
    let expected =
        Packet { dscp: Dscp::EF, ecn: Ecn::Ect0, ..Packet::new(7, flow, Bytes(28 + 38)) };
    assert_eq!(headers.packet(7, Bytes(38)), expected);
}

#[test]
fn a_pppoe_session_in_two_tags_is_marked_where_its_packet_is() {
    let front = [
        &[2; 12][..],
        &[0x88, 0xa8, 0, 100, 0x81, 0, 0, 7, 0x88, 0x64],
        // Version and type, code, session, length, PPP protocol.
        &[0x11, 0, 0x12, 0x34, 0, 30, 0, 0x21],
    ]
    .concat();
    let mut frame = [front.clone(), ipv4(28, 0)].concat();
    let headers = Headers::read(Link::Ethernet, &frame).unwrap();
    assert_eq!(headers.link_header, 30);
    assert_eq!(mark_congested(Link::Ethernet, &mut frame), Ok(()));
    // The octet 0xba becomes 0xbb: the checksum, here wrong by all there is,
    // becomes less by one.
    let mut expected = [front, ipv4(28, 0)].concat();
    expected[31] = 0xbb;
    expected[40..42].copy_from_slice(&[0xff, 0xfe]);
    assert_eq!(frame, expected);
}

#[test]
fn all_pieces_of_a_datagram_have_one_key() {
    const MORE: u16 = 0x2000;
    let keys = [MORE, MORE | 1, 2].map(|fragment| {
        let headers = Headers::read(Link::RawIp, &ipv4(28, fragment)).unwrap();
        assert!(headers.fragment);
        headers.flow
    });
    assert_eq!(keys, [FlowKey::v4([192, 0, 2, 1], 0, [198, 51, 100, 7], 0, FlowKey::UDP); 3]);
    assert!(!Headers::read(Link::RawIp, &ipv4(28, 0x4000)).unwrap().fragment, "may not be cut");
}

#[test]
fn pieces_behind_an_authentication_header_have_one_key() {
    // The bytes of the second piece look like a header that UDP follows.
    let keys = [0x2000, 5].map(|fragment| {
        let mut packet = ipv4(44, fragment);
        packet[9] = 51;
        packet[20..32].copy_from_slice(&[17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        Headers::read(Link::RawIp, &packet).unwrap().flow
    });
    assert_eq!(keys, [FlowKey::v4([192, 0, 2, 1], 0, [198, 51, 100, 7], 0, 51); 2]);
}

#[test]
fn a_packet_without_a_length_takes_the_frame_s() {
    let mut packet = ipv4(28, 0);
    packet[2..4].fill(0);
    assert_eq!(Headers::read(Link::RawIp, &packet).unwrap().ip_length, Bytes(28));
    let captured = Headers::read_captured(Link::RawIp, &packet, 60_000).unwrap();
    assert_eq!(captured.ip_length, Bytes(60_000));

    // In IPv6 a length of zero is stated where no header comes next: the rest is padding.
    let mut packet = [0; 46];
    for (next_header, length) in [(17, 46), (59, 40)] {
        packet[0] = 0x60;
        packet[6] = next_header;
        assert_eq!(Headers::read(Link::RawIp, &packet).unwrap().ip_length, Bytes(length));
    }
}

#[test]
fn an_error_says_what_was_found_and_what_was_expected() {
    let ethernet = |ether_type: &[u8], rest: &[u8]| {
        error(Link::Ethernet, &[&[2; 12], ether_type, rest].concat())
    };
    assert_eq!(error(Link::Ethernet, &[0; 13]), "found 13 bytes of Ethernet header, expected 14");
    assert_eq!(
        ethernet(&[8, 6], &[0; 28]),
        "found EtherType 0x0806, expected IPv4 (0x0800), IPv6 (0x86dd), a VLAN tag (0x8100, \
         0x88a8, 0x9100) or a PPPoE session (0x8864)"
    );
    assert_eq!(ethernet(&[0x81, 0], &[0; 3]), "found 3 bytes of VLAN tag, expected 4");
    assert_eq!(
        ethernet(&[0x88, 0x64], &[0x11, 0, 0, 1, 0, 2, 0xc0, 0x21]),
        "found PPP protocol 0xc021, expected IPv4 (0x0021) or IPv6 (0x0057)"
    );
    assert_eq!(
        error(Link::Loopback, &[0, 0, 0, 7]),
        "found address family 7, expected IPv4 (2) or IPv6 (10, 24, 28 or 30)"
    );
    assert_eq!(error(Link::RawIp, &[]), "found 0 bytes of IP header, expected 1");
    assert_eq!(error(Link::RawIp, &[0x50; 40]), "found IP version 5, expected 4 or 6");
    assert_eq!(
        error(Link::RawIp, &[0x44; 40]),
        "found an IPv4 header of 16 bytes, expected at least 20"
    );
    assert_eq!(error(Link::RawIp, &ipv4(28, 0)[..27]), "found 27 bytes of IP packet, expected 28");
    let mut packet = ipv4(28, 0);
    packet[3] = 19;
    assert_eq!(
        error(Link::RawIp, &packet),
        "found an IP packet of 19 bytes, expected at least the 20 of its headers"
    );
    assert_eq!(
        FrameError::NotEcnCapable.to_string(),
        "found a packet that is not ECN-capable, expected ECT(0), ECT(1) or CE"
    );
}
