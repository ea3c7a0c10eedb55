//! The figures: what is drawn from a comparison, and how to read it.
//!
//! A discipline has the same position in every figure, and so the same colour,
//! dashes and marker. A figure that could have been drawn but has no data says
//! so and is not left out; a figure that the traffic cannot have is not
//! mentioned.

pub(super) mod distributions;
mod series;
pub(super) mod shares;

use tidegate_study::comparison::{Comparison, LinkResult, TrafficResult};

use super::number::Quantity;
use super::plot::{Axis, Drawing, Key, Line, LineChart};

/// A figure with its title, caption and description.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// Stem of ids and name of its file.
    pub(super) id: String,
    pub(super) title: String,
    /// How to read it.
    pub(super) caption: String,
    /// What it shows, for readers who cannot see it.
    pub(super) description: String,
    /// The id of the table with its numbers.
    pub(super) table: Option<&'static str>,
    /// The plot, or why there is none.
    pub(super) plot: Result<Drawing, String>,
}

/// All figures, in their order.
pub(super) fn all(comparison: &Comparison) -> Vec<Figure> {
    let mut figures = Vec::new();
    let sources = || comparison.disciplines.iter().flat_map(|discipline| &discipline.traffic);
    let only_datagrams = sources().next().is_some() && sources().all(|source| source.datagrams);
    let started: u64 = comparison.disciplines.iter().map(|d| d.all.started).sum();
    let endless = sources().any(|source| source.started > 0) && started == 0;
    if !(only_datagrams || endless) {
        figures.push(response_by_size(comparison));
        figures.push(distributions::short_transfers(comparison));
    }
    figures.extend(distributions::page_loads(comparison));
    figures.extend(shares::throughput(comparison));
    figures.extend(shares::loss(comparison));
    figures.extend(series::queues(comparison));
    figures.extend(series::flow_tables(comparison));
    figures.extend(series::followed(comparison));
    figures.extend(shares::fairness(comparison));
    figures.extend(distributions::delays(comparison));
    figures.extend(distributions::delay_percentiles(comparison));
    figures.extend(shares::utilisation(comparison));
    distinct(&mut figures);
    figures
}

/// Makes the ids of figures differ if their links or sources have nearly the same
/// name.
pub(super) fn distinct(figures: &mut [Figure]) {
    for index in 1..figures.len() {
        let (before, rest) = figures.split_at_mut(index);
        let taken = |id: &str| before.iter().any(|figure| figure.id == id);
        let stem = rest[0].id.clone();
        let mut number = 2;
        while taken(&rest[0].id) {
            rest[0].id = format!("{stem}-{number}");
            number += 1;
        }
    }
}

/// `stem` and the characters of `name` that are safe in file names everywhere.
pub(super) fn id(stem: &str, name: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' }
    };
    let name: String = name.chars().take(40).map(plain).collect();
    format!("{stem}-{}", name.trim_matches('-'))
}

/// The links whose discipline was under test, by their place; all links when none was.
pub(super) fn shown_links(comparison: &Comparison) -> Vec<(usize, &LinkResult)> {
    let links = || comparison.disciplines.iter().take(1).flat_map(|d| d.links.iter().enumerate());
    let tested: Vec<_> = links().filter(|(_, link)| link.tested).collect();
    if tested.is_empty() { links().collect() } else { tested }
}

/// The sources for which `has` is true of any discipline, by their place.
pub(super) fn sources(
    comparison: &Comparison,
    has: impl Fn(&TrafficResult) -> bool,
) -> Vec<(usize, &str)> {
    let Some(first) = comparison.disciplines.first() else { return Vec::new() };
    let any =
        |index: usize| comparison.disciplines.iter().filter_map(|d| d.traffic.get(index)).any(&has);
    let names =
        first.traffic.iter().enumerate().map(|(index, source)| (index, source.name.as_str()));
    names.filter(|(index, _)| any(*index)).collect()
}

/// ` on ‘name’` when there is more than one to tell apart.
fn of_which(preposition: &str, name: &str, count: usize) -> String {
    if count > 1 { format!(" {preposition} ‘{name}’") } else { String::new() }
}

/// Says which of `lines` have no points.
fn not_drawn(lines: &[Line]) -> String {
    let empty: Vec<_> =
        lines.iter().filter(|line| line.points.is_empty()).map(|line| &*line.label).collect();
    if empty.is_empty() {
        return String::new();
    }
    format!(" Not drawn, because there are no data: {}.", empty.join(", "))
}

/// `fifo, las and efd`.
pub(super) fn listed<T: AsRef<str>>(words: &[T]) -> String {
    match words {
        [] => String::new(),
        [only] => only.as_ref().into(),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

fn labels(comparison: &Comparison) -> String {
    let labels: Vec<_> = comparison.disciplines.iter().map(|d| d.label.as_str()).collect();
    listed(&labels)
}

fn response_by_size(comparison: &Comparison) -> Figure {
    let line = |(style, discipline): (usize, &_)| {
        let discipline: &tidegate_study::comparison::DisciplineResult = discipline;
        let points = || {
            let bins = discipline.response_by_size.iter();
            // The middle of a bin, as the logarithmic axis sees it.
            bins.map(|bin| ((bin.from_bytes * bin.to_bytes).sqrt(), &bin.mean_s))
                .filter(|(size, mean)| *size > 0.0 && mean.value > 0.0 && mean.value.is_finite())
        };
        let band = |(size, mean): (f64, &tidegate_study::Estimate)| {
            let (from, to) = mean.ends();
            (size, from, to)
        };
        Line {
            label: discipline.label.clone(),
            style,
            points: points().map(|(size, mean)| (size, mean.value)).collect(),
            band: points().map(band).collect(),
        }
    };
    let lines: Vec<Line> = comparison.disciplines.iter().enumerate().map(line).collect();
    let all = || lines.iter().flat_map(|line| &line.points);
    let sizes = all().map(|(size, _)| *size);
    // An interval may reach far below zero or above everything; the axis
    // follows the means and lets the bands end at its edge.
    let most = all().map(|(_, mean)| *mean).fold(0.0, f64::max);
    let highs = lines.iter().flat_map(|line| &line.band).map(|(_, _, to)| to.min(most * 2.0));
    let times = all().map(|(_, mean)| *mean).chain(highs);
    let chart = LineChart {
        x: Axis::log("Size of the transfer", Quantity::Size, sizes),
        y: Axis::log("Mean response time", Quantity::Time, times),
        key: Key::AtEnds,
        stepped: false,
        lines,
    };
    let caption = format!(
        "Mean response time of finished transfers by their size; both axes are logarithmic. \
         Lower is better. The bands are 95% confidence intervals of the mean over seeds; where \
         two bands overlap, the order is not certain. Transfers that were not finished are not in \
         it; the table by size class counts them.{}",
        not_drawn(&chart.lines)
    );
    let empty = chart.lines.iter().all(|line| line.points.is_empty());
    Figure {
        id: "response-by-size".into(),
        title: "Response time by size".into(),
        caption,
        description: format!("One line for each of {}.", labels(comparison)),
        table: Some("table-sizes"),
        plot: if empty { Err("No transfer finished.".into()) } else { Ok(chart.draw()) },
    }
}
