//! Two small curves go through every operation, checked by definition where that is
//! short and by law where it is not.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0 | how far lengths and values are shifted left: 0 leaves nanoseconds, 48 is the most |
//! | 1 | a time, shifted likewise |
//! | 2, 3 | `....ttbb`: `bb` pieces before the tail of each curve and `1 + tt` in it |
//! | 4, 5 | what the period of each adds, signed, shifted likewise |
//! | then | pieces of three bytes, those of the first curve first |
//! | length, value, slope | a length of 1 to 4, a signed value, a slope of -8 to 7 |
//!
//! Bytes that are cut off read as zero. Nothing here reaches the limits of the
//! range, so all laws hold exactly; an operation with too many pieces is not a bug.

use std::collections::BTreeSet;

use tidegate_core::contract::Envelope;
use tidegate_core::curve::{Curve, FARTHEST, PER_BYTE, Piece};
use tidegate_core::{Bytes, Span, Time};

const MOST_SHIFT: u8 = 48;

/// Puts the curves of `input` through every operation.
///
/// # Panics
/// When a result breaks a definition or a law.
pub fn fuzz_one(input: &[u8]) {
    let mut bytes = input.iter().copied().chain(std::iter::repeat(0));
    let mut next = || bytes.next().expect("zeros go on for ever");
    let shift = next().min(MOST_SHIFT);
    let by = u64::from(next()) << shift;
    let shapes = [next(), next()];
    let rises = [next(), next()].map(|rise| i128::from(rise.cast_signed()) << shift);
    let [a, b] = [0, 1].map(|which| curve(shapes[which], rises[which], shift, &mut next));
    let points = points(&a, &b, by);
    point_by_point(&a, &b, &points);
    one_by_one(&a, by, &points);
    min_plus(&a, &b, &points);
    deviations(&rising(&a), &rising(&b), &points);
    measured(&a, Span(by));
}

fn curve(shape: u8, rise: i128, shift: u8, next: &mut impl FnMut() -> u8) -> Curve {
    let (before, in_tail) = (usize::from(shape & 3), usize::from(shape >> 2 & 3) + 1);
    let mut ends = vec![0];
    let mut pieces = Vec::new();
    for _ in 0..before + in_tail {
        let (length, value, slope) = (next() % 4 + 1, next().cast_signed(), next() % 16);
        let start = ends[ends.len() - 1];
        let (value, slope) = (i128::from(value) << shift, i128::from(slope) - 8);
        pieces.push(Piece { start, value, slope });
        ends.push(start + (u64::from(length) << shift));
    }
    let (tail, end) = (ends[before], ends[before + in_tail]);
    Curve::periodic_tail(pieces, tail, end - tail, rise)
}

/// Where the curves have corners in their first periods, and nearby, and far out;
/// sums of two of them are within what curves know of.
fn points(a: &Curve, b: &Curve, by: u64) -> BTreeSet<u64> {
    let until = a.tail().max(b.tail()) + a.period() + b.period();
    let starts = [a, b].map(|curve| curve.pieces_between(0, until).map(|piece| piece.start));
    let near = starts.into_iter().flatten().chain([by, until]);
    let near = near.flat_map(|at| [at.saturating_sub(1), at, at + 1]);
    let all = near.chain([until.saturating_mul(100), until.saturating_mul(10_007)]);
    all.filter(|at| *at < FARTHEST / 2).collect()
}

fn point_by_point(a: &Curve, b: &Curve, points: &BTreeSet<u64>) {
    let is = |found: Result<Curve, _>, expected: fn(i128, i128) -> i128| {
        let Ok(found) = found else { return };
        for at in points {
            assert_eq!(found.value(*at), expected(a.value(*at), b.value(*at)), "{a:?}, {b:?}");
        }
    };
    is(a.plus(b), |a, b| a + b);
    is(a.minus(b), |a, b| a - b);
    is(a.minimum(b), i128::min);
    is(a.maximum(b), i128::max);
    is(a.positive_part(), |a, _| a.max(0));
    is(Ok(a.negated()), |a, _| -a);
    for (from, until) in points.iter().zip(points.iter().skip(1).take(20)) {
        let pieces: Vec<_> = a.pieces_between(*from, *until).collect();
        assert_eq!(a.count_between(*from, *until), pieces.len() as u64, "{a:?}");
        assert!(pieces.iter().all(|piece| piece.value == a.value(piece.start)), "{a:?}");
    }
}

