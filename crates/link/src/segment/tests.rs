//! Super-packets made by hand, cut, and put together again.

use proptest::prelude::*;
use tidegate_wire::Link;

use super::*;

/// An Ethernet frame with `payload` after `head`, whose lengths are left for the caller.
fn frame(head: &[u8], payload: usize) -> Vec<u8> {
    let body = (0..payload).map(|at| (at % 251) as u8);
    head.iter().copied().chain(body).collect()
}

fn ethernet(kind: u16) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind.to_be_bytes()].concat()
}

fn tcp4(payload: usize, flags: u8) -> (Vec<u8>, Offload) {
    let mut head = ethernet(0x0800);
    let length = (20 + 32 + payload) as u16;
    head.extend([0x45, 0xb8]);
    head.extend(length.to_be_bytes());
    // Identification 0xffff, so that it wraps around.
    head.extend([0xff, 0xff, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7]);
    head.extend([1, 187, 195, 80, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9, 0x80, flags]);
    head.extend([1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6]);
    (frame(&head, payload), offload(CutKind::Tcp4, 34, 16))
}

fn tcp6(payload: usize) -> (Vec<u8>, Offload) {
    let mut head = ethernet(0x86dd);
    head.extend([0x60, 0x2a, 0, 0]);
    head.extend(((20 + payload) as u16).to_be_bytes());
    head.extend([6, 64]);
    head.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    head.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    head.extend([1, 187, 195, 80, 0, 0, 0, 1, 0, 0, 0, 9, 0x50, 0x19, 1, 0, 0, 0, 0, 0]);
    (frame(&head, payload), offload(CutKind::Tcp6, 54, 16))
}

fn udp4(payload: usize) -> (Vec<u8>, Offload) {
    let mut head = ethernet(0x0800);
    head.extend([0x45, 0]);
    head.extend(((28 + payload) as u16).to_be_bytes());
    head.extend([0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7]);
    head.extend([1, 187, 195, 80]);
    head.extend(((8 + payload) as u16).to_be_bytes());
    head.extend([0, 0]);
    (frame(&head, payload), offload(CutKind::Udp, 34, 6))
}

fn offload(kind: CutKind, start: u16, offset: u16) -> Offload {
    Offload {
        checksum: Some(PartialChecksum { start, offset }),
        cut: Some(Cut { kind, size: 1000, congestion_window_reduced_once: true }),
        headers: 0,
    }
}

/// Everything that a frame becomes, with checksums completed as the kernel completes them.
fn cut(frame: &[u8], offload: &Offload) -> Vec<(Bytes, Vec<u8>)> {
    let headers = Headers::read(Link::Ethernet, frame).unwrap();
    let segments = Segments::of(frame, &headers, offload).unwrap();
    let all = (0..segments.count()).map(|index| {
        let mut segment = vec![0xaa; segments.length(index)];
        let left = segments.write(frame, index, &mut segment);
        let PartialChecksum { start, offset } = left.checksum.unwrap();
        let (start, offset) = (usize::from(start), usize::from(offset));
        let checksum = !ones_complement(&segment[start..]);
        put16(&mut segment, start + offset, checksum);
        assert_eq!(left.cut, None);
        (segments.ip_length(index), segment)
    });
    all.collect()
}

