//! `results.json`: what was measured, small enough to keep beside the pages.
//!
//! Each check and each figure stands on a line of its own, so that a comparison of two
//! versions shows what changed. Numbers have [`DIGITS`] digits, more than the pages
//! show, and a line of a figure has at most [`MOST_POINTS`] points, evenly spread: the
//! plots have the rest, and `--json` prints everything.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use tidegate_papers::{Claim, Finding};

use super::Measured;

/// Significant digits of a number.
const DIGITS: usize = 5;
/// Points of a line at most.
const MOST_POINTS: usize = 40;
/// Findings, their fields and the entries of these have lines of their own.
const LEVELS: usize = 3;

/// The file.
pub(super) fn of(found: &[(&Claim, Finding)]) -> String {
    let mut found = found.to_vec();
    for (_, finding) in &mut found {
        for line in finding.figures.iter_mut().flat_map(|figure| &mut figure.lines) {
            thin(&mut line.points);
            thin(&mut line.band);
        }
    }
    let mut text = Vec::new();
    let outline = Outline { pretty: PrettyFormatter::with_indent(b" "), depth: 0 };
    let measured: Vec<Measured<'_>> = super::results(&found);
    let written = measured.serialize(&mut Serializer::with_formatter(&mut text, outline));
    written.expect("our types are plain JSON");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Leaves at most [`MOST_POINTS`] of `points`, the first and the last among them.
fn thin<T: Copy>(points: &mut Vec<T>) {
    let last = points.len().saturating_sub(1);
    if points.len() > MOST_POINTS {
        *points = (0..MOST_POINTS).map(|i| points[i * last / (MOST_POINTS - 1)]).collect();
    }
}

/// JSON in lines down to a depth, and on one line below it.
struct Outline {
    pretty: PrettyFormatter<'static>,
    depth: usize,
}

/// Methods that write something at the present depth.
macro_rules! by_depth {
    ($($method:ident($($name:ident: $kind:ty)?)),* $(,)?) => {
        $(fn $method<W: ?Sized + Write>(&mut self, out: &mut W $(, $name: $kind)?) -> io::Result<()> {
            if self.depth > LEVELS {
                CompactFormatter.$method(out $(, $name)?)
            } else {
                self.pretty.$method(out $(, $name)?)
            }
        })*
    };
}

impl Formatter for Outline {
    by_depth! {
        begin_array_value(first: bool),
        end_array_value(),
        begin_object_key(first: bool),
        begin_object_value(),
        end_object_value(),
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.depth > LEVELS { out.write_all(b"[") } else { self.pretty.begin_array(out) }
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.depth >= LEVELS { out.write_all(b"]") } else { self.pretty.end_array(out) }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.depth > LEVELS { out.write_all(b"{") } else { self.pretty.begin_object(out) }
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.depth >= LEVELS { out.write_all(b"}") } else { self.pretty.end_object(out) }
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        let digits = DIGITS - 1;
        let rounded: f64 = format!("{value:.digits$e}").parse().expect("it was a number");
        self.pretty.write_f64(out, rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_deep_stands_on_one_line_and_numbers_are_short() {
        let value = serde_json::json!([{ "checks": [{ "value": [1.0, 0.123_456_789, 3] }, {}] }]);
        let mut text = Vec::new();
        let outline = Outline { pretty: PrettyFormatter::with_indent(b" "), depth: 0 };
        value.serialize(&mut Serializer::with_formatter(&mut text, outline)).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "[\n {\n  \"checks\": [\n   {\"value\":[1.0,0.12346,3]},\n   {}\n  ]\n }\n]"
        );
    }

    #[test]
    fn thinning_keeps_the_first_and_the_last() {
        let mut points: Vec<usize> = (0..1_000).collect();
        thin(&mut points);
        assert_eq!((points.len(), points[0], points[MOST_POINTS - 1]), (MOST_POINTS, 0, 999));
        let mut few = vec![1, 2];
        thin(&mut few);
        assert_eq!(few, [1, 2]);
    }
}
