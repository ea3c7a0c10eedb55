//! A running gateway or link, asked by HTTP.

use std::io::{self, Read, Write};
use std::time::Duration;

/// How long it may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What it says to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends a request of this `line`, such as `GET /status`, with these `fields`, each of which
/// ends a line, and with a `body`; returns the answer.
pub(crate) fn ask(
    stream: &mut (impl Read + Write),
    line: &str,
    fields: &str,
    body: &str,
) -> io::Result<Answer> {
    let length = body.len();
    let head = format!("{line} HTTP/1.0\r\n{fields}Content-Length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    match head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
        Some(status) => Ok(Answer { status, body: body.into() }),
        None => Err(io::Error::other("it does not answer as Tidegate does")),
    }
}
