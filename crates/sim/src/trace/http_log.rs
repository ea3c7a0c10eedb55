//! Replies of a Web server, from its log: the Common and Combined Log Formats, and
//! the tab-separated form in which the NASA logs of 1995 are distributed.
//!
//! The time, size and host of each reply are kept, the host only as a number. A
//! reply without a size (`-`) is left out and counted; a line that is not a log
//! line is an error. Servers write the line when the reply ends, so times may step
//! back a little: replies are sorted by time, those of one second in the file's
//! order.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Bytes, Time};

use super::ReadError;
use super::error::{Mismatch, contents, quote};
use super::text::{Scan, lines, trimmed};

/// The replies of one log, by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpLog {
    /// The replies, earliest first. The first is at zero.
    pub replies: Vec<LoggedReply>,
    /// Replies whose size the log does not state.
    pub without_size: u64,
}

/// One reply of a Web server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedReply {
    /// When it was logged, counted from the earliest reply. Logs resolve seconds.
    pub at: Time,
    /// Its size, with or without its header, depending on the server.
    pub size: Bytes,
    /// The client: the number of the host, or of its address, in the order in which
    /// the log's sized replies name them.
    pub host: u32,
}

/// A line's time (Unix, in seconds), size, if it states one, and host.
struct Entry<'a> {
    second: i64,
    size: Option<u64>,
    host: Cow<'a, str>,
}

impl HttpLog {
    /// Reads a log file.
    ///
    /// # Errors
    /// At the first line that is not a log line.
    pub fn read(path: &Path) -> Result<HttpLog, ReadError> {
        let (file, contents) = contents(path)?;
        HttpLog::parse(&file, &contents)
    }

    /// Reads a log from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](HttpLog::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<HttpLog, ReadError> {
        let mut numbered = lines(contents).peekable();
        let table = numbered.peek().and_then(|(_, line)| Table::from_heading(line));
        if table.is_some() {
            numbered.next();
        }
        let mut without_size = 0;
        let mut sized: Vec<(i64, u64, u32)> = Vec::new();
        let mut hosts: HashMap<String, u32> = HashMap::new();
        for (number, line) in numbered {
            let entry = match &table {
                Some(table) => table.entry(line),
                None => common_log_entry(line),
            };
            let Entry { second, size, host } =
                entry.map_err(|wrong| wrong.at_line(name, number))?;
            let Some(size) = size else {
                without_size += 1;
                continue;
            };
            let next = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
            sized.push((second, size, *hosts.entry(host.into_owned()).or_insert(next)));
        }
        sized.sort_by_key(|(second, ..)| *second);
        let first = sized.first().map_or(0, |(second, ..)| *second);
        let replies = sized.into_iter().map(|(second, size, host)| LoggedReply {
            at: Time(second.abs_diff(first).saturating_mul(NANOS_PER_SECOND)),
            size: Bytes(size),
            host,
        });
        Ok(HttpLog { replies: replies.collect(), without_size })
    }

    /// Whether `contents` begin as a log does.
    pub(super) fn recognises(contents: &[u8]) -> bool {
        lines(contents).next().is_some_and(|(_, line)| {
            Table::from_heading(line).is_some() || common_log_entry(line).is_ok()
        })
    }
}

/// `host identity user [date] "request" status bytes`, and in the Combined form
/// also `"referrer" "agent"`, which are not read.
///
/// Clients put anything into the request, including quotation marks; it ends at the
/// first one after which status and size follow.
fn common_log_entry(line: &[u8]) -> Result<Entry<'_>, Mismatch> {
    let expected = "host - - [day/Mon/year:h:m:s zone] \"request\" status bytes";
    let refused = || Mismatch::new(quote(line), expected);
    // Requests need not be UTF-8, but everything that is read is ASCII.
    let line = String::from_utf8_lossy(line);
    let (who, from_date) = line.split_once(" [").ok_or_else(refused)?;
    let mut scan = Scan(from_date);
    let second = scan.log_date().ok_or_else(refused)?;
    let request = scan.0.strip_prefix("] \"").ok_or_else(refused)?;
    let size = request.match_indices("\" ").find_map(|(end, quote)| {
        let mut fields = request[end + quote.len()..].split(' ');
        let status = fields.next()?;
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        if is_status { size(fields.next()?) } else { None }
    });
    let size = size.ok_or_else(refused)?;
    let host = who.split(' ').next().unwrap_or_default().to_owned().into();
    Ok(Entry { second, size, host })
}

/// The number of bytes; `Some(None)` if the log has a dash for it.
fn size(field: &str) -> Option<Option<u64>> {
    if field == "-" { Some(None) } else { field.parse().ok().map(Some) }
}

/// A tab-separated log with a heading that names `time` (Unix seconds) and `bytes`,
/// and optionally `host`; without that, all requests are from one host.
struct Table {
    time: usize,
    bytes: usize,
    host: Option<usize>,
}

impl Table {
    fn from_heading(line: &[u8]) -> Option<Table> {
        let names = trimmed(line)?;
        let column = |wanted: &str| names.split('\t').position(|name| name == wanted);
        Some(Table { time: column("time")?, bytes: column("bytes")?, host: column("host") })
    }

    fn entry<'a>(&self, line: &'a [u8]) -> Result<Entry<'a>, Mismatch> {
        let bytes = |column: usize| line.split(|byte| *byte == b'\t').nth(column);
        let field = |column: usize| bytes(column).and_then(trimmed);
        let host = self.host.and_then(bytes).unwrap_or_default();
        let second = field(self.time).and_then(|text| text.parse().ok());
        let size = field(self.bytes).and_then(size);
        let entry = second.zip(size).map(|(second, size)| Entry {
            second,
            size,
            host: String::from_utf8_lossy(host),
        });
        entry.ok_or_else(|| {
            let columns = (self.time + 1, self.bytes + 1);
            let expected =
                format!("Unix seconds in column {} and bytes in column {}", columns.0, columns.1);
            Mismatch::new(quote(line), expected)
        })
    }
}
