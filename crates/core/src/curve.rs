//! Curves of network calculus: how much can arrive, or be sent, in an interval of a
//! given length.
//!
//! A [`Curve`] is a function from lengths of time to amounts of traffic, made of
//! straight pieces with jumps between them, and is periodic in the end: from some
//! point on, it is higher by the same rise one period later. This form includes
//! token buckets, TSpecs, staircases and measured curves, and is closed under the
//! operations here (Bouillard 2008 calls such curves ultimately pseudo-periodic).
//!
//! Everything is exact. Time is in whole nanoseconds, as everywhere in this crate,
//! and a curve is a function of those: where two lines cross between two
//! nanoseconds, one piece ends before the crossing and the other begins after it,
//! and no value is ever rounded. An amount is a whole number of billionths of a
//! bit, which is what a rate of 1 bit/s carries in a nanosecond; [`PER_BYTE`] of
//! them are a byte. There is no grid: the number of pieces depends only on the
//! shape of the curve.
//!
//! Nothing overflows. A curve is meaningless for lengths of time beyond
//! [`FARTHEST`], 146 years: there it only has to continue somehow. Values saturate
//! at the ends of their range, 2·10^28 bytes, which the fastest envelope does not
//! come near in that time.
//!
//! ```
//! use tidegate_core::curve::Curve;
//! use tidegate_core::{Bytes, Rate, Span};
//!
//! // TSpec: at most 100 B + 2 Mbit/s and at most 300 B + 1.2 Mbit/s.
//! let peak = Curve::token_bucket(Bytes(100), Rate(2_000_000));
//! let mean = Curve::token_bucket(Bytes(300), Rate(1_200_000));
//! let voice = peak.minimum(&mean)?;
//! assert_eq!(voice.bytes(Span::ZERO), Bytes(100));
//! assert_eq!(voice.bytes(Span::millis(1)), Bytes(350));
//! assert_eq!(voice.bytes(Span::seconds(1)), Bytes(150_300));
//! # Ok::<(), tidegate_core::curve::TooManyPieces>(())
//! ```

mod combine;
mod convolution;
mod exact;
mod measured;
mod shape;

use crate::units::{Bytes, Rate, Span};

pub(crate) use exact::{ceiling, is_less};

/// A byte, in the unit of a curve's values: billionths of a bit.
pub const PER_BYTE: i128 = 8_000_000_000;

/// The number of pieces of both curves, with their periods written out, at which an
/// operation on two curves may look. They are counted before the work begins, which
/// at this limit takes some 100 ms and 100 MB. Curves whose periods have no common
/// measure would need more time and memory than there is.
pub const MOST_PIECES: usize = 1 << 20;

/// The number of pairs of pieces that a convolution or deconvolution may compare,
/// which takes less than a second; they are counted first, too.
pub const MOST_PAIRS: usize = 1 << 20;

/// A curve is known up to here, in nanoseconds: sums of three such times still fit,
/// and a product of two of them is far from the end of the wide integers.
pub const FARTHEST: u64 = 1 << 62;

/// The combination of two curves becomes periodic so late that too many pieces take
/// part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the combination of these curves takes more than {MOST_PIECES} pieces, or \
     {MOST_PAIRS} pairs of them: cut the tail of one of them with an affine bound first"
)]
pub struct TooManyPieces;

/// A straight piece of a curve: from `start` up to the start of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins, in nanoseconds.
    pub start: u64,
    /// Its value there, in billionths of a bit.
    pub value: i128,
    /// What it gains in a nanosecond: bits per second.
    pub slope: i128,
}

impl Piece {
    /// The value of the line on which the piece lies, at `at`.
    #[must_use]
    pub fn at(&self, at: u64) -> i128 {
        let since = i128::from(at) - i128::from(self.start);
        self.value.saturating_add(self.slope.saturating_mul(since))
    }

    /// The same line, as a piece from `start` on.
    #[must_use]
    pub(crate) fn from(&self, start: u64) -> Piece {
        Piece { start, value: self.at(start), slope: self.slope }
    }
}

/// A piecewise straight function of time that is periodic in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Ascending by start, the first at 0; they describe the curve up to the
    /// end of the first period.
    pieces: Vec<Piece>,
    /// From here on the curve is periodic. A piece starts here.
    tail: u64,
    /// Length of the period; at least 1.
    period: u64,
    /// How much higher the curve is a period later.
    rise: i128,
}

impl Curve {
    /// No traffic at all.
    #[must_use]
    pub fn zero() -> Curve {
        Curve::line(0, 0)
    }

    /// `value + slope t`.
    #[must_use]
    pub fn line(value: i128, slope: i128) -> Curve {
        Curve::affine_tail(vec![Piece { start: 0, value, slope }])
    }

    /// What a link of `rate` can send: `rate t`.
    #[must_use]
    pub fn rate(rate: Rate) -> Curve {
        Curve::line(0, i128::from(rate.0))
    }

    /// `burst + rate t`: a token bucket, the (sigma, rho) model (`BE section 1`).
    #[must_use]
    pub fn token_bucket(burst: Bytes, rate: Rate) -> Curve {
        Curve::line(i128::from(burst.0) * PER_BYTE, i128::from(rate.0))
    }

