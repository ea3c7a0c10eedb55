//! Tables of Arrow, handed to Python through the PyCapsule interface: pandas, polars, DuckDB
//! and pyarrow take the memory over as it is.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::RecordBatchIterator;
use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tidegate_core::Span;
use tidegate_study::columns::{Column, Names, SEED, Value};

use crate::error::TidegateError;

/// What the interface calls a stream of batches.
const STREAM: &CStr = c"arrow_array_stream";

/// A table in the memory format of Arrow. It has no methods for data: hand it to a library
/// that does, for example `pyarrow.table(it)`, `pandas.DataFrame.from_arrow(it)`,
/// `polars.DataFrame(it)`, or query it by name in DuckDB.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Table {
        Table { schema, batches }
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows: {}>", self.__len__(), self.column_names().join(", "))
    }

    /// The PyCapsule interface of Arrow. There is one form of each column, so that of
    /// `requested_schema` is not made.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let batches = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

/// Rows on their way into a table.
pub(crate) struct Rows<R: 'static> {
    columns: &'static [Column<R>],
    contender: StringBuilder,
    seed: UInt64Builder,
    cells: Vec<Cells>,
}

/// The cells of a column so far.
enum Cells {
    Text(StringBuilder),
    Count(UInt64Builder),
    Seconds(Float64Builder),
}

impl<R> Rows<R> {
    pub(crate) fn of(columns: &'static [Column<R>]) -> Rows<R> {
        let cells = columns.iter().map(|column| match column.value {
            Value::Text(_) => Cells::Text(StringBuilder::new()),
            Value::Count(_) => Cells::Count(UInt64Builder::new()),
            Value::Seconds(_) => Cells::Seconds(Float64Builder::new()),
        });
        Rows {
            columns,
            contender: StringBuilder::new(),
            seed: UInt64Builder::new(),
            cells: cells.collect(),
        }
    }

    /// Adds a row of a run.
    pub(crate) fn add(&mut self, contender: &str, seed: u64, row: &R, names: &Names) {
        self.contender.append_value(contender);
        self.seed.append_value(seed);
        for (column, cells) in std::iter::zip(self.columns, &mut self.cells) {
            match (&column.value, cells) {
                (Value::Text(of), Cells::Text(cells)) => cells.append_option(of(row, names)),
                (Value::Count(of), Cells::Count(cells)) => cells.append_option(of(row)),
                (Value::Seconds(of), Cells::Seconds(cells)) => {
                    cells.append_option(of(row).map(Span::as_seconds));
                }
                _ => unreachable!("cells were made for these columns"),
            }
        }
    }

    /// All of them, as a part of a table.
    pub(crate) fn batch(mut self, contender: &str) -> PyResult<RecordBatch> {
        let mut arrays: Vec<ArrayRef> =
            vec![Arc::new(self.contender.finish()), Arc::new(self.seed.finish())];
        arrays.extend(self.cells.into_iter().map(|cells| match cells {
            Cells::Text(mut cells) => Arc::new(cells.finish()) as ArrayRef,
            Cells::Count(mut cells) => Arc::new(cells.finish()),
            Cells::Seconds(mut cells) => Arc::new(cells.finish()),
        }));
        batch(schema(contender, self.columns), arrays)
    }
}

/// The schema of a table whose first column names what was compared.
pub(crate) fn schema<R>(contender: &str, columns: &[Column<R>]) -> SchemaRef {
    let mut fields = vec![words(contender, false), Field::new(SEED, DataType::UInt64, false)];
    fields.extend(columns.iter().map(|column| match column.value {
        Value::Text(_) => words(column.name, true),
        Value::Count(_) => Field::new(column.name, DataType::UInt64, true),
        Value::Seconds(_) => Field::new(column.name, DataType::Float64, true),
    }));
    Arc::new(Schema::new(fields))
}

/// A column of words. They are no dictionary: that of each run has other numbers, and some
/// readers cannot join those.
pub(crate) fn words(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

/// Columns as a part of a table.
pub(crate) fn batch(schema: SchemaRef, columns: Vec<ArrayRef>) -> PyResult<RecordBatch> {
    RecordBatch::try_new(schema, columns).map_err(|error| TidegateError::new_err(error.to_string()))
}
