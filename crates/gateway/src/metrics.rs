//! What a gateway says about itself, as metrics in the text form of OpenMetrics, which
//! Prometheus reads.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::status::{ClassStatus, Status};
use crate::times::{BOUNDS, Buckets};

/// The metrics of a gateway with this status, and for each class all times in line and
/// all until the first and the last byte.
pub(crate) fn metrics(status: Status, times: Vec<[Buckets; 3]>) -> String {
    let mut registry = Registry::with_prefix("tidegate");
    registry.register_collector(Box::new(Metrics { status, times }));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .expect("a string takes everything");
    text
}

#[derive(Debug)]
struct Metrics {
    status: Status,
    times: Vec<[Buckets; 3]>,
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.status;
        let gauges = [
            ("link_rate_bps", "Rate of the access link", status.rate_bps as f64),
            ("held", "Responses that hold a place in the window", status.held as f64),
            ("outstanding", "Responses that are outstanding", status.outstanding as f64),
            ("waiting", "Requests in line", status.waiting as f64),
            ("tunnels", "Tunnels that are open", status.tunnels as f64),
            ("uploads", "Requests whose bodies are being sent", status.uploads as f64),
            ("quic_flows", "Flows of QUIC that are relayed", status.quic_flows as f64),
            ("connections", "Connections of clients", status.connections as f64),
            ("kept_connections", "Connections kept to servers", status.kept as f64),
            ("uptime_seconds", "Time since the start", status.uptime_s),
        ];
        let window = status.window.map(|it| ("window", "Places in the window", it));
        for (name, help, value) in gauges.into_iter().chain(window) {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        for (name, help, value) in [
            ("overdue", "Requests of tunnels that were released out of order", status.overdue),
            ("link_carried_bytes", "What the link has carried", status.carried_bytes),
        ] {
            let counter = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        self.encode_classes(&mut encoder)?;
        self.encode_times(&mut encoder)
    }
}

impl Metrics {
    fn encode_classes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        use MetricType::{Counter, Gauge};

