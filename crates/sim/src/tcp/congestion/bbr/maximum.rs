//! The largest of recent values, without keeping them all (Linux 7.3, `lib/win_minmax`).
//!
//! Three are kept: the largest of the window, the largest after it, and the largest after
//! that. When the first leaves the window, the second takes its place. So that there is a
//! second by then, values from the last three quarters and from the last half of the
//! window get places of their own. The answer is exact as long as values do not fall for
//! longer than that, and never above the true maximum.

/// A value and the round in which it came.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u32,
    value: u64,
}

/// The largest value of a window of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Maximum {
    best: [Sample; 3],
}

impl Maximum {
    pub(super) fn largest(&self) -> u64 {
        self.best[0].value
    }

    /// Takes in a value of this `round` and forgets those from more than `window` rounds
    /// before.
    pub(super) fn insert(&mut self, window: u32, round: u32, value: u64) {
        let new = Sample { round, value };
        let age = |sample: Sample| round.wrapping_sub(sample.round);
        if value >= self.best[0].value || age(self.best[2]) > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        let oldest = age(self.best[0]);
        if oldest > window {
            self.best = [self.best[1], self.best[2], new];
            if age(self.best[0]) > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].round == self.best[0].round && oldest > window / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].round == self.best[1].round && oldest > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A window of 8 rounds. 90 of round 0 is the largest until round 8. 70 comes in its
    /// first quarter and gets no place. 60 is second, as the first after that, and 50 is
    /// third, as the first of the other half. Round 9 forgets 90.
    #[test]
    fn the_second_takes_the_place_of_the_first() {
        let mut maximum = Maximum::default();
        for (round, value, largest) in
            [(0, 90, 90), (1, 70, 90), (3, 60, 90), (5, 50, 90), (8, 10, 90), (9, 10, 60)]
        {
            maximum.insert(8, round, value);
            assert_eq!(maximum.largest(), largest, "round {round}");
        }
        // 60 came in round 3 and stays until round 11.
        maximum.insert(8, 11, 10);
        assert_eq!(maximum.largest(), 60);
        maximum.insert(8, 12, 10);
        assert_eq!(maximum.largest(), 50);
        // Nothing for longer than the window: only the new value counts.
        maximum.insert(8, 30, 1);
        assert_eq!(maximum.largest(), 1);
    }

    proptest! {
        /// Against all values of the window: never above their maximum, never below the
        /// newest one, and equal to it while they rise.
        #[test]
        fn it_is_the_maximum_of_some_of_the_window(
            steps in prop::collection::vec((0_u32..4, 0_u64..1_000), 1..100)
        ) {
            const WINDOW: u32 = 10;
            let mut maximum = Maximum::default();
            let (mut all, mut round) = (Vec::new(), 0);
            for (step, value) in steps {
                round += step;
                all.push((round, value));
                maximum.insert(WINDOW, round, value);
                let recent = all.iter().filter(|(at, _)| round - at <= WINDOW);
                let true_maximum = recent.map(|(_, value)| *value).max().unwrap();
                prop_assert!(maximum.largest() <= true_maximum);
                prop_assert!(maximum.largest() >= value);
                // The largest of the whole window is the answer unless it was the second
                // within a quarter of the window.
                let first = all.iter().rev().find(|(_, other)| *other == true_maximum);
                let newer = first.is_some_and(|(at, _)| all.iter().all(|(other, _)| other <= at));
                if newer {
                    prop_assert_eq!(maximum.largest(), true_maximum);
                }
            }
        }
    }
}
