//! What happened over time, in the run with the first seed.

use std::collections::BTreeMap;

use tidegate_study::comparison::{
    Comparison, DisciplineResult, LinkPoint, LinkResult, ProgressPoint,
};

use super::{Figure, id, of_which, shown_links, sources};
use crate::report::number::{Quantity, counted, short};
use crate::report::plot::{Axis, Panel, PanelChart};

/// When the largest values of two disciplines are this many times apart, a
/// linear axis shows only one of them.
const LOG_FROM: f64 = 20.0;
/// More flows in a panel are a solid block.
const MOST_FLOWS: usize = 12;
/// Windows over which throughput is averaged: enough for the shape, few enough
/// to be free of the noise of single packets.
const WINDOWS: f64 = 60.0;

/// Packets waiting at each link.
pub(super) fn queues(comparison: &Comparison) -> Vec<Figure> {
    let links = shown_links(comparison);
    let figure = |(index, link): &(usize, &LinkResult)| {
        let chart = over_time(comparison, *index, "Packets", "nothing queued", |point| {
            f64::from(point.packets)
        });
        let title = format!("Queue over time{}", of_which("at", &link.name, links.len()));
        let caption = format!(
            "Packets waiting in front of ‘{}’, sampled in the run with {}.",
            link.name,
            first_seed(comparison)
        );
        figure(id("queue", &link.name), title, caption, &chart)
    };
    links.iter().map(figure).collect()
}

/// Flows that the disciplines keep state for, at each link.
pub(super) fn flow_tables(comparison: &Comparison) -> Vec<Figure> {
    let links = shown_links(comparison);
    let figure = |(index, link): &(usize, &LinkResult)| {
        let chart = over_time(comparison, *index, "Flows", "keeps no state for flows", |point| {
            point.flows_tracked as f64
        });
        let title = format!("Flow table over time{}", of_which("at", &link.name, links.len()));
        let caption = format!(
            "Flows that the discipline at ‘{}’ keeps state for, sampled in the run with {}. They \
             are what the discipline costs in memory.",
            link.name,
            first_seed(comparison)
        );
        figure(id("flow-table", &link.name), title, caption, &chart)
    };
    links.iter().map(figure).collect()
}

fn first_seed(comparison: &Comparison) -> String {
    comparison.seeds.first().map_or("the first seed".into(), |seed| format!("seed {seed}"))
}

fn figure(id: String, title: String, caption: String, chart: &PanelChart) -> Figure {
    let empty = chart.panels.iter().all(|panel| panel.series.iter().all(Vec::is_empty));
    let names: Vec<_> = chart.panels.iter().map(|panel| panel.label.as_str()).collect();
    Figure {
        id,
        title,
        caption,
        description: format!("One panel for each of {}.", super::listed(&names)),
        table: Some("table-queues"),
        plot: if empty { Err("Nothing was sampled.".into()) } else { Ok(chart.draw()) },
    }
}

fn over_time(
    comparison: &Comparison,
    link: usize,
    name: &str,
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
        Panel { label: discipline.label.clone(), style, series: vec![series], remark }
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
    let y = if most > least * LOG_FROM {
        Axis::log_from_zero(name, Quantity::Plain, most)
    } else {
        Axis::linear(name, Quantity::Plain, most).rounded()
    };
    PanelChart { x: time(comparison), y, panels, stepped: true, filled: true }
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
            Panel { label: discipline.label.clone(), style, series, remark }
        };
        let panels: Vec<Panel> = comparison.disciplines.iter().enumerate().map(panel).collect();
        let points = panels.iter().flat_map(|panel| panel.series.iter().flatten());
        let most = points.map(|(_, rate)| *rate).fold(0.0, f64::max);
        let y = Axis::linear("Throughput", Quantity::Rate, most).rounded();
        let chart = PanelChart { x: time(comparison), y, panels, stepped: true, filled: false };
        let which = if most_flows > MOST_FLOWS {
            format!("the first {MOST_FLOWS} of {most_flows} flows")
        } else {
            counted(most_flows as u64, "flow", "flows")
        };
        let caption = format!(
            "Payload of ‘{name}’, counted when it reaches the receiver, in order or not, and \
             averaged over windows of about {}; one line for each flow ({which}), in the run \
             with {}.",
            short(Quantity::Time, window),
            first_seed(comparison)
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
    let mut flows: BTreeMap<u64, Vec<&ProgressPoint>> = BTreeMap::new();
    for point in progress {
        flows.entry(point.number).or_default().push(point);
    }
    let rates = |samples: Vec<&ProgressPoint>| {
        let mut out = Vec::new();
        let mut since = samples[0];
        for sample in samples {
            let lasted = sample.at_s - since.at_s;
            if lasted > 0.0 && lasted >= window * (1.0 - 1e-9) {
                let bytes = sample.arrived_bytes.saturating_sub(since.arrived_bytes);
                out.push((since.at_s, bytes as f64 * 8.0 / lasted));
                since = sample;
            }
        }
        // The last window's rate holds until its end.
        if let Some((_, rate)) = out.last().copied() {
            out.push((since.at_s, rate));
        }
        out
    };
    flows.into_values().map(rates).filter(|rates| !rates.is_empty()).collect()
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
