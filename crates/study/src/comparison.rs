//! The result of a comparison: for each discipline, all runs condensed into
//! estimates with intervals.
//!
//! This is what `--json` prints and what the report draws; the field names are
//! the public format. Times are in seconds, rates in bit/s, sizes in bytes.

pub mod beside;
mod class;
mod link;
mod lookups;
mod rows;
mod traffic;
mod video;

use serde::{Deserialize, Serialize};
use tidegate_core::Bytes;
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::{Times, bin_start};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};

use crate::measure::{Better, Measure, Quantity, Value};
use crate::{Centre, Estimate, Sample};

pub use beside::{Beside, Figure};
pub use class::ClassResult;
pub use link::{LinkPoint, LinkResult};
pub use lookups::LookupResult;
pub use rows::{Measured, measured};
pub use traffic::{PageResult, ProgressPoint, RecordedCall, RecordedStream, TrafficResult};
pub use video::VideoResult;

/// The most points of a distribution or of a series over time.
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
    /// Transfers of all runs that did not begin at their time, because
    /// [`MOST_OPEN`](tidegate_sim::scenario::MOST_OPEN) others were open; not written
    /// when there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited: u64,
    /// Flows up to this size are called short.
    pub short_flow_bytes: u64,
    /// Flows from this size on are called long.
    pub long_flow_bytes: u64,
    /// One entry for each discipline that has a run, in the order asked for.
    pub disciplines: Vec<DisciplineResult>,
    /// What was measured on the link, beside the first discipline; not written if nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// Of a recording, the disciplines over its parts instead of seeds: what the verdict
    /// compares. Not written; empty for others.
    #[serde(skip)]
    pub parts: Vec<DisciplineResult>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The results of one discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisciplineResult {
    /// Its name here.
    pub label: String,
    /// Its name in the registry.
    pub name: String,
    /// The number of runs with results.
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

/// The throughput of one source of transfers divided by that of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioResult {
    /// Name of the former.
    pub of: String,
    /// Name of the latter.
    pub over: String,
    /// Payload delivered of the former divided by that of the latter, run by
    /// run. A source that carried next to nothing counts as one full segment.
    pub throughput: Option<Sample>,
}

impl RatioResult {
    /// The measure of it.
    pub const MEASURE: Measure<RatioResult> = Measure {
        name: "throughput_ratio",
        heading: "Ratio",
        headline: Some("Throughput"),
        quantity: Quantity::Plain,
        better: Better::Neither,
        tables: &["Throughput of one source over another’s"],
        value: |it| Value::Sample(it.throughput.as_ref()),
    };
}

