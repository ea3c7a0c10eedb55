//! Every operation, checked against its definition nanosecond by nanosecond.

use proptest::prelude::*;
use tidegate_core::curve::Curve;

use crate::model::{DENSE, FAR, Model, agrees, any_curve, climbing_curve, positive_curve};

/// Longer than what decides any value up to [`DENSE`] of small curves: rates that
/// differ do so by at least 1/30, and values by less than 200.
const LONG: u64 = 8_000;

fn values(model: &Model, until: u64) -> Vec<i128> {
    (0..until).map(|at| model.value(at)).collect()
}

/// The lowest of `one[s] + other[t - s]`, summands in `range` only.
fn convolved(one: &[i128], other: &[i128], at: usize) -> i128 {
    (0..=at).map(|s| one[s] + other[at - s]).min().expect("0 is among them")
}

/// The lower of both, point by point.
pub(crate) fn is_minimum(curve: &Curve, one: &Model, other: &Model) -> Result<(), TestCaseError> {
    agrees(curve, |at| one.value(at).min(other.value(at)))
}

/// What the model was `by` nanoseconds before, and nothing before that.
pub(crate) fn is_delayed(curve: &Curve, model: &Model, by: u64) -> Result<(), TestCaseError> {
    agrees(curve, |at| if at < by { 0 } else { model.value(at - by) })
}

/// The first nanosecond at which the model is as high.
pub(crate) fn first_reaching(model: &Model, value: i128) -> Option<u64> {
    (0..LONG).find(|at| model.value(*at) >= value)
}

/// The longest that a nanosecond of the flow waits; neither curve falls, nor is the
/// service the slower one.
pub(crate) fn longest_wait(flow: &Model, service: &Model) -> Option<u64> {
    let (flow, service) = (values(flow, LONG), values(service, 4 * LONG));
    // Both climb, so where the service comes to the flow's value only moves on.
    let (mut reached, mut most) = (0, 0);
    for (at, value) in flow.iter().enumerate() {
        while service.get(reached).is_some_and(|service| service < value) {
            reached += 1;
        }
        most = most.max(reached.saturating_sub(at));
    }
    (reached < service.len()).then_some(most as u64)
}

/// Exact long-run rates compared.
pub(crate) fn is_slower(one: &Curve, other: &Curve) -> bool {
    one.rise() * i128::from(other.period()) < other.rise() * i128::from(one.period())
}

