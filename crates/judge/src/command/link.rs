//! `tidegate-judge link`: the papers' disciplines on the live link.
//!
//! Several beds run side by side, because each takes as long as the clock on the wall and
//! little of a processor. Logs come first and cells second, so that a disturbance of the
//! machine meets all cells alike, and what was measured is kept after each log.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use clap::Args;
use tidegate_judge::cell::{Cell, papers_cells};
use tidegate_judge::kept::{Health, Kept, Manifest};
use tidegate_judge::native::{self, NativeError};
use tidegate_judge::workload;
use tidegate_judge::{figures, flow};

/// The folder of the kept figures is this one, below that of all of them.
const BED: &str = "link";

/// What is measured, and where the figures go.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only cells whose names begin with this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    cells: String,
    /// The number of logs for each cell.
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    logs: u64,
    /// How many beds run at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    beds: usize,
    /// The folder above that of the kept figures.
    #[arg(long, value_name = "FOLDER", default_value = "benches")]
    out: PathBuf,
}

/// A log of a cell, with its number.
type Job = (Cell, u64);

pub(crate) fn link(arguments: &Arguments) -> Result<(), NativeError> {
    let mut kept = Kept::renew(&arguments.out, BED, manifest()?)?;
    let cells: Vec<Cell> = papers_cells()
        .into_iter()
        .filter(|cell| cell.to_string().starts_with(&arguments.cells))
        .collect();
    let jobs: Vec<Job> =
        (1..=arguments.logs).flat_map(|log| cells.iter().map(move |cell| (*cell, log))).collect();
    let next = AtomicUsize::new(0);
    let (found, finds) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..arguments.beds {
            let (found, jobs, next) = (found.clone(), &jobs, &next);
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
            let (rows, health) = match measured {
                Err(NativeError::Missing(reason)) => {
                    println!("SKIP the live link: {reason}");
                    return Ok(());
                }
                measured => measured?,
            };
            eprintln!(
                "{number}/{} {} log {}: {} s, {} us late in the median, {} at p99",
                jobs.len(),
                health.cell,
                health.log,
                took.as_secs(),
                health.late_median_us,
                health.late_p99_us
            );
            kept.put_log(rows, health);
            kept.save()?;
        }
        Ok(())
    })
}

/// Sends a log, and condenses what came of it.
fn measure((cell, number): &Job) -> Result<(Vec<figures::Row>, Health), NativeError> {
    let log = workload::transfers(cell.link.rate, cell.load(), *number);
    let measured = native::measure(cell, &log, None, false)?;
    let name = cell.to_string();
    let responses = flow::responses(&measured.events, log.len());
    let rows = figures::condense(&name, *number, &log, &responses);
    Ok((rows, Health::of(&name, *number, measured.late_us, measured.link.as_ref())))
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
