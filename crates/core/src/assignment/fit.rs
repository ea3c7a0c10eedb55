//! Simple curves below the effective residual capacity, with the smallest deadlines.
//!
//! A line `gamma (t - delta)` is below E if and only if every demand y waits at
//! least as long for `delta + y / gamma` as for `E^-1(y)`. The lines that satisfy
//! this form a convex set in delta and 1 / gamma. Its corners are the lines through
//! two neighbours on the lower convex hull of E's corners, and the line with the
//! long-run slope of E through the last of them. The sum of the deadlines of a
//! burst is linear in the same two numbers, so one of these few lines is the best
//! there is.
//!
//! A line through the origin cannot be below E, which is zero up to the time of a
//! largest packet, unless it is level (`BE section 4.1` fits it over all t >= 0).
//! It has to be below E only at deadlines that occur, and none is earlier than that
//! of a packet of [`SMALLEST_PACKET`] alone. Its slope is the largest with which a
//! packet of that size gets no earlier deadline than E allows, and with which no
//! later point lies above E.
//!
//! Two segments of which the second is the steeper are the higher of a line through
//! the origin and a shifted one. They are below E where both lines are, so the
//! first segment is the best line through the origin; and the sum of deadlines,
//! each now the smaller of two, is concave, so again one of the corners is best.
//!
//! Slopes are whole bits per second. Both neighbours of a slope that is not whole
//! are tried, each with the smallest delta with which it is below E.

use super::SMALLEST_PACKET;
use crate::curve::{Curve, PER_BYTE, Piece, ceiling};
use crate::units::{Bytes, Rate, Span};

/// The best-effort traffic to which a curve is fitted: bursts that arrive at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typical {
    /// Size of a packet.
    pub packet: Bytes,
    /// Size of a burst.
    pub burst: Bytes,
}

/// A capacity that is zero at first and from `start` on rises by `slope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// delta in `BE section 4.2`.
    pub start: Span,
    /// gamma in `BE section 4.2`.
    pub slope: Rate,
}

/// A capacity that rises from zero by `first` until `second` is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// r in `BE section 4.3`.
    pub first: Rate,
    /// p' and s in `BE section 4.3`.
    pub second: Line,
}

impl Line {
    /// What the line allows within a time.
    #[must_use]
    pub fn curve(&self) -> Curve {
        Curve::rate(self.slope).delayed(self.start.0)
    }

    /// How long it takes to serve `demand`, in billionths of a bit.
    fn wait(&self, demand: i128) -> Span {
        self.start + served_after(demand, self.slope)
    }
}

impl Segments {
    /// What the segments allow within a time.
    #[must_use]
    pub fn curve(&self) -> Curve {
        let (first, second) = (i128::from(self.first.0), i128::from(self.second.slope.0));
        let mut pieces = vec![Piece { start: 0, value: 0, slope: first }];
        if second > first {
            let gone = second * i128::from(self.second.start.0);
            // The first nanosecond at which the second is higher.
            let corner = gone.div_euclid(second - first) + 1;
            if let Ok(start) = u64::try_from(corner) {
                pieces.push(Piece { start, value: second * corner - gone, slope: second });
            }
        }
        Curve::affine_tail(pieces)
    }

    /// What is allowed within `span`, in billionths of a bit.
    pub(super) fn value(&self, span: Span) -> i128 {
        let late = span - self.second.start;
        let of = |rate: Rate, span: Span| i128::from(rate.0) * i128::from(span.0);
        of(self.first, span).max(of(self.second.slope, late))
    }

    /// How long it takes to serve `demand`, in billionths of a bit.
    pub(super) fn wait(&self, demand: i128) -> Span {
        served_after(demand, self.first).min(self.second.wait(demand))
    }
}

/// How long a link of this rate takes for `demand`, rounded up.
fn served_after(demand: i128, rate: Rate) -> Span {
    match u64::try_from(demand) {
        _ if rate.0 == 0 => Span(u64::MAX),
        // This is almost always the case, and a division of 64 bits costs a third.
        Ok(demand) => Span(demand.div_ceil(rate.0)),
        Err(_) => Span(u64::try_from(ceiling(demand, i128::from(rate.0))).unwrap_or(u64::MAX)),
    }
}

/// A corner of a capacity: nanoseconds, billionths of a bit.
type Corner = (u64, i128);

/// The first and last nanosecond of every piece from `from` to the end of the first
/// whole period. A line below these that is no steeper than the capacity is in the
/// long run stays below it for ever.
fn corners(capacity: &Curve, from: u64) -> Vec<Corner> {
    let until = capacity.tail().max(from) + capacity.period();
    let mut pieces = capacity.pieces_between(from, until).peekable();
    let mut corners = Vec::new();
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().map_or(until, |next| next.start) - 1;
        corners.extend([(piece.start, piece.value), (last, piece.at(last))]);
    }
    corners
}

