//! `tidegate-judge gateway`: a case of the live bed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use tidegate_core::{Span, Time};
use tidegate_judge::host::BedError;
use tidegate_judge::live::figures::{self, Figure};
use tidegate_judge::live::{self, Entrance, Found, LiveWay, WAYS};
use tidegate_judge::native;
use tidegate_sim::requests::Setup;
use tidegate_sim::scenario::file::gateway::Comparison;

use super::results::Results;

const EXAMPLES: &str = "\
Examples:
  tidegate-judge gateway saturated-2                       every way, as long and as often as the case says
  tidegate-judge gateway saturated-2 --ways none,htb,msf --seeds 1 --seconds 60
  tidegate-judge gateway tunnels-2 --ways msf --redirect   clients know of no proxy
  tidegate-judge gateway office.toml --json                any gateway's scenario that the bed can be
  tidegate-judge gateway                                   lists cases and ways";

/// What is tried, and where the figures go.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A case, or a file of a gateway as `tidegate requests compare` reads it; without it,
    /// cases and ways are listed.
    case: Option<String>,
    /// Only these ways, by their names; `htb` is all whose names begin so.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ways: Vec<String>,
    /// Seeds 1 to NUMBER, in place of the case's.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// How long each run takes, in place of the case's time; an eighth of it is not measured.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(8..))]
    seconds: Option<u64>,
    /// How many runs are live at the same time. Each has a network of its own, but all share
    /// this machine.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    at_once: u8,
    /// Clients know of no proxy: the kernel redirects their connections to Tidegate.
    #[arg(long)]
    redirect: bool,
    #[command(flatten)]
    results: Results,
}

