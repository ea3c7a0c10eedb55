//! Standard output.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::NoReader,
        _ => Failure::Other(format!("standard output: {error}")),
    })
}

/// How many columns a line may have: those of the terminal, or `most` where there is none.
pub(crate) fn width(most: usize) -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(most, |(terminal_size::Width(columns), _)| usize::from(columns).min(most))
}

/// Writes `value` as JSON to standard output.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&json(value))
}

/// JSON as written to files and to standard output.
pub(crate) fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("our types are plain JSON");
    text.push('\n');
    text
}
