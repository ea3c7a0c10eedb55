//! What the measures say of one run: a row for each of them.
//!
//! What a comparison counts over all its runs is counted over the one here. A pooled quantile
//! is that of the run, too.

use std::iter::repeat_n;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::Scenario;
use tidegate_study::columns::SEED;
use tidegate_study::comparison::{Comparison, DisciplineResult};
use tidegate_study::measure::Row;

use crate::rows::words;

/// The seed; the kind and the name of the subject, and the measure, as in `summary.csv`; and
/// the value, in the unit that the measure's name has.
#[must_use]
pub fn schema() -> SchemaRef {
    let mut fields = vec![Field::new(SEED, DataType::UInt64, false)];
    fields.extend(["kind", "name", "metric"].map(|name| words(name, false)));
    fields.push(Field::new("value", DataType::Float64, false));
    Arc::new(Schema::new(fields))
}

/// The rows of `run`, which is one of this scenario.
///
/// # Panics
/// Never: the columns are those of [`schema`].
#[must_use]
pub fn batch(scenario: &Scenario, run: &RunSummary) -> RecordBatch {
    let comparison = Comparison::of(scenario, std::slice::from_ref(run));
    let mut words = [(); 3].map(|()| StringBuilder::new());
    let mut values = Float64Builder::new();
    for row in comparison.disciplines.iter().flat_map(DisciplineResult::rows) {
        let Row { kind, name, metric, value, .. } = row;
        let [kinds, names, metrics] = &mut words;
        kinds.append_value(kind);
        names.append_value(name);
        metrics.append_value(metric);
        values.append_value(value);
    }
    let values = values.finish();
    let seeds = UInt64Array::from_iter_values(repeat_n(run.seed, values.len()));
    let [kinds, names, metrics] = words.map(|mut words| Arc::new(words.finish()));
    let columns =
        vec![Arc::new(seeds) as _, kinds as _, names as _, metrics as _, Arc::new(values) as _];
    RecordBatch::try_new(schema(), columns).expect("columns are made for their schema")
}
