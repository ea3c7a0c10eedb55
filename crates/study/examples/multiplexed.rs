//! Small responses that share connections: recorded pages beside other traffic of a link
//! that is full, with a connection for each response, over HTTP/1.1 and over HTTP/2, from
//! senders with CUBIC and with BBR.
//!
//! ```text
//! cargo run --release -p tidegate-study --example multiplexed -- docs/comparison.md
//! ```
//!
//! writes the table of that page and prints everything, over ten seeds. All protocols,
//! senders and disciplines load the same pages at the same times, so they are compared seed
//! by seed: a figure is a mean over seeds, and behind a difference stands half the width of
//! its 95% interval.

use std::error::Error;
use std::fs;
use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::file;
use tidegate_study::experiment::{self, Forget};
use tidegate_study::{Centre, Sample};
use tidegate_twins::pages;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/links");

/// The pages offer a quarter of the link. Those that begin in the last 20 s are left out,
/// so that all can be complete.
const SCENARIO: &str = r#"
title = "Pages on a full link"
seeds = 10
duration = "180 s"
warm_up = "5 s"
disciplines = [
    "fifo", "drr", "scfq", "fq", "fq-codel", "cake", "las", "las-log", "lars", "run2c", "efd",
]
[access]
hosts = 5
down = "10 Mbit/s"
up = "2 Mbit/s"
delay = "8 ms"
down_buffer = "150 packets"
up_buffer = "100 packets"
servers = ["4 ms", "15 ms", "45 ms"]
[[traffic.pages]]
name = "web"
from = "servers"
to = ["host1", "host2", "host3", "host4"]
load = "2.5 Mbit/s"
stop = "160 s"
recorded = ["../data/pages.har"]
[[traffic.transfers]]
name = "downloads"
from = "servers"
to = "host5"
request = "400 B"
"#;

/// Who sends, and the profile of TCP.
const SENDERS: [(&str, &str); 2] = [("CUBIC, as in Linux", "today"), ("BBR", "today-bbr")];

/// What they are beside, and the keys of it.
const BESIDE: [(&str, &str); 2] = [
    ("a download that never ends", "count = 1\nsizes = \"endless\""),
    (
        "downloads as from a log, 95% of the link with the pages",
        "load = \"7 Mbit/s\"\nsizes.file = \"../data/downloads.csv\"",
    ),
];

/// The ways of carrying responses, and the keys that ask for them.
const WAYS: [(&str, &str); 4] = [
    ("one each", "protocol = \"http1.0\""),
    ("HTTP/1.1", "protocol = \"http1.1\""),
    ("HTTP/2", "protocol = \"http2\""),
    ("by priority", "protocol = \"http2\"\norder = \"priority\""),
];

/// Which way less which other one.
const DIFFERENCES: [(usize, usize); 4] = [(1, 0), (2, 0), (2, 1), (3, 2)];

/// What is compared of a run, in milliseconds.
type Measure = (&'static str, fn(&RunSummary) -> Option<f64>);

const MEASURES: [Measure; 3] = [
    ("Objects of up to 30 kB, mean", |run| run.traffic[0].short.mean()),
    ("Objects of up to 30 kB, 95th percentile of each run", |run| {
        run.traffic[0].short.quantile(0.95)
    }),
    ("Pages, mean", |run| run.traffic[0].page_loads.mean()),
];

/// The way in the first place less that in the second is what multiplexing costs.
const MULTIPLEXING: (usize, usize) = DIFFERENCES[2];

/// All runs, by the way of carrying responses.
type Runs = [Vec<RunSummary>; WAYS.len()];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: multiplexed PAGE")?;
    let page = fs::read_to_string(&path)?;
    let mut guide = Vec::new();
    for (place, (beside, keys)) in BESIDE.into_iter().enumerate() {
        for (sender, profile) in SENDERS {
            println!("# {sender}, beside {beside}\n");
            let runs = runs(&format!("{SCENARIO}{keys}\n[tcp]\nprofile = \"{profile}\"\n"))?;
            print(&runs);
            if place == 0 {
                guide.push(runs);
            }
        }
    }
    let [today, bbr] = &guide[..] else { unreachable!("there are two senders") };
    let page =
        pages::with_table(&page, "Connections that carry many responses", &table(today, bbr));
    fs::write(path, page)?;
    Ok(())
}

/// All runs of a scenario.
fn runs(scenario: &str) -> Result<Runs, Box<dyn Error>> {
    let mut all = Runs::default();
    for (runs, (_, keys)) in std::iter::zip(&mut all, WAYS) {
        let text = scenario.replacen("recorded =", &format!("{keys}\nrecorded ="), 1);
        let scenario = file::parse("multiplexed", &text, &file::Folder(FOLDER.into()))?;
        let threads = std::thread::available_parallelism()?.get();
        let Ok(done) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
        *runs = done;
    }
    Ok(all)
}

