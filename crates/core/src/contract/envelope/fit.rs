//! The envelope of a curve: few token buckets, nowhere below it.
//!
//! The least concave curve above a curve is made of straight edges, and each is a
//! token bucket. Of those, as many as are wanted are chosen so that their minimum
//! exceeds the concave curve by the smallest factor, wherever it exceeds it most.
//! A factor weighs the packet at once and the rate of an hour alike, where an area
//! or a difference would see only one of them.

use super::{Envelope, SIZES, Term};
use crate::contract::ContractError;
use crate::curve::{Curve, PER_BYTE, ceiling, is_less};
use crate::units::{Bytes, Rate};

/// Of more edges than these, some in between are left out: a choice among them
/// takes as long as their square, some 15 ms for each term but the first.
const MOST_EDGES: usize = 1_000;

/// `burst + rate t`, in bytes and bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    burst: u64,
    rate: u64,
}

impl Line {
    fn at(&self, at: f64) -> f64 {
        self.burst as f64 * PER_BYTE as f64 + self.rate as f64 * at
    }

    /// Where two lines cross; the steeper is lower before.
    fn crossing(&self, flatter: &Line) -> f64 {
        let gap = (flatter.burst as f64 - self.burst as f64) * PER_BYTE as f64;
        gap / (self.rate as f64 - flatter.rate as f64)
    }
}

impl Envelope {
    /// An envelope of at most `terms` token buckets that is nowhere below
    /// `curve`: rates are rounded up to whole bit/s, bursts to whole bytes. With
    /// two terms it is a TSpec.
    ///
    /// # Errors
    /// When no term is allowed, or the curve needs bursts or rates beyond what an
    /// envelope may have.
    pub fn above(curve: &Curve, terms: usize) -> Result<Envelope, ContractError> {
        let lines = edges(curve).ok_or_else(|| ContractError {
            found: format!("a curve of {} in the long run", curve.long_run_rate()),
            expected: format!("at most {} B + {}", SIZES.end(), Envelope::FASTEST),
        })?;
        let chosen = choose(&lines, terms.min(Envelope::MOST_TERMS));
        let term =
            |line: &Line| Term::TokenBucket { burst: Bytes(line.burst), rate: Rate(line.rate) };
        Envelope::new(chosen.iter().map(term).collect())
    }
}

/// The edges of the least concave curve above, steepest first, rounded upwards.
fn edges(curve: &Curve) -> Option<Vec<Line>> {
    let long_run = curve.long_run_rate().0.max(1);
    if long_run > Envelope::FASTEST.0 {
        return None;
    }
    // A period later all corners have moved along the long-run rate, so no
    // steeper line touches there.
    let rise = |from: (u64, i128), to: (u64, i128)| (to.1.saturating_sub(from.1), to.0 - from.0);
    let mut hull: Vec<(u64, i128)> = Vec::new();
    for corner in curve.corners(0) {
        if hull.last().is_some_and(|last| last.0 == corner.0) {
            continue;
        }
        while let [.., before, last] = hull[..] {
            if is_less(rise(last, corner), rise(before, last)) {
                break;
            }
            hull.pop();
        }
        hull.push(corner);
    }
    let mut lines: Vec<Line> = Vec::new();
    let steep = hull.windows(2).map(|edge| {
        let (gain, length) = rise(edge[0], edge[1]);
        ceiling(gain, length.into())
    });
    // Rates only fall, so the corner on which their lines lie only moves on.
    let mut touched = 0;
    for rate in steep.chain([i128::from(long_run)]) {
        let rate = rate.clamp(long_run.into(), Envelope::FASTEST.0.into());
        // The lowest line of this rate: all is on whole numbers, so none is below.
        let excess = |index: usize| {
            let (at, value) = hull.get(index)?;
            Some(value.saturating_sub(rate * i128::from(*at)))
        };
        while excess(touched + 1) >= excess(touched) {
            touched += 1;
        }
        let above = excess(touched)?;
        let burst = u64::try_from(ceiling(above, PER_BYTE).max(1)).ok()?;
        let rate = u64::try_from(rate).ok()?;
        let line = Line { burst, rate };
        // A line that is flatter and begins no higher replaces the one before.
        while lines.last().is_some_and(|last| last.burst >= burst) {
            lines.pop();
        }
        if SIZES.contains(&burst) {
            lines.push(line);
        }
    }
    (!lines.is_empty()).then(|| thinned(&lines))
}

