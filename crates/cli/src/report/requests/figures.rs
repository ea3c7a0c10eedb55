//! The figures of a gateway's report: small responses, shares, response times.

use tidegate_study::Sample;
use tidegate_study::requests::Summary;

use super::{Results, classes, of_class};
use crate::report::figures::distributions::{dots, dotted};
use crate::report::figures::{Figure, shares};
use crate::report::number::Quantity;
use crate::report::plot::{Row, RowChart};

/// The id of the table with the numbers of all of them.
const TABLE: Option<&str> = Some("table-main");
/// The ids of those that the finding speaks of.
pub(super) const SMALL_RESPONSES: &str = "small-responses";
pub(super) const SHARES: &str = "shares";
const NONE: &str = "none finished";

/// All figures, in their order.
pub(super) fn all(results: Results) -> Vec<Figure> {
    let summary = results.summary;
    let several = classes(summary).count() > 1;
    let shares = several.then(|| shares_of_classes(results)).flatten();
    [small_responses(summary)].into_iter().chain(shares).chain([response_times(summary)]).collect()
}

/// A row for each way, of the values that belong to it.
fn rows(summary: &Summary, values: &[Vec<Option<&Sample>>]) -> Vec<Row> {
    let ways = summary.ways.iter().enumerate();
    ways.map(|(style, way)| {
        let own: Vec<_> =
            values.iter().map(|it| Some(it.get(style).copied()??.estimate())).collect();
        dots(&way.label, style, &own, NONE)
    })
    .collect()
}

fn small_responses(summary: &Summary) -> Figure {
    let all: Vec<_> = summary.ways.iter().map(|way| way.small_p50_s.as_ref()).collect();
    let by_class = classes(summary).map(|(place, name)| {
        (format!("‘{name}’"), of_class(summary, place, |it| it.small_p50_s.as_ref()))
    });
    let mut groups = vec![("All classes".to_string(), all)];
    groups.extend(by_class.filter(|_| classes(summary).count() > 1));
    let values: Vec<_> = groups.iter().flat_map(|(_, values)| values).flatten().copied().collect();
    let groups = groups.into_iter().map(|(name, values)| (name, rows(summary, &[values])));
    let chart = dotted(
        "Median response time",
        values.iter().map(|it| it.estimate()),
        groups.collect(),
        Vec::new(),
    );
    figure(
        SMALL_RESPONSES,
        "Small responses",
        "The time within which half of the responses below 10 kB arrived. Markers are medians over \
         seeds, whiskers their 95% confidence intervals; the axis is logarithmic. Further left is \
         better.",
        &chart,
        values.is_empty(),
    )
}

fn response_times(summary: &Summary) -> Figure {
    let of = |place| {
        [
            of_class(summary, place, |it| it.response_p50_s.as_ref()),
            of_class(summary, place, |it| it.response_mean_s.as_ref()),
            of_class(summary, place, |it| it.response_p95_s.as_ref()),
            of_class(summary, place, |it| it.response_p99_s.as_ref()),
        ]
    };
    let every = || classes(summary).map(|(place, name)| (name, of(place)));
    let values: Vec<_> = every().flat_map(|(_, values)| values).flatten().flatten().collect();
    let groups = every().map(|(name, values)| (format!("‘{name}’"), rows(summary, &values)));
    let chart = dotted(
        "Response time",
        values.iter().map(|it| it.estimate()),
        groups.collect(),
        vec!["median", "mean", "95th percentile", "99th percentile"],
    );
    figure(
        "response-times",
        "Response times by class",
        "For all responses of a class, small and large: half arrived within the median, 95 and 99 \
         of 100 within the percentiles. Markers are means over seeds of the mean, \
         and medians over seeds of the others, whiskers their 95% confidence intervals, and the numbers at the right in the order of the key; the axis is \
         logarithmic. Further left is better.",
        &chart,
        values.is_empty(),
    )
}

fn figure(id: &str, title: &str, caption: &str, chart: &RowChart, empty: bool) -> Figure {
    Figure {
        id: id.into(),
        title: title.into(),
        caption: caption.into(),
        description: chart.in_words(),
        table: TABLE,
        plot: if empty { Err("No response finished.".into()) } else { Ok(chart.draw()) },
    }
}

fn shares_of_classes(results: Results) -> Option<Figure> {
    let Results { summary, standard, .. } = results;
    let groups = classes(summary).map(|(place, name)| {
        let shares = of_class(summary, place, |it| it.share.as_ref());
        let rows = summary.ways.iter().zip(shares).enumerate().map(|(style, (way, share))| Row {
            mark: standard.due(style).map(|due| due[place]),
            ..shares::bar(&way.label, style, share, Quantity::Share, "nothing")
        });
        (format!("‘{name}’"), rows.collect())
    });
    let figure =
        shares::figure(groups.collect(), "Share", Quantity::Share, None, Some("by weight"))?;
    Some(Figure {
        id: SHARES.into(),
        title: "Shares of classes against their weights".into(),
        caption:
            "Each class's share of the payload that all classes received; the lines across are \
             what weights promise when the link is full and every class asks for its share, by \
             weights of classes or of users as each way applies them. Bars are means over seeds, \
             whiskers their 95% confidence intervals."
                .into(),
        table: TABLE,
        ..figure
    })
}
