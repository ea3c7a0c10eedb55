//! Which disciplines differ, or which ways of sharing a link, seed by seed.

use std::collections::BTreeSet;

use arrow_array::RecordBatchReader;
use pyo3::prelude::*;
use tidegate_store::differences::of_runs;

use crate::error::other;
use crate::study::StoredTable;
use crate::table::Table;

/// A table of runs: of a comparison, or of a study.
#[derive(FromPyObject)]
pub(crate) enum Runs<'py> {
    Table(PyRef<'py, Table>),
    Stored(PyRef<'py, StoredTable>),
}

/// How each contender differs from `against`, in `metrics` or in all.
#[pyfunction]
#[pyo3(signature = (runs, *, against, metrics = None))]
#[expect(clippy::needless_pass_by_value, reason = "it is made of what Python has")]
pub(crate) fn differences(
    runs: Runs<'_>,
    against: &str,
    metrics: Option<BTreeSet<String>>,
) -> PyResult<Table> {
    let of = |batches: &mut dyn RecordBatchReader| {
        let schema = batches.schema();
        of_runs(&schema, batches, against, metrics.as_ref()).map_err(|error| other(&error))
    };
    let found = match runs {
        Runs::Table(table) => of(&mut table.batches())?,
        Runs::Stored(table) => of(&mut table.reading()?)?,
    };
    Ok(Table::new(found.schema(), vec![found]))
}
