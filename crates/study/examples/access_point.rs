//! Measurements for access points: uploads against downloads, and one slow station
//! among fast ones, with and without aggregates and airtime fairness, under several
//! disciplines.
//!
//! ```text
//! cargo run --release -p tidegate-study --example access_point
//! ```
//!
//! The figures are means of ten seeds with 95% intervals. `docs/access-point.md`
//! gives the results.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::Times;
use tidegate_sim::scenario::{Capacity, Scenario, file};
use tidegate_study::Centre;
use tidegate_study::experiment::{self, Forget};

const LINKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/links");

/// In place of which line of a scenario another stands.
type Change = (&'static str, &'static str);

const DISCIPLINES: Change = (
    "disciplines = [\n    \"fifo\",\n    \"scfq\",\n    \"lars\",\n    \"las-ack\",\n    \
     \"run2c-ack\",\n    \"efd-ack\",\n    { name = \"efd\", label = \"befd\", threshold = \"30 \
     kB\" },\n",
    "disciplines = [\n    \"fifo\",\n    \"fq-codel\",\n    \"cake\",\n    \"las-ack\",\n    \
     \"efd-ack\",\n",
);
const OFDM: &str = "rates = [\"54 Mbit/s\"]";
const NO_CHANGE: Change = ("", "");
const ONE_QUEUE: Change = ("airtime_fairness = true\n", "");

/// A column: its name, how many decimals it needs, what it shows of a run.
type Column<'a> = (&'a str, Centre, usize, &'a dyn Fn(&Scenario, &RunSummary) -> Option<f64>);

fn main() -> Result<(), Box<dyn Error>> {
    let directions: [Column<'_>; 4] = [
        ("up", Centre::Mean, 1, &|scenario, run| Some(mbits(scenario, run, 0))),
        ("down", Centre::Mean, 1, &|scenario, run| Some(mbits(scenario, run, 1))),
        ("up over down", Centre::Median, 2, &|scenario, run| {
            Some(mbits(scenario, run, 0) / mbits(scenario, run, 1))
        }),
        ("in the queue, ms", Centre::Mean, 1, &waited),
    ];
    println!("## The cell of WLAN-2: 30 packets, TCP of the paper\n");
    heading("standard", &directions);
    for (name, change) in [
        ("802.11a, 54", NO_CHANGE),
        ("802.11n, 65", (OFDM, "standard = \"802.11n\"\nrates = [\"MCS 7\"]")),
        ("802.11ac, 390", (OFDM, "standard = \"802.11ac\"\nrates = [\"MCS 9\"]")),
    ] {
        rows(name, "wifi-54", &[DISCIPLINES, change], &directions)?;
    }

    let call: Column<'_> = ("call down, ms", Centre::Median, 1, &|_, run| {
        run.traffic[2].delay.quantile(0.95).map(|s| s * 1e3)
    });
    let with_call = [directions[0], directions[1], directions[2], directions[3], call];
    println!("\n## wifi-ac: 300 packets, today's TCP\n");
    heading("queues", &with_call);
    for (name, change) in [
        ("one, 64 taken ahead", NO_CHANGE),
        ("one, 512 taken ahead", ("[tcp]", "staging = 512\n\n[tcp]")),
        ("one for each station", ("[tcp]", "airtime_fairness = true\n\n[tcp]")),
    ] {
        rows(name, "wifi-ac", &[change], &with_call)?;
    }

    println!("\n## wifi-slow: one slow station among fast ones\n");
    let speeds: [Column<'_>; 4] = [
        ("each fast one", Centre::Mean, 1, &|scenario, run| Some(mbits(scenario, run, 0) / 3.0)),
        ("the slow one", Centre::Mean, 2, &|scenario, run| Some(mbits(scenario, run, 1))),
        ("all", Centre::Mean, 1, &|scenario, run| {
            Some(mbits(scenario, run, 0) + mbits(scenario, run, 1))
        }),
        call,
    ];
    heading("standard, queues", &speeds);
    const AC: &str = "standard = \"802.11ac\"\nrates = [\"MCS 9\", \"MCS 9\", \"MCS 9\", \"MCS \
                      0\", \"MCS 9\"]\nwidth = \"80 MHz\"";
    let a = "rates = [\"54 Mbit/s\", \"54 Mbit/s\", \"54 Mbit/s\", \"6 Mbit/s\", \"54 Mbit/s\"]";
    let n =
        "standard = \"802.11n\"\nrates = [\"MCS 7\", \"MCS 7\", \"MCS 7\", \"MCS 0\", \"MCS 7\"]";
    for (name, standard) in [
        ("802.11a, 54 and 6", (AC, a)),
        ("802.11n, 65 and 6.5", (AC, n)),
        ("802.11ac, 390 and 29", NO_CHANGE),
    ] {
        rows(&format!("{name}, one"), "wifi-slow", &[standard, ONE_QUEUE], &speeds)?;
        rows(&format!("{name}, each"), "wifi-slow", &[standard], &speeds)?;
    }
    Ok(())
}

fn heading(first: &str, columns: &[Column<'_>]) {
    let names: Vec<_> = columns.iter().map(|(name, ..)| *name).collect();
    println!("| {first} | discipline | {} |", names.join(" | "));
    println!("| --- | --- |{}", " ---: |".repeat(columns.len()));
}

/// Runs a scenario with changes and prints a line for each discipline.
fn rows(
    name: &str,
    scenario: &str,
    changes: &[Change],
    columns: &[Column<'_>],
) -> Result<(), Box<dyn Error>> {
    let path = format!("{LINKS}/{scenario}.toml");
    let mut text = std::fs::read_to_string(&path)?;
    for (old, new) in changes {
        if !text.contains(old) {
            return Err(format!("{path} has no '{old}'").into());
        }
        text = text.replacen(old, new, 1);
    }
    let scenario = file::parse(&path, &text, &file::Folder(LINKS.into()))?;
    let threads = std::thread::available_parallelism()?.get();
    let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
    for discipline in &scenario.disciplines {
        let cells = columns.iter().map(|(_, centre, decimals, of)| {
            let of_runs = runs.iter().filter(|run| run.discipline == discipline.label);
            let values = of_runs.filter_map(|run| of(&scenario, run));
            centre.of(values).map_or("-".into(), |estimate| estimate.text(1.0, *decimals))
        });
        let cells: Vec<String> = cells.collect();
        println!("| {name} | {} | {} |", discipline.label, cells.join(" | "));
    }
    Ok(())
}

fn mbits(scenario: &Scenario, run: &RunSummary, source: usize) -> f64 {
    let measured = scenario.duration.as_seconds() - scenario.warm_up.as_seconds();
    run.traffic[source].delivered.0 as f64 * 8.0 / measured / 1e6
}

/// Mean time of a packet in the queues of the access point, in ms.
fn waited(scenario: &Scenario, run: &RunSummary) -> Option<f64> {
    let mut all = Times::default();
    for (spec, link) in scenario.links.iter().zip(&run.links) {
        if let (Capacity::Downlink(_), Some(link)) = (&spec.capacity, link) {
            all.merge(&link.delay);
        }
    }
    all.mean().map(|seconds| seconds * 1e3)
}
