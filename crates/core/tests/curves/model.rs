//! Random curves, with a slow reading of the same definition.

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_core::curve::{Curve, Piece};

/// Up to here results are compared at every nanosecond: many common periods of
/// two curves, which are 30 at most.
pub(crate) const DENSE: u64 = 400;

/// And at these, where only the long run matters.
pub(crate) const FAR: [u64; 4] = [10_007, 100_003, 1_000_003, 1_000_000_007];

/// A curve as it is defined: straight pieces, then the same again and again.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Length, first value and slope of each piece up to the end of the first period.
    pieces: Vec<(u64, i128, i128)>,
    /// How many of them are before the tail.
    before: usize,
    /// What a period adds.
    rise: i128,
}

impl Model {
    fn length(pieces: &[(u64, i128, i128)]) -> u64 {
        pieces.iter().map(|piece| piece.0).sum()
    }

    /// Where the tail begins, and its period.
    pub(crate) fn tail(&self) -> (u64, u64) {
        let (before, tail) = self.pieces.split_at(self.before);
        (Model::length(before), Model::length(tail))
    }

    /// The value, piece after piece.
    pub(crate) fn value(&self, at: u64) -> i128 {
        let (tail, period) = self.tail();
        let periods = if at < tail { 0 } else { (at - tail) / period };
        let mut left = at - periods * period;
        for &(length, value, slope) in &self.pieces {
            if left < length {
                return value + slope * i128::from(left) + self.rise * i128::from(periods);
            }
            left -= length;
        }
        unreachable!("the rest is less than the pieces")
    }

    /// The same as a [`Curve`].
    pub(crate) fn curve(&self) -> Curve {
        let mut start = 0;
        let pieces = self.pieces.iter().map(|&(length, value, slope)| {
            start += length;
            Piece { start: start - length, value, slope }
        });
        let (tail, period) = self.tail();
        Curve::periodic_tail(pieces.collect(), tail, period, self.rise)
    }

    /// Never falls: the running maximum of the values of its pieces.
    fn climbing(mut self) -> Model {
        let mut level = i128::MIN;
        for (length, value, slope) in &mut self.pieces {
            *slope = slope.abs();
            *value = (*value).max(level);
            level = *value + *slope * (i128::from(*length) - 1);
        }
        let first = self.pieces[self.before].1;
        self.rise = self.rise.abs().max(level - first);
        self
    }

    /// Nowhere below zero, and never falls.
    fn positive(self) -> Model {
        let mut climbing = self.climbing();
        let lowest = climbing.pieces[0].1.min(0);
        for piece in &mut climbing.pieces {
            piece.1 -= lowest;
        }
        climbing
    }
}

/// Jumps up and down, plateaus, negative values; tails of up to three pieces,
/// and straight ones.
pub(crate) fn any_curve() -> impl Strategy<Value = Model> {
    let piece = (1..5_u64, -20..20_i128, prop_oneof![Just(0), -6..6_i128]);
    let tail = (vec(piece.clone(), 1..4), -12..12_i128);
    let straight =
        (-20..20_i128, -3..3_i128).prop_map(|(value, slope)| (vec![(1, value, slope)], slope));
    // Periods of at most 6, so that two have one of at most 30 in common.
    let tail = tail.prop_map(|(mut pieces, rise)| {
        pieces.iter_mut().for_each(|piece| piece.0 = piece.0.min(2));
        (pieces, rise)
    });
    (vec(piece, 0..4), prop_oneof![3 => tail, 1 => straight]).prop_map(|(pieces, (tail, rise))| {
        Model { before: pieces.len(), pieces: [pieces, tail].concat(), rise }
    })
}

/// Curves that never fall.
pub(crate) fn climbing_curve() -> impl Strategy<Value = Model> {
    any_curve().prop_map(Model::climbing)
}

/// Curves that never fall and begin at zero or above.
pub(crate) fn positive_curve() -> impl Strategy<Value = Model> {
    any_curve().prop_map(Model::positive)
}

/// Whether `curve` is `expected`, at every nanosecond of a long time and far out.
pub(crate) fn agrees(curve: &Curve, expected: impl Fn(u64) -> i128) -> Result<(), TestCaseError> {
    for at in (0..DENSE).chain(FAR) {
        prop_assert_eq!(curve.value(at), expected(at), "at {} of {:?}", at, curve);
    }
    Ok(())
}

/// Whether two curves are the same function.
pub(crate) fn same(one: &Curve, other: &Curve) -> Result<(), TestCaseError> {
    agrees(one, |at| other.value(at))
}
