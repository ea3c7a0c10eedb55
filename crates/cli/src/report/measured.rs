//! The section on what was measured on the link, beside what the simulation gives.

use tidegate_study::comparison::{Beside, Comparison, Figure};
use tidegate_study::verdict::Grade;

use super::markup::{Element, element};
use super::number::short;
use super::page::section;
use super::tables::{Table, cell, column};
use crate::beside::per_cent;

/// Shown where nothing corresponds to what was measured.
const NOTHING: &str = "–";

/// The section; none if nothing was measured.
pub(super) fn measured(comparison: &Comparison) -> Option<Element> {
    let rows = &comparison.beside;
    let first = comparison.disciplines.first().filter(|_| !rows.is_empty())?;
    Some(section("measured", "Measured and simulated").child(table(rows, &first.label).html()))
}

/// A group of rows for each thing that was measured.
fn table(rows: &[Beside], label: &str) -> Table {
    let mut groups: Vec<(String, Vec<Vec<Element>>)> = Vec::new();
    for row in rows {
        if groups.last().is_none_or(|(name, _)| *name != row.name) {
            groups.push((row.name.clone(), Vec::new()));
        }
        let (_, group) = groups.last_mut().expect("one was just added");
        group.push(cells(row));
    }
    Table {
        id: "table-measured",
        name: "Measured and simulated",
        note: format!(
            "What was measured on the link, beside what {label} gives in the simulation. A \
             simulated round trip is the sum of two one-way delays. What load adds is the mean \
             less the delay without load; the grade is of that, each way. The difference is of \
             the simulated figure to the measured one."
        ),
        columns: ["", "Measured", "Simulated", "Difference"].map(column).into(),
        groups,
    }
}

fn cells(row: &Beside) -> Vec<Element> {
    let value = |value: f64| {
        let text = short(row.figure.quantity(), value);
        match row.figure {
            Figure::AddedEachWay => format!("{text}, {}", Grade::of(value)),
            _ => text,
        }
    };
    let difference = row.difference().map(|it| format!("{}%", per_cent(it)));
    vec![
        element("th").with("scope", "row").text(row.figure.words()),
        cell(value(row.measured)),
        cell(row.simulated.map_or(NOTHING.into(), value)),
        cell(difference.unwrap_or_else(|| NOTHING.into())),
    ]
}
