//! Curves out of two curves, point by point: sum, difference, minimum, maximum.

use super::{Curve, MOST_PIECES, Piece, TooManyPieces, ceiling};

impl Curve {
    /// The sum of both: what two flows can send together.
    ///
    /// # Errors
    /// When both repeat themselves, with periods whose least common multiple
    /// gives too many pieces.
    pub fn plus(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        let sum = |one: Piece, other: Piece, _: u64, pieces: &mut Vec<Piece>| {
            pieces.push(Piece {
                start: one.start,
                value: one.value + other.value,
                slope: one.slope + other.slope,
            });
        };
        self.combine_all(other, sum, |one, other| one + other)
    }

    /// What is left of `self` when `other` is taken away; may be negative.
    ///
    /// # Errors
    /// As [`Curve::plus`].
    pub fn minus(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        self.plus(&other.negated())
    }

    /// Mirrored at the axis of time.
    #[must_use]
    pub fn negated(&self) -> Curve {
        let mirror = |piece: &Piece| Piece { value: -piece.value, slope: -piece.slope, ..*piece };
        let pieces = self.pieces.iter().map(mirror).collect();
        Curve { pieces, rise: -self.rise, ..*self }
    }

    /// The lower of both at every point: what a flow can send that keeps to both.
    ///
    /// # Errors
    /// As [`Curve::plus`], when both have the same long-run rate; otherwise
    /// when the slower one becomes the lower one only after too many pieces.
    pub fn minimum(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        let (slow, fast) = if other.is_slower_than(self) { (other, self) } else { (self, other) };
        if !slow.is_slower_than(fast) {
            return self.combine_all(other, lower, |one, _| one);
        }
        let settled = slow.stays_below_from(fast);
        let tail = settled.max(slow.tail);
        let until = tail.checked_add(slow.period).ok_or(TooManyPieces)?;
        let mut pieces = slow.merge_between(fast, 0, tail, &lower)?;
        pieces.extend(slow.pieces_between(tail, until));
        Ok(Curve { pieces, tail, ..*slow }.merged())
    }

    /// The higher of both at every point.
    ///
    /// # Errors
    /// As [`Curve::minimum`].
    pub fn maximum(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        Ok(self.negated().minimum(&other.negated())?.negated())
    }

    /// From when on `self`, which is the slower one, is for ever at most `fast`.
    fn stays_below_from(&self, fast: &Curve) -> u64 {
        let start = self.tail.max(fast.tail);
        // Lines above the one and below the other, in common units of one
        // nanosecond times both periods: both rates are then whole numbers.
        let (own, others) = (i128::from(self.period), i128::from(fast.period));
        let above = self.line_above(start);
        let below = fast.line_below(start);
        let gap = above - below;
        if gap <= 0 {
            return start;
        }
        // (above - below) / (rate of fast - rate of self), rounded up.
        let gain = fast.rise * own - self.rise * others;
        let wait = wide_ceiling(gap, own * others, gain);
        start.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// The value at `from`, in the tail, of the lowest line with the curve's
    /// long-run rate that lies nowhere below it from there on; rounded up.
    pub(super) fn line_above(&self, from: u64) -> i128 {
        debug_assert!(from >= self.tail);
        let period = i128::from(self.period);
        let excess = |at: u64, value: i128| {
            ceiling(value * period - self.rise * i128::from(at - from), period)
        };
        self.corners(from).map(|(at, value)| excess(at, value)).max().expect("a period has a piece")
    }

    /// The value at `from` of the highest such line that lies nowhere above the
    /// curve; rounded down.
    pub(super) fn line_below(&self, from: u64) -> i128 {
        -self.negated().line_above(from)
    }

    /// First and last point of every piece in one period from `from` on.
    fn corners(&self, from: u64) -> impl Iterator<Item = (u64, i128)> + '_ {
        let until = from + self.period;
        let mut pieces = self.pieces_between(from, until).peekable();
        std::iter::from_fn(move || {
            let piece = pieces.next()?;
            let last = pieces.peek().map_or(until, |next| next.start) - 1;
            Some([(piece.start, piece.value), (last, piece.at(last))])
        })
        .flatten()
    }

    /// Combines up to the end of the first period that both have in common;
    /// `rise` combines what the two gain in it.
    fn combine_all(
        &self,
        other: &Curve,
        combine: impl Fn(Piece, Piece, u64, &mut Vec<Piece>),
        rise: impl Fn(i128, i128) -> i128,
    ) -> Result<Curve, TooManyPieces> {
        let tail = self.tail.max(other.tail);
        let shared = greatest_common_divisor(self.period, other.period);
        let period = (self.period / shared).checked_mul(other.period).ok_or(TooManyPieces)?;
        let until = tail.checked_add(period).ok_or(TooManyPieces)?;
        // Cut at the tail, where the combination needs a piece to start.
        let mut pieces = self.merge_between(other, 0, tail, &combine)?;
        pieces.extend(self.merge_between(other, tail, until, &combine)?);
        let gain = |curve: &Curve| curve.rise * i128::from(period / curve.period);
        Ok(Curve { pieces, tail, period, rise: rise(gain(self), gain(other)) }.merged())
    }

    /// Combines the pieces of both, each cut where the other has a corner.
    fn merge_between(
        &self,
        other: &Curve,
        from: u64,
        until: u64,
        combine: &impl Fn(Piece, Piece, u64, &mut Vec<Piece>),
    ) -> Result<Vec<Piece>, TooManyPieces> {
        let mut pieces = Vec::new();
        let mut ones = self.pieces_between(from, until).peekable();
        let mut others = other.pieces_between(from, until).peekable();
        let (mut one, mut two) = match (ones.next(), others.next()) {
            (Some(one), Some(two)) => (one, two),
            _ => return Ok(pieces),
        };
        let mut at = from;
        loop {
            let end_one = ones.peek().map_or(until, |piece| piece.start);
            let end_two = others.peek().map_or(until, |piece| piece.start);
            let end = end_one.min(end_two);
            combine(one.from(at), two.from(at), end, &mut pieces);
            if pieces.len() > MOST_PIECES {
                return Err(TooManyPieces);
            }
            if end == until {
                return Ok(pieces);
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
        let wait = (second.value - first.value).div_euclid(first.slope - second.slope) + 1;
        let at = i128::from(first.start) + wait;
        if at < i128::from(end) {
            pieces.push(second.from(u64::try_from(at).expect("it lies before `end`")));
        }
    }
}

/// `factor * other / divisor`, rounded up, where the product may not fit: then
/// an upper bound.
fn wide_ceiling(factor: i128, other: i128, divisor: i128) -> i128 {
    match factor.checked_mul(other) {
        Some(product) => ceiling(product, divisor),
        None => (factor / divisor + 1).saturating_mul(other),
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}
