//! Connections from a log: when each began, and what it carried in each direction.
//!
//! Three forms are told apart by their first line that says something:
//!
//! - `conn.log` of Zeek (formerly Bro), tab-separated, with its columns in a line that
//!   begins with `#fields`;
//! - the same as JSON, one object a line;
//! - the long output of tcptrace as a table (`tcptrace -l -n --csv` or `--tsv`).
//!
//! The user opens connections, so what the responder sends comes down to the user. Zeek
//! knows better when it knows its networks: a connection from outside to a local host
//! (`local_orig` false, `local_resp` true) has its directions turned round.
//!
//! The sizes are those of the payload without repeated segments: `orig_bytes` and
//! `resp_bytes`, and `unique_bytes_sent`. A connection of which the log states no sizes
//! is left out and counted.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tidegate_core::{Bytes, Time};

use super::error::{Mismatch, contents, quote};
use super::text::{lines, seconds, trimmed};
use super::{ReadError, within_most};

/// The connections of one log, by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionLog {
    /// The connections, earliest first. The first is at zero.
    pub connections: Vec<LoggedConnection>,
    /// Connections of which the log states no sizes.
    pub without_size: u64,
}

/// One connection of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedConnection {
    /// When it began, counted from the earliest one.
    pub start: Time,
    /// What it carried from the user.
    pub up: Bytes,
    /// What it carried to the user.
    pub down: Bytes,
}

impl ConnectionLog {
    /// Reads a log file.
    ///
    /// # Errors
    /// When the file is in none of the forms, or at the first line that is not like the
    /// others.
    pub fn read(path: &Path) -> Result<ConnectionLog, ReadError> {
        let (file, contents) = contents(path)?;
        ConnectionLog::parse(&file, &contents)
    }

    /// Reads a log from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](ConnectionLog::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<ConnectionLog, ReadError> {
        let mut log = ConnectionLog::default();
        let mut form = None;
        for (number, line) in lines(contents) {
            let Some(form) = &form else {
                form = Form::of_heading(line);
                if !matches!(form, Some(Form::Json)) {
                    continue;
                }
                log.add(json(line).map_err(|wrong| wrong.at_line(name, number))?);
                continue;
            };
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let connection = match form {
                Form::Json => json(line),
                Form::Table(table) => table.connection(line),
            };
            log.add(connection.map_err(|wrong| wrong.at_line(name, number))?);
        }
        if form.is_none() {
            let expected = "a log of connections: conn.log of Zeek, or a table of tcptrace";
            return Err(Mismatch::new(quote(contents), expected).at_line(name, 1));
        }
        log.connections.sort_by_key(|connection| connection.start);
        let first = log.connections.first().map_or(Time::ZERO, |first| first.start);
        for connection in &mut log.connections {
            connection.start = Time::ZERO + connection.start.since(first);
        }
        Ok(log)
    }

    fn add(&mut self, connection: Option<LoggedConnection>) {
        match connection {
            Some(connection) => self.connections.push(connection),
            None => self.without_size += 1,
        }
    }

    /// Whether `contents` begin as such a log does.
    pub(super) fn recognises(contents: &[u8]) -> bool {
        // The lines in front of a heading are comments.
        let mut all = lines(contents).map(|(_, line)| line);
        let heading = all.find(|line| {
            Form::of_heading(line).is_some() || !(line.is_empty() || line.starts_with(b"#"))
        });
        heading.and_then(Form::of_heading).is_some()
    }
}

/// How connections are written.
enum Form {
    Table(Table),
    Json,
}

impl Form {
    /// The form that a line announces, if it does.
    fn of_heading(line: &[u8]) -> Option<Form> {
        let text = trimmed(line)?;
        if let Some(names) = text.strip_prefix("#fields\t") {
            return Table::of_zeek(&names.split('\t').collect::<Vec<_>>()).map(Form::Table);
        }
        if text.starts_with('{') {
            let keys: Value = serde_json::from_str(text).ok()?;
            return (keys.get("ts").is_some() && keys.get("conn_state").is_some())
                .then_some(Form::Json);
        }
        let delimiter = if text.contains('\t') { '\t' } else { ',' };
        let names: Vec<_> = text.split(delimiter).map(str::trim).collect();
        Table::of_tcptrace(&names, delimiter).map(Form::Table)
    }
}

/// Where the columns of a table are.
struct Table {
    delimiter: char,
    start: usize,
    sent: usize,
    received: usize,
    /// Whether the originator and the responder are local.
    local: Option<(usize, usize)>,
}

/// A field of Zeek that has no value.
const UNSET: &str = "-";

impl Table {
    fn of_zeek(names: &[&str]) -> Option<Table> {
        let column = |wanted| names.iter().position(|name| *name == wanted);
        // Other logs of Zeek have no state of a connection.
        column("conn_state")?;
        Some(Table {
            delimiter: '\t',
            start: column("ts")?,
            sent: column("orig_bytes")?,
            received: column("resp_bytes")?,
            local: column("local_orig").zip(column("local_resp")),
        })
    }

    fn of_tcptrace(names: &[&str], delimiter: char) -> Option<Table> {
        let column = |wanted| names.iter().position(|name| *name == wanted);
        Some(Table {
            delimiter,
            start: column("first_packet")?,
            sent: column("unique_bytes_sent_a2b")?,
            received: column("unique_bytes_sent_b2a")?,
            local: None,
        })
    }

