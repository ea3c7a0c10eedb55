//! Scenarios of one link, and runs of them.

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::thread;

use tidegate_sim::metrics::{FlowRecord, Recorder, RunSummary};
use tidegate_sim::scenario::{Scenario, file};
use tidegate_sim::simulation;
use tidegate_study::pool;

pub(super) type Failure = Box<dyn Error>;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/data");

/// Congestion control by its name in both transports.
pub(super) const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];

/// A mean of 27.6 kB.
pub(super) const SIZES: &str = "sizes.lognormal = { log_mean = 9.357, log_deviation = 1.318 }";

/// Seconds before anything counts, and those that count.
const WARM_UP: u32 = 5;
pub(super) const MEASURED: u32 = 60;

/// What carries transfers: a name, and the head of a source, to which the rest is added.
pub(super) struct Carrier {
    pub(super) name: &'static str,
    pub(super) source: fn(control: &str) -> String,
}

pub(super) const QUIC: Carrier = Carrier {
    name: "QUIC",
    source: |control| format!("[[traffic.quic]]\ncongestion = \"{control}\"\n"),
};

/// With the control that is nearest to quinn's.
pub(super) const TCP: Carrier = Carrier {
    name: "TCP, classic slow start, paced",
    source: |control| tcp(control, ", slow_start = \"classic\", pacing = true"),
};

/// The same with ECN, which QUIC always has.
pub(super) const MARKED: Carrier = Carrier {
    name: "the same with `ecn`",
    source: |control| tcp(control, ", slow_start = \"classic\", pacing = true, ecn = true"),
};

pub(super) const UNPACED: Carrier = Carrier {
    name: "TCP, classic slow start",
    source: |control| tcp(control, ", slow_start = \"classic\""),
};

pub(super) const TODAY: Carrier =
    Carrier { name: "TCP as today", source: |control| tcp(control, "") };

/// What stands beside QUIC with this control, the nearest first. BBR has no slow start to
/// choose, and always paces.
pub(super) fn beside(control: &str) -> &'static [&'static Carrier] {
    if control == "bbr" { &[&TODAY] } else { &[&TCP, &UNPACED, &TODAY] }
}

fn tcp(control: &str, rest: &str) -> String {
    format!("[[traffic.transfers]]\ntcp = {{ congestion = \"{control}\"{rest} }}\n")
}

/// A link of so many Mbit/s with a round trip of 40 ms, a buffer of 150 kB and these
/// disciplines and sources.
pub(super) fn link(mbits: u32, disciplines: &str, sources: &str) -> Result<Scenario, Failure> {
    let duration = WARM_UP + MEASURED;
    let text = format!(
        r#"
        title = "QUIC and TCP"
        duration = "{duration} s"
        warm_up = "{WARM_UP} s"
        disciplines = [{disciplines}]
        [[link]]
        from = "a"
        to = "b"
        rate = "{mbits} Mbit/s"
        delay = "20 ms"
        queue = "tested"
        buffer = "150 kB"
        {sources}
        "#
    );
    Ok(file::parse("quic.toml", &text, &file::Folder(DATA.into()))?)
}

/// A source between the ends of that link.
pub(super) fn source(carrier: &Carrier, control: &str, name: &str, rest: &str) -> String {
    format!("{}name = \"{name}\"\nfrom = \"a\"\nto = \"b\"\n{rest}\n", (carrier.source)(control))
}

#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl Recorder for Flows {
    fn flow(&mut self, row: &FlowRecord) {
        self.0.push(row.clone());
    }
}

/// A run under one discipline of the scenario.
pub(super) fn run(scenario: &Scenario, place: usize, seed: u64) -> (RunSummary, Vec<FlowRecord>) {
    let (mut flows, stop) = (Flows::default(), AtomicBool::new(false));
    let choice = &scenario.disciplines[place];
    (simulation::run(scenario, choice, seed, &mut flows, &stop), flows.0)
}

/// The same of many items at once.
pub(super) fn map<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    pool::map(items, threads, &AtomicBool::new(false), work)
}

/// Bytes that a link has sent towards the receivers of transfers.
pub(super) fn carried(summary: &RunSummary) -> f64 {
    let link = summary.links[0].as_ref().expect("it has a queue");
    link.counters.delivered_bytes.0 as f64
}

/// A table of Markdown: a column of names, and others of figures.
pub(super) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut text =
        format!("| {} |\n| --- |{}\n", heads.join(" | "), " ---: |".repeat(heads.len() - 1));
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}
