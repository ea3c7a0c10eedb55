//! `tidegate compare`: runs a scenario under each discipline and seed, and
//! writes what came out to the terminal and to a folder.

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tidegate_core::Time;
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::file::{self, Overrides};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};
use tidegate_study::comparison::Comparison;
use tidegate_study::experiment::{self, Job, Output};

use crate::arguments::{CompareArguments, ResultArguments, RunArguments};
use crate::builtin::SCENARIOS;
use crate::failure::Failure;
use crate::folder::ResultFolder;
use crate::inputs::Input;
use crate::interrupt::stop_flag;
use crate::machine;
use crate::manifest::{self, Manifest, Run};
use crate::output::{json, print};
use crate::progress::Progress;
use crate::rows::{RowWriter, Table};
use crate::{describe, report, summary_csv, table};

pub(crate) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.from {
        let earlier: Manifest = manifest::read(path)?;
        return compare(
            &earlier.input(),
            &earlier.overrides()?,
            Some(&earlier),
            &arguments.results,
        );
    }
    let input = Input::named(arguments.scenario.as_deref(), SCENARIOS)?;
    compare(&input, &overrides(&arguments.runs)?, None, &arguments.results)
}

fn overrides(arguments: &RunArguments) -> Result<Overrides, Failure> {
    if let Some(choices) = &arguments.disciplines {
        distinct(choices)?;
    }
    Ok(Overrides {
        duration: arguments.duration,
        seeds: arguments.seeds.map(|count| (1..=count).collect()),
        disciplines: arguments.disciplines.clone(),
    })
}

/// Refuses two disciplines of one label: nobody could tell their results apart.
pub(crate) fn distinct(choices: &[DisciplineChoice]) -> Result<(), Failure> {
    for (index, choice) in choices.iter().enumerate() {
        if choices[..index].iter().any(|other| other.label == choice.label) {
            let label = &choice.label;
            return Err(Failure::Input(format!(
                "--disciplines: found '{label}' twice, expected each once, or :label=... on one"
            )));
        }
    }
    Ok(())
}

/// Runs the scenario of `input`. With an `earlier` manifest the results are
/// held against it.
pub(crate) fn compare(
    input: &Input,
    overrides: &Overrides,
    earlier: Option<&Manifest>,
    arguments: &ResultArguments,
) -> Result<(), Failure> {
    let (scenario, data) =
        input.read(|data| file::parse_with(&input.name, &input.text, data, overrides))?;
    let folder = ResultFolder::prepare(arguments.out.as_deref(), arguments.force, &input.stem)?;
    let stop = stop_flag()?;
    let threads = arguments.threads.map_or_else(machine::cores, NonZeroUsize::get);
    let mut manifest = Manifest::of(input, &scenario, data, threads);
    let begun = Instant::now();

    let jobs = experiment::jobs(&scenario);
    let progress = Progress::new(jobs.len(), scenario.duration);
    let writer = Rows { folder: &folder, scenario: &scenario, progress: &progress };
    let outcome = experiment::run(&scenario, threads, stop, &writer);
    progress.finish();
    let runs = outcome.map_err(|reason| {
        folder.discard();
        Failure::unwritable(folder.path(), &reason)
    })?;
    let runs = worth_keeping(runs, &scenario);
    if runs.is_empty() {
        folder.discard();
        return Err(Failure::Interrupted("interrupted before there was any result".into()));
    }

    let comparison = Comparison::of(&scenario, &runs);
    folder.join(&indices(&jobs, &runs))?;
    folder.write("summary.csv", &summary_csv::of(&comparison))?;
    let summary = json(&comparison);
    folder.write("summary.json", summary.as_bytes())?;
    let provenance = describe::provenance(&scenario, &manifest);
    report::write(folder.path(), &comparison, &provenance)
        .map_err(|reason| Failure::unwritable(&folder.path().join(report::NAME), &reason))?;

    manifest.partial = comparison.partial;
    manifest.runs = runs.iter().map(Run::from).collect();
    manifest.made.wall_s = begun.elapsed().as_secs_f64();
    manifest.results = manifest::hashes(folder.path(), &RESULTS)?;
    folder.write(manifest::NAME, json(&manifest).as_bytes())?;

    if arguments.json {
        print(&summary)?;
    } else {
        print(&table::of(&comparison))?;
        let took = Duration::from_secs_f64(manifest.made.wall_s);
        print(&report::written(runs.len(), took, folder.path()))?;
    }
    if stop.load(Ordering::Relaxed) && comparison.partial {
        let (done, all) = (runs.len(), jobs.len());
        return Err(Failure::Interrupted(format!(
            "interrupted: the results are of {done} of {all} runs, and marked as partial"
        )));
    }
    match earlier {
        Some(earlier) => check_against(earlier, &manifest),
        None => Ok(()),
    }
}

/// The results that a manifest vouches for.
const RESULTS: [&str; 6] = [
    Table::Flows.file(),
    Table::Links.file(),
    Table::Progress.file(),
    "summary.csv",
    "summary.json",
    report::NAME,
];

/// Says whether the results are those of the earlier comparison.
fn check_against(earlier: &Manifest, now: &Manifest) -> Result<(), Failure> {
    if earlier.partial {
        eprintln!("The manifest is of a partial comparison; this one is whole.");
        return Ok(());
    }
    manifest::check(&earlier.tidegate, &earlier.results, &now.results)
}

/// The runs that came to their end; if an interruption left none, those that
/// were cut off.
fn worth_keeping(mut runs: Vec<RunSummary>, scenario: &Scenario) -> Vec<RunSummary> {
    let end = Time::ZERO + scenario.duration;
    if runs.iter().any(|run| run.reached >= end) {
        runs.retain(|run| run.reached >= end);
    }
    runs
}

fn indices(jobs: &[Job<'_>], runs: &[RunSummary]) -> Vec<usize> {
    let of_run = |job: &&Job<'_>| {
        runs.iter().any(|run| run.discipline == job.discipline.label && run.seed == job.seed)
    };
    jobs.iter().filter(of_run).map(|job| job.index).collect()
}

impl From<&RunSummary> for Run {
    fn from(summary: &RunSummary) -> Run {
        Run {
            discipline: summary.discipline.clone(),
            seed: summary.seed,
            reached_ns: summary.reached.0,
            events: summary.events,
        }
    }
}

/// Puts the rows of runs into the folder.
struct Rows<'a> {
    folder: &'a ResultFolder,
    scenario: &'a Scenario,
    progress: &'a Progress,
}

impl<'a> Output<'a> for Rows<'a> {
    type Recorder = RowWriter<'a>;
    type Error = io::Error;

    fn begin(&self, job: &Job<'a>) -> io::Result<RowWriter<'a>> {
        RowWriter::new(self.folder, self.scenario, self.progress, job)
    }

    fn end(&self, _: &Job<'a>, recorder: RowWriter<'a>, _: &RunSummary) -> io::Result<()> {
        recorder.finish()
    }
}
