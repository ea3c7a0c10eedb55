//! Which disciplines differ, or which ways of sharing a link, seed by seed.
//!
//! Two disciplines met the same traffic under a seed, so the difference between their values
//! under it says more than the two means: what the traffic did to both falls out. The mean of
//! the differences has Student's interval, and Student's test says how often such a mean comes
//! of no difference. Many comparisons are made at once, so those that count as real are chosen
//! by the rule of `Benjamini 1995`: at most one in twenty of them is false in the mean.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use tidegate_study::columns::{DISCIPLINE, SEED, WAY};
use tidegate_study::discoveries::{discoveries, p_value};
use tidegate_study::measure::Better;
use tidegate_study::{Centre, Sample, comparison, requests};

use crate::rows::words;

/// The part of the differences that count as real which may be false, in the mean.
const FALSE_PART: f64 = 0.05;
/// What tells measures apart, beside what made the run.
const SUBJECT: [&str; 3] = ["kind", "name", "metric"];
const VALUE: &str = "value";

/// The values of one measure at one point: by contender, in the order in which they came.
#[derive(Default)]
struct Measured(Vec<(String, BTreeMap<u64, f64>)>);

/// How each contender differs from `against` in every measure, or in `metrics` alone, by a
/// table of runs: a row for each pair that has two seeds in common.
///
/// # Errors
/// If the table cannot be read, or is not one of runs.
pub fn of_runs(
    schema: &Schema,
    batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    against: &str,
    metrics: Option<&BTreeSet<String>>,
) -> Result<RecordBatch, ArrowError> {
    let is_there = |name: &&str| schema.column_with_name(name).is_some();
    let contender = [DISCIPLINE, WAY].into_iter().find(is_there).unwrap_or(DISCIPLINE);
    let known = [contender, SEED, VALUE];
    let is_key = |name: &&str| !known.contains(name) && !SUBJECT.contains(name);
    let keys = schema.fields().iter().map(|field| field.name().as_str()).filter(is_key);
    let keys: Vec<&str> = keys.chain(SUBJECT).collect();
    let mut measured: Vec<(Vec<String>, Measured)> = Vec::new();
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for batch in batches {
        let batch = batch?;
        let column = |name: &str| {
            let missing = || ArrowError::SchemaError(format!("found no '{name}', expected runs"));
            batch.column_by_name(name).ok_or_else(missing)
        };
        let text = |name: &str| {
            let other = || ArrowError::SchemaError(format!("found no words in '{name}'"));
            column(name)?.as_string_opt::<i32>().ok_or_else(other)
        };
        let labels = keys.iter().map(|key| text(key)).collect::<Result<Vec<_>, _>>()?;
        let contenders = text(contender)?;
        let wrong = || ArrowError::SchemaError("found no numbers, expected runs".into());
        let seeds = column(SEED)?.as_primitive_opt::<UInt64Type>().ok_or_else(wrong)?;
        let values = column(VALUE)?.as_primitive_opt::<Float64Type>().ok_or_else(wrong)?;
        for row in 0..batch.num_rows() {
            let at: Vec<String> = labels.iter().map(|it| it.value(row).to_string()).collect();
            if metrics.is_some_and(|metrics| at.last().is_none_or(|it| !metrics.contains(it))) {
                continue;
            }
            let place = *places.entry(at).or_insert_with_key(|at| {
                measured.push((at.clone(), Measured::default()));
                measured.len() - 1
            });
            let (_, of) = &mut measured[place];
            of.add(contenders.value(row), seeds.value(row), values.value(row));
        }
    }
    Ok(table(contender, &keys, measured, against))
}

impl Measured {
    fn add(&mut self, contender: &str, seed: u64, value: f64) {
        let place = self.0.iter().position(|(it, _)| it == contender).unwrap_or_else(|| {
            self.0.push((contender.into(), BTreeMap::new()));
            self.0.len() - 1
        });
        self.0[place].1.insert(seed, value);
    }
}

/// The columns of the table but the last, which depends on all rows.
struct Columns {
    words: Vec<StringBuilder>,
    numbers: [Float64Builder; 6],
    seeds: UInt64Builder,
}

fn table(
    contender: &str,
    keys: &[&str],
    measured: Vec<(Vec<String>, Measured)>,
    against: &str,
) -> RecordBatch {
    let facts: Vec<_> = comparison::measured().chain(requests::measured()).collect();
    let better = |at: &[String]| {
        let [.., kind, _, metric] = at else { return "neither" };
        let found = facts.iter().find(|(of, facts)| of == kind && facts.name == *metric);
        match found.map(|(_, facts)| facts.better) {
            Some(Better::Less) => "less",
            Some(Better::More) => "more",
            Some(Better::Neither) | None => "neither",
        }
    };
    let mut columns = Columns {
        words: (0..keys.len() + 3).map(|_| StringBuilder::new()).collect(),
        numbers: [(); 6].map(|()| Float64Builder::new()),
        seeds: UInt64Builder::new(),
    };
    let mut p_values = Vec::new();
    for (at, Measured(by_contender)) in measured {
        let Some((_, base)) = by_contender.iter().find(|(it, _)| it == against) else { continue };
        for (label, values) in by_contender.iter().filter(|(it, _)| it != against) {
            let both = |seed: &&u64| base.contains_key(seed);
            let seeds: Vec<u64> = values.keys().filter(both).copied().collect();
            let of = |values: &BTreeMap<u64, f64>| {
                let values = seeds.iter().map(|seed| (*seed, values.get(seed).copied()));
                Sample::of(Centre::Mean, values)
            };
            let (Some(it), Some(other)) = (of(values), of(base)) else { continue };
            let differences = it.differences(&other);
            let (Some(difference), Some(p)) = (it.less(&other), p_value(&differences)) else {
                continue;
            };
            let all = at.iter().map(String::as_str);
            let all = all.chain([better(&at), label, against]);
            std::iter::zip(&mut columns.words, all).for_each(|(words, it)| words.append_value(it));
            let (low, high) = difference.ends();
            let estimates = [&it, &other].map(|it| it.estimate().value);
            let numbers = [estimates[0], estimates[1], difference.value, low, high, p];
            std::iter::zip(&mut columns.numbers, numbers)
                .for_each(|(all, it)| all.append_value(it));
            columns.seeds.append_value(differences.len() as u64);
            p_values.push(p);
        }
    }
    let mut significant = BooleanBuilder::new();
    significant.append_slice(&discoveries(&p_values, FALSE_PART));
    let mut arrays: Vec<ArrayRef> =
        columns.words.into_iter().map(|mut it| Arc::new(it.finish()) as _).collect();
    arrays.extend(columns.numbers.map(|mut it| Arc::new(it.finish()) as ArrayRef));
    arrays.extend([Arc::new(columns.seeds.finish()) as _, Arc::new(significant.finish()) as _]);
    RecordBatch::try_new(schema(contender, keys), arrays)
        .expect("columns are made for their schema")
}

fn schema(contender: &str, keys: &[&str]) -> SchemaRef {
    let names = keys.iter().copied().chain(["better", contender, "against"]);
    let mut fields: Vec<Field> = names.map(|name| words(name, false)).collect();
    let numbers = ["value", "against_value", "difference", "low_95", "high_95", "p"];
    fields.extend(numbers.map(|name| Field::new(name, DataType::Float64, false)));
    fields.push(Field::new("seeds", DataType::UInt64, false));
    fields.push(Field::new("significant", DataType::Boolean, false));
    Arc::new(Schema::new(fields))
}
