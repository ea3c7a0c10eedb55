//! Distributions of response times and delays.

use tidegate_study::comparison::{Comparison, DisciplineResult, DistributionPoint};
use tidegate_study::{Estimate, Sample};

use super::{Figure, id, labels, not_drawn, sources};
use crate::report::number::{Quantity, Units, estimate, short, significant};
use crate::report::plot::{Axis, Dot, Key, Line, LineChart, Row, RowChart};

/// Response times of short transfers.
pub(super) fn short_transfers(comparison: &Comparison) -> Figure {
    let largest = short(Quantity::Size, comparison.short_flow_bytes as f64);
    let chart = chart(comparison, ["Response time", "Transfers finished"], |discipline| {
        &discipline.short_distribution
    });
    let title = "Response times of short transfers";
    let caption = format!(
        "The part of the finished transfers of at most {largest} that took no longer than the \
         time below; all seeds together. Further left is better.{}",
        not_drawn(&chart.lines)
    );
    figure(comparison, "short-distribution".into(), title.into(), caption, &chart, || {
        format!("No transfer of at most {largest} finished.")
    })
}

/// Times of the pages of each source of them.
pub(super) fn page_loads(comparison: &Comparison) -> Vec<Figure> {
    let found = sources(comparison, |source| source.pages.is_some());
    let draw = |(index, name): &(usize, &str)| {
        let chart = chart(comparison, ["Time of a page", "Pages loaded"], |discipline| {
            let pages = discipline.traffic.get(*index).and_then(|source| source.pages.as_ref());
            pages.map_or(&[], |pages| &pages.load_distribution)
        });
        let caption = format!(
            "The part of the loaded pages of ‘{name}’ that took no longer than the time below, \
             from their start to the last byte of their last object; all seeds together. Further \
             left is better. Pages that were not complete at the end are not in it; the table of \
             pages has their part.{}",
            not_drawn(&chart.lines)
        );
        let title = format!("Times of the pages of ‘{name}’");
        figure(comparison, id("pages", name), title, caption, &chart, || {
            format!("No page of ‘{name}’ was complete.")
        })
    };
    found.iter().map(draw).collect()
}

/// One-way delays of each source of datagrams.
pub(super) fn delays(comparison: &Comparison) -> Vec<Figure> {
    let found = sources(comparison, |source| source.datagrams);
    let draw = |(index, name): &(usize, &str)| {
        let chart = chart(comparison, ["One-way delay", "Packets arrived"], |discipline| {
            discipline.traffic.get(*index).map_or(&[], |source| &source.delay_distribution)
        });
        let caption = format!(
            "The part of the packets of ‘{name}’ that arrived within the time below; all seeds \
             together, lost packets not counted. Further left is better.{}",
            not_drawn(&chart.lines)
        );
        let title = format!("Delay of ‘{name}’");
        figure(comparison, id("delay", name), title, caption, &chart, || {
            format!("No packet of ‘{name}’ arrived.")
        })
    };
    found.iter().map(draw).collect()
}

fn chart<'a>(
    comparison: &'a Comparison,
    [time, part]: [&str; 2],
    of: impl Fn(&'a DisciplineResult) -> &'a [DistributionPoint],
) -> LineChart {
    let line = |(style, discipline): (usize, &'a DisciplineResult)| {
        let points = of(discipline).iter().map(|point| (point.at_s, point.fraction));
        let mut points: Vec<_> = points.filter(|(at, _)| *at > 0.0 && at.is_finite()).collect();
        // From zero up to the first value.
        if let Some((at, _)) = points.first().copied() {
            points.insert(0, (at, 0.0));
        }
        Line { label: discipline.label.clone(), style, points, band: Vec::new() }
    };
    let mut lines: Vec<Line> = comparison.disciplines.iter().enumerate().map(line).collect();
    let times = lines.iter().flat_map(|line| &line.points).map(|(at, _)| *at);
    let longest = times.clone().fold(0.0, f64::max);
    let x = Axis::log(time, Quantity::Time, times);
    // All lines continue to the end of the slowest: everything has arrived by then.
    for line in &mut lines {
        if let Some((_, fraction)) = line.points.last().copied() {
            line.points.push((longest, fraction));
        }
    }
    LineChart {
        x,
        y: Axis::linear(part, Quantity::Share, 1.0),
        lines,
        key: Key::Above,
        stepped: true,
    }
}

