//! One run against a server of iperf3, whose client loads the link.
//!
//! `iperf3` runs both ways at once (`--bidir`, version 3.7 and later) and tells what came in
//! each interval (`--json`). Round trips are those of ICMP.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use serde_json::Value;

use super::client::{Clock, Plan};
use super::record::{Flow, Record, Way};
use super::{icmp, program};
use crate::failure::Failure;

/// The interval of iperf3's report: the shortest that it permits.
const INTERVAL_S: f64 = 0.1;

/// Runs a plan against a server.
pub(super) fn run(
    server: SocketAddr,
    plan: &Plan,
    stop: &'static AtomicBool,
) -> Result<Record, Failure> {
    icmp::beside(server, plan, stop, |clock| load(server, plan, clock))
}

/// Has iperf3 load the link, and returns what it tells.
fn load(server: SocketAddr, plan: &Plan, clock: Clock<'_>) -> Result<Vec<Flow>, Failure> {
    let failed = |reason: &dyn std::fmt::Display| Failure::Other(format!("iperf3: {reason}"));
    let begin_s = clock.now_s();
    let mut command = Command::new("iperf3");
    command.args(["--client", &server.ip().to_string(), "--port", &server.port().to_string()]);
    command.args(["--json", "--bidir", "--interval", &INTERVAL_S.to_string()]);
    command.args(["--time", &plan.times.load_s.ceil().to_string()]);
    command.args(["--parallel", &plan.flows.to_string()]);
    let outputs = program::outputs(vec![command], "iperf3", plan.times.end_s(), clock)?;
    let Some(output) = outputs.first() else { return Ok(Vec::new()) };
    let report: Value = serde_json::from_slice(&output.printed).map_err(|it| failed(&it))?;
    if let Some(error) = report["error"].as_str() {
        return Err(failed(&error.escape_debug()));
    }
    flows(&report, begin_s).ok_or_else(|| failed(&"found a report without flows both ways"))
}

/// The flows of a report that began at `begin_s`.
fn flows(report: &Value, begin_s: f64) -> Option<Vec<Flow>> {
    let connected = report["start"]["connected"].as_array()?;
    let flows = connected.iter().filter_map(|it| it["socket"].as_i64()).map(|socket| {
        let mut way = Way::Up;
        let mut points = vec![(begin_s, 0)];
        for interval in report["intervals"].as_array().into_iter().flatten() {
            let streams = interval["streams"].as_array().into_iter().flatten();
            for stream in streams.filter(|it| it["socket"].as_i64() == Some(socket)) {
                // Of what it sends, the report is of what its socket took.
                way = if stream["sender"] == false { Way::Down } else { Way::Up };
                let (end, bytes) = (stream["end"].as_f64(), stream["bytes"].as_u64());
                if let (Some(end), Some(bytes)) = (end, bytes) {
                    let before = points.last().map_or(0, |it: &(f64, u64)| it.1);
                    points.push((begin_s + end, before.saturating_add(bytes)));
                }
            }
        }
        Flow { way, points }
    });
    let flows: Vec<Flow> = flows.filter(|it| it.points.len() > 1).collect();
    let has = |way| flows.iter().any(|it| it.way == way);
    (has(Way::Up) && has(Way::Down)).then_some(flows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn flows_are_found_in_a_report_by_their_sockets() {
        let stream = |socket: u32, sender: bool, end: f64, bytes: u32| json!({ "socket": socket, "sender": sender, "end": end, "bytes": bytes });
        let interval = |end: f64| json!({ "streams": [stream(5, true, end, 1_000), stream(6, false, end, 3_000)] });
        let report = json!({
            "start": { "connected": [{ "socket": 5 }, { "socket": 6 }] },
            "intervals": [interval(0.1), interval(0.2)],
        });
        let flows = flows(&report, 2.0).unwrap();
        assert_eq!(
            (flows[0].way, &flows[0].points[..]),
            (Way::Up, &[(2.0, 0), (2.1, 1_000), (2.2, 2_000)][..])
        );
        assert_eq!((flows[1].way, flows[1].points[2].1), (Way::Down, 6_000));
        assert!(super::flows(&json!({ "start": {} }), 0.0).is_none());
    }
}
