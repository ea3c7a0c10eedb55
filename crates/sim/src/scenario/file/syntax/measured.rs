//! What was measured on the link of a scenario, as written in the file.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::{Bytes, Rate, Span};

use super::super::values::{At, Text};

/// Something that was measured on the link that the scenario describes. Results show it
/// beside what the first discipline gives; runs do not depend on it. Exactly one of
/// `round_trip`, `delay`, `time`, `throughput` and `queue` says what it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct MeasuredTable {
    /// Name in tables.
    pub(in crate::scenario::file) name: At<String>,
    /// The sources that correspond to it: those of datagrams whose delays add up to it, or
    /// those of transfers whose throughputs do. Default: none.
    #[serde(default)]
    pub(in crate::scenario::file) sources: Vec<At<String>>,
    /// A round trip, such as a ping.
    pub(in crate::scenario::file) round_trip: Option<Delays>,
    /// A one-way delay.
    pub(in crate::scenario::file) delay: Option<Delays>,
    /// The time of something that nothing in the scenario corresponds to, such as a page.
    pub(in crate::scenario::file) time: Option<Delays>,
    /// Payload of transfers.
    pub(in crate::scenario::file) throughput: Option<Rates>,
    /// What a queue did.
    pub(in crate::scenario::file) queue: Option<QueueCounts>,
}

/// A delay that was measured.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct Delays {
    /// Median without load.
    pub(in crate::scenario::file) idle: Option<Text<Span>>,
    /// Mean under load.
    pub(in crate::scenario::file) mean: Option<Text<Span>>,
    /// 5th percentile under load.
    pub(in crate::scenario::file) p5: Option<Text<Span>>,
    /// Median under load.
    pub(in crate::scenario::file) median: Option<Text<Span>>,
    /// 95th percentile under load.
    pub(in crate::scenario::file) p95: Option<Text<Span>>,
    /// Packets lost divided by packets sent, under load.
    pub(in crate::scenario::file) loss: Option<At<f64>>,
    /// What a call with this delay and loss each way is worth: R of the E-model.
    pub(in crate::scenario::file) rating: Option<At<f64>>,
}

/// A throughput that was measured.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct Rates {
    /// Mean under load.
    pub(in crate::scenario::file) mean: Option<Text<Rate>>,
    /// 5th percentile of the samples.
    pub(in crate::scenario::file) p5: Option<Text<Rate>>,
    /// Median of the samples.
    pub(in crate::scenario::file) median: Option<Text<Rate>>,
    /// 95th percentile of the samples.
    pub(in crate::scenario::file) p95: Option<Text<Rate>>,
}

/// What a queue did under load.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct QueueCounts {
    /// The link behind it. Default: none of the scenario.
    pub(in crate::scenario::file) link: Option<At<String>>,
    /// Packets dropped in a second.
    pub(in crate::scenario::file) dropped_per_second: Option<At<f64>>,
    /// Packets marked in a second.
    pub(in crate::scenario::file) marked_per_second: Option<At<f64>>,
    /// Bytes queued, on average.
    pub(in crate::scenario::file) backlog: Option<Text<Bytes>>,
}
