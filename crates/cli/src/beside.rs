//! The table of what was measured on a link and what its simulation gives.
//!
//! Each thing that was measured is a row with its figures; where something in the scenario
//! corresponds to it, the simulated figures and the difference in per cent follow below.
//! Delays, throughputs and queues have columns of their own, and so are blocks of their own.

use std::fmt::Write as _;

use tidegate_study::comparison::{Beside, Figure};
use tidegate_study::verdict::Grade;

use crate::parts::number;

/// Longer names are cut off, and in a narrow window names longer than the first.
const NAMES: [usize; 2] = [16, 40];
/// A column with the gap in front.
const COLUMN: usize = 8;

/// A column: its figure, its heading, its unit, and how many of the unit of the figure's
/// quantity that is.
type Column = (Figure, &'static str, &'static str, f64);

/// The blocks of columns.
const BLOCKS: &[&[Column]] = &[
    &[
        (Figure::Idle, "idle", "ms", 1e3),
        (Figure::Mean, "mean", "ms", 1e3),
        (Figure::P5, "5%", "ms", 1e3),
        (Figure::Median, "median", "ms", 1e3),
        (Figure::P95, "95%", "ms", 1e3),
        (Figure::Added, "added", "ms", 1e3),
        (Figure::Lost, "lost", "%", 1e2),
        (Figure::Rating, "call", "R", 1.0),
    ],
    &[
        (Figure::Throughput, "mean", "Mbit/s", 1e-6),
        (Figure::ThroughputP5, "5%", "Mbit/s", 1e-6),
        (Figure::ThroughputMedian, "median", "Mbit/s", 1e-6),
        (Figure::ThroughputP95, "95%", "Mbit/s", 1e-6),
    ],
    &[
        (Figure::Dropped, "dropped", "1/s", 1.0),
        (Figure::Marked, "marked", "1/s", 1.0),
        (Figure::Backlog, "backlog", "kB", 1e-3),
    ],
];

/// The table of `rows`, of which the simulated figures are those of the discipline `label`,
/// in lines of `width` columns where there is room.
pub(crate) fn table(rows: &[Beside], label: Option<&str>, width: usize) -> String {
    let mut text = String::new();
    let head = if label.is_some() { "measured and simulated" } else { "measured" };
    for columns in BLOCKS {
        let shown: Vec<&Column> =
            columns.iter().filter(|column| rows.iter().any(|it| it.figure == column.0)).collect();
        if shown.is_empty() {
            continue;
        }
        let name_width = width.saturating_sub(COLUMN * shown.len()).clamp(NAMES[0], NAMES[1]);
        let heading = |name: &str, of: fn(&Column) -> &'static str| {
            let cells = shown.iter().map(|column| format!("{:>COLUMN$}", of(column)));
            let name: String = name.chars().take(name_width).collect();
            format!("{name:name_width$}{}", cells.collect::<String>())
        };
        let _ = writeln!(text, "{}", heading(head, |column| column.1));
        let _ = writeln!(text, "{}", heading("", |column| column.2));
        let mut names: Vec<&str> = Vec::new();
        let mine = |row: &&Beside| columns.iter().any(|column| column.0 == row.figure);
        for row in rows.iter().filter(mine) {
            if names.last() != Some(&row.name.as_str()) {
                names.push(&row.name);
            }
        }
        for name in names {
            block(&mut text, rows, (name, name_width), &shown, label);
        }
        text.push('\n');
    }
    text += &grades(rows);
    format!("{}\n", text.trim_end())
}

/// The lines of one thing that was measured.
fn block(
    text: &mut String,
    rows: &[Beside],
    (name, name_width): (&str, usize),
    shown: &[&Column],
    label: Option<&str>,
) {
    let of = |figure| rows.iter().find(|row| row.name == name && row.figure == figure);
    let mut line = |name: &str, cell: &dyn Fn(&Beside, f64) -> Option<String>| {
        let name: String = name.chars().take(name_width).collect();
        let cells = shown.iter().map(|column| {
            let text = of(column.0).and_then(|row| cell(row, column.3));
            format!("{:>COLUMN$}", text.unwrap_or_default())
        });
        let line = format!("{name:name_width$}{}", cells.collect::<String>());
        let _ = writeln!(text, "{}", line.trim_end());
    };
    line(name, &|row, scale| Some(number(row.measured * scale)));
    let is_simulated = shown.iter().any(|it| of(it.0).is_some_and(|row| row.simulated.is_some()));
    if let (Some(label), true) = (label, is_simulated) {
        let label = format!("  simulated, {label}");
        line(&label, &|row, scale| Some(number(row.simulated? * scale)));
        line("  difference, %", &|row, _| Some(per_cent(row.difference()?)));
    }
}

/// A difference as a whole number of per cent with its sign.
pub(crate) fn per_cent(difference: f64) -> String {
    let percent = (100.0 * difference).round();
    if percent == 0.0 { "0".into() } else { format!("{percent:+.0}") }
}

/// The grade of what load adds, if it was measured.
fn grades(rows: &[Beside]) -> String {
    let graded = |row: &&Beside| row.figure == Figure::AddedEachWay;
    let simulated = rows.iter().filter(graded).find(|row| row.simulated.is_some());
    let Some(row) = simulated.or_else(|| rows.iter().find(graded)) else { return String::new() };
    let words = |added: f64| format!("{} ({} ms)", Grade::of(added), number(added * 1e3));
    let beside = row.simulated.map_or_else(String::new, |it| format!(", simulated {}", words(it)));
    format!(
        "Grade of what load adds to '{}', each way: measured {}{beside}.\n",
        row.name,
        words(row.measured)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_stand_below_both_figures() {
        let row = |figure, measured, simulated| Beside {
            name: "ping".into(),
            figure,
            measured,
            simulated,
        };
        let rows = [
            row(Figure::Idle, 0.010, Some(0.010)),
            row(Figure::Median, 0.040, Some(0.050)),
            row(Figure::AddedEachWay, 0.020, Some(0.040)),
            row(Figure::Throughput, 9.2e6, None),
        ];
        let text = table(&rows, Some("codel"), 80);
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2], ["ping", "10.0", "40.0"]);
        assert_eq!(lines[3], ["simulated,", "codel", "10.0", "50.0"]);
        assert_eq!(lines[4], ["difference,", "%", "0", "+25"]);
        // Without a simulated figure there is one line.
        assert_eq!((&lines[8][..], lines[9].len()), (&["ping", "9.20"][..], 0));
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.ends_with("measured A (20.0 ms), simulated B (40.0 ms).\n"), "{text}");
    }
}
