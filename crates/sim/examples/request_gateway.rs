//! What each request scheduler does to the classes of a gateway, as a table.
//!
//! ```sh
//! cargo run --release -p tidegate-sim --example request_gateway -- 10
//! ```
//!
//! The argument is the number of seeds. Rows are means over seeds with 95%
//! intervals; small responses are those below 10 kB.

use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::statistics::Estimate;
use tidegate_sim::requests::{Outcome, SchedulerChoice, Setup, run};

/// Parameters and their values.
type Given = &'static [(&'static str, &'static str)];

/// Label, name and settings.
const SCHEDULERS: [(&str, &str, Given); 6] = [
    ("fifo", "fifo", &[]),
    ("fifo, window", "fifo", &[("window", "controlled")]),
    ("drr", "drr", &[]),
    ("paper", "paper", &[]),
    ("msf", "msf", &[]),
    ("msf, floor 0.1", "msf", &[("floor", "0.1")]),
];

fn main() {
    let seeds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3);
    for (name, setup) in [("paper", Setup::paper()), ("today", Setup::today())] {
        println!("\n{name}: payload of each class in kbit/s, and the link\n");
        println!("| scheduler | class 1 | class 2 | class 3 | used % | lost % | queue ms | W+ |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        let runs: Vec<_> = SCHEDULERS
            .iter()
            .map(|(label, scheduler, given)| (*label, outcomes(&setup, scheduler, given, seeds)))
            .collect();
        for (label, runs) in &runs {
            let rate = |class| estimate(runs, |run| Some(run.throughput_bps(class) / 1e3));
            let lost = |run: &Outcome| {
                Some(run.downlink.lost() as f64 * 100.0 / run.downlink.offered as f64)
            };
            let cells = [
                rate(0),
                rate(1),
                rate(2),
                estimate(runs, |run| Some(run.utilisation * 100.0)),
                estimate(runs, lost),
                estimate(runs, |run| Some(run.queueing.mean()? * 1e3)),
                estimate(runs, |run| run.samples.last().map(|sample| sample.window)),
            ];
            println!("| {label} | {} |", cells.join(" | "));
        }
        println!("\n{name}: response times in s; 'waits' is for release at the gateway\n");
        println!("| scheduler | class | mean | median | p95 | p99 | small median | waits |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        for (label, runs) in &runs {
            for class in 0..setup.classes.len() {
                let quantile =
                    |of| estimate(runs, move |run| run.classes[class].response.quantile(of));
                let cells = [
                    estimate(runs, |run| run.classes[class].response.mean()),
                    quantile(0.5),
                    quantile(0.95),
                    quantile(0.99),
                    estimate(runs, |run| run.classes[class].small.quantile(0.5)),
                    estimate(runs, |run| run.classes[class].waiting.mean()),
                ];
                println!("| {label} | {} | {} |", class + 1, cells.join(" | "));
            }
        }
    }
}

fn outcomes(setup: &Setup, name: &str, given: &[(&str, &str)], seeds: u64) -> Vec<Outcome> {
    let choice = SchedulerChoice::new(name, name, given).expect("settings within range");
    let choice = choice.expect("it is in the catalogue");
    (1..=seeds).map(|seed| run(setup, &choice, seed, &AtomicBool::new(false))).collect()
}

/// A mean with half its interval.
fn estimate(runs: &[Outcome], value: impl Fn(&Outcome) -> Option<f64>) -> String {
    match Estimate::of(runs.iter().filter_map(value).filter(|value| value.is_finite())) {
        Some(Estimate { mean, half_width: Some(half), .. }) => format!("{mean:.2} ±{half:.2}"),
        Some(Estimate { mean, .. }) => format!("{mean:.2}"),
        None => "-".into(),
    }
}
