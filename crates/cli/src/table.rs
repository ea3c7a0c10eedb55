//! The table on the terminal: one row for each discipline, in at most
//! [`WIDTH`] columns, readable without colour.

use std::fmt::Write as _;

use tidegate_sim::metrics::comparison::{Comparison, DisciplineResult};
use tidegate_sim::metrics::statistics::Estimate;

/// Nothing is wider than this.
const WIDTH: usize = 100;
/// Longer labels are cut off.
const LABEL: usize = 20;
/// Between two columns, and between two groups of them.
const GAP: usize = 2;

/// Columns under one heading. What does not fit is left out, the least
/// important first.
struct Group {
    heading: String,
    importance: usize,
    columns: Vec<Column>,
}

struct Column {
    heading: &'static str,
    unit: &'static str,
    cells: Vec<String>,
}

/// What a column holds, in the units of a [`Comparison`].
#[derive(Clone, Copy)]
enum Kind {
    Seconds,
    BitsPerSecond,
    Ratio,
    Count,
}

/// The table of a comparison.
pub(crate) fn of(comparison: &Comparison) -> String {
    let all = groups(comparison);
    let count = all.len();
    let mut kept = all;
    let labels: Vec<String> = comparison.disciplines.iter().map(label).collect();
    let label_width =
        labels.iter().map(|label| label.chars().count()).max().unwrap_or(0).max("discipline".len());
    while label_width + kept.iter().map(|group| GAP + group.width()).sum::<usize>() > WIDTH {
        let Some(least) = (0..kept.len()).max_by_key(|index| kept[*index].importance) else {
            break;
        };
        kept.remove(least);
    }
    let mut text = String::new();
    let state = if comparison.partial { " (PARTIAL: runs are missing)" } else { "" };
    let _ = writeln!(text, "{}{state}\n", comparison.title);
    heading(&mut text, &kept, label_width);
    for (row, label) in labels.iter().enumerate() {
        let mut line = format!("{label:label_width$}");
        for group in &kept {
            group.cells(&mut line, |column| &column.cells[row]);
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    notes(&mut text, comparison, kept.len() < count);
    text
}

fn label(discipline: &DisciplineResult) -> String {
    let label = &discipline.label;
    if label.chars().count() <= LABEL {
        return label.clone();
    }
    label.chars().take(LABEL - 1).chain(['~']).collect()
}

fn heading(text: &mut String, groups: &[Group], label_width: usize) {
    let mut lines = [String::new(), String::new(), String::new()];
    for (line, title) in lines.iter_mut().zip(["", "discipline", ""]) {
        let _ = write!(line, "{title:label_width$}");
    }
    for group in groups {
        let _ = write!(lines[0], "{:GAP$}{:>width$}", "", group.heading, width = group.width());
        group.cells(&mut lines[1], |column| column.heading);
        group.cells(&mut lines[2], |column| column.unit);
    }
    for line in lines {
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn notes(text: &mut String, comparison: &Comparison, left_out: bool) {
    let runs = comparison.disciplines.iter().map(|discipline| discipline.runs);
    if runs.clone().max().unwrap_or(0) > 1 {
        let seeds = comparison.seeds.len();
        let _ = writeln!(text, "\n± is the 95% confidence interval over {seeds} seeds.");
    }
    if left_out {
        let _ = writeln!(text, "More columns are in the report.");
    }
}

impl Group {
    fn width(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::width).sum();
        let gaps = GAP * (self.columns.len() - 1);
        (columns + gaps).max(self.heading.chars().count())
    }

    /// Appends one cell of each column, right-aligned.
    fn cells<'a>(&'a self, line: &mut String, cell: impl Fn(&'a Column) -> &'a str) {
        let columns: usize = self.columns.iter().map(|column| GAP + column.width()).sum();
        let _ = write!(line, "{:width$}", "", width = self.width() + GAP - columns);
        for column in &self.columns {
            let _ = write!(line, "{:GAP$}{:>width$}", "", cell(column), width = column.width());
        }
    }
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.heading.len(), self.unit.len()]).max().unwrap_or(0)
    }

    /// Reads one estimate of each discipline; `None` when nobody has one.
    fn of(
        comparison: &Comparison,
        heading: &'static str,
        kind: Kind,
        value: impl Fn(&DisciplineResult) -> Option<Estimate>,
    ) -> Option<Column> {
        let estimates: Vec<_> = comparison.disciplines.iter().map(value).collect();
        let means = || estimates.iter().flatten().map(|estimate| estimate.mean);
        means().next()?;
        let (unit, factor) =
            kind.unit(means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
        let cells = estimates.iter().map(|estimate| {
            estimate.map_or_else(|| "-".into(), |estimate| kind.cell(estimate, factor))
        });
        Some(Column { heading, unit, cells: cells.collect() })
    }
}

impl Kind {
    /// One unit for the whole column, in which the smallest is still visible.
    fn unit(self, least: f64, most: f64) -> (&'static str, f64) {
        match self {
            Kind::Seconds if least < 0.1 || most < 1.0 => ("ms", 1e3),
            Kind::Seconds => ("s", 1.0),
            Kind::BitsPerSecond if most < 1e6 => ("kbit/s", 1e-3),
            Kind::BitsPerSecond => ("Mbit/s", 1e-6),
            Kind::Ratio => ("%", 100.0),
            Kind::Count => ("", 1.0),
        }
    }

    fn cell(self, estimate: Estimate, factor: f64) -> String {
        let mean = estimate.mean * factor;
        let decimals = match (self, mean) {
            (Kind::Count, _) => 0,
            (_, mean) if mean >= 100.0 => 0,
            (_, mean) if mean >= 10.0 => 1,
            _ => 2,
        };
        match (self, estimate.half_width) {
            (Kind::Seconds | Kind::BitsPerSecond, Some(half)) => {
                format!("{mean:.decimals$} ±{:.decimals$}", half * factor)
            }
            _ => format!("{mean:.decimals$}"),
        }
    }
}

fn groups(comparison: &Comparison) -> Vec<Group> {
    let Some(first) = comparison.disciplines.first() else { return Vec::new() };
    let mut groups = Vec::new();
    let mut add = |heading: String, importance: usize, columns: Vec<Option<Column>>| {
        let columns: Vec<_> = columns.into_iter().flatten().collect();
        if !columns.is_empty() {
            groups.push(Group { heading, importance, columns });
        }
    };
    let short = tidegate_core::Bytes(comparison.short_flow_bytes);
    add(
        format!("flows up to {short}"),
        0,
        vec![
            Column::of(comparison, "mean", Kind::Seconds, |d| d.short.mean_s),
            Column::of(comparison, "median", Kind::Seconds, |d| d.short.median_s),
            Column::of(comparison, "p95", Kind::Seconds, |d| d.short.p95_s),
        ],
    );
    for (index, source) in first.traffic.iter().enumerate().filter(|(_, s)| s.datagrams) {
        add(
            source.name.clone(),
            1 + 10 * index,
            vec![
                Column::of(comparison, "delay p95", Kind::Seconds, |d| {
                    d.traffic[index].delay.p95_s
                }),
                Column::of(comparison, "lost", Kind::Ratio, |d| d.traffic[index].loss_ratio),
            ],
        );
    }
    for (index, source) in first.traffic.iter().enumerate().filter(|(_, s)| !s.datagrams) {
        let goodput = Column::of(comparison, "goodput", Kind::BitsPerSecond, |d| {
            d.traffic[index].long_goodput_bps
        });
        add(format!("{} (long)", source.name), 3 + 10 * index, vec![goodput]);
    }
    for (place, index) in busiest_first(first).into_iter().enumerate() {
        add(
            first.links[index].name.clone(),
            2 + 100 * place,
            vec![
                Column::of(comparison, "used", Kind::Ratio, |d| d.links[index].utilisation),
                Column::of(comparison, "lost", Kind::Ratio, |d| d.links[index].loss_ratio),
                Column::of(comparison, "flows", Kind::Count, |d| {
                    Estimate::of([d.links[index].flows_peak as f64])
                }),
            ],
        );
    }
    groups
}

/// The tested links, the busiest first.
fn busiest_first(discipline: &DisciplineResult) -> Vec<usize> {
    let used = |index: &usize| discipline.links[*index].utilisation.map_or(0.0, |used| used.mean);
    let mut tested: Vec<_> =
        (0..discipline.links.len()).filter(|index| discipline.links[*index].tested).collect();
    tested.sort_by(|one, other| used(other).total_cmp(&used(one)));
    tested
}
