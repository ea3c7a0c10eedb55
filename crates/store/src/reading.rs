//! A table of all runs, read file by file: memory holds one of them.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::rows;
use crate::study::{Run, Study, Table};

/// Rows that are read at a time.
const ROWS: usize = 1 << 16;

/// The batches of a table, with what made each run as columns before the others. Runs that
/// are not there are left out.
pub struct Reading {
    folder: PathBuf,
    study: Study,
    table: Table,
    schema: SchemaRef,
    next: usize,
    open: Option<(Run, ParquetRecordBatchReader)>,
}

impl Reading {
    pub(crate) fn new(folder: PathBuf, study: Study, table: Table) -> Reading {
        let schema = schema(&study, table);
        Reading { folder, study, table, schema, next: 0, open: None }
    }

    /// Opens the part of `run`, if it is there.
    fn part(&self, run: Run) -> Result<Option<ParquetRecordBatchReader>, ArrowError> {
        let path = self.folder.join(self.study.path(self.table, run));
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(ArrowError::IoError(format!("{}: {error}", path.display()), error));
            }
        };
        let wrong = |found: &dyn std::fmt::Display| {
            let expected = "the part of a study, as this version writes it";
            let message = format!("{}: found {found}, expected {expected}", path.display());
            ArrowError::ParquetError(message)
        };
        let part = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| wrong(&error))?;
        if part.schema().fields() != self.table.schema().fields() {
            return Err(wrong(&"other columns"));
        }
        part.with_batch_size(ROWS).build().map(Some).map_err(|error| wrong(&error))
    }
}

/// The columns of a table of all runs.
#[must_use]
pub fn schema(study: &Study, table: Table) -> SchemaRef {
    let keys = study.over().iter().map(|axis| &*axis.key);
    rows::labelled_schema(&table.schema(), keys.chain([tidegate_study::columns::DISCIPLINE]))
}

impl Iterator for Reading {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        loop {
            if let Some((run, part)) = &mut self.open {
                let run = *run;
                if let Some(batch) = part.next() {
                    let words = self.study.labels(run).map(|(_, word)| word);
                    return Some(batch.map(|it| rows::labelled(&it, self.schema.clone(), words)));
                }
                self.open = None;
            }
            let run = self.study.run(self.next)?;
            self.next += 1;
            match self.part(run) {
                Ok(part) => self.open = part.map(|part| (run, part)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RecordBatchReader for Reading {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
