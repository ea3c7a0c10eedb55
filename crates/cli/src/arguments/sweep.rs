//! The command line of `tidegate sweep`.

use std::path::PathBuf;

use clap::Args;
use tidegate_sim::scenario::file::vary::SHORT;
use tidegate_study::sweep::Axis;

use super::{LinkArguments, ResultArguments, RunArguments};

#[derive(Args, Debug)]
#[command(after_help = help())]
pub(crate) struct SweepArguments {
    /// Scenario file, or the name of a built-in one [default: household]; or the file of a study,
    /// which names its scenario and what varies
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<PathBuf>,
    /// A key of the scenario with its values, once or twice: KEY=VALUE,VALUE,... or
    /// KEY=FROM..TO:N
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) over: Vec<Axis>,
    /// The measure to print, by its name in sweep.csv [default: that of the most urgent need]
    #[arg(long, value_name = "METRIC")]
    pub(crate) measure: Option<String>,
    #[command(flatten)]
    pub(crate) link: LinkArguments,
    #[command(flatten)]
    pub(crate) runs: RunArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

const EXAMPLES: &str = "\
Examples:
  tidegate sweep --down '50 Mbit/s' --up '10 Mbit/s' --over 'rate=2 Mbit/s..200 Mbit/s:5'
  tidegate sweep --preset dsl --over 'rtt=10 ms,50 ms,300 ms' --over 'buffer=20 ms,200 ms,1 s'
  tidegate sweep office --over load=0.5,1,1.5 --seeds 3 --out my-sweep
  tidegate sweep my.toml --over access.hosts=2..16:4 --over tcp.profile=today,papers
  tidegate sweep my-study.toml --out my-study

A key is a path in the scenario's file, for example access.down or traffic.pages.web.load; an entry
of a list goes by its name or number. These names stand for what most scenarios have:
";

const FILES: &str = "
A range from FROM to TO has equal steps, or equal ratios where TO is ten times FROM or more.

The output folder receives report.html with its maps, sweep.csv, sweep.json (what --json prints),
manifest.json and points, the finished points. Ctrl-C keeps these, and the same command with the
same --out continues.

The file of a study has a scenario, over = ['rate=5 Mbit/s,20 Mbit/s', ...] and, if you like, seeds,
duration, disciplines, flows and links. Each of its runs is kept as Parquet in the output folder,
which pandas, polars and DuckDB read; nothing there is run again. Any number of keys may vary.
Without --out that is the folder tidegate-NAME, which is continued if it is there.
Exit code: 0 success, 1 runs of a study failed, 2 wrong command line or scenario, 130 interrupted.";

fn help() -> String {
    let short = SHORT.iter().map(|it| format!("  {:6}  {}\n", it.name, it.help));
    format!("{EXAMPLES}{}{FILES}", short.collect::<String>())
}
