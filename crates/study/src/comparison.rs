//! The result of a comparison: for each discipline, all runs condensed into
//! estimates with intervals.
//!
//! This is what `--json` prints and what the report draws; the field names are
//! the public format. Times are in seconds, rates in bit/s, sizes in bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::{
    ClassSummary, LinkSummary, Times, TrafficSummary, bin_start,
};
use tidegate_sim::scenario::{QueueSpec, Scenario};

use crate::Estimate;

/// Points at most of a distribution or of a series over time.
const MOST_POINTS: usize = 400;

/// Results of all disciplines under the same traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Title of the scenario.
    pub title: String,
    /// What the scenario shows.
    pub description: String,
    /// Simulated time of each run.
    pub duration_s: f64,
    /// Flows that began before this are not reported.
    pub warm_up_s: f64,
    /// The seeds; each discipline ran once with each.
    pub seeds: Vec<u64>,
    /// Whether the comparison was interrupted: some runs are missing.
    pub partial: bool,
    /// Flows up to this size are called short.
    pub short_flow_bytes: u64,
    /// Flows from this size on are called long.
    pub long_flow_bytes: u64,
    /// One entry for each discipline that has a run, in the order asked for.
    pub disciplines: Vec<DisciplineResult>,
}

/// What one discipline did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisciplineResult {
    /// What it is called here.
    pub label: String,
    /// Its name in the registry.
    pub name: String,
    /// How many runs are in.
    pub runs: usize,
    /// By size class, smallest first.
    pub classes: Vec<ClassResult>,
    /// All short flows.
    pub short: ClassResult,
    /// All flows that have an end.
    pub all: ClassResult,
    /// Mean response time by size.
    pub response_by_size: Vec<SizePoint>,
    /// Distribution of the response times of short flows, all runs together.
    pub short_distribution: Vec<DistributionPoint>,
    /// By source of traffic.
    pub traffic: Vec<TrafficResult>,
    /// The first source of transfers against each other one.
    #[serde(default)]
    pub ratios: Vec<RatioResult>,
    /// By link that has a queue.
    pub links: Vec<LinkResult>,
}

/// The flows of one size class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// The sizes in it, in words.
    pub label: String,
    /// Largest size in it; `None` for the last class.
    pub up_to_bytes: Option<u64>,
    /// Flows that began, all runs together.
    pub started: u64,
    /// Flows that were finished, all runs together.
    pub completed: u64,
    /// Flows that lost at least one packet, all runs together.
    pub with_loss: u64,
    /// Mean response time.
    pub mean_s: Option<Estimate>,
    /// Median response time.
    pub median_s: Option<Estimate>,
    /// 95th percentile of the response time.
    pub p95_s: Option<Estimate>,
    /// Mean of response time over that on an empty link.
    pub slowdown: Option<Estimate>,
}

/// A point of the curve of response time by size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizePoint {
    /// Smallest size in the bin.
    pub from_bytes: f64,
    /// Where the next bin begins.
    pub to_bytes: f64,
    /// Flows in the bin, all runs together.
    pub flows: u64,
    /// Their mean response time.
    pub mean_s: Estimate,
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionPoint {
    /// A time.
    pub at_s: f64,
    /// The fraction of values not above it.
    pub fraction: f64,
}

