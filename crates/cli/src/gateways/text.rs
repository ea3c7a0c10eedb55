//! The table on the terminal: a row for each way and class, in at most 100
//! columns, readable without colour.

use std::fmt::Write as _;

use tidegate_study::Sample;
use tidegate_study::requests::{Class, Summary};

/// The most columns of a line.
const WIDTH: usize = 100;
/// Longer names are cut off.
const NAME: usize = 16;

const NOTE: &str = "\
weight: as in the file, of a class or of each of its users, as the way has it; share: what the class
received of what all did. mean to 99%: seconds from asking for an object to its last byte; small:
the median of those below 10 kB. failed: of 1 000 requests those without an answer whose users had
not left. link: share of its rate that was used. Over the seeds: shares and means are means,
the others medians.";

pub(super) fn of(summary: &Summary) -> String {
    let state = if summary.partial { " (PARTIAL: runs are missing)" } else { "" };
    let mut text = format!("{}{state}\n\n", summary.title);
    let heading = ["way", "class", "weight", "share", "mean", "50%", "95%", "99%", "small"]
        .map(String::from)
        .into_iter()
        .chain(["failed".into(), "link".into()]);
    let mut rows = vec![heading.collect::<Vec<_>>()];
    for way in &summary.ways {
        for (number, class) in way.classes.iter().enumerate() {
            let mut row = vec![if number == 0 { cut(&way.label) } else { String::new() }];
            row.extend(cells(class));
            row.push(match number {
                0 => percent(way.utilisation.as_ref()),
                _ => String::new(),
            });
            rows.push(row);
        }
    }
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "{cell:width$}"),
                1 => write!(line, "  {cell:width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let (seeds, runs) =
        (summary.seeds.len(), if summary.seeds.len() == 1 { "run" } else { "runs" });
    let (duration, warm_up) = (summary.duration_s, summary.warm_up_s);
    let _ = writeln!(
        text,
        "\n{seeds} {runs} of {duration} s for each way, the first {warm_up} s not counted."
    );
    let _ = writeln!(text, "{NOTE}");
    text.push_str(&untested(summary));
    text
}

/// Says under which ways the link was full too rarely for shares to mean anything, one
/// reason after the other.
fn untested(summary: &Summary) -> String {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for way in summary.ways.iter().filter(|way| way.classes.len() > 1) {
        let Some(untested) = way.untested() else { continue };
        let reason = untested.to_string();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, ways)) => ways.push(&way.label),
            None => reasons.push((reason, vec![&way.label])),
        }
    }
    let line = |(reason, ways): &(String, Vec<&str>)| {
        wrapped(&format!("shares not tested, since {reason}: {}", ways.join(", ")))
    };
    reasons.iter().map(line).collect()
}

/// `text` in lines of at most [`WIDTH`] columns.
fn wrapped(text: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let columns = word.chars().count();
        if width > 0 {
            let fits = width + 1 + columns <= WIDTH;
            lines.push(if fits { ' ' } else { '\n' });
            width = if fits { width + 1 } else { 0 };
        }
        lines.push_str(word);
        width += columns;
    }
    lines.push('\n');
    lines
}

fn cells(class: &Class) -> Vec<String> {
    let failed = class.counts.failed() as f64 * 1e3 / class.counts.asked.max(1) as f64;
    let mut cells = vec![cut(&class.name), class.weight.to_string(), percent(class.share.as_ref())];
    let times = [
        &class.response_mean_s,
        &class.response_p50_s,
        &class.response_p95_s,
        &class.response_p99_s,
        &class.small_p50_s,
    ];
    cells.extend(times.map(|time| seconds(time.as_ref())));
    cells.push(format!("{failed:.1}"));
    cells
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}~", &name[..end]),
        None => name.into(),
    }
}

fn percent(share: Option<&Sample>) -> String {
    share.map_or("-".into(), |share| format!("{:.1}%", share.estimate().value * 1e2))
}

fn seconds(time: Option<&Sample>) -> String {
    match time.map(|time| time.estimate().value) {
        None => "-".into(),
        Some(seconds) if seconds >= 99.95 => format!("{seconds:.0}"),
        Some(seconds) if seconds >= 9.995 => format!("{seconds:.1}"),
        Some(seconds) => format!("{seconds:.2}"),
    }
}