fn one_by_one(a: &Curve, by: u64, points: &BTreeSet<u64>) {
    let (later, so_far) = (a.delayed(by), a.greatest_so_far());
    let (above, below) = (a.line_above_from(by), a.line_below_from(by));
    let least = a.least_from_here_on();
    assert_eq!(least.is_some(), a.rise() >= 0, "{a:?}");
    let mut most = i128::MIN;
    for &at in points {
        let value = a.value(at);
        assert_eq!(later.value(at + by), value, "{a:?}");
        assert!(at >= by || later.value(at) == 0, "{a:?}");
        assert!((below.value(at)..=above.value(at)).contains(&value), "{a:?}");
        most = most.max(value);
        assert!(so_far.value(at) >= most, "{a:?}");
        // The first time at which it is as high; there it was not raised for nothing.
        let high = so_far.value(at);
        let first = so_far.first_reaching(high).expect("it is as high");
        assert!(first <= at && so_far.value(first) >= high, "{a:?}");
        assert!(first == 0 || so_far.value(first - 1) < high, "{a:?}");
        assert_eq!(a.value(first), so_far.value(first), "{a:?}");
        if let Some(least) = &least {
            assert!(points.range(at..).all(|later| least.value(at) <= a.value(*later)), "{a:?}");
        }
    }
    if let Some(least) = least {
        // Mirrored, what is least from the right is the least that was not undercut.
        assert_eq!(least.least_from_here_on().as_ref(), Some(&least), "{a:?}");
    }
}

fn min_plus(a: &Curve, b: &Curve, points: &BTreeSet<u64>) {
    let near = || points.iter().take(20).copied();
    if let Ok(both) = a.convolution(b) {
        for one in near() {
            let sum = |other: u64| a.value(one) + b.value(other);
            assert!(near().all(|other| both.value(one + other) <= sum(other)), "{a:?}, {b:?}");
        }
        for at in 0..40 {
            let least = (0..=at).map(|s| a.value(s) + b.value(at - s)).min();
            assert_eq!(Some(both.value(at)), least, "at {at}: {a:?}, {b:?}");
        }
    }
    let Ok(Some(behind)) = a.deconvolution(b) else { return };
    for at in near() {
        let gap = |since: u64| a.value(at + since) - b.value(since);
        assert!(near().all(|since| behind.value(at) >= gap(since)), "{a:?}, {b:?}");
    }
    assert_eq!(a.vertical_deviation(b), Ok(Some(behind.value(0))), "{a:?}, {b:?}");
    // Dual to convolution: none lower would do.
    if let Ok(above) = behind.convolution(b) {
        assert!(near().all(|at| a.value(at) <= above.value(at)), "{a:?}, {b:?}");
    }
}

/// Nowhere below zero, and never falling.
fn rising(curve: &Curve) -> Curve {
    let rising = curve.greatest_so_far();
    let lift = Curve::line(rising.value(0).min(0).saturating_neg(), 0);
    rising.plus(&lift).expect("a constant adds no pieces")
}

fn deviations(a: &Curve, b: &Curve, points: &BTreeSet<u64>) {
    let Ok(Some(delay)) = a.horizontal_deviation(b) else { return };
    assert!(points.iter().all(|at| a.value(*at) <= b.value(at + delay)), "{a:?}, {b:?}");
    // So much later it asks for no more than the service gives, and no sooner.
    let excess = |by: u64| {
        let most = a.delayed(by).vertical_deviation(b).ok()?;
        Some(most.expect("it is as bounded as the delay"))
    };
    assert!(excess(delay).is_none_or(|most| most <= 0), "{a:?}, {b:?}");
    if delay > 0 {
        assert!(excess(delay - 1).is_none_or(|most| most > 0), "{a:?}, {b:?}");
    }
}

/// Packets where the pieces begin, as large as the values.
fn measured(a: &Curve, horizon: Span) {
    let size = |piece: &Piece| (piece.value >> 30).unsigned_abs().min(1_000_000) as u64 + 1;
    let packet = |piece: Piece| (Time(piece.start), Bytes(size(&piece)));
    let packets: Vec<_> = a.pieces_between(0, 3 * (a.tail() + a.period())).map(packet).collect();
    let curve = Curve::measured(&packets, horizon).expect("there are few packets");
    for (index, first) in packets.iter().enumerate() {
        let mut bytes = 0;
        for (at, size) in &packets[index..] {
            bytes += size.0;
            assert!(curve.bytes(at.since(first.0)).0 >= bytes, "{packets:?} to {horizon}");
        }
    }
    for terms in [1, 2, Envelope::MOST_TERMS] {
        let Ok(envelope) = Envelope::above(&curve, terms) else { return };
        let line = envelope.curve().expect("token buckets have no periods");
        for (at, _) in &packets {
            assert!(line.value(at.0) >= curve.value(at.0), "{curve:?}: {envelope}");
        }
    }
    assert_eq!(curve.value(0) % PER_BYTE, 0);
}