/// One source of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficResult {
    /// Its name in the scenario.
    pub name: String,
    /// Whether it sends datagrams (a call, a replay) and not transfers.
    pub datagrams: bool,
    /// Flows that began, all runs together.
    pub started: u64,
    /// Flows that were finished, all runs together.
    pub completed: u64,
    /// Payload delivered over the run's time after the warm-up.
    pub throughput_bps: Option<Estimate>,
    /// Jain's index over its long flows.
    pub fairness: Option<Estimate>,
    /// Mean goodput of its long flows.
    pub long_goodput_bps: Option<Estimate>,
    /// The longest time without progress of a long flow.
    pub longest_stall_s: Option<Estimate>,
    /// Datagrams lost over datagrams sent.
    pub loss_ratio: Option<Estimate>,
    /// When a datagram is late, where the scenario says so.
    #[serde(default)]
    pub deadline_s: Option<f64>,
    /// Datagrams that came after the deadline or never, over those that were due.
    #[serde(default)]
    pub late_ratio: Option<Estimate>,
    /// One-way delay of datagrams.
    pub delay: DelayResult,
    /// Distribution of that delay, all runs together.
    pub delay_distribution: Vec<DistributionPoint>,
    /// Progress of its followed flows in the first run, one flow after the other.
    pub progress: Vec<ProgressPoint>,
}

/// How far a followed flow had come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgressPoint {
    /// Number of the flow within its source.
    pub number: u64,
    /// The moment.
    pub at_s: f64,
    /// Payload delivered so far.
    pub delivered_bytes: u64,
}

/// What one source of transfers carried over what another one did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioResult {
    /// Name of the one.
    pub of: String,
    /// Name of the other.
    pub over: String,
    /// Payload delivered of the one over that of the other, run by run. A
    /// source that carried next to nothing counts as one full segment.
    pub throughput: Option<Estimate>,
}

/// Mean and percentiles of a delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayResult {
    /// Mean.
    pub mean_s: Option<Estimate>,
    /// Median.
    pub median_s: Option<Estimate>,
    /// 95th percentile.
    pub p95_s: Option<Estimate>,
    /// 99th percentile.
    pub p99_s: Option<Estimate>,
    /// The largest of a run.
    #[serde(default)]
    pub max_s: Option<Estimate>,
}

/// One link with a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Its name in the scenario.
    pub name: String,
    /// Whether the discipline stood here.
    pub tested: bool,
    /// Bytes sent over bytes that could have been sent.
    pub utilisation: Option<Estimate>,
    /// Packets that arrived, all runs together.
    pub offered: u64,
    /// Packets lost on arrival, all runs together.
    pub refused: u64,
    /// Packets pushed out, all runs together.
    pub pushed_out: u64,
    /// Packets dropped early, to tell senders of congestion, all runs together.
    #[serde(default)]
    pub early: u64,
    /// Acknowledgements dropped because a later one said all, all runs together.
    #[serde(default)]
    pub superseded: u64,
    /// Packets dropped because they were more than their flow may send, all runs together.
    #[serde(default)]
    pub excess: u64,
    /// Packets marked, to tell senders of congestion, all runs together.
    #[serde(default)]
    pub marked: u64,
    /// Packets lost over packets that arrived.
    pub loss_ratio: Option<Estimate>,
    /// Time in the queue.
    pub delay: DelayResult,
    /// Mean number of packets queued.
    pub queue_packets: Option<Estimate>,
    /// Mean number of flows tracked.
    pub flows_tracked: Option<Estimate>,
    /// The most flows tracked at once in any run.
    pub flows_peak: usize,
    /// The state over time in the first run.
    pub over_time: Vec<LinkPoint>,
}

/// The state of a link at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkPoint {
    /// The moment.
    pub at_s: f64,
    /// Packets queued.
    pub packets: u32,
    /// Flows tracked.
    pub flows_tracked: usize,
    /// Packets lost so far.
    pub lost: u64,
    /// Bytes sent so far.
    pub delivered_bytes: u64,
}

