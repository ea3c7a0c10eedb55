//! The results of the transfers of one size class.

use serde::{Deserialize, Serialize};
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::ClassSummary;

use super::sample;
use crate::measure::{Better, Measure, Quantity, Table, Value};
use crate::{Centre, Sample};

/// The flows of one size class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// The sizes in it, in words.
    pub label: String,
    /// Largest size in it; `None` for the last class.
    pub up_to_bytes: Option<u64>,
    /// Flows that began, all runs together.
    pub started: u64,
    /// Flows that finished, all runs together.
    pub completed: u64,
    /// Flows that lost at least one packet, all runs together.
    pub with_loss: u64,
    /// Mean response time.
    pub mean_s: Option<Sample>,
    /// Median response time.
    pub median_s: Option<Sample>,
    /// 95th percentile of the response time.
    pub p95_s: Option<Sample>,
    /// Mean of the response time divided by that on an empty link.
    pub slowdown: Option<Sample>,
}

impl ClassResult {
    /// The detailed table of size classes.
    pub const CLASSES: Table = "Response times by size class";

    /// Every measure of it, in the order of tables.
    pub const MEASURES: &'static [Measure<ClassResult>] = &[
        Measure {
            name: "started_flows",
            heading: "Started",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Neither,
            tables: &[Self::CLASSES],
            value: |it| Value::Sum(it.started),
        },
        Measure {
            name: "completed_flows",
            heading: "Finished",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::More,
            tables: &[Self::CLASSES],
            value: |it| Value::Sum(it.completed),
        },
        Measure {
            name: "flows_with_loss",
            heading: "With loss",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Less,
            tables: &[Self::CLASSES],
            value: |it| Value::Part { part: it.with_loss, of: it.started },
        },
        Measure {
            name: "response_mean_s",
            heading: "Mean",
            headline: Some("Response time, mean"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::CLASSES],
            value: |it| Value::Sample(it.mean_s.as_ref()),
        },
        Measure {
            name: "response_median_s",
            heading: "Median",
            headline: Some("Response time, median"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::CLASSES],
            value: |it| Value::Sample(it.median_s.as_ref()),
        },
        Measure {
            name: "response_p95_s",
            heading: "95th percentile",
            headline: Some("Response time, 95th percentile"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::CLASSES],
            value: |it| Value::Sample(it.p95_s.as_ref()),
        },
        Measure {
            name: "slowdown_ratio",
            heading: "Slowdown",
            headline: Some("Slowdown, mean"),
            quantity: Quantity::Plain,
            better: Better::Less,
            tables: &[Self::CLASSES],
            value: |it| Value::Sample(it.slowdown.as_ref()),
        },
    ];
}

impl ClassResult {
    pub(super) fn of(
        label: String,
        up_to_bytes: Option<u64>,
        runs: &[&RunSummary],
        of: impl Fn(&RunSummary) -> &ClassSummary,
    ) -> ClassResult {
        let sample = |centre, value: &dyn Fn(&ClassSummary) -> Option<f64>| {
            sample(centre, runs, |run| value(of(run)))
        };
        let quantile =
            |fraction| sample(Centre::Median, &|class| class.response.quantile(fraction));
        ClassResult {
            label,
            up_to_bytes,
            started: runs.iter().map(|run| of(run).started).sum(),
            completed: runs.iter().map(|run| of(run).completed).sum(),
            with_loss: runs.iter().map(|run| of(run).with_loss).sum(),
            mean_s: sample(Centre::Mean, &|class| class.response.mean()),
            median_s: quantile(0.5),
            p95_s: quantile(0.95),
            slowdown: sample(Centre::Mean, &ClassSummary::mean_slowdown),
        }
    }
}
