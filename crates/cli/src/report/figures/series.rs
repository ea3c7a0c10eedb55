//! What happened over time, in the run with the first seed.

use std::collections::BTreeMap;

use tidegate_study::comparison::{
    Comparison, DisciplineResult, LinkPoint, LinkResult, ProgressPoint,
};

use super::{Figure, id, of_which, shown_links, sources};
use crate::report::number::{Quantity, counted, short};
use crate::report::plot::{Axis, Panel, PanelChart, Reference};

/// When the largest values of two disciplines are this many times apart, a
/// linear axis shows only one of them.
const LOG_FROM: f64 = 20.0;
/// The line of a link's rate stays clear of the edge.
const HEADROOM: f64 = 1.05;

/// What is drawn over time, and the smallest value that a logarithmic axis distinguishes from
/// zero.
#[derive(Clone, Copy)]
struct Scale {
    name: &'static str,
    quantity: Quantity,
    small: f64,
}
const QUEUE: Scale = Scale { name: "Queue", quantity: Quantity::Time, small: 1e-3 };
const PACKETS: Scale = Scale { name: "Packets", quantity: Quantity::Plain, small: 1.0 };
const FLOWS: Scale = Scale { name: "Flows", quantity: Quantity::Plain, small: 1.0 };
/// More flows in a panel are a solid block.
const MOST_FLOWS: usize = 12;
/// Windows over which throughput is averaged: enough for the shape, few enough
/// to be free of the noise of single packets.
const WINDOWS: f64 = 60.0;

/// What waits at each link: for how long the link is busy with it, or how many packets where
/// that is not known.
pub(super) fn queues(comparison: &Comparison) -> Vec<Figure> {
    let links = shown_links(comparison);
    let figure = |(index, link): &(usize, &LinkResult)| {
        let is_timed = points(comparison, *index).any(|point| point.backlog_s.is_some());
        let (chart, what) = if is_timed {
            let chart = over_time(comparison, *index, QUEUE, "nothing queued", |point| {
                point.backlog_s.unwrap_or(0.0)
            });
            (chart, format!("How long ‘{}’ takes to send what waits in front of it", link.name))
        } else {
            let chart = over_time(comparison, *index, PACKETS, "nothing queued", |point| {
                f64::from(point.packets)
            });
            (chart, format!("Packets waiting in front of ‘{}’", link.name))
        };
        let title = format!("Queue over time{}", of_which("at", &link.name, links.len()));
        let last = if is_timed { " A packet waits that long if it has to leave last." } else { "" };
        let caption = format!("{what}, sampled{}.{last}", in_first_run(comparison));
        figure(id("queue", &link.name), title, caption, &chart)
    };
    links.iter().map(figure).collect()
}

/// What each link carries, beside what it could.
pub(super) fn carried(comparison: &Comparison) -> Vec<Figure> {
    let links = shown_links(comparison);
    let window = comparison.duration_s / WINDOWS;
    let figure = |(index, link): &(usize, &LinkResult)| {
        let panel = |(style, discipline): (usize, &DisciplineResult)| {
            let points = discipline.links.get(*index).map_or(&[][..], |link| &link.over_time);
            let sent = points.iter().map(|point| (point.at_s, point.delivered_bytes));
            let rates = mean_rates(sent, window);
            let remark = rates.is_empty().then(|| "no samples".to_string());
            let series = vec![rates];
            Panel { label: discipline.label.clone(), style, series, band: Vec::new(), remark }
        };
        let panels: Vec<Panel> = comparison.disciplines.iter().enumerate().map(panel).collect();
        let reference = capacity(comparison, *index, window);
        let could = reference.iter().flat_map(|it| &it.points);
        let rates = panels.iter().flat_map(|panel| panel.series.iter().flatten()).chain(could);
        let most = rates.map(|(_, rate)| *rate).fold(0.0, f64::max);
        let beside = match &reference {
            Some(_) => {
                "Where it stays below the dashed line, the link was idle for a part of the \
                        time."
            }
            None => {
                "What a wireless link could carry depends on who else wants the medium, and \
                     is not drawn."
            }
        };
        let chart = PanelChart {
            x: time(comparison),
            y: Axis::linear("Throughput", Quantity::Rate, most * HEADROOM).rounded(),
            panels,
            stepped: true,
            filled: true,
            reference,
        };
        let caption = format!(
            "What ‘{}’ carried, with all headers, averaged over windows of about {}{}. \
             {beside}",
            link.name,
            short(Quantity::Time, window),
            in_first_run(comparison)
        );
        let title = format!("Throughput over time{}", of_which("at", &link.name, links.len()));
        Figure {
            table: Some("table-links"),
            ..figure(id("carried", &link.name), title, caption, &chart)
        }
    };
    links.iter().map(figure).collect()
}

