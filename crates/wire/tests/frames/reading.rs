//! What is composed is read back; what is cut or broken gives an error and no panic.

use allocation_counter::measure;
use proptest::prelude::*;
use tidegate_core::Ecn;
use tidegate_wire::{FrameError, Headers, Link, mark_congested, set_ecn};

use crate::compose::frames;

const LINKS: [Link; 5] =
    [Link::Ethernet, Link::RawIp, Link::LinuxCooked, Link::LinuxCooked2, Link::Loopback];

proptest! {
    #[test]
    fn what_is_composed_is_read_back(frame in frames()) {
        prop_assert_eq!(Headers::read(frame.link, &frame.bytes), Ok(frame.headers));
        let wire_length = frame.bytes.len() as u64;
        let captured = Headers::read_captured(frame.link, &frame.bytes, wire_length);
        prop_assert_eq!(captured, Ok(frame.headers));
    }

    #[test]
    fn a_frame_cut_before_the_end_of_its_packet_is_an_error(frame in frames()) {
        for length in 0..frame.end() {
            let error = Headers::read(frame.link, &frame.bytes[..length]).unwrap_err();
            match error {
                FrameError::Short { found, expected, .. } => prop_assert!(found < expected),
                other => prop_assert!(false, "{length}: {other}"),
            }
        }
        for length in frame.end()..frame.bytes.len() {
            prop_assert_eq!(Headers::read(frame.link, &frame.bytes[..length]), Ok(frame.headers));
        }
    }

    #[test]
    fn a_cut_capture_keeps_what_the_ip_header_says(frame in frames()) {
        let whole = frame.headers;
        let wire_length = frame.bytes.len() as u64;
        let ip_header = if frame.is_v4() {
            usize::from(frame.bytes[whole.link_header] & 15) * 4
        } else {
            40
        };
        for length in 0..frame.end() {
            let read = Headers::read_captured(frame.link, &frame.bytes[..length], wire_length);
            prop_assert_eq!(read.is_ok(), length >= whole.link_header + ip_header);
            let Ok(read) = read else { continue };
            let of_ip = |headers: Headers| {
                let flow = headers.flow.host_pair();
                (flow, headers.ip_length, headers.link_header, headers.dscp, headers.ecn)
            };
            prop_assert_eq!(of_ip(read), of_ip(whole));
            let ports = (read.flow.source().port(), read.flow.destination().port());
            let expected = (whole.flow.source().port(), whole.flow.destination().port());
            prop_assert!(ports == expected || ports == (0, 0));
            // Options that were cut are not known to be harmless.
            let Some(facts) = read.tcp else { continue };
            let expected = whole.tcp.expect("a cut adds nothing");
            prop_assert!(!facts.plain || expected.plain);
            prop_assert_eq!(tidegate_core::TcpFacts { plain: expected.plain, ..facts }, expected);
        }
    }

    #[test]
    fn no_bytes_make_anything_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        wire_length: u64,
    ) {
        for link in LINKS {
            hold(link, &bytes, wire_length);
        }
    }

    #[test]
    fn no_change_to_a_frame_makes_anything_panic(
        frame in frames(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        wire_length: u64,
    ) {
        let mut bytes = frame.bytes.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        hold(frame.link, &bytes, wire_length);
    }

    #[test]
    fn nothing_is_allocated(frame in frames()) {
        let mut bytes = frame.bytes.clone();
        let allocated = measure(|| {
            for length in 0..=bytes.len() {
                let _ = Headers::read(frame.link, &bytes[..length]);
                let _ = Headers::read_captured(frame.link, &bytes[..length], 1 << 40);
            }
            let _ = mark_congested(frame.link, &mut bytes);
            let _ = set_ecn(frame.link, &mut bytes, Ecn::Ect1);
        });
        prop_assert_eq!(allocated.count_total, 0);
    }
}

/// Whatever the bytes are: what is read lies within the frame, and a refused
/// rewriting changes nothing.
fn hold(link: Link, bytes: &[u8], wire_length: u64) {
    let _ = Headers::read_captured(link, bytes, wire_length);
    let read = Headers::read(link, bytes);
    if let Ok(headers) = read {
        assert!(headers.link_header as u64 + headers.ip_length.0 <= bytes.len() as u64);
    }
    let mut marked = bytes.to_vec();
    if mark_congested(link, &mut marked).is_err() {
        assert_eq!(marked, bytes);
        assert!(read.is_err() || read.is_ok_and(|headers| !headers.ecn.is_markable()));
    }
}

#[test]
fn allocations_are_counted() {
    assert_eq!(measure(|| drop(std::hint::black_box(vec![1_u8]))).count_total, 1);
}
