//! The results of a source of video: what its viewers saw.

use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::{Scenario, TrafficKind};
use tidegate_sim::video::Viewing;

use super::{TrafficResult, sample};
use crate::measure::{Better, Measure, Quantity, Table, Value};
use crate::{Centre, Sample};

/// The viewers of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VideoResult {
    /// Viewers, all runs together.
    pub viewers: u64,
    /// Mean nominal rate of what was on the screen: its quality.
    pub quality_bps: Option<Sample>,
    /// The part of the time for which the player was stalled; of a viewer who never saw one,
    /// all of it.
    pub stalled_ratio: Option<Sample>,
    /// How often it stalled in a minute of moving picture.
    pub stalls_per_minute: Option<Sample>,
    /// Changes of quality in a minute of moving picture.
    pub switches_per_minute: Option<Sample>,
    /// Start-up time: from the first request to the first picture, of those that came after
    /// the warm-up.
    pub startup_s: Option<Sample>,
}

impl VideoResult {
    pub(super) fn of(
        scenario: &Scenario,
        index: usize,
        runs: &[&RunSummary],
    ) -> Option<VideoResult> {
        if !matches!(scenario.traffic[index].kind, TrafficKind::Video { .. }) {
            return None;
        }
        // A run's value is the mean of its viewers'.
        let mean = |of: &dyn Fn(&Viewing) -> Option<f64>| {
            sample(Centre::Mean, runs, |run| {
                let values: Vec<_> = run.traffic[index].viewings.iter().filter_map(of).collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            })
        };
        Some(VideoResult {
            viewers: runs.iter().map(|run| run.traffic[index].viewings.len() as u64).sum(),
            quality_bps: mean(&|it| it.mean_rate().map(|rate| rate.0 as f64)),
            stalled_ratio: mean(&Viewing::stalled_ratio),
            stalls_per_minute: mean(&Viewing::stalls_per_minute),
            switches_per_minute: mean(&Viewing::switches_per_minute),
            startup_s: mean(&|it| it.startup.map(Span::as_seconds)),
        })
    }
}

impl TrafficResult {
    /// The detailed table of sources of video.
    pub const VIDEO: Table = "Sources of video";
}

pub(super) const QUALITY: Measure<TrafficResult> = Measure {
    name: "video_quality_bps",
    heading: "Quality",
    headline: Some("Quality of the video"),
    quantity: Quantity::Rate,
    better: Better::More,
    tables: &[TrafficResult::VIDEO],
    value: |it| Value::Sample(it.video.as_ref().and_then(|it| it.quality_bps.as_ref())),
};
pub(super) const STALLED: Measure<TrafficResult> = Measure {
    name: "video_stalled_ratio",
    heading: "Stalled",
    headline: Some("Time for which the video is stalled"),
    quantity: Quantity::Share,
    better: Better::Less,
    tables: &[TrafficResult::VIDEO],
    value: |it| Value::Sample(it.video.as_ref().and_then(|it| it.stalled_ratio.as_ref())),
};
pub(super) const STALLS: Measure<TrafficResult> = Measure {
    name: "video_stalls_per_minute",
    heading: "Stalls a minute",
    headline: None,
    quantity: Quantity::Plain,
    better: Better::Less,
    tables: &[TrafficResult::VIDEO],
    value: |it| Value::Sample(it.video.as_ref().and_then(|it| it.stalls_per_minute.as_ref())),
};
pub(super) const SWITCHES: Measure<TrafficResult> = Measure {
    name: "video_switches_per_minute",
    heading: "Switches a minute",
    headline: Some("Changes of the video's quality a minute"),
    quantity: Quantity::Plain,
    better: Better::Less,
    tables: &[TrafficResult::VIDEO],
    value: |it| Value::Sample(it.video.as_ref().and_then(|it| it.switches_per_minute.as_ref())),
};
pub(super) const STARTUP: Measure<TrafficResult> = Measure {
    name: "video_startup_s",
    heading: "Start-up",
    headline: Some("Start-up time of the video"),
    quantity: Quantity::Time,
    better: Better::Less,
    tables: &[TrafficResult::VIDEO],
    value: |it| Value::Sample(it.video.as_ref().and_then(|it| it.startup_s.as_ref())),
};
