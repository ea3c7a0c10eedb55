//! What a gateway says about itself: as JSON, and as metrics.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use tidegate_core::request::UserId;

/// The state of a gateway; what is counted is counted since its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The request scheduler.
    pub scheduler: String,
    /// The rate of the link that it works for.
    pub rate_bps: u64,
    /// The time since the start.
    pub uptime_s: f64,
    /// How many responses may be outstanding (*W+*); nothing without such a limit.
    pub window: Option<f64>,
    /// Responses that hold a place.
    pub held: u64,
    /// Responses that are outstanding, long ones among them.
    pub outstanding: u64,
    /// Requests in line.
    pub waiting: u64,
    /// Tunnels that are open.
    pub tunnels: u64,
    /// Requests of tunnels that were released out of order, because they had been held
    /// for as long as any may be.
    pub overdue: u64,
    /// Connections of clients.
    pub connections: u64,
    /// Connections to servers that are kept for later requests.
    pub kept: u64,
    /// The classes, in the order of the file.
    pub classes: Vec<ClassStatus>,
    /// Those who have received the most.
    pub top_users: Vec<UserStatus>,
}

/// The state of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassStatus {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// Users with a request in line or a response outstanding.
    pub users: u32,
    /// Requests and tunnels that ended in order.
    pub completed: u64,
    /// Those that did not.
    pub failed: u64,
    /// Requests that could not be understood without a doubt.
    pub refused: u64,
    /// What servers sent for it.
    pub received_bytes: u64,
    /// What its clients received besides, where that is counted.
    pub besides_bytes: u64,
    /// How long its requests were in line, all together.
    pub waited_s: f64,
}

/// What a user has received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserStatus {
    /// The name, or else the address or the network of 64 bits.
    pub user: String,
    /// The class.
    pub class: String,
    /// What servers sent for the user.
    pub received_bytes: u64,
}

/// The address, or the network, that a user was named after.
pub(crate) fn name_of(user: UserId) -> String {
    match u32::try_from(user.0) {
        Ok(address) => Ipv4Addr::from_bits(address).to_string(),
        Err(_) => format!("{}/64", Ipv6Addr::from_bits(u128::from(user.0) << 64)),
    }
}

impl Status {
    /// The metrics, in the text form of OpenMetrics, which Prometheus reads.
    pub(crate) fn metrics(self) -> String {
        let mut registry = Registry::with_prefix("tidegate");
        registry.register_collector(Box::new(Metrics(self)));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)
            .expect("a string takes everything");
        text
    }
}

#[derive(Debug)]
struct Metrics(Status);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Metrics(status) = self;
        for (name, help, value) in [
            ("link_rate_bps", "Rate of the access link", status.rate_bps as f64),
            ("held", "Responses that hold a place in the window", status.held as f64),
            ("outstanding", "Responses that are outstanding", status.outstanding as f64),
            ("waiting", "Requests in line", status.waiting as f64),
            ("tunnels", "Tunnels that are open", status.tunnels as f64),
            ("connections", "Connections of clients", status.connections as f64),
            ("kept_connections", "Connections kept to servers", status.kept as f64),
            ("uptime_seconds", "Time since the start", status.uptime_s),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let overdue = ConstCounter::new(status.overdue);
        let help = "Requests of tunnels that were released out of order";
        let metric = encoder.encode_descriptor("overdue", help, None, overdue.metric_type())?;
        overdue.encode(metric)?;

        let mut gauge = encoder.encode_descriptor(
            "class_users",
            "Users with a request in line or a response outstanding",
            None,
            MetricType::Gauge,
        )?;
        for class in &status.classes {
            let labels = [("class", class.name.as_str())];
            ConstGauge::new(i64::from(class.users)).encode(gauge.encode_family(&labels)?)?;
        }
        let mut counter = encoder.encode_descriptor(
            "class_requests",
            "Requests and tunnels that are over",
            None,
            MetricType::Counter,
        )?;
        for class in &status.classes {
            for (how, count) in [
                ("completed", class.completed),
                ("failed", class.failed),
                ("refused", class.refused),
            ] {
                let labels = [("class", class.name.as_str()), ("how", how)];
                ConstCounter::new(count).encode(counter.encode_family(&labels)?)?;
            }
        }
        let mut counter = encoder.encode_descriptor(
            "class_received_bytes",
            "What servers sent",
            None,
            MetricType::Counter,
        )?;
        for class in &status.classes {
            let labels = [("class", class.name.as_str())];
            ConstCounter::new(class.received_bytes).encode(counter.encode_family(&labels)?)?;
        }
        let mut counter = encoder.encode_descriptor(
            "class_besides_bytes",
            "What clients received besides, where that is counted",
            None,
            MetricType::Counter,
        )?;
        for class in &status.classes {
            let labels = [("class", class.name.as_str())];
            ConstCounter::new(class.besides_bytes).encode(counter.encode_family(&labels)?)?;
        }
        let mut counter = encoder.encode_descriptor(
            "class_waited_seconds",
            "How long requests were in line, all together",
            None,
            MetricType::Counter,
        )?;
        for class in &status.classes {
            let labels = [("class", class.name.as_str())];
            ConstCounter::new(class.waited_s).encode(counter.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_of;

    #[test]
    fn users_are_named_as_their_addresses() {
        for (address, name) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:0:7::1", "2001:db8:0:7::/64"),
        ] {
            assert_eq!(name_of(user_of(address.parse().unwrap())), name);
        }
    }

    #[test]
    fn names_of_classes_cannot_break_the_metrics() {
        let class = ClassStatus {
            name: "a\"}\\b".into(),
            weight: 1,
            users: 2,
            completed: 3,
            failed: 4,
            refused: 5,
            received_bytes: 6,
            besides_bytes: 7,
            waited_s: 0.5,
        };
        let status = Status {
            scheduler: "msf".into(),
            rate_bps: 1_000_000,
            uptime_s: 1.0,
            window: None,
            held: 1,
            outstanding: 2,
            waiting: 3,
            tunnels: 4,
            overdue: 5,
            connections: 6,
            kept: 7,
            classes: vec![class],
            top_users: Vec::new(),
        };
        let text = status.metrics();
        let line = r#"tidegate_class_requests_total{class="a\"}\\b",how="failed"} 4"#;
        assert!(text.lines().any(|it| it == line), "{text}");
        assert!(text.contains("tidegate_overdue_total 5\n") && text.ends_with("# EOF\n"), "{text}");
    }
}
