//! The deadlines of Algorithm 1, from a bounded history. The method is ours; `BE`
//! has only approximations of this kind.
//!
//! Three properties make it small and fast, and none changes a deadline.
//!
//! *Not every packet counts.* E rises by at most s' within a nanosecond. If packet
//! j came so soon after packet i that `s' (r_j - r_i) <= S_j - S_i`, where `S_i` is
//! the bytes that came before packet i, then i always asks for a deadline no
//! earlier than j does: what i demands in addition takes at least as long as j came
//! later. So j is not a point. In a burst, only the first packet is one.
//!
//! *The tail is one line.* Beyond its last corner T*, E rises by s for ever, so
//! packet i asks packet n for the deadline `r_i + T* + (w_i + .. + w_n - E(T*)) /
//! s`. With `S_i` the bytes that came before packet i, that is largest for one and
//! the same i for all later n: the one with the largest `s r_i - S_i`. Of all
//! points beyond T*, only this one is kept. A point counts as beyond T* when its
//! demand exceeds E(T*), or else when `D_n - r_i > T*`: deadlines do not go back,
//! so it cannot bind before its demand exceeds E(T*) too, and until then the line,
//! which is below T* there, asks for less than `D_n` already is. Points on the near
//! side of T* demand no more than E(T*), which bounds their number by E(T*) over
//! [`SMALLEST_PACKET`].
//!
//! *Every straight piece has one candidate.* Between two corners, the same holds
//! with the slope of that piece for the points whose demand lies on it, for as long
//! as it does. Demand grows with every packet by the same amount for all points, so
//! points pass from piece to piece in the order in which they came. For each piece,
//! a queue holds the points that no later one of the same piece outdoes; its first
//! is the candidate, and the deadline is the latest that any candidate asks for. A
//! point enters and leaves every piece at most once: a packet costs a comparison
//! for each piece, and a division for each that makes its deadline later, however
//! many points there are.

use std::collections::VecDeque;

use super::{Assignment, Blocking, Point, SMALLEST_PACKET};
use crate::curve::{Curve, PER_BYTE, ceiling};
use crate::units::{Bytes, Time};

/// Remembers the packets whose demand lies before the last corner of the
/// capacity, and one more.
#[derive(Clone, Debug)]
pub struct Bounded {
    /// The points before the last corner, oldest first.
    points: VecDeque<Point>,
    /// The number of points before these.
    gone: u64,
    /// The pieces before the last corner, in their order.
    pieces: Vec<Piece>,
    /// The last piece, which continues for ever.
    tail: Wait,
    /// The point beyond the last corner that is nearest to the tail.
    nearest: Option<Candidate>,
    /// The last packet that became a point.
    last: Option<Point>,
    /// The most by which the capacity rises within a nanosecond.
    steepest: i128,
    /// Bytes of all packets since the link was idle.
    sum: u64,
}

/// A straight piece of the capacity, and the points whose demand lies on it: those
/// from `first` up to the first of the piece before.
#[derive(Clone, Debug)]
struct Piece {
    wait: Wait,
    /// The most bytes that can be demanded within it.
    most: u64,
    /// The number of its oldest point.
    first: u64,
    /// When more bytes than this have come, its oldest point leaves it.
    leaves: u64,
    /// The points that no later one outdoes, oldest first.
    candidates: VecDeque<Candidate>,
}

/// A point with its [`Wait::urgency`] on its piece.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    point: Point,
    urgency: i128,
}

/// A straight piece of the inverse of the capacity: how long a demand takes to
/// serve.
#[derive(Clone, Copy, Debug)]
struct Wait {
    start: u64,
    /// The capacity at `start`, in billionths of a bit.
    value: i128,
    /// Zero where the capacity jumps: then every demand takes until `start`.
    slope: i128,
}

/// A straight piece of the capacity within which [`Bounded`] looks for one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StraightPiece {
    /// Where it begins, in nanoseconds.
    pub start: u64,
    /// The capacity there, in billionths of a bit.
    pub value: i128,
    /// What the capacity gains in a nanosecond, in the same unit; zero where it jumps.
    pub slope: i128,
    /// The most bytes that can be demanded within it.
    pub most: u64,
}

impl StraightPiece {
    fn new(Wait { start, value, slope }: Wait, most: u64) -> StraightPiece {
        StraightPiece { start, value, slope, most }
    }
}

impl Wait {
    /// How far ahead of others a point is: of two points on one piece, the one with
    /// the larger value asks for the later deadline.
    fn urgency(&self, point: Point) -> i128 {
        let arrived = i128::from(point.arrived);
        if self.slope == 0 {
            arrived
        } else {
            self.slope * arrived - PER_BYTE * i128::from(point.before)
        }
    }