    /// `size` at once, and again after every `period`.
    ///
    /// # Panics
    /// When the period is zero.
    #[must_use]
    pub fn staircase(size: Bytes, period: Span) -> Curve {
        assert!(period.0 > 0, "a staircase has a period");
        let step = i128::from(size.0) * PER_BYTE;
        Curve::repeated(vec![Piece { start: 0, value: step, slope: 0 }], 0, period.0, step)
    }

    /// A curve of `pieces`, the last of which continues for ever.
    ///
    /// # Panics
    /// When there is no piece, the first does not start at 0, or they do not ascend.
    #[must_use]
    pub fn affine_tail(pieces: Vec<Piece>) -> Curve {
        let last = *pieces.last().expect("a curve has a piece");
        Curve::periodic_tail(pieces, last.start, 1, last.slope)
    }

    /// A curve of `pieces` up to `tail + period`, which from `tail` on is `rise`
    /// higher after every `period` nanoseconds.
    ///
    /// # Panics
    /// When the first piece does not start at 0, they do not ascend, none starts
    /// at `tail`, one starts after the first period, or the period is zero.
    #[must_use]
    pub fn periodic_tail(pieces: Vec<Piece>, tail: u64, period: u64, rise: i128) -> Curve {
        assert!(pieces.first().is_some_and(|piece| piece.start == 0), "a curve starts at 0");
        assert!(pieces.is_sorted_by(|one, next| one.start < next.start), "pieces ascend");
        assert!(pieces.iter().any(|piece| piece.start == tail), "a piece starts at the tail");
        assert!(period > 0 && pieces.last().is_some_and(|last| last.start - tail < period));
        Curve::repeated(pieces, tail, period, rise)
    }

    /// A curve of these pieces, in order. A tail whose period would reach beyond
    /// [`FARTHEST`] continues straight instead.
    fn repeated(mut pieces: Vec<Piece>, tail: u64, period: u64, rise: i128) -> Curve {
        pieces.retain(|piece| piece.start < FARTHEST);
        if tail.checked_add(period).is_some_and(|end| end <= FARTHEST) {
            return Curve { pieces, tail, period, rise }.merged();
        }
        let last = pieces[pieces.len() - 1];
        Curve { pieces, tail: last.start, period: 1, rise: last.slope }.merged()
    }

    /// Leaves out every piece that only continues the line of the piece before it,
    /// and begins the tail earlier where whole pieces already repeat themselves.
    fn merged(mut self) -> Curve {
        if let Some(last) = self.pieces.last_mut().filter(|_| self.period == 1) {
            // A single nanosecond has any slope; with this one the tail is straight.
            last.slope = self.rise;
        }
        self.join(|piece, tail| piece.start != tail);
        if self.is_affine_in_the_end() {
            self.join(|_, _| true);
            let last = self.pieces[self.pieces.len() - 1];
            return Curve { tail: last.start, period: 1, rise: last.slope, ..self };
        }
        let tail = self.earliest_tail();
        if tail == self.tail {
            return self;
        }
        let mut pieces: Vec<Piece> = self.pieces_between(0, tail).collect();
        pieces.extend(self.pieces_between(tail, tail + self.period));
        // Now that fewer pieces are left, the tail may turn out to be straight.
        Curve { pieces, tail, ..self }.merged()
    }

    /// Joins pieces to the piece before that continue its line, where `may` allows
    /// it.
    fn join(&mut self, may: impl Fn(&Piece, u64) -> bool) {
        let tail = self.tail;
        let mut last = self.pieces[0];
        self.pieces.retain(|piece| {
            let goes_on = piece.start != 0
                && may(piece, tail)
                && piece.slope == last.slope
                && piece.value == last.at(piece.start);
            if !goes_on {
                last = *piece;
            }
            !goes_on
        });
    }

    /// The piece from which the curve already repeats itself: reads the pieces
    /// before the tail and those before the end of the first period backwards, side
    /// by side.
    fn earliest_tail(&self) -> u64 {
        let mut tail = self.tail;
        let mut before = self.pieces.iter().rev().skip_while(|piece| piece.start >= self.tail);
        let mut later = self.pieces.iter().rev();
        let (mut one, mut two) = (before.next(), later.next());
        while let (Some(early), Some(late)) = (one, two) {
            let start = early.start.max(late.start.saturating_sub(self.period));
            let same =
                |at: u64| early.at(at) == late.at(at + self.period).saturating_sub(self.rise);
            if !same(start) || !same(tail - 1) {
                break;
            }
            tail = start;
            if early.start == start {
                one = before.next();
            }
            if late.start == start + self.period {
                two = later.next();
            }
        }
        tail
    }

    /// The value at `at` nanoseconds, in billionths of a bit.
    #[must_use]
    pub fn value(&self, at: u64) -> i128 {
        let periods = self.periods_before(at);
        let folded = at - periods * self.period;
        let next = self.pieces.partition_point(|piece| piece.start <= folded);
        self.pieces[next - 1].at(folded).saturating_add(self.rise.saturating_mul(periods.into()))
    }

