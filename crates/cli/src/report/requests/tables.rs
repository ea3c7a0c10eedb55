//! The tables of a gateway's report: all measures side by side, and how requests
//! ended.

use tidegate_study::requests::{Class, Summary, Way};

use super::{Results, classes};
use crate::report::markup::Element;
use crate::report::number::{Quantity, short};
use crate::report::tables::{Table, cells, headings, headlines, row_name, side_by_side};

/// Every measure in a row, every way in a column.
pub(super) fn main(results: Results) -> Element {
    let Results { summary, standard, .. } = results;
    let ways = || summary.ways.iter();
    let mut groups =
        vec![("All classes".to_string(), headlines(Way::MEASURES, |_| true, || ways().map(Some)))];
    for (place, name) in classes(summary) {
        let weight = summary.ways[0].classes[place].weight;
        let [by_class, by_user] =
            [&standard.by_class, &standard.by_user].map(|due| short(Quantity::Share, due[place]));
        let due = if standard.is_one() {
            format!("{by_class} by weight")
        } else {
            format!("{by_class} by the weights of classes, {by_user} by the weights of users")
        };
        let class = || ways().map(move |way| way.classes.get(place));
        groups.push((
            format!("‘{name}’, weight {weight}: {due}"),
            headlines(Class::MEASURES, |_| true, class),
        ));
    }
    let labels: Vec<_> = summary.ways.iter().map(|way| way.label.as_str()).collect();
    side_by_side(&labels, summary.seeds.len(), groups)
}

/// How the requests of each class ended under each way.
pub(super) fn endings(summary: &Summary) -> Table {
    let cells = |class: &Class| cells(Class::MEASURES, Class::ENDINGS, class);
    let groups = classes(summary).map(|(place, name)| {
        let row = |(style, way): (usize, &Way)| {
            let head = std::iter::once(row_name(style, &way.label));
            head.chain(way.classes.get(place).into_iter().flat_map(cells)).collect()
        };
        (format!("‘{name}’"), summary.ways.iter().enumerate().map(row).collect())
    });
    Table {
        id: "table-endings",
        name: Class::ENDINGS,
        note: "Requests in all seeds together.".into(),
        columns: headings(Class::MEASURES, Class::ENDINGS),
        groups: groups.collect(),
    }
}