/// RFC 1071, one byte after the other.
fn ones_complement(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for (at, byte) in bytes.iter().enumerate() {
        sum += u32::from(*byte) << if at % 2 == 0 { 8 } else { 0 };
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What a receiver checks: the header of IPv4, and the transport with its pseudo header.
fn assert_checksums(segment: &[u8], transport: usize, protocol: u8) {
    let ip = &segment[14..transport];
    let addresses = if ip[0] >> 4 == 4 {
        assert_eq!(ones_complement(ip), 0xffff, "header of IPv4");
        &ip[12..20]
    } else {
        &ip[8..40]
    };
    let length = ((segment.len() - transport) as u32).to_be_bytes();
    let covered = [addresses, &length, &[0, 0, 0, protocol], &segment[transport..]].concat();
    assert_eq!(ones_complement(&covered), 0xffff, "transport");
}

#[test]
fn segments_of_tcp_carry_the_same_bytes_with_numbers_of_their_own() {
    let fin_psh_ack_cwr = 0x80 | 0x10 | 8 | 1;
    let (frame, offload) = tcp4(2_500, fin_psh_ack_cwr);
    let segments = cut(&frame, &offload);
    assert_eq!(segments.len(), 3);
    let payload: Vec<u8> =
        segments.iter().flat_map(|(_, segment)| &segment[66..]).copied().collect();
    assert_eq!(payload, frame[66..]);
    for (index, (promised, segment)) in segments.iter().enumerate() {
        assert_checksums(segment, 34, 6);
        let headers = Headers::read(Link::Ethernet, segment).unwrap();
        assert_eq!(headers.ip_length, *promised);
        let facts = headers.tcp.unwrap();
        assert_eq!(facts.sequence, 0xffff_fff0_u32.wrapping_add(1_000 * index as u32));
        assert_eq!(facts.fin, index == 2);
        let identification = u16::from_be_bytes([segment[18], segment[19]]);
        assert_eq!(identification, 0xffff_u16.wrapping_add(index as u16));
        let flags = [0x90, 0x10, 0x19][index];
        assert_eq!(segment[47], flags, "segment {index}");
    }
    assert_eq!(segments.iter().map(|(it, _)| it.0).collect::<Vec<_>>(), [1_052, 1_052, 552]);
}

#[test]
fn segments_of_tcp_over_ipv6_and_datagrams_are_whole() {
    let (frame, offload) = tcp6(2_000);
    let segments = cut(&frame, &offload);
    assert_eq!(segments.len(), 2);
    for (promised, segment) in &segments {
        assert_checksums(segment, 54, 6);
        assert_eq!(Headers::read(Link::Ethernet, segment).unwrap().ip_length, *promised);
    }
    let (frame, offload) = udp4(2_001);
    let segments = cut(&frame, &offload);
    assert_eq!(segments.iter().map(|(_, it)| it.len()).collect::<Vec<_>>(), [1_042, 1_042, 43]);
    for (promised, segment) in &segments {
        assert_checksums(segment, 34, 17);
        assert_eq!(Headers::read(Link::Ethernet, segment).unwrap().ip_length, *promised);
        let stated = u16::from_be_bytes([segment[38], segment[39]]);
        assert_eq!(usize::from(stated), segment.len() - 34);
    }
}

#[test]
fn what_contradicts_itself_is_not_cut() {
    let (frame, right) = tcp4(2_500, 0x10);
    let headers = Headers::read(Link::Ethernet, &frame).unwrap();
    let is_cut = |offload: &Offload| Segments::of(&frame, &headers, offload).is_some();
    assert!(is_cut(&right));
    let with = |kind, size| Offload {
        cut: Some(Cut { kind, size, congestion_window_reduced_once: false }),
        ..right
    };
    assert!(!is_cut(&with(CutKind::Tcp6, 1_000)));
    assert!(!is_cut(&with(CutKind::Udp, 1_000)));
    assert!(!is_cut(&with(CutKind::Fragments, 1_000)));
    assert!(!is_cut(&with(CutKind::Tcp4, 0)));
    assert!(!is_cut(&Offload { checksum: None, ..right }));
    // The header inside a tunnel.
    let inner = PartialChecksum { start: 54, offset: 16 };
    assert!(!is_cut(&Offload { checksum: Some(inner), ..right }));
}

proptest! {
    /// Whatever a header says of whatever bytes, nothing panics, and what is cut is as
    /// long as what there was.
    #[test]
    fn any_bytes_are_cut_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        header in any::<[u8; 10]>(),
        flips in prop::collection::vec((0..200_usize, any::<u8>()), 0..8),
        size in 0..200_usize,
        of_tcp in any::<bool>(),
    ) {
        let (mut frame, mut offload) = if of_tcp { tcp4(size, 0x18) } else { udp4(size) };
        for (at, value) in flips {
            let at = at % frame.len();
            frame[at] = value;
        }
        if let Some(cut) = &mut offload.cut {
            cut.size = u16::from_ne_bytes([header[4], header[5]]);
        }
        let random = Offload::read(header).unwrap_or_default();
        for (frame, offload) in [(&frame, offload), (&bytes, random), (&frame, random)] {
            let Ok(headers) = Headers::read(Link::Ethernet, frame) else { continue };
            let Some(segments) = Segments::of(frame, &headers, &offload) else { continue };
            let mut payload = 0;
            for index in 0..segments.count() {
                let mut segment = vec![0; segments.length(index)];
                segments.write(frame, index, &mut segment);
                payload += segment.len() - segments.payload;
                prop_assert!(segments.ip_length(index).0 > 0);
            }
            prop_assert_eq!(payload, segments.length - segments.payload);
        }
    }
}
