//! Min-plus convolution and deconvolution, and how far one curve is from another.
//!
//! Two straight pieces convolve to two: first along the flatter one, then along the
//! steeper. A convolution of curves is the lowest of those of all pairs of their
//! pieces, up to the point from which it is known to repeat itself (Bouillard
//! 2008). That point is found for the given curves, from the distance of each to
//! lines of its long-run rate: where the rates differ, a long way along the faster
//! curve never pays.

use super::combine::limited;
use super::exact::time_to_gain;
use super::{Curve, FARTHEST, MOST_PAIRS, Piece, TooManyPieces};

impl Curve {
    /// The least of `self(s) + other(t - s)` over all `s` from 0 to `t`: what two
    /// links in a row guarantee if `self` and `other` are what each of them
    /// guarantees.
    ///
    /// An arrival curve has its burst at 0, where the theory has it just after 0: a
    /// flow that keeps to two such curves keeps to the minimum of both and of this.
    ///
    /// # Errors
    /// When more than [`MOST_PAIRS`] pairs of pieces would have to be compared, or
    /// more than [`MOST_PIECES`](super::MOST_PIECES) pieces of a curve.
    pub fn convolution(&self, other: &Curve) -> Result<Curve, TooManyPieces> {
        let (slow, fast) = if other.is_slower_than(self) { (other, self) } else { (self, other) };
        let (tail, period, most_of_fast) = if slow.is_slower_than(fast) {
            let gap = slow.line_above(0).saturating_sub(slow.line_below(0));
            let gap = gap.saturating_add(fast.value(0)).saturating_sub(fast.line_below(0));
            let useful = time_to_gain(gap, slow.long_run(), fast.long_run());
            (slow.tail.saturating_add(useful), slow.period, useful.saturating_add(1))
        } else {
            // In a sum that is a common period past both tails, one part is past
            // its own tail by as much, and can be cut by that period.
            let period = slow.common_period(fast);
            let tails = slow.tail.saturating_add(fast.tail);
            (tails.saturating_add(period), period, u64::MAX)
        };
        let tail = tail.min(FARTHEST);
        let until = tail.saturating_add(period).min(FARTHEST);
        let ones = segments(slow, until)?;
        let others = segments(fast, until.min(most_of_fast))?;
        let lowest = lowest_sums(&ones, &others, (0, until.into()))?;
        Ok(Curve::repeated(pieces_cut_at(&lowest, tail), tail, period, slow.gain_in(period)))
    }

    /// The greatest `self(t + s) - other(s)` over all `s`: the arrival curve behind
    /// a link that guarantees `other` to a flow that keeps to `self`. `None` if
    /// `self` is the faster one: then nothing bounds it.
    ///
    /// # Errors
    /// As [`Curve::convolution`].
    pub fn deconvolution(&self, other: &Curve) -> Result<Option<Curve>, TooManyPieces> {
        if other.is_slower_than(self) {
            return Ok(None);
        }
        let until = self.tail + self.period;
        let useful = self.last_useful_against(other).min(FARTHEST);
        let above = segments(&self.negated(), until.saturating_add(useful))?;
        // Read backwards in time, the other curve is a part of a sum.
        let backwards = |segment: &Segment| Segment {
            start: -segment.last,
            last: -segment.start,
            value: segment.at(segment.last),
            slope: -segment.slope,
        };
        let below: Vec<_> =
            segments(other, useful.saturating_add(1))?.iter().rev().map(backwards).collect();
        let lowest = lowest_sums(&above, &below, (0, until.into()))?;
        let pieces = pieces_cut_at(&lowest, self.tail);
        let mirrored = Curve::repeated(pieces, self.tail, self.period, self.rise.saturating_neg());
        Ok(Some(mirrored.negated()))
    }

    /// The last `s` at which `self(t + s) - other(s)` can be greatest, for any `t`;
    /// `self` is not the faster one.
    fn last_useful_against(&self, other: &Curve) -> u64 {
        if !self.is_slower_than(other) {
            return self.tail.max(other.tail).saturating_add(self.common_period(other));
        }
        let gap = self.line_above(0).saturating_sub(self.line_below(0));
        let gap = gap.saturating_add(other.value(0)).saturating_sub(other.line_below(0));
        time_to_gain(gap, self.long_run(), other.long_run())
    }

    /// The most by which `self` ever exceeds `service`, in billionths of a bit: the
    /// greatest backlog of a flow that keeps to `self`. `None` if it grows for
    /// ever.
    ///
    /// ```
    /// use tidegate_core::curve::{Curve, PER_BYTE};
    /// use tidegate_core::{Bytes, Rate};
    ///
    /// let video = Curve::token_bucket(Bytes(15_000), Rate(4_800_000));
    /// let service = Curve::rate(Rate(8_000_000)).delayed(1_000_000);
    /// assert_eq!(video.vertical_deviation(&service)?, Some(15_600 * PER_BYTE));
    /// assert_eq!(video.horizontal_deviation(&service)?, Some(16_000_000));
    /// # Ok::<(), tidegate_core::curve::TooManyPieces>(())
    /// ```
    ///
    /// # Errors
    /// When more than [`MOST_PIECES`](super::MOST_PIECES) pieces would have to be looked at.
    pub fn vertical_deviation(&self, service: &Curve) -> Result<Option<i128>, TooManyPieces> {
        if service.is_slower_than(self) {
            return Ok(None);
        }
        let until = self.last_useful_against(service).min(FARTHEST).saturating_add(1);
        self.most_above(service, until).map(Some)
    }

