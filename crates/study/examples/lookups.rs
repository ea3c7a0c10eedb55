//! Lookups of names beside transfers that fill a link both ways, under a FIFO and disciplines
//! that know flows.
//!
//! ```text
//! cargo run --release -p tidegate-study --example lookups -- docs/comparison.md
//! ```
//!
//! writes the table of that page. A lookup is one small packet each way in a flow of its own,
//! the sparsest traffic there is, and one that is lost costs five seconds: what a queue does to
//! flows that begin shows in the mean, and what it drops in the tail.

use std::error::Error;
use std::fs;
use std::sync::atomic::AtomicBool;

use tidegate_sim::scenario::file::{self, Folder};
use tidegate_study::comparison::{Comparison, TrafficResult};
use tidegate_study::experiment::{self, Forget};
use tidegate_study::measure::{Measure, Value};
use tidegate_twins::pages;

/// None begins in the last 10 s, after which a host gives up, so that all can end.
const SCENARIO: &str = r#"
title = "Lookups on a full link"
seeds = 10
duration = "190 s"
warm_up = "20 s"
disciplines = [
    "fifo", "pie", "dualpi2", "fq-codel", "cake", "las", "lars", "run2c", "efd", "tide",
]
[[traffic.dns]]
name = "names"
from = "hosts"
to = "server1"
per_second = 5
stop = "180 s"
[[traffic.transfers]]
name = "downloads"
from = "server2"
to = "host1"
sizes = "endless"
request = "400 B"
count = DOWNLOADS
spread = "1 s"
[[traffic.transfers]]
name = "upload"
from = "host2"
to = "server2"
count = 1
sizes = "endless"
[access]
hosts = 4
delay = "8 ms"
servers = ["4 ms", "15 ms"]
"#;

/// What the link is called, the number of downloads, and its keys.
const LINKS: [(&str, &str, &str); 2] = [
    (
        "20 and 5 Mbit/s",
        "1",
        "down = \"20 Mbit/s\"\nup = \"5 Mbit/s\"\ndown_buffer = \"300 packets\"\nup_buffer = \"200 packets\"\n",
    ),
    ("8 and 1 Mbit/s", "8", "down = \"8 Mbit/s\"\nup = \"1 Mbit/s\"\nbuffer = \"150 packets\"\n"),
];

/// A column: its head, the measure, a factor and digits after the point.
const COLUMNS: [(&str, &str, f64, usize); 3] = [
    ("mean, ms", "lookup_mean_s", 1e3, 0),
    ("99%, ms", "lookup_p99_s", 1e3, 0),
    ("asked again, %", "lookups_asked_again_ratio", 1e2, 2),
];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: lookups PAGE")?;
    let page = fs::read_to_string(&path)?;
    let compared = LINKS.map(|(_, downloads, link)| {
        compare(&format!("{}{link}", SCENARIO.replace("DOWNLOADS", downloads)))
    });
    let [first, second] = compared;
    let [first, second] = [first?, second?];
    let heads = LINKS.iter().flat_map(|link| {
        COLUMNS.iter().enumerate().map(|(place, column)| match place {
            0 => format!("{}: {}", link.0, column.0),
            _ => column.0.into(),
        })
    });
    let heads: Vec<String> = heads.collect();
    let rule = " ---: |".repeat(heads.len());
    let mut table = format!("| | {} |\n| --- |{rule}\n", heads.join(" | "));
    for (one, other) in std::iter::zip(&first.disciplines, &second.disciplines) {
        let cells = [one, other].map(|it| cells(&it.traffic[0]));
        table += &format!("| `{}` | {} |\n", one.label, cells.concat().join(" | "));
    }
    fs::write(path, pages::with_table(&page, "Lookups of names", &table))?;
    Ok(())
}

fn compare(text: &str) -> Result<Comparison, Box<dyn Error>> {
    let scenario = file::parse("lookups", text, &Folder(".".into()))?;
    let threads = std::thread::available_parallelism()?.get();
    let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
    Ok(Comparison::of(&scenario, &runs))
}

fn cells(source: &TrafficResult) -> Vec<String> {
    let cell = |(_, name, factor, decimals): &(&str, &str, f64, usize)| {
        let measure = Measure::named(TrafficResult::MEASURES, name);
        let Value::Sample(Some(sample)) = (measure.value)(source) else { return "-".into() };
        sample.estimate().text(*factor, *decimals)
    };
    COLUMNS.iter().map(cell).collect()
}
