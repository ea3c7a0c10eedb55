//! Flows from a log: when each started and how large it was.
//!
//! CSV or TSV (distinguished by the heading), whose heading names the columns;
//! `start_s` and `size_bytes` are read, in any order, and others are ignored. Lines
//! that start with `#` are comments.
//!
//! ```text
//! # taken at the campus border
//! start_s,size_bytes,comment
//! 0.25,14600,first
//! 0.5,1200,second
//! ```

use std::path::Path;

use csv::ByteRecord;
use tidegate_core::{Bytes, Time};

use super::error::{Mismatch, contents, quote};
use super::text::{lines, seconds, trimmed, without_mark};
use super::{ReadError, within_most};

const HEADING: &str = "a heading with the columns start_s and size_bytes";

/// The flows of one log, by start time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowLog {
    /// The flows, earliest first; flows that start at one time are in the file's
    /// order.
    pub flows: Vec<LoggedFlow>,
}

/// One flow of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedFlow {
    /// When it started, as the log says.
    pub start: Time,
    /// Its size.
    pub size: Bytes,
}

impl FlowLog {
    /// Reads a log file.
    ///
    /// # Errors
    /// When the heading lacks a column, or a line does not match the heading.
    pub fn read(path: &Path) -> Result<FlowLog, ReadError> {
        let (file, contents) = contents(path)?;
        FlowLog::parse(&file, &contents)
    }

    /// Reads a log from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](FlowLog::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<FlowLog, ReadError> {
        let mut flows = rows(name, contents, Ok)?;
        flows.sort_by_key(|flow| flow.start);
        Ok(FlowLog { flows })
    }

    /// The same flows with the first of them at zero: for logs in Unix time.
    #[must_use]
    pub fn from_first(mut self) -> FlowLog {
        let first = self.flows.first().map_or(Time::ZERO, |flow| flow.start);
        for flow in &mut self.flows {
            flow.start = Time::ZERO + flow.start.since(first);
        }
        self
    }

    /// Whether `contents` begin as a flow log does.
    pub(super) fn recognises(contents: &[u8]) -> bool {
        heading(contents).and_then(|(_, line)| trimmed(line)).is_some_and(|line| {
            let mut names = line.split([',', '\t']);
            names.any(|name| name.trim() == "start_s")
        })
    }
}

/// The rows of a table with these columns, in the file's order; `check` may
/// refuse one, or make something of it.
pub(super) fn rows<T>(
    name: &str,
    contents: &[u8],
    check: impl Fn(LoggedFlow) -> Result<T, Mismatch>,
) -> Result<Vec<T>, ReadError> {
    let Some((_, heading)) = heading(contents) else {
        return Err(Mismatch::new("the end of the file", HEADING).at_line(name, 1));
    };
    let text = without_mark(contents);
    let delimiter = if heading.contains(&b'\t') { b'\t' } else { b',' };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .comment(Some(b'#'))
        .flexible(true)
        .has_headers(false)
        .from_reader(text);

    let mut columns = None;
    let mut rows = Vec::new();
    let mut record = ByteRecord::new();
    while next(name, &mut reader, &mut record)? {
        let at_line = |wrong: Mismatch| wrong.at_line(name, line_of(&record, text));
        match columns {
            None => columns = Some(find_columns(&record).map_err(at_line)?),
            Some(columns) => {
                rows.push(flow(&record, columns).and_then(&check).map_err(at_line)?);
            }
        }
    }
    Ok(rows)
}

/// The first line that is no comment.
fn heading(contents: &[u8]) -> Option<(u64, &[u8])> {
    lines(contents).find(|(_, line)| says_something(line))
}

fn next(
    name: &str,
    reader: &mut csv::Reader<&[u8]>,
    record: &mut ByteRecord,
) -> Result<bool, ReadError> {
    // Bytes in memory that may be of any number of fields cannot be refused;
    // the message is for the day when they can.
    reader.read_byte_record(record).map_err(|error| {
        let line = error.position().map_or(1, csv::Position::line);
        Mismatch::new(quote(error.to_string()), "a line of the table").at_line(name, line)
    })
}

/// The line of a record, for a message: its position is that of the comments
/// and empty lines in front of it.
fn line_of(record: &ByteRecord, text: &[u8]) -> u64 {
    let Some(position) = record.position() else { return 1 };
    let before = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = text.get(before..).unwrap_or_default();
    let passed_over = lines(rest).take_while(|(_, line)| !says_something(line)).count();
    position.line() + passed_over as u64
}

fn says_something(line: &[u8]) -> bool {
    !line.is_empty() && !line.starts_with(b"#")
}

/// Where start and size are.
fn find_columns(heading: &ByteRecord) -> Result<(usize, usize), Mismatch> {
    let column = |name: &str| heading.iter().position(|field| trimmed(field) == Some(name));
    column("start_s").zip(column("size_bytes")).ok_or_else(|| {
        let found: Vec<_> = heading.iter().map(String::from_utf8_lossy).collect();
        Mismatch::new(quote(found.join(",")), HEADING)
    })
}

fn flow(record: &ByteRecord, (start, size): (usize, usize)) -> Result<LoggedFlow, Mismatch> {
    let field = |column: usize, expected: &str| {
        let bytes = record.get(column).unwrap_or_default();
        (trimmed(bytes).unwrap_or_default(), Mismatch::new(quote(bytes), expected))
    };
    let (start_text, no_start) = field(start, "seconds from zero on in start_s, as 0.25");
    let (size_text, no_size) = field(size, "whole bytes in size_bytes, at most 1 TB");
    Ok(LoggedFlow {
        start: seconds(start_text).ok_or(no_start)?,
        size: size_text.parse().ok().map(Bytes).and_then(within_most).ok_or(no_size)?,
    })
}
