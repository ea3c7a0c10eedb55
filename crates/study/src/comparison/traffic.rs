//! The results of one source of traffic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_core::{Span, Time};
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::{Times, TrafficSummary};
use tidegate_sim::scenario::{Scenario, TrafficKind};
use tidegate_sim::trace::RtpStream;

use super::{
    DelayResult, DistributionPoint, LookupResult, VideoResult, distribution, lookups, sample, thin,
    video,
};
use crate::measure::{Better, Measure, Quantity, Table, Value};
use crate::{Centre, Sample, e_model};

/// One source of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficResult {
    /// Its name in the scenario.
    pub name: String,
    /// Whether it sends datagrams (a call, a replay) instead of transfers.
    pub datagrams: bool,
    /// Whether its packets are sent as they were recorded, whatever becomes of them; not
    /// written of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Flows that began, all runs together.
    pub started: u64,
    /// Flows that finished, all runs together.
    pub completed: u64,
    /// Payload delivered, divided by the run's time after the warm-up.
    pub throughput_bps: Option<Sample>,
    /// Jain's index over its long flows.
    pub fairness: Option<Sample>,
    /// Mean goodput of its long flows.
    pub long_goodput_bps: Option<Sample>,
    /// The longest time without progress of a long flow.
    pub longest_stall_s: Option<Sample>,
    /// Datagrams lost divided by datagrams sent.
    pub loss_ratio: Option<Sample>,
    /// The time after which a datagram is late, if the scenario sets one.
    #[serde(default)]
    pub deadline_s: Option<f64>,
    /// Datagrams that arrived after the deadline or never, divided by those that were due.
    #[serde(default)]
    pub late_ratio: Option<Sample>,
    /// What it would be worth as a telephone call, R from 0 to 100
    /// ([`crate::e_model`]); of streams of datagrams, and of the calls of captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_rating: Option<Sample>,
    /// Of a call of a capture, what the capture shows of it; not written of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_call: Option<RecordedCall>,
    /// Whether it is a call whose rate follows what the path carries; not written of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adapts: bool,
    /// Of a source of pages, how they loaded; not written of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageResult>,
    /// Of a source of video, what its viewers saw; not written of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoResult>,
    /// Of a source of lookups, how long hosts waited for names; not written of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookups: Option<LookupResult>,
    /// Datagrams that arrived, all runs together.
    #[serde(default)]
    pub arrived: u64,
    /// One-way delay of datagrams.
    pub delay: DelayResult,
    /// Distribution of that delay, all runs together.
    pub delay_distribution: Vec<DistributionPoint>,
    /// Progress of its followed flows in the first run, one flow after the other.
    pub progress: Vec<ProgressPoint>,
}

/// One direction of a call in a capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// Its streams of RTP, the largest first; empty of a call that only its steady rate
    /// tells.
    pub rtp: Vec<RecordedStream>,
    /// Its packets.
    pub packets: u64,
    /// Mean rate of its IP packets.
    pub rate_bps: f64,
}

/// A stream of RTP in a capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedStream {
    /// Synchronisation source.
    pub source: u32,
    /// Payload type.
    pub payload_type: u8,
    /// Its codec, if the payload type means the same everywhere.
    pub codec: Option<String>,
    /// Packets.
    pub packets: u64,
    /// Sequence numbers that the capture lacks: packets that were lost before it.
    pub missing: u64,
}

impl RecordedCall {
    fn of(kind: &TrafficKind) -> Option<RecordedCall> {
        let TrafficKind::Packets { call: Some(call), .. } = kind else { return None };
        let stream = |stream: &RtpStream| RecordedStream {
            source: stream.source,
            payload_type: stream.payload_type,
            codec: stream.codec().map(str::to_owned),
            packets: stream.packets,
            missing: stream.missing,
        };
        Some(RecordedCall {
            rtp: call.rtp.iter().map(stream).collect(),
            packets: call.packets,
            rate_bps: call.rate.0 as f64,
        })
    }
}