    /// The later of `deadline` and the deadline that a candidate asks for when
    /// `sum` bytes have come in all.
    fn later(&self, deadline: u64, candidate: &Candidate, sum: u64) -> u64 {
        let Candidate { point, urgency } = candidate;
        if self.slope == 0 {
            return deadline.max(point.arrived.saturating_add(self.start));
        }
        // Multiplied by the slope, so that most candidates need no division.
        let most = self.slope * (i128::from(deadline) - i128::from(self.start));
        if urgency + PER_BYTE * i128::from(sum) - self.value <= most {
            return deadline;
        }
        let demand = i128::from(sum - point.before) * PER_BYTE - self.value;
        let wait = match (u64::try_from(demand), u64::try_from(self.slope)) {
            // This is almost always the case, and a division of 64 bits costs a
            // third.
            (Ok(demand), Ok(slope)) => i128::from(demand.div_ceil(slope)),
            _ => ceiling(demand, self.slope),
        };
        let at = i128::from(point.arrived) + i128::from(self.start) + wait;
        u64::try_from(at).unwrap_or(u64::MAX)
    }
}

impl Piece {
    fn new(wait: Wait, most: u64) -> Piece {
        Piece { wait, most, first: 0, leaves: u64::MAX, candidates: VecDeque::new() }
    }

    /// Takes in a point that is younger than all others.
    fn push(&mut self, point: Point) {
        let urgency = self.wait.urgency(point);
        while self.candidates.back().is_some_and(|last| last.urgency <= urgency) {
            self.candidates.pop_back();
        }
        self.candidates.push_back(Candidate { point, urgency });
        if self.leaves == u64::MAX {
            self.leaves = point.before.saturating_add(self.most);
        }
    }

    /// Removes the oldest point; `next` is the one after it, if that is also on
    /// this piece.
    fn pop(&mut self, point: Point, next: Option<Point>) {
        self.first += 1;
        if self.candidates.front().is_some_and(|front| front.point.before == point.before) {
            self.candidates.pop_front();
        }
        self.leaves = next.map_or(u64::MAX, |next| next.before.saturating_add(self.most));
    }
}

impl Bounded {
    /// The earliest deadlines within `capacity`, which must not fall. From the end
    /// of its first period on, the highest line below it replaces a periodic tail.
    ///
    /// # Panics
    /// When it does not rise for ever.
    #[must_use]
    pub fn new(capacity: &Curve) -> Bounded {
        let period_end = capacity.tail().saturating_add(capacity.period());
        let straight = capacity.line_below_from(period_end);
        // Where the line begins, it may be lower than the curve was before.
        let straight = straight.least_from_here_on().expect("a capacity does not fall");
        let mut pieces = Vec::new();
        let mut served = 0;
        let mut add = |wait: Wait, until: i128| {
            // The last whole byte; pieces between two bytes carry no demand.
            let most = u64::try_from(until.max(0) / PER_BYTE).unwrap_or(u64::MAX);
            if most > served {
                pieces.push(Piece::new(wait, most));
                served = most;
            }
        };
        let jump = |start: u64| Wait { start, value: 0, slope: 0 };
        add(jump(0), straight.value(0));
        for pair in straight.pieces().windows(2) {
            let (piece, next) = (&pair[0], &pair[1]);
            let end = piece.at(next.start).min(next.value);
            if piece.slope > 0 {
                let wait = Wait { start: piece.start, value: piece.value, slope: piece.slope };
                add(wait, end);
            }
            add(jump(next.start), next.value);
        }
        let last = straight.pieces()[straight.pieces().len() - 1];
        assert!(last.slope > 0, "a capacity rises for ever");
        let tail = Wait { start: last.start, value: last.value, slope: last.slope };
        let slopes = straight.pieces().iter().map(|piece| piece.slope);
        let corners = straight.pieces().windows(2);
        let rises = corners.map(|pair| pair[1].value - pair[0].at(pair[1].start - 1));
        let steepest = slopes.chain(rises).fold(straight.value(0), i128::max);
        Bounded {
            points: VecDeque::new(),
            gone: 0,
            pieces,
            tail,
            nearest: None,
            last: None,
            steepest,
            sum: 0,
        }
    }

