//! Flows from a log: when each started and how large it was.
//!
//! CSV or TSV (told apart by the first line) with a heading that names the
//! columns; `start_s` and `size_bytes` are read, in any order, and others are
//! ignored. Lines that start with `#` are comments.
//!
//! ```text
//! # taken at the campus border
//! start_s,size_bytes,comment
//! 0.25,14600,first
//! 0.5,1200,second
//! ```

use std::path::Path;

use tidegate_core::{Bytes, Time};

use super::ReadError;

/// The flows of one log, by start time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowLog {
    /// The flows, earliest first; flows of one instant in the file's order.
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
    /// When the heading lacks a column or a line is not as the heading says.
    pub fn read(path: &Path) -> Result<FlowLog, ReadError> {
        let _ = path;
        unimplemented!("next commit")
    }

    /// Reads a log from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](FlowLog::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<FlowLog, ReadError> {
        let _ = (name, contents);
        unimplemented!("next commit")
    }

    /// The same flows with the first of them at zero: for logs in Unix time.
    #[must_use]
    pub fn from_first(self) -> FlowLog {
        unimplemented!("next commit")
    }
}
