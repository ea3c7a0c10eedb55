//! Values of runs and of pairs of runs, and what else claims have in common.

use std::io::{self, Read};
use std::sync::Arc;

use super::lab::{Flow, Run};
use crate::metrics::run_summary::LinkSummary;
use crate::scenario::file::{self, DataFiles};
use crate::scenario::{DisciplineChoice, Scenario};

/// A scenario that is shipped; `name` is its place among them.
pub(super) fn shipped(name: &str, text: &str) -> Scenario {
    shipped_with(name, text, &[])
}

/// A scenario that is shipped with the files that it names.
pub(super) fn shipped_with(name: &str, text: &str, files: &[(&str, &str)]) -> Scenario {
    file::parse(name, text, &Shipped(files)).expect("a test reads every shipped scenario")
}

/// Files by name and contents.
struct Shipped<'a>(&'a [(&'a str, &'a str)]);

impl DataFiles for Shipped<'_> {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let file = self.0.iter().find(|(known, _)| *known == name);
        let (_, contents) = file.ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(contents.as_bytes()))
    }
}

/// Disciplines by name, with their defaults.
pub(super) fn choices(names: &[&str]) -> Vec<DisciplineChoice> {
    let choice = |name: &&str| name.parse().expect("claims name registered disciplines");
    names.iter().map(choice).collect()
}

/// One value for each seed, from the runs of two disciplines with that seed.
pub(super) fn paired<'a>(
    one: &'a [Arc<Run>],
    other: &'a [Arc<Run>],
    value: impl Fn(&Run, &Run) -> Option<f64> + 'a,
) -> impl Iterator<Item = Option<f64>> + 'a {
    std::iter::zip(one, other).map(move |(one, other)| value(one, other))
}

/// The ratio of a value of each run of `one` to that of its pair in `other`.
pub(super) fn ratio<'a>(
    one: &'a [Arc<Run>],
    other: &'a [Arc<Run>],
    value: impl Fn(&Run) -> Option<f64> + 'a,
) -> impl Iterator<Item = Option<f64>> + 'a {
    paired(one, other, move |one, other| Some(value(one)? / value(other)?))
}

/// Each transfer of `one` with the same transfer in `other`, by source and number.
pub(super) fn pairs(one: &Run, other: &Run) -> Vec<(Flow, Flow)> {
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
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.into_iter().fold((0, 0.0), |(count, sum), x| (count + 1, sum + x));
    (count > 0).then(|| sum / f64::from(count))
}

/// The one link with a queue.
pub(super) fn bottleneck(run: &Run) -> &LinkSummary {
    run.summary.links.iter().flatten().next().expect("the network has a bottleneck")
}
