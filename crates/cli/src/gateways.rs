//! `tidegate requests compare`: ways of sharing a gateway's access link, and what
//! the users of each class feel under each.
//!
//! All ways see the same demand. What is measured of a run is a few numbers for
//! each class; over the seeds they become means with intervals ([`summary`]).

mod describe;
pub(crate) mod standard;
pub(crate) mod summary;
mod text;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use tidegate_core::Time;
use tidegate_sim::requests::{Outcome, run_way};
use tidegate_sim::scenario::file::gateway::{self, Comparison};
use tidegate_sim::scenario::file::{DataFiles, Folder};
use tidegate_sim::scenario::nearest;

use self::standard::Standard;
use self::summary::Summary;
use crate::arguments::RequestsCompareArguments;
use crate::builtin::{Builtin, Embedded};
use crate::failure::Failure;
use crate::output::{json, print};
use crate::progress::Progress;
use crate::report::requests::Results;
use crate::{interrupt, machine, report};

/// The files that are part of the program; the first is the one that is compared
/// when none is named.
const BUILTIN: &[Builtin] = &[Builtin {
    name: "school",
    text: include_str!("../../../scenarios/gateways/school.toml"),
    data: &[
        ("../data/web-objects.csv", include_bytes!("../../../scenarios/data/web-objects.csv")),
        ("../data/page-loads.csv", include_bytes!("../../../scenarios/data/page-loads.csv")),
    ],
}];

pub(crate) fn run(arguments: &RequestsCompareArguments) -> Result<(), Failure> {
    if arguments.schema {
        return print(&gateway::json_schema());
    }
    let name = arguments.file.as_deref().unwrap_or(BUILTIN[0].name);
    let (text, data) = found(name)?;
    if arguments.print {
        return print(&text);
    }
    let mut comparison = gateway::parse(name, &text, &*data).map_err(Failure::input)?;
    if let Some(seeds) = arguments.seeds {
        comparison.seeds = (1..=seeds).collect();
    }
    if let Some(directory) = &arguments.out {
        // A folder that cannot be written to is better known before the work.
        fs::create_dir_all(directory).map_err(|reason| {
            Failure::Input(format!("{}: cannot be written to: {reason}", directory.display()))
        })?;
    }
    let threads = arguments.threads.map_or_else(machine::cores, NonZeroUsize::get);
    let begun = Instant::now();
    let outcomes = outcomes(&comparison, threads, interrupt::stop_flag()?)?;
    let summary = Summary::of(name, &comparison, &outcomes);
    let document = json(&summary);
    if let Some(directory) = &arguments.out {
        write(directory, &summary, &comparison, &outcomes, &document)?;
        let results = Results {
            summary: &summary,
            standard: &Standard::of(&comparison),
            provenance: &describe::provenance(name, &text, &comparison, arguments.seeds),
        };
        report::requests::write(directory, results)
            .map_err(|reason| Failure::unwritable(&directory.join(report::NAME), &reason))?;
    }
    if arguments.json {
        return print(&document);
    }
    print(&text::of(&summary))?;
    let Some(directory) = &arguments.out else { return Ok(()) };
    let runs = comparison.ways.len() * comparison.seeds.len();
    print(&report::written(runs, begun.elapsed(), directory))
}

/// The text of the file called `name`, or of the built-in one, with its data.
fn found(name: &str) -> Result<(String, Box<dyn DataFiles>), Failure> {
    let path = Path::new(name);
    if let (Some(builtin), false) = (BUILTIN.iter().find(|it| it.name == name), path.is_file()) {
        return Ok((builtin.text.into(), Box::new(Embedded(builtin.data))));
    }
    let text = fs::read_to_string(path).map_err(|reason| {
        let or = match nearest(name, BUILTIN.iter().map(|it| it.name)) {
            _ if path.extension().is_some() => String::new(),
            Some(near) => format!("; built in: '{near}'"),
            None => format!("; built in: {}", BUILTIN[0].name),
        };
        Failure::Input(format!("{name}: cannot be read: {reason}{or}"))
    })?;
    Ok((text, Box::new(Folder(path.parent().unwrap_or(Path::new("")).into()))))
}

/// What came out of each way, by seed.
fn outcomes(
    comparison: &Comparison,
    threads: usize,
    stop: &AtomicBool,
) -> Result<Vec<Vec<Outcome>>, Failure> {
    let Comparison { setup, ways, seeds, .. } = comparison;
    let runs = ways.len() * seeds.len();
    let progress = Progress::new(runs, setup.duration);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..threads.min(runs) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= runs || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let (way, seed) = (&ways[number / seeds.len()], seeds[number % seeds.len()]);
                    let outcome = run_way(setup, way, seed, stop);
                    progress.advance(outcome.reached.since(Time::ZERO));
                    done.lock().expect("no run panics with the lock").push((number, outcome));
                }
            });
        }
    });
    progress.finish();
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted("interrupted; there are no results".into()));
    }
    let mut done = done.into_inner().expect("no run panics with the lock");
    done.sort_by_key(|(number, _)| *number);
    let mut outcomes = done.into_iter().map(|(_, outcome)| outcome);
    Ok(ways.iter().map(|_| outcomes.by_ref().take(seeds.len()).collect()).collect())
}

/// Writes the results into `directory`.
fn write(
    directory: &Path,
    summary: &Summary,
    comparison: &Comparison,
    outcomes: &[Vec<Outcome>],
    document: &str,
) -> Result<(), Failure> {
    let files = [
        ("summary.csv", summary.csv()),
        ("runs.csv", summary::runs_csv(comparison, outcomes)),
        ("comparison.json", document.as_bytes().to_vec()),
    ];
    for (name, contents) in files {
        let path = directory.join(name);
        fs::write(&path, contents).map_err(|reason| Failure::unwritable(&path, &reason))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_file_is_right() {
        for it in BUILTIN {
            let parsed = gateway::parse(it.name, it.text, &Embedded(it.data));
            parsed.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
