//! Curves from two curves, pointwise: sum, difference, minimum, maximum.

use std::cell::Cell;

use super::exact::{gain, greatest_common_divisor, time_to_gain};
use super::{Curve, FARTHEST, MOST_PIECES, Piece, TooManyPieces};

impl Curve {
    /// The sum of both: what two flows can send together.
    ///
    /// # Errors
    /// When both are periodic and the least common multiple of their periods gives
    /// too many pieces.
    pub fn plus(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        let sum = |one: Piece, other: Piece, _: u64, pieces: &mut Vec<Piece>| {
            pieces.push(Piece {
                start: one.start,
                value: one.value.saturating_add(other.value),
                slope: one.slope.saturating_add(other.slope),
            });
        };
        self.combine_all(other, sum, i128::saturating_add)
    }

    /// What remains of `self` when `other` is taken away; it may be negative.
    ///
    /// # Errors
    /// As [`Curve::plus`].
    pub fn minus(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        self.plus(&other.negated())
    }

    /// The curve mirrored at the axis of time.
    #[must_use]
    pub fn negated(&self) -> Curve {
        let mirror = |piece: &Piece| Piece {
            value: piece.value.saturating_neg(),
            slope: piece.slope.saturating_neg(),
            ..*piece
        };
        let pieces = self.pieces.iter().map(mirror).collect();
        Curve { pieces, rise: self.rise.saturating_neg(), ..*self }
    }

    /// The lower of both at every point: what a flow that keeps to both can send.
    ///
    /// # Errors
    /// As [`Curve::plus`] if both have the same long-run rate; otherwise when the
    /// slower one becomes the lower one only after too many pieces.
    pub fn minimum(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        let (slow, fast) = if other.is_slower_than(self) { (other, self) } else { (self, other) };
        if !slow.is_slower_than(fast) {
            return self.combine_all(other, lower, |one, _| one);
        }
        let tail = slow.stays_below_from(fast).min(FARTHEST);
        limited(&[(slow, tail + slow.period), (fast, tail)])?;
        let mut pieces = slow.merge_between(fast, 0, tail, &lower);
        pieces.extend(slow.pieces_between(tail, tail + slow.period));
        Ok(Curve::repeated(pieces, tail, slow.period, slow.rise))
    }

    /// The higher of both at every point.
    ///
    /// # Errors
    /// As [`Curve::minimum`].
    pub fn maximum(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        Ok(self.negated().minimum(&other.negated())?.negated())
    }

    /// The time from which `self`, the slower one, is at most `fast` for ever.
    pub(super) fn stays_below_from(&self, fast: &Curve) -> u64 {
        let start = self.tail.max(fast.tail);
        let gap = self.line_above(start).saturating_sub(fast.line_below(start));
        start.saturating_add(time_to_gain(gap, self.long_run(), fast.long_run()))
    }

    /// The most by which `self` exceeds `other` before `until`, which is above 0.
    pub(super) fn most_above(&self, other: &Curve, until: u64) -> Result<i128, TooManyPieces> {
        let most = Cell::new(i128::MIN);
        let look = |one: Piece, other: Piece, end: u64, _: &mut Vec<Piece>| {
            for at in [one.start, end - 1] {
                most.set(most.get().max(one.at(at).saturating_sub(other.at(at))));
            }
        };
        limited(&[(self, until), (other, until)])?;
        self.merge_between(other, 0, until, &look);
        Ok(most.get())
    }

    /// The gain in the long run, and the time in which it is gained.
    pub(super) fn long_run(&self) -> (i128, u64) {
        (self.rise, self.period)
    }

    /// The value at `from` of the lowest line with the curve's long-run rate that
    /// is nowhere below the curve from there on; rounded up.
    pub(super) fn line_above(&self, from: u64) -> i128 {
        let excess =
            |(at, value): (u64, i128)| value.saturating_sub(gain(self.long_run(), at - from));
        self.corners(from).map(excess).max().expect("a period has a piece")
    }

    /// The value at `from` of the highest such line that lies nowhere above the
    /// curve; rounded down.
    pub(super) fn line_below(&self, from: u64) -> i128 {
        self.negated().line_above(from).saturating_neg()
    }

