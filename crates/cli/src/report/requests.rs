//! The report of `tidegate requests compare`: ways of sharing a gateway's link.
//!
//! Principles. Those of the report on disciplines, whose parts this report
//! uses: the finding in words, then figures, then their numbers, and at the end
//! how to obtain them again. A way has the same place, colour, dashes and
//! marker everywhere. The report says nothing of a way that its results do not
//! show.

mod figures;
mod finding;
mod tables;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use tidegate_study::Sample;
use tidegate_study::requests::{Class, Standard, Summary};

use super::Provenance;
use super::figures::Figure;
use super::markup::element;
use super::page;

/// What the report is about.
#[derive(Clone, Copy)]
pub(crate) struct Results<'a> {
    /// What came out.
    pub(crate) summary: &'a Summary,
    /// What they are compared with.
    pub(crate) standard: &'a Standard,
    /// What was run.
    pub(crate) provenance: &'a Provenance,
}

/// What the words of this report mean.
const DEFINITIONS: [(&str, &str); 8] = [
    (
        "Response time",
        "From the first packet of a request to the last byte of its response at the user. Only \
         answered requests have one; requests that began during the warm-up are left out.",
    ),
    ("Small responses", "Those below 10 kB: a page's text, an icon."),
    (
        "Weight",
        "The weight in the file. A way applies it either to the class or to each of its active \
         users. Weights divide a full link among the classes that ask for their share.",
    ),
    (
        "Share by weight",
        "A class's weight divided by the sum of all weights. Where weights are those of users, \
         each is first multiplied by the average number of users present.",
    ),
    ("Share", "Each class's share of the payload that all classes received."),
    (
        "How requests end",
        "A request is answered, refused by the gateway, broken with its connection, reset by the \
         server, stalled until somebody's patience ran out, abandoned by a user who left, or \
         unfinished at the end of the run.",
    ),
    ("Link used", "The share of the access link's rate that was in use after the warm-up."),
    (
        "Interval",
        "95% confidence interval over seeds: of a mean by Student's distribution; of a median \
         between two values of runs, which holds whatever their distribution and needs six seeds. \
         Quantiles, largest values and ratios have medians, since one run can carry their mean \
         anywhere. Every way meets the same demand with the same seed, so \
         differences are taken seed by seed.",
    ),
];

/// Writes `report.html` and `plots/*.svg` into `directory`, which is created if it does not exist.
pub(crate) fn write(directory: &Path, results: Results) -> io::Result<()> {
    let figures = figures::all(results);
    super::write_page(directory, &html(results, &figures), &figures)
}

/// The whole file.
fn html(results: Results, figures: &[Figure]) -> String {
    let Results { summary, provenance, .. } = results;
    let labels: Vec<_> = summary.ways.iter().map(|way| format!("‘{}’", way.label)).collect();
    let times = [summary.duration_s, summary.warm_up_s];
    let header = page::header(
        &summary.title,
        &summary.description,
        [
            page::network(provenance),
            page::ran(summary.seeds.len(), times, &labels, ["way", "ways"]),
        ],
        page::notices(
            summary.partial.then(|| summary.ways.iter().map(|way| way.runs).sum()),
            summary.seeds.len(),
            labels.len(),
            "ways",
            false,
        ),
        &[
            ("summary", "Summary"),
            ("figures", "Figures"),
            ("main-figures", "Numbers"),
            ("tables", "How requests ended"),
            ("reproduce", "How to reproduce"),
        ],
    );
    let definitions = DEFINITIONS.map(|(word, meaning)| (word.into(), meaning.into()));
    let (finding, mentions) = finding::section(results, figures);
    let main = element("main")
        .child(finding)
        .child(page::all_figures(figures, &mentions))
        .child(page::main_table("Numbers", tables::main(results)))
        .child(page::all_tables("How requests ended", vec![tables::endings(summary)]))
        .child(page::reproduction(&summary.seeds, provenance, "File of the gateway", definitions));
    page::document(&summary.title, element("body").child(header).child(main))
}

/// The classes, each with its place; they are the same under every way.
fn classes(summary: &Summary) -> impl Iterator<Item = (usize, &str)> {
    let first = summary.ways.first().map_or(&[][..], |way| &way.classes);
    first.iter().enumerate().map(|(place, class)| (place, class.name.as_str()))
}

/// What `of` finds of a class under each way.
fn of_class(
    summary: &Summary,
    place: usize,
    of: impl Fn(&Class) -> Option<&Sample>,
) -> Vec<Option<&Sample>> {
    summary.ways.iter().map(|way| way.classes.get(place).and_then(&of)).collect()
}
