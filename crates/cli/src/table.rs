//! The table on the terminal: one row for each discipline, as wide as the reader has
//! room for, readable without colour.
//!
//! What is most important comes first into the room that there is, and a wide terminal has
//! room for all. With less than [`WIDTH`] columns, medians stand without their intervals,
//! which are the widest cells.

use std::fmt::Write as _;

use tidegate_sim::scenario::MOST_OPEN;
use tidegate_study::comparison::{
    ClassResult, Comparison, DisciplineResult, LinkResult, RatioResult, TrafficResult,
};
use tidegate_study::measure::{Measure, Quantity, Value};
use tidegate_study::{Centre, Estimate, Sample};

/// From this width on, everything that has an interval shows it; also the width of a table
/// where there is no terminal, and the most of its notes, which nobody reads wider.
pub(crate) const WIDTH: usize = 100;
/// Longer labels are cut off.
const LABEL: usize = 20;
/// The heading over calls and replays together.
const DATAGRAMS: &str = "datagrams";
/// The heading over what all flows of a source carry together.
const THROUGHPUT: &str = "throughput";
/// Between two columns, and between two groups of them.
const GAP: usize = 2;

/// Columns under one heading. Those that do not fit beside more important ones are left out.
struct Group {
    heading: String,
    importance: usize,
    columns: Vec<Column>,
}

struct Column {
    heading: String,
    unit: &'static str,
    cells: Vec<String>,
    /// Whether these are medians with their intervals.
    medians: bool,
}

/// A column before it is written: a value of each discipline.
struct Values {
    heading: String,
    quantity: Quantity,
    /// Whether these are numbers of things, without a fraction.
    whole: bool,
    /// Whether intervals are shown.
    interval: bool,
    of: Vec<Option<Estimate>>,
}

/// What was compared, over everything that is printed about it.
pub(crate) fn title(comparison: &Comparison) -> String {
    let state = if comparison.partial { " (PARTIAL: runs are missing)" } else { "" };
    format!("{}{state}\n\n", comparison.title)
}

