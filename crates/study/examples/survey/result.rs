//! What came out of a case.

use tidegate_study::Sample;

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
