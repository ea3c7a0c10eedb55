//! The scenario of a measured link: the flows of the test, beside them a ping and a call
//! where there were any, and what was measured.
//!
//! Flows begin when those of the test began, at random within the time that these took, so
//! that seeds differ as repetitions of the test would. A ping is a packet each way: the
//! simulator has no echo.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidegate_core::{Rate, Span};
use tidegate_sim::scenario::{Observation, Observed, Spread};
use tidegate_sim::trace::{Direction, Flent, FlentKind, FlentSeries};
use tidegate_study::measured::{Measurement, starts};

use super::link::Link;
use crate::replay::{discipline, quoted};

/// The link is idle for so long, as Flent leaves it.
const IDLE: Span = Span::seconds(5);
/// The most of the load that does not count, as for what was measured.
const SETTLING: Span = Span::seconds(20);
/// A ping with its headers.
const PING_BYTES: u64 = 84;
/// UDP and IP.
const HEADERS: u64 = 28;
/// What to try besides what there is, as for a home link.
const OTHERS: &[&str] = &["fifo", "fq-codel", "cake", "pie", "efd", "lars"];
/// As many as a median needs for an interval.
const SEEDS: u64 = 6;

/// The scenario as a file.
pub(super) fn text(
    run: &Flent,
    measurement: &Measurement,
    link: &Link,
    description: &str,
) -> String {
    let Link { rates: [down, up], rtt, buffers: [down_buffer, up_buffer], .. } = link;
    let load = duration(measurement, *down, *up);
    let settling = Span((load.0 / 3).min(SETTLING.0));
    // On an empty link a ping takes the round trip, the time on the wire included.
    let wire = [down, up].map(|rate| rate.transmission(tidegate_core::Bytes(PING_BYTES)).0);
    let delay = Span(rtt.0.saturating_sub(wire[0] + wire[1]) / 2);
    let others = OTHERS.iter().filter(|name| **name != link.discipline.entry.name);
    let others: Vec<String> = others.map(|name| format!("    \"{name}\",\n")).collect();
    let title =
        format!("Flent {}, {} down and {} up, {}", run.test, down, up, link.discipline.label);
    let mut text = format!(
        "# A link that Flent has measured, as 'tidegate measured' makes it of the result.

title = {}
description = {}

duration = \"{:#}\"
# The load begins after {IDLE:#}, and has settled {settling:#} later.
warm_up = \"{:#}\"
seeds = {SEEDS}
disciplines = [
{}{}]

[[link]]
from = \"client\"
to = \"near\"
rate = \"10 Gbit/s\"

[[link]]
name = \"up\"
from = \"near\"
to = \"far\"
rate = \"{up:#}\"
delay = \"{delay:#}\"
queue = \"tested\"
buffer = \"{up_buffer:#}\"
back = {{ name = \"down\", rate = \"{down:#}\", queue = \"tested\", buffer = \"{down_buffer:#}\" }}

[[link]]
from = \"far\"
to = \"server\"
rate = \"10 Gbit/s\"
",
        quoted(&title),
        quoted(description),
        IDLE + load,
        IDLE + settling,
        discipline(&link.discipline),
        others.concat(),
    );
    let sources = Sources {
        flows: [Direction::Down, Direction::Up].map(|way| flows(run, way, &mut text)),
        ping: measurement.ping.map(|_| ping(run, measurement, &mut text)),
        call: measurement.call.map(|_| call(run, &mut text)),
    };
    for (place, observation) in measurement.observations.iter().enumerate() {
        measured(&sources, measurement, place, observation, &mut text);
    }
    text
}

/// The names of the sources in the scenario.
struct Sources {
    /// Down and up.
    flows: [Vec<String>; 2],
    ping: Option<Vec<String>>,
    call: Option<Vec<String>>,
}

/// How long the load lasts. Fast links need less time to show as much, and more time to
/// simulate.
fn duration(measurement: &Measurement, down: Rate, up: Rate) -> Span {
    let most = match down.0.saturating_add(up.0) {
        0..=50_000_000 => 120,
        50_000_001..=250_000_000 => 60,
        250_000_001..=800_000_000 => 30,
        _ => 15,
    };
    let lasted = measurement.load.map_or(0.0, |(begin, end)| end - begin);
    Span::seconds((lasted as u64).clamp(3, most))
}

/// The settings of TCP with the congestion control that Linux calls `name`; `None` if it
/// is not simulated.
pub(super) fn tcp(name: &str) -> Option<&'static str> {
    match name {
        "cubic" => Some("profile = \"today\""),
        "reno" => Some("profile = \"today\", congestion = \"reno\""),
        "bbr" => Some("profile = \"today-bbr\""),
        "bbr2" | "bbr3" => Some("profile = \"today\", congestion = \"bbr3\""),
        _ => None,
    }
}

/// Writes the flows of a direction, those that send alike together, and returns their names.
fn flows(run: &Flent, way: Direction, text: &mut String) -> Vec<String> {
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for flow in run.of(FlentKind::Throughput(way)) {
        let congestion = flow.congestion.as_deref().or(run.congestion.as_deref());
        let algorithm = congestion.filter(|name| tcp(name).is_some()).unwrap_or("cubic");
        *kinds.entry((algorithm, code_point(run, flow))).or_default() += 1;
    }
    let spread = starts(run, way).into_iter().fold(0.0, f64::max);
    // To the millisecond; more than the first seconds is another flow's end.
    let spread = Span::millis(((spread * 1e3) as u64).clamp(10, 5_000));
    let (noun, from, to) = match way {
        Direction::Down => ("downloads", "server", "client"),
        Direction::Up => ("uploads", "client", "server"),
    };
    let alone = kinds.len() == 1;
    let mut names = Vec::new();
    for ((algorithm, code_point), count) in kinds {
        let mut name = noun.to_string();
        if !alone {
            let _ = write!(name, ", {algorithm}");
            if code_point != "CS0" {
                let _ = write!(name, ", {code_point}");
            }
        }
        let paced = if run.paced && way == Direction::Up { ", pacing = true" } else { "" };
        let ecn = if run.ecn { ", ecn = true" } else { "" };
        let dscp = if code_point == "CS0" {
            String::new()
        } else {
            format!("dscp = \"{code_point}\"\nreply_dscp = \"{code_point}\"\n")
        };
        let _ = write!(
            text,
            "
[[traffic.transfers]]
name = {}
from = \"{from}\"
to = \"{to}\"
start = \"{IDLE:#}\"
count = {count}
spread = \"{spread:#}\"
sizes = \"endless\"
{dscp}tcp = {{ {}{paced}{ecn} }}
",
            quoted(&name),
            tcp(algorithm).expect("it was asked before"),
        );
        names.push(name);
    }
    names
}

/// The codepoint of a flow: tests that mark flows name them after it.
fn code_point(run: &Flent, flow: &FlentSeries) -> &'static str {
    if run.test.contains("noclassification") || run.test.contains("_be") {
        return "CS0";
    }
    let marked = [("BK", "CS1"), ("CS1", "CS1"), ("CS5", "CS5"), ("EF", "EF")];
    let last = flow.name.rsplit(' ').next().unwrap_or_default();
    marked.iter().find(|(name, _)| *name == last).map_or("CS0", |(_, code_point)| code_point)
}