/// The table of a comparison in at most `width` columns; the label and the most important
/// group are there in any case.
pub(crate) fn of(comparison: &Comparison, width: usize) -> String {
    let all = groups(comparison, width >= WIDTH);
    let count = all.len();
    let labels: Vec<String> = comparison.disciplines.iter().map(label).collect();
    let label_width =
        labels.iter().map(|label| label.chars().count()).max().unwrap_or(0).max("discipline".len());
    let kept = fitting(all, width.saturating_sub(label_width));
    let mut text = String::new();
    heading(&mut text, &kept, label_width);
    for (row, label) in labels.iter().enumerate() {
        let mut line = format!("{label:label_width$}");
        for group in &kept {
            group.cells(&mut line, |column| &column.cells[row]);
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    notes(&mut text, comparison, &kept, kept.len() < count, width.min(WIDTH));
    text
}

/// The groups that have room in `width` columns, in their order: the most important one,
/// and each next one that still fits.
fn fitting(groups: Vec<Group>, width: usize) -> Vec<Group> {
    let mut by_importance: Vec<usize> = (0..groups.len()).collect();
    by_importance.sort_by_key(|index| groups[*index].importance);
    let mut left = width;
    let mut fits = vec![false; groups.len()];
    for (place, index) in by_importance.into_iter().enumerate() {
        let needed = GAP + groups[index].width();
        fits[index] = place == 0 || needed <= left;
        if fits[index] {
            left = left.saturating_sub(needed);
        }
    }
    std::iter::zip(groups, fits).filter_map(|(group, fits)| fits.then_some(group)).collect()
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
        group.cells(&mut lines[1], |column| &column.heading);
        group.cells(&mut lines[2], |column| column.unit);
    }
    for line in lines {
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn notes(
    text: &mut String,
    comparison: &Comparison,
    groups: &[Group],
    left_out: bool,
    width: usize,
) {
    let shows = |heading| {
        groups.iter().flat_map(|group| &group.columns).any(|column| column.heading == heading)
    };
    let mut notes = Vec::new();
    if comparison.waited > 0 {
        let waited = comparison.waited;
        notes.push(format!("Transfers that waited because {MOST_OPEN} were open: {waited}."));
    }
    if comparison.disciplines.iter().any(|discipline| discipline.runs > 1) {
        let seeds = comparison.seeds.len();
        let least = Centre::Median.least_runs();
        let medians = groups.iter().flat_map(|group| &group.columns).any(|column| column.medians);
        let of_medians = match medians {
            true if seeds < least => format!("; that of a median (p95) needs {least}"),
            true => ", (a-b) that of a median".into(),
            false => String::new(),
        };
        notes.push(format!("± is the 95% interval of a mean over {seeds} seeds{of_medians}."));
    }
    if groups.iter().any(|group| group.heading == DATAGRAMS) {
        let late = if shows("late") { "delay, loss and lateness" } else { "delay and loss" };
        notes.push(format!("Datagrams: {late} of the worst source."));
    }
    if shows("failed") {
        notes.push("Lookups: until the answer, or until the host gives up.".into());
    }
    if shows("goodput") {
        let long = tidegate_core::Bytes(comparison.long_flow_bytes);
        notes.push(format!("Goodput: of flows from {long} on."));
    }
    if let (true, Some(ratio)) = (shows("ratio"), ratio(comparison)) {
        notes.push(format!("Ratio: {} over {}.", ratio.of, ratio.over));
    }
    if shows("flows") {
        notes.push("Flows: most tracked at once.".into());
    }
    if left_out {
        notes.push("Some columns did not fit and are in the report.".into());
    }
    let _ = writeln!(text);
    let mut line = String::new();
    // A note that fits starts no line in the middle of another one.
    let fits = |line: &str, more: &str| line.chars().count() + 1 + more.chars().count() <= width;
    for note in notes {
        if !line.is_empty() && !fits(&line, &note) {
            let _ = writeln!(text, "{line}");
            line.clear();
        }
        for word in note.split(' ') {
            if !line.is_empty() && !fits(&line, word) {
                let _ = writeln!(text, "{line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    let _ = writeln!(text, "{line}");
}

/// The ratio of a comparison with one.
fn ratio(comparison: &Comparison) -> Option<&RatioResult> {
    comparison.disciplines.first()?.ratios.first()
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
        cells.chain([self.heading.chars().count(), self.unit.len()]).max().unwrap_or(0)
    }
}

impl Values {
    /// A measure of what `of` finds of each discipline.
    fn of<R>(
        comparison: &Comparison,
        heading: &str,
        measure: &Measure<R>,
        of: impl Fn(&DisciplineResult) -> &R,
    ) -> Values {
        let values = comparison.disciplines.iter().map(|it| (measure.value)(of(it)));
        let values: Vec<_> = values.collect();
        Values {
            heading: heading.into(),
            quantity: measure.quantity,
            whole: values.iter().any(|value| value.count().is_some()),
            interval: true,
            of: values.into_iter().map(estimate).collect(),
        }
    }

    /// The largest value of any call or replay.
    fn worst(comparison: &Comparison, heading: &str, name: &str) -> Values {
        let measure = Measure::named(TrafficResult::MEASURES, name);
        let worst = |discipline: &DisciplineResult| {
            let sources = discipline.traffic.iter().filter(|source| source.datagrams);
            let values = sources.filter_map(|source| estimate((measure.value)(source)));
            values.max_by(|one, other| one.value.total_cmp(&other.value))
        };
        Values {
            heading: heading.into(),
            quantity: measure.quantity,
            whole: false,
            interval: true,
            of: comparison.disciplines.iter().map(worst).collect(),
        }
    }

    fn without_interval(self) -> Values {
        Values { interval: false, ..self }
    }

    fn means(&self) -> impl Iterator<Item = f64> {
        self.of.iter().flatten().map(|estimate| estimate.value)
    }
}

impl Group {
    /// Writes columns; those of one kind in one unit. `None` without any value.
    fn of(heading: String, importance: usize, columns: &[Values]) -> Option<Group> {
        columns.iter().flat_map(Values::means).next()?;
        let column = |values: &Values| {
            let alike = columns.iter().filter(|other| other.quantity == values.quantity);
            let (unit, factor) = unit(values.quantity, alike.flat_map(Values::means));
            let cell = |estimate: &Option<Estimate>| match estimate {
                Some(estimate) => values.cell(*estimate, factor),
                None => "-".into(),
            };
            Column {
                heading: values.heading.clone(),
                unit,
                cells: values.of.iter().map(cell).collect(),
                medians: values.interval
                    && values.of.iter().flatten().any(|it| it.centre == Centre::Median),
            }
        };
        let columns = columns.iter().map(column).collect();
        Some(Group { heading, importance, columns })
    }
}

/// A unit in which the smallest of `values` is still visible, and how many of
/// it make one of the quantity's first unit.
fn unit(quantity: Quantity, values: impl Iterator<Item = f64>) -> (&'static str, f64) {
    let (least, most) =
        values.fold((f64::INFINITY, 0.0_f64), |(a, b), value| (a.min(value), b.max(value)));
    match quantity {
        Quantity::Time if least < 0.1 || (least < 1.0 && most < 10.0) => ("ms", 1e3),
        Quantity::Time => ("s", 1.0),
        Quantity::Rate if most < 1e6 => ("kbit/s", 1e-3),
        Quantity::Rate => ("Mbit/s", 1e-6),
        Quantity::Size => ("kB", 1e-3),
        Quantity::Share => ("%", 100.0),
        Quantity::Plain => ("", 1.0),
    }
}

impl Values {
    fn cell(&self, estimate: Estimate, factor: f64) -> String {
        let value = estimate.value * factor;
        let decimals = match value {
            _ if self.whole => 0,
            value if value >= 100.0 => 0,
            value if value >= 10.0 => 1,
            _ => 2,
        };
        if self.interval { estimate.text(factor, decimals) } else { format!("{value:.decimals$}") }
    }
}

/// A value as a cell shows it: a number of things has no interval.
fn estimate(value: Value<'_>) -> Option<Estimate> {
    let of_count = |count: u64| Estimate::mean([count as f64]);
    value.sample().map(Sample::estimate).or_else(|| value.count().and_then(of_count))
}

/// The groups of columns; with `wide`, medians with their intervals.
fn groups(comparison: &Comparison, wide: bool) -> Vec<Group> {
    let Some(first) = comparison.disciplines.first() else { return Vec::new() };
    let short = tidegate_core::Bytes(comparison.short_flow_bytes);
    let class = |heading, name| {
        let measure = Measure::named(ClassResult::MEASURES, name);
        Values::of(comparison, heading, measure, |it| &it.short)
    };
    // The flows of a capture have a length of their own, whatever the link does.
    let transfers = first.traffic.iter().any(TrafficResult::is_transfers);
    let response = || {
        Group::of(
            format!("flows up to {short}"),
            0,
            &[
                class("mean", "response_mean_s"),
                class("median", "response_median_s").without_interval(),
                class("p95", "response_p95_s").without_interval(),
            ],
        )
    };
    let mut groups = vec![transfers.then(response).flatten()];
    let delay = Values::worst(comparison, "p95", "delay_p95_s");
    let mut datagrams = vec![
        Values { interval: wide, ..delay },
        Values::worst(comparison, "lost", "loss_ratio").without_interval(),
    ];
    if first.traffic.iter().any(|source| source.deadline_s.is_some()) {
        datagrams.push(Values::worst(comparison, "late", "late_ratio").without_interval());
    }
    groups.push(Group::of(DATAGRAMS.into(), 1, &datagrams));
    for (index, source) in first.traffic.iter().enumerate() {
        let of_source = |heading, name| {
            let measure = Measure::named(TrafficResult::MEASURES, name);
            Values::of(comparison, heading, measure, |it| &it.traffic[index])
        };
        if source.datagrams {
            if source.adapts {
                let columns = [of_source("rate", "throughput_bps")];
                groups.push(Group::of(source.name.clone(), 1, &columns));
            }
            continue;
        }
        if source.lookups.is_some() {
            let columns = [
                of_source("mean", "lookup_mean_s"),
                of_source("p95", "lookup_p95_s").without_interval(),
                of_source("failed", "lookups_failed_ratio").without_interval(),
            ];
            groups.push(Group::of(format!("lookups of {}", source.name), 2, &columns));
            continue;
        }
        if source.video.is_some() {
            let columns = [
                of_source("quality", "video_quality_bps"),
                of_source("stalled", "video_stalled_ratio").without_interval(),
                of_source("switches", "video_switches_per_minute").without_interval(),
            ];
            groups.push(Group::of(format!("video {}", source.name), 2, &columns));
            continue;
        }
        groups.push(Group::of(
            source.name.clone(),
            3 + index,
            &[of_source("goodput", "long_goodput_bps")],
        ));
        let columns = [
            of_source("mean", "page_load_mean_s"),
            of_source("p95", "page_load_p95_s").without_interval(),
        ];
        groups.push(Group::of(format!("pages of {}", source.name), 2, &columns));
    }
    groups.push(throughput(comparison, first, wide));
    for (place, index) in busiest_first(first).into_iter().enumerate() {
        let link = |heading, name| {
            let measure = Measure::named(LinkResult::MEASURES, name);
            Values::of(comparison, heading, measure, |it| &it.links[index])
        };
        let columns = [
            link("used", "utilisation_ratio").without_interval(),
            link("lost", "loss_ratio").without_interval(),
            link("flows", "flows_tracked_peak"),
        ];
        let heading = format!("link {}", first.links[index].name);
        groups.push(Group::of(heading, if place == 0 { 100 } else { 1_000 + place }, &columns));
    }
    groups.into_iter().flatten().collect()
}

/// The throughput of each source of transfers, where there are several, and
/// with two of them the ratio: the shared queue decides which of them wins.
fn throughput(comparison: &Comparison, first: &DisciplineResult, wide: bool) -> Option<Group> {
    let throughput = Measure::named(TrafficResult::MEASURES, "throughput_bps");
    let sources = first.traffic.iter().enumerate().filter(|(_, source)| source.is_transfers());
    let mut columns: Vec<Values> = sources
        .map(|(index, source)| {
            Values::of(comparison, &source.name, throughput, |it| &it.traffic[index])
        })
        .collect();
    match &first.ratios[..] {
        [] => return None,
        [_] => {
            let ratio = Values::of(comparison, "ratio", &RatioResult::MEASURE, |it| &it.ratios[0]);
            columns.push(Values { interval: wide, ..ratio });
        }
        _ => {}
    }
    Group::of(THROUGHPUT.into(), 500, &columns)
}

/// The tested links, the busiest first.
fn busiest_first(discipline: &DisciplineResult) -> Vec<usize> {
    let used = |index: &usize| {
        discipline.links[*index].utilisation.as_ref().map_or(0.0, |used| used.estimate().value)
    };
    let mut tested: Vec<_> =
        (0..discipline.links.len()).filter(|index| discipline.links[*index].tested).collect();
    tested.sort_by(|one, other| used(other).total_cmp(&used(one)));
    tested
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, of};
    use crate::report::fixture;

    #[test]
    fn the_table_is_as_wide_as_the_window_and_the_most_important_stays() {
        let comparison = fixture::comparison(8, 10);
        for width in 50..=WIDTH + 150 {
            let table = of(&comparison, width);
            let widest = table.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}:\n{table}");
            assert!(table.contains("flows up to"), "{table}");
        }
        let [narrow, usual, wide, wider] = [80, 100, 140, 220].map(|it| of(&comparison, it));
        assert!(narrow.contains("pages of web"), "{narrow}");
        // A wide window has room for what a narrow one leaves out, and notes stay readable.
        let columns = |text: &str| text.lines().nth(1).unwrap().split_whitespace().count();
        assert!(columns(&usual) < columns(&wide) && columns(&wide) < columns(&wider), "{wider}");
        assert!(usual.contains("did not fit") && !wider.contains("did not fit"), "{wider}");
        let notes = wider.lines().skip_while(|line| !line.is_empty());
        assert!(notes.map(|line| line.chars().count()).max() <= Some(WIDTH), "{wider}");
        // Of a window that nothing fits into, the rows still have their labels.
        assert!(of(&comparison, 5).contains("\nlas"));
    }
}
