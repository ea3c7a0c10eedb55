//! The earliest deadlines that can be given, from a bounded history: ours, `BE` has only
//! approximations of this kind.
//!
//! Two things make it small and fast, and neither changes a deadline.
//!
//! *The tail is one line.* Beyond its last corner T*, E rises by s for ever, so
//! that what packet i demands of packet n is `r_i + T* + (w_i + .. + w_n - E(T*)) / s`.
//! With `S_i` the bytes that came before packet i, that is largest for one and
//! the same i for all n to come: the one with the largest `s r_i - S_i`. Of all
//! points beyond T* only this one is kept. A point counts as beyond T* when its
//! demand exceeds E(T*), or else when `D_n - r_i > T*`: deadlines do not go
//! back, so it cannot bind before its demand exceeds E(T*) too, and until then
//! the line, which is below T* there, asks for less than `D_n` already is. Points
//! on the near side of T* demand no more than E(T*), which bounds their number
//! by that over [`SMALLEST_PACKET`].
//!
//! *Every straight piece has one candidate.* Between two corners the same holds
//! with the slope of that piece for the points whose demand lies on it, as long
//! as they do. Demand grows with every packet, by the same for all points, so
//! points pass from piece to piece in the order in which they came. For each
//! piece a queue holds the points that are not outdone by a later one of the
//! same piece; its first is the candidate, and the deadline is the latest that
//! a candidate asks for. A point enters and leaves every piece at most once:
//! a packet costs one division for each piece that has points, however many
//! points there are.

use std::collections::VecDeque;

use super::{Assignment, Point, SMALLEST_PACKET};
use crate::curve::{Curve, PER_BYTE, ceiling};
use crate::units::{Bytes, Time};

/// Remembers the packets whose demand lies before the last corner of the
/// capacity, and one more.
#[derive(Clone, Debug)]
pub struct Bounded {
    /// The pieces before the last corner, in their order.
    pieces: Vec<Piece>,
    /// The last piece, which goes on for ever.
    tail: Wait,
    /// The point beyond the last corner that is nearest to the tail.
    nearest: Option<Point>,
    /// Bytes of all packets since the link was idle.
    sum: u64,
}

/// A straight piece of the capacity, and the points whose demand lies on it.
#[derive(Clone, Debug)]
struct Piece {
    wait: Wait,
    /// The most bytes that can be demanded within it.
    most: u64,
    /// All of its points, oldest first.
    points: VecDeque<Point>,
    /// Those that no later one outdoes, oldest first.
    candidates: VecDeque<Point>,
}

/// A straight piece of the inverse of the capacity: how long it takes to serve
/// a demand.
#[derive(Clone, Copy, Debug)]
struct Wait {
    start: u64,
    /// The capacity at `start`, in billionths of a bit.
    value: i128,
    /// Zero where the capacity jumps: then every demand takes until `start`.
    slope: i128,
}

impl Wait {
    /// How far ahead of others a point is: of two points on one piece, the one
    /// with the larger value asks for the later deadline.
    fn urgency(&self, point: Point) -> i128 {
        let arrived = i128::from(point.arrived);
        if self.slope == 0 {
            arrived
        } else {
            self.slope * arrived - PER_BYTE * i128::from(point.before)
        }
    }

    /// The deadline that `point` asks for when `sum` bytes have come in all.
    fn deadline(&self, point: Point, sum: u64) -> u64 {
        let demand = i128::from(sum - point.before) * PER_BYTE - self.value;
        let wait = match (u64::try_from(demand), u64::try_from(self.slope)) {
            _ if self.slope == 0 => 0,
            // Almost always, and a division of 64 bits costs a third.
            (Ok(demand), Ok(slope)) => i128::from(demand.div_ceil(slope)),
            _ => ceiling(demand, self.slope),
        };
        let at = i128::from(point.arrived) + i128::from(self.start) + wait;
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }
}

