//! Numbers that are too many for checks and too many to read off a figure.

use serde::Serialize;

use crate::check::Written;
use tidegate_study::Estimate;

/// Values by two names, with their intervals over seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// One line above it.
    pub title: String,
    /// What the values are.
    pub caption: String,
    /// What the rows are of, then what each column of values is.
    pub columns: Vec<String>,
    /// The rows, from above.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is of.
    pub label: String,
    /// Its values as they are written.
    pub ours: Vec<String>,
    /// The values.
    pub values: Vec<Option<Estimate>>,
}

impl Row {
    /// A row of values that were measured, each over seeds.
    pub(crate) fn new(
        label: impl Into<String>,
        written: Written,
        values: impl IntoIterator<Item = Option<Estimate>>,
    ) -> Row {
        let values: Vec<_> = values.into_iter().collect();
        let text =
            |value: &Option<Estimate>| value.map_or("–".into(), |it| written.estimate(&it));
        Row { label: label.into(), ours: values.iter().map(text).collect(), values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_has_a_place_and_no_value() {
        let row = Row::new("fifo", Written::Ratio, [Estimate::mean([1.0, 3.0]), None]);
        assert_eq!(row.ours, ["2.0 ± 12.7", "–"]);
        assert_eq!(row.values[1], None);
    }
}