impl Comparison {
    /// Condenses `runs`: those of one discipline are told by their label.
    #[must_use]
    pub fn of(scenario: &Scenario, runs: &[RunSummary]) -> Comparison {
        let of_label = |label: &str| -> Vec<&RunSummary> {
            runs.iter().filter(|run| run.discipline == label).collect()
        };
        let disciplines: Vec<_> = scenario
            .disciplines
            .iter()
            .map(|choice| (choice, of_label(&choice.label)))
            .filter(|(_, runs)| !runs.is_empty())
            .map(|(choice, runs)| {
                DisciplineResult::of(scenario, &choice.label, choice.entry.name, &runs)
            })
            .collect();
        let expected = scenario.disciplines.len() * scenario.seeds.len();
        let cut_short = runs.iter().any(|run| run.reached.0 < scenario.duration.0);
        Comparison {
            title: scenario.title.clone(),
            description: scenario.description.clone(),
            duration_s: scenario.duration.as_seconds(),
            warm_up_s: scenario.warm_up.as_seconds(),
            seeds: scenario.seeds.clone(),
            partial: cut_short || runs.len() < expected,
            short_flow_bytes: scenario.short_flow.0,
            long_flow_bytes: scenario.long_flow.0,
            disciplines,
        }
    }
}

impl DisciplineResult {
    fn of(scenario: &Scenario, label: &str, name: &str, runs: &[&RunSummary]) -> DisciplineResult {
        let bounds = &scenario.size_classes;
        let class = |index: usize| {
            let lower = index.checked_sub(1).map(|below| bounds[below]);
            let upper = bounds.get(index).copied();
            let label = match (lower, upper) {
                (None, Some(upper)) => format!("up to {upper}"),
                (Some(lower), Some(upper)) => format!("{lower} to {upper}"),
                (Some(lower), None) => format!("over {lower}"),
                (None, None) => "all".into(),
            };
            let of_run = |run: &'_ &RunSummary| run.classes[index].clone();
            ClassResult::of(label, upper.map(|size| size.0), runs.iter().map(of_run))
        };
        let up_to = scenario.short_flow;
        let short = runs.iter().map(|run| run.short.clone());
        let short = ClassResult::of(format!("short, up to {up_to}"), Some(up_to.0), short);
        let mut pooled = Times::default();
        runs.iter().for_each(|run| pooled.merge(&run.short.response));
        let has_queue = |link: &usize| runs[0].links[*link].is_some();
        DisciplineResult {
            label: label.into(),
            name: name.into(),
            runs: runs.len(),
            classes: (0..=bounds.len()).map(class).collect(),
            short,
            all: ClassResult::of("all".into(), None, runs.iter().map(|run| run.all.clone())),
            response_by_size: response_by_size(runs),
            short_distribution: distribution(&pooled),
            traffic: (0..scenario.traffic.len())
                .map(|index| TrafficResult::of(scenario, index, runs))
                .collect(),
            ratios: ratios(scenario, runs),
            links: (0..scenario.links.len())
                .filter(has_queue)
                .map(|index| LinkResult::of(scenario, index, runs))
                .collect(),
        }
    }
}

/// The first source of transfers against each other one.
fn ratios(scenario: &Scenario, runs: &[&RunSummary]) -> Vec<RatioResult> {
    // So that the ratio has a value where one source starves the other.
    const LEAST: Bytes = Bytes(1_460);
    let mut sources =
        (0..scenario.traffic.len()).filter(|index| scenario.traffic[*index].kind.is_transfers());
    let Some(first) = sources.next() else { return Vec::new() };
    let carried = |run: &RunSummary, index: usize| run.traffic[index].delivered.max(LEAST).0 as f64;
    let name = |index: usize| scenario.traffic[index].name.clone();
    let ratio = |other: usize| RatioResult {
        of: name(first),
        over: name(other),
        throughput: Estimate::of(runs.iter().map(|run| carried(run, first) / carried(run, other))),
    };
    sources.map(ratio).collect()
}

fn response_by_size(runs: &[&RunSummary]) -> Vec<SizePoint> {
    let bins = runs[0].bins.len();
    let point = |bin: usize| {
        Some(SizePoint {
            from_bytes: bin_start(bin),
            to_bytes: bin_start(bin + 1),
            flows: runs.iter().map(|run| run.bins[bin].flows).sum(),
            mean_s: Estimate::of(runs.iter().filter_map(|run| run.bins[bin].mean()))?,
        })
    };
    (0..bins).filter_map(point).collect()
}

