//! The smallest arrival curve of a measured flow.
//!
//! Every packet begins a staircase: the bytes that came with it and since, over the
//! time since. The curve is the highest of all these staircases, up to a horizon.
//! Longer intervals consist of shorter ones: the traffic in two consecutive windows
//! is at most what each of them may contain. Beyond the horizon, the curve
//! therefore repeats the window that has the least traffic for its length.

use super::{Curve, FARTHEST, MOST_PIECES, PER_BYTE, Piece, TooManyPieces};
use crate::units::{Bytes, Span, Time};

/// A step of a staircase: how much came within a span, ends included.
#[derive(Clone, Copy, Debug)]
struct Step {
    span: u64,
    bytes: u64,
}

impl Curve {
    /// The least curve to which the packets keep in every interval of up to
    /// `horizon`, continued by subadditivity. The packets may be in any order.
    /// Within some interval as long as the horizon, nothing else must have come, so
    /// the horizon should be no longer than the measurement.
    ///
    /// Each packet is compared with those up to `horizon` after it. A pair takes 15
    /// to 20 ns: 100 000 packets take 3 s if there are 1 300 of them within the
    /// horizon, and half a minute if there are 13 000. The steps kept meanwhile
    /// take some tens of MB. The number of pairs is not limited: a caller that
    /// reads packets of unknown origin counts them first, in one pass over the
    /// times.
    ///
    /// ```
    /// use tidegate_core::curve::Curve;
    /// use tidegate_core::{Bytes, Span, Time};
    ///
    /// let packets = [0, 5, 20, 40].map(|millis| (Time(millis * 1_000_000), Bytes(100)));
    /// let curve = Curve::measured(&packets, Span::millis(39))?;
    /// assert_eq!(curve.bytes(Span::ZERO), Bytes(100));
    /// assert_eq!(curve.bytes(Span::millis(5)), Bytes(200));
    /// assert_eq!(curve.bytes(Span::millis(20)), Bytes(300));
    /// # Ok::<(), tidegate_core::curve::TooManyPieces>(())
    /// ```
    ///
    /// # Errors
    /// When the curve has more than [`MOST_PIECES`] steps.
    pub fn measured(packets: &[(Time, Bytes)], horizon: Span) -> Result<Curve, TooManyPieces> {
        let horizon = horizon.0.min(FARTHEST - 1);
        let mut packets = packets.to_vec();
        packets.sort_by_key(|packet| packet.0);
        // Joined as a balanced tree, so that every staircase takes part in few joins.
        let mut trees: Vec<Vec<Step>> = Vec::new();
        for first in 0..packets.len() {
            let mut highest = staircase(&packets[first..], horizon);
            for _ in 0..first.trailing_ones() {
                highest = higher_of(&trees.pop().expect("one tree for each bit"), &highest);
            }
            if highest.len() > MOST_PIECES {
                return Err(TooManyPieces);
            }
            trees.push(highest);
        }
        let steps = trees.iter().rfold(Vec::new(), |steps, tree| higher_of(&steps, tree));
        if steps.len() > MOST_PIECES {
            return Err(TooManyPieces);
        }
        Ok(continued(&steps, horizon))
    }
}

/// The traffic from the first of the packets on, up to `horizon` later.
fn staircase(packets: &[(Time, Bytes)], horizon: u64) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut bytes = 0_u64;
    for (at, size) in packets {
        let span = at.since(packets[0].0).0;
        if span > horizon {
            break;
        }
        bytes = bytes.saturating_add(size.0);
        match steps.last_mut().filter(|last| last.span == span) {
            Some(last) => last.bytes = bytes,
            None => steps.push(Step { span, bytes }),
        }
    }
    steps
}

/// The higher of two staircases, only at the points at which it rises.
fn higher_of(ones: &[Step], others: &[Step]) -> Vec<Step> {
    let mut highest: Vec<Step> = Vec::with_capacity(ones.len() + others.len());
    let (mut ones, mut others) = (ones.iter().peekable(), others.iter().peekable());
    // Of two steps at one span, the higher comes first and hides the other.
    let key = |step: &Step| (step.span, std::cmp::Reverse(step.bytes));
    loop {
        let step = match (ones.peek(), others.peek()) {
            (Some(one), Some(other)) if key(one) <= key(other) => ones.next(),
            (Some(_), None) => ones.next(),
            _ => others.next(),
        };
        let Some(step) = step else { return highest };
        if highest.last().is_none_or(|last| last.bytes < step.bytes) {
            highest.push(*step);
        }
    }
}

/// The curve of these steps up to `horizon`. An interval of length t contains t + 1
/// nanoseconds, and these are the numbers that add up from one window to the next.
fn continued(steps: &[Step], horizon: u64) -> Curve {
    if steps.is_empty() {
        return Curve::zero();
    }
    // Windows that end right before a step have the least traffic for their length.
    let ends = steps[1..].iter().map(|step| step.span).chain([horizon + 1]);
    let mut period = (u64::MAX, 1);
    for (step, nanos) in steps.iter().zip(ends) {
        let less = |(bytes, length): (u64, u64)| {
            u128::from(step.bytes) * u128::from(length) < u128::from(bytes) * u128::from(nanos)
        };
        if less(period) {
            period = (step.bytes, nanos);
        }
    }
    let (bytes, period) = period;
    let tail = horizon + 1 - period;
    let value = |bytes: u64| i128::from(bytes) * PER_BYTE;
    let mut pieces = Vec::with_capacity(steps.len() + 1);
    for (index, step) in steps.iter().enumerate() {
        let piece = Piece { start: step.span, value: value(step.bytes), slope: 0 };
        pieces.push(piece);
        let next = steps.get(index + 1).map_or(u64::MAX, |next| next.span);
        if step.span < tail && tail < next {
            pieces.push(piece.from(tail));
        }
    }
    Curve::repeated(pieces, tail, period, value(bytes))
}