    /// The first and last point of every piece from `from` up to the end of a
    /// period: where the curve is farthest from any line of its long-run rate.
    pub(crate) fn corners(&self, from: u64) -> impl Iterator<Item = (u64, i128)> + '_ {
        let until = from.max(self.tail).saturating_add(self.period);
        let mut pieces = self.pieces_between(from, until).peekable();
        std::iter::from_fn(move || {
            let piece = pieces.next()?;
            let last = pieces.peek().map_or(until, |next| next.start) - 1;
            Some([(piece.start, piece.value), (last, piece.at(last))])
        })
        .flatten()
    }

    /// Combines up to the end of the first period that both have in common; `rise`
    /// combines what the two gain in it.
    fn combine_all(
        &self,
        other: &Curve,
        combine: impl Fn(Piece, Piece, u64, &mut Vec<Piece>),
        rise: impl Fn(i128, i128) -> i128,
    ) -> Result<Curve, TooManyPieces> {
        let tail = self.tail.max(other.tail);
        let period = self.common_period(other);
        let until = tail.saturating_add(period).min(FARTHEST);
        limited(&[(self, until), (other, until)])?;
        // Cut at the tail, where the combination needs a piece to start.
        let mut pieces = self.merge_between(other, 0, tail, &combine);
        pieces.extend(self.merge_between(other, tail, until, &combine));
        let rise = rise(self.gain_in(period), other.gain_in(period));
        Ok(Curve::repeated(pieces, tail, period, rise))
    }

    /// The shortest time in which both repeat themselves; `u64::MAX` if it is
    /// longer.
    pub(super) fn common_period(&self, other: &Curve) -> u64 {
        let shared = greatest_common_divisor(self.period, other.period);
        (self.period / shared).saturating_mul(other.period)
    }

    /// The gain of the tail in a multiple of its period.
    pub(super) fn gain_in(&self, multiple: u64) -> i128 {
        self.rise.saturating_mul((multiple / self.period).into())
    }

    /// Combines the pieces of both, each cut where the other has a corner.
    fn merge_between(
        &self,
        other: &Curve,
        from: u64,
        until: u64,
        combine: &impl Fn(Piece, Piece, u64, &mut Vec<Piece>),
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut ones = self.pieces_between(from, until).peekable();
        let mut others = other.pieces_between(from, until).peekable();
        let (mut one, mut two) = match (ones.next(), others.next()) {
            (Some(one), Some(two)) => (one, two),
            _ => return pieces,
        };
        let mut at = from;
        loop {
            let end_one = ones.peek().map_or(until, |piece| piece.start);
            let end_two = others.peek().map_or(until, |piece| piece.start);
            let end = end_one.min(end_two);
            combine(one.from(at), two.from(at), end, &mut pieces);
            if end == until {
                return pieces;
            }
            at = end;
            if end == end_one {
                one = ones.next().unwrap_or(one);
            }
            if end == end_two {
                two = others.next().unwrap_or(two);
            }
        }
    }
}

/// Refuses work on too many pieces before any of them is written out: those of the
/// curves, each up to the point at which it is looked at.
pub(super) fn limited(parts: &[(&Curve, u64)]) -> Result<(), TooManyPieces> {
    let pieces = |sum: u64, (curve, until): &(&Curve, u64)| {
        sum.saturating_add(curve.count_between(0, *until))
    };
    let all = parts.iter().fold(0, pieces);
    if all > MOST_PIECES as u64 { Err(TooManyPieces) } else { Ok(()) }
}

/// The lower of two pieces with one start, up to `end`: one piece or two.
fn lower(one: Piece, other: Piece, end: u64, pieces: &mut Vec<Piece>) {
    let (first, second) = if (one.value, one.slope) <= (other.value, other.slope) {
        (one, other)
    } else {
        (other, one)
    };
    pieces.push(first);
    if second.slope < first.slope {
        // The first nanosecond at which the second is lower.
        let gap = second.value.saturating_sub(first.value);
        let wait = gap.div_euclid(first.slope.saturating_sub(second.slope)).saturating_add(1);
        let at = wait.saturating_add(first.start.into());
        if at < i128::from(end) {
            pieces.push(second.from(u64::try_from(at).expect("it lies before `end`")));
        }
    }
}
