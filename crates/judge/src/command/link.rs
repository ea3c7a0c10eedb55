//! `tidegate-judge link`: the papers' disciplines on the live link.
//!
//! Several beds run side by side, because each takes as long as the clock on the wall and
//! little of a processor. Logs come first and cells second, so that a disturbance of the
//! machine meets all cells alike, and what was measured is kept after each log.

use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use clap::Args;
use tidegate_judge::cell::{Cell, papers_cells};
use tidegate_judge::host::BedError;
use tidegate_judge::kept::{Health, Kept, Manifest};
use tidegate_judge::native;
use tidegate_judge::promises::{self, DISCIPLINES, Outcome};
use tidegate_judge::{figures, flow, link_page, workload};

/// The folder of the kept figures is this one, below that of all of them.
const BED: &str = "link";
/// The folder of all kept figures.
pub(crate) const FOLDER: &str = "benches";

/// What is measured, and where the figures go.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only cells whose names begin with this; `promises-<discipline>` are the calls.
    #[arg(long, value_name = "TEXT", default_value = "")]
    cells: String,
    /// The number of logs for each cell.
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    logs: u64,
    /// The number of the first log.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    first: u64,
    /// How many beds run at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    beds: usize,
    /// The folder above that of the kept figures.
    #[arg(long, value_name = "FOLDER", default_value = FOLDER)]
    out: PathBuf,
}

/// What a bed does in one go; names of promises begin with `promises-`.
#[derive(Clone, Copy)]
enum Job {
    /// A log of a cell.
    Log(Cell, u64),
    /// A run with promises under this discipline.
    Promises(&'static str, u64),
}

/// What came of it.
enum Find {
    Log(Vec<figures::Row>, Health),
    Promises(Vec<Outcome>),
}

/// How often promises are tried, and how many beds do that at once: they are about the
/// latest packet, and five beds keep each other waiting now and then.
const RUNS: u64 = 3;
const BEDS_OF_PROMISES: usize = 2;

/// The machine has stalled if the path is that late with a packet: the log is measured
/// again, whatever its figures are, at most so often.
const STALL_US: u32 = 50_000;
const TRIALS: u32 = 3;

/// The logs of cells whose names begin with `start`.
fn logs(start: &str, logs: RangeInclusive<u64>) -> Vec<Job> {
    let cells: Vec<Cell> =
        papers_cells().into_iter().filter(|cell| cell.to_string().starts_with(start)).collect();
    logs.flat_map(|log| cells.iter().map(move |cell| Job::Log(*cell, log))).collect()
}

/// The promises whose names begin with `start`.
fn promised(start: &str) -> Vec<Job> {
    let promised =
        DISCIPLINES.into_iter().filter(|name| format!("promises-{name}").starts_with(start));
    let promised: Vec<_> = promised.collect();
    (1..=RUNS).flat_map(|run| promised.iter().map(move |name| Job::Promises(name, run))).collect()
}

pub(crate) fn link(arguments: &Arguments) -> Result<(), BedError> {
    let mut kept = Kept::renew(&arguments.out, BED, manifest()?)?;
    let Arguments { cells, logs: count, first, beds, .. } = arguments;
    let logs = logs(cells, *first..=(first + count).saturating_sub(1));
    let outcome = run(&mut kept, &logs, *beds);
    outcome.and_then(|()| run(&mut kept, &promised(cells), BEDS_OF_PROMISES.min(*beds)))
}

/// Does these jobs on so many beds at once, and keeps what came of each.
fn run(kept: &mut Kept, jobs: &[Job], beds: usize) -> Result<(), BedError> {
    let next = AtomicUsize::new(0);
    let (found, finds) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..beds {
            let (found, next) = (found.clone(), &next);
            scope.spawn(move || {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    if found.send((measure(job), begun.elapsed())).is_err() {
                        return;
                    }
                }
            });
        }
        drop(found);
        for (number, (measured, took)) in (1..).zip(finds) {
            let find = match measured {
                Err(BedError::Missing(reason)) => {
                    println!("SKIP the live link: {reason}");
                    return Ok(());
                }
                measured => measured?,
            };
            let text = match find {
                Find::Log(rows, health) => {
                    let Health { late_median_us, late_p99_us, .. } = health;
                    let text = format!(
                        "{} log {}: {late_median_us} us late in the median, {late_p99_us} at p99",
                        health.cell, health.log
                    );
                    kept.put_log(rows, health);
                    text
                }
                Find::Promises(outcomes) => {
                    let late = outcomes.iter().map(|outcome| {
                        format!("{}: {} of {} late", outcome.stream, outcome.late, outcome.sent)
                    });
                    let text = format!(
                        "promises under {}: {}",
                        outcomes[0].discipline,
                        late.collect::<Vec<_>>().join(", ")
                    );
                    kept.put_promises(outcomes);
                    text
                }
            };
            eprintln!("{number}/{} {} s, {text}", jobs.len(), took.as_secs());
            kept.save()?;
        }
        Ok(())
    })
}

/// Writes the pages about what is kept.
pub(crate) fn page(kept: &Path, out: &Path) -> io::Result<()> {
    let missing = || {
        let folder = kept.join(BED);
        let text = format!("{}: nothing is kept; run 'make link-cells'", folder.display());
        io::Error::other(text)
    };
    let kept = Kept::open(kept, BED)?.ok_or_else(missing)?;
    link_page::write(&kept, out, |name| eprintln!("{name}"))
}

/// Does what a job says, and condenses what came of it.
fn measure(job: &Job) -> Result<Find, BedError> {
    match *job {
        Job::Promises(discipline, run) => {
            let mut trial = 1;
            loop {
                let outcomes = promises::measure(discipline, run)?;
                let late_ms = outcomes[0].bed_late_ms;
                if late_ms * 1e3 < f64::from(STALL_US) || trial == TRIALS {
                    return Ok(Find::Promises(outcomes));
                }
                eprintln!("promises under {discipline}, run {run}: a stall of {late_ms} ms");
                trial += 1;
            }
        }
        Job::Log(cell, number) => {
            let log = workload::transfers(cell.link.rate, cell.load(), number);
            let name = cell.to_string();
            let mut trial = 1;
            loop {
                let measured = native::measure(&cell, &log, None, false)?;
                let responses = flow::responses(&measured.events, log.len());
                let health = Health::of(&name, number, measured.late_us, measured.link.as_ref());
                if health.late_max_us < STALL_US || trial == TRIALS {
                    let rows = figures::condense(&name, number, &log, &responses);
                    return Ok(Find::Log(rows, health));
                }
                eprintln!("{name} log {number}: a stall of {} us", health.late_max_us);
                trial += 1;
            }
        }
    }
}

/// How today's figures come about.
fn manifest() -> io::Result<Manifest> {
    let manifest = super::manifest(&native::release()?, "make link-cells")?;
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let (_, model) = model.unwrap_or(("", "unknown processors"));
    let count = thread::available_parallelism().map_or(1, usize::from);
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output()?;
    let commit = String::from_utf8_lossy(&commit.stdout).trim().to_owned();
    Ok(Manifest { machine: Some(format!("{count} x {model}")), commit: Some(commit), ..manifest })
}