/// No more than [`MOST_EDGES`], the ends among them.
fn thinned(lines: &[Line]) -> Vec<Line> {
    let kept = lines.len().min(MOST_EDGES);
    let place = |index: usize| index * (lines.len() - 1) / (kept - 1).max(1);
    (0..kept).map(|index| lines[place(index)]).collect()
}

/// Of the edges of a concave curve, at most `terms` whose minimum exceeds it by
/// the smallest factor: the ends of its range and every crossing are where the
/// factor is at its greatest.
fn choose(lines: &[Line], terms: usize) -> Vec<Line> {
    if terms == 0 {
        return Vec::new();
    }
    let (steepest, flattest) = (lines[0], lines[lines.len() - 1]);
    let turns: Vec<f64> = lines.windows(2).map(|pair| pair[0].crossing(&pair[1])).collect();
    let at_crossing = |one: &Line, other: &Line| {
        let at = one.crossing(other);
        one.at(at) / lines[turns.partition_point(|turn| *turn < at)].at(at)
    };
    // The smallest factor up to the last crossing of a choice that ends in each
    // line, and the line before it (or itself, where one term less is as good).
    let mut best: Vec<f64> =
        lines.iter().map(|line| line.burst as f64 / steepest.burst as f64).collect();
    let mut before: Vec<Vec<usize>> = Vec::new();
    for _ in 1..terms.min(lines.len()) {
        let mut next = best.clone();
        let mut from: Vec<usize> = (0..lines.len()).collect();
        for (end, line) in lines.iter().enumerate() {
            for (start, earlier) in lines[..end].iter().enumerate() {
                let factor = best[start].max(at_crossing(earlier, line));
                if factor < next[end] {
                    (next[end], from[end]) = (factor, start);
                }
            }
        }
        before.push(from);
        best = next;
    }
    let in_the_end = |end: usize| best[end].max(lines[end].rate as f64 / flattest.rate as f64);
    let mut end = 0;
    for other in 1..lines.len() {
        if in_the_end(other) < in_the_end(end) {
            end = other;
        }
    }
    let mut chosen = vec![lines[end]];
    for from in before.iter().rev() {
        if from[end] != end {
            end = from[end];
            chosen.push(lines[end]);
        }
    }
    chosen.reverse();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest factor by which the chosen lines exceed all, seen at many times.
    fn factor(chosen: &[Line], all: &[Line]) -> f64 {
        let least = |lines: &[Line], at: f64| {
            lines.iter().map(|line| line.at(at)).fold(f64::INFINITY, f64::min)
        };
        let times = (0..4_000).map(|step| f64::from(step) * 1e6).chain([1e18]);
        times.map(|at| least(chosen, at) / least(all, at)).fold(1.0, f64::max)
    }

    #[test]
    fn no_other_choice_of_edges_has_a_smaller_factor() {
        let edges =
            [(100, 8_000_000), (300, 900_000), (1_000, 300_000), (4_000, 80_000), (6_000, 60_000)];
        let lines = edges.map(|(burst, rate)| Line { burst, rate });
        for terms in 1..=5_usize {
            let found = factor(&choose(&lines, terms), &lines);
            for set in 1..1_u32 << lines.len() {
                let others: Vec<Line> =
                    (0..lines.len()).filter(|i| set >> i & 1 == 1).map(|i| lines[i]).collect();
                if others.len() <= terms {
                    assert!(found <= factor(&others, &lines) * 1.001, "{terms}: {others:?}");
                }
            }
        }
    }

    #[test]
    fn a_tspec_is_found_again() {
        let envelope: Envelope = "100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s".parse().unwrap();
        let curve = envelope.curve().unwrap();
        assert_eq!(Envelope::above(&curve, 2).unwrap(), envelope);
        assert_eq!(Envelope::above(&curve, 1).unwrap().terms().len(), 1);
        assert!(Envelope::above(&curve, 0).is_err());
        assert!(Envelope::above(&Curve::rate(Rate(u64::MAX)), 2).is_err());
    }
}
