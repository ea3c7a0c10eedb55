//! Values of runs and of pairs of runs, and what else claims have in common.

use std::sync::Arc;

use crate::lab::{Flow, Run};
use tidegate_sim::metrics::run_summary::LinkSummary;
use tidegate_sim::scenario::DisciplineChoice;

/// Disciplines by name, with their defaults.
pub(crate) fn choices(names: &[&str]) -> Vec<DisciplineChoice> {
    let choice = |name: &&str| name.parse().expect("claims name registered disciplines");
    names.iter().map(choice).collect()
}

/// One value for each seed, from the runs of two disciplines with that seed.
pub(crate) fn paired<'a>(
    one: &'a [Arc<Run>],
    other: &'a [Arc<Run>],
    value: impl Fn(&Run, &Run) -> Option<f64> + 'a,
) -> impl Iterator<Item = Option<f64>> + 'a {
    std::iter::zip(one, other).map(move |(one, other)| value(one, other))
}

/// The ratio of a value of each run of `one` to that of its pair in `other`.
pub(crate) fn ratio<'a>(
    one: &'a [Arc<Run>],
    other: &'a [Arc<Run>],
    value: impl Fn(&Run) -> Option<f64> + 'a,
) -> impl Iterator<Item = Option<f64>> + 'a {
    paired(one, other, move |one, other| Some(value(one)? / value(other)?))
}

/// Each transfer of `one` with the same transfer in `other`, by source and number.
pub(crate) fn pairs(one: &Run, other: &Run) -> Vec<(Flow, Flow)> {
    let name = |flow: &Flow| (flow.traffic, flow.number);
    let sorted = |run: &Run| {
        let mut flows = run.flows.clone();
        flows.sort_unstable_by_key(name);
        flows
    };
    let (one, other) = (sorted(one), sorted(other));
    assert!(one.iter().map(name).eq(other.iter().map(name)), "same seed, same arrivals");
    std::iter::zip(one, other).collect()
}

/// The mean of `values`; `None` when there are none.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.into_iter().fold((0, 0.0), |(count, sum), x| (count + 1, sum + x));
    (count > 0).then(|| sum / f64::from(count))
}

/// The one link with a queue.
pub(crate) fn bottleneck(run: &Run) -> &LinkSummary {
    run.summary.links.iter().flatten().next().expect("the network has a bottleneck")
}