    /// The shortest time after which `service`, which must not fall, is always as
    /// high as `self` was: the greatest delay of a flow that keeps to `self`.
    /// `None` if nothing bounds it up to [`FARTHEST`].
    ///
    /// # Errors
    /// As [`Curve::vertical_deviation`].
    pub fn horizontal_deviation(&self, service: &Curve) -> Result<Option<u64>, TooManyPieces> {
        // Nothing waits longer than an earlier part that was higher.
        let flow = self.greatest_so_far();
        if service.is_slower_than(&flow) {
            return Ok(None);
        }
        let until = flow.waits_until(service).min(FARTHEST) + 1;
        limited(&[(&flow, until)])?;
        let Some(served) = service.first_reaching(flow.value(until - 1)) else {
            return Ok(None);
        };
        limited(&[(&flow, until), (service, served.saturating_add(1))])?;
        let (mut most, mut reached) = (0, 0);
        let mut pieces = flow.pieces_between(0, until).peekable();
        while let Some(piece) = pieces.next() {
            let last = pieces.peek().map_or(until, |next| next.start) - 1;
            let Some(later) = service.first_reaching(piece.at(last)) else {
                return Ok(None);
            };
            // The service is read once: neither the flow nor the service ever
            // falls.
            let meanwhile = (reached, later.clamp(reached, served.max(reached)));
            let Some(wait) = longest_wait(&piece, last, service, meanwhile) else {
                return Ok(None);
            };
            (most, reached) = (wait.max(most), meanwhile.1);
        }
        Ok(Some(most).filter(|most| *most <= FARTHEST))
    }

    /// The time up to which the longest wait for `service` begins; `self` does not
    /// fall and is not the faster one.
    fn waits_until(&self, service: &Curve) -> u64 {
        if self.is_slower_than(service) {
            return self.stays_below_from(service);
        }
        // Where both are in their tails, the wait is the same a common period
        // later.
        let above = service.value(service.tail).saturating_add(1);
        let tails = self.first_reaching(above).unwrap_or(0).max(self.tail);
        tails.saturating_add(self.common_period(service))
    }
}

/// The longest time for which traffic on a piece, which does not fall and ends at
/// `last`, waits for `service` to come as high, which happens between the given
/// times; `None` if it never does.
fn longest_wait(
    piece: &Piece,
    last: u64,
    service: &Curve,
    (from, until): (u64, u64),
) -> Option<u64> {
    let wait = |at: u64| Some(service.first_reaching(piece.at(at))?.saturating_sub(at));
    let mut most = wait(piece.start)?.max(wait(last)?);
    // While both are on straight pieces, the wait only grows or only shrinks, so it
    // is longest right before or after the service reaches another piece.
    let mut ahead = service.pieces_between(from, until.saturating_add(1)).peekable();
    while let Some(served) = ahead.next() {
        let Some(next) = ahead.peek().filter(|_| piece.slope > 0) else { break };
        let gained = served.at(next.start - 1).saturating_sub(piece.value);
        // The last nanosecond at which the piece is no higher than `served`
        // becomes.
        let steps = u64::try_from(gained.div_euclid(piece.slope)).unwrap_or(0);
        let before = piece.start.saturating_add(steps).min(last);
        most = most.max(wait(before)?).max(wait((before + 1).min(last))?);
    }
    Some(most)
}

/// A straight line over some nanoseconds, `last` included, which may lie before 0.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: i128,
    last: i128,
    value: i128,
    slope: i128,
}

impl Segment {
    fn at(&self, at: i128) -> i128 {
        self.value.saturating_add(self.slope.saturating_mul(at - self.start))
    }

    /// The part between two points.
    fn part(&self, start: i128, last: i128) -> Segment {
        Segment { start, last, value: self.at(start), slope: self.slope }
    }

    /// The lowest sums of a point of each: along the flatter one first.
    fn convolution(&self, other: &Segment) -> Vec<Segment> {
        let (flat, steep) = if self.slope <= other.slope { (self, other) } else { (other, self) };
        let value = flat.value.saturating_add(steep.value);
        let start = flat.start + steep.start;
        let turn = flat.last + steep.start;
        let first = Segment { start, last: turn, value, slope: flat.slope };
        let second = Segment {
            start: turn,
            last: flat.last + steep.last,
            value: first.at(turn),
            slope: steep.slope,
        };
        if second.last == turn {
            vec![first]
        } else {
            vec![first, second.part(turn + 1, second.last)]
        }
    }
}

