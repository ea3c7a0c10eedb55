//! Tables of Arrow, handed to Python through the PyCapsule interface: pandas, polars, DuckDB
//! and pyarrow take the memory over as it is.

use std::ffi::CStr;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

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

    pub(crate) fn batches(&self) -> impl RecordBatchReader + Send + 'static {
        let batches = self.batches.clone().into_iter().map(Ok);
        RecordBatchIterator::new(batches, self.schema.clone())
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
        stream(py, self.batches())
    }
}

/// Batches as the interface hands them over.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
}

/// Columns as a part of a table.
pub(crate) fn batch(schema: SchemaRef, columns: Vec<ArrayRef>) -> PyResult<RecordBatch> {
    RecordBatch::try_new(schema, columns).map_err(|error| TidegateError::new_err(error.to_string()))
}
