//! Rows of a run as batches of Arrow.
//!
//! A batch has the seed and the columns of [`tidegate_study::columns`]. What made the run is
//! not in it: in a table of several runs it becomes columns before them
//! ([`labelled`]), in a folder the names of folders.

use std::iter::{repeat_n, zip};
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tidegate_core::Span;
use tidegate_sim::metrics::{FlowRecord, LinkSample, Recorder};
use tidegate_study::columns::{self, Column, Names, SEED, Value};

/// Every batch is made for its own schema.
const FITS: &str = "columns are made for their schema";

/// Whose rows are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// One row for each flow.
    pub flows: bool,
    /// One row for each sample of a link with a queue.
    pub links: bool,
}

/// The rows of a run on their way into batches.
pub struct Rows<'a> {
    names: &'a Names,
    kept: Kept,
    flows: Cells<FlowRecord>,
    links: Cells<LinkSample>,
}

impl<'a> Rows<'a> {
    /// No rows yet.
    #[must_use]
    pub fn new(names: &'a Names, kept: Kept) -> Rows<'a> {
        let (flows, links) = (Cells::of(columns::FLOWS), Cells::of(columns::LINKS));
        Rows { names, kept, flows, links }
    }

    /// The flows and the links of the run with this seed; empty where they are not kept.
    #[must_use]
    pub fn batches(self, seed: u64) -> (RecordBatch, RecordBatch) {
        (self.flows.batch(seed), self.links.batch(seed))
    }
}

impl Recorder for Rows<'_> {
    fn flow(&mut self, row: &FlowRecord) {
        if self.kept.flows {
            self.flows.add(row, self.names);
        }
    }

    fn link(&mut self, row: &LinkSample) {
        if self.kept.links {
            self.links.add(row, self.names);
        }
    }
}

/// The schema of flows, before what made the run is known.
#[must_use]
pub fn flows() -> SchemaRef {
    schema(columns::FLOWS)
}

/// The schema of links, in the same way.
#[must_use]
pub fn links() -> SchemaRef {
    schema(columns::LINKS)
}

fn schema<R>(columns: &[Column<R>]) -> SchemaRef {
    let mut fields = vec![Field::new(SEED, DataType::UInt64, false)];
    fields.extend(columns.iter().map(|column| match column.value {
        Value::Text(_) => words(column.name, true),
        Value::Count(_) => Field::new(column.name, DataType::UInt64, true),
        Value::Seconds(_) => Field::new(column.name, DataType::Float64, true),
    }));
    Arc::new(Schema::new(fields))
}

/// A column of words. They are no dictionary: that of each run has other numbers, and some
/// readers cannot join those.
#[must_use]
pub fn words(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

/// A schema with a column of words before it for each of `names`.
#[must_use]
pub fn labelled_schema<'a>(schema: &Schema, names: impl Iterator<Item = &'a str>) -> SchemaRef {
    let fields = names.map(|name| Arc::new(words(name, false)));
    Arc::new(Schema::new(fields.chain(schema.fields().iter().cloned()).collect::<Vec<_>>()))
}

/// A batch with a column before it for each name, which has this word in all rows.
///
/// # Panics
/// If `schema` is not that of the batch with these names.
#[must_use]
pub fn labelled<'a>(
    batch: &RecordBatch,
    schema: SchemaRef,
    words: impl Iterator<Item = &'a str>,
) -> RecordBatch {
    let rows = batch.num_rows();
    let columns = words
        .map(|word| Arc::new(StringArray::from_iter_values(repeat_n(word, rows))) as ArrayRef)
        .chain(batch.columns().iter().cloned());
    RecordBatch::try_new(schema, columns.collect()).expect(FITS)
}

/// The cells of rows so far, column by column.
struct Cells<R: 'static> {
    columns: &'static [Column<R>],
    count: usize,
    cells: Vec<Cell>,
}

/// The cells of a column.
enum Cell {
    Text(StringBuilder),
    Count(UInt64Builder),
    Seconds(Float64Builder),
}

impl<R> Cells<R> {
    fn of(columns: &'static [Column<R>]) -> Cells<R> {
        let cells = columns.iter().map(|column| match column.value {
            Value::Text(_) => Cell::Text(StringBuilder::new()),
            Value::Count(_) => Cell::Count(UInt64Builder::new()),
            Value::Seconds(_) => Cell::Seconds(Float64Builder::new()),
        });
        Cells { columns, count: 0, cells: cells.collect() }
    }

    fn add(&mut self, row: &R, names: &Names) {
        self.count += 1;
        for (column, cells) in zip(self.columns, &mut self.cells) {
            match (&column.value, cells) {
                (Value::Text(of), Cell::Text(cells)) => cells.append_option(of(row, names)),
                (Value::Count(of), Cell::Count(cells)) => cells.append_option(of(row)),
                (Value::Seconds(of), Cell::Seconds(cells)) => {
                    cells.append_option(of(row).map(Span::as_seconds));
                }
                _ => unreachable!("cells were made for these columns"),
            }
        }
    }

    fn batch(self, seed: u64) -> RecordBatch {
        let seeds = UInt64Array::from_iter_values(repeat_n(seed, self.count));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(seeds)];
        arrays.extend(self.cells.into_iter().map(|cells| match cells {
            Cell::Text(mut cells) => Arc::new(cells.finish()) as ArrayRef,
            Cell::Count(mut cells) => Arc::new(cells.finish()),
            Cell::Seconds(mut cells) => Arc::new(cells.finish()),
        }));
        RecordBatch::try_new(schema(self.columns), arrays).expect(FITS)
    }
}
