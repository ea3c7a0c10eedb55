//! A statement, the paper's figure, ours, and what follows.

use serde::Serialize;

use tidegate_study::{Centre, Estimate};

/// One thing asked of the measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What is asked, with the bound that decides.
    pub statement: String,
    /// What the paper says, as a figure where it has one.
    pub paper: String,
    /// What was measured.
    pub ours: String,
    /// The value that was held against the bound, over seeds; alone if it has none.
    pub value: Option<Estimate>,
    /// Whether it holds.
    pub outcome: Outcome,
}

/// Whether a check holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The whole 95% interval is on the right side of the bound.
    Holds,
    /// The whole interval is on the wrong side.
    Fails,
    /// The interval has the bound in it, or there are too few seeds for one: more are
    /// needed to tell.
    Undecided,
}

impl Outcome {
    /// In a word.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Holds => "yes",
            Outcome::Fails => "no",
            Outcome::Undecided => "undecided",
        }
    }

    fn of(right: bool, wrong: bool) -> Outcome {
        match (right, wrong) {
            (true, _) => Outcome::Holds,
            (_, true) => Outcome::Fails,
            _ => Outcome::Undecided,
        }
    }
}

/// The side of a bound on which a value should be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// From the one to the other.
    Within(f64, f64),
}

