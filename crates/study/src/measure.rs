//! The measures of everything that can be compared, as entries: one list for each
//! kind of result.
//!
//! These lists produce the rows of CSV files, and the rows and columns of the
//! report and of the table on a terminal. An entry stands beside the field that it
//! reads ([`crate::comparison`], [`crate::requests`]), so a new measure is a change
//! to one file here, and to the simulator's summary if nothing has recorded it yet.

use serde::{Deserialize, Serialize};

use crate::{Estimate, Sample};

/// One measure of an `R`, which is the result of one contender or a part of it.
#[derive(Debug)]
pub struct Measure<R: 'static> {
    /// Its name in files, with the unit: `response_mean_s`.
    pub name: &'static str,
    /// Its name in a column, under a heading that names its subject: `Mean`.
    pub heading: &'static str,
    /// Its full name, if contenders are judged by it: `Response time, mean`.
    /// Other measures are in the detailed tables only.
    pub headline: Option<&'static str>,
    /// Its quantity.
    pub quantity: Quantity,
    /// Which values users prefer.
    pub better: Better,
    /// The detailed tables that contain it; it belongs to the first.
    pub tables: &'static [Table],
    /// Its value over all runs.
    pub value: fn(&R) -> Value<'_>,
}

impl<R> Measure<R> {
    /// The entry called `name` in `measures`.
    ///
    /// # Panics
    /// If there is none: programs ask only for entries that exist.
    #[must_use]
    pub fn named(measures: &'static [Measure<R>], name: &str) -> &'static Measure<R> {
        let found = measures.iter().find(|measure| measure.name == name);
        found.unwrap_or_else(|| panic!("'{name}' is not measured"))
    }

    /// Whether a detailed table has it.
    #[must_use]
    pub fn is_in(&self, table: Table) -> bool {
        self.tables.contains(&table)
    }
}

/// The title of a detailed table.
pub type Table = &'static str;

/// The quantity of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Seconds.
    Time,
    /// Bits a second.
    Rate,
    /// Bytes.
    Size,
    /// A part of one.
    Share,
    /// A number, or a ratio that can be above one.
    Plain,
}

/// Which values users prefer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Larger ones.
    More,
    /// Smaller ones.
    Less,
    /// Neither: it describes.
    Neither,
}

/// A value, by the way in which it sums up the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A value of each run that has one; `None` when none has.
    Sample(Option<&'a Sample>),
    /// A number of things, all runs together.
    Sum(u64),
    /// The largest number of things in any run.
    Largest(u64),
    /// A number of things out of all of them, all runs together.
    Part {
        /// The number of these things.
        part: u64,
        /// The number of all of them.
        of: u64,
    },
}

impl<'a> Value<'a> {
    /// The values of the runs, where each has its own.
    #[must_use]
    pub fn sample(self) -> Option<&'a Sample> {
        match self {
            Value::Sample(sample) => sample,
            Value::Sum(_) | Value::Largest(_) | Value::Part { .. } => None,
        }
    }

    /// The number of things, where that is what runs are summed up to.
    #[must_use]
    pub fn count(self) -> Option<u64> {
        match self {
            Value::Sample(_) => None,
            Value::Sum(count) | Value::Largest(count) | Value::Part { part: count, .. } => {
                Some(count)
            }
        }
    }
}

/// One value of one contender in a form that can be stored: what it is of, and the value.
///
/// A row of `summary.csv` is one of these, and so is one of a sweep's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The kind of its subject, for example `traffic`.
    pub kind: String,
    /// The subject, for example the name of a source.
    pub name: String,
    /// The [`name`](Measure::name) of the measure.
    pub metric: String,
    /// How the runs were summed up: `mean`, `median`, `sum` or `largest`.
    pub estimate: String,
    /// The value, in the first unit of the measure's quantity.
    pub value: f64,
    /// The ends of the 95% interval, where there is one.
    pub interval: Option<(f64, f64)>,
    /// The number of runs with a value; `None` for what is counted over all runs.
    pub runs: Option<usize>,
}

impl Row {
    /// The value of `measure` in `result`, which is about the subject of this kind and
    /// name; `None` if no run has one.
    #[must_use]
    pub fn of<R>(kind: &str, name: &str, measure: &Measure<R>, result: &R) -> Option<Row> {
        Row::from_value(kind, name, measure.name, (measure.value)(result))
    }

    /// The same of a value that was already looked up.
    #[must_use]
    pub fn from_value(kind: &str, name: &str, metric: &str, value: Value<'_>) -> Option<Row> {
        let row = |estimate: &str, value, interval, runs| Row {
            kind: kind.into(),
            name: name.into(),
            metric: metric.into(),
            estimate: estimate.into(),
            value,
            interval,
            runs,
        };
        Some(match value {
            Value::Sample(sample) => {
                let Estimate { centre, value, interval, runs } = sample?.estimate();
                row(centre.name(), value, interval, Some(runs))
            }
            Value::Sum(number) | Value::Part { part: number, .. } => {
                row("sum", number as f64, None, None)
            }
            Value::Largest(number) => row("largest", number as f64, None, None),
        })
    }

    /// All of `measures` in `result`.
    pub fn all<R>(
        kind: &str,
        name: &str,
        measures: &'static [Measure<R>],
        result: &R,
    ) -> impl Iterator<Item = Row> {
        measures.iter().filter_map(move |measure| Row::of(kind, name, measure, result))
    }
}

/// What a measure is, whatever it is a measure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its [`name`](Measure::name).
    pub name: &'static str,
    /// Its [`headline`](Measure::headline).
    pub headline: Option<&'static str>,
    /// Its quantity.
    pub quantity: Quantity,
    /// Which values users prefer.
    pub better: Better,
}

impl<R> Measure<R> {
    /// What it is.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let Measure { name, headline, quantity, better, .. } = *self;
        Facts { name, headline, quantity, better }
    }
}
