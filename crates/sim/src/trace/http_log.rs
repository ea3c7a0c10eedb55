//! Replies of a Web server, from its log: the Common and Combined Log Formats,
//! and the tab-separated form in which the NASA logs of 1995 are passed on.
//!
//! Only time and size of each reply are kept. A reply without a size (`-`) is
//! left out and counted; a line that is no log line is an error. Servers write
//! the line when the reply ends, so times may step back by a little: replies
//! are sorted by time, those of one second in the file's order.

use std::path::Path;

use tidegate_core::{Bytes, Time};

use super::ReadError;

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
    /// When it was logged, from the earliest reply on. Logs resolve seconds.
    pub at: Time,
    /// Its size, with or without its header as the server counts.
    pub size: Bytes,
}

impl HttpLog {
    /// Reads a log file.
    ///
    /// # Errors
    /// At the first line that is no log line.
    pub fn read(path: &Path) -> Result<HttpLog, ReadError> {
        let _ = path;
        unimplemented!("next commit")
    }

    /// Reads a log from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](HttpLog::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<HttpLog, ReadError> {
        let _ = (name, contents);
        unimplemented!("next commit")
    }
}