/// The pages of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageResult {
    /// Pages that began, all runs together.
    pub started: u64,
    /// Pages all of whose objects arrived, all runs together.
    pub completed: u64,
    /// Pages all of whose objects arrived, divided by those that began.
    #[serde(default)]
    pub loaded_ratio: Option<Sample>,
    /// Mean time from the start of a page to the last byte of its last object.
    pub load_mean_s: Option<Sample>,
    /// Median of that.
    pub load_median_s: Option<Sample>,
    /// 95th percentile of that.
    pub load_p95_s: Option<Sample>,
    /// Mean response time of its short objects, from the moment at which each is due.
    pub short_mean_s: Option<Sample>,
    /// 95th percentile of that.
    pub short_p95_s: Option<Sample>,
    /// Distribution of the times of pages, all runs together.
    #[serde(default)]
    pub load_distribution: Vec<DistributionPoint>,
}

/// The progress of a followed flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgressPoint {
    /// Number of the flow within its source.
    pub number: u64,
    /// The moment.
    pub at_s: f64,
    /// Payload that has reached the receiver so far, in order or not; each byte once.
    pub arrived_bytes: u64,
}

impl TrafficResult {
    /// The detailed table of sources of transfers.
    pub const TRANSFERS: Table = "Sources of transfers";
    /// The detailed table of sources of pages.
    pub const PAGES: Table = "Sources of pages";
    /// The detailed table of sources of datagrams.
    pub const DATAGRAMS: Table = "Sources of datagrams";

