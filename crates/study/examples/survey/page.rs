//! The page and the table.

use std::error::Error;

use super::DISCIPLINES;
use super::figures::{CaseResult, FIGURES, Figure};

/// Everything as Markdown: who wins how often, then the figures of each case.
pub(crate) fn markdown(results: &[CaseResult], seeds: u64) -> String {
    let mut text = format!(
        "# The survey, in numbers\n\n\
         Made by `cargo run --release -p tidegate-study --example survey -- docs/comparison {seeds}`. \
         What it means is in [comparison.md](../comparison.md); every figure with its interval is \
         in [survey.csv](survey.csv).\n\n\
         Each case runs with {seeds} seeds under each discipline, with the same arrivals. A \
         discipline wins a case when none is better: its difference to the best mean, seed by \
         seed, either cannot be told from nothing (95%) or is too small to matter. Several can \
         win.\n\n| figure | differences up to this do not matter |\n| --- | ---: |\n{}",
        FIGURES.iter().map(matters).collect::<String>()
    );
    text.push_str("\n## Wins\n\n");
    text.push_str(&wins(results));
    let mut groups: Vec<&str> = Vec::new();
    for result in results {
        if !groups.contains(&result.group) {
            groups.push(result.group);
        }
    }
    for group in groups {
        text.push_str(&format!("\n## {group}\n"));
        for result in results.iter().filter(|result| result.group == group) {
            text.push_str(&format!("\n### {}\n\n{}", result.name, table(result)));
        }
    }
    text
}

fn matters(figure: &Figure) -> String {
    format!("| {} | {} |\n", figure.name, number(figure.matters, figure))
}

/// For each figure, how many cases each discipline wins.
fn wins(results: &[CaseResult]) -> String {
    let mut text = head("figure (cases)", DISCIPLINES.iter().copied());
    for (index, figure) in FIGURES.iter().enumerate() {
        let cases: Vec<_> =
            results.iter().map(|result| result.winners(index)).filter(|w| !w.is_empty()).collect();
        let count = |discipline: usize| {
            let won = cases.iter().filter(|winners| winners.contains(&discipline)).count();
            won.to_string()
        };
        let counts: Vec<_> = (0..DISCIPLINES.len()).map(count).collect();
        text.push_str(&format!("| {} ({}) | {} |\n", figure.name, cases.len(), counts.join(" | ")));
    }
    text
}

/// The figures of a case; winners are bold.
fn table(result: &CaseResult) -> String {
    let shown: Vec<usize> =
        (0..FIGURES.len()).filter(|index| !result.winners(*index).is_empty()).collect();
    let titles = shown.iter().map(|index| FIGURES[*index].name);
    let mut text = head("", titles);
    for (discipline, name) in DISCIPLINES.iter().enumerate() {
        let cells: Vec<_> = shown.iter().map(|index| cell(result, discipline, *index)).collect();
        text.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
    text
}

fn cell(result: &CaseResult, discipline: usize, index: usize) -> String {
    let Some(estimate) = result.estimate(discipline, index) else { return "-".into() };
    let text = number(estimate.mean, &FIGURES[index]);
    if result.winners(index).contains(&discipline) { format!("**{text}**") } else { text }
}

fn number(value: f64, figure: &Figure) -> String {
    let value = value * figure.scale;
    let places = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let unit = if figure.unit.is_empty() { String::new() } else { format!(" {}", figure.unit) };
    format!("{value:.places$}{unit}")
}

fn head<'a>(first: &str, titles: impl Iterator<Item = &'a str>) -> String {
    let titles: Vec<_> = titles.collect();
    let rule = vec!["---:"; titles.len()].join(" | ");
    format!("| {first} | {} |\n| --- | {rule} |\n", titles.join(" | "))
}

/// One line for each case, discipline and figure.
pub(crate) fn csv(results: &[CaseResult]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let columns = ["group", "case", "discipline", "figure", "mean", "half_width", "seeds", "wins"];
    writer.write_record(columns)?;
    for result in results {
        for (discipline, name) in DISCIPLINES.iter().enumerate() {
            for (index, figure) in FIGURES.iter().enumerate() {
                let Some(estimate) = result.estimate(discipline, index) else { continue };
                let half = estimate.half_width.map_or(String::new(), |half| format!("{half:.6e}"));
                writer.write_record([
                    result.group,
                    &result.name,
                    name,
                    figure.column,
                    &format!("{:.6e}", estimate.mean),
                    &half,
                    &estimate.runs.to_string(),
                    &result.winners(index).contains(&discipline).to_string(),
                ])?;
            }
        }
    }
    Ok(writer.into_inner()?)
}