/// The disciplines, in their order.
fn labels(ways: &Runs) -> Vec<&str> {
    let mut labels: Vec<&str> = Vec::new();
    for run in &ways[0] {
        if !labels.contains(&run.discipline.as_str()) {
            labels.push(&run.discipline);
        }
    }
    labels
}

/// The table of the guide: small objects, and what multiplexing costs them by sender.
fn table(today: &Runs, bbr: &Runs) -> String {
    let less = "HTTP/2 less HTTP/1.1";
    let head = ["", WAYS[0].0, WAYS[1].0, WAYS[2].0, less, "BBR: HTTP/1.1", "HTTP/2", less];
    let rule = " ---: |".repeat(head.len() - 1);
    let mut text = format!("| {} |\n| --- |{rule}\n", head.join(" | ").trim_start());
    let (http2, http1) = MULTIPLEXING;
    for label in labels(today) {
        let of = |runs: &Runs, way: usize| sample(&runs[way], label, MEASURES[0].1);
        let mean =
            |runs, way| of(runs, way).map(|it| format!("{:.0} ms", it.estimate().value * 1e3));
        let apart = |runs| {
            let less = of(runs, http2)?.less(&of(runs, http1)?)?;
            Some(format!("{} ms", less.text(1e3, 0)))
        };
        let cells = [
            mean(today, 0),
            mean(today, http1),
            mean(today, http2),
            apart(today),
            mean(bbr, http1),
            mean(bbr, http2),
            apart(bbr),
        ];
        let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".into()));
        text.push_str(&format!("| `{label}` | {} |\n", cells.join(" | ")));
    }
    text
}

/// Every measure, and how much was carried.
fn print(ways: &Runs) {
    let labels = labels(ways);
    MEASURES.iter().for_each(|measure| compare(*measure, ways, &labels));
    println!("Pages complete of those begun, objects, and the other traffic in Mbit/s\n");
    heading(&WAYS.map(|(name, _)| name));
    for label in &labels {
        let cells: Vec<String> = ways.iter().map(|runs| counts(runs, label)).collect();
        println!("| {label} | {} |", cells.join(" | "));
    }
    println!();
}

fn heading(columns: &[&str]) {
    println!("| discipline | {} |", columns.join(" | "));
    println!("| --- |{}", " ---: |".repeat(columns.len()));
}

/// A line for each discipline: the means of all ways, and their differences.
fn compare((title, measure): Measure, ways: &Runs, labels: &[&str]) {
    println!("{title}, ms\n");
    let names = WAYS.map(|(name, _)| name);
    let differences = DIFFERENCES.map(|(a, b)| format!("{} less {}", names[a], names[b]));
    let differences = differences.iter().map(String::as_str);
    heading(&names.into_iter().chain(differences).collect::<Vec<_>>());
    for label in labels {
        let samples: Option<Vec<Sample>> =
            ways.iter().map(|runs| sample(runs, label, measure)).collect();
        let Some(samples) = samples else { continue };
        let means = samples.iter().map(|it| format!("{:.0}", it.estimate().value * 1e3));
        let apart = DIFFERENCES.map(|(a, b)| samples[a].less(&samples[b]));
        let apart = apart.iter().map(|it| it.map_or("-".into(), |it| it.text(1e3, 0)));
        let cells: Vec<String> = means.chain(apart).collect();
        println!("| {label} | {} |", cells.join(" | "));
    }
    println!();
}

/// What each run of a discipline says.
fn sample(
    runs: &[RunSummary],
    label: &str,
    measure: fn(&RunSummary) -> Option<f64>,
) -> Option<Sample> {
    let own = runs.iter().filter(|run| run.discipline == label);
    Sample::of(Centre::Mean, own.map(|run| (run.seed, measure(run))))
}

fn counts(runs: &[RunSummary], label: &str) -> String {
    let own = || runs.iter().filter(|run| run.discipline == label);
    let sum = |of: fn(&RunSummary) -> u64| own().map(of).sum::<u64>();
    let loaded = sum(|run| run.traffic[0].page_loads.count());
    let begun = sum(|run| run.traffic[0].pages);
    let objects = sum(|run| run.traffic[0].completed);
    let rate =
        sample(runs, label, |run| Some(run.traffic[1].delivered.0 as f64 * 8.0 / 175.0 / 1e6));
    let rate = rate.map_or("-".into(), |rate| rate.estimate().text(1.0, 2));
    format!("{loaded} of {begun}, {objects}, {rate}")
}