    /// Every measure of it, in the order of tables.
    pub const MEASURES: &'static [Measure<TrafficResult>] = &[
        Measure {
            name: "started_flows",
            heading: "Started",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::Neither,
            tables: &[Self::TRANSFERS],
            value: |it| Value::Sum(it.started),
        },
        Measure {
            name: "completed_flows",
            heading: "Finished",
            headline: None,
            quantity: Quantity::Plain,
            better: Better::More,
            tables: &[Self::TRANSFERS],
            value: |it| Value::Sum(it.completed),
        },
        Measure {
            name: "throughput_bps",
            heading: "Throughput",
            headline: Some("Throughput of all flows"),
            quantity: Quantity::Rate,
            better: Better::Neither,
            tables: &[Self::TRANSFERS, Self::DATAGRAMS],
            value: |it| Value::Sample(it.throughput_bps.as_ref()),
        },
        Measure {
            name: "long_goodput_bps",
            heading: "Goodput of a long flow",
            headline: Some("Goodput of a long flow"),
            quantity: Quantity::Rate,
            better: Better::More,
            tables: &[Self::TRANSFERS],
            value: |it| Value::Sample(it.long_goodput_bps.as_ref()),
        },
        Measure {
            name: "long_fairness_jain",
            heading: "Fairness",
            headline: Some("Fairness among long flows"),
            quantity: Quantity::Plain,
            better: Better::More,
            tables: &[Self::TRANSFERS],
            value: |it| Value::Sample(it.fairness.as_ref()),
        },
        Measure {
            name: "longest_stall_s",
            heading: "Longest stall",
            headline: Some("Longest stall"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::TRANSFERS],
            value: |it| Value::Sample(it.longest_stall_s.as_ref()),
        },
        Measure {
            name: "page_load_mean_s",
            heading: "Page, mean",
            headline: Some("Time of a page, mean"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::PAGES],
            value: |it| Value::Sample(it.pages.as_ref().and_then(|it| it.load_mean_s.as_ref())),
        },
        Measure {
            name: "page_load_median_s",
            heading: "Median",
            headline: Some("Time of a page, median"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::PAGES],
            value: |it| Value::Sample(it.pages.as_ref().and_then(|it| it.load_median_s.as_ref())),
        },
        Measure {
            name: "page_load_p95_s",
            heading: "95th percentile",
            headline: Some("Time of a page, 95th percentile"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::PAGES],
            value: |it| Value::Sample(it.pages.as_ref().and_then(|it| it.load_p95_s.as_ref())),
        },
        Measure {
            name: "pages_loaded_ratio",
            heading: "Loaded",
            headline: Some("Pages that loaded"),
            quantity: Quantity::Share,
            better: Better::More,
            tables: &[Self::PAGES],
            value: |it| Value::Sample(it.pages.as_ref().and_then(|it| it.loaded_ratio.as_ref())),
        },
        Measure {
            name: "short_object_mean_s",
            heading: "Short object, mean",
            headline: Some("Time of a short object, mean"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::PAGES],
            value: |it| Value::Sample(it.pages.as_ref().and_then(|it| it.short_mean_s.as_ref())),
        },
        Measure {
            name: "short_object_p95_s",
            heading: "95th percentile",
            headline: Some("Time of a short object, 95th percentile"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::PAGES],
            value: |it| Value::Sample(it.pages.as_ref().and_then(|it| it.short_p95_s.as_ref())),
        },
        video::QUALITY,
        video::STALLED,
        video::STALLS,
        video::SWITCHES,
        video::STARTUP,
        lookups::MEAN,
        lookups::MEDIAN,
        lookups::P95,
        lookups::P99,
        lookups::ASKED_AGAIN,
        lookups::FAILED,
        Measure {
            name: "loss_ratio",
            heading: "Lost",
            headline: Some("Packets lost"),
            quantity: Quantity::Share,
            better: Better::Less,
            tables: &[Self::DATAGRAMS],
            value: |it| Value::Sample(it.loss_ratio.as_ref()),
        },
        Measure {
            name: "late_ratio",
            heading: "Late or lost",
            headline: Some("Packets late or lost"),
            quantity: Quantity::Share,
            better: Better::Less,
            tables: &[Self::DATAGRAMS],
            value: |it| Value::Sample(it.late_ratio.as_ref()),
        },
        Measure {
            name: "call_rating",
            heading: "Call, R",
            headline: Some("Quality as a call, R of 100"),
            quantity: Quantity::Plain,
            better: Better::More,
            tables: &[Self::DATAGRAMS],
            value: |it| Value::Sample(it.call_rating.as_ref()),
        },
        Measure {
            name: "delay_mean_s",
            heading: "Delay, mean",
            headline: None,
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::DATAGRAMS],
            value: |it| Value::Sample(it.delay.mean_s.as_ref()),
        },
        Measure {
            name: "delay_median_s",
            heading: "Median",
            headline: Some("Delay, median"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::DATAGRAMS],
            value: |it| Value::Sample(it.delay.median_s.as_ref()),
        },
        Measure {
            name: "delay_p95_s",
            heading: "95th percentile",
            headline: Some("Delay, 95th percentile"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::DATAGRAMS],
            value: |it| Value::Sample(it.delay.p95_s.as_ref()),
        },
        Measure {
            name: "delay_p99_s",
            heading: "99th percentile",
            headline: Some("Delay, 99th percentile"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::DATAGRAMS],
            value: |it| Value::Sample(it.delay.p99_s.as_ref()),
        },
        Measure {
            name: "delay_max_s",
            heading: "Largest",
            headline: Some("Delay, largest"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[Self::DATAGRAMS],
            value: |it| Value::Sample(it.delay.max_s.as_ref()),
        },
    ];
}

impl TrafficResult {
    /// Whether it opens connections: neither datagrams nor lookups.
    #[must_use]
    pub fn is_transfers(&self) -> bool {
        !self.datagrams && self.lookups.is_none()
    }

