//! Distributions of response times and delays.

use tidegate_study::comparison::{Comparison, DisciplineResult, DistributionPoint};
use tidegate_study::{Estimate, Sample};

use super::{Figure, id, not_drawn, over_seeds, sources};
use crate::report::number::{Quantity, Units, count, estimate, short, significant};
use crate::report::plot::{Axis, Below, Dot, Key, Line, LineChart, Row, RowChart};

/// So many values have to lie beyond a quantile for it to say something: the number
/// of those beyond then varies by a third from one set of runs to another, of fewer by more.
const BEYOND: f64 = 10.0;
/// The slowest are drawn apart if the slowest 5% can be told.
const TAIL_FROM: f64 = 0.05;
/// No tail is drawn farther than one in so many.
const TAIL_TO: f64 = 1e-4;

/// Whether the quantile `fraction` of so many values says something.
pub(in crate::report) fn is_known(fraction: f64, values: u64) -> bool {
    (1.0 - fraction) * values as f64 >= BEYOND - 1e-6
}

/// A distribution, and the number of values in it.
type Counted<'a> = (&'a [DistributionPoint], u64);

/// What a distribution is of, where there are several runs.
const TOGETHER: &str = ", all seeds together";
/// The quantiles that are told to readers who cannot see the plot.
const TOLD: [(f64, &str); 3] = [(0.5, "half"), (0.9, "90%"), (0.99, "99%")];

/// What the axes of a distribution are called.
struct Names {
    time: &'static str,
    done: &'static str,
    slower: &'static str,
}

/// Response times of short transfers.
pub(super) fn short_transfers(comparison: &Comparison) -> Figure {
    let largest = short(Quantity::Size, comparison.short_flow_bytes as f64);
    let names = Names {
        time: "Response time",
        done: "Transfers finished",
        slower: "Transfers that took longer",
    };
    let drawn = chart(comparison, &names, |discipline| {
        (&discipline.short_distribution, discipline.short.completed)
    });
    let title = "Response times of short transfers";
    let caption = format!(
        "The part of the finished transfers of at most {largest} that took no longer than the \
         time below{}. Further left is better. {}{}",
        over_seeds(comparison, TOGETHER),
        drawn.tails,
        not_drawn(&drawn.chart.lines)
    );
    figure("short-distribution".into(), title.into(), caption, &drawn, || {
        format!("No transfer of at most {largest} finished.")
    })
}

/// Times of the pages of each source of them.
pub(super) fn page_loads(comparison: &Comparison) -> Vec<Figure> {
    let found = sources(comparison, |source| source.pages.is_some());
    let names =
        Names { time: "Time of a page", done: "Pages loaded", slower: "Pages that took longer" };
    let draw = |(index, name): &(usize, &str)| {
        let drawn = chart(comparison, &names, |discipline| {
            let pages = discipline.traffic.get(*index).and_then(|source| source.pages.as_ref());
            pages.map_or((&[], 0), |pages| (&pages.load_distribution, pages.completed))
        });
        let caption = format!(
            "The part of the loaded pages of ‘{name}’ that took no longer than the time below, \
             from their start to the last byte of their last object{}. Further left is better. {} \
             Pages that were not complete at the end are not in it; the \
             table of pages has their part.{}",
            over_seeds(comparison, TOGETHER),
            drawn.tails,
            not_drawn(&drawn.chart.lines)
        );
        let title = format!("Times of the pages of ‘{name}’");
        figure(id("pages", name), title, caption, &drawn, || {
            format!("No page of ‘{name}’ was complete.")
        })
    };
    found.iter().map(draw).collect()
}

/// Times of the lookups of each source of them.
pub(super) fn lookups(comparison: &Comparison) -> Vec<Figure> {
    let found = sources(comparison, |source| source.lookups.is_some());
    let names = Names {
        time: "Time of a lookup",
        done: "Lookups ended",
        slower: "Lookups that took longer",
    };
    let draw = |(index, name): &(usize, &str)| {
        let drawn = chart(comparison, &names, |discipline| {
            let lookups = discipline.traffic.get(*index).and_then(|source| source.lookups.as_ref());
            lookups.map_or((&[], 0), |lookups| (&lookups.time_distribution, lookups.ended))
        });
        let caption = format!(
            "The part of the lookups of ‘{name}’ that took no longer than the time below, from \
             the first query to the answer, or until the host gave up{}. Further left is better. \
             {}{}",
            over_seeds(comparison, TOGETHER),
            drawn.tails,
            not_drawn(&drawn.chart.lines)
        );
        let title = format!("Times of the lookups of ‘{name}’");
        figure(id("lookups", name), title, caption, &drawn, || {
            format!("No lookup of ‘{name}’ ended.")
        })
    };
    found.iter().map(draw).collect()
}

/// One-way delays of each source of datagrams.
pub(super) fn delays(comparison: &Comparison) -> Vec<Figure> {
    let found = sources(comparison, |source| source.datagrams);
    let names = Names {
        time: "One-way delay",
        done: "Packets arrived",
        slower: "Packets that took longer",
    };
    let draw = |(index, name): &(usize, &str)| {
        let drawn = chart(comparison, &names, |discipline| {
            let source = discipline.traffic.get(*index);
            source.map_or((&[], 0), |source| (&source.delay_distribution, source.arrived))
        });
        let caption = format!(
            "The part of the packets of ‘{name}’ that arrived within the time below{}; lost \
             packets not counted. Further left is better. {}{}",
            over_seeds(comparison, TOGETHER),
            drawn.tails,
            not_drawn(&drawn.chart.lines)
        );
        let title = format!("Delay of ‘{name}’");
        figure(id("delay", name), title, caption, &drawn, || {
            format!("No packet of ‘{name}’ arrived.")
        })
    };
    found.iter().map(draw).collect()
}

