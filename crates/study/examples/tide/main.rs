//! The evidence for `tide`: who wins against it, who loses, and where.
//!
//! ```text
//! cargo run --release -p tidegate-study --example tide -- docs/tide [SEEDS]
//! ```
//!
//! runs `tide` beside eight others and writes into the folder `evidence.csv` (every figure
//! of every run), `README.md` (who beats whom, and every loss) and the figures, and into
//! the page beside the folder, `tide.md`, its tables. `--only NAME` runs the cases of which
//! the group or the name contains NAME, and `--again NAME` the disciplines whose names begin
//! with NAME: the rest of `evidence.csv` is kept. `--draw` runs nothing, and makes pages and
//! figures of what is kept.
//!
//! The seeds are not those of the survey, with which `tide` was made, and most links are
//! drawn by chance. Each discipline runs with the same seeds and so meets the same arrivals,
//! and is compared seed by seed.

mod attacks;
mod cases;
mod causes;
mod chance;
mod guide;
mod kept;
mod page;
mod verdicts;

// The survey's figures of a run and what it does with the files of scenarios.
#[path = "../survey/figures.rs"]
mod figures;
#[path = "../survey/result.rs"]
mod result;
#[path = "../survey/variant.rs"]
mod variant;

// The plots are those of the report, which is part of a program and of no library.
#[path = "../../../cli/src/report"]
#[allow(dead_code, unused_imports, reason = "the report has more kinds of plots than this page")]
mod report {
    #[path = "../../../study/examples/tide/drawing.rs"]
    pub(crate) mod drawing;
    mod markup;
    mod number;
    mod plot;
}

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tidegate_study::experiment::{self, Forget};

use cases::Case;
use figures::FIGURES;
use kept::Kept;
use report::drawing;
use result::CaseResult;
use verdicts::Verdicts;

/// Ours first; then those that pass short transfers, those that divide the rate, and none.
pub(crate) const DISCIPLINES: [&str; 9] =
    ["tide", "efd", "las", "lars", "scfq", "fq-codel", "fq-pie", "cake", "fifo"];

/// Seeds begin after this one. The survey has 1 to 10.
const FIRST_SEED: u64 = 100;

/// So many seeds unless it is said otherwise: the fewest that give a median its interval.
const SEEDS: u64 = 6;

/// What was asked for.
struct Arguments {
    folder: PathBuf,
    seeds: u64,
    /// What the group or the name of a case contains.
    only: String,
    /// What the name of a discipline begins with.
    again: String,
    draw: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = arguments()?;
    fs::create_dir_all(&asked.folder)?;
    let path = asked.folder.join("evidence.csv");
    let mut kept = Kept::read(&path)?;
    let cases = cases::all()?;
    let named = |case: &&Case| case.group.contains(&asked.only) || case.name.contains(&asked.only);
    let chosen: Vec<&Case> = cases.iter().filter(named).filter(|_| !asked.draw).collect();
    let began = Instant::now();
    for (place, case) in chosen.iter().enumerate() {
        let seconds = began.elapsed().as_secs();
        eprintln!(
            "{seconds:5} s, {} of {}: {}, {}",
            place + 1,
            chosen.len(),
            case.group,
            case.name
        );
        run(case, &asked, &mut kept)?;
        kept.write(&path, &cases)?;
    }
    // In the order of the cases, without those that are no more.
    kept.write(&path, &cases)?;
    let results: Vec<CaseResult> = cases.iter().filter_map(|case| kept.result(case)).collect();
    write_pages(&asked.folder, &results)
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    const USAGE: &str = "usage: tide FOLDER [SEEDS] [--only NAME] [--again NAME] [--draw]";
    let (only, again) = (String::new(), String::new());
    let mut asked = Arguments { folder: PathBuf::new(), seeds: SEEDS, only, again, draw: false };
    let mut places = 0;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--only" => asked.only = words.next().ok_or(USAGE)?,
            "--again" => asked.again = words.next().ok_or(USAGE)?,
            "--draw" => asked.draw = true,
            _ if word.starts_with('-') => return Err(USAGE.into()),
            _ if places == 0 => (asked.folder, places) = (word.into(), 1),
            _ if places == 1 => (asked.seeds, places) = (word.parse()?, 2),
            _ => return Err(USAGE.into()),
        }
    }
    if places == 0 { Err(USAGE.into()) } else { Ok(asked) }
}

/// Runs the disciplines of a case with every seed, and keeps what came out.
fn run(case: &Case, asked: &Arguments, kept: &mut Kept) -> Result<(), Box<dyn Error>> {
    let mut scenario = case.scenario.clone();
    scenario.seeds = (1..=asked.seeds * case.repeats).map(|seed| FIRST_SEED + seed).collect();
    let names = case.disciplines.iter().filter(|name| name.starts_with(&asked.again));
    let names: Vec<&String> = names.collect();
    let choices = names.iter().map(|name| cases::choice(name));
    scenario.disciplines = choices.collect::<Result<_, _>>()?;
    let threads = std::thread::available_parallelism()?.get();
    let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
    for (name, runs) in std::iter::zip(names, runs.chunks(scenario.seeds.len())) {
        for figure in &FIGURES {
            kept.keep(case, name, figure, figure.sample(&scenario, runs).as_ref());
        }
    }
    Ok(())
}

/// The page of numbers, the figures, and the tables of the page that explains them.
fn write_pages(folder: &Path, results: &[CaseResult]) -> Result<(), Box<dyn Error>> {
    let verdicts = Verdicts::of(results);
    fs::write(folder.join("README.md"), page::markdown(results, &verdicts))?;
    for (name, svg) in drawing::all(results, &verdicts) {
        fs::write(folder.join(name), svg)?;
    }
    let guide_path = folder.with_extension("md");
    let guide = fs::read_to_string(&guide_path)?;
    fs::write(guide_path, guide::with_tables(&guide, results, &verdicts))?;
    Ok(())
}
