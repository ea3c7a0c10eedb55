//! What came out of a case, and how a table of all cases has it.

use tidegate_study::Sample;

/// The columns of a figure of a discipline in a case. What else a table has follows.
pub(crate) const COLUMNS: [&str; 9] =
    ["group", "case", "discipline", "figure", "estimate", "value", "low_95", "high_95", "seeds"];

/// What the columns from `estimate` on say of a sample.
pub(crate) fn estimated(sample: &Sample) -> [String; 5] {
    let estimate = sample.estimate();
    let end = |end: Option<f64>| end.map_or(String::new(), number);
    [
        estimate.centre.name().into(),
        number(estimate.value),
        end(estimate.interval.map(|it| it.0)),
        end(estimate.interval.map(|it| it.1)),
        estimate.runs.to_string(),
    ]
}

/// Five digits are more than any page shows.
pub(crate) fn number(value: f64) -> String {
    format!("{value:.4e}")
}

/// What came out of a case.
pub(crate) struct CaseResult {
    pub(crate) name: String,
    pub(crate) group: &'static str,
    /// By discipline and figure.
    pub(crate) values: Vec<Vec<Option<Sample>>>,
}

impl CaseResult {
    /// A figure of every discipline.
    pub(crate) fn of(&self, figure: usize) -> Vec<Option<&Sample>> {
        self.values.iter().map(|values| values[figure].as_ref()).collect()
    }

    /// Whether any discipline has this figure.
    pub(crate) fn has(&self, figure: usize) -> bool {
        self.of(figure).iter().any(Option::is_some)
    }
}
