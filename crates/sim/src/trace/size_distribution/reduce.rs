//! From a list of sizes to a few points of their distribution.
//!
//! Of n sizes in order, the k-th (from 0) stands at probability (k + 1/2) / n,
//! and the last once more at 1. Under the reading of distributions here (linear
//! between points) the mean is then exactly that of the sizes.
//!
//! Leaving points out replaces the sizes between two kept ones by a straight
//! line. The heavier the tail, the more that adds to the mean. So half of the
//! points are spread evenly over the probabilities, which keeps the shape where
//! most sizes are, and each of the others goes into the gap that distorts the
//! mean most, at the size that is farthest from the straight line.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tidegate_core::Bytes;

use super::Point;

/// At most `max_points` (8 or more) points for `sizes`; none for no sizes.
pub(super) fn points(sizes: &[Bytes], max_points: usize) -> Vec<Point> {
    let mut sorted: Vec<Bytes> = sizes.to_vec();
    sorted.sort_unstable();
    let Some(&largest) = sorted.last() else {
        return Vec::new();
    };
    let count = sorted.len() as f64;
    // One point is for the last size at probability 1.
    let mut points: Vec<Point> = kept(&sorted, max_points - 1)
        .into_iter()
        .map(|index| Point { size: sorted[index], probability: (index as f64 + 0.5) / count })
        .collect();
    points.push(Point { size: largest, probability: 1.0 });
    // The first point's probability is its size's alone, so of several points
    // of the smallest size only the last says anything.
    let smallest = points.partition_point(|point| point.size == sorted[0]);
    points.drain(..smallest - 1);
    points
}

/// Which of the sorted sizes to keep, in order: the first, the last, and as
/// many in between as `max_kept` allows.
fn kept(sorted: &[Bytes], max_kept: usize) -> Vec<usize> {
    // Inside a run of equal sizes only the ends matter.
    let ends: Vec<usize> = (0..sorted.len())
        .filter(|&index| {
            let inside = index > 0 && index + 1 < sorted.len();
            !(inside && sorted[index - 1] == sorted[index] && sorted[index] == sorted[index + 1])
        })
        .collect();
    if ends.len() <= max_kept {
        return ends;
    }
    // Points enough are left out that here both halves are smaller than `sorted`.
    let even = max_kept / 2;
    let mut kept: Vec<usize> =
        (0..even).map(|step| step * (sorted.len() - 1) / (even - 1)).collect();
    kept.dedup();
    let mut gaps: BinaryHeap<Gap> =
        kept.windows(2).filter_map(|pair| Gap::new(sorted, pair[0], pair[1])).collect();
    while kept.len() < max_kept {
        let Some(gap) = gaps.pop() else { break };
        kept.push(gap.farthest);
        gaps.extend(Gap::new(sorted, gap.from, gap.farthest));
        gaps.extend(Gap::new(sorted, gap.farthest, gap.to));
    }
    kept.sort_unstable();
    kept
}

/// The sizes between two kept ones.
struct Gap {
    from: usize,
    to: usize,
    /// How much the straight line adds to the sum of the sizes, or takes away.
    distortion: f64,
    /// The size that is farthest from the line.
    farthest: usize,
}

impl Gap {
    /// `None` when the line is exact.
    fn new(sorted: &[Bytes], from: usize, to: usize) -> Option<Gap> {
        let size = |index: usize| sorted[index].0 as f64;
        let slope = (size(to) - size(from)) / (to - from) as f64;
        let mut gap = Gap { from, to, distortion: 0.0, farthest: from };
        let mut longest = 0.0;
        for index in from + 1..to {
            let distance = size(from) + slope * (index - from) as f64 - size(index);
            gap.distortion += distance;
            if distance.abs() > longest {
                longest = distance.abs();
                gap.farthest = index;
            }
        }
        gap.distortion = gap.distortion.abs();
        (longest > 0.0).then_some(gap)
    }
}

impl Ord for Gap {
    fn cmp(&self, other: &Gap) -> Ordering {
        // Ties go to the smaller sizes, so that the choice does not depend on
        // the order in which the gaps were made.
        self.distortion.total_cmp(&other.distortion).then(other.from.cmp(&self.from))
    }
}

impl PartialOrd for Gap {
    fn partial_cmp(&self, other: &Gap) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Gap {
    fn eq(&self, other: &Gap) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Gap {}
