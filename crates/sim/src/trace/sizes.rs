//! Measures the distribution of transfer sizes in recorded traffic.
//!
//! The content of each file tells its format, not its name. The sizes of all files
//! are pooled, each with the same weight:
//!
//! - captures: for each flow and direction, the bytes that it carried above TCP or
//!   UDP; directions that only acknowledge are left out;
//! - page loads and HTTP logs: the size of each reply that is not empty;
//! - flow logs: the size of each flow.

use std::fmt;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use tidegate_core::Bytes;

use super::error::{Mismatch, quote};
use super::{Capture, FlowLog, HttpLog, PageLoads, ReadError, SizeDistribution};

/// A format of a traffic file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// pcap or pcapng.
    Capture,
    /// HTTP Archive.
    PageLoad,
    /// Common or Combined Log Format, or NASA TSV.
    HttpLog,
    /// CSV or TSV of flows.
    FlowLog,
}

/// What [`measure`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The distribution of all sizes.
    pub distribution: SizeDistribution,
    /// Each file's share in it.
    pub files: Vec<MeasuredFile>,
}

/// What one file gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredFile {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The number of sizes it gave.
    pub sizes: u64,
    /// How many records gave none: unknown, empty or unreadable.
    pub left_out: u64,
}

/// Measures the sizes in `files`, in a distribution of at most `max_points`
/// points (at least 8).
///
/// # Errors
/// That of the first file that cannot be read; also when no file contains a size.
pub fn measure(files: &[impl AsRef<Path>], max_points: usize) -> Result<Measured, ReadError> {
    let mut sizes = Vec::new();
    let mut measured = Vec::new();
    for path in files.iter().map(AsRef::as_ref) {
        let name = path.display().to_string();
        let unreadable =
            |reason| ReadError::Unreadable { file: path.display().to_string(), reason };
        let found = Sizes::stream(&name, File::open(path).map_err(unreadable)?)?;
        measured.push(MeasuredFile {
            path: path.into(),
            format: found.format,
            sizes: found.sizes.len() as u64,
            left_out: found.left_out,
        });
        sizes.extend(found.sizes);
    }
    let Some(distribution) = SizeDistribution::from_sizes(&sizes, max_points) else {
        let names: Vec<_> = measured.iter().map(|file| file.path.display().to_string()).collect();
        let expected = "a flow or reply that is not empty".into();
        return Err(ReadError::Nothing { file: names.join(", "), expected });
    };
    Ok(Measured { distribution, files: measured })
}

/// The sizes in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The file's format.
    pub format: Format,
    /// The sizes, none of them zero, in an order that depends only on the file.
    pub sizes: Vec<Bytes>,
    /// How many records gave none: unknown, empty or unreadable.
    pub left_out: u64,
}

impl Sizes {
    /// Finds the sizes in a stream of any of the formats; `name` is for error
    /// messages.
    ///
    /// # Errors
    /// When the content is in no format that contains sizes; also the errors of its
    /// reader.
    pub fn stream(name: &str, mut reader: impl Read) -> Result<Sizes, ReadError> {
        let unreadable = |reason| ReadError::Unreadable { file: name.into(), reason };
        let mut start = Vec::new();
        (&mut reader).take(4).read_to_end(&mut start).map_err(unreadable)?;
        // Captures may be larger than memory and are read as a stream; text is held
        // as a whole.
        if is_capture(&start) {
            return Capture::stream(name, Cursor::new(start).chain(reader)).map(Sizes::from);
        }
        reader.read_to_end(&mut start).map_err(unreadable)?;
        let contents = start.as_slice();
        let first_letter = contents.iter().find(|byte| !b"\xef\xbb\xbf \t\r\n".contains(byte));
        if first_letter == Some(&b'{') {
            PageLoads::parse(name, contents).map(Sizes::from)
        } else if FlowLog::recognises(contents) {
            FlowLog::parse(name, contents).map(Sizes::from)
        } else if HttpLog::recognises(contents) {
            HttpLog::parse(name, contents).map(Sizes::from)
        } else {
            Err(unrecognised(contents).at_header(name, 0))
        }
    }

    /// Keeps those of `sizes` that are not zero.
    fn new(format: Format, sizes: impl Iterator<Item = Bytes>, unknown: u64) -> Sizes {
        let mut found = Sizes { format, sizes: Vec::new(), left_out: unknown };
        for size in sizes {
            if size == Bytes::ZERO {
                found.left_out += 1;
            } else {
                found.sizes.push(size);
            }
        }
        found
    }
}

impl From<Capture> for Sizes {
    fn from(capture: Capture) -> Sizes {
        let totals = capture.flow_totals();
        let payloads = totals.values().map(|total| total.payload);
        Sizes::new(Format::Capture, payloads, capture.skipped.total())
    }
}

impl From<PageLoads> for Sizes {
    fn from(loads: PageLoads) -> Sizes {
        let sizes = loads.requests().map(|request| request.size);
        Sizes::new(Format::PageLoad, sizes, loads.unknown_sizes)
    }
}

impl From<HttpLog> for Sizes {
    fn from(log: HttpLog) -> Sizes {
        let sizes = log.replies.iter().map(|reply| reply.size);
        Sizes::new(Format::HttpLog, sizes, log.without_size)
    }
}

impl From<FlowLog> for Sizes {
    fn from(log: FlowLog) -> Sizes {
        Sizes::new(Format::FlowLog, log.flows.iter().map(|flow| flow.size), 0)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Capture => "capture",
            Format::PageLoad => "page load",
            Format::HttpLog => "HTTP log",
            Format::FlowLog => "flow log",
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
        // The magic numbers of gzip, xz, zstd and bzip2.
        [0x1f, 0x8b, ..]
        | [0xfd, b'7', b'z', ..]
        | [0x28, 0xb5, 0x2f, 0xfd, ..]
        | [b'B', b'Z', b'h', ..] => "a compressed file".into(),
        _ if SizeDistribution::recognises(contents) => "a size distribution".into(),
        _ => quote(contents),
    };
    Mismatch::new(found, "a capture (pcap, pcapng), a page load (HAR), an HTTP log or a flow log")
}