proptest! {
    #[test]
    fn a_curve_has_the_values_it_was_made_of(model in any_curve()) {
        let curve = model.curve();
        agrees(&curve, |at| model.value(at))?;
        // Written out for three more periods, it is found to repeat itself as early.
        let (tail, period) = (curve.tail(), curve.period());
        let mut pieces: Vec<_> = curve.pieces_between(0, tail + 3 * period).collect();
        pieces.extend(curve.pieces_between(tail + 3 * period, tail + 4 * period));
        let longer = Curve::periodic_tail(pieces, tail + 3 * period, period, curve.rise());
        prop_assert_eq!(longer.tail(), tail);
        prop_assert!(curve.tail() <= model.tail().0);
    }

    #[test]
    fn pieces_between_are_the_values_between(
        model in any_curve(), from in 0..60_u64, length in 1..60_u64,
    ) {
        let pieces: Vec<_> = model.curve().pieces_between(from, from + length).collect();
        prop_assert_eq!(pieces[0].start, from);
        for at in from..from + length {
            let piece = pieces.iter().rev().find(|piece| piece.start <= at).unwrap();
            prop_assert_eq!(piece.at(at), model.value(at));
        }
    }

    #[test]
    fn sums_and_extremes_are_point_by_point(one in any_curve(), other in any_curve()) {
        let (a, b) = (one.curve(), other.curve());
        agrees(&a.plus(&b).unwrap(), |at| one.value(at) + other.value(at))?;
        agrees(&a.minus(&b).unwrap(), |at| one.value(at) - other.value(at))?;
        is_minimum(&a.minimum(&b).unwrap(), &one, &other)?;
        agrees(&a.maximum(&b).unwrap(), |at| one.value(at).max(other.value(at)))?;
        agrees(&a.positive_part().unwrap(), |at| one.value(at).max(0))?;
        agrees(&a.negated(), |at| -one.value(at))?;
        prop_assert_eq!(a.is_slower_than(&b), is_slower(&a, &b));
    }

    #[test]
    fn delayed_is_later_and_nothing_before(model in any_curve(), by in 0..40_u64) {
        is_delayed(&model.curve().delayed(by), &model, by)?;
    }

    #[test]
    fn least_from_here_on_is_the_least_of_all_later_values(model in any_curve()) {
        let curve = model.curve();
        match curve.least_from_here_on() {
            None => prop_assert!(curve.rise() < 0),
            Some(least) => agrees(&least, |at| {
                (at..at + 60).map(|later| model.value(later)).min().unwrap()
            })?,
        }
    }

    #[test]
    fn greatest_so_far_is_the_greatest_of_all_earlier_values(model in any_curve()) {
        let so_far = model.curve().greatest_so_far();
        let mut most = i128::MIN;
        for at in 0..DENSE {
            most = most.max(model.value(at));
            prop_assert_eq!(so_far.value(at), most, "at {}", at);
        }
        for far in FAR {
            let recent = (far - 30..=far).map(|at| model.value(at)).max().unwrap();
            prop_assert_eq!(so_far.value(far), recent.max(most));
        }
    }

    #[test]
    fn first_reaching_is_the_first(model in climbing_curve(), value in -40..400_i128) {
        prop_assert_eq!(model.curve().first_reaching(value), first_reaching(&model, value));
    }

    #[test]
    fn lines_above_and_below_are_tight(model in any_curve(), from in 0..40_u64) {
        let curve = model.curve();
        let (above, below) = (curve.line_above_from(from), curve.line_below_from(from));
        prop_assert!(above.is_affine_in_the_end() && below.is_affine_in_the_end());
        for at in (0..DENSE).chain(FAR) {
            prop_assert!(below.value(at) <= curve.value(at) && curve.value(at) <= above.value(at));
            if at < from.min(curve.tail()) {
                prop_assert_eq!((below.value(at), above.value(at)), (model.value(at), model.value(at)));
            }
        }
        // A line that is lower by one unit is somewhere below the curve.
        let lies_on = |line: &Curve, by: i128| {
            (0..DENSE).any(|at| (curve.value(at) - line.value(at)) * by > -i128::from(curve.period()))
        };
        prop_assert!(lies_on(&above, 1) && lies_on(&below, -1));
    }

    #[test]
    fn convolution_is_the_least_sum(one in any_curve(), other in any_curve()) {
        let convolution = one.curve().convolution(&other.curve()).unwrap();
        let (ones, others) = (values(&one, 2_000), values(&other, 2_000));
        for at in (0..DENSE).chain([1_000, 1_001, 1_500, 1_999]) {
            prop_assert_eq!(
                convolution.value(at), convolved(&ones, &others, at as usize), "at {}", at
            );
        }
    }

    #[test]
    fn deconvolution_is_the_greatest_difference(one in any_curve(), other in any_curve()) {
        let (a, b) = (one.curve(), other.curve());
        let Some(deconvolution) = a.deconvolution(&b).unwrap() else {
            prop_assert!(is_slower(&b, &a));
            return Ok(());
        };
        prop_assert!(!is_slower(&b, &a));
        let (ones, others) = (values(&one, LONG + 100), values(&other, LONG));
        for at in 0..100 {
            let most = others.iter().zip(&ones[at..]).map(|(b, a)| a - b).max().unwrap();
            prop_assert_eq!(deconvolution.value(at as u64), most, "at {}", at);
        }
    }

    #[test]
    fn vertical_deviation_is_the_greatest_difference(one in any_curve(), other in any_curve()) {
        let (a, b) = (one.curve(), other.curve());
        let expected = (!is_slower(&b, &a))
            .then(|| (0..LONG).map(|at| one.value(at) - other.value(at)).max().unwrap());
        prop_assert_eq!(a.vertical_deviation(&b).unwrap(), expected);
    }

    #[test]
    fn horizontal_deviation_is_the_greatest_wait(
        flow in positive_curve(), service in positive_curve(),
    ) {
        let (a, b) = (flow.curve(), service.curve());
        let found = a.horizontal_deviation(&b).unwrap();
        if is_slower(&b, &a) {
            prop_assert_eq!(found, None);
            return Ok(());
        }
        prop_assert_eq!(found, longest_wait(&flow, &service));
    }
}
