//! What is long, from the sizes that were seen.
//!
//! To hold responses back from a size on pays if what is left of those that reach it
//! is more than what others are: with the sizes of the Web it is, and if all are equal
//! it is not. Then those that are held back are all but complete, and everybody waits.
//! Of all sizes that could be the limit, the best is the one at which the largest
//! number of responses completes for each byte that is sent,
//!
//! ```text
//! P(S <= a) / E[min(S, a)]
//! ```
//!
//! which is the index by which Gittins orders jobs of unknown size (Gittins 1979). It
//! is sought over the last [`SEEN`] sizes, from the least limit on: what a server sends
//! in its first round trip is out before anybody can hold it back. If all responses
//! are of one size, that size is the best limit, and none is long. What takes the link
//! for longer than [`LONGEST`] is long in any case: nobody overtakes it in the provider's
//! queue.
//!
//! The denominator is what a response is expected to receive before it is long. It is paid
//! for the release of a request whose user is new; for others it is what responses of that
//! user have received in a moving mean. Who asks for very much, or for next to nothing, then
//! changes what newcomers pay at first, and nobody else.
//!
//! Sizes are kept in quarters of octaves, each as the upper end of its quarter.

use std::collections::VecDeque;

use crate::units::{Bytes, Rate, Span};

/// How long a response that is not long may take the link.
const LONGEST: Span = Span::millis(500);
/// How many sizes are remembered: some pages of each user.
const SEEN: usize = 512;
/// How many new sizes move the limit. To seek it takes the time of three requests.
const MOVES_IT: u32 = 16;
/// Quarters of the 62 octaves above 4 B.
const QUARTERS: usize = 4 * 62;
/// No less than this part of the least limit is paid for, however small the sizes that
/// were seen: somebody may ask for many small ones first.
const LEAST_PART: u64 = 8;

/// The sizes that were seen last, and what follows from them.
#[derive(Debug)]
pub(super) struct Sizes {
    least: Bytes,
    most: Bytes,
    /// The quarters of the last sizes, oldest first.
    seen: VecDeque<u8>,
    counts: Vec<u32>,
    fresh: u32,
    long_from: Bytes,
    expected: Bytes,
}

impl Sizes {
    /// No size was seen; nothing below `least` is ever long on a link of this rate.
    pub(super) fn new(least: Bytes, rate: Rate) -> Sizes {
        Sizes {
            least,
            most: least.max(rate.volume(LONGEST)),
            seen: VecDeque::with_capacity(SEEN),
            counts: vec![0; QUARTERS],
            fresh: 0,
            long_from: least,
            expected: least,
        }
    }

    /// The link has another rate: what is long is found anew with the next sizes.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.most = self.least.max(rate.volume(LONGEST));
    }

    /// What was seen is what an earlier one has seen, if its limits are the same.
    pub(super) fn follow(&mut self, earlier: Sizes) {
        if (self.least, self.most) == (earlier.least, earlier.most) {
            *self = earlier;
        }
    }

    /// A response that has received this much is long.
    pub(super) fn long_from(&self) -> Bytes {
        self.long_from
    }

    /// What a response receives before that, on average over all users.
    pub(super) fn expected(&self) -> Bytes {
        self.expected
    }

    /// What a response is taken to bring before it is long if such responses usually bring
    /// so much.
    pub(super) fn within(&self, usual: Bytes) -> Bytes {
        usual.max(self.least / LEAST_PART).min(self.long_from)
    }

    /// A response is over, or was broken off, after so many bytes.
    pub(super) fn see(&mut self, size: Bytes) {
        if size == Bytes::ZERO {
            return;
        }
        if self.seen.len() == SEEN
            && let Some(oldest) = self.seen.pop_front()
        {
            self.counts[usize::from(oldest)] -= 1;
        }
        let quarter = quarter(size.0);
        self.seen.push_back(quarter as u8);
        self.counts[quarter] += 1;
        self.fresh += 1;
        if self.fresh == MOVES_IT {
            self.fresh = 0;
            self.seek();
        }
    }

    fn seek(&mut self) {
        let all = self.seen.len() as u128;
        let first = quarter(self.least.0);
        // Below the first quarter that may be a limit, and their bytes.
        let (mut within, mut bytes) = (0_u128, 0_u128);
        let mut best: Option<(u128, u128, u64)> = None;
        for quarter in 0..QUARTERS {
            let count = u128::from(self.counts[quarter]);
            within += count;
            bytes += count * u128::from(end(quarter));
            let is_limit = quarter == first || count > 0 && end(quarter) <= self.most.0;
            if quarter < first || !is_limit {
                continue;
            }
            let sent = bytes + (all - within) * u128::from(end(quarter));
            // More per byte than the best so far.
            if best.is_none_or(|(done, of, _)| within * of > done * sent) {
                best = Some((within, sent, end(quarter)));
            }
        }
        if let Some((_, sent, limit)) = best {
            self.long_from = Bytes(limit).max(self.least);
            let expected = Bytes(u64::try_from(sent / all).unwrap_or(u64::MAX));
            self.expected = self.within(expected);
        }
    }
}

/// The quarter of an octave that a size is in; those below 4 B count as 4 B.
fn quarter(size: u64) -> usize {
    let size = size.max(4);
    let octave = size.ilog2();
    let quarter = size >> (octave - 2) & 3;
    (4 * (octave - 2)) as usize + quarter as usize
}

/// The first size above a quarter.
fn end(quarter: usize) -> u64 {
    let (octave, quarter) = (quarter / 4, quarter as u64 % 4);
    u64::try_from(u128::from(5 + quarter) << octave).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sizes: &[u64]) -> (u64, u64) {
        let mut seen = Sizes::new(Bytes(16_000), Rate(100_000_000));
        (0..SEEN).for_each(|n| seen.see(Bytes(sizes[n % sizes.len()])));
        (seen.long_from().0, seen.expected().0)
    }

    #[test]
    fn of_equal_sizes_none_is_long() {
        for size in [15_000, 27_700, 100_000, 500_000] {
            let (long_from, expected) = after(&[size]);
            assert!(size < long_from && long_from <= (size * 5 / 4).max(16_384), "{long_from}");
            assert!(size <= expected && expected <= long_from);
        }
    }

    #[test]
    fn a_few_large_sizes_are_long_beside_many_small_ones() {
        // Three of four complete within 3 072 B; to let the fourth go on takes 98 kB more.
        let (long_from, expected) = after(&[3_000, 3_000, 3_000, 100_000]);
        assert_eq!(long_from, 16_384);
        assert_eq!(expected, (3 * 3_072 + 16_384) / 4);
    }

    #[test]
    fn the_limit_is_where_most_complete_for_each_byte() {
        // By 16 384 B one quarter is complete, for 13 056 B each: 19 per megabyte; by
        // 28 672, three quarters for 22 272 B: 34; and all for 80 640 B: 12.
        let (long_from, _) = after(&[3_000, 27_000, 27_000, 250_000]);
        assert_eq!(long_from, 28_672);
    }

    #[test]
    fn quarters_hold_their_sizes() {
        for size in (4..5_000).chain([u64::MAX / 3, u64::MAX]) {
            let quarter = quarter(size);
            assert!(quarter < QUARTERS && (size < end(quarter) || end(quarter) == u64::MAX));
            assert!(quarter == 0 || end(quarter - 1) <= size);
        }
    }
}
