//! The traffic of one link, and the queue in front of it.

use serde::{Deserialize, Serialize};
use tidegate_core::{LossReason, Span};
use tidegate_sim::metrics::run_summary::LinkSummary;
use tidegate_sim::metrics::{LinkSample, RunSummary};
use tidegate_sim::scenario::{Capacity, QueueSpec, Scenario};

use super::{DelayResult, sample, thin};
use crate::measure::{Better, Measure, Quantity, Table, Value};
use crate::{Centre, Sample};

/// One link with a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Its name in the scenario.
    pub name: String,
    /// Whether the discipline under test was here.
    pub tested: bool,
    /// Bytes sent divided by bytes that could have been sent.
    pub utilisation: Option<Sample>,
    /// Of a wireless link: the share of the time for which its medium sent for anybody, or
    /// somebody waited to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium_use: Option<Sample>,
    /// Packets that arrived, all runs together.
    pub offered: u64,
    /// Packets lost on arrival, all runs together.
    pub refused: u64,
    /// Packets pushed out, all runs together.
    pub pushed_out: u64,
    /// Packets dropped early, to tell senders of congestion, all runs together.
    #[serde(default)]
    pub early: u64,
    /// Acknowledgements dropped because a later one superseded them, all runs together.
    #[serde(default)]
    pub superseded: u64,
    /// Packets dropped because they exceeded what their flow may send, all runs together.
    #[serde(default)]
    pub excess: u64,
    /// Packets marked, to tell senders of congestion, all runs together.
    #[serde(default)]
    pub marked: u64,
    /// Packets lost divided by packets that arrived.
    pub loss_ratio: Option<Sample>,
    /// Time in the queue.
    pub delay: DelayResult,
    /// Mean number of packets queued.
    pub queue_packets: Option<Sample>,
    /// Mean number of flows tracked.
    pub flows_tracked: Option<Sample>,
    /// The most flows tracked at once in any run.
    pub flows_peak: usize,
    /// The state over time in the first run.
    pub over_time: Vec<LinkPoint>,
}

impl LinkResult {
    /// Packets lost for any reason, all runs together.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.refused + self.pushed_out + self.early + self.superseded + self.excess
    }
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
    /// How long the link takes to send what is queued; none in a wireless cell, where
    /// that depends on who else wants the medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_s: Option<f64>,
    /// Bytes that the link could have sent so far; none in a wireless cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
}

impl LinkResult {
    /// The detailed table of the traffic of links.
    pub const PACKETS: Table = "Links: packets";
    /// The detailed table of queues.
    pub const QUEUES: Table = "Links: queues";

    /// Every measure of it, in the order of tables.
    pub const MEASURES: &'static [Measure<LinkResult>] = &[
        Measure {
            name: "offered_packets",
            heading: "Arrived",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Neither,
            tables: &[Self::PACKETS],
            value: |it| Value::Sum(it.offered),
        },
        Measure {
            name: LossReason::Refused.column(),
            heading: "Refused",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Less,
            tables: &[Self::PACKETS],
            value: |it| Value::Sum(it.refused),
        },
        Measure {
            name: LossReason::PushedOut.column(),
            heading: "Pushed out",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Less,
            tables: &[Self::PACKETS],
            value: |it| Value::Sum(it.pushed_out),
        },
        Measure {
            name: LossReason::Early.column(),
            heading: "Dropped early",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Less,
            tables: &[Self::PACKETS],
            value: |it| Value::Sum(it.early),
        },
        Measure {
            name: LossReason::Superseded.column(),
            heading: "ACKs filtered",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Neither,
            tables: &[Self::PACKETS],
            value: |it| Value::Sum(it.superseded),
        },
        Measure {
            name: LossReason::Excess.column(),
            heading: "In excess",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Less,
            tables: &[Self::PACKETS],
            value: |it| Value::Sum(it.excess),
        },
        Measure {
            name: "marked_packets",
            heading: "Marked",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Neither,
            tables: &[Self::PACKETS],
            value: |it| Value::Sum(it.marked),
        },
        Measure {
            name: "flows_tracked_peak",
            heading: "Flows, peak",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Less,
            tables: &[Self::QUEUES],
            value: |it| Value::Largest(it.flows_peak as u64),
        },
        Measure {
            name: "utilisation_ratio",
            heading: "Utilisation",
            headline: Some("Utilisation"),
            quantity: Quantity::Share,
            better: Better::Neither,
            tables: &[Self::PACKETS],
            value: |it| Value::Sample(it.utilisation.as_ref()),
        },
        Measure {
            name: "loss_ratio",
            heading: "Lost",
            headline: Some("Packets lost"),
            quantity: Quantity::Share,
            better: Better::Less,
            tables: &[Self::PACKETS],
            value: |it| Value::Sample(it.loss_ratio.as_ref()),
        },
        Measure {
            name: "queue_packets",
            heading: "Packets queued",
            headline: Some("Packets queued, mean"),
            quantity: Quantity::Plain,
            better: Better::Neither,
            tables: &[Self::QUEUES],
            value: |it| Value::Sample(it.queue_packets.as_ref()),
        },
        Measure {
            name: "flows_tracked",
            heading: "Flows tracked",
            headline: Some("Flows tracked, mean"),
            quantity: Quantity::Plain,
            better: Better::Neither,
            tables: &[Self::QUEUES],
            value: |it| Value::Sample(it.flows_tracked.as_ref()),
        },
        Measure {
            name: "delay_mean_s",
            heading: "Wait, mean",
            headline: Some("Time in the queue, mean"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::QUEUES],
            value: |it| Value::Sample(it.delay.mean_s.as_ref()),
        },
        Measure {
            name: "delay_median_s",
            heading: "Median",
            headline: None,
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::QUEUES],
            value: |it| Value::Sample(it.delay.median_s.as_ref()),
        },
        Measure {
            name: "delay_p95_s",
            heading: "95th percentile",
            headline: None,
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::QUEUES],
            value: |it| Value::Sample(it.delay.p95_s.as_ref()),
        },
        Measure {
            name: "delay_p99_s",
            heading: "99th percentile",
            headline: None,
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::QUEUES],
            value: |it| Value::Sample(it.delay.p99_s.as_ref()),
        },
        Measure {
            name: "delay_max_s",
            heading: "Largest",
            headline: None,
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::QUEUES],
            value: |it| Value::Sample(it.delay.max_s.as_ref()),
        },
    ];
}

