//! The measures of everything that can be compared, as entries: one list for each
//! kind of result.
//!
//! These lists produce the rows of CSV files, and the rows and columns of the
//! report and of the table on a terminal. An entry stands beside the field that it
//! reads ([`crate::comparison`], [`crate::requests`]), so a new measure is a change
//! to one file here, and to the simulator's summary if nothing has recorded it yet.

use crate::Estimate;

/// One measure of an `R`, which is what came out for one thing that is compared.
#[derive(Debug)]
pub struct Measure<R: 'static> {
    /// Its name in files, with the unit: `response_mean_s`.
    pub name: &'static str,
    /// Its name in a column, under a heading that says what it is of: `Mean`.
    pub heading: &'static str,
    /// Its name in full, of a measure that what is compared is judged by: `Response
    /// time, mean`. Others are in the detailed tables only.
    pub headline: Option<&'static str>,
    /// What it is measured in.
    pub quantity: Quantity,
    /// Which values users prefer.
    pub better: Better,
    /// The detailed tables that have it; it belongs to the first.
    pub tables: &'static [Table],
    /// What came out, over all runs.
    pub value: fn(&R) -> Value,
}

impl<R> Measure<R> {
    /// The entry called `name` in `measures`.
    ///
    /// # Panics
    /// When there is none: programs name the entries that they single out.
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

/// What a measure is measured in.
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

/// What came out, in the way that the runs are summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A mean over the runs that have a value; `None` when none has.
    Mean(Option<Estimate>),
    /// A number of things, all runs together.
    Sum(u64),
    /// The largest number of things in any run.
    Largest(u64),
    /// So many things of so many, all runs together.
    Part {
        /// So many.
        part: u64,
        /// Of these.
        of: u64,
    },
}

impl Value {
    /// The mean over the runs, where that is how they are summed up.
    #[must_use]
    pub fn mean(self) -> Option<Estimate> {
        match self {
            Value::Mean(estimate) => estimate,
            Value::Sum(_) | Value::Largest(_) | Value::Part { .. } => None,
        }
    }

    /// The number of things, where that is what runs are summed up to.
    #[must_use]
    pub fn count(self) -> Option<u64> {
        match self {
            Value::Mean(_) => None,
            Value::Sum(count) | Value::Largest(count) | Value::Part { part: count, .. } => {
                Some(count)
            }
        }
    }
}