/// The steepest slope that a line below `capacity` can have: its long-run rate,
/// rounded down.
fn steepest(capacity: &Curve) -> i128 {
    capacity.rise().div_euclid(i128::from(capacity.period()))
}

/// The steepest line through the origin below `capacity` at all deadlines that occur.
#[must_use]
pub fn origin_line(capacity: &Curve) -> Rate {
    let smallest = i128::from(SMALLEST_PACKET.0) * PER_BYTE;
    let Some(earliest) = capacity.first_reaching(smallest) else {
        return Rate(0);
    };
    let slope = |(at, value): Corner| value / i128::from(at.max(1));
    let later = corners(capacity, earliest).into_iter().map(slope);
    let least = later.chain([slope((earliest, smallest)), steepest(capacity)]).min();
    Rate(least.and_then(|slope| u64::try_from(slope).ok()).unwrap_or(0))
}

/// The shifted line below `capacity` with the smallest deadlines for `typical` traffic.
#[must_use]
pub fn shifted_line(capacity: &Curve, typical: Typical) -> Line {
    best_line(capacity, |line| typical.sum_of_deadlines(Rate(0), line))
}

/// The two segments below `capacity`, at all deadlines that occur, with the
/// smallest deadlines for `typical` traffic.
#[must_use]
pub fn two_segments(capacity: &Curve, typical: Typical) -> Segments {
    let first = origin_line(capacity);
    let second = best_line(capacity, |line| typical.sum_of_deadlines(first, line));
    Segments { first, second }
}

/// The line below `capacity` with the smallest cost among those that touch it twice.
fn best_line(capacity: &Curve, cost: impl Fn(&Line) -> i128) -> Line {
    let (corners, steepest) = (corners(capacity, 0), steepest(capacity));
    let hull = lower_hull(&corners, steepest);
    let edges = hull
        .windows(2)
        .map(|pair| (pair[1].1 - pair[0].1).div_euclid(i128::from(pair[1].0 - pair[0].0)));
    let slopes = edges.flat_map(|slope| [slope, slope + 1]).chain([steepest]);
    slopes
        .filter(|slope| (1..=steepest).contains(slope))
        .filter_map(|slope| {
            let start = |(at, value): &Corner| i128::from(*at) - value.div_euclid(slope);
            let start = corners.iter().map(start).max()?.max(0);
            Some(Line {
                start: Span(u64::try_from(start).ok()?),
                slope: Rate(u64::try_from(slope).ok()?),
            })
        })
        .min_by_key(|line| (cost(line), *line))
        .expect("the slope of the tail is among them")
}

/// The lower convex hull of corners, which ascend, as far as its edges are less
/// steep than `steepest`.
fn lower_hull(corners: &[Corner], steepest: i128) -> Vec<Corner> {
    // Products saturate at distances of years: the line may then not be the best
    // one.
    let steeper = |(one, two): (Corner, Corner), than: (Corner, Corner)| {
        let (from, to) = than;
        (two.1 - one.1).saturating_mul(i128::from(to.0 - from.0))
            > (to.1 - from.1).saturating_mul(i128::from(two.0 - one.0))
    };
    let mut hull: Vec<Corner> = Vec::new();
    for corner in corners.iter().filter(|corner| corner.1 >= 0) {
        while let [.., one, two] = hull[..]
            && !steeper((two, *corner), (one, two))
        {
            hull.pop();
        }
        if hull.last().is_none_or(|last| last.0 < corner.0) {
            hull.push(*corner);
        }
    }
    while let [.., one, two] = hull[..]
        && two.1 - one.1 >= steepest.saturating_mul(i128::from(two.0 - one.0))
    {
        hull.pop();
    }
    hull
}

impl Typical {
    /// The sum of the deadlines of a burst's packets, in nanoseconds, within
    /// the segments of `first` and `second`.
    fn sum_of_deadlines(&self, first: Rate, second: &Line) -> i128 {
        let packet = i128::from(self.packet.max(SMALLEST_PACKET).0);
        let count = (i128::from(self.burst.0) / packet).max(1);
        let (slow, fast) = (i128::from(first.0), i128::from(second.slope.0));
        // Up to here, packets are served earlier on the first segment.
        let early = if slow == 0 {
            0
        } else if fast <= slow {
            count
        } else {
            let gone = i128::from(second.start.0).saturating_mul(slow).saturating_mul(fast);
            (gone / (fast - slow) / PER_BYTE / packet).min(count)
        };
        let bits = |packets: i128| {
            (packets * (packets + 1) / 2).saturating_mul(packet).saturating_mul(PER_BYTE)
        };
        let by_first = if early == 0 { 0 } else { bits(early) / slow };
        let late = (count - early).saturating_mul(i128::from(second.start.0));
        let by_second = late.saturating_add((bits(count) - bits(early)) / fast);
        by_first.saturating_add(by_second)
    }
}
