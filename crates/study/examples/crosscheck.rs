//! Ten seeds of the dumbbell compared with ns-3.37: for every size class and both
//! loads, is ns-3's figure inside the spread of ours?
//!
//! ```text
//! cargo run --release -p tidegate-study --example crosscheck
//! cargo run --release -p tidegate-study --example crosscheck -- --rfc
//! ```
//!
//! With `--rfc`, TCP imitates none of the departures of ns-3's recovery.
//!
//! ns-3's figures are one seed of 1 000 s, with the settings in
//! `benches/ns3/README.md`; more of its seeds are in `benches/ns3/results/`.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::ClassSummary;
use tidegate_sim::scenario::file;
use tidegate_study::experiment::{self, Forget};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/ns3/crosscheck.toml");
const CLASSES: [&str; 7] = ["6", "7-10", "11-20", "21-50", "51-200", "201-1000", "1001+"];

/// Mean, median and 95th percentile of the response in seconds at 8 Mbit/s.
const UNDERLOAD: [[f64; 3]; 7] = [
    [0.379, 0.266, 1.05],
    [0.426, 0.321, 1.17],
    [0.515, 0.375, 1.46],
    [0.695, 0.487, 1.93],
    [1.014, 0.667, 3.12],
    [2.35, 1.38, 8.64],
    [10.6, 6.58, 28.9],
];
/// Fraction done, mean and median of the response in seconds at 15 Mbit/s.
const OVERLOAD: [[f64; 3]; 7] = [
    [4_492.0 / 4_708.0, 17.5, 4.43],
    [9_436.0 / 10_028.0, 21.3, 5.71],
    [7_319.0 / 7_993.0, 30.3, 9.99],
    [4_350.0 / 5_044.0, 45.9, 21.1],
    [1_935.0 / 2_555.0, 87.7, 60.5],
    [336.0 / 697.0, 225.0, 208.0],
    [11.0 / 157.0, 604.0, 734.0],
];

fn main() -> Result<(), Box<dyn Error>> {
    let mean = |class: &ClassSummary| class.response.mean();
    let median = |class: &ClassSummary| class.response.quantile(0.5);
    let p95 = |class: &ClassSummary| class.response.quantile(0.95);
    let done = |class: &ClassSummary| Some(class.completed as f64 / class.started as f64);
    let mut text = std::fs::read_to_string(SCENARIO)?;
    if std::env::args().any(|argument| argument == "--rfc") {
        text =
            text.lines().filter(|line| !line.starts_with("ns3 = ")).collect::<Vec<_>>().join("\n");
    }
    compare(
        &text,
        "8 Mbit/s",
        &UNDERLOAD,
        [("mean s", &mean), ("median s", &median), ("p95 s", &p95)],
    )?;
    let text = text.replace("8 Mbit/s", "15 Mbit/s");
    compare(
        &text,
        "15 Mbit/s",
        &OVERLOAD,
        [("done", &done), ("mean s", &mean), ("median s", &median)],
    )
}

type Figure<'a> = (&'a str, &'a dyn Fn(&ClassSummary) -> Option<f64>);

fn compare(
    text: &str,
    load: &str,
    peer: &[[f64; 3]; 7],
    figures: [Figure<'_>; 3],
) -> Result<(), Box<dyn Error>> {
    let scenario = file::parse(SCENARIO, text, &file::Folder(".".into()))?;
    let threads = std::thread::available_parallelism()?.get();
    let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
    println!("\nload {load}, {} seeds: ns-3 [least, most of ours]\n", runs.len());
    println!("| segments | {} | {} | {} |", figures[0].0, figures[1].0, figures[2].0);
    println!("| --- | --- | --- | --- |");
    let mut outside = 0;
    for (class, (name, peer)) in CLASSES.iter().zip(peer).enumerate() {
        let cell = |(peer, (_, figure)): (&f64, &Figure<'_>)| {
            let ours = runs.iter().filter_map(|run| figure(&run.classes[class]));
            let (least, most) =
                ours.fold((f64::MAX, f64::MIN), |(least, most), x| (least.min(x), most.max(x)));
            let inside = (least..=most).contains(peer);
            outside += u32::from(!inside);
            format!("{peer:.3} [{least:.3}, {most:.3}]{}", if inside { "" } else { " OUT" })
        };
        let cells: Vec<String> = peer.iter().zip(&figures).map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    let links = |run: &RunSummary| {
        let link = run.links.iter().flatten().next().expect("the bottleneck has a queue");
        (link.utilisation, link.loss_ratio())
    };
    let spread = |values: Vec<f64>| {
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        format!("{least:.4} to {most:.4}")
    };
    println!("\nutilisation {}", spread(runs.iter().map(|run| links(run).0).collect()));
    println!("loss ratio {}", spread(runs.iter().map(|run| links(run).1).collect()));
    println!("{outside} of 21 cells out");
    Ok(())
}
