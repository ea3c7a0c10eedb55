//! A statement, the paper's figure, ours, and what follows.

use serde::Serialize;

use tidegate_study::Estimate;

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
    /// The mean and half its interval, to three digits of the larger one.
    pub(crate) fn estimate(self, estimate: &Estimate) -> String {
        let (factor, unit) = match self {
            Written::Ratio | Written::Count => (1.0, ""),
            Written::Share => (100.0, "%"),
            Written::Seconds => (1.0, " s"),
        };
        let (mean, half) = (estimate.mean * factor, estimate.half_width.map(|half| half * factor));
        let places = places(mean.abs().max(half.unwrap_or(0.0)));
        match half {
            Some(half) => format!("{mean:.places$} ± {half:.places$}{unit}"),
            None => format!("{mean:.places$}{unit}"),
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
    /// A check of `values`, one from each seed, against `bound`. A seed without
    /// a value (no such flow, say) is `None`, and left out.
    pub(crate) fn new(
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
    fn nothing_to_measure_is_undecided() {
        let check = Check::new("", "", Written::Ratio, [None, None], Bound::AtMost(1.0));
        assert_eq!((check.outcome, check.value), (Outcome::Undecided, None));
    }
}