impl Bound {
    fn judge(self, (low, high): (f64, f64)) -> Outcome {
        match self {
            Bound::AtMost(most) => Outcome::of(high <= most, low > most),
            Bound::AtLeast(least) => Outcome::of(low >= least, high < least),
            Bound::Within(least, most) => {
                Outcome::of(least <= low && high <= most, high < least || low > most)
            }
        }
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Written {
    /// A ratio of two values.
    Ratio,
    /// A part of one, in per cent.
    Share,
    /// Seconds.
    Seconds,
    /// A number of something.
    Count,
}

impl Written {
    /// What makes one of the first unit, and the unit.
    fn unit(self) -> (f64, &'static str) {
        match self {
            Written::Ratio | Written::Count => (1.0, ""),
            Written::Share => (100.0, "%"),
            Written::Seconds => (1.0, " s"),
        }
    }

    /// A value without an interval.
    fn alone(self, value: f64) -> String {
        let (factor, unit) = self.unit();
        let value = value * factor;
        let places = places(value.abs());
        format!("{value:.places$}{unit}")
    }

    /// The mean and half its interval, or the median and the ends of its own, to three
    /// digits of the largest.
    pub(crate) fn estimate(self, estimate: &Estimate) -> String {
        let (factor, unit) = self.unit();
        let value = estimate.value * factor;
        let Some((low, high)) = estimate.interval else {
            let (runs, least) = (estimate.runs, estimate.centre.least_runs());
            let seeds = if runs == 1 { "seed" } else { "seeds" };
            return format!(
                "{} ({runs} {seeds}; an interval needs {least})",
                self.alone(estimate.value)
            );
        };
        let (low, high) = (low * factor, high * factor);
        match estimate.centre {
            Centre::Mean => {
                let half = (high - low) / 2.0;
                let places = places(value.abs().max(half));
                format!("{value:.places$} ± {half:.places$}{unit}")
            }
            Centre::Median => {
                let places = places(low.abs().max(high.abs()));
                format!("median {value:.places$} ({low:.places$} to {high:.places$}){unit}")
            }
        }
    }
}

/// Decimal places that show three digits of `size`.
fn places(size: f64) -> usize {
    const MOST: usize = 6;
    let bounds = [100.0, 10.0, 1.0, 0.1, 0.01, 0.001];
    if size == 0.0 { 0 } else { bounds.iter().position(|b| size >= *b).unwrap_or(MOST) }
}

impl Check {
    /// A check of the mean of `values`, one from each seed, against `bound`: for
    /// values with light tails. A seed without a value (no such flow, say) is `None`,
    /// and left out.
    pub(crate) fn new(
        statement: impl Into<String>,
        paper: impl Into<String>,
        written: Written,
        values: impl IntoIterator<Item = Option<f64>>,
        bound: Bound,
    ) -> Check {
        Check::of(Centre::Mean, statement, paper, written, values, bound)
    }

    /// The same of the mean, or of the median: for maxima, quantiles, and what may
    /// have heavy tails.
    pub(crate) fn of(
        centre: Centre,
        statement: impl Into<String>,
        paper: impl Into<String>,
        written: Written,
        values: impl IntoIterator<Item = Option<f64>>,
        bound: Bound,
    ) -> Check {
        let value = centre.of(values.into_iter().flatten().filter(|value| value.is_finite()));
        let interval = value.and_then(|value| value.interval);
        let outcome = interval.map_or(Outcome::Undecided, |interval| bound.judge(interval));
        let ours = value.map_or("nothing to measure".into(), |value| written.estimate(&value));
        Check { statement: statement.into(), paper: paper.into(), ours, value, outcome }
    }

    /// A check of one value: what is computed, not simulated, or the worst of all runs
    /// where a law allows none.
    pub(crate) fn exact(
        statement: impl Into<String>,
        paper: impl Into<String>,
        written: Written,
        value: f64,
        bound: Bound,
    ) -> Check {
        let known = Estimate::mean([value]).filter(|_| value.is_finite());
        let outcome = known.map_or(Outcome::Undecided, |_| bound.judge((value, value)));
        let ours = known.map_or("nothing to measure".into(), |_| written.alone(value));
        Check { statement: statement.into(), paper: paper.into(), ours, value: known, outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_interval_decides() {
        let outcome = |values: [f64; 3], bound| {
            Check::new("", "", Written::Ratio, values.map(Some), bound).outcome
        };
        assert_eq!(outcome([0.9, 1.0, 1.1], Bound::AtMost(2.0)), Outcome::Holds);
        assert_eq!(outcome([0.9, 1.0, 1.1], Bound::AtMost(1.0)), Outcome::Undecided);
        assert_eq!(outcome([0.9, 1.0, 1.1], Bound::AtMost(0.5)), Outcome::Fails);
        assert_eq!(outcome([0.9, 1.0, 1.1], Bound::AtLeast(0.5)), Outcome::Holds);
        assert_eq!(outcome([0.9, 1.0, 1.1], Bound::Within(0.5, 1.5)), Outcome::Holds);
        assert_eq!(outcome([0.9, 1.0, 1.1], Bound::Within(2.0, 3.0)), Outcome::Fails);
        assert_eq!(outcome([0.9, 1.0, 1.1], Bound::Within(1.0, 3.0)), Outcome::Undecided);
    }

    #[test]
    fn numbers_have_three_digits_and_their_unit() {
        let written = |written: Written, values: [f64; 2]| {
            Check::new("", "", written, values.map(Some), Bound::AtMost(1.0)).ours
        };
        assert_eq!(written(Written::Share, [0.0, 0.0]), "0 ± 0%");
        assert_eq!(written(Written::Share, [0.123, 0.123]), "12.3 ± 0.0%");
        assert_eq!(written(Written::Ratio, [0.003_71, 0.003_71]), "0.00371 ± 0.00000");
        assert_eq!(written(Written::Seconds, [254.0, 254.0]), "254 ± 0 s");
    }

    #[test]
    fn a_median_has_the_ends_of_its_interval_and_needs_six_seeds() {
        let of = |values: &[f64]| {
            let values = values.iter().copied().map(Some);
            Check::of(Centre::Median, "", "", Written::Seconds, values, Bound::AtLeast(10.0))
        };
        let check = of(&[11.0, 12.0, 13.0, 14.0, 15.0, 900.0]);
        assert_eq!((&*check.ours, check.outcome), ("median 14 (11 to 900) s", Outcome::Holds));
        let check = of(&[11.0, 12.0, 13.0]);
        assert_eq!(check.ours, "12.0 s (3 seeds; an interval needs 6)");
        assert_eq!(check.outcome, Outcome::Undecided);
    }

    #[test]
    fn a_single_run_decides_nothing_and_a_computed_value_does() {
        let bound = Bound::AtMost(1.0);
        let run = Check::new("", "", Written::Ratio, [Some(0.5)], bound);
        assert_eq!(
            (&*run.ours, run.outcome),
            ("0.500 (1 seed; an interval needs 2)", Outcome::Undecided)
        );
        let computed = Check::exact("", "", Written::Ratio, 0.5, bound);
        assert_eq!((&*computed.ours, computed.outcome), ("0.500", Outcome::Holds));
        assert_eq!(
            Check::exact("", "", Written::Ratio, f64::NAN, bound).outcome,
            Outcome::Undecided
        );
    }

    #[test]
    fn nothing_to_measure_is_undecided() {
        let check = Check::new("", "", Written::Ratio, [None, None], Bound::AtMost(1.0));
        assert_eq!((check.outcome, check.value), (Outcome::Undecided, None));
    }
}
