//! `tidegate-judge speed`: what proxies cost.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tidegate_judge::host::BedError;
use tidegate_judge::native;
use tidegate_judge::speed::{self, CONTROLLER, PROGRAMS, Speed};

use super::gateway::{BadInput, load};
use super::results::Results;

const EXAMPLES: &str = "\
Examples:
  tidegate-judge speed                       Squid, HAProxy and Tidegate, three rounds
  tidegate-judge speed --rounds 1 --seconds 3 --programs msf
  tidegate-judge speed --json                every round of every program";

/// How long, and where the figures go.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only these programs.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    programs: Vec<String>,
    /// How often each program is measured; programs take turns.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// How long each of the four parts of a round takes.
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    #[command(flatten)]
    results: Results,
}

#[derive(Serialize)]
struct Report {
    kernel: String,
    /// The congestion controller.
    controller: &'static str,
    /// As `/proc/loadavg` says it, before and after.
    load: [String; 2],
    seconds: u64,
    /// The rounds of each program.
    programs: BTreeMap<&'static str, Vec<Speed>>,
    /// Programs without a result, with the reason.
    skipped: BTreeMap<&'static str, String>,
}

pub(crate) fn speed(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let known = || PROGRAMS.iter().map(|program| program.name);
    if let Some(name) = arguments.programs.iter().find(|name| !known().any(|it| it == *name)) {
        let known: Vec<_> = known().collect();
        let reason = format!("--programs: found '{name}', expected some of {}", known.join(", "));
        return Err(BadInput(reason).into());
    }
    let tidegate = arguments.results.tidegate()?;
    let is_asked = |name: &str| {
        arguments.programs.is_empty() || arguments.programs.iter().any(|it| it == name)
    };
    let mut report = Report {
        kernel: native::release()?,
        controller: CONTROLLER,
        load: [load(), String::new()],
        seconds: arguments.seconds,
        programs: BTreeMap::new(),
        skipped: BTreeMap::new(),
    };
    for round in 1..=arguments.rounds {
        for program in PROGRAMS.iter().filter(|program| is_asked(program.name)) {
            if report.skipped.contains_key(program.name) {
                continue;
            }
            eprintln!("round {round}: {}", program.name);
            match speed::measure(program, &tidegate, Duration::from_secs(arguments.seconds)) {
                Ok(speed) => report.programs.entry(program.name).or_default().push(speed),
                Err(BedError::Missing(reason)) => {
                    eprintln!("SKIP {}: {reason}", program.name);
                    report.skipped.insert(program.name, reason.to_string());
                }
                Err(error) => return Err(format!("{}: {error}", program.name).into()),
            }
        }
    }
    report.load[1] = load();
    arguments.results.show("speed.json", &report, &table(&report))?;
    Ok(())
}

/// A row of the table: its name, and how a round has it.
type Row = (&'static str, fn(&Speed) -> Option<f64>, usize);

const ROWS: [Row; 11] = [
    ("requests/s", |it| Some(it.requests_per_second), 0),
    ("requests per second of CPU", |it| Some(it.requests_per_cpu_second), 0),
    ("half load, requests/s", |it| Some(it.half_load), 0),
    ("  median, ms", |it| Some(it.median_ms), 3),
    ("  p99, ms", |it| Some(it.p99_ms), 3),
    ("  p99 without a proxy, ms", |it| Some(it.direct_p99_ms), 3),
    ("  added at p99, ms", |it| Some(it.p99_ms - it.direct_p99_ms), 3),
    ("tunnels, CPU s/GB", |it| it.tunnel_cpu_seconds_per_gigabyte, 3),
    ("tunnels, GB/s", |it| it.tunnel_gigabytes_per_second, 2),
    ("idle, MB", |it| Some(it.idle_megabytes), 1),
    ("idle tunnel, kB each", |it| it.kilobytes_per_tunnel, 1),
];

/// The median of the rounds, and their least and largest.
fn table(report: &Report) -> String {
    let mut text = format!(
        "Linux {} with {}, load of the machine {} before and {} after; medians of the rounds \
         (least to largest)\n\n{:<28}",
        report.kernel, report.controller, report.load[0], report.load[1], ""
    );
    let measured: Vec<_> =
        PROGRAMS.iter().filter_map(|it| report.programs.get_key_value(it.name)).collect();
    for (name, _) in &measured {
        let _ = write!(text, " {name:>26}");
    }
    for (name, of, decimals) in ROWS {
        let _ = write!(text, "\n{name:<28}");
        for (_, rounds) in &measured {
            let mut values: Vec<f64> = rounds.iter().filter_map(of).collect();
            values.sort_by(f64::total_cmp);
            let cell = match values.as_slice() {
                [] => "-".to_owned(),
                [only] => format!("{only:.decimals$}"),
                [least, .., largest] => format!(
                    "{:.decimals$} ({least:.decimals$} to {largest:.decimals$})",
                    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]),
                ),
            };
            let _ = write!(text, " {cell:>26}");
        }
    }
    text.push('\n');
    for (name, reason) in &report.skipped {
        let _ = writeln!(text, "SKIP {name}: {reason}");
    }
    text
}
