//! `tidegate sweep`: compares disciplines at each point of a grid over one or two keys of a
//! scenario, and maps what to run.
//!
//! Every point is read before the first one runs, so that a wrong value at the far end
//! costs nothing. Finished points are kept in the folder of results, whatever happens to
//! the others: an interrupted sweep continues with the same command.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::Serialize;
use tidegate_files::expectation;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, vary};
use tidegate_store::file as study_file;
use tidegate_study::builtin::SCENARIOS;
use tidegate_study::columns::DISCIPLINE;
use tidegate_study::comparison::measured;
use tidegate_study::manifest::{self, Manifest};
use tidegate_study::sweep::{self, Axis, Plan, Sweep};
use tidegate_study::{experiment, machine};

use crate::arguments::SweepArguments;
use crate::compare::overrides;
use crate::failure::Failure;
use crate::folder::{ResultFolder, SWEEP};
use crate::inputs::Input;
use crate::interrupt::stop_flag;
use crate::output::{self, json, print};
use crate::progress::Progress;
use crate::report::{self, Provenance};
use crate::summary_csv::Rows;
use crate::{describe, home, serve, study};

/// The values of every measure at every point.
const CSV: &str = "sweep.csv";
/// The finished points.
const POINTS: &str = "points";
/// Columns of a terminal that does not say how many it has.
const WIDTH: usize = 100;
/// A map has two sides.
const MOST_KEYS: usize = 2;

/// A manifest with what was varied.
#[derive(Serialize)]
struct SweepManifest<'a> {
    #[serde(flatten)]
    manifest: &'a Manifest,
    over: &'a [Axis],
}

pub(crate) fn run(arguments: &SweepArguments) -> Result<(), Failure> {
    let input = match home::input(&arguments.link)? {
        Some(input) => input,
        None => Input::named(arguments.scenario.as_deref(), SCENARIOS)?,
    };
    if arguments.link.print {
        return print(&input.text);
    }
    if study_file::is_study(&input.text) {
        return study::run(arguments, &input);
    }
    if arguments.over.is_empty() {
        return Err(Failure::Input(
            "--over is missing, expected a key of the scenario with its values, for example \
             --over 'rate=5 Mbit/s,20 Mbit/s'"
                .into(),
        ));
    }
    if arguments.over.len() > MOST_KEYS {
        return Err(Failure::Input(format!(
            "--over: found {} keys, expected one or two: a map has two sides; sweep the others in \
             a sweep of their own",
            arguments.over.len()
        )));
    }
    check_measure(arguments.measure.as_deref())?;
    let overrides = overrides(&arguments.runs)?;
    // The scenario as it stands first: its own errors have their place in the file.
    let parse =
        |data: &dyn file::DataFiles| file::parse_with(&input.name, &input.text, data, &overrides);
    let (base, data) = input.read(parse)?;
    let (plan, _) = input.read(|data| {
        let read = |settings: &[vary::Setting]| {
            vary::parse(&input.name, &input.text, data, &overrides, settings)
        };
        Plan::of(arguments.over.clone(), read).map_err(|error| format!("--over: {error}"))
    })?;

    let stem = format!("sweep-{}", input.stem);
    let results = &arguments.results;
    let force = results.force || results.out.as_deref().is_some_and(is_unfinished);
    let folder = ResultFolder::prepare(results.out.as_deref(), force, &stem)?;
    let stop = stop_flag()?;
    let threads = results.threads.map_or_else(machine::cores, NonZeroUsize::get);
    let mut manifest = Manifest::of(&base, input.source(), data, threads);
    let begun = Instant::now();
    let progress = Progress::of_unknown_length();
    progress.extend(plan.duration());
    progress.say(&format!("{} points", plan.scenarios().count()));
    let points = folder.path().join(POINTS);
    let found = sweep::run(&plan, threads, stop, Some(&points), &|span| progress.advance(span));
    progress.finish();
    let found = found.map_err(|reason| {
        folder.discard();
        Failure::unwritable(&points, &reason)
    })?;
    let sweep = plan.sum_up(found);
    let done = sweep.points.iter().filter(|point| point.result.is_some()).count();
    if done == 0 {
        folder.discard();
        return Err(Failure::Interrupted("interrupted before there was any result".into()));
    }

    let measure = arguments.measure.as_deref().or(sweep.most_urgent()).unwrap_or_default();
    let document = json(&sweep);
    folder.write(CSV, &csv(&sweep))?;
    folder.write(SWEEP, document.as_bytes())?;
    manifest.partial = sweep.partial();
    let provenance = provenance(&base, &manifest, &sweep);
    report::sweep::write(folder.path(), &sweep, measure, &provenance)
        .map_err(|reason| Failure::unwritable(&folder.path().join(report::NAME), &reason))?;
    manifest.made.wall_s = begun.elapsed().as_secs_f64();
    manifest
        .note_results(folder.path(), [CSV, SWEEP, report::NAME])
        .map_err(|(name, reason)| Failure::unwritable(&folder.path().join(name), &reason))?;
    let whole = SweepManifest { manifest: &manifest, over: plan.axes() };
    folder.write(manifest::NAME, json(&whole).as_bytes())?;
    folder.remove_parts();

    if results.json {
        print(&document)?;
    } else {
        print(&report::sweep::text(&sweep, measure, output::columns(WIDTH)))?;
        let took = Duration::from_secs_f64(manifest.made.wall_s);
        let runs = plan.scenarios().map(|it| experiment::jobs(it).len()).sum();
        print(&report::written(runs, took, folder.path()))?;
    }
    if stop.load(Ordering::Relaxed) && manifest.partial {
        let (all, name) = (sweep.points.len(), folder.path().display());
        return Err(Failure::Interrupted(format!(
            "interrupted: {done} of {all} points are measured; the same command with --out {name} \
             continues"
        )));
    }
    if results.serve { serve::beside(folder.path()) } else { Ok(()) }
}

