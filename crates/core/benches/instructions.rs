//! Instructions for a packet to join and one to leave, for every registered
//! discipline: a measure that a busy machine does not change.
//!
//! ```sh
//! cargo bench -p tidegate-core --bench instructions
//! ```
//!
//! The benchmark runs itself under callgrind (Debian's `valgrind`) with a number of
//! pairs and with twice as many; the difference is free of the cost of setting up.

mod load;

use std::env;
use std::process::{Command, ExitCode};

use load::{Load, POINTS, Point};
use tidegate_core::entry::Entry;
use tidegate_core::registry::{self, DISCIPLINES};

const PAIRS: u64 = 100_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [word, name, queued, flows, pairs] = &arguments[..]
        && word == "run"
    {
        let parse = |text: &str| text.parse().expect("the parent passes numbers");
        let point = Point { queued: parse(queued), flows: parse(flows) };
        run(registry::find(name).expect("the parent passes names"), point, parse(pairs).into());
        return ExitCode::SUCCESS;
    }
    println!("discipline,queued,flows,instructions_per_pair,ratio_to_fifo");
    for point in POINTS {
        let mut fifo = None;
        for entry in DISCIPLINES {
            let counts = [PAIRS, 2 * PAIRS].map(|pairs| count(entry, point, pairs));
            let [Some(once), Some(twice)] = counts else {
                eprintln!("callgrind does not run: is valgrind installed?");
                return ExitCode::FAILURE;
            };
            let per_pair = (twice - once) as f64 / PAIRS as f64;
            let ratio = per_pair / *fifo.get_or_insert(per_pair);
            let Point { queued, flows } = point;
            println!("{},{queued},{flows},{per_pair:.1},{ratio:.2}", entry.name);
        }
    }
    ExitCode::SUCCESS
}

fn run(entry: &'static Entry, point: Point, pairs: u64) {
    let mut load = Load::new(entry, point);
    for _ in 0..pairs {
        load.pair();
    }
}

/// Instructions of a whole run, as callgrind counts them.
fn count(entry: &Entry, point: Point, pairs: u64) -> Option<u64> {
    let Point { queued, flows } = point;
    let arguments = [queued.into(), flows.into(), pairs].map(|number: u64| number.to_string());
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().ok()?)
        .args(["run", entry.name])
        .args(arguments)
        .output()
        .ok()?;
    let report = String::from_utf8(output.stderr).ok()?;
    let collected = report.lines().find_map(|line| line.split_once("Collected : "))?.1;
    collected.trim().parse().ok()
}