        /// Writes the value of a class.
        type Write = fn(&ClassStatus, MetricEncoder<'_>) -> fmt::Result;
        let families: [(&str, &str, MetricType, Write); 6] = [
            (
                "class_users",
                "Users with a request in line or a response outstanding",
                Gauge,
                |class, metric| ConstGauge::new(i64::from(class.users)).encode(metric),
            ),
            ("class_weight", "What a class gets beside one of weight 1", Gauge, |class, metric| {
                ConstGauge::new(i64::from(class.weight)).encode(metric)
            }),
            ("class_received_bytes", "What servers sent", Counter, |class, metric| {
                ConstCounter::new(class.received_bytes).encode(metric)
            }),
            (
                "class_besides_bytes",
                "What clients received besides, where that is counted",
                Counter,
                |class, metric| ConstCounter::new(class.besides_bytes).encode(metric),
            ),
            (
                "class_dropped_datagrams",
                "Datagrams of QUIC that came faster than they could go on",
                Counter,
                |class, metric| ConstCounter::new(class.dropped_datagrams).encode(metric),
            ),
            (
                "class_waited_seconds",
                "How long requests were in line, all together, without those of tunnels",
                Counter,
                |class, metric| ConstCounter::new(class.waited_s).encode(metric),
            ),
        ];
        for (name, help, kind, write) in families {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for class in &self.status.classes {
                write(class, family.encode_family(&[("class", class.name.as_str())])?)?;
            }
        }
        let help = "Requests and tunnels that are over";
        let mut family = encoder.encode_descriptor("class_requests", help, None, Counter)?;
        for class in &self.status.classes {
            for (how, count) in [
                ("completed", class.completed),
                ("failed", class.failed),
                ("refused", class.refused),
            ] {
                let labels = [("class", class.name.as_str()), ("how", how)];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_times(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (stage, name, help) in [
            (0, "class_line_seconds", "Time in line, also of requests in tunnels"),
            (1, "class_first_byte_seconds", "From the release to the first byte"),
            (2, "class_service_seconds", "From the release to the last byte, outside of tunnels"),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            for (class, times) in self.status.classes.iter().zip(&self.times) {
                let Buckets { counts, sum } = &times[stage];
                let ends = BOUNDS.into_iter().chain([f64::INFINITY]);
                let buckets: Vec<_> = ends.zip(*counts).collect();
                let labels = [("class", class.name.as_str())];
                let mut metric = family.encode_family(&labels)?;
                let all = counts.iter().sum();
                metric.encode_histogram::<NoLabelSet>(sum.as_seconds(), all, &buckets, None)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn text() -> String {
        let class = ClassStatus {
            name: "a\"}\\b".into(),
            weight: 1,
            users: 2,
            completed: 3,
            failed: 4,
            refused: 5,
            received_bytes: 6,
            waited_s: 0.5,
            ..ClassStatus::default()
        };
        let status = Status {
            overdue: 5,
            window: Some(1.5),
            classes: vec![class.clone(), ClassStatus { name: "b".into(), ..class }],
            ..Status::default()
        };
        let times = vec![[(); 3].map(|()| Buckets::default()); 2];
        metrics(status, times)
    }

    #[test]
    fn names_of_classes_cannot_break_the_metrics() {
        let text = text();
        let line = r#"tidegate_class_requests_total{class="a\"}\\b",how="failed"} 4"#;
        assert!(text.lines().any(|it| it == line), "{text}");
        assert!(text.contains("tidegate_overdue_total 5\n") && text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn metrics_are_named_and_described_as_prometheus_wants_them() {
        let text = text();
        let mut kinds = BTreeMap::new();
        let mut helps = BTreeMap::new();
        let mut samples = std::collections::BTreeSet::new();
        let lines: Vec<_> = text.lines().collect();
        let (end, lines) = lines.split_last().expect("there are lines");
        assert_eq!(*end, "# EOF");
        for line in lines {
            let words: Vec<_> = line.splitn(4, ' ').collect();
            match words[..] {
                ["#", "HELP", name, help] => {
                    assert!(help.len() > 5 && helps.insert(name, help).is_none(), "{line}");
                }
                ["#", "TYPE", name, kind] => assert!(kinds.insert(name, kind).is_none(), "{line}"),
                _ => {
                    // Up to the value: a name with its labels.
                    let (sample, value) = line.rsplit_once(' ').expect("it has a value");
                    assert!(value.parse::<f64>().is_ok(), "{line}");
                    assert!(samples.insert(sample), "twice: {line}");
                }
            }
        }
        assert_eq!(kinds.keys().collect::<Vec<_>>(), helps.keys().collect::<Vec<_>>());
        for (name, kind) in &kinds {
            let is_plain =
                |letter: char| letter.is_ascii_lowercase() || "_0123456789".contains(letter);
            assert!(name.starts_with("tidegate_") && name.chars().all(is_plain), "{name}");
            for suffix in ["_total", "_count", "_sum", "_bucket", "_ms", "_milliseconds", "_kb"] {
                assert!(!name.ends_with(suffix), "{name}");
            }
            let suffixes: &[&str] = match *kind {
                "counter" => &["_total"],
                "histogram" => &["_sum", "_count", "_bucket"],
                "gauge" => &[""],
                other => panic!("{name}: {other}"),
            };
            for suffix in suffixes {
                let full = format!("{name}{suffix}");
                let of = |it: &&&str| it.split('{').next() == Some(&full);
                assert!(samples.iter().any(|it| of(&it)), "{full} has no sample");
            }
        }
        for sample in samples {
            let name = sample.split('{').next().expect("there is a first part");
            let is_known = ["", "_total", "_sum", "_count", "_bucket"].iter().any(|suffix| {
                name.strip_suffix(suffix).is_some_and(|family| kinds.contains_key(family))
            });
            assert!(is_known, "{sample} has no HELP and TYPE");
        }
        let buckets = text.matches("tidegate_class_line_seconds_bucket{").count();
        assert_eq!(buckets, 2 * (BOUNDS.len() + 1), "{text}");
        assert!(text.contains("_bucket{le=\"+Inf\",class=\"b\"} 0\n"), "{text}");
    }
}
