//! `summary.csv`: every estimate of a comparison, one in each row, for tools
//! that pivot. Names of metrics contain the unit; `estimate` tells whether the value is
//! the mean or the median over runs, with the ends of its 95% interval, or the sum or
//! the largest of all runs.

use csv::Writer;
use tidegate_study::columns::{DISCIPLINE, WAY};
use tidegate_study::comparison::Comparison;
use tidegate_study::measure::Row;
use tidegate_study::requests::{Measured, Summary};

/// The columns behind the first, which names what was compared.
const COLUMNS: [&str; 8] =
    ["kind", "name", "metric", "estimate", "value", "low_95", "high_95", "runs"];

/// The content of the file.
pub(crate) fn of(comparison: &Comparison) -> Vec<u8> {
    let mut rows = Rows::under(&[DISCIPLINE]);
    for discipline in &comparison.disciplines {
        for row in discipline.rows() {
            rows.add(&[&discipline.label], &row);
        }
    }
    rows.content()
}

/// The same for ways of sharing a gateway's link.
pub(crate) fn of_ways(summary: &Summary) -> Vec<u8> {
    let mut rows = Rows::under(&[WAY]);
    for way in &summary.ways {
        let of =
            |(kind, name, metric, value): Measured<'_>| Row::from_value(kind, name, metric, value);
        for row in way.values().filter_map(of) {
            rows.add(&[&way.label], &row);
        }
    }
    rows.content()
}

/// Why writing cannot fail.
const MEMORY: &str = "memory takes everything, and all rows have the same length";

/// Rows of estimates behind columns that say what was run.
pub(crate) struct Rows(Writer<Vec<u8>>);

impl Rows {
    /// A table whose first columns are called `first`.
    pub(crate) fn under(first: &[&str]) -> Rows {
        let mut rows = Rows(Writer::from_writer(Vec::new()));
        rows.0.write_record(first.iter().chain(&COLUMNS)).expect(MEMORY);
        rows
    }

    /// Adds an estimate of what the `first` columns say.
    pub(crate) fn add(&mut self, first: &[&str], row: &Row) {
        let Row { kind, name, metric, estimate, value, interval, runs } = row;
        let text = |number: Option<String>| number.unwrap_or_default();
        let low = text(interval.map(|it| it.0.to_string()));
        let high = text(interval.map(|it| it.1.to_string()));
        let runs = text(runs.map(|it| it.to_string()));
        let value = value.to_string();
        let fields = [kind, name, metric, estimate, &value, &low, &high, &runs];
        let fields = first.iter().copied().chain(fields.into_iter().map(String::as_str));
        self.0.write_record(fields).expect(MEMORY);
    }

    /// All of it.
    pub(crate) fn content(self) -> Vec<u8> {
        self.0.into_inner().expect(MEMORY)
    }
}
