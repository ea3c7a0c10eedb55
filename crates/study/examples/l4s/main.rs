//! What DualPI2 and other queues do to senders of low-latency traffic and to those beside
//! them.
//!
//! ```text
//! cargo run --release -p tidegate-study --example l4s -- docs/l4s.md
//! ```
//!
//! writes the tables of that page. Two transfers that never end share a link, each from a
//! server of its own, so that what happens to packets in the queue can be told apart; and a
//! home has pages, a call and a download. Figures are means over seeds, with the least and
//! the largest where one figure is the point.

mod homes;
mod pairs;

use std::error::Error;
use std::fs;

use tidegate_twins::pages;

/// A table, and the heading under which it stands.
type Table = (&'static str, String);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: l4s PAGE")?;
    let mut page = fs::read_to_string(&path)?;
    let tables = pairs::tables().into_iter().chain(homes::tables()?);
    for (heading, table) in tables {
        page = pages::with_table(&page, heading, &table);
    }
    fs::write(path, page)?;
    Ok(())
}

/// The lines of a table: its heads, and cells.
fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut text =
        format!("| {} |\n| --- |{}\n", heads.join(" | "), " ---: |".repeat(heads.len() - 1));
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Three digits.
fn digits(value: f64) -> String {
    match value {
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
