//! The disciplines of two papers, our own and those that people use today, under the
//! same traffic: who wins what, and where.
//!
//! ```text
//! cargo run --release -p tidegate-study --example survey -- docs/comparison [SEEDS]
//! ```
//!
//! writes `README.md` (winners and tables) and `survey.csv` (every figure with its
//! interval) into the folder, and the tables of the guide beside it, `comparison.md`.
//! Each case is a scenario or a variant of one; each discipline runs with the same
//! seeds, so differences are between runs with the same arrivals.

mod cases;
mod figures;
mod guide;
mod page;
mod result;
mod variant;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use tidegate_sim::scenario::DisciplineChoice;
use tidegate_study::experiment::{self, Forget};

use figures::FIGURES;
use result::CaseResult;

/// Those of the papers first and our own, then fair queueing, then what manages queues.
pub(crate) const DISCIPLINES: [&str; 15] = [
    "fifo", "efd", "las", "lars", "run2c", "scfq", "tide", "fq", "fq-codel", "fq-pie", "cake",
    "codel", "pie", "dualpi2", "red",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: survey FOLDER [SEEDS]")?);
    let seeds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let guide_path = folder.with_extension("md");
    let guide = fs::read_to_string(&guide_path)?;
    let choices: Vec<DisciplineChoice> =
        DISCIPLINES.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let threads = std::thread::available_parallelism()?.get();
    let mut results = Vec::new();
    for case in cases::all()? {
        eprintln!("{}", case.name);
        let mut scenario = case.scenario.clone();
        scenario.seeds = (1..=seeds).collect();
        scenario.disciplines.clone_from(&choices);
        let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
        let values = runs
            .chunks(scenario.seeds.len())
            .map(|runs| FIGURES.iter().map(|figure| figure.sample(&scenario, runs)).collect());
        results.push(CaseResult { name: case.name, group: case.group, values: values.collect() });
    }
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("README.md"), page::markdown(&results, seeds))?;
    fs::write(folder.join("survey.csv"), page::csv(&results)?)?;
    fs::write(guide_path, guide::with_tables(&guide, &results))?;
    Ok(())
}
