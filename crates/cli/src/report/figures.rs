//! The figures: what is drawn from a comparison, and how to read it.
//!
//! A discipline has the same position in every figure, and so the same colour,
//! dashes and marker. A figure that could have been drawn but has no data says
//! so and is not left out; a figure that the traffic cannot have is not
//! mentioned.

pub(super) mod distributions;
mod series;
pub(super) mod shares;
mod sizes;

use tidegate_study::comparison::{Comparison, LinkResult, TrafficResult};

use super::plot::{Drawing, Line};

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

impl Figure {
    /// The id of its place on the page.
    pub(super) fn anchor(&self) -> String {
        format!("figure-{}", self.id)
    }
}

/// All figures, in their order.
pub(super) fn all(comparison: &Comparison) -> Vec<Figure> {
    let mut figures = Vec::new();
    let sources = || comparison.disciplines.iter().flat_map(|discipline| &discipline.traffic);
    let no_transfers = sources().next().is_some() && !sources().any(TrafficResult::is_transfers);
    let started: u64 = comparison.disciplines.iter().map(|d| d.all.started).sum();
    let endless = sources().any(|source| source.started > 0) && started == 0;
    if !(no_transfers || endless) {
        figures.extend(sizes::response_by_size(comparison));
        figures.push(distributions::short_transfers(comparison));
    }
    figures.extend(distributions::page_loads(comparison));
    figures.extend(distributions::lookups(comparison));
    figures.extend(shares::throughput(comparison));
    figures.extend(shares::loss(comparison));
    figures.extend(series::queues(comparison));
    figures.extend(series::carried(comparison));
    figures.extend(series::flow_tables(comparison));
    figures.extend(series::followed(comparison));
    figures.extend(shares::fairness(comparison));
    figures.extend(distributions::delays(comparison));
    figures.extend(distributions::delay_percentiles(comparison));
    figures.extend(shares::utilisation(comparison));
    distinct(&mut figures);
    figures
}

/// The figures that rounds of a measurement have, without what they say of runs.
pub(super) fn of_rounds(comparison: &Comparison) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(distributions::delay_percentiles(comparison));
    figures.extend(distributions::delays(comparison));
    if comparison.disciplines.iter().any(|it| it.all.started > 0) {
        figures.push(distributions::short_transfers(comparison));
    }
    figures.extend(shares::throughput(comparison));
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

/// `text`, where there are several seeds that it can speak of.
pub(super) fn over_seeds<'a>(comparison: &Comparison, text: &'a str) -> &'a str {
    if comparison.seeds.len() > 1 { text } else { "" }
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
