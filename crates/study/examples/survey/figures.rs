//! The figures that are compared: of the survey, and of the evidence for `tide`.

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::{LinkSummary, Times, TrafficSummary, jain_index};
use tidegate_sim::scenario::{QueueSpec, Scenario, SizeLaw, TrafficKind, TrafficSpec};
use tidegate_study::measure::Better;
use tidegate_study::{Centre, Sample};

/// A figure of a run.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    /// Its name at the head of a column and in a plot.
    pub(crate) label: &'static str,
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

pub(crate) const FIGURES: [Figure; 13] = [
    Figure {
        name: "short transfers, mean response",
        label: "short, mean",
        column: "short_mean_s",
        unit: "ms",
        scale: 1e3,
        better: Better::Less,
        centre: Centre::Mean,
        matters: 0.005,
        value: |scenario, run| short(scenario, run).mean(),
    },
    Figure {
        name: "short transfers, 95% below",
        label: "short, 95% below",
        column: "short_p95_s",
        unit: "ms",
        scale: 1e3,
        better: Better::Less,
        centre: Centre::Median,
        matters: 0.005,
        value: |scenario, run| short(scenario, run).quantile(0.95),
    },
    Figure {
        name: "pages over HTTP/2, mean time",
        label: "pages, mean",
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
        label: "bulk, goodput",
        column: "bulk_goodput_bit_s",
        unit: "Mbit/s",
        scale: 1e-6,
        better: Better::More,
        centre: Centre::Mean,
        matters: 50_000.0,
        value: |scenario, run| {
            let (count, sum) =
                goodputs(scenario, run).fold((0, 0.0), |(n, sum), rate| (n + 1, sum + rate));
            (count > 0).then(|| sum / f64::from(count))
        },
    },
    Figure {
        name: "bulk transfers, longest stall",
        label: "bulk, longest stall",
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
        name: "bulk transfers, Jain's index",
        label: "bulk, Jain's index",
        column: "bulk_jain",
        unit: "",
        scale: 1.0,
        better: Better::More,
        centre: Centre::Mean,
        matters: 0.01,
        value: |scenario, run| {
            jain_index(goodputs(scenario, run)).filter(|_| goodputs(scenario, run).count() > 1)
        },
    },
    Figure {
        name: "calls, delay, 95% below",
        label: "call, 95% below",
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
        label: "call, loss",
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
        label: "stream, 95% below",
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
        label: "stream, loss",
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
        name: "attackers, payload that arrives",
        label: "attackers",
        column: "attacker_bit_s",
        unit: "Mbit/s",
        scale: 1e-6,
        better: Better::Less,
        centre: Centre::Mean,
        matters: 50_000.0,
        value: |scenario, run| {
            let measured = (scenario.duration - scenario.warm_up).as_seconds();
            let arrived = named(scenario, run, ATTACKER).map(|source| source.delivered.0 as f64);
            arrived.reduce(|sum, more| sum + more).map(|bytes| bytes * 8.0 / measured)
        },
    },
    Figure {
        name: "use of the busiest link",
        label: "use of the link",
        column: "link_use",
        unit: "%",
        scale: 100.0,
        better: Better::More,
        centre: Centre::Mean,
        matters: 0.005,
        value: |scenario, run| tested(scenario, run).map(|link| link.utilisation).reduce(f64::max),
    },
    Figure {
        name: "flows tracked, mean",
        label: "flows tracked",
        column: "flows_tracked",
        unit: "",
        scale: 1.0,
        better: Better::Less,
        centre: Centre::Mean,
        matters: 1.0,
        value: |scenario, run| tested(scenario, run).map(LinkSummary::mean_flows).reduce(f64::max),
    },
];

/// What the names of sources begin with that do not play fair.
pub(crate) const ATTACKER: &str = "attacker";

/// The response times of short transfers: of the users', where somebody attacks them.
fn short(scenario: &Scenario, run: &RunSummary) -> Times {
    let mut times = Times::default();
    let sources = std::iter::zip(&scenario.traffic, &run.traffic);
    let users = sources.filter(|(spec, _)| !is_attacker(spec));
    users.for_each(|(_, source)| times.merge(&source.short));
    times
}

fn is_attacker(spec: &TrafficSpec) -> bool {
    spec.name.starts_with(ATTACKER)
}

/// The links with the discipline under test.
fn tested<'a>(
    scenario: &'a Scenario,
    run: &'a RunSummary,
) -> impl Iterator<Item = &'a LinkSummary> {
    let links = std::iter::zip(&scenario.links, &run.links);
    links
        .filter(|(spec, _)| matches!(spec.queue, QueueSpec::Tested(_)))
        .filter_map(|it| it.1.as_ref())
}

/// The sources of users whose transfers never end; where there are none, all that have long
/// transfers.
fn bulk<'a>(
    scenario: &'a Scenario,
    run: &'a RunSummary,
) -> impl Iterator<Item = &'a TrafficSummary> {
    let endless =
        |kind: &TrafficKind| matches!(kind, TrafficKind::Transfers { sizes: SizeLaw::Endless, .. });
    let any = scenario.traffic.iter().any(|spec| endless(&spec.kind));
    let sources = std::iter::zip(&scenario.traffic, &run.traffic);
    let users = sources.filter(|(spec, _)| !is_attacker(spec));
    let chosen = users.filter(move |(spec, source)| match any {
        true => endless(&spec.kind),
        false => !source.long_goodputs.is_empty(),
    });
    chosen.map(|(_, source)| source)
}

/// The goodput of each bulk transfer.
fn goodputs<'a>(scenario: &'a Scenario, run: &'a RunSummary) -> impl Iterator<Item = f64> + 'a {
    bulk(scenario, run).flat_map(|source| source.long_goodputs.iter().copied())
}

/// The sources with `name` in their names.
fn named<'a>(
    scenario: &'a Scenario,
    run: &'a RunSummary,
    name: &'static str,
) -> impl Iterator<Item = &'a TrafficSummary> {
    let sources = std::iter::zip(&scenario.traffic, &run.traffic);
    sources.filter(move |(spec, _)| spec.name.contains(name)).map(|(_, source)| source)
}

/// The largest value of the sources of datagrams with `name` in their names.
fn worst(
    scenario: &Scenario,
    run: &RunSummary,
    name: &'static str,
    value: fn(&TrafficSummary) -> Option<f64>,
) -> Option<f64> {
    let sources = named(scenario, run, name).filter(|source| source.datagrams > 0);
    sources.filter_map(value).reduce(f64::max)
}

fn lost(source: &TrafficSummary) -> Option<f64> {
    Some(source.datagrams_lost as f64 / source.datagrams as f64)
}

impl Figure {
    /// What `runs` of one discipline say; `None` if none has it.
    pub(crate) fn sample(&self, scenario: &Scenario, runs: &[RunSummary]) -> Option<Sample> {
        let value = |run| (self.value)(scenario, run);
        Sample::of(self.centre, runs.iter().map(|run| (run.seed, value(run))))
    }

    /// A value as in the tables, with its unit.
    pub(crate) fn text(&self, value: f64) -> String {
        let value = value * self.scale;
        let places = match value.abs() {
            size if size >= 100.0 || size == 0.0 => 0,
            size if size >= 10.0 => 1,
            _ => 2,
        };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        format!("{value:.places$}{unit}")
    }
}
