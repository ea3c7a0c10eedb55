//! Curves from one curve: moved, cut, made to rise; and where it reaches a value.

use super::{Curve, FARTHEST, MOST_PIECES, Piece, TooManyPieces, ceiling};

impl Curve {
    /// The same curve `by` nanoseconds later, with nothing before: what has to be
    /// sent of a flow with that deadline.
    #[must_use]
    pub fn delayed(&self, by: u64) -> Curve {
        if by == 0 {
            return self.clone();
        }
        let later = |piece: &Piece| Piece { start: piece.start.saturating_add(by), ..*piece };
        let mut pieces = vec![Piece { start: 0, value: 0, slope: 0 }];
        pieces.extend(self.pieces.iter().map(later));
        Curve::repeated(pieces, self.tail.saturating_add(by), self.period, self.rise)
    }

    /// The curve, raised to zero wherever it is negative.
    ///
    /// # Errors
    /// When the curve is periodic and rises above zero, or falls below it, only
    /// after too many pieces.
    pub fn positive_part(&self) -> Result<Curve, TooManyPieces> {
        self.maximum(&Curve::zero())
    }

    /// The least value from each point on: the value below which `self` never falls
    /// again. `None` if it falls for ever.
    #[must_use]
    pub fn least_from_here_on(&self) -> Option<Curve> {
        if self.rise < 0 {
            return None;
        }
        // A period later the curve is at least as high, so the least value from a
        // point of the tail on is reached within one period.
        let horizon = self.tail + 2 * self.period;
        let pieces: Vec<Piece> = self.pieces_between(0, horizon).collect();
        let mut least: Vec<Piece> = Vec::with_capacity(pieces.len());
        let (mut floor, mut end) = (i128::MAX, horizon);
        for piece in pieces.iter().rev() {
            let last = piece.at(end - 1);
            // Read backwards, a falling piece is lowest at its end and a rising one
            // at its start: the floor follows the piece up to the point at which
            // the piece passes it.
            if piece.slope <= 0 {
                floor = floor.min(last);
                least.push(Piece { start: piece.start, value: floor, slope: 0 });
            } else {
                if last > floor {
                    let wait = floor.saturating_sub(piece.value).div_euclid(piece.slope) + 1;
                    let flat = if floor < piece.value {
                        piece.start
                    } else {
                        // `wait` is less than the length of the piece, whose end is above.
                        piece.start + u64::try_from(wait).unwrap_or(0)
                    };
                    least.push(Piece { start: flat, value: floor, slope: 0 });
                    if flat > piece.start {
                        least.push(*piece);
                    }
                } else {
                    least.push(*piece);
                }
                floor = floor.min(piece.value);
            }
            end = piece.start;
        }
        least.reverse();
        Some(Curve::affine_tail(least).with_tail_of(self))
    }

    /// The greatest value up to each point: the least curve above `self` that
    /// never falls, its non-decreasing closure.
    #[must_use]
    pub fn greatest_so_far(&self) -> Curve {
        let first = self.tail + self.period;
        let mut greatest = Vec::new();
        let before = self.climb(0, self.tail, i128::MIN, &mut greatest);
        let level = self.climb(self.tail, first, before, &mut greatest);
        // In the first later period that comes as high as everything before the
        // tail, the curve climbs again. From the next period on, the period before
        // always decides where it climbs.
        let peak = self.corners(self.tail).map(|(_, value)| value).max();
        let lacks = before.saturating_sub(peak.expect("a period has a piece"));
        let again = (self.rise > 0)
            .then(|| u64::try_from(ceiling(lacks, self.rise).max(1)).ok())
            .flatten()
            .and_then(|periods| self.tail.checked_add(periods.checked_mul(self.period)?))
            .filter(|again| *again < FARTHEST);
        if again != Some(first) {
            greatest.push(Piece { start: first, value: level, slope: 0 });
        }
        let Some(again) = again else {
            return Curve::affine_tail(greatest);
        };
        let tail = again + self.period;
        let level = self.climb(again, tail, level, &mut greatest);
        self.climb(tail, tail + self.period, level, &mut greatest);
        Curve::repeated(greatest, tail, self.period, self.rise)
    }

