//! Curves of measured flows, checked against all windows of the measurement.

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_core::contract::{Envelope, Term};
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::{Bytes, Rate, Span, Time};

/// Packets with gaps of some nanoseconds, many at once, not in order.
fn packets() -> impl Strategy<Value = Vec<(Time, Bytes)>> {
    let gap = prop_oneof![2 => Just(0), 3 => 1..9_u64, 1 => 20..60_u64];
    vec((gap, 1..2_000_u64), 1..30).prop_map(|packets| {
        let mut now = 1_000;
        let mut packets: Vec<_> = packets
            .into_iter()
            .map(|(gap, size)| {
                now += gap;
                (Time(now), Bytes(size))
            })
            .collect();
        packets.rotate_left(1);
        packets
    })
}

/// The most that came in any time of this length, ends included.
fn most_within(packets: &[(Time, Bytes)], span: u64) -> u64 {
    let within = |start: u64| {
        let inside = packets.iter().filter(|(at, _)| (start..=start + span).contains(&at.0));
        inside.map(|(_, size)| size.0).sum::<u64>()
    };
    packets.iter().map(|(at, _)| within(at.0)).max().expect("there are packets")
}

/// The least factor between a curve and what was measured would hide an error in
/// one place: they are equal at every nanosecond up to the horizon.
fn is_the_least(curve: &Curve, packets: &[(Time, Bytes)], horizon: u64) -> bool {
    (0..=horizon).all(|span| curve.bytes(Span(span)).0 == most_within(packets, span))
}

proptest! {
    #[test]
    fn a_measured_curve_is_the_least_and_safe_beyond_the_horizon(
        packets in packets(), horizon in 0..200_u64,
    ) {
        let curve = Curve::measured(&packets, Span(horizon)).unwrap();
        prop_assert!(is_the_least(&curve, &packets, horizon));
        let mut last = 0;
        for span in 0..1_500 {
            let bytes = curve.bytes(Span(span)).0;
            prop_assert!(most_within(&packets, span) <= bytes && last <= bytes, "at {}", span);
            last = bytes;
        }
        // No window within the horizon has less traffic for its length.
        let rate = (curve.rise(), i128::from(curve.period()));
        for span in 0..=horizon {
            prop_assert!(rate.0 * i128::from(span + 1) <= curve.value(span) * rate.1);
        }
    }

    #[test]
    fn envelopes_lie_above_and_touch(packets in packets(), terms in 1..6_usize) {
        // Stretched to milliseconds, so that rates are those of links.
        let packets: Vec<_> =
            packets.into_iter().map(|(at, size)| (Time(at.0 * 1_000_003), size)).collect();
        let curve = Curve::measured(&packets, Span::millis(100)).unwrap();
        let envelope = Envelope::above(&curve, terms).unwrap();
        prop_assert!(envelope.terms().len() <= terms);
        let corners: Vec<u64> =
            curve.pieces_between(0, 2_000_000_000).map(|piece| piece.start).collect();
        for term in envelope.terms() {
            let Term::TokenBucket { burst, rate } = *term else { panic!("{term} is no bucket") };
            let line = Curve::token_bucket(burst, rate);
            prop_assert!(corners.iter().all(|at| line.value(*at) >= curve.value(*at)));
            let lower = |at: &u64| line.value(*at) - PER_BYTE < curve.value(*at);
            prop_assert!(burst == Bytes(1) || corners.iter().any(lower), "{} is loose", term);
        }
        let all = Envelope::above(&curve, Envelope::MOST_TERMS).unwrap().curve().unwrap();
        if terms > 1 {
            prop_assert!(envelope.curve().unwrap().value(0) >= all.value(0));
        }
    }
}

#[test]
fn a_curve_that_is_not_the_least_is_told() {
    let packets = [(Time(0), Bytes(10)), (Time(7), Bytes(20)), (Time(9), Bytes(10))];
    let curve = Curve::measured(&packets, Span(20)).unwrap();
    assert!(is_the_least(&curve, &packets, 20));
    // A nanosecond late or early at a step is seen, and so is a byte.
    assert!(!is_the_least(&curve.delayed(1), &packets, 20));
    assert!(!is_the_least(
        &curve.plus(&Curve::token_bucket(Bytes(1), Rate(0))).unwrap(),
        &packets,
        20
    ));
    let early = Curve::measured(&[packets[0], (Time(6), Bytes(20)), packets[2]], Span(20)).unwrap();
    assert!(!is_the_least(&early, &packets, 20));
}

#[test]
fn what_comes_every_period_is_measured_as_a_staircase() {
    let packets: Vec<_> = (0..50).map(|frame| (Time(frame * 20_000_000), Bytes(160))).collect();
    let curve = Curve::measured(&packets, Span(200_000_000 - 1)).unwrap();
    assert_eq!(curve, Curve::staircase(Bytes(160), Span::millis(20)));
    assert_eq!(Envelope::above(&curve, 2).unwrap().to_string(), "160 B + 64 kbit/s");
    assert_eq!(Curve::measured(&[], Span::seconds(1)).unwrap(), Curve::zero());
}