impl LinkPoint {
    fn of(sample: &LinkSample, capacity: &Capacity) -> LinkPoint {
        let (at, queued) = (sample.at, sample.backlog.bytes);
        let (backlog, capacity) = match capacity {
            Capacity::Fixed(rate) => {
                (Some(rate.transmission(queued)), Some(rate.volume(Span(at.0))))
            }
            Capacity::Trace(trace) => {
                (Some(trace.transmission(at, queued)), Some(trace.volume(at)))
            }
            Capacity::Unlimited | Capacity::Uplink(_) | Capacity::Downlink(_) => (None, None),
        };
        LinkPoint {
            at_s: at.as_seconds(),
            packets: sample.backlog.packets,
            flows_tracked: sample.flows_tracked,
            lost: sample.counters.lost(),
            delivered_bytes: sample.counters.delivered_bytes.0,
            backlog_s: backlog.map(Span::as_seconds),
            capacity_bytes: capacity.map(|bytes| bytes.0),
        }
    }
}

impl LinkResult {
    pub(super) fn of(scenario: &Scenario, index: usize, runs: &[&RunSummary]) -> LinkResult {
        let links = || runs.iter().filter_map(|run| run.links[index].as_ref());
        // Shares of one, and means over the run of what the buffer bounds.
        let mean = |value: &dyn Fn(&LinkSummary) -> f64| {
            sample(Centre::Mean, runs, |run| run.links[index].as_ref().map(value))
        };
        let over_time: Vec<_> = links()
            .next()
            .into_iter()
            .flat_map(|link| &link.samples)
            .map(|sample| LinkPoint::of(sample, &scenario.links[index].capacity))
            .collect();
        let lost = |reason| links().map(|link| link.counters.lost_as(reason)).sum();
        LinkResult {
            name: scenario.links[index].name.clone(),
            tested: matches!(scenario.links[index].queue, QueueSpec::Tested(_)),
            utilisation: mean(&|link| link.utilisation),
            medium_use: sample(Centre::Mean, runs, |run| run.links[index].as_ref()?.medium_use),
            offered: links().map(|link| link.counters.offered).sum(),
            refused: lost(LossReason::Refused),
            pushed_out: lost(LossReason::PushedOut),
            early: lost(LossReason::Early),
            superseded: lost(LossReason::Superseded),
            excess: lost(LossReason::Excess),
            marked: links().map(|link| link.counters.marked).sum(),
            loss_ratio: mean(&LinkSummary::loss_ratio),
            delay: DelayResult::of(runs, |run| Some(&run.links[index].as_ref()?.delay)),
            queue_packets: mean(&LinkSummary::mean_packets),
            flows_tracked: mean(&LinkSummary::mean_flows),
            flows_peak: links().map(|link| link.counters.flows_peak).max().unwrap_or(0),
            over_time: thin(&over_time),
        }
    }
}