/// The pieces of a curve before `until`.
fn segments(curve: &Curve, until: u64) -> Result<Vec<Segment>, TooManyPieces> {
    limited(&[(curve, until)])?;
    let mut segments = Vec::new();
    let mut pieces = curve.pieces_between(0, until).peekable();
    while let Some(piece) = pieces.next() {
        let end = pieces.peek().map_or(until, |next| next.start);
        let (start, last) = (piece.start.into(), i128::from(end) - 1);
        segments.push(Segment { start, last, value: piece.value, slope: piece.slope });
    }
    Ok(segments)
}

/// The lowest sum of a point of one list and a point of the other for each point
/// from `from` up to `until`.
fn lowest_sums(
    ones: &[Segment],
    others: &[Segment],
    (from, until): (i128, i128),
) -> Result<Vec<Segment>, TooManyPieces> {
    let partners = |one: &Segment| {
        let first = others.partition_point(|other| one.last + other.last < from);
        let end = others.partition_point(|other| one.start + other.start < until);
        &others[first..end.max(first)]
    };
    // Counting them first is far less work than comparing them.
    let mut pairs = 0;
    for one in ones {
        pairs += partners(one).len();
        if pairs > MOST_PAIRS {
            return Err(TooManyPieces);
        }
    }
    // Joined as a balanced tree, so that every list takes part in few joins.
    let mut trees: Vec<Vec<Segment>> = Vec::new();
    let sums = ones.iter().flat_map(|one| partners(one).iter().map(|two| one.convolution(two)));
    for (index, mut lowest) in sums.enumerate() {
        for _ in 0..index.trailing_ones() {
            lowest = lower_of(&trees.pop().expect("one tree for each bit"), &lowest);
        }
        trees.push(lowest);
    }
    let lowest = trees.iter().rfold(Vec::new(), |lowest, tree| lower_of(&lowest, tree));
    let within = |segment: &Segment| {
        let (start, last) = (segment.start.max(from), segment.last.min(until - 1));
        (start <= last).then(|| segment.part(start, last))
    };
    Ok(lowest.iter().filter_map(within).collect())
}

/// The lower of two lists of segments at each point that either has.
fn lower_of(ones: &[Segment], others: &[Segment]) -> Vec<Segment> {
    let mut lowest = Vec::with_capacity(ones.len() + others.len());
    let (mut ones, mut others) = (ones.iter().peekable(), others.iter().peekable());
    let mut at = i128::MIN;
    loop {
        let (one, other) = match (ones.peek(), others.peek()) {
            (Some(one), Some(other)) => (**one, **other),
            (Some(rest), None) | (None, Some(rest)) => {
                push(&mut lowest, rest.part(at.max(rest.start), rest.last));
                ones.next();
                others.next();
                continue;
            }
            (None, None) => return lowest,
        };
        let (start, next) = (one.start.max(at), other.start.max(at));
        let last = one.last.min(other.last);
        if start != next {
            let (first, start, next) =
                if start < next { (one, start, next) } else { (other, next, start) };
            at = next.min(first.last + 1);
            push(&mut lowest, first.part(start, at - 1));
        } else {
            let (one, other) = (one.part(start, last), other.part(start, last));
            let (low, high) = if (one.value, one.slope) <= (other.value, other.slope) {
                (one, other)
            } else {
                (other, one)
            };
            let crossing = crossing(&low, &high);
            push(&mut lowest, low.part(start, crossing - 1));
            if crossing <= last {
                push(&mut lowest, high.part(crossing, last));
            }
            at = last + 1;
        }
        ones.next_if(|one| one.last < at);
        others.next_if(|other| other.last < at);
    }
}

/// The first point at which `high` is below `low`, or the one past their end.
fn crossing(low: &Segment, high: &Segment) -> i128 {
    let end = low.last + 1;
    if high.slope >= low.slope {
        return end;
    }
    let gap = high.value.saturating_sub(low.value);
    let wait = gap.div_euclid(low.slope.saturating_sub(high.slope)).saturating_add(1);
    low.start.saturating_add(wait).min(end)
}

/// Adds a segment, extending the last one if it continues it.
fn push(segments: &mut Vec<Segment>, segment: Segment) {
    if let Some(last) = segments.last_mut().filter(|last| last.last + 1 == segment.start) {
        let point = segment.start == segment.last;
        if last.at(segment.start) == segment.value && (point || last.slope == segment.slope) {
            last.last = segment.last;
            return;
        }
    }
    segments.push(segment);
}

/// The pieces of a list without gaps, one of which begins at `at` if that is within
/// the list.
fn pieces_cut_at(segments: &[Segment], at: u64) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(segments.len() + 1);
    for segment in segments {
        let start = u64::try_from(segment.start).expect("a curve begins at 0");
        let piece = Piece { start, value: segment.value, slope: segment.slope };
        pieces.push(piece);
        if piece.start < at && i128::from(at) <= segment.last {
            pieces.push(piece.from(at));
        }
    }
    pieces
}