/// A chart with its words.
struct Drawn {
    chart: LineChart,
    /// How to read the slowest.
    tails: String,
    /// The quantiles of each line.
    in_words: String,
}

fn chart<'a>(
    comparison: &'a Comparison,
    names: &Names,
    of: impl Fn(&'a DisciplineResult) -> Counted<'a>,
) -> Drawn {
    let line = |(style, discipline): (usize, &'a DisciplineResult)| {
        let points = of(discipline).0.iter().map(|point| (point.at_s, point.fraction));
        let mut points: Vec<_> = points.filter(|(at, _)| *at > 0.0 && at.is_finite()).collect();
        // From zero up to the first value.
        if let Some((at, _)) = points.first().copied() {
            points.insert(0, (at, 0.0));
        }
        Line { label: discipline.label.clone(), style, points, band: Vec::new() }
    };
    let mut lines: Vec<Line> = comparison.disciplines.iter().enumerate().map(line).collect();
    let counts: Vec<u64> = comparison.disciplines.iter().map(|it| of(it).1).collect();
    let below = tails(names.slower, &lines, &counts);
    let tails = tails_in_words(&lines, &counts, below.is_some());
    let in_words = quantiles_in_words(&lines, &counts);
    let times = lines.iter().flat_map(|line| &line.points).map(|(at, _)| *at);
    let longest = times.clone().fold(0.0, f64::max);
    let x = Axis::log(names.time, Quantity::Time, times);
    // All lines continue to the end of the slowest: everything has arrived by then.
    for line in &mut lines {
        if let Some((_, fraction)) = line.points.last().copied() {
            line.points.push((longest, fraction));
        }
    }
    let y = Axis::linear(names.done, Quantity::Share, 1.0);
    let chart = LineChart { x, y, lines, key: Key::Above, stepped: true, below };
    Drawn { chart, tails, in_words }
}

/// The part that took longer than each time, on a logarithmic axis, as far as it is
/// known; `None` if that is nowhere far.
fn tails(name: &str, lines: &[Line], counts: &[u64]) -> Option<Below> {
    let tail = |(line, count): (&Line, &u64)| {
        let slower = line.points.iter().map(|(at, fraction)| (*at, 1.0 - fraction));
        let points = slower
            .take_while(|(_, part)| is_known(1.0 - part, *count) && *part >= TAIL_TO)
            .collect();
        Line { points, ..line.clone() }
    };
    let lines: Vec<Line> = lines.iter().zip(counts).map(tail).collect();
    let parts = lines.iter().flat_map(|line| &line.points).map(|(_, part)| *part);
    let least = parts.fold(1.0, f64::min);
    let y = Axis::log(name, Quantity::Share, [least, 1.0]);
    (least <= TAIL_FROM).then_some(Below { y, lines })
}

/// How to read the slowest, or why they are not drawn.
fn tails_in_words(lines: &[Line], counts: &[u64], are_drawn: bool) -> String {
    let drawn = lines.iter().zip(counts).filter(|(line, _)| !line.points.is_empty());
    let counts: Vec<u64> = drawn.map(|(_, count)| *count).collect();
    let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max()) else {
        return String::new();
    };
    let there_are = if least == most {
        format!("there are {}", count(*least))
    } else {
        format!("there are {} to {}", count(*least), count(*most))
    };
    let needed = |part: f64| count((BEYOND / part).round() as u64);
    if !are_drawn {
        return format!(
            "The slowest are not drawn apart: telling the slowest 5% takes {} values, and \
             {there_are}.",
            needed(TAIL_FROM)
        );
    }
    let ends = if is_known(0.999, *least) {
        String::new()
    } else {
        format!(": the slowest 0.1% take {} values, and {there_are}", needed(0.001))
    };
    format!(
        "Below are the slowest, on a logarithmic axis: the line crosses 1% at the 99th percentile \
         and 0.1% at the 99.9th. It ends where fewer than {BEYOND} values are left{ends}."
    )
}

/// The time within which a half and more of each line had come, as far as that is known.
fn quantiles_in_words(lines: &[Line], counts: &[u64]) -> String {
    let line = |(line, count): (&Line, &u64)| {
        let known = TOLD.iter().filter(|(part, _)| is_known(*part, *count));
        let told = known.filter_map(|(part, name)| {
            let (at, _) = line.points.iter().find(|(_, done)| done >= part)?;
            Some(format!("{name} within {}", short(Quantity::Time, *at)))
        });
        let told: Vec<_> = told.collect();
        (!told.is_empty()).then(|| format!("{}: {}", line.label, told.join(", ")))
    };
    lines.iter().zip(counts).filter_map(line).collect::<Vec<_>>().join("; ") + "."
}

fn figure(
    id: String,
    title: String,
    caption: String,
    drawn: &Drawn,
    gap: impl Fn() -> String,
) -> Figure {
    let empty = drawn.chart.lines.iter().all(|line| line.points.is_empty());
    Figure {
        id,
        title,
        caption,
        description: drawn.in_words.clone(),
        table: Some("table-quantiles"),
        plot: if empty { Err(gap()) } else { Ok(drawn.chart.draw()) },
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
        caption: format!(
            "Half of the packets arrive within the median, 95 and 99 of 100 within the \
             percentiles{}. Further left is better.",
            over_seeds(comparison, "; medians over seeds with 95% confidence intervals")
        ),
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
