//! `tidegate sweep STUDY.toml`: the runs of a study, each kept as Parquet.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::Serialize;
use tidegate_core::Span;
use tidegate_sim::scenario::file::Overrides;
use tidegate_store::{Failure as RunFailure, Folder, FolderError, Study, file, work};
use tidegate_study::machine;
use tidegate_study::sweep::Axis;

use crate::arguments::SweepArguments;
use crate::compare::overrides;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::interrupt::stop_flag;
use crate::output::{json, print};
use crate::progress::Progress;

/// More failures are counted, and not listed.
const LISTED: usize = 10;

/// What there is after a sweep.
#[derive(Serialize)]
struct Outcome<'a> {
    title: &'a str,
    folder: &'a Path,
    over: &'a [Axis],
    disciplines: Vec<&'a str>,
    seeds: &'a [u64],
    tables: Vec<&'static str>,
    runs: usize,
    missing: usize,
    failures: Vec<Failed<'a>>,
}

/// A run that failed, with all that repeats it.
#[derive(Serialize)]
struct Failed<'a> {
    at: Vec<(&'a str, &'a str)>,
    seed: u64,
    message: &'a str,
}

pub(crate) fn run(arguments: &SweepArguments, input: &Input) -> Result<(), Failure> {
    let refused = [
        ("--over", !arguments.over.is_empty(), "the file says what varies"),
        ("--measure", arguments.measure.is_some(), "a study keeps all measures"),
        ("--force", arguments.results.force, "what is in its folder is continued"),
        ("--serve", arguments.results.serve, "it has tables, and no report"),
    ];
    if let Some((option, _, reason)) = refused.into_iter().find(|(_, given, _)| *given) {
        return Err(Failure::Input(format!("{option} does not go with a study: {reason}")));
    }
    let folder = input.folder.as_deref().unwrap_or(Path::new("."));
    let mut asked = file::parse(&input.name, &input.text, folder).map_err(Failure::input)?;
    let Overrides { duration, seeds, disciplines } = overrides(&arguments.runs)?;
    let said = &mut asked.overrides;
    said.duration = duration.or(said.duration);
    said.seeds = seeds.or(said.seeds.take());
    said.disciplines = disciplines.or(said.disciplines.take());
    let study = Study::new(asked).map_err(Failure::input)?;

    let named = || PathBuf::from(format!("tidegate-{}", input.stem));
    let path = arguments.results.out.clone().unwrap_or_else(named);
    let folder = Folder::prepare(&path, &study).map_err(|error| match error {
        FolderError::System { .. } => Failure::Other(error.to_string()),
        FolderError::Other { .. } => Failure::Input(error.to_string()),
    })?;
    let threads = arguments.results.threads.map_or_else(machine::cores, NonZeroUsize::get);
    let stop = stop_flag()?;
    let begun = Instant::now();
    // All runs count the same, however long they are.
    let progress = Progress::new(study.size(), Span(1));
    let new = folder.missing(&study).len();
    let failures = work::run(&study, &folder, threads, stop, &|| progress.advance(Span(1)));
    progress.finish();
    let failures = failures.map_err(|reason| Failure::unwritable(&path, &reason))?;
    let missing = folder.missing(&study).len();

    if arguments.results.json {
        print(&json(&outcome(&study, &path, missing, &failures)))?;
    } else {
        let old = study.size() - new;
        let before = if old == 0 { String::new() } else { format!(" ({old} were there before)") };
        let tables: Vec<_> =
            study.tables().map(|table| path.join(table.name()).display().to_string()).collect();
        print(&format!(
            "{} runs in {:.1} s{before}. Tables: {}\n",
            new - missing,
            begun.elapsed().as_secs_f64(),
            tables.join(", ")
        ))?;
    }
    if stop.load(Ordering::Relaxed) && missing > failures.len() {
        return Err(Failure::Interrupted(format!(
            "interrupted: {missing} of {} runs are missing; the same command continues",
            study.size()
        )));
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Other(listed(&study, &failures))) }
}

fn outcome<'a>(
    study: &'a Study,
    folder: &'a Path,
    missing: usize,
    failures: &'a [RunFailure],
) -> Outcome<'a> {
    let failed = |it: &'a RunFailure| Failed {
        at: study.labels(it.run).collect(),
        seed: it.run.seed,
        message: &it.message,
    };
    Outcome {
        title: study.title(),
        folder,
        over: study.over(),
        disciplines: study.disciplines().iter().map(|it| &*it.label).collect(),
        seeds: study.seeds(),
        tables: study.tables().map(tidegate_store::Table::name).collect(),
        runs: study.size(),
        missing,
        failures: failures.iter().map(failed).collect(),
    }
}

/// The first failures, one on each line.
fn listed(study: &Study, failures: &[RunFailure]) -> String {
    let of = |it: &RunFailure| {
        let at: Vec<_> =
            study.labels(it.run).map(|(key, value)| format!("{key}={value}")).collect();
        format!("\n  {} seed={}: {}", at.join(" "), it.run.seed, it.message)
    };
    let first: String = failures.iter().take(LISTED).map(of).collect();
    let more = failures.len().saturating_sub(LISTED);
    let more = if more == 0 { String::new() } else { format!("\n  and {more} more") };
    let count = failures.len();
    format!(
        "{count} of {} runs failed; the same command tries them again{first}{more}",
        study.size()
    )
}
