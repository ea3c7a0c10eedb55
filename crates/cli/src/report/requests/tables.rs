//! The tables of a gateway's report: all measures side by side, and how requests
//! ended.

use tidegate_study::Estimate;

use super::{Results, classes, of_class};
use crate::gateways::summary::{Class, Counts, Measures, Summary, Way};
use crate::report::markup::Element;
use crate::report::number::{Quantity, count, short};
use crate::report::page::capitalised;
use crate::report::summary::Better;
use crate::report::tables::{Folded, Measure, Table, cell, columns, row_name, side_by_side};

/// Every measure in a row, every way in a column.
pub(super) fn main(results: Results) -> Element {
    use Better::Lower;
    use Quantity::{Rate, Share, Time};
    let Results { summary, standard, .. } = results;
    let measure = |name: &str, quantity, better, values| Measure {
        name: name.into(),
        quantity,
        better,
        values,
    };
    let of_ways = |of: &dyn Fn(&Way) -> Option<Estimate>| summary.ways.iter().map(of).collect();
    let mut groups = vec![(
        "All classes".to_string(),
        vec![
            measure("Small responses, median", Time, Some(Lower), of_ways(&|it| it.small_p50_s)),
            measure("Link used", Share, None, of_ways(&|it| it.utilisation)),
            measure(
                "Time in the provider’s queue, 95th percentile",
                Time,
                Some(Lower),
                of_ways(&|it| it.queueing_p95_s),
            ),
        ],
    )];
    for (place, name) in classes(summary) {
        let weight = summary.ways[0].classes[place].weight;
        let [by_class, by_user] =
            [&standard.by_class, &standard.by_user].map(|due| short(Quantity::Share, due[place]));
        let due = if standard.is_one() {
            format!("{by_class} by weight")
        } else {
            format!("{by_class} by the weights of classes, {by_user} by those of users")
        };
        let row = |name, quantity, better, of: &dyn Fn(&Measures<_>) -> Option<Estimate>| {
            measure(name, quantity, better, of_class(summary, place, of))
        };
        groups.push((
            format!("‘{name}’, weight {weight}: {due}"),
            vec![
                row("Share", Share, None, &|it| it.share),
                row("Throughput", Rate, None, &|it| it.throughput_bps),
                row("Small responses, median", Time, Some(Lower), &|it| it.small_p50_s),
                row("Response time, mean", Time, Some(Lower), &|it| it.response_mean_s),
                row("Response time, median", Time, Some(Lower), &|it| it.response_p50_s),
                row("Response time, 95th percentile", Time, Some(Lower), &|it| it.response_p95_s),
                row("Response time, 99th percentile", Time, Some(Lower), &|it| it.response_p99_s),
            ],
        ));
    }
    let labels: Vec<_> = summary.ways.iter().map(|way| way.label.as_str()).collect();
    side_by_side(&labels, summary.seeds.len(), groups)
}

/// How the requests of each class ended under each way.
pub(super) fn endings(summary: &Summary) -> Folded {
    let cells = |class: &Class| class.counts.each().map(|number| cell(count(number)));
    let groups = classes(summary).map(|(place, name)| {
        let row = |(style, way): (usize, &Way)| {
            let head = std::iter::once(row_name(style, &way.label));
            head.chain(way.classes.get(place).into_iter().flat_map(cells)).collect()
        };
        (format!("‘{name}’"), summary.ways.iter().enumerate().map(row).collect())
    });
    let names = Counts::NAMES.map(capitalised);
    let heading: Vec<_> = std::iter::once("").chain(names.iter().map(String::as_str)).collect();
    let table = Table {
        id: "table-endings",
        note: "Requests of all seeds together.".into(),
        columns: columns(&heading),
        groups: groups.collect(),
    };
    Folded { title: "Requests by class", table: table.html() }
}