/// What was found of a case.
#[derive(Serialize)]
struct Report {
    case: String,
    title: String,
    kernel: String,
    /// As `/proc/loadavg` says it, before and after.
    load: [String; 2],
    redirect: bool,
    seeds: Vec<u64>,
    duration_s: f64,
    warm_up_s: f64,
    ways: Vec<OfWay>,
    /// Ways without a result, with the reason.
    skipped: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct OfWay {
    way: &'static str,
    summary: &'static str,
    figures: Vec<Figure>,
}

/// What was asked for makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadInput(pub(crate) String);

/// What a run came to.
type Run = (&'static LiveWay, u64, Result<Found, BedError>);

pub(crate) fn gateway(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let Some(name) = &arguments.case else {
        return list();
    };
    let Trial { case, ways, entrance, tidegate } = Trial::of(name, arguments).map_err(BadInput)?;
    let setup = Arc::new(case.setup);
    let jobs: Vec<_> =
        case.seeds.iter().flat_map(|seed| ways.iter().map(move |way| (*way, *seed))).collect();
    let before = load();
    let runs = run_all(&jobs, arguments.at_once.into(), |way, seed| {
        live::measure(&setup, way, seed, entrance, &tidegate)
    });
    let mut report = Report {
        case: name.clone(),
        title: case.title,
        kernel: native::release()?,
        load: [before, load()],
        redirect: arguments.redirect,
        seeds: case.seeds,
        duration_s: setup.duration.as_seconds(),
        warm_up_s: setup.warm_up.as_seconds(),
        ways: Vec::new(),
        skipped: BTreeMap::new(),
    };
    for way in ways {
        match collect(&runs, way)? {
            Ok(live) => report.ways.push(OfWay::of(way, &setup, &live)),
            Err(reason) => {
                eprintln!("SKIP {}: {reason}", way.name);
                report.skipped.insert(way.name.to_owned(), reason);
            }
        }
    }
    arguments.results.show("figures.json", &report, &table(&report, &setup))?;
    Ok(())
}

/// What is to be tried.
struct Trial {
    case: Comparison,
    ways: Vec<&'static LiveWay>,
    entrance: Entrance,
    tidegate: PathBuf,
}

impl Trial {
    /// What the arguments ask for, or what is wrong with them.
    fn of(name: &str, arguments: &Arguments) -> Result<Trial, String> {
        let mut case = live::case(name)?;
        if let Some(seconds) = arguments.seconds {
            case.setup.duration = Span::seconds(seconds);
            case.setup.warm_up = case.setup.duration / 8;
        }
        check_silences(&case.setup)?;
        if let Some(seeds) = arguments.seeds {
            case.seeds = (1..=seeds).collect();
        }
        let entrance = if arguments.redirect { Entrance::Redirect } else { Entrance::Proxy };
        let ways = ways(&arguments.ways)?;
        Ok(Trial {
            case,
            ways,
            entrance,
            tidegate: arguments.results.tidegate().map_err(|BadInput(reason)| reason)?,
        })
    }
}

impl OfWay {
    /// What was found of a way, beside what the simulator finds with the same seeds.
    fn of(way: &'static LiveWay, setup: &Setup, live: &[(u64, Found)]) -> OfWay {
        let mut predicted = Vec::new();
        if let Some(counterpart) = way.counterpart() {
            let seeds = live.iter().map(|(seed, _)| *seed);
            predicted.extend(seeds.map(|seed| (seed, live::predict(setup, &counterpart, seed))));
        }
        let measures = figures::measures(setup, way);
        let figures = measures.iter().map(|measure| measure.figure(live, &predicted)).collect();
        OfWay { way: way.name, summary: way.summary, figures }
    }
}

fn list() -> Result<(), Box<dyn std::error::Error>> {
    println!("Cases:");
    for name in live::cases() {
        println!("  {name:<14} {}", live::case(name)?.title);
    }
    println!("\nWays:");
    for way in &WAYS {
        println!("  {:<14} {}", way.name, way.summary);
    }
    Ok(())
}

/// The ways with these names, or all.
fn ways(names: &[String]) -> Result<Vec<&'static LiveWay>, String> {
    if names.is_empty() {
        return Ok(WAYS.iter().collect());
    }
    let mut found: Vec<&LiveWay> = Vec::new();
    for name in names {
        let exact = WAYS.iter().filter(|way| way.name == name);
        let family = format!("{name}-");
        let mut fitting: Vec<_> = exact.collect();
        if fitting.is_empty() {
            fitting = WAYS.iter().filter(|way| way.name.starts_with(&family)).collect();
        }
        if fitting.is_empty() {
            let known: Vec<_> = WAYS.iter().map(|way| way.name).collect();
            return Err(format!("--ways: found '{name}', expected some of {}", known.join(", ")));
        }
        found.extend(fitting);
    }
    Ok(found)
}

/// A time in which a class is silent, and a while after it, have to be within the run.
fn check_silences(setup: &Setup) -> Result<(), String> {
    let last = setup.classes.iter().flat_map(|class| &class.silent).map(|(_, to)| *to).max();
    let after = figures::RETURN * 2;
    match last {
        Some(to) if to + after > Time::ZERO + setup.duration => Err(format!(
            "--seconds: found {}, expected at least {}: a class is silent until {to}",
            setup.duration,
            Span(to.0) + after,
        )),
        _ => Ok(()),
    }
}

/// The load of the machine.
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Has all jobs done, some of them at the same time, and tells of each on standard error.
fn run_all(
    jobs: &[(&'static LiveWay, u64)],
    at_once: usize,
    job: impl Fn(&LiveWay, u64) -> Result<Found, BedError> + Sync,
) -> Vec<Run> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_once.min(jobs.len()) {
            scope.spawn(|| {
                while let Some((way, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let found = job(way, *seed);
                    let mut done = done.lock().expect("nobody panics while it is held");
                    done.push((*way, *seed, found));
                    let (number, all, seconds) =
                        (done.len(), jobs.len(), begun.elapsed().as_secs());
                    eprintln!("{number}/{all} {} with seed {seed}: {seconds} s", way.name);
                }
            });
        }
    });
    done.into_inner().expect("nobody panics while it is held")
}

/// The runs of a way by their seeds, or why there are none.
fn collect(runs: &[Run], way: &LiveWay) -> Result<Result<Vec<(u64, Found)>, String>, io::Error> {
    let mut found = Vec::new();
    for (of, seed, run) in runs {
        if of.name != way.name {
            continue;
        }
        match run {
            Ok(run) => found.push((*seed, run.clone())),
            Err(BedError::Missing(reason)) => return Ok(Err(reason.to_string())),
            Err(error) => return Err(io::Error::other(format!("{}: {error}", way.name))),
        }
    }
    found.sort_by_key(|(seed, _)| *seed);
    Ok(Ok(found))
}

fn table(report: &Report, setup: &Setup) -> String {
    let redirect = if report.redirect { ", redirected by the kernel" } else { "" };
    let mut text = format!(
        "{}: {}{redirect}\n{} seeds, {} s each after {} s; Linux {}, load of the machine {} before \
         and {} after\n\n",
        report.case,
        report.title,
        report.seeds.len(),
        report.duration_s - report.warm_up_s,
        report.warm_up_s,
        report.kernel,
        report.load[0],
        report.load[1],
    );
    let ways: Vec<_> = report.ways.iter().map(|of| (of.way, of.figures.as_slice())).collect();
    // Their names are the same under every way.
    text += &live::text(&figures::measures(setup, &WAYS[0]), &ways);
    text += "\n± is half of the 95% interval over the seeds; * marks what is more than 10% from \
             what the simulator predicts.\n";
    for (way, reason) in &report.skipped {
        text += &format!("SKIP {way}: {reason}\n");
    }
    text
}
