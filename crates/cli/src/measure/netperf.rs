//! One run against a server of netperf (`netserver`), as Flent uses it: programs `netperf`
//! load the link, one for each flow.
//!
//! Each tells as it goes what it carried (`-D`, which is part of Debian's build), by rates
//! over intervals that follow one another. Round trips are those of ICMP.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::client::{Clock, Plan};
use super::program::Output;
use super::record::{Flow, Record, Way};
use super::{icmp, program};
use crate::failure::Failure;

/// The interval of a report. netperf keeps to it as far as its guess of the rate is right.
const INTERVAL_S: f64 = 0.1;

/// Runs a plan against a server.
pub(super) fn run(
    server: SocketAddr,
    plan: &Plan,
    stop: &'static AtomicBool,
) -> Result<Record, Failure> {
    icmp::beside(server, plan, stop, |clock| load(server, plan, clock))
}

/// Has netperf load the link both ways, and returns what it tells.
fn load(server: SocketAddr, plan: &Plan, clock: Clock<'_>) -> Result<Vec<Flow>, Failure> {
    let begin_s = clock.now_s();
    let ways: Vec<Way> = (0..plan.flows).flat_map(|_| [Way::Down, Way::Up]).collect();
    let command = |way: &Way| {
        let mut command = Command::new("netperf");
        command.args(["-H", &server.ip().to_string(), "-p", &server.port().to_string()]);
        command.args(["-t", if *way == Way::Down { "TCP_MAERTS" } else { "TCP_STREAM" }]);
        command.args(["-l", &plan.times.load_s.ceil().to_string()]);
        command.args(["-P", "0", "-v", "0", "-f", "k", "-D", &format!("-{INTERVAL_S}")]);
        command
    };
    let commands = ways.iter().map(command).collect();
    let outputs = program::outputs(commands, "netperf", plan.times.end_s(), clock)?;
    ways.into_iter().zip(&outputs).map(|(way, it)| flow(way, it, begin_s)).collect()
}

/// What one of them told of a flow that began at `begin_s`.
fn flow(way: Way, output: &Output, begin_s: f64) -> Result<Flow, Failure> {
    let text = String::from_utf8_lossy(&output.printed);
    let failed = |reason: &str| Failure::Other(format!("netperf: {}", reason.escape_debug()));
    if !output.status.success() {
        let said = text.lines().next().map(str::trim);
        return Err(failed(said.filter(|it| !it.is_empty()).unwrap_or("it failed")));
    }
    let (mut at_s, mut bytes) = (begin_s, 0.0);
    let mut points = vec![(at_s, 0)];
    for (rate_bps, took_s) in text.lines().filter_map(interim) {
        at_s += took_s;
        bytes += rate_bps * took_s / 8.0;
        points.push((at_s, bytes as u64));
    }
    if points.len() < 2 {
        return Err(failed(
            "found no interim results, expected a netperf that was built with them",
        ));
    }
    Ok(Flow { way, points })
}

/// The rate in bit/s and the seconds of a line such as
/// `Interim result:  941.41 10^3bits/s over 0.200 seconds ending at 1414094400.123`.
fn interim(line: &str) -> Option<(f64, f64)> {
    let mut words = line.strip_prefix("Interim result:")?.split_whitespace();
    let rate: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "10^0bits/s" => 1.0,
        "10^3bits/s" => 1e3,
        "10^6bits/s" => 1e6,
        "10^9bits/s" => 1e9,
        _ => return None,
    };
    let took_s: f64 = words.nth(1)?.parse().ok()?;
    let is_sound = rate.is_finite() && rate >= 0.0 && took_s.is_finite() && took_s > 0.0;
    is_sound.then_some((rate * unit, took_s))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn output(text: &str, status: i32) -> Output {
        Output { printed: text.into(), status: ExitStatus::from_raw(status << 8) }
    }

    #[test]
    fn a_flow_is_the_sum_of_its_intervals() {
        let text = "Interim result: 8000.00 10^3bits/s over 0.200 seconds ending at 17955982.957\n\
                    Interim result:   16.00 10^6bits/s over 0.500 seconds ending at 17955983.457\n\
                    12345.67 \n";
        let flow = flow(Way::Up, &output(text, 0), 2.0).unwrap();
        assert_eq!(flow.points.len(), 3);
        assert_eq!((flow.points[1].1, flow.points[2].1), (200_000, 1_200_000));
        assert!((flow.points[2].0 - 2.7).abs() < 1e-9, "{flow:?}");
    }

    #[test]
    fn what_netperf_says_of_a_failure_is_told() {
        let said = "establish control: are you sure there is a netserver listening?\nmore\n";
        let error = flow(Way::Up, &output(said, 255), 0.0).unwrap_err();
        assert!(
            matches!(&error, Failure::Other(text) if text.contains("are you sure")),
            "{error:?}"
        );
        for nothing in ["", "164505958.09\n", "Interim result: NaN 10^3bits/s over 1 seconds\n"] {
            let error = flow(Way::Down, &output(nothing, 0), 0.0).unwrap_err();
            assert!(matches!(&error, Failure::Other(text) if text.contains("interim")));
        }
    }
}