    /// Adds the pieces of the running maximum from `from` up to `until`, where it
    /// was `level` before; returns its value at the end.
    fn climb(&self, from: u64, until: u64, mut level: i128, greatest: &mut Vec<Piece>) -> i128 {
        let mut pieces = self.pieces_between(from, until).peekable();
        while let Some(piece) = pieces.next() {
            let last = piece.at(pieces.peek().map_or(until, |next| next.start) - 1);
            if piece.value > level {
                greatest.push(if piece.slope > 0 { piece } else { Piece { slope: 0, ..piece } });
            } else {
                greatest.push(Piece { start: piece.start, value: level, slope: 0 });
                if last > level {
                    // The first nanosecond above `level`; it lies before the last
                    // one.
                    let wait = level.saturating_sub(piece.value) / piece.slope + 1;
                    let above = piece.start + u64::try_from(wait).unwrap_or(0);
                    greatest.push(piece.from(above));
                }
            }
            level = level.max(piece.value).max(last);
        }
        level
    }

    /// The curve with these pieces, periodic as `other` is.
    fn with_tail_of(&self, other: &Curve) -> Curve {
        let (tail, period) = (other.tail, other.period);
        let mut pieces: Vec<Piece> = self.pieces_between(0, tail).collect();
        pieces.extend(self.pieces_between(tail, tail + period));
        Curve { pieces, tail, period, rise: other.rise }.merged()
    }

    /// The first nanosecond at which the curve, which must not fall, reaches
    /// `value`: its lower pseudo-inverse. `None` if it never does. The upper
    /// pseudo-inverse, the first nanosecond at which the curve exceeds `value`, is
    /// `first_reaching(value + 1)`.
    #[must_use]
    pub fn first_reaching(&self, value: i128) -> Option<u64> {
        // Whole periods first, so that the rest is a search among the pieces.
        let last = self.value(self.tail + (self.period - 1));
        let periods = if value <= last {
            0
        } else if self.rise <= 0 {
            return None;
        } else {
            u64::try_from(ceiling(value.saturating_sub(last), self.rise)).ok()?
        };
        let value = value.saturating_sub(self.rise.saturating_mul(periods.into()));
        // If a value less by a period is reached even before the tail, the tail
        // reaches this value at once.
        let earliest = if periods > 0 { self.tail } else { 0 };
        let after = |at: u64| at.max(earliest).checked_add(periods.checked_mul(self.period)?);
        let next = self.pieces.partition_point(|piece| piece.value < value);
        let Some(before) = next.checked_sub(1).map(|index| self.pieces[index]) else {
            return after(0);
        };
        let limit = self.pieces.get(next).map_or(u64::MAX, |piece| piece.start);
        if before.slope <= 0 {
            return after(limit);
        }
        let wait = ceiling(value.saturating_sub(before.value), before.slope);
        after(before.start.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX)).min(limit))
    }

    /// The same up to `from`, and from there on the lowest line with the curve's
    /// long-run rate, rounded up, that is nowhere below the curve. The line begins
    /// earlier than `from` if the periods before it have more than [`MOST_PIECES`]
    /// pieces.
    #[must_use]
    pub fn line_above_from(&self, from: u64) -> Curve {
        if self.is_affine_in_the_end() {
            return self.clone();
        }
        let in_tail = self.count_between(self.tail, self.tail + self.period);
        let latest =
            self.tail.saturating_add((MOST_PIECES as u64 / in_tail).saturating_mul(self.period));
        let from = from.min(latest).min(FARTHEST).max(self.tail);
        let mut pieces: Vec<Piece> = self.pieces_between(0, from).collect();
        let slope = ceiling(self.rise, i128::from(self.period));
        pieces.push(Piece { start: from, value: self.line_above(from), slope });
        Curve::affine_tail(pieces)
    }

    /// The same up to `from`, and from there on the highest line with the curve's
    /// long-run rate, rounded down, that is nowhere above the curve. The line
    /// begins earlier in the same case as that of [`Curve::line_above_from`].
    #[must_use]
    pub fn line_below_from(&self, from: u64) -> Curve {
        self.negated().line_above_from(from).negated()
    }
}
