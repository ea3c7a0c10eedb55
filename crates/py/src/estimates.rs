//! What the measures say of contenders, as tables.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use tidegate_store::rows::words;
use tidegate_study::measure::{Row, Value};

use crate::table::{Table, batch};

/// A value with what it is of.
pub(crate) struct Measured<'a> {
    pub(crate) contender: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: Cow<'a, str>,
    pub(crate) metric: &'a str,
    pub(crate) value: Value<'a>,
}

/// What every measure says of every run.
pub(crate) fn runs<'a>(
    contender: &str,
    measured: impl Iterator<Item = Measured<'a>>,
) -> PyResult<Table> {
    let mut labels = Labels::default();
    let (mut seeds, mut values) = (UInt64Builder::new(), Float64Builder::new());
    for it in measured {
        let of_runs = it.value.sample().into_iter().flat_map(tidegate_study::Sample::by_seed);
        for (seed, value) in of_runs {
            labels.add(&it);
            seeds.append_value(seed);
            values.append_value(value);
        }
    }
    let mut fields = Labels::fields(contender);
    fields.push(Field::new("seed", DataType::UInt64, false));
    fields.push(Field::new("value", DataType::Float64, false));
    let mut columns = labels.columns();
    columns.push(Arc::new(seeds.finish()));
    columns.push(Arc::new(values.finish()));
    table(fields, columns)
}

/// What every measure says over all runs.
pub(crate) fn summary<'a>(
    contender: &str,
    measured: impl Iterator<Item = Measured<'a>>,
) -> PyResult<Table> {
    let mut labels = Labels::default();
    let mut estimates = StringBuilder::new();
    let mut numbers = [(); 3].map(|()| Float64Builder::new());
    let mut runs = UInt64Builder::new();
    for it in measured {
        let Some(row) = Row::from_value(it.kind, &it.name, it.metric, it.value) else { continue };
        labels.add(&it);
        estimates.append_value(&row.estimate);
        let [centre, low, high] = &mut numbers;
        centre.append_value(row.value);
        low.append_option(row.interval.map(|it| it.0));
        high.append_option(row.interval.map(|it| it.1));
        runs.append_option(row.runs.map(|count| count as u64));
    }
    let mut fields = Labels::fields(contender);
    fields.push(words("estimate", false));
    fields.push(Field::new("value", DataType::Float64, false));
    fields.extend(["low_95", "high_95"].map(|name| Field::new(name, DataType::Float64, true)));
    fields.push(Field::new("runs", DataType::UInt64, true));
    let mut columns = labels.columns();
    columns.push(Arc::new(estimates.finish()));
    columns.extend(numbers.map(|mut it| Arc::new(it.finish()) as ArrayRef));
    columns.push(Arc::new(runs.finish()));
    table(fields, columns)
}

fn table(fields: Vec<Field>, columns: Vec<ArrayRef>) -> PyResult<Table> {
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let all: RecordBatch = batch(schema.clone(), columns)?;
    Ok(Table::new(schema, vec![all]))
}

/// The columns that say what a value is of, which are those of `summary.csv`.
#[derive(Default)]
struct Labels([StringBuilder; 4]);

impl Labels {
    fn fields(contender: &str) -> Vec<Field> {
        [contender, "kind", "name", "metric"].map(|name| words(name, false)).to_vec()
    }

    fn add(&mut self, of: &Measured<'_>) {
        let all = [of.contender, of.kind, &of.name, of.metric];
        std::iter::zip(&mut self.0, all).for_each(|(words, word)| words.append_value(word));
    }

    fn columns(self) -> Vec<ArrayRef> {
        self.0.map(|mut words| Arc::new(words.finish()) as ArrayRef).to_vec()
    }
}