/// What a link can carry, which no discipline changes; `None` if it is not known.
fn capacity(comparison: &Comparison, link: usize, window: f64) -> Option<Reference> {
    let of = |discipline: &DisciplineResult| {
        let points = discipline.links.get(link).map_or(&[][..], |link| &link.over_time);
        let could: Option<Vec<_>> =
            points.iter().map(|point| Some((point.at_s, point.capacity_bytes?))).collect();
        mean_rates(could.unwrap_or_default().into_iter(), window)
    };
    // An interrupted run ends early.
    let points = comparison.disciplines.iter().map(of).max_by_key(Vec::len)?;
    let rates = || points.iter().map(|(_, rate)| *rate);
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    // The volume is rounded to a byte.
    let label = if most <= least * 1.001 {
        format!("rate of the link, {}", short(Quantity::Rate, most))
    } else {
        "capacity of the link".into()
    };
    (!points.is_empty()).then_some(Reference { label, points, stepped: true })
}

/// Flows that the disciplines keep state for, at each link.
pub(super) fn flow_tables(comparison: &Comparison) -> Vec<Figure> {
    let links = shown_links(comparison);
    let figure = |(index, link): &(usize, &LinkResult)| {
        let chart = over_time(comparison, *index, FLOWS, "keeps no state for flows", |point| {
            point.flows_tracked as f64
        });
        let title = format!("Flow table over time{}", of_which("at", &link.name, links.len()));
        let caption = format!(
            "Flows that the discipline at ‘{}’ keeps state for, sampled{}. They are \
             what the discipline costs in memory.",
            link.name,
            in_first_run(comparison)
        );
        figure(id("flow-table", &link.name), title, caption, &chart)
    };
    links.iter().map(figure).collect()
}

/// All samples of a link.
fn points(comparison: &Comparison, link: usize) -> impl Iterator<Item = &LinkPoint> {
    comparison
        .disciplines
        .iter()
        .filter_map(move |it| it.links.get(link))
        .flat_map(|link| &link.over_time)
}

/// Of which run something is, where there are several.
fn in_first_run(comparison: &Comparison) -> String {
    match comparison.seeds[..] {
        [first, _, ..] => format!(" in the run with seed {first}"),
        _ => String::new(),
    }
}

fn figure(id: String, title: String, caption: String, chart: &PanelChart) -> Figure {
    let empty = chart.panels.iter().all(|panel| panel.series.iter().all(Vec::is_empty));
    Figure {
        id,
        title,
        caption,
        description: chart.in_words(),
        table: Some("table-queues"),
        plot: if empty { Err("Nothing was sampled.".into()) } else { Ok(chart.draw()) },
    }
}

fn over_time(
    comparison: &Comparison,
    link: usize,
    scale: Scale,
    when_zero: &str,
    value: impl Fn(&LinkPoint) -> f64,
) -> PanelChart {
    let panel = |(style, discipline): (usize, &DisciplineResult)| {
        let points = discipline.links.get(link).map_or(&[][..], |link| &link.over_time);
        let series: Vec<_> = points.iter().map(|point| (point.at_s, value(point))).collect();
        let remark = match series.iter().all(|(_, value)| *value == 0.0) {
            _ if series.is_empty() => Some("no samples".into()),
            true => Some(when_zero.to_string()),
            false => None,
        };
        let series = vec![series];
        Panel { label: discipline.label.clone(), style, series, band: Vec::new(), remark }
    };
    let panels: Vec<Panel> = comparison.disciplines.iter().enumerate().map(panel).collect();
    let peaks = || {
        let peak = |panel: &Panel| {
            panel.series.iter().flatten().map(|(_, value)| *value).fold(0.0, f64::max)
        };
        panels.iter().map(peak).filter(|peak| *peak > 0.0)
    };
    let most = peaks().fold(0.0, f64::max);
    let least = peaks().fold(f64::INFINITY, f64::min);
    let Scale { name, quantity, small } = scale;
    let y = if most > least * LOG_FROM {
        Axis::log_from_zero(name, quantity, small, most)
    } else {
        Axis::linear(name, quantity, most).rounded()
    };
    PanelChart { x: time(comparison), y, panels, stepped: true, filled: true, reference: None }
}

