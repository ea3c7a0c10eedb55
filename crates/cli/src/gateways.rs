//! `tidegate requests compare`: ways of sharing a gateway's access link, and what
//! the users of each class feel under each.
//!
//! All ways see the same demand. What is measured of a run is a few numbers for
//! each class; over the seeds they become means with intervals ([`summary`]).

mod describe;
pub(crate) mod standard;
pub(crate) mod summary;
mod text;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tidegate_core::Time;
use tidegate_sim::requests::{Outcome, run_way};
use tidegate_sim::scenario::file::gateway::{self, Comparison};
use tidegate_study::pool;

use self::standard::Standard;
use self::summary::Summary;
use crate::arguments::RequestsCompareArguments;
use crate::builtin::GATEWAYS;
use crate::failure::Failure;
use crate::folder::ResultFolder;
use crate::inputs::{DataFile, Input};
use crate::manifest::{self, Made, ScenarioText};
use crate::output::{json, print};
use crate::progress::Progress;
use crate::report::requests::Results;
use crate::{interrupt, machine, report};

pub(crate) fn run(arguments: &RequestsCompareArguments) -> Result<(), Failure> {
    if arguments.schema {
        return print(&gateway::json_schema());
    }
    if let Some(path) = &arguments.from {
        let earlier: Manifest = manifest::read(path)?;
        let input = earlier.gateway.input(&earlier.data);
        return compare(&input, Some(earlier.seeds.clone()), Some(&earlier), arguments);
    }
    let input = Input::named(arguments.file.as_deref(), GATEWAYS)?;
    if arguments.print {
        return print(&input.text);
    }
    compare(&input, arguments.seeds.map(|seeds| (1..=seeds).collect()), None, arguments)
}

/// Compares the ways of `input`, with its own seeds or with these. With an
/// `earlier` manifest the results are held against it.
fn compare(
    input: &Input,
    seeds: Option<Vec<u64>>,
    earlier: Option<&Manifest>,
    arguments: &RequestsCompareArguments,
) -> Result<(), Failure> {
    let (mut comparison, data) =
        input.read(|data| gateway::parse(&input.name, &input.text, data))?;
    if let Some(seeds) = seeds {
        comparison.seeds = seeds;
    }
    let prepare = |out| ResultFolder::prepare(Some(out), arguments.force, &input.stem);
    let folder = arguments.out.as_deref().map(prepare).transpose()?;
    let threads = arguments.threads.map_or_else(machine::cores, NonZeroUsize::get);
    let mut manifest = Manifest::of(input, &comparison, data, threads);
    let begun = Instant::now();
    let outcomes = outcomes(&comparison, threads, interrupt::stop_flag()?).inspect_err(|_| {
        folder.iter().for_each(ResultFolder::discard);
    })?;
    let summary = Summary::of(&input.name, &comparison, &outcomes);
    let document = json(&summary);
    if let Some(folder) = &folder {
        folder.write("summary.csv", &summary.csv())?;
        folder.write("runs.csv", &summary::runs_csv(&comparison, &outcomes))?;
        folder.write("comparison.json", document.as_bytes())?;
        let results = Results {
            summary: &summary,
            standard: &Standard::of(&comparison),
            provenance: &describe::provenance(&input.text, &comparison),
        };
        report::requests::write(folder.path(), results)
            .map_err(|reason| Failure::unwritable(&folder.path().join(report::NAME), &reason))?;
        manifest.made.wall_s = begun.elapsed().as_secs_f64();
        manifest.results = manifest::hashes(folder.path(), &RESULTS)?;
        folder.write(manifest::NAME, json(&manifest).as_bytes())?;
        // There are no parts of runs to put together.
        folder.discard();
    }
    if arguments.json {
        print(&document)?;
    } else {
        print(&text::of(&summary))?;
        if let Some(folder) = &folder {
            let runs = comparison.ways.len() * comparison.seeds.len();
            print(&report::written(runs, begun.elapsed(), folder.path()))?;
        }
    }
    match earlier {
        Some(earlier) => manifest::check(&earlier.tidegate, &earlier.results, &manifest.results),
        None => Ok(()),
    }
}

/// The results that a manifest vouches for.
const RESULTS: [&str; 4] = ["summary.csv", "runs.csv", "comparison.json", report::NAME];

/// `manifest.json`: what a comparison of ways came from, so that `tidegate
/// requests compare --from` can repeat it to the byte.
#[derive(Serialize, Deserialize)]
struct Manifest {
    /// Version of the program.
    tidegate: String,
    /// The file of the gateway as it was written.
    gateway: ScenarioText,
    /// The files that it names.
    data: Vec<DataFile>,
    /// The seeds.
    seeds: Vec<u64>,
    /// SHA-256 of each result.
    results: BTreeMap<String, String>,
    /// How it was made; without influence on the results.
    made: Made,
}

impl Manifest {
    /// A manifest of what is going to be run, without results.
    fn of(input: &Input, comparison: &Comparison, data: Vec<DataFile>, threads: usize) -> Manifest {
        Manifest {
            tidegate: env!("CARGO_PKG_VERSION").into(),
            gateway: ScenarioText::of(input),
            data,
            seeds: comparison.seeds.clone(),
            results: BTreeMap::new(),
            made: Made::here(threads),
        }
    }
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
    let all: Vec<_> =
        ways.iter().flat_map(|way| seeds.iter().map(move |seed| (way, *seed))).collect();
    let outcomes = pool::map(&all, threads, stop, |(way, seed)| {
        let outcome = run_way(setup, way, *seed, stop);
        progress.advance(outcome.reached.since(Time::ZERO));
        outcome
    });
    progress.finish();
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted("interrupted; there are no results".into()));
    }
    let mut outcomes = outcomes.into_iter();
    Ok(ways.iter().map(|_| outcomes.by_ref().take(seeds.len()).collect()).collect())
}
