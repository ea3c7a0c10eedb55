//! A file of recorded traffic, whatever its format.
//!
//! The content tells the format, not the name. Whoever takes any recording asks here,
//! so that one is understood everywhere or nowhere.

use std::fmt;
use std::io::{Cursor, Read};
use std::path::Path;

use super::error::{Mismatch, quote};
use super::{
    Capture, ConnectionLog, FlowLog, HttpLog, PageLoads, ReadError, SizeDistribution, stream,
};

/// What a file of recorded traffic holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Packets.
    Capture(Capture),
    /// Page loads.
    PageLoads(PageLoads),
    /// Replies of a Web server or proxy.
    HttpLog(HttpLog),
    /// Flows of one direction.
    FlowLog(FlowLog),
    /// Connections, with both directions.
    ConnectionLog(ConnectionLog),
}

/// A format of a file of recorded traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// pcap or pcapng.
    Capture,
    /// HTTP Archive.
    PageLoad,
    /// Common or Combined Log Format, Squid's own, or NASA TSV.
    HttpLog,
    /// CSV or TSV of flows.
    FlowLog,
    /// Zeek's conn.log, or a table of tcptrace.
    ConnectionLog,
}

impl Recording {
    /// Reads a file, or standard input if `path` is `-`; compressed ones too.
    ///
    /// # Errors
    /// When the content is in no format of recorded traffic; also the errors of its
    /// reader.
    pub fn read(path: &Path) -> Result<Recording, ReadError> {
        Recording::of(&stream::name(path), stream::open(path)?)
    }

    /// Reads a stream, which may be compressed; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](Recording::read).
    pub fn stream(name: &str, reader: impl Read) -> Result<Recording, ReadError> {
        let plain = stream::plain(reader);
        let unreadable = |reason| ReadError::Unreadable { file: name.into(), reason };
        Recording::of(name, plain.map_err(unreadable)?)
    }

    /// Reads a stream that is not compressed.
    fn of(name: &str, mut reader: impl Read) -> Result<Recording, ReadError> {
        let unreadable = |reason| ReadError::Unreadable { file: name.into(), reason };
        let mut start = Vec::new();
        (&mut reader).take(4).read_to_end(&mut start).map_err(unreadable)?;
        let whole = Cursor::new(start.clone()).chain(reader);
        // Captures may be larger than memory and are read as a stream; text is held
        // as a whole.
        if is_capture(&start) {
            return Capture::stream(name, whole).map(Recording::Capture);
        }
        let contents = stream::text(name, whole)?;
        let first_letter = contents.iter().find(|byte| !b"\xef\xbb\xbf \t\r\n".contains(byte));
        if ConnectionLog::recognises(&contents) {
            ConnectionLog::parse(name, &contents).map(Recording::ConnectionLog)
        } else if first_letter == Some(&b'{') {
            PageLoads::parse(name, &contents).map(Recording::PageLoads)
        } else if FlowLog::recognises(&contents) {
            FlowLog::parse(name, &contents).map(Recording::FlowLog)
        } else if HttpLog::recognises(&contents) {
            HttpLog::parse(name, &contents).map(Recording::HttpLog)
        } else {
            Err(unrecognised(&contents).at_header(name, 0))
        }
    }

    /// Its format.
    #[must_use]
    pub fn format(&self) -> Format {
        match self {
            Recording::Capture(_) => Format::Capture,
            Recording::PageLoads(_) => Format::PageLoad,
            Recording::HttpLog(_) => Format::HttpLog,
            Recording::FlowLog(_) => Format::FlowLog,
            Recording::ConnectionLog(_) => Format::ConnectionLog,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Capture => "capture",
            Format::PageLoad => "page load",
            Format::HttpLog => "HTTP log",
            Format::FlowLog => "flow log",
            Format::ConnectionLog => "connection log",
        })
    }
}

/// Whether a file that starts with these four bytes is a capture.
#[must_use]
pub fn is_capture(start: &[u8]) -> bool {
    matches!(
        start,
        [0x0a, 0x0d, 0x0d, 0x0a]
            | [0xd4, 0xc3, 0xb2, 0xa1]
            | [0xa1, 0xb2, 0xc3, 0xd4]
            | [0x4d, 0x3c, 0xb2, 0xa1]
            | [0xa1, 0xb2, 0x3c, 0x4d]
    )
}

fn unrecognised(contents: &[u8]) -> Mismatch {
    let found = match contents {
        [] => "an empty file".into(),
        // The magic numbers of xz and bzip2; what gzip and zstd packed is unpacked.
        [0xfd, b'7', b'z', ..] | [b'B', b'Z', b'h', ..] => {
            "a file compressed by xz or bzip2".into()
        }
        _ if SizeDistribution::recognises(contents) => "a size distribution".into(),
        _ => quote(contents),
    };
    Mismatch::new(
        found,
        "a capture (pcap, pcapng), a page load (HAR), an HTTP log, a flow log or a connection log \
         (Zeek, tcptrace), plain or compressed by gzip or zstd",
    )
}
