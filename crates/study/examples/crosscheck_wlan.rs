//! Ten seeds of the Wi-Fi cell compared with five of ns-3.37: what do uploads and
//! downloads get, with ns-3's rule for replies and with that of the standard?
//!
//! ```text
//! cargo run --release -p tidegate-study --example crosscheck_wlan
//! ```
//!
//! ns-3's figures are in `benches/ns3/results/wifi.jsonl`; `benches/ns3/wifi.md`
//! describes them and the results of the comparison.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::file;
use tidegate_study::experiment::{self, Forget};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/ns3/wifi.toml");
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/ns3/results/wifi.jsonl");
const BUFFERS: [u64; 2] = [30, 300];

/// Up and down, in Mbit/s.
type Shares = [f64; 2];

fn main() -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(SCENARIO)?;
    let standard = text.replace("immediate_replies = true", "immediate_replies = false");
    println!("| buffer | | up | down | together |\n| --- | --- | --- | --- | --- |");
    for buffer in BUFFERS {
        print_row(buffer, "ns-3", &peer(buffer)?);
        print_row(buffer, "ours, its replies", &ours(&text, buffer)?);
        print_row(buffer, "ours, the standard", &ours(&standard, buffer)?);
    }
    Ok(())
}

/// ns-3's runs of 5 uploads and 5 downloads with this buffer.
fn peer(buffer: u64) -> Result<Vec<Shares>, Box<dyn Error>> {
    let text = std::fs::read_to_string(PEER)?;
    let mut runs = Vec::new();
    for line in text.lines() {
        let run: serde_json::Value = serde_json::from_str(line)?;
        let both = run["up"] == 5 && run["down"] == 5;
        if let (true, Some(up), Some(down)) =
            (both && run["buffer"] == buffer, run["up_mbits"].as_f64(), run["down_mbits"].as_f64())
        {
            runs.push([up, down]);
        }
    }
    Ok(runs)
}

fn ours(text: &str, buffer: u64) -> Result<Vec<Shares>, Box<dyn Error>> {
    let text = text.replace("30 packets", &format!("{buffer} packets"));
    let scenario = file::parse(SCENARIO, &text, &file::Folder(".".into()))?;
    let threads = std::thread::available_parallelism()?.get();
    let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
    let mbits = |run: &RunSummary, source: usize| {
        run.traffic[source].delivered.0 as f64 * 8.0 / scenario.duration.as_seconds() / 1e6
    };
    Ok(runs.iter().map(|run| [mbits(run, 0), mbits(run, 1)]).collect())
}

/// Mean, least and most of each column.
fn print_row(buffer: u64, name: &str, runs: &[Shares]) {
    let cell = |of: &dyn Fn(&Shares) -> f64| {
        let mean = runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let least = runs.iter().map(of).fold(f64::MAX, f64::min);
        let most = runs.iter().map(of).fold(f64::MIN, f64::max);
        format!("{mean:.2} [{least:.2}, {most:.2}]")
    };
    let (up, down, both) = (cell(&|run| run[0]), cell(&|run| run[1]), cell(&|run| run[0] + run[1]));
    println!("| {buffer} | {name} | {up} | {down} | {both} |");
}