    /// The straight pieces of the capacity that carry demand, in their order, without the
    /// last one: for who computes the same deadlines elsewhere.
    pub fn pieces(&self) -> impl Iterator<Item = StraightPiece> + '_ {
        self.pieces.iter().map(|piece| StraightPiece::new(piece.wait, piece.most))
    }

    /// The last piece, which continues for ever.
    #[must_use]
    pub fn last_piece(&self) -> StraightPiece {
        StraightPiece::new(self.tail, u64::MAX)
    }

    /// By how much the capacity rises within a nanosecond at most, in billionths of a bit.
    #[must_use]
    pub fn steepest(&self) -> i128 {
        self.steepest
    }

    /// Whether an earlier packet always asks for a deadline no earlier than this
    /// one does.
    fn is_outdone(&self, point: Point) -> bool {
        self.last.is_some_and(|last| {
            let later = i128::from(point.arrived) - i128::from(last.arrived);
            let behind = i128::from(point.before - last.before);
            // It is behind by nothing only where the sum has reached its largest
            // value.
            behind > 0 && self.steepest.saturating_mul(later) <= PER_BYTE * behind
        })
    }

    /// Takes in a packet.
    fn push(&mut self, point: Point) {
        self.last = Some(point);
        match self.pieces.first_mut() {
            Some(first) => {
                first.push(point);
                self.points.push_back(point);
            }
            None => self.collapse(point),
        }
    }

    fn collapse(&mut self, point: Point) {
        let urgency = self.tail.urgency(point);
        if self.nearest.is_none_or(|kept| kept.urgency < urgency) {
            self.nearest = Some(Candidate { point, urgency });
        }
    }

    /// The point of this number, if it lies on the piece of this index.
    fn point_on(&self, index: usize, number: u64) -> Option<Point> {
        let end = match index.checked_sub(1) {
            Some(before) => self.pieces[before].first,
            None => self.gone + self.points.len() as u64,
        };
        let place = || usize::try_from(number - self.gone).expect("it is in memory");
        (number < end).then(|| self.points[place()])
    }

    /// Removes the oldest point of a piece.
    fn pop(&mut self, index: usize) -> Option<Point> {
        let first = self.pieces[index].first;
        let point = self.point_on(index, first)?;
        let next = self.point_on(index, first + 1);
        self.pieces[index].pop(point, next);
        Some(point)
    }

    /// Passes on the points whose demand has outgrown their piece.
    fn pass_on(&mut self) {
        for index in 0..self.pieces.len() {
            while self.sum > self.pieces[index].leaves
                && let Some(point) = self.pop(index)
            {
                match self.pieces.get_mut(index + 1) {
                    Some(next) => next.push(point),
                    None => {
                        self.points.pop_front();
                        self.gone += 1;
                        self.collapse(point);
                    }
                }
            }
        }
    }

    /// Moves the points that are further back than the last corner to the tail.
    fn forget(&mut self, deadline: u64) {
        while let Some(oldest) = self.points.front()
            && deadline.saturating_sub(oldest.arrived) > self.tail.start
        {
            // The point lies on the last piece that has any; the pieces after that
            // begin with the same number and have none.
            for index in (0..self.pieces.len()).rev() {
                if self.pop(index).is_some() {
                    break;
                }
                self.pieces[index].first += 1;
            }
            let point = self.points.pop_front().expect("it was looked at");
            self.gone += 1;
            self.collapse(point);
        }
    }
}

impl Assignment for Bounded {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        let point = Point { arrived: arrived.0, before: self.sum };
        self.sum = self.sum.saturating_add(size.max(SMALLEST_PACKET).0);
        if !self.is_outdone(point) {
            self.push(point);
        }
        self.pass_on();
        let sum = self.sum;
        // Under load, the oldest points ask for the latest deadlines: then the
        // others need no division.
        let nearest = self.nearest.as_ref();
        let mut deadline = nearest.map_or(0, |nearest| self.tail.later(0, nearest, sum));
        for piece in self.pieces.iter().rev() {
            if let Some(candidate) = piece.candidates.front() {
                deadline = piece.wait.later(deadline, candidate, sum);
            }
        }
        self.forget(deadline);
        Time(deadline)
    }

    fn reset(&mut self) {
        if self.last.is_none() {
            // Usually only real-time packets have passed.
            return;
        }
        self.points.clear();
        self.gone = 0;
        for piece in &mut self.pieces {
            (piece.first, piece.leaves) = (0, u64::MAX);
            piece.candidates.clear();
        }
        (self.nearest, self.last) = (None, None);
        self.sum = 0;
    }

    fn blocking(&self) -> Blocking {
        Blocking::Any
    }

    fn state(&self) -> usize {
        self.points.len() + usize::from(self.nearest.is_some())
    }
}