fn distribution(times: &Times) -> Vec<DistributionPoint> {
    let points: Vec<_> =
        times.distribution().map(|(at_s, fraction)| DistributionPoint { at_s, fraction }).collect();
    thin(&points)
}

/// At most [`MOST_POINTS`] of `points`, evenly spread, the first and the last among them.
fn thin<T: Copy>(points: &[T]) -> Vec<T> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    (0..MOST_POINTS).map(|i| points[i * (points.len() - 1) / (MOST_POINTS - 1)]).collect()
}

impl ClassResult {
    fn of(
        label: String,
        up_to_bytes: Option<u64>,
        runs: impl Iterator<Item = ClassSummary>,
    ) -> ClassResult {
        let runs: Vec<_> = runs.collect();
        let estimate = |value: &dyn Fn(&ClassSummary) -> Option<f64>| {
            Estimate::of(runs.iter().filter_map(value))
        };
        ClassResult {
            label,
            up_to_bytes,
            started: runs.iter().map(|class| class.started).sum(),
            completed: runs.iter().map(|class| class.completed).sum(),
            with_loss: runs.iter().map(|class| class.with_loss).sum(),
            mean_s: estimate(&|class| class.response.mean()),
            median_s: estimate(&|class| class.response.quantile(0.5)),
            p95_s: estimate(&|class| class.response.quantile(0.95)),
            slowdown: estimate(&ClassSummary::mean_slowdown),
        }
    }
}

impl DelayResult {
    fn of<'a>(runs: impl Iterator<Item = &'a Times>) -> DelayResult {
        let runs: Vec<_> = runs.collect();
        let quantile =
            |fraction| Estimate::of(runs.iter().filter_map(|times| times.quantile(fraction)));
        DelayResult {
            mean_s: Estimate::of(runs.iter().filter_map(|times| times.mean())),
            median_s: quantile(0.5),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
            max_s: Estimate::of(runs.iter().filter_map(|times| times.largest())),
        }
    }
}

impl TrafficResult {
    fn of(scenario: &Scenario, index: usize, runs: &[&RunSummary]) -> TrafficResult {
        let sources = || runs.iter().map(|run| &run.traffic[index]);
        let estimate = |value: &dyn Fn(&TrafficSummary) -> Option<f64>| {
            Estimate::of(sources().filter_map(value))
        };
        let mut pooled = Times::default();
        sources().for_each(|source| pooled.merge(&source.delay));
        let warm = Time(scenario.warm_up.0);
        let seconds = |run: &RunSummary| run.reached.since(warm).as_seconds();
        let rates = runs.iter().filter(|run| run.reached > warm);
        let rates = rates.map(|run| run.traffic[index].delivered.0 as f64 * 8.0 / seconds(run));
        let mean_goodput = |source: &TrafficSummary| {
            let goodputs = &source.long_goodputs;
            (!goodputs.is_empty()).then(|| goodputs.iter().sum::<f64>() / goodputs.len() as f64)
        };
        let stall = |source: &TrafficSummary| {
            (!source.long_goodputs.is_empty()).then(|| source.longest_stall.as_seconds())
        };
        let loss = |source: &TrafficSummary| {
            (source.datagrams > 0).then(|| source.datagrams_lost as f64 / source.datagrams as f64)
        };
        TrafficResult {
            name: scenario.traffic[index].name.clone(),
            datagrams: sources().any(|source| source.datagrams > 0),
            started: sources().map(|source| source.started).sum(),
            completed: sources().map(|source| source.completed).sum(),
            throughput_bps: Estimate::of(rates),
            fairness: estimate(&TrafficSummary::fairness),
            long_goodput_bps: estimate(&mean_goodput),
            longest_stall_s: estimate(&stall),
            loss_ratio: estimate(&loss),
            deadline_s: scenario.traffic[index].deadline.map(Span::as_seconds),
            late_ratio: estimate(&TrafficSummary::late_ratio),
            delay: DelayResult::of(sources().map(|source| &source.delay)),
            delay_distribution: distribution(&pooled),
            progress: progress(runs[0], index),
        }
    }
}

