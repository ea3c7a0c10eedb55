//! A set of stream offsets as disjoint runs: what a receiver holds above a
//! hole, and what a sender knows to have arrived there.
//!
//! Runs are few (one per hole), so a sorted vector is faster than a tree. Without
//! reordering or loss it stays empty and owns no memory.

/// A run of offsets from `start` to one past the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The caller's mark of the last insertion that touched the run.
    pub(super) stamp: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    runs: Vec<Range>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn runs(&self) -> &[Range] {
        &self.runs
    }

    /// The first run that ends above `offset`.
    fn first_ending_after(&self, offset: u64) -> usize {
        self.runs.partition_point(|run| run.end <= offset)
    }

    /// The run that holds all of `start..end`.
    pub(super) fn covering(&self, start: u64, end: u64) -> Option<Range> {
        let run = *self.runs.get(self.first_ending_after(start))?;
        (run.start <= start && end <= run.end).then_some(run)
    }

    /// Adds `start..end` and joins the runs that touch it. Returns the run that now
    /// holds it, and the span from the first to the last offset that was new.
    pub(super) fn insert(
        &mut self,
        start: u64,
        end: u64,
        stamp: u64,
    ) -> (Range, Option<(u64, u64)>) {
        // Runs that touch or overlap: those with end >= start and start <= end.
        let first = self.runs.partition_point(|run| run.end < start);
        let last = first + self.runs[first..].partition_point(|run| run.start <= end);
        if first == last {
            let run = Range { start, end, stamp };
            self.runs.insert(first, run);
            return (run, Some((start, end)));
        }
        let (lowest, highest) = (self.runs[first], self.runs[last - 1]);
        let fresh_start = if lowest.start <= start { lowest.end } else { start };
        let fresh_end = if highest.end >= end { highest.start } else { end };
        let joined = Range { start: start.min(lowest.start), end: end.max(highest.end), stamp };
        self.runs[first] = joined;
        if last - first > 1 {
            self.runs.drain(first + 1..last);
        }
        (joined, (fresh_start < fresh_end).then_some((fresh_start, fresh_end)))
    }

    /// Drops everything below `offset`.
    pub(super) fn remove_below(&mut self, offset: u64) {
        if self.runs.first().is_none_or(|run| run.start >= offset) {
            return;
        }
        let gone = self.first_ending_after(offset);
        self.runs.drain(..gone);
        if let Some(run) = self.runs.first_mut() {
            run.start = run.start.max(offset);
        }
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The set holds the same offsets as a plain bitmap.
        #[test]
        fn a_set_of_runs_is_a_bitmap(
            steps in prop::collection::vec((0_u64..60, 1_u64..12, any::<bool>()), 0..60),
        ) {
            let mut ranges = Ranges::default();
            let mut bitmap = [false; 80];
            for (stamp, (start, length, removes)) in steps.into_iter().enumerate() {
                if removes && length < 3 {
                    ranges.remove_below(start);
                    bitmap[..start as usize].fill(false);
                } else {
                    let slice = &mut bitmap[start as usize..(start + length) as usize];
                    let fresh = slice.iter().position(|set| !set).map(|first| {
                        let last = slice.iter().rposition(|set| !set).unwrap();
                        (start + first as u64, start + last as u64 + 1)
                    });
                    slice.fill(true);
                    let (run, new) = ranges.insert(start, start + length, stamp as u64);
                    prop_assert_eq!(new, fresh);
                    prop_assert_eq!(ranges.covering(start, start + length), Some(run));
                }
                let mut shown = [false; 80];
                for run in ranges.runs() {
                    prop_assert!(run.start < run.end);
                    shown[run.start as usize..run.end as usize].fill(true);
                }
                prop_assert_eq!(shown, bitmap);
                // Disjoint, sorted, and never touching.
                prop_assert!(ranges.runs().windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
