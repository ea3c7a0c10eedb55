//! The figures that are compared, and who is best.

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::TrafficSummary;
use tidegate_sim::scenario::{QueueSpec, Scenario};
use tidegate_study::measure::Better;
use tidegate_study::{Centre, Sample, ranking};

/// A figure of a run.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) column: &'static str,
    pub(crate) unit: &'static str,
    /// From the first unit to that of the tables.
    pub(crate) scale: f64,
    /// Which is better.
    pub(crate) better: Better,
    /// What is estimated of its values over the seeds.
    pub(crate) centre: Centre,
    /// Differences smaller than this are nobody's win: in the first unit.
    pub(crate) matters: f64,
    pub(crate) value: fn(&Scenario, &RunSummary) -> Option<f64>,
}

pub(crate) const FIGURES: [Figure; 10] = [
    Figure {
        name: "short transfers, mean response",
        column: "short_mean_s",
        unit: "ms",
        scale: 1e3,
        better: Better::Less,
        centre: Centre::Mean,
        matters: 0.005,
        value: |_, run| run.short.response.mean(),
    },
    Figure {
        name: "short transfers, 95% below",
        column: "short_p95_s",
        unit: "ms",
        scale: 1e3,
        better: Better::Less,
        centre: Centre::Median,
        matters: 0.005,
        value: |_, run| run.short.response.quantile(0.95),
    },
    Figure {
        name: "pages over HTTP/2, mean time",
        column: "page_mean_s",
        unit: "ms",
        scale: 1e3,
        better: Better::Less,
        centre: Centre::Mean,
        matters: 0.05,
        value: |_, run| run.traffic.iter().find_map(|source| source.page_loads.mean()),
    },
    Figure {
        name: "bulk transfers, goodput each",
        column: "bulk_goodput_bit_s",
        unit: "Mbit/s",
        scale: 1e-6,
        better: Better::More,
        centre: Centre::Mean,
        matters: 50_000.0,
        value: |scenario, run| {
            let goodputs = bulk(scenario, run).flat_map(|source| &source.long_goodputs);
            let (count, sum) = goodputs.fold((0, 0.0), |(n, sum), rate| (n + 1, sum + rate));
            (count > 0).then(|| sum / f64::from(count))
        },
    },
    Figure {
        name: "bulk transfers, longest stall",
        column: "bulk_stall_s",
        unit: "s",
        scale: 1.0,
        better: Better::Less,
        centre: Centre::Median,
        matters: 0.1,
        value: |scenario, run| {
            bulk(scenario, run).map(|source| source.longest_stall.as_seconds()).reduce(f64::max)
        },
    },
    Figure {
        name: "calls, delay, 95% below",
        column: "call_delay_p95_s",
        unit: "ms",
        scale: 1e3,
        better: Better::Less,
        centre: Centre::Median,
        matters: 0.001,
        value: |scenario, run| worst(scenario, run, "call", |call| call.delay.quantile(0.95)),
    },
    Figure {
        name: "calls, loss",
        column: "call_loss",
        unit: "%",
        scale: 100.0,
        better: Better::Less,
        centre: Centre::Mean,
        matters: 0.001,
        value: |scenario, run| worst(scenario, run, "call", lost),
    },
    Figure {
        name: "streams and recorded packets, delay, 95% below",
        column: "stream_delay_p95_s",
        unit: "ms",
        scale: 1e3,
        better: Better::Less,
        centre: Centre::Median,
        matters: 0.001,
        value: |scenario, run| {
            let of = |name| worst(scenario, run, name, |one| one.delay.quantile(0.95));
            of("stream").or_else(|| of("page load"))
        },
    },
    Figure {
        name: "streams and recorded packets, loss",
        column: "stream_loss",
        unit: "%",
        scale: 100.0,
        better: Better::Less,
        centre: Centre::Mean,
        matters: 0.001,
        value: |scenario, run| {
            worst(scenario, run, "stream", lost).or_else(|| worst(scenario, run, "page load", lost))
        },
    },
    Figure {
        name: "flows tracked, mean",
        column: "flows_tracked",
        unit: "",
        scale: 1.0,
        better: Better::Less,
        centre: Centre::Mean,
        matters: 1.0,
        value: |scenario, run| {
            let tested = std::iter::zip(&scenario.links, &run.links)
                .filter(|(spec, _)| matches!(spec.queue, QueueSpec::Tested(_)));
            tested.filter_map(|(_, link)| Some(link.as_ref()?.mean_flows())).reduce(f64::max)
        },
    },
];

/// The sources whose transfers never end.
fn bulk<'a>(
    scenario: &'a Scenario,
    run: &'a RunSummary,
) -> impl Iterator<Item = &'a TrafficSummary> {
    let named = |name: &str| ["bulk", "download", "backup", "uploads"].contains(&name);
    let sources = std::iter::zip(&scenario.traffic, &run.traffic);
    sources.filter(move |(spec, _)| named(&spec.name)).map(|(_, source)| source)
}

/// The largest value of the sources of datagrams with `name` in their names.
fn worst(
    scenario: &Scenario,
    run: &RunSummary,
    name: &str,
    value: fn(&TrafficSummary) -> Option<f64>,
) -> Option<f64> {
    let sources = std::iter::zip(&scenario.traffic, &run.traffic);
    let called = sources.filter(|(spec, source)| spec.name.contains(name) && source.datagrams > 0);
    called.filter_map(|(_, source)| value(source)).reduce(f64::max)
}

fn lost(source: &TrafficSummary) -> Option<f64> {
    Some(source.datagrams_lost as f64 / source.datagrams as f64)
}

/// What came out of a case.
pub(crate) struct CaseResult {
    pub(crate) name: String,
    pub(crate) group: &'static str,
    /// By discipline and figure.
    pub(crate) values: Vec<Vec<Option<Sample>>>,
}

impl CaseResult {
    /// A figure of every discipline.
    fn of(&self, figure: usize) -> Vec<Option<&Sample>> {
        self.values.iter().map(|values| values[figure].as_ref()).collect()
    }

    /// Whether any discipline has this figure.
    pub(crate) fn has(&self, figure: usize) -> bool {
        self.of(figure).iter().any(Option::is_some)
    }

    /// Which disciplines win.
    pub(crate) fn winners(&self, figure: usize) -> Vec<bool> {
        ranking::best(&self.of(figure), FIGURES[figure].better, FIGURES[figure].matters)
    }
}
