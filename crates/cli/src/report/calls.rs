//! The section on the calls of a replayed capture: what it shows of each, and what each
//! discipline makes of it.

use tidegate_study::comparison::{Comparison, DisciplineResult};
use tidegate_study::measure::Quantity;

use super::markup::Element;
use super::number::short;
use super::page::section;
use super::tables::{Table, cell, column, row_name};
use crate::calls::{Quality, shown};

/// Shown where nothing arrived.
const NOTHING: &str = "–";

/// The section; none if there was no call.
pub(super) fn calls(comparison: &Comparison) -> Option<Element> {
    let first = comparison.disciplines.first()?;
    let groups = first.traffic.iter().enumerate().filter_map(|(index, source)| {
        let call = source.recorded_call.as_ref()?;
        let row = |(style, discipline): (usize, &DisciplineResult)| {
            let quality = Quality::of(&discipline.traffic[index]);
            let time = |value: Option<f64>| value.map(|it| short(Quantity::Time, it));
            let tenths = |value: Option<f64>| value.map(|it| format!("{it:.1}"));
            let cells = [
                time(quality.delay_median_s),
                time(quality.delay_p95_s),
                quality.loss_ratio.map(|it| short(Quantity::Share, it)),
                tenths(quality.rating),
                tenths(quality.mos),
            ];
            let cells = cells.into_iter().map(|text| cell(text.unwrap_or_else(|| NOTHING.into())));
            std::iter::once(row_name(style, &discipline.label)).chain(cells).collect()
        };
        let rows = comparison.disciplines.iter().enumerate().map(row).collect();
        Some((format!("{}: {}", source.name, shown(call)), rows))
    });
    let groups: Vec<(String, Vec<Vec<Element>>)> = groups.collect();
    if groups.is_empty() {
        return None;
    }
    let columns = ["", "Median delay", "95th percentile", "Lost", "R of 100", "MOS of 4.5"];
    let table = Table {
        id: "table-calls",
        name: "Calls",
        note: "Each direction of each call that the capture shows. R and the mean opinion score \
               (MOS) are those of the E-model for a call with this delay and loss; what was lost \
               before the capture does not count."
            .into(),
        columns: columns.map(column).into(),
        groups,
    };
    Some(section("calls", "Calls").child(table.html()))
}
