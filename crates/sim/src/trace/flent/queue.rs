//! The shaped queues on the path of a measurement, from what `tc` printed there.
//!
//! A queue decides something only where packets wait, and that is behind a shaper: the
//! queue of a port that is faster than the link is empty. So only queues with a shaper
//! count, which are leaves of `tbf` or `htb`, and `cake` and `netem` with a rate of their
//! own. `EGRESS_INFO` is the port towards the server, and so of the uplink; a router's
//! `INGRESS_INFO` is its port back to the client, and of the downlink.

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_core::Rate;

use super::printable;
use crate::trace::Direction;

/// A queue behind a shaper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlentQueue {
    /// The machine; empty for the one that ran the test.
    pub host: String,
    /// Which way its packets go.
    pub direction: Direction,
    /// The shaper's rate.
    pub rate: Rate,
    /// The queue's name for `tc`, such as `fq_codel`.
    pub name: String,
    /// Its parameters as `tc` prints them: `target` is `5.0ms`, `limit` is `10240p`.
    pub parameters: BTreeMap<String, String>,
    /// Packets that it dropped between the start and the end of the test.
    pub dropped: Option<u64>,
    /// Packets that it marked in this time.
    pub marked: Option<u64>,
}

/// The names of the queues of a port.
pub(super) fn names(port: &Value) -> impl Iterator<Item = &str> {
    list(port, "qdiscs").filter_map(|queue| queue.get("name")?.as_str())
}

/// All shaped queues, those of the uplink first, each direction in the order of machines.
pub(super) fn shaped(own: &Value, others: &Value) -> Vec<FlentQueue> {
    let mut found: Vec<FlentQueue> = Vec::new();
    found.extend(shaped_at(own, "", Direction::Up));
    let others = others.as_object();
    let machines = || others.into_iter().flatten();
    for (key, direction) in [("EGRESS_INFO", Direction::Up), ("INGRESS_INFO", Direction::Down)] {
        let ports = machines().filter_map(|(host, about)| Some((host, about.get(key)?)));
        found.extend(ports.filter_map(|(host, port)| shaped_at(port, host, direction)));
    }
    found
}

/// The shaped queue of a port, if it has one.
fn shaped_at(port: &Value, host: &str, direction: Direction) -> Option<FlentQueue> {
    let shaper = list(port, "qdiscs").find_map(|queue| Some((queue, rate(port, queue)?)));
    let (shaper, rate) = shaper?;
    let id = shaper.get("id").and_then(Value::as_str).unwrap_or_default();
    // A leaf's parent is a class of the shaper: `1:1` of `1:`.
    let leaf = list(port, "qdiscs").find(|queue| {
        let parent = queue.get("parent").and_then(Value::as_str).unwrap_or_default();
        !id.is_empty() && parent.starts_with(id)
    });
    let queue = leaf.unwrap_or(shaper);
    let parameters = queue.get("params").and_then(Value::as_object);
    let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let counted = |name: &str| {
        let after = counter(port, "tc_stats_post", name)?;
        Some(after.saturating_sub(counter(port, "tc_stats_pre", name).unwrap_or(0)))
    };
    Some(FlentQueue {
        host: printable(host),
        direction,
        rate,
        name: printable(queue.get("name")?.as_str()?),
        parameters: (parameters.into_iter().flatten())
            .map(|(name, value)| (name.clone(), written(value)))
            .collect(),
        dropped: counted("dropped"),
        marked: counted("ecn_mark"),
    })
}

/// The rate to which `queue` of `port` shapes, if it does.
fn rate(port: &Value, queue: &Value) -> Option<Rate> {
    let parameter = |of: &Value, name: &str| {
        let text = of.get("params")?.get(name)?.as_str()?.to_lowercase();
        // `tc` prints bits, and `bps` would be bytes.
        let rate = text.parse().ok().filter(|_| text.ends_with("bit"));
        rate.filter(|rate: &Rate| rate.0 > 0)
    };
    match queue.get("name")?.as_str()? {
        "tbf" | "netem" => parameter(queue, "rate"),
        "cake" => parameter(queue, "bandwidth"),
        // The class through which everything goes is the one with the highest rate.
        "htb" => list(port, "classes").filter_map(|class| parameter(class, "rate")).max(),
        _ => None,
    }
}

/// A counter of the innermost queue in what `tc -s` printed.
fn counter(port: &Value, when: &str, name: &str) -> Option<u64> {
    let printed = list(port, when).last()?.as_str()?;
    let rest = &printed[printed.find(&format!("{name} "))? + name.len() + 1..];
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}