    pub(super) fn of(scenario: &Scenario, index: usize, runs: &[&RunSummary]) -> TrafficResult {
        let sources = || runs.iter().map(|run| &run.traffic[index]);
        let own = |centre, value: &dyn Fn(&TrafficSummary) -> Option<f64>| {
            sample(centre, runs, |run| value(&run.traffic[index]))
        };
        // Shares of one, and rates below the link's, have no tail.
        let mean = |value: &dyn Fn(&TrafficSummary) -> Option<f64>| own(Centre::Mean, value);
        let mut pooled = Times::default();
        sources().for_each(|source| pooled.merge(&source.delay));
        let warm = Time(scenario.warm_up.0);
        let seconds = |run: &RunSummary| run.reached.since(warm).as_seconds();
        let rate = |run: &RunSummary| {
            let bits = run.traffic[index].delivered.0 as f64 * 8.0;
            (run.reached > warm).then(|| bits / seconds(run))
        };
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
        let call = |source: &TrafficSummary| {
            e_model::rating_of(source.delay.distribution(), loss(source)?)
                // Nothing arrives: as bad as it can be, not unknown.
                .or((source.datagrams_lost > 0).then_some(0.0))
        };
        TrafficResult {
            name: scenario.traffic[index].name.clone(),
            datagrams: sources().any(|source| source.datagrams > 0),
            replayed: matches!(scenario.traffic[index].kind, TrafficKind::Packets { .. }),
            started: sources().map(|source| source.started).sum(),
            completed: sources().map(|source| source.completed).sum(),
            throughput_bps: sample(Centre::Mean, runs, rate),
            fairness: mean(&TrafficSummary::fairness),
            long_goodput_bps: mean(&mean_goodput),
            longest_stall_s: own(Centre::Median, &stall),
            loss_ratio: mean(&loss),
            deadline_s: scenario.traffic[index].deadline.map(Span::as_seconds),
            late_ratio: mean(&TrafficSummary::late_ratio),
            call_rating: is_stream(&scenario.traffic[index].kind).then(|| mean(&call)).flatten(),
            recorded_call: RecordedCall::of(&scenario.traffic[index].kind),
            adapts: matches!(scenario.traffic[index].kind, TrafficKind::Call { .. }),
            pages: PageResult::of(scenario, index, runs),
            video: VideoResult::of(scenario, index, runs),
            lookups: LookupResult::of(scenario, index, runs),
            arrived: pooled.count(),
            delay: DelayResult::of(runs, |run| Some(&run.traffic[index].delay)),
            delay_distribution: distribution(&pooled),
            progress: progress(runs[0], index),
        }
    }
}

/// Whether somebody may be at the other end who listens or plays.
fn is_stream(kind: &TrafficKind) -> bool {
    matches!(
        kind,
        TrafficKind::Cbr { .. }
            | TrafficKind::Call { .. }
            | TrafficKind::Frames { .. }
            | TrafficKind::Packets { call: Some(_), .. }
    )
}

impl PageResult {
    fn of(scenario: &Scenario, index: usize, runs: &[&RunSummary]) -> Option<PageResult> {
        if !matches!(scenario.traffic[index].kind, TrafficKind::Pages { .. }) {
            return None;
        }
        let sources = || runs.iter().map(|run| &run.traffic[index]);
        let mean = |of: fn(&TrafficSummary) -> &Times| {
            sample(Centre::Mean, runs, |run| of(&run.traffic[index]).mean())
        };
        let quantile = |of: fn(&TrafficSummary) -> &Times, fraction| {
            sample(Centre::Median, runs, |run| of(&run.traffic[index]).quantile(fraction))
        };
        let loaded = |run: &RunSummary| {
            let source = &run.traffic[index];
            (source.pages > 0).then(|| source.page_loads.count() as f64 / source.pages as f64)
        };
        let mut pooled = Times::default();
        sources().for_each(|source| pooled.merge(&source.page_loads));
        Some(PageResult {
            started: sources().map(|source| source.pages).sum(),
            completed: sources().map(|source| source.page_loads.count()).sum(),
            loaded_ratio: sample(Centre::Mean, runs, loaded),
            load_mean_s: mean(|source| &source.page_loads),
            load_median_s: quantile(|source| &source.page_loads, 0.5),
            load_p95_s: quantile(|source| &source.page_loads, 0.95),
            short_mean_s: mean(|source| &source.short),
            short_p95_s: quantile(|source| &source.short, 0.95),
            load_distribution: distribution(&pooled),
        })
    }
}

/// The progress of each flow of a source.
fn progress(run: &RunSummary, source: usize) -> Vec<ProgressPoint> {
    let mut flows: BTreeMap<u64, Vec<ProgressPoint>> = BTreeMap::new();
    for sample in run.progress.iter().filter(|sample| sample.traffic == source) {
        flows.entry(sample.number).or_default().push(ProgressPoint {
            number: sample.number,
            at_s: sample.at.as_seconds(),
            arrived_bytes: sample.arrived.0,
        });
    }
    flows.values().flat_map(|points| thin(points)).collect()
}