fn time(comparison: &Comparison) -> Axis {
    Axis::linear("Simulated time", Quantity::Time, comparison.duration_s)
}

/// Throughput of the followed flows of each source.
pub(super) fn followed(comparison: &Comparison) -> Vec<Figure> {
    let found = sources(comparison, |source| !source.progress.is_empty());
    let window = comparison.duration_s / WINDOWS;
    let figure = |(index, name): &(usize, &str)| {
        let mut most_flows = 0;
        let panel = |(style, discipline): (usize, &DisciplineResult)| {
            let progress = discipline.traffic.get(*index).map_or(&[][..], |it| &it.progress);
            let flows = throughputs(progress, window);
            most_flows = most_flows.max(flows.len());
            let remark = flows.is_empty().then(|| "no flow".to_string());
            let series = flows.into_iter().take(MOST_FLOWS).collect();
            Panel { label: discipline.label.clone(), style, series, band: Vec::new(), remark }
        };
        let panels: Vec<Panel> = comparison.disciplines.iter().enumerate().map(panel).collect();
        let points = panels.iter().flat_map(|panel| panel.series.iter().flatten());
        let most = points.map(|(_, rate)| *rate).fold(0.0, f64::max);
        let y = Axis::linear("Throughput", Quantity::Rate, most).rounded();
        let x = time(comparison);
        let chart = PanelChart { x, y, panels, stepped: true, filled: false, reference: None };
        let which = if most_flows > MOST_FLOWS {
            format!("the first {MOST_FLOWS} of {most_flows} flows")
        } else {
            counted(most_flows as u64, "flow", "flows")
        };
        let caption = format!(
            "Payload of ‘{name}’, counted when it reaches the receiver, in order or not, and \
             averaged over windows of about {}{}; one line for each flow ({which}).",
            short(Quantity::Time, window),
            in_first_run(comparison)
        );
        let title = format!("Throughput of ‘{name}’ over time");
        Figure {
            table: Some("table-transfers"),
            ..self::figure(id("throughput", name), title, caption, &chart)
        }
    };
    found.iter().map(figure).collect()
}

/// For each flow the mean rate in each window, from the samples of its progress.
fn throughputs(progress: &[ProgressPoint], window: f64) -> Vec<Vec<(f64, f64)>> {
    let mut flows: BTreeMap<u64, Vec<(f64, u64)>> = BTreeMap::new();
    for point in progress {
        flows.entry(point.number).or_default().push((point.at_s, point.arrived_bytes));
    }
    let rates = |samples: Vec<_>| mean_rates(samples.into_iter(), window);
    flows.into_values().map(rates).filter(|rates| !rates.is_empty()).collect()
}

/// The mean rate in each window, in bit/s, from how many bytes there were at each moment.
fn mean_rates(mut samples: impl Iterator<Item = (f64, u64)>, window: f64) -> Vec<(f64, f64)> {
    let Some((mut since, mut before)) = samples.next() else { return Vec::new() };
    let mut out = Vec::new();
    for (at, bytes) in samples {
        let lasted = at - since;
        if lasted > 0.0 && lasted >= window * (1.0 - 1e-9) {
            out.push((since, bytes.saturating_sub(before) as f64 * 8.0 / lasted));
            (since, before) = (at, bytes);
        }
    }
    // The last window's rate holds until its end.
    if let Some((_, rate)) = out.last().copied() {
        out.push((since, rate));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_the_mean_over_each_window() {
        let point = |number, at_s, arrived_bytes| ProgressPoint { number, at_s, arrived_bytes };
        let progress =
            [point(0, 0.0, 0), point(1, 0.0, 0), point(0, 0.5, 500), point(0, 1.0, 1_000)];
        assert_eq!(throughputs(&progress, 1.0), [[(0.0, 8_000.0), (1.0, 8_000.0)]]);
    }
}