/// Writes the two ways of a ping.
fn ping(run: &Flent, measurement: &Measurement, text: &mut String) -> Vec<String> {
    // As often as the file has samples, which is five times a second or more.
    let name = measurement.ping.map(|place| &measurement.observations[place].name);
    let series = run.series.iter().find(|series| Some(&series.name) == name);
    let every = series.map_or(0.2, |series| {
        let last = series.samples.last().map_or(0.0, |it| it.at_s);
        last / (series.samples.len() as f64)
    });
    let per_second = (1.0 / every).clamp(1.0, 50.0).round() as u64;
    for (name, from, to) in [("ping, up", "client", "server"), ("ping, down", "server", "client")] {
        datagrams(name, from, to, PING_BYTES, per_second, text);
    }
    vec!["ping, up".into(), "ping, down".into()]
}

/// Writes the call, which goes up.
fn call(run: &Flent, text: &mut String) -> Vec<String> {
    let series = run.of(FlentKind::CallDelay).next();
    // G.711 in packets of 10 ms with RTP, as Flent's generator sends it.
    let payload = series.and_then(|it| it.payload).unwrap_or(92).clamp(1, 1_400);
    let last = series.and_then(|it| it.samples.last());
    let numbered = last.and_then(|it| Some(it.number? as f64 / it.at_s));
    let per_second = numbered.filter(|it| it.is_finite()).unwrap_or(100.0);
    let per_second = per_second.clamp(5.0, 1_000.0).round() as u64;
    datagrams("call", "client", "server", payload + HEADERS, per_second, text);
    vec!["call".into()]
}