impl Piece {
    fn push(&mut self, point: Point) {
        let urgency = self.wait.urgency(point);
        while self.candidates.back().is_some_and(|last| self.wait.urgency(*last) <= urgency) {
            self.candidates.pop_back();
        }
        self.candidates.push_back(point);
        self.points.push_back(point);
    }

    /// Takes out the oldest point, if `leaves` says so.
    fn pop_if(&mut self, leaves: impl Fn(&Point) -> bool) -> Option<Point> {
        let point = self.points.front().copied().filter(leaves)?;
        self.points.pop_front();
        if self.candidates.front().is_some_and(|first| first.before == point.before) {
            self.candidates.pop_front();
        }
        Some(point)
    }
}

impl Bounded {
    /// The earliest deadlines within `capacity`, which must not fall. A periodic
    /// tail is replaced by the highest line below it.
    ///
    /// # Panics
    /// When it does not rise for ever.
    #[must_use]
    pub fn new(capacity: &Curve) -> Bounded {
        let straight = capacity.line_below_from(capacity.tail());
        // Where the line begins it may be lower than the curve was before.
        let straight = straight.least_from_here_on().expect("a capacity does not fall");
        let mut pieces = Vec::new();
        let mut served = 0;
        let mut add = |wait: Wait, until: i128| {
            // The last whole byte; pieces between two bytes have no demand on them.
            let most = u64::try_from(until.div_euclid(PER_BYTE)).unwrap_or(u64::MAX);
            if most > served {
                let (points, candidates) = (VecDeque::new(), VecDeque::new());
                pieces.push(Piece { wait, most, points, candidates });
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
        Bounded { pieces, tail, nearest: None, sum: 0 }
    }

    fn collapse(&mut self, point: Point) {
        let nearer = |kept: Point| self.tail.urgency(kept) < self.tail.urgency(point);
        if self.nearest.is_none_or(nearer) {
            self.nearest = Some(point);
        }
    }

    /// Lets points whose demand has outgrown their piece pass on.
    fn pass_on(&mut self) {
        let sum = self.sum;
        for index in 0..self.pieces.len() {
            let most = self.pieces[index].most;
            while let Some(point) = self.pieces[index].pop_if(|point| sum - point.before > most) {
                match self.pieces.get_mut(index + 1) {
                    Some(next) => next.push(point),
                    None => self.collapse(point),
                }
            }
        }
    }

    /// Lets points that are further back than the last corner join the tail.
    fn forget(&mut self, deadline: u64) {
        let corner = self.tail.start;
        for index in (0..self.pieces.len()).rev() {
            let beyond = |point: &Point| deadline.saturating_sub(point.arrived) > corner;
            while let Some(point) = self.pieces[index].pop_if(beyond) {
                self.collapse(point);
            }
            if !self.pieces[index].points.is_empty() {
                return;
            }
        }
    }
}

impl Assignment for Bounded {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        let point = Point { arrived: arrived.0, before: self.sum };
        self.sum = self.sum.saturating_add(size.max(SMALLEST_PACKET).0);
        match self.pieces.first_mut() {
            Some(first) => first.push(point),
            None => self.collapse(point),
        }
        self.pass_on();
        let asked = |wait: &Wait, point: Option<&Point>| {
            point.map_or(0, |point| wait.deadline(*point, self.sum))
        };
        let beyond = asked(&self.tail, self.nearest.as_ref());
        let deadline = self
            .pieces
            .iter()
            .map(|piece| asked(&piece.wait, piece.candidates.front()))
            .fold(beyond, u64::max);
        self.forget(deadline);
        Time(deadline)
    }

    fn reset(&mut self) {
        for piece in &mut self.pieces {
            piece.points.clear();
            piece.candidates.clear();
        }
        self.nearest = None;
        self.sum = 0;
    }

    fn state(&self) -> usize {
        let points: usize = self.pieces.iter().map(|piece| piece.points.len()).sum();
        points + usize::from(self.nearest.is_some())
    }
}