    /// The connection of a line; `None` if it has no sizes.
    fn connection(&self, line: &[u8]) -> Result<Option<LoggedConnection>, Mismatch> {
        let fields: Vec<&[u8]> = line.split(|byte| char::from(*byte) == self.delimiter).collect();
        let field = |column: usize| {
            let bytes = fields.get(column).copied().unwrap_or_default();
            trimmed(bytes).unwrap_or_default()
        };
        let wrong = |column: usize, expected: &str| {
            Mismatch::new(quote(field(column)), format!("{expected} in column {}", column + 1))
        };
        let size = |column: usize| match field(column) {
            UNSET => Ok(None),
            text => {
                let size = text.parse().ok().map(Bytes).and_then(within_most);
                size.map(Some).ok_or_else(|| wrong(column, "bytes, at most 1 TB,"))
            }
        };
        let start = seconds(field(self.start));
        let start = start.ok_or_else(|| wrong(self.start, "seconds"))?;
        let inbound = self.local.is_some_and(|(originator, responder)| {
            field(originator) == "F" && field(responder) == "T"
        });
        Ok(connection(start, size(self.sent)?, size(self.received)?, inbound))
    }
}

/// A connection of Zeek as JSON. Fields without a value are left out.
#[derive(Deserialize)]
struct Object {
    ts: f64,
    orig_bytes: Option<u64>,
    resp_bytes: Option<u64>,
    local_orig: Option<bool>,
    local_resp: Option<bool>,
}

fn json(line: &[u8]) -> Result<Option<LoggedConnection>, Mismatch> {
    let refused =
        || Mismatch::new(quote(line), "a connection of Zeek with ts and sizes up to 1 TB");
    let object: Object = serde_json::from_slice(line).map_err(|_| refused())?;
    // A number of Unix seconds has microseconds left in a double.
    let start = seconds(&object.ts.to_string()).ok_or_else(refused)?;
    let size = |bytes: Option<u64>| match bytes.map(Bytes) {
        Some(size) => within_most(size).map(Some).ok_or_else(refused),
        None => Ok(None),
    };
    let inbound = object.local_orig == Some(false) && object.local_resp == Some(true);
    Ok(connection(start, size(object.orig_bytes)?, size(object.resp_bytes)?, inbound))
}

fn connection(
    start: Time,
    sent: Option<Bytes>,
    received: Option<Bytes>,
    inbound: bool,
) -> Option<LoggedConnection> {
    let (sent, received) = (sent?, received?);
    let (up, down) = if inbound { (received, sent) } else { (sent, received) };
    Some(LoggedConnection { start, up, down })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZEEK: &str = "#separator \\x09\n#path\tconn\n\
        #fields\tts\tuid\torig_bytes\tresp_bytes\tconn_state\tlocal_orig\tlocal_resp\n\
        #types\ttime\tstring\tcount\tcount\tstring\tbool\tbool\n\
        1500000002.5\tCa\t300\t90000\tSF\tT\tF\n\
        1500000000.25\tCb\t7\t1000\tSF\tF\tT\n\
        1500000001.0\tCc\t-\t-\tS0\tT\tF\n\
        #close\t2017-07-14-02-40-03\n";

    fn read(text: &str) -> Vec<(u64, u64, u64)> {
        let log = ConnectionLog::parse("log", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        assert!(ConnectionLog::recognises(text.as_bytes()));
        log.connections.iter().map(|it| (it.start.0 / 1_000_000, it.up.0, it.down.0)).collect()
    }

    #[test]
    fn the_forms_say_the_same() {
        let expected = [(0, 1_000, 7), (2_250, 300, 90_000)];
        assert_eq!(read(ZEEK), expected);
        assert_eq!(ConnectionLog::parse("log", ZEEK.as_bytes()).unwrap().without_size, 1);
        let json = "{\"ts\":1500000002.5,\"orig_bytes\":300,\"resp_bytes\":90000,\"conn_state\":\"SF\"}\n\
            {\"ts\":1500000000.25,\"orig_bytes\":7,\"resp_bytes\":1000,\"conn_state\":\"SF\",\
            \"local_orig\":false,\"local_resp\":true}\n{\"ts\":1.0,\"conn_state\":\"S0\"}\n";
        assert_eq!(read(json), expected);
        let tcptrace = "# tcptrace\n\nconn_#,host_a,first_packet,unique_bytes_sent_a2b,\
            unique_bytes_sent_b2a,\n1,a,1500000000.250000,1000,7,\n2,b,1500000002.500000,300,90000,\n";
        assert_eq!(read(tcptrace), expected);
        assert_eq!(read(&tcptrace.replace(',', "\t")), expected);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error =
            |text: &str| ConnectionLog::parse("log", text.as_bytes()).unwrap_err().to_string();
        let sizes = "expected bytes, at most 1 TB, in column 3";
        assert_eq!(error(&ZEEK.replace("300", "1e300")), format!("log:5: found '1e300', {sizes}"));
        let large = "1000000000001";
        assert_eq!(error(&ZEEK.replace("300", large)), format!("log:5: found '{large}', {sizes}"));
        let start = "log:6: found 'noon', expected seconds in column 1";
        assert_eq!(error(&ZEEK.replace("1500000000.25", "noon")), start);
        let dns = ZEEK.replace("conn_state", "query");
        assert!(!ConnectionLog::recognises(dns.as_bytes()));
        assert!(error(&dns).ends_with("conn.log of Zeek, or a table of tcptrace"));
    }
}