/// Refuses a measure that there is not.
fn check_measure(name: Option<&str>) -> Result<(), Failure> {
    let known = || measured().map(|(_, facts)| facts.name);
    match name {
        Some(name) if !known().any(|it| it == name) => {
            let mut names: Vec<_> = known().collect();
            names.sort_unstable();
            names.dedup();
            let expected = expectation(name, names);
            Err(Failure::Input(format!("--measure: found unknown '{name}', expected {expected}")))
        }
        _ => Ok(()),
    }
}

/// Whether `folder` has what an interrupted sweep has left.
fn is_unfinished(folder: &Path) -> bool {
    let earlier = Manifest::read(&folder.join(manifest::NAME));
    folder.join(POINTS).is_dir() && earlier.map_or(true, |it| it.partial)
}

/// `sweep.csv`: a row for each point, discipline and measure.
fn csv(sweep: &Sweep) -> Vec<u8> {
    let keys: Vec<&str> = sweep.axes.iter().map(|axis| axis.key.as_str()).collect();
    let mut rows = Rows::under(&[&keys[..], &[DISCIPLINE]].concat());
    for point in &sweep.points {
        let at: Vec<&str> = point.at.iter().map(String::as_str).collect();
        for values in point.result.iter().flat_map(|found| &found.disciplines) {
            let first = [&at[..], &[&values.label]].concat();
            values.rows.iter().for_each(|row| rows.add(&first, row));
        }
    }
    rows.content()
}

/// The provenance of a sweep: that of its scenario, and what was varied.
fn provenance(base: &Scenario, manifest: &Manifest, sweep: &Sweep) -> Provenance {
    let over = |axis: &Axis| format!("--over '{}={}'", axis.key, axis.values.join(","));
    let over: Vec<_> = sweep.axes.iter().map(over).collect();
    let disciplines = manifest.contenders.iter().map(|it| it.label.as_str()).collect::<Vec<_>>();
    let files = [
        (CSV, "every measure at every point: value, interval and number of runs"),
        (SWEEP, "the same, with the verdict on each point"),
        (manifest::NAME, "the inputs from which all of this was computed"),
    ];
    Provenance {
        command: format!("tidegate sweep {} {}", manifest.source.stem, over.join(" ")),
        other: vec![("Varied".into(), over.join(" ")), ("Compared".into(), disciplines.join(", "))],
        files: files.map(|(name, what)| (name.into(), what.into())).to_vec(),
        ..describe::provenance(base, manifest)
    }
}
