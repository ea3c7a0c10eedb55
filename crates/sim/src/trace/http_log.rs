//! Replies of a Web server or proxy, from its log: the Common and Combined Log Formats,
//! Squid's own, and the tab-separated form in which the NASA logs of 1995 are
//! distributed.
//!
//! The time, size and host of each reply are kept, the host only as a number. A
//! reply without a size (`-`) is left out and counted; a line that is not a log
//! line is an error. Servers write the line when the reply ends, so times may step
//! back a little: replies are sorted by time, those of one moment in the file's
//! order. Squid states to the millisecond when a reply ended and how long it took:
//! there the time is that of the request.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Bytes, Time};

use super::error::{Mismatch, contents, quote};
use super::text::{Scan, lines, seconds, trimmed};
use super::{ReadError, within_most};

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
    /// When it was logged, counted from the earliest reply; with Squid's format, when it
    /// was asked for. Other logs resolve seconds.
    pub at: Time,
    /// Its size, with or without its header, depending on the server.
    pub size: Bytes,
    /// The client: the number of the host, or of its address, in the order in which
    /// the log's sized replies name them.
    pub host: u32,
}

/// A line's time (Unix, in nanoseconds), size, if it states one, and host.
struct Entry<'a> {
    at: i128,
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
        let mut sized: Vec<(i128, u64, u32)> = Vec::new();
        let mut hosts: HashMap<String, u32> = HashMap::new();
        for (number, line) in numbered {
            let entry = match &table {
                Some(table) => table.entry(line),
                None => entry(line),
            };
            let Entry { at, size, host } = entry.map_err(|wrong| wrong.at_line(name, number))?;
            let Some(size) = size else {
                without_size += 1;
                continue;
            };
            let next = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
            sized.push((at, size, *hosts.entry(host.into_owned()).or_insert(next)));
        }
        sized.sort_by_key(|(at, ..)| *at);
        let first = sized.first().map_or(0, |(at, ..)| *at);
        let replies = sized.into_iter().map(|(at, size, host)| LoggedReply {
            at: Time(u64::try_from(at.abs_diff(first)).unwrap_or(u64::MAX)),
            size: Bytes(size),
            host,
        });
        Ok(HttpLog { replies: replies.collect(), without_size })
    }

    /// Whether `contents` begin as a log does.
    pub(super) fn recognises(contents: &[u8]) -> bool {
        lines(contents)
            .next()
            .is_some_and(|(_, line)| Table::from_heading(line).is_some() || entry(line).is_ok())
    }
}

/// A line of Squid's own format, or else of a Web server.
fn entry(line: &[u8]) -> Result<Entry<'_>, Mismatch> {
    squid_entry(line).map_or_else(|| common_log_entry(line), Ok)
}

/// `seconds.millis elapsed client code/status bytes method URL user hierarchy type`
/// (Squid's `logformat squid`), separated by one or more spaces.
fn squid_entry(line: &[u8]) -> Option<Entry<'_>> {
    const NANOS_PER_MILLI: i128 = 1_000_000;

    // Addresses need not be UTF-8, but what is read comes before them and is ASCII.
    let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let mut field = || fields.next().and_then(trimmed);
    let ended = seconds(field()?)?;
    let elapsed: i64 = field()?.parse().ok()?;
    let host = field()?;
    let (_code, status) = field()?.split_once('/')?;
    let size = field()?.parse().ok().map(Bytes).and_then(within_most)?;
    let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    let at = i128::from(ended.0) - i128::from(elapsed) * NANOS_PER_MILLI;
    is_status.then(|| Entry { at, size: Some(size.0), host: host.into() })
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
    Ok(Entry { at: unix(second), size, host })
}

/// Nanoseconds of Unix time.
fn unix(second: i64) -> i128 {
    i128::from(second) * i128::from(NANOS_PER_SECOND)
}

/// The number of bytes; `Some(None)` if the log has a dash for it.
fn size(field: &str) -> Option<Option<u64>> {
    if field == "-" {
        return Some(None);
    }
    field.parse().ok().map(Bytes).and_then(within_most).map(|size| Some(size.0))
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
            at: unix(second),
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
