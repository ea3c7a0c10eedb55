//! The laws of rewriting the congestion field.

use proptest::prelude::*;
use tidegate_core::Ecn;
use tidegate_wire::{FrameError, Headers, mark_congested, set_ecn};

use crate::compose::{Frame, frames, sum};

fn ip_header(frame: &Frame, bytes: &[u8]) -> Vec<u8> {
    let packet = &bytes[frame.headers.link_header..];
    packet[..usize::from(packet[0] & 15) * 4].to_vec()
}

/// The frame with the bits that rewriting may change set to zero.
fn without_field(frame: &Frame, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let packet = &mut bytes[frame.headers.link_header..];
    if frame.is_v4() {
        packet[1] &= !0b11;
        packet[10..12].fill(0);
    } else {
        packet[1] &= !0b11_0000;
    }
    bytes
}

fn codepoints() -> impl Strategy<Value = Ecn> {
    prop::sample::select(vec![Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce])
}

proptest! {
    #[test]
    fn a_mark_is_refused_or_sets_ce_and_nothing_else(frame in frames()) {
        let mut marked = frame.bytes.clone();
        let result = mark_congested(frame.link, &mut marked);
        if frame.headers.ecn == Ecn::NotEct {
            prop_assert_eq!(result, Err(FrameError::NotEcnCapable));
            prop_assert_eq!(marked, frame.bytes);
            return Ok(());
        }
        prop_assert_eq!(result, Ok(()));
        let expected = Headers { ecn: Ecn::Ce, ..frame.headers };
        prop_assert_eq!(Headers::read(frame.link, &marked), Ok(expected));
        prop_assert_eq!(without_field(&frame, &marked), without_field(&frame, &frame.bytes));
        if frame.is_v4() {
            prop_assert_eq!(sum(&ip_header(&frame, &marked)), 0xffff);
        }
        let once = marked.clone();
        prop_assert_eq!(mark_congested(frame.link, &mut marked), Ok(()));
        prop_assert_eq!(marked, once);
    }

    #[test]
    fn the_checksum_is_that_of_a_full_computation(frame in frames(), ecn in codepoints()) {
        let mut rewritten = frame.bytes.clone();
        prop_assert_eq!(set_ecn(frame.link, &mut rewritten, ecn), Ok(()));
        let expected = Headers { ecn, ..frame.headers };
        prop_assert_eq!(Headers::read(frame.link, &rewritten), Ok(expected));
        prop_assert_eq!(without_field(&frame, &rewritten), without_field(&frame, &frame.bytes));
        if frame.is_v4() {
            let mut header = ip_header(&frame, &rewritten);
            let found = [header[10], header[11]];
            header[10..12].fill(0);
            prop_assert_eq!(found, (!sum(&header)).to_be_bytes());
        }
    }

    #[test]
    fn setting_the_field_back_gives_the_frame_back(frame in frames(), ecn in codepoints()) {
        let mut bytes = frame.bytes.clone();
        set_ecn(frame.link, &mut bytes, ecn).unwrap();
        set_ecn(frame.link, &mut bytes, frame.headers.ecn).unwrap();
        prop_assert_eq!(bytes, frame.bytes);
    }

    #[test]
    fn a_wrong_checksum_stays_wrong_by_as_much(
        frame in frames().prop_filter("IPv4 has a checksum", Frame::is_v4),
        // All ones and zero are the same number in ones' complement.
        checksum in prop_oneof![any::<u16>(), Just(0), Just(0xffff)],
        ecn in codepoints(),
    ) {
        let mut before = frame.bytes.clone();
        let at = frame.headers.link_header + 10;
        before[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        let mut after = before.clone();
        set_ecn(frame.link, &mut after, ecn).unwrap();
        prop_assert_eq!(sum(&ip_header(&frame, &after)), sum(&ip_header(&frame, &before)));
        // Nothing to change changes nothing.
        prop_assert!(ecn != frame.headers.ecn || after == before);
    }

    #[test]
    fn a_cut_frame_is_not_rewritten(frame in frames(), ecn in codepoints()) {
        for length in 0..frame.end() {
            let mut cut = frame.bytes[..length].to_vec();
            prop_assert!(mark_congested(frame.link, &mut cut).is_err());
            prop_assert!(set_ecn(frame.link, &mut cut, ecn).is_err());
            prop_assert_eq!(&cut, &frame.bytes[..length]);
        }
    }
}
