//! A statement, the paper's figure, ours, and what follows.

use serde::Serialize;

use crate::metrics::statistics::Estimate;

/// One thing asked of the measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What is asked, with the bound that decides.
    pub statement: String,
    /// What the paper says, as a figure where it has one.
    pub paper: String,
    /// What was measured.
    pub ours: String,
    /// The value that was held against the bound, over seeds.
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
    /// The interval has the bound in it: more seeds are needed to tell.
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
pub(super) enum Bound {
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
pub(super) enum Written {
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
    fn write(self, value: f64) -> String {
        match self {
            Written::Ratio | Written::Count => significant(value),
            Written::Share => format!("{}%", significant(100.0 * value)),
            Written::Seconds => format!("{} s", significant(value)),
        }
    }

    /// The mean and half its interval.
    pub(super) fn estimate(self, estimate: &Estimate) -> String {
        let mean = self.write(estimate.mean);
        match estimate.half_width {
            Some(half) => format!("{mean} ± {}", self.write(half)),
            None => mean,
        }
    }
}

/// Three significant digits.
pub(super) fn significant(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 || size == 0.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.places$}")
}

impl Check {
    /// A check of `values`, one from each seed, against `bound`. A seed without
    /// a value (no such flow, say) is `None`, and left out.
    pub(super) fn new(
        statement: impl Into<String>,
        paper: impl Into<String>,
        written: Written,
        values: impl IntoIterator<Item = Option<f64>>,
        bound: Bound,
    ) -> Check {
        let value = Estimate::of(values.into_iter().flatten().filter(|value| value.is_finite()));
        let outcome = value.map_or(Outcome::Undecided, |estimate| bound.judge(estimate.interval()));
        let ours = value.map_or("nothing to measure".into(), |value| written.estimate(&value));
        Check { statement: statement.into(), paper: paper.into(), ours, value, outcome }
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
    fn nothing_to_measure_is_undecided() {
        let check = Check::new("", "", Written::Ratio, [None, None], Bound::AtMost(1.0));
        assert_eq!((check.outcome, check.value), (Outcome::Undecided, None));
    }
}
