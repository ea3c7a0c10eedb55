//! The errors of files, each on one line: the place, the key, what was
//! found, and what was expected.

use std::io;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::nearest::expectation;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("{file}: cannot be read: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The message of the operating system.
        reason: io::Error,
    },
    /// The file contains an error.
    #[error("{file}:{line}:{column}: {}found {found}, expected {expected}", prefix(key))]
    Wrong {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The character in the line, counted from 1.
        column: usize,
        /// The key, with those of the tables around it; empty if the file is not TOML.
        key: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
}

fn prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

/// The part of an error that does not depend on the file's name.
#[derive(Debug)]
pub struct Mistake {
    place: Range<usize>,
    /// A key to append to that of the place: one that is missing there.
    missing: Option<String>,
    found: String,
    expected: String,
}

impl Mistake {
    /// Something wrong at a place, in bytes from the start of the file.
    pub fn at(
        place: &Range<usize>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Mistake {
        Mistake {
            place: place.clone(),
            missing: None,
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// A key that the table at a place lacks.
    #[must_use]
    pub fn missing(place: &Range<usize>, key: &str, expected: &str) -> Mistake {
        let missing = Some(key.to_string());
        Mistake { missing, ..Mistake::at(place, "nothing", expected) }
    }

    /// From the messages of serde and the TOML parser: `invalid type: X, expected Y`,
    /// ``unknown field `x`, expected one of `a`, `b` ``, ``missing field `x` ``.
    #[must_use]
    pub fn from_toml(error: &toml::de::Error) -> Mistake {
        let place = error.span().unwrap_or(0..0);
        let message = error.message().replace('\n', ", ");
        let quoted = |text: &str| text.replace('`', "'");
        if let Some(key) = message.strip_prefix("missing field ") {
            return Mistake::missing(&place, key.trim_matches('`'), "a value");
        }
        let (found, expected) = message.split_once(", expected ").unwrap_or((&message, ""));
        let unknown = ["unknown field ", "unknown variant "];
        if let Some(word) = unknown.iter().find_map(|prefix| found.strip_prefix(prefix)) {
            let word = word.trim_matches('`');
            // The names are every second piece between the backquotes.
            let known = expected.split('`').skip(1).step_by(2);
            return Mistake::at(&place, format!("unknown '{word}'"), expectation(word, known));
        }
        let found = ["invalid type: ", "invalid value: ", "invalid "]
            .iter()
            .find_map(|prefix| found.strip_prefix(prefix))
            .unwrap_or(found);
        // serde's names of the forms, in the words of TOML.
        let bare = |prefix| found.strip_prefix(prefix).map(|rest: &str| rest.trim_matches('`'));
        let number = bare("integer ").or_else(|| bare("floating point "));
        let length = found.strip_prefix("length ").map(|count| format!("a table of {count} keys"));
        let found = match (found, bare("string "), number) {
            _ if length.is_some() => length.unwrap_or_default(),
            ("map", ..) => "a table".into(),
            ("sequence", ..) => "a list".into(),
            (_, Some(text), _) => format!("'{}'", text.trim_matches('"')),
            (_, _, Some(number)) => number.into(),
            _ => quoted(found),
        };
        let expected = match expected {
            "" if found == "duplicate key" => "each key once".into(),
            "" => "something that makes sense here".into(),
            "a sequence" => "a list".into(),
            _ if expected.starts_with("struct ") => "a table".into(),
            _ => quoted(expected),
        };
        Mistake::at(&place, found, expected)
    }

    /// The error in the file of this name and text.
    #[must_use]
    pub fn in_file(self, file: &str, text: &str) -> FileError {
        let start = (0..=self.place.start.min(text.len()))
            .rev()
            .find(|index| text.is_char_boundary(*index))
            .unwrap_or(0);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let mut key = key_at(text, &self.place);
        if let Some(missing) = self.missing {
            key = if key.is_empty() { missing } else { format!("{key}.{missing}") };
        }
        FileError::Wrong {
            file: file.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            // Keys in quotation marks may have line breaks in them, messages may not.
            key: key.replace(char::is_control, " "),
            found: self.found,
            expected: self.expected,
        }
    }
}

/// The key, with those around it, whose name or value is at `place`. An error
/// about the file as a whole has an empty place and no key.
fn key_at(text: &str, place: &Range<usize>) -> String {
    if place.is_empty() {
        return String::new();
    }
    let Ok(document) = DeTable::parse(text) else { return String::new() };
    let mut best = (usize::MAX, String::new());
    search(document.get_ref(), "", place, &mut best);
    best.1
}

/// Finds the smallest part of `table` that encloses `place`. The search is not
/// limited to enclosing parts: the place of a table is that of its heading.
fn search(table: &DeTable<'_>, path: &str, place: &Range<usize>, best: &mut (usize, String)) {
    for (key, value) in table {
        let path = if path.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{path}.{}", key.get_ref())
        };
        visit(value, Some(key.span()), &path, place, best);
    }
}

fn visit(
    value: &toml::Spanned<DeValue<'_>>,
    key: Option<Range<usize>>,
    path: &str,
    place: &Range<usize>,
    best: &mut (usize, String),
) {
    for span in key.into_iter().chain([value.span()]) {
        let encloses = span.start <= place.start && place.end <= span.end;
        // Of two that are equal the inner one, which is visited later.
        if encloses && span.len() <= best.0 {
            *best = (span.len(), path.into());
        }
    }
    match value.get_ref() {
        DeValue::Table(table) => search(table, path, place, best),
        DeValue::Array(items) => {
            items.iter().for_each(|item| visit(item, None, path, place, best));
        }
        _ => {}
    }
}
