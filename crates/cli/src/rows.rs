//! The tables of rows as CSV files; `tidegate_study::columns` says what is in them. Times are
//! exact to the nanosecond.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter};

use csv::{Writer, WriterBuilder};
use tidegate_core::{Span, Time};
use tidegate_sim::metrics::{FlowRecord, LinkSample, ProgressSample, Recorder};
use tidegate_study::columns::{self, Column, Names, Value};
use tidegate_study::experiment::Job;

use crate::folder::ResultFolder;
use crate::progress::Progress;

/// A table of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Flows,
    Links,
    Progress,
    /// Flows of a capture; only replays have them.
    Recorded,
}

impl Table {
    /// Those of a scenario, and of one that sends the packets of a capture.
    pub(crate) const OF_SCENARIOS: &[Table] = &[Table::Flows, Table::Links, Table::Progress];
    pub(crate) const OF_RECORDINGS: &[Table] =
        &[Table::Flows, Table::Links, Table::Progress, Table::Recorded];

    /// The name of its file.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Table::Flows => "flows.csv",
            Table::Links => "links.csv",
            Table::Progress => "progress.csv",
            Table::Recorded => "recorded.csv",
        }
    }

    /// The names of its columns after the first, which names the contender.
    pub(crate) fn columns(self) -> Vec<&'static str> {
        fn names<R>(columns: &[Column<R>]) -> Vec<&'static str> {
            std::iter::once(columns::SEED).chain(columns.iter().map(|column| column.name)).collect()
        }
        match self {
            Table::Flows => names(columns::FLOWS),
            Table::Links => names(columns::LINKS),
            Table::Progress => names(columns::PROGRESS),
            Table::Recorded => names(columns::RECORDED),
        }
    }
}

type Rows = Writer<BufWriter<File>>;

/// Writes the rows of one run to files of its own.
pub(crate) struct RowWriter<'a> {
    head: Head<'a>,
    progress: &'a Progress,
    flows: Rows,
    links: Rows,
    samples: Rows,
    /// From the first such row on.
    recorded: Option<Rows>,
    folder: &'a ResultFolder,
    run: usize,
    reached: Time,
    /// The first error; a recorder cannot return one.
    failure: Option<csv::Error>,
}

/// What all rows of a run begin with, and what they are about.
struct Head<'a> {
    names: Names,
    contender: &'a str,
    seed: String,
    /// The text of a field, which is kept for its memory.
    field: String,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(
        folder: &'a ResultFolder,
        names: Names,
        progress: &'a Progress,
        job: &Job<'a>,
    ) -> io::Result<RowWriter<'a>> {
        let table = |table| {
            let file = folder.create_part(table, job.index)?;
            io::Result::Ok(WriterBuilder::new().has_headers(false).from_writer(file))
        };
        Ok(RowWriter {
            head: Head {
                names,
                contender: job.label,
                seed: job.seed.to_string(),
                field: String::new(),
            },
            progress,
            flows: table(Table::Flows)?,
            links: table(Table::Links)?,
            samples: table(Table::Progress)?,
            recorded: None,
            folder,
            run: job.index,
            reached: Time::ZERO,
            failure: None,
        })
    }

    /// Writes what is still in memory; fails if any row was lost.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure.into());
        }
        self.flows.flush()?;
        self.links.flush()?;
        self.samples.flush()?;
        self.recorded.map_or(Ok(()), |mut table| table.flush())
    }

    fn note_recorded(&mut self, row: &FlowRecord) -> csv::Result<()> {
        let table = match &mut self.recorded {
            Some(table) => table,
            none => {
                let file = self.folder.create_part(Table::Recorded, self.run)?;
                none.insert(WriterBuilder::new().has_headers(false).from_writer(file))
            }
        };
        self.head.write(table, columns::RECORDED, row)
    }

    fn note(&mut self, result: csv::Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}

impl Head<'_> {
    /// Writes a row behind what all rows of the run begin with.
    fn write<R>(&mut self, table: &mut Rows, columns: &[Column<R>], row: &R) -> csv::Result<()> {
        let Head { names, contender, seed, field } = self;
        table.write_field(*contender)?;
        table.write_field(seed)?;
        for column in columns {
            field.clear();
            let written = match column.value {
                Value::Text(of) => of(row, names).map_or(Ok(()), |word| field.write_str(&word)),
                Value::Count(of) => of(row).map_or(Ok(()), |count| write!(field, "{count}")),
                Value::Seconds(of) => of(row).map_or(Ok(()), |span| seconds(span, field)),
            };
            written.expect("a string takes everything");
            table.write_field(&field)?;
        }
        table.write_record(None::<&[u8]>)
    }
}

impl Recorder for RowWriter<'_> {
    fn flow(&mut self, row: &FlowRecord) {
        let result = self.head.write(&mut self.flows, columns::FLOWS, row);
        self.note(result);
        if row.recorded.is_some() {
            let result = self.note_recorded(row);
            self.note(result);
        }
    }

    fn link(&mut self, row: &LinkSample) {
        let result = self.head.write(&mut self.links, columns::LINKS, row);
        self.note(result);
    }

    fn progress(&mut self, row: &ProgressSample) {
        let result = self.head.write(&mut self.samples, columns::PROGRESS, row);
        self.note(result);
    }

    fn reached(&mut self, now: Time) {
        self.progress.advance(now.since(self.reached));
        self.reached = now;
    }
}

/// Seconds with nine decimals, exact.
fn seconds(span: Span, field: &mut String) -> std::fmt::Result {
    let nanos = tidegate_core::units::NANOS_PER_SECOND;
    write!(field, "{}.{:09}", span.0 / nanos, span.0 % nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let text = |nanos| {
            let mut field = String::new();
            seconds(Span(nanos), &mut field).unwrap();
            field
        };
        assert_eq!(text(1), "0.000000001");
        assert_eq!(text(61_500_000_000), "61.500000000");
    }
}