impl Comparison {
    /// Condenses `runs`: labels identify the runs of one discipline.
    #[must_use]
    pub fn of<'r>(scenario: &Scenario, runs: &'r [RunSummary]) -> Comparison {
        let of_label = |label: &str| -> Vec<&'r RunSummary> {
            runs.iter().filter(|run| run.discipline == label).collect()
        };
        let by_choice = scenario.disciplines.iter().map(|it| (it, of_label(&it.label)));
        let by_choice: Vec<_> = by_choice.filter(|(_, runs)| !runs.is_empty()).collect();
        let results = |runs: &dyn Fn(&[&'r RunSummary]) -> Vec<&'r RunSummary>| {
            let of = |(choice, all): &(&DisciplineChoice, Vec<&'r RunSummary>)| {
                DisciplineResult::of(scenario, &choice.label, choice.entry.name, &runs(all))
            };
            by_choice.iter().map(of).collect::<Vec<_>>()
        };
        let disciplines = results(&<[_]>::to_vec);
        let is_cut = |runs: &[&RunSummary]| matches!(runs, [run] if !run.parts.is_empty());
        let has_parts = by_choice.iter().all(|(_, runs)| is_cut(runs));
        let parts =
            if has_parts { results(&|runs| runs[0].parts.iter().collect()) } else { Vec::new() };
        let expected = scenario.disciplines.len() * scenario.seeds.len();
        let cut_short = runs.iter().any(|run| run.reached.0 < scenario.duration.0);
        Comparison {
            title: scenario.title.clone(),
            description: scenario.description.clone(),
            duration_s: scenario.duration.as_seconds(),
            warm_up_s: scenario.warm_up.as_seconds(),
            seeds: scenario.seeds.clone(),
            partial: cut_short || runs.len() < expected,
            waited: runs.iter().map(|run| run.waited).sum(),
            short_flow_bytes: scenario.short_flow.0,
            long_flow_bytes: scenario.long_flow.0,
            beside: beside::of(scenario, &disciplines),
            disciplines,
            parts,
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
            ClassResult::of(label, upper.map(|size| size.0), runs, |run| &run.classes[index])
        };
        let up_to = scenario.short_flow;
        let short = format!("short, up to {up_to}");
        let short = ClassResult::of(short, Some(up_to.0), runs, |run| &run.short);
        let mut pooled = Times::default();
        runs.iter().for_each(|run| pooled.merge(&run.short.response));
        let has_queue = |link: &usize| runs[0].links[*link].is_some();
        DisciplineResult {
            label: label.into(),
            name: name.into(),
            runs: runs.len(),
            classes: (0..=bounds.len()).map(class).collect(),
            short,
            all: ClassResult::of("all".into(), None, runs, |run| &run.all),
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
        // Where one starves the other, the ratio is any number.
        throughput: sample(Centre::Median, runs, |run| {
            Some(carried(run, first) / carried(run, other))
        }),
    };
    sources.map(ratio).collect()
}

/// What `value` finds in each run.
fn sample(
    centre: Centre,
    runs: &[&RunSummary],
    value: impl Fn(&RunSummary) -> Option<f64>,
) -> Option<Sample> {
    Sample::of(centre, runs.iter().map(|run| (run.seed, value(run))))
}

/// Mean and percentiles of a delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayResult {
    /// Mean.
    pub mean_s: Option<Sample>,
    /// Median.
    pub median_s: Option<Sample>,
    /// 95th percentile.
    pub p95_s: Option<Sample>,
    /// 99th percentile.
    pub p99_s: Option<Sample>,
    /// The largest of a run.
    #[serde(default)]
    pub max_s: Option<Sample>,
}

impl DelayResult {
    fn of(runs: &[&RunSummary], of: impl Fn(&RunSummary) -> Option<&Times>) -> DelayResult {
        let sample = |centre, value: &dyn Fn(&Times) -> Option<f64>| {
            sample(centre, runs, |run| value(of(run)?))
        };
        let quantile = |fraction| sample(Centre::Median, &|times| times.quantile(fraction));
        DelayResult {
            mean_s: sample(Centre::Mean, &Times::mean),
            median_s: quantile(0.5),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
            max_s: sample(Centre::Median, &Times::largest),
        }
    }
}

fn response_by_size(runs: &[&RunSummary]) -> Vec<SizePoint> {
    let bins = runs[0].bins.len();
    let point = |bin: usize| {
        Some(SizePoint {
            from_bytes: bin_start(bin),
            to_bytes: bin_start(bin + 1),
            flows: runs.iter().map(|run| run.bins[bin].flows).sum(),
            mean_s: Estimate::mean(runs.iter().filter_map(|run| run.bins[bin].mean()))?,
        })
    };
    (0..bins).filter_map(point).collect()
}

pub(crate) fn distribution(times: &Times) -> Vec<DistributionPoint> {
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
        let told: Vec<_> = ratios
            .iter()
            .map(|it| (&*it.over, it.throughput.as_ref().unwrap().estimate().value))
            .collect();
        assert_eq!(told, [("other", 0.5), ("third", 100.0)]);
        assert!(ratios.iter().all(|it| it.of == "one"));
    }
}
