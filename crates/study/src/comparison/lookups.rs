//! The results of a source of lookups: how long hosts waited for names.

use serde::{Deserialize, Serialize};
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::{LookupSummary, Times};
use tidegate_sim::scenario::{Scenario, TrafficKind};

use super::{DelayResult, DistributionPoint, TrafficResult, distribution, sample};
use crate::measure::{Better, Measure, Quantity, Table, Value};
use crate::{Centre, Sample};

/// The lookups of a source that ended within the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LookupResult {
    /// How many, all runs together.
    pub ended: u64,
    /// Those that nobody answered in time, divided by all of them.
    pub failed_ratio: Option<Sample>,
    /// Those whose host asked more than once, divided by all of them.
    pub asked_again_ratio: Option<Sample>,
    /// From the first query to the answer; of one that failed, until its host gave up.
    pub time: DelayResult,
    /// Distribution of that time, all runs together.
    pub time_distribution: Vec<DistributionPoint>,
}

impl LookupResult {
    pub(super) fn of(
        scenario: &Scenario,
        index: usize,
        runs: &[&RunSummary],
    ) -> Option<LookupResult> {
        if !matches!(scenario.traffic[index].kind, TrafficKind::Dns { .. }) {
            return None;
        }
        let part = |of: fn(&LookupSummary) -> u64| {
            sample(Centre::Mean, runs, |run| {
                let lookups = &run.traffic[index].lookups;
                let all = lookups.times.count();
                (all > 0).then(|| of(lookups) as f64 / all as f64)
            })
        };
        let mut pooled = Times::default();
        runs.iter().for_each(|run| pooled.merge(&run.traffic[index].lookups.times));
        Some(LookupResult {
            ended: pooled.count(),
            failed_ratio: part(|it| it.failed),
            asked_again_ratio: part(|it| it.asked_again),
            time: DelayResult::of(runs, |run| Some(&run.traffic[index].lookups.times)),
            time_distribution: distribution(&pooled),
        })
    }
}

impl TrafficResult {
    /// The detailed table of sources of lookups.
    pub const LOOKUPS: Table = "Sources of lookups";
}

pub(super) const MEAN: Measure<TrafficResult> = Measure {
    name: "lookup_mean_s",
    heading: "Lookup, mean",
    headline: Some("Time of a lookup, mean"),
    quantity: Quantity::Time,
    better: Better::Less,
    tables: &[TrafficResult::LOOKUPS],
    value: |it| Value::Sample(it.lookups.as_ref().and_then(|it| it.time.mean_s.as_ref())),
};
pub(super) const MEDIAN: Measure<TrafficResult> = Measure {
    name: "lookup_median_s",
    heading: "Median",
    headline: Some("Time of a lookup, median"),
    quantity: Quantity::Time,
    better: Better::Less,
    tables: &[TrafficResult::LOOKUPS],
    value: |it| Value::Sample(it.lookups.as_ref().and_then(|it| it.time.median_s.as_ref())),
};
pub(super) const P95: Measure<TrafficResult> = Measure {
    name: "lookup_p95_s",
    heading: "95th percentile",
    headline: Some("Time of a lookup, 95th percentile"),
    quantity: Quantity::Time,
    better: Better::Less,
    tables: &[TrafficResult::LOOKUPS],
    value: |it| Value::Sample(it.lookups.as_ref().and_then(|it| it.time.p95_s.as_ref())),
};
pub(super) const P99: Measure<TrafficResult> = Measure {
    name: "lookup_p99_s",
    heading: "99th percentile",
    headline: Some("Time of a lookup, 99th percentile"),
    quantity: Quantity::Time,
    better: Better::Less,
    tables: &[TrafficResult::LOOKUPS],
    value: |it| Value::Sample(it.lookups.as_ref().and_then(|it| it.time.p99_s.as_ref())),
};
pub(super) const ASKED_AGAIN: Measure<TrafficResult> = Measure {
    name: "lookups_asked_again_ratio",
    heading: "Asked again",
    headline: Some("Lookups asked again"),
    quantity: Quantity::Share,
    better: Better::Less,
    tables: &[TrafficResult::LOOKUPS],
    value: |it| Value::Sample(it.lookups.as_ref().and_then(|it| it.asked_again_ratio.as_ref())),
};
pub(super) const FAILED: Measure<TrafficResult> = Measure {
    name: "lookups_failed_ratio",
    heading: "Failed",
    headline: Some("Lookups that failed"),
    quantity: Quantity::Share,
    better: Better::Less,
    tables: &[TrafficResult::LOOKUPS],
    value: |it| Value::Sample(it.lookups.as_ref().and_then(|it| it.failed_ratio.as_ref())),
};
