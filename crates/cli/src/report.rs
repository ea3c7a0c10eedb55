//! The report of a comparison: one HTML file that needs nothing else, and each of
//! its figures as an SVG file of its own.
//!
//! Principles. The reader of the first screen manages a link and wants to know
//! what to run: the verdict before figures, figures before tables, words on each
//! discipline folded away, and no claim that the intervals do not support. Readers who doubt a figure find its
//! numbers in a table, and at the end the way to obtain them again. The file
//! fetches nothing and runs nothing, so it can be mailed, archived and printed.
//! The same input gives the same bytes.

pub(crate) mod answer;
mod calls;
pub(crate) mod curves;
mod figures;
pub(crate) mod finding;
pub(crate) mod kept;
mod markup;
mod measured;
mod number;
mod page;
mod plot;
pub(crate) mod requests;
pub(crate) mod rounds;
mod summary;
pub(crate) mod sweep;
mod tables;
mod verdict;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::answered::Answered;
use figures::Figure;

/// The name of the file.
pub(crate) const NAME: &str = "report.html";

/// Says at the end of a comparison where its report is.
pub(crate) fn written(runs: usize, took: Duration, directory: &Path) -> String {
    let (seconds, report) = (took.as_secs_f64(), directory.join(NAME));
    format!("\n{runs} runs in {seconds:.1} s. Report: {}\n", report.display())
}

/// What was run, in words for people: everything about a report that is not a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provenance {
    /// Program and version, such as `tidegate 0.1.0`.
    pub(crate) version: String,
    /// The command that makes this report again, as typed in a shell.
    pub(crate) command: String,
    /// Each link that matters, such as `down: 16 Mbit/s, 10 ms, buffer 100 packets`.
    pub(crate) links: Vec<String>,
    /// Each source of traffic, such as `web: 40 transfers/s, Pareto sizes`.
    pub(crate) traffic: Vec<String>,
    /// Label and parameters of each discipline, such as `efd` and `threshold 20 packets`.
    pub(crate) disciplines: Vec<(String, String)>,
    /// Further facts, such as `servers` and where they are.
    pub(crate) other: Vec<(String, String)>,
    /// The scenario file, defaults included.
    pub(crate) scenario: String,
    /// The other files beside the report: name and content.
    pub(crate) files: Vec<(String, String)>,
}

/// Writes `report.html` and `plots/*.svg` into `directory`, which is created if it does not exist.
pub(crate) fn write(
    directory: &Path,
    answered: &Answered,
    provenance: &Provenance,
) -> io::Result<()> {
    let figures = figures::all(&answered.comparison);
    let html = page::html(answered, provenance, &figures);
    write_page(directory, &html, &figures)
}

/// Writes the page and each of its figures.
fn write_page(directory: &Path, html: &str, figures: &[Figure]) -> io::Result<()> {
    let plots = directory.join("plots");
    fs::create_dir_all(&plots)?;
    for figure in figures {
        if let Ok(drawing) = &figure.plot {
            let svg = drawing.stand_alone(&figure.id, &figure.title, &figure.description);
            fs::write(plots.join(format!("{}.svg", figure.id)), svg)?;
        }
    }
    fs::write(directory.join(NAME), html)
}