fn datagrams(name: &str, from: &str, to: &str, size: u64, per_second: u64, text: &mut String) {
    let rate = Rate(8 * size * per_second);
    let _ = write!(
        text,
        "
[[traffic.cbr]]
name = {}
from = \"{from}\"
to = \"{to}\"
rate = \"{rate:#}\"
packet = \"{size} B\"
",
        quoted(name)
    );
}

/// Writes what was measured, with the sources that correspond to it.
fn measured(
    sources: &Sources,
    measurement: &Measurement,
    place: usize,
    observation: &Observation,
    text: &mut String,
) {
    let place = Some(place);
    let _ = write!(text, "\n[[measured]]\nname = {}\n", quoted(&observation.name));
    let mut of = |names: Option<&Vec<String>>| {
        if let Some(names) = names.filter(|names| !names.is_empty()) {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            let _ = writeln!(text, "sources = [{}]", names.join(", "));
        }
    };
    match &observation.what {
        Observed::Delay { ways, idle, spread, loss, rating, .. } => {
            of(match place {
                _ if place == measurement.ping => sources.ping.as_ref(),
                _ if place == measurement.call => sources.call.as_ref(),
                _ => None,
            });
            let mut keys = quantities("idle", idle.map(|it| format!("{it:#}")));
            keys += &spread_of(spread, |it: Span| format!("{it:#}"));
            keys += &numbers("loss", *loss);
            keys += &numbers("rating", *rating);
            let key = match ways {
                0 => "time",
                1 => "delay",
                _ => "round_trip",
            };
            let _ = writeln!(text, "{key} = {{ {} }}", keys.trim_end_matches(", "));
        }
        Observed::Throughput { spread, .. } => {
            let way = measurement.throughput.iter().position(|it| *it == place);
            of(way.map(|way| &sources.flows[way]));
            let keys = spread_of(spread, |it: Rate| format!("{it:#}"));
            let _ = writeln!(text, "throughput = {{ {} }}", keys.trim_end_matches(", "));
        }
        Observed::Queue { dropped_per_second, marked_per_second, backlog, .. } => {
            let way = measurement.queues.iter().position(|it| *it == place);
            let link = way.map(|way| ["down", "up"][way].to_string());
            let mut keys = quantities("link", link);
            keys += &numbers("dropped_per_second", *dropped_per_second);
            keys += &numbers("marked_per_second", *marked_per_second);
            keys += &quantities("backlog", backlog.map(|it| format!("{it:#}")));
            let _ = writeln!(text, "queue = {{ {} }}", keys.trim_end_matches(", "));
        }
    }
}

fn spread_of<T: Copy>(spread: &Spread<T>, written: impl Fn(T) -> String) -> String {
    let Spread { mean, p5, median, p95 } = *spread;
    let keys = [("mean", mean), ("p5", p5), ("median", median), ("p95", p95)];
    keys.map(|(key, value)| quantities(key, value.map(&written))).concat()
}

fn quantities(key: &str, value: Option<String>) -> String {
    value.map_or_else(String::new, |value| format!("{key} = \"{value}\", "))
}

fn numbers(key: &str, value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{key} = {value:?}, "))
}