/// The progress of each flow of a source.
fn progress(run: &RunSummary, source: usize) -> Vec<ProgressPoint> {
    let mut flows: BTreeMap<u64, Vec<ProgressPoint>> = BTreeMap::new();
    for sample in run.progress.iter().filter(|sample| sample.traffic == source) {
        flows.entry(sample.number).or_default().push(ProgressPoint {
            number: sample.number,
            at_s: sample.at.as_seconds(),
            delivered_bytes: sample.delivered.0,
        });
    }
    flows.values().flat_map(|points| thin(points)).collect()
}

impl LinkResult {
    fn of(scenario: &Scenario, index: usize, runs: &[&RunSummary]) -> LinkResult {
        let links = || runs.iter().filter_map(|run| run.links[index].as_ref());
        let estimate = |value: &dyn Fn(&LinkSummary) -> f64| Estimate::of(links().map(value));
        let over_time: Vec<_> = links()
            .next()
            .into_iter()
            .flat_map(|link| &link.samples)
            .map(|sample| LinkPoint {
                at_s: sample.at.as_seconds(),
                packets: sample.backlog.packets,
                flows_tracked: sample.flows_tracked,
                lost: sample.counters.lost(),
                delivered_bytes: sample.counters.delivered_bytes.0,
            })
            .collect();
        LinkResult {
            name: scenario.links[index].name.clone(),
            tested: matches!(scenario.links[index].queue, QueueSpec::Tested(_)),
            utilisation: estimate(&|link| link.utilisation),
            offered: links().map(|link| link.counters.offered).sum(),
            refused: links().map(|link| link.counters.refused).sum(),
            pushed_out: links().map(|link| link.counters.pushed_out).sum(),
            early: links().map(|link| link.counters.early).sum(),
            superseded: links().map(|link| link.counters.superseded).sum(),
            excess: links().map(|link| link.counters.excess).sum(),
            marked: links().map(|link| link.counters.marked).sum(),
            loss_ratio: estimate(&LinkSummary::loss_ratio),
            delay: DelayResult::of(links().map(|link| &link.delay)),
            queue_packets: estimate(&LinkSummary::mean_packets),
            flows_tracked: estimate(&LinkSummary::mean_flows),
            flows_peak: links().map(|link| link.counters.flows_peak).max().unwrap_or(0),
            over_time: thin(&over_time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::scenario::file::{self, Folder};

    #[test]
    fn a_source_that_is_starved_counts_as_one_segment() {
        let source = |name: &str| {
            format!(
                "[[traffic.transfers]]\nname = \"{name}\"\nfrom = \"senders\"\nto = \"receivers\"\n\
                 count = 1\nsizes = \"endless\"\n"
            )
        };
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\ndisciplines = [\"fifo\"]\n[dumbbell]\n{}{}{}",
            source("one"),
            source("other"),
            source("third")
        );
        let scenario = file::parse("t", &text, &Folder(".".into())).unwrap();
        let mut run = RunSummary::new(&scenario, "fifo", 1);
        for (source, delivered) in [146_000, 292_000, 0].into_iter().enumerate() {
            run.traffic[source].delivered = Bytes(delivered);
        }
        let ratios = ratios(&scenario, &[&run]);
        let told: Vec<_> =
            ratios.iter().map(|it| (&*it.over, it.throughput.unwrap().mean)).collect();
        assert_eq!(told, [("other", 0.5), ("third", 100.0)]);
        assert!(ratios.iter().all(|it| it.of == "one"));
    }
}