    /// The number of whole periods between the tail's start and `at`.
    fn periods_before(&self, at: u64) -> u64 {
        at.saturating_sub(self.tail) / self.period
    }

    /// The value after `span`, in whole bytes, rounded down; zero if negative.
    #[must_use]
    pub fn bytes(&self, span: Span) -> Bytes {
        Bytes(u64::try_from(self.value(span.0).max(0) / PER_BYTE).unwrap_or(u64::MAX))
    }

    /// The pieces from `from` up to `until`, with the periods of the tail written
    /// out; the first starts at `from`.
    pub fn pieces_between(&self, from: u64, until: u64) -> impl Iterator<Item = Piece> + '_ {
        let affine = self.is_affine_in_the_end();
        let periods = self.periods_before(from);
        let folded = from - periods * self.period;
        let first = self.pieces.partition_point(|piece| piece.start <= folded) - 1;
        let in_tail = self.pieces.partition_point(|piece| piece.start < self.tail);
        let mut place = (periods, first);
        let mut ended = false;
        std::iter::from_fn(move || {
            if ended {
                return None;
            }
            let (period, index) = place;
            let piece = self.pieces[index];
            let moved = Piece {
                start: piece.start.checked_add(period.checked_mul(self.period)?)?,
                value: piece.value.saturating_add(self.rise.saturating_mul(period.into())),
                slope: piece.slope,
            };
            place = if index + 1 < self.pieces.len() {
                (period, index + 1)
            } else {
                ended = affine;
                (period + 1, in_tail)
            };
            Some(if moved.start < from { moved.from(from) } else { moved })
        })
        .take_while(move |piece| piece.start < until)
    }

    /// The number of pieces that [`Curve::pieces_between`] gives, without writing
    /// them out.
    #[must_use]
    pub fn count_between(&self, from: u64, until: u64) -> u64 {
        if until <= from {
            return 0;
        }
        // The piece that continues at `from` counts too.
        self.count_before(until) - (self.count_before(from.saturating_add(1)) - 1)
    }

    /// The number of pieces that start before `at`: no more than there are
    /// nanoseconds.
    fn count_before(&self, at: u64) -> u64 {
        let periods = if self.is_affine_in_the_end() { 0 } else { self.periods_before(at) };
        let folded = at - periods * self.period;
        let count = |until: u64| self.pieces.partition_point(|piece| piece.start < until) as u64;
        let in_period = self.pieces.len() as u64 - count(self.tail);
        periods * in_period + count(folded)
    }

    /// Whether the curve ends in one straight line.
    #[must_use]
    pub fn is_affine_in_the_end(&self) -> bool {
        let last = self.pieces[self.pieces.len() - 1];
        last.start == self.tail && self.rise == last.slope.saturating_mul(self.period.into())
    }

    /// The start of the periodic part, in nanoseconds.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// The length of the period, in nanoseconds. A straight tail has any period;
    /// this is then 1.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// The gain in a period, in billionths of a bit.
    #[must_use]
    pub fn rise(&self) -> i128 {
        self.rise
    }

    /// The pieces up to the end of the first period.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether the long-run rate is less than that of `other`.
    #[must_use]
    pub fn is_slower_than(&self, other: &Curve) -> bool {
        is_less((self.rise, self.period), (other.rise, other.period))
    }

    /// The long-run rate in bits per second, rounded up; zero if negative.
    #[must_use]
    pub fn long_run_rate(&self) -> Rate {
        let rate = ceiling(self.rise, i128::from(self.period)).max(0);
        Rate(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tspec(packet: u64, peak: u64, burst: u64, rate: u64) -> Curve {
        let peak = Curve::token_bucket(Bytes(packet), Rate(8 * peak));
        peak.minimum(&Curve::token_bucket(Bytes(burst), Rate(8 * rate))).unwrap()
    }

    #[test]
    fn the_papers_flows_leave_what_was_computed_independently() {
        let flows = [
            (tspec(700, 150_000, 45_000, 50_000), 20),
            (tspec(1_536, 800_000, 15_000, 600_000), 30),
            (tspec(100, 250_000, 300, 150_000), 5),
        ];
        let mut residual = Curve::rate(Rate(10_000_000));
        for (curve, deadline) in &flows {
            residual = residual.minus(&curve.delayed(deadline * 1_000_000)).unwrap();
        }
        let residual = residual.minus(&Curve::token_bucket(Bytes(1_536), Rate(0))).unwrap();
        let left = residual.least_from_here_on().unwrap().positive_part().unwrap();
        for (millis, bytes) in
            [(5, 4_614), (20, 20_214), (30, 28_178), (100, 39_214), (1_000, 407_914)]
        {
            assert_eq!(left.bytes(Span::millis(millis)), Bytes(bytes), "{millis} ms");
        }
        for (bytes, micros) in [(40, 1_261), (1_536, 2_458), (20_000, 19_169), (40_000, 102_246)] {
            let at = left.first_reaching(bytes * PER_BYTE).unwrap();
            assert_eq!((at + 500) / 1_000, micros, "{bytes} B");
        }
    }
}
