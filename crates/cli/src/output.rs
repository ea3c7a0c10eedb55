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

/// `text` in lines of at most 96 characters, each behind `margin`.
pub(crate) fn wrapped(text: &str, margin: &str) -> String {
    const WIDTH: usize = 96;
    let mut out = String::new();
    let mut line = margin.to_string();
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH && line.len() > margin.len() {
            out.push_str(line.trim_end());
            out.push('\n');
            line = margin.to_string();
        }
        line.push_str(word);
        line.push(' ');
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}