fn figure(
    comparison: &Comparison,
    id: String,
    title: String,
    caption: String,
    chart: &LineChart,
    gap: impl Fn() -> String,
) -> Figure {
    let empty = chart.lines.iter().all(|line| line.points.is_empty());
    Figure {
        id,
        title,
        caption,
        description: format!("One cumulative distribution for each of {}.", labels(comparison)),
        table: Some("table-quantiles"),
        plot: if empty { Err(gap()) } else { Ok(chart.draw()) },
    }
}

/// Median and high percentiles of the delays.
pub(super) fn delay_percentiles(comparison: &Comparison) -> Option<Figure> {
    let found = sources(comparison, |source| source.datagrams);
    let values = |discipline: &DisciplineResult, index: usize| {
        let delay = discipline.traffic.get(index).map(|source| &source.delay);
        delay.map_or([None; 3], |delay| {
            [&delay.median_s, &delay.p95_s, &delay.p99_s]
                .map(|sample| sample.as_ref().map(Sample::estimate))
        })
    };
    let all = || {
        let each = found.iter().flat_map(|(index, _)| {
            comparison.disciplines.iter().flat_map(move |d| values(d, *index))
        });
        each.flatten()
    };
    if found.is_empty() {
        return None;
    }
    let row = |(style, discipline): (usize, &DisciplineResult), index: usize| {
        let values = values(discipline, index);
        dots(&discipline.label, style, &values, "no packet arrived")
    };
    let groups = found.iter().map(|(index, name)| {
        let rows = comparison.disciplines.iter().enumerate().map(|each| row(each, *index));
        let heading = if found.len() > 1 { format!("‘{name}’") } else { String::new() };
        (heading, rows.collect())
    });
    let chart = dotted(
        "One-way delay",
        all(),
        groups.collect(),
        vec!["median", "95th percentile", "99th percentile"],
    );
    let names: Vec<_> = found.iter().map(|(_, name)| format!("‘{name}’")).collect();
    let empty = all().next().is_none();
    Some(Figure {
        id: "delay-percentiles".into(),
        title: format!("Percentiles of the delay of {}", super::listed(&names)),
        caption: "Half of the packets arrive within the median, 95 and 99 of 100 within the \
                  percentiles; medians over seeds with 95% confidence intervals. Further left is \
                  better."
            .into(),
        description: chart.in_words(),
        table: Some("table-datagrams"),
        plot: if empty { Err("No packet arrived.".into()) } else { Ok(chart.draw()) },
    })
}

/// A row of times, each with its marker; at the right all numbers, or for a
/// single one its interval.
pub(in crate::report) fn dots(
    label: &str,
    style: usize,
    values: &[Option<Estimate>],
    without: &str,
) -> Row {
    let dots = values.iter().enumerate().filter_map(|(marker, value)| {
        let value = value.as_ref().filter(|value| value.value > 0.0)?;
        Some(Dot { at: value.value, interval: value.interval, marker })
    });
    let known: Vec<f64> = values.iter().flatten().map(|value| value.value).collect();
    Row {
        label: label.into(),
        style,
        bars: Vec::new(),
        whisker: None,
        dots: dots.collect(),
        mark: None,
        note: match values {
            [Some(value)] => estimate(Quantity::Time, value),
            _ if known.is_empty() => without.into(),
            _ => together(&known),
        },
    }
}

/// Rows of times on a logarithmic axis that covers all of `values`.
pub(in crate::report) fn dotted(
    name: &str,
    values: impl Iterator<Item = Estimate>,
    groups: Vec<(String, Vec<Row>)>,
    dot_key: Vec<&'static str>,
) -> RowChart {
    // Intervals that reach down to zero end at the edge.
    let ends = values.flat_map(|value| {
        let (from, to) = value.ends();
        [value.value, from.max(value.value / 4.0), to]
    });
    let x = Axis::log(name, Quantity::Time, ends);
    RowChart { x, groups, bar_key: None, dot_key, mark_key: None }
}

/// `3 / 5.2 / 8.1 ms`.
fn together(values: &[f64]) -> String {
    let unit = Quantity::Time.unit_for(values.iter().copied());
    let texts: Vec<_> = values.iter().map(|value| significant(value / unit.factor, 3)).collect();
    unit.behind(&texts.join(" / "))
}
