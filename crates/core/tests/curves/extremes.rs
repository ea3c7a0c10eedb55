//! Times and values at the limits of their ranges: nothing panics, and everything
//! within [`FARTHEST`] that fits is exact.

use proptest::prelude::*;
use tidegate_core::curve::{Curve, FARTHEST, MOST_PIECES, PER_BYTE, Piece};
use tidegate_core::{Bytes, Rate, Span};

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..5_u64, (0..64_u32).prop_map(|shift| 1 << shift), Just(u64::MAX)]
}

fn extreme_curve() -> impl Strategy<Value = Curve> {
    let wide = (any::<bool>(), 0..127_u32)
        .prop_map(|(below, shift)| if below { -(1_i128 << shift) } else { 1 << shift });
    prop_oneof![
        (extreme(), extreme())
            .prop_map(|(burst, rate)| Curve::token_bucket(Bytes(burst), Rate(rate))),
        (extreme(), extreme())
            .prop_map(|(size, period)| Curve::staircase(Bytes(size), Span(period.max(1)))),
        (wide.clone(), wide.clone(), wide.clone(), extreme(), extreme()).prop_map(
            |(value, slope, rise, tail, period)| {
                let mut pieces = vec![Piece { start: 0, value, slope }];
                if tail > 0 {
                    pieces.push(Piece { start: tail, value: slope, slope: 0 });
                }
                Curve::periodic_tail(pieces, tail, period.max(1), rise)
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_panics(a in extreme_curve(), b in extreme_curve(), at in extreme(), which in 0..8) {
        let curve = match which {
            0 => a.delayed(at),
            1 => a.negated(),
            2 => a.greatest_so_far(),
            3 => a.line_above_from(at),
            4 => a.line_below_from(at),
            5 => a.least_from_here_on().unwrap_or(a),
            6 => a.positive_part().unwrap_or(a),
            _ => a,
        };
        let both = [
            curve.plus(&b), curve.minus(&b), curve.minimum(&b), curve.maximum(&b),
            curve.convolution(&b),
        ];
        for curve in both.into_iter().flatten() {
            let _ = (curve.value(at), curve.bytes(Span(at)), curve.long_run_rate());
            prop_assert!(curve.tail() + curve.period() <= FARTHEST);
        }
        let _ = (curve.deconvolution(&b), curve.vertical_deviation(&b));
        let service = b.greatest_so_far();
        let _ = (curve.is_slower_than(&b), curve.horizontal_deviation(&service));
        let _ = service.first_reaching(i128::from(at) << 60);
    }
}

proptest! {
    /// The least of two lines, however late they cross.
    #[test]
    fn the_minimum_of_lines_is_exact(
        a in (extreme(), extreme()), b in (extreme(), extreme()), at in 0..FARTHEST,
    ) {
        let line = |(burst, rate): (u64, u64)| Curve::token_bucket(Bytes(burst), Rate(rate));
        let least = line(a).minimum(&line(b)).unwrap();
        for at in [at, 0, FARTHEST - 1, FARTHEST] {
            let value = |(burst, rate): (u64, u64)| {
                i128::from(burst) * PER_BYTE + i128::from(rate) * i128::from(at)
            };
            prop_assert_eq!(least.value(at), value(a).min(value(b)));
        }
    }
}

#[test]
fn a_step_that_comes_again_after_centuries_does_not_within_what_is_known() {
    let step = Curve::staircase(Bytes(5), Span(u64::MAX));
    assert_eq!(step.bytes(Span(FARTHEST)), Bytes(5));
    assert_eq!(step.delayed(FARTHEST), Curve::zero());
    assert_eq!(step.delayed(FARTHEST - 1).value(FARTHEST), 5 * PER_BYTE);
}

#[test]
fn periods_without_a_common_measure_are_an_error_and_not_endless_work() {
    let one = Curve::staircase(Bytes(1), Span(1_000_003));
    let other = Curve::staircase(Bytes(1), Span(1_000_033));
    for sum in [one.plus(&other), one.convolution(&other)] {
        let error = sum.unwrap_err();
        assert!(error.to_string().contains("more than 1048576 pieces"), "{error}");
    }
    // Cut as the message says, they add up.
    assert!(one.line_above_from(0).plus(&other).is_ok());
}

#[test]
fn a_line_that_would_begin_after_too_many_pieces_begins_earlier() {
    let steps = Curve::staircase(Bytes(1), Span::millis(1));
    for from in [FARTHEST - 1, FARTHEST, u64::MAX] {
        let (above, below) = (steps.line_above_from(from), steps.line_below_from(from));
        assert!(above.pieces().len() <= MOST_PIECES + 1);
        // It touches the steps from above where they begin, from below where they end.
        let step = 3 * MOST_PIECES as u64 * steps.period();
        assert_eq!(above.value(step), steps.value(step));
        assert_eq!(below.value(step - 1), steps.value(step - 1));
    }
    // Where there are few pieces, it still begins within what is known.
    let rare = Curve::staircase(Bytes(1), Span(1 << 45));
    assert_eq!(rare.line_above_from(u64::MAX).value(FARTHEST - 1), rare.value(FARTHEST - 1));
}

#[test]
fn pieces_are_counted_without_writing_them_out() {
    let steps = Curve::staircase(Bytes(1), Span(10)).delayed(25);
    for (from, until) in [(0, 0), (0, 1), (0, 25), (0, 26), (7, 36), (25, 35), (26, 400), (99, 7)] {
        let written = steps.pieces_between(from, until).count() as u64;
        assert_eq!(steps.count_between(from, until), written, "{from} to {until}");
    }
    let endless = Curve::staircase(Bytes(1), Span(10));
    assert_eq!(endless.count_between(5, FARTHEST), FARTHEST.div_ceil(10));
    assert_eq!(Curve::zero().count_between(5, u64::MAX), 1);
}
