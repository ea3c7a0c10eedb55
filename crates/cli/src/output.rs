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

/// How many columns a line of prose may have: those of the terminal, or `most`.
pub(crate) fn width(most: usize) -> usize {
    columns(most).min(most)
}

/// How many columns a table may have: those of the terminal, or so many `otherwise`.
pub(crate) fn columns(otherwise: usize) -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(otherwise, |(terminal_size::Width(columns), _)| columns.into())
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

/// `text` in lines of at most 95 columns, each behind `margin`.
pub(crate) fn wrapped(text: &str, margin: &str) -> String {
    const WIDTH: usize = 95;
    filled(margin, text, WIDTH)
}

/// `text` in lines of at most `width` columns, the first one behind `mark` and the others
/// as far in. A space that does not break on a page is one like any other here.
pub(crate) fn filled(mark: &str, text: &str, width: usize) -> String {
    let margin = " ".repeat(mark.chars().count());
    let mut out = String::new();
    let mut line = mark.to_string();
    let mut used = margin.len();
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used + length > width && used > margin.len() {
            out.push_str(line.trim_end());
            out.push('\n');
            line.clone_from(&margin);
            used = margin.len();
        }
        line.push_str(word);
        line.push(' ');
        used += length + 1;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}
