//! Operations that are slightly wrong: the comparisons notice them.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tidegate_core::curve::{Curve, Piece};

use crate::model::{Model, any_curve, climbing_curve, positive_curve};
use crate::operations::{first_reaching, is_delayed, is_minimum, is_slower, longest_wait};

/// Whether any of many inputs tells an operation from what it should be.
fn is_noticed<S: Strategy>(inputs: &S, differs: impl Fn(S::Value) -> bool) -> bool {
    let mut runner = TestRunner::deterministic();
    (0..200).any(|_| differs(inputs.new_tree(&mut runner).expect("any input will do").current()))
}

/// A curve that repeats itself as `like` does, with a value for every nanosecond.
fn drawn(like: &Curve, value: impl Fn(u64) -> i128) -> Curve {
    let tail = like.tail() + like.period();
    let points = 0..tail + like.period();
    let pieces = points.map(|at| Piece { start: at, value: value(at), slope: 0 }).collect();
    Curve::periodic_tail(pieces, tail, like.period(), like.rise())
}

#[test]
fn a_step_that_must_be_exceeded_is_noticed() {
    let inputs = (climbing_curve(), -40..400_i128);
    let found = |by: i128| {
        is_noticed(&inputs, |(model, value)| {
            model.curve().first_reaching(value + by) != first_reaching(&model, value)
        })
    };
    assert!(!found(0));
    assert!(found(1));
}

#[test]
fn a_minimum_that_changes_sides_a_nanosecond_late_is_noticed() {
    let found = |late: u64| {
        is_noticed(&(any_curve(), any_curve()), |(one, other)| {
            let right = one.curve().minimum(&other.curve()).unwrap();
            // Whichever was the lower one then.
            let curve = drawn(&right, |at| {
                let lower = |model: &Model| model.value(at.saturating_sub(late));
                if lower(&one) <= lower(&other) { one.value(at) } else { other.value(at) }
            });
            is_minimum(&curve, &one, &other).is_err()
        })
    };
    assert!(!found(0));
    assert!(found(1));
}

#[test]
fn a_delay_that_is_off_by_one_is_noticed() {
    let found = |wrong: fn(u64) -> u64| {
        is_noticed(&(any_curve(), 1..40_u64), |(model, by)| {
            is_delayed(&model.curve().delayed(wrong(by)), &model, by).is_err()
        })
    };
    assert!(!found(|by| by));
    assert!(found(|by| by + 1));
    assert!(found(|by| by - 1));
}

#[test]
fn a_wait_that_is_longest_between_the_starts_of_pieces_is_noticed() {
    let waits = |every_nanosecond: bool| {
        is_noticed(&(positive_curve(), positive_curve()), |(flow, service)| {
            let (a, b) = (flow.curve(), service.curve());
            if is_slower(&b, &a) {
                return false;
            }
            let starts: Vec<u64> = if every_nanosecond {
                (0..2_000).collect()
            } else {
                a.pieces_between(0, 2_000).map(|piece| piece.start).collect()
            };
            let wait = |at: u64| Some(b.first_reaching(a.value(at))?.saturating_sub(at));
            let longest =
                starts.into_iter().map(wait).try_fold(0, |most, wait| Some(most.max(wait?)));
            longest != longest_wait(&flow, &service)
        })
    };
    assert!(!waits(true));
    assert!(waits(false));
}
