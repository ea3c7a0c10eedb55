//! What a link says about itself, as metrics in the text form of OpenMetrics, which
//! Prometheus reads.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tidegate_link::{Delay, DelayBucket, QueueStatus};

use super::state::State;

/// The metrics of a link in this state.
pub(super) fn metrics(state: State) -> String {
    let mut registry = Registry::with_prefix("tidegate_link");
    registry.register_collector(Box::new(Metrics(state)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .expect("a string takes everything");
    text
}

#[derive(Debug)]
struct Metrics(State);

/// The value of a queue.
type Value<Number> = fn(&QueueStatus) -> Number;
/// The same for each of several reasons, by their names.
type Reasons = fn(&QueueStatus) -> Vec<(&'static str, u64)>;

const GAUGES: [(&str, &str, Value<u64>); 7] = [
    ("rate_bps", "Rate to which packets are held back", |queue| queue.rate_bps),
    ("sent_bps", "Rate at which packets were sent in the last second", |queue| {
        queue.last_second.sent_bps
    }),
    ("queued_packets", "Packets in the queue", |queue| u64::from(queue.queued_packets)),
    ("queued_bytes", "Bytes in the queue", |queue| queue.queued_bytes),
    ("flows", "Flows of which something is remembered", |queue| queue.flows as u64),
    ("flows_peak", "The most flows at once", |queue| queue.flows_peak as u64),
    ("memory_bytes", "Memory for frames", |queue| queue.memory_bytes),
];

const COUNTERS: [(&str, &str, Value<u64>); 7] = [
    ("arrived_packets", "Packets that arrived", |queue| queue.counts.arrived_packets),
    ("arrived_bytes", "Bytes that arrived, as the link behind counts them", |queue| {
        queue.counts.arrived_bytes
    }),
    ("sent_packets", "Packets sent", |queue| queue.counts.sent_packets),
    ("sent_bytes", "Bytes sent, as the link behind counts them", |queue| queue.counts.sent_bytes),
    ("marked_packets", "Packets marked to tell of congestion", |queue| queue.counts.marked_packets),
    ("split_frames", "Super-packets that were split", |queue| queue.counts.split_frames),
    ("other_frames", "Frames that held something other than IP", |queue| queue.counts.other_frames),
];

const BY_REASON: [(&str, &str, Reasons); 2] = [
    ("lost_packets", "Packets that the discipline gave up", |queue| {
        let lost = &queue.counts.lost;
        vec![
            ("refused", lost.refused),
            ("pushed-out", lost.pushed_out),
            ("early", lost.early),
            ("superseded", lost.superseded),
            ("excess", lost.excess),
        ]
    }),
    ("failures", "Packets and frames that the link itself lost, or could not read", |queue| {
        let failures = &queue.failures;
        vec![
            ("malformed", failures.malformed_frames),
            ("unreadable", failures.unreadable_frames),
            ("missed", failures.missed_frames),
            ("no-memory", failures.no_memory_packets),
            ("unsent", failures.unsent_packets),
        ]
    }),
];

/// The quantiles of a delay, in seconds.
fn quantiles(delay: &Delay) -> [(&'static str, f64); 4] {
    [
        ("0.5", delay.p50_ms / 1e3),
        ("0.95", delay.p95_ms / 1e3),
        ("0.99", delay.p99_ms / 1e3),
        ("1", delay.max_ms / 1e3),
    ]
}

/// The histogram of a queue's delays, in seconds. What a bucket of Prometheus counts is not
/// counted again by the next, which the encoder sums up.
fn histogram(queue: &QueueStatus, mut metric: MetricEncoder<'_>) -> fmt::Result {
    let mut before = 0;
    let longer = DelayBucket { at_most_ms: f64::INFINITY, count: queue.delay.count };
    let all = queue.delay_histogram.buckets.iter().chain([&longer]);
    let buckets = all.map(|bucket| {
        let count = bucket.count.saturating_sub(std::mem::replace(&mut before, bucket.count));
        (bucket.at_most_ms / 1e3, count)
    });
    let buckets: Vec<(f64, u64)> = buckets.collect();
    let sum = queue.delay_histogram.sum_ms / 1e3;
    metric.encode_histogram::<NoLabelSet>(sum, queue.delay.count, &buckets, None)
}

fn direction(queue: &QueueStatus) -> (&'static str, &'static str) {
    ("direction", queue.direction.map_or("", |direction| direction.name()))
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.0.status;
        let uptime = ConstGauge::new(status.uptime_s);
        let help = "Time since the start";
        let metric =
            encoder.encode_descriptor("uptime_seconds", help, None, uptime.metric_type())?;
        uptime.encode(metric)?;
        let help = "What runs, always 1";
        let mut family = encoder.encode_descriptor("running", help, None, MetricType::Gauge)?;
        for queue in &status.queues {
            let labels = [
                ("name", &*self.0.name),
                ("inside", status.inside.as_deref().unwrap_or_default()),
                ("outside", &status.outside),
                ("discipline", &queue.discipline),
                direction(queue),
            ];
            ConstGauge::new(1_u64).encode(family.encode_family(&labels)?)?;
        }
        for (name, help, value) in GAUGES {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for queue in &status.queues {
                ConstGauge::new(value(queue)).encode(family.encode_family(&[direction(queue)])?)?;
            }
        }
        for (name, help, value) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for queue in &status.queues {
                let labels = [direction(queue)];
                let metric = family.encode_family(&labels)?;
                ConstCounter::new(value(queue)).encode(metric)?;
            }
        }
        for (name, help, reasons) in BY_REASON {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for queue in &status.queues {
                for (reason, count) in reasons(queue) {
                    let labels = [direction(queue), ("reason", reason)];
                    ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        self.encode_delays(&mut encoder)?;
        self.encode_levels(&mut encoder)
    }
}

impl Metrics {
    fn encode_delays(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Time in the queue of the packets sent";
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor("delay_seconds", help, None, kind)?;
        for queue in &self.0.status.queues {
            histogram(queue, family.encode_family(&[direction(queue)])?)?;
        }
        let help = "Time in the queue of the packets sent in the last second";
        let gauge = MetricType::Gauge;
        let name = "last_second_delay_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, gauge)?;
        for queue in &self.0.status.queues {
            // Without packets there is no delay.
            let some = Some(&queue.last_second.delay).filter(|delay| delay.count > 0);
            for (quantile, value) in some.into_iter().flat_map(quantiles) {
                let labels = [direction(queue), ("quantile", quantile)];
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_levels(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let queues = || self.0.status.queues.iter();
        let levels = || {
            queues().flat_map(|queue| {
                queue
                    .levels
                    .iter()
                    .map(move |level| ([direction(queue), ("level", level.name.as_str())], level))
            })
        };
        let gauge = MetricType::Gauge;
        let help = "Packets in a level of the discipline";
        let mut family = encoder.encode_descriptor("level_queued_packets", help, None, gauge)?;
        for (labels, level) in levels() {
            let queued = ConstGauge::new(u64::from(level.queued_packets));
            queued.encode(family.encode_family(&labels)?)?;
        }
        let help = "Packets that ever joined a level of the discipline";
        let counter = MetricType::Counter;
        let name = "level_enqueued_packets";
        let mut family = encoder.encode_descriptor(name, help, None, counter)?;
        for (labels, level) in levels() {
            let joined = ConstCounter::new(level.enqueued_packets);
            joined.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tidegate_link::{DelayHistogram, Direction, LevelStatus, Lost};

    use super::*;

    fn text() -> String {
        let mut state = State { name: "a\"b".into(), ..State::default() };
        for direction in Direction::BOTH {
            let mut queue = QueueStatus {
                direction: Some(direction),
                levels: vec![LevelStatus { name: "high".into(), ..LevelStatus::default() }],
                ..QueueStatus::default()
            };
            queue.counts.lost = Lost { early: 7, ..Lost::default() };
            queue.last_second.delay = Delay { count: 1, p95_ms: 20.0, ..Delay::default() };
            queue.delay = Delay { count: 10, ..Delay::default() };
            let bucket = |at_most_ms, count| DelayBucket { at_most_ms, count };
            let buckets = vec![bucket(1.0, 2), bucket(20.0, 9)];
            queue.delay_histogram = DelayHistogram { sum_ms: 250.0, buckets };
            state.status.queues.push(queue);
        }
        metrics(state)
    }

    #[test]
    fn values_have_their_labels_and_names_cannot_break_them() {
        let text = text();
        for line in [
            r#"tidegate_link_lost_packets_total{direction="up",reason="early"} 7"#,
            r#"tidegate_link_last_second_delay_seconds{direction="down",quantile="0.95"} 0.02"#,
            r#"tidegate_link_delay_seconds_sum{direction="up"} 0.25"#,
            r#"tidegate_link_delay_seconds_count{direction="up"} 10"#,
            r#"tidegate_link_delay_seconds_bucket{le="0.001",direction="up"} 2"#,
            r#"tidegate_link_delay_seconds_bucket{le="0.02",direction="up"} 9"#,
            r#"tidegate_link_delay_seconds_bucket{le="+Inf",direction="up"} 10"#,
            r#"tidegate_link_level_queued_packets{direction="up",level="high"} 0"#,
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(text.contains(r#"name="a\"b""#) && text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn every_metric_is_described_once_and_has_a_sample() {
        let text = text();
        let mut described = BTreeMap::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let (name, kind) = line.split_once(' ').unwrap();
            assert!(described.insert(name, kind).is_none(), "{name} twice");
        }
        assert_eq!(text.matches("# HELP ").count(), described.len());
        for (name, kind) in described {
            let suffix = match kind {
                "counter" => "_total",
                "histogram" => "_bucket",
                _ => "",
            };
            let beginning = format!("\n{name}{suffix}");
            let sample = ['{', ' '].iter().any(|next| text.contains(&format!("{beginning}{next}")));
            assert!(sample, "{name}\n{text}");
        }
    }
}
