//! The only error of all readers: one line that says where it happened, what was
//! found and what was expected.

use std::io;
use std::path::Path;

use super::stream;

/// Why a file could not be read.
///
/// It prints as a single line, in the form to which editors can jump if the format
/// has lines.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("{file}: cannot be read: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the operating system said.
        reason: io::Error,
    },
    /// The file is in none of the expected formats, or breaks off in its header.
    #[error("{file}: header at byte {offset}: found {found}, expected {expected}")]
    Header {
        /// The file.
        file: String,
        /// Where the header's wrong part starts, in bytes from the start of the file.
        offset: u64,
        /// What is there.
        found: String,
        /// What should have been there.
        expected: String,
    },
    /// A line of a text file makes no sense.
    #[error("{file}:{line}: found {found}, expected {expected}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is there.
        found: String,
        /// What should have been there.
        expected: String,
    },
    /// A capture is truncated or corrupt.
    #[error("{file}: packet {packet} at byte {offset}: found {found}, expected {expected}")]
    Packet {
        /// The file.
        file: String,
        /// The packet that could not be read, counted from 1.
        packet: u64,
        /// Where its record starts, in bytes from the start of the file.
        offset: u64,
        /// What is there.
        found: String,
        /// What should have been there.
        expected: String,
    },
    /// The file is well formed but contains nothing of what was asked for.
    #[error("{file}: found nothing to use, expected {expected}")]
    Nothing {
        /// The file, or all the files.
        file: String,
        /// What should have been there.
        expected: String,
    },
}

/// The part of an error that does not depend on where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) found: String,
    pub(super) expected: String,
}

impl Mismatch {
    pub(super) fn new(found: impl Into<String>, expected: impl Into<String>) -> Mismatch {
        Mismatch { found: found.into(), expected: expected.into() }
    }

    pub(super) fn at_line(self, file: &str, line: u64) -> ReadError {
        ReadError::Line { file: file.into(), line, found: self.found, expected: self.expected }
    }

    pub(super) fn at_header(self, file: &str, offset: u64) -> ReadError {
        ReadError::Header { file: file.into(), offset, found: self.found, expected: self.expected }
    }

    pub(super) fn at_packet(self, file: &str, packet: u64, offset: u64) -> ReadError {
        ReadError::Packet {
            file: file.into(),
            packet,
            offset,
            found: self.found,
            expected: self.expected,
        }
    }
}

/// The whole file, unpacked, and its name. The text readers hold it in memory.
pub(super) fn contents(path: &Path) -> Result<(String, Vec<u8>), ReadError> {
    let file = stream::name(path);
    let contents = stream::text(&file, stream::open(path)?)?;
    Ok((file, contents))
}

/// Quotes a piece of a file for a message: only its start, on one line, with
/// unprintable bytes escaped.
pub(super) fn quote(bytes: impl AsRef<[u8]>) -> String {
    const LONGEST: usize = 60;
    let bytes = bytes.as_ref();
    let shown = &bytes[..bytes.len().min(LONGEST)];
    let more = if bytes.len() > LONGEST { "..." } else { "" };
    format!("'{}{more}'", String::from_utf8_lossy(shown).escape_debug())
}
