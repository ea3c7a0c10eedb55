//! The arguments of `tidegate measure`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tidegate_core::Rate;

use super::link::interface;
use super::positive_rate;

#[derive(Debug, Subcommand)]
#[command(after_help = MEASURE_HELP)]
pub(crate) enum MeasureCommand {
    /// Load this machine's link in rounds, with each queue in turn, and say which to run
    ///
    /// Each round measures each queue once, in random order: it waits on the idle link, then
    /// loads it in both directions, and measures delays, a call, short transfers and the rate of
    /// long ones. Whatever is changed is undone at the end, on an error and by Ctrl-C; after a
    /// crash by the next `run`, or by `undo`.
    Run(MeasureRunArguments),
    /// Be the other end of measurements; takes no rights
    Serve(MeasureServeArguments),
    /// Undo what a measurement that was killed has left at an interface
    Undo(MeasureUndoArguments),
    /// Show what results of Flent say, those that `run --out` has written among them
    Read(MeasureReadArguments),
}

const MEASURE_HELP: &str = "\
Examples:
  tidegate measure serve                              on a machine beyond the link
  tidegate measure run server.example.org             the link as it is, from this machine
  sudo tidegate measure run server.example.org --up '9 Mbit/s' --down '47 Mbit/s'
  sudo tidegate measure run server.example.org --up 9mbit --queues now,fifo:300ms,cake,efd
  sudo tidegate measure run server.example.org --up 9mbit --out my-link --json
  tidegate measure run http://mirror.example.org/1GB.bin      a server of others: downloads only
  tidegate measure run iperf3://iperf.example.org:5201
  tidegate measure run netperf://netperf.example.org          as Flent uses it
  tidegate measure read my-link/*.flent.gz
  sudo tidegate measure undo eth0                     after a kill or a crash

docs/measure.md says what is measured and how, and what is changed meanwhile.
Exit code: 0 success, 1 failure, 2 wrong command line or file, 130 interrupted.";

/// The port of our own server.
pub(crate) const MEASURE_PORT: u16 = 4790;

#[derive(Args, Debug)]
pub(crate) struct MeasureRunArguments {
    /// The other end: a host with 'tidegate measure serve', as HOST or HOST:PORT;
    /// http://HOST/FILE, a large file; iperf3://HOST:PORT; or netperf://HOST:PORT
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// The interface towards the link [default: that by which the server is reached]
    #[arg(long, value_name = "INTERFACE", value_parser = interface)]
    pub(crate) interface: Option<String>,
    /// Rate of the link from this machine, a little below what it carries; queues other than
    /// 'now' stand in front of it
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) up: Option<Rate>,
    /// Rate of the link towards this machine; without it, what comes in is left alone
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) down: Option<Rate>,
    /// The queues to compare, the first being what the others are compared with: 'now' (what is
    /// there), 'fifo', 'fifo:300ms', 'fq-codel', 'cake', a discipline of Tidegate such as
    /// 'efd', or any of these with a name of your own, such as 'deep=fifo:300ms'
    /// [default: now, and with a rate fq-codel, cake and efd where they can be run]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) queues: Option<Vec<String>>,
    /// Number of rounds; each measures each queue once
    #[arg(long, value_name = "N", default_value_t = 6,
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) rounds: u64,
    /// The most rounds: a measurement whose rounds do not say goes on until they do [default:
    /// three times --rounds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) most_rounds: Option<u64>,
    /// Seconds of load for each queue in each round; the first third settles and does not count
    #[arg(long, value_name = "S", default_value_t = 12,
          value_parser = clap::value_parser!(u64).range(3..=600))]
    pub(crate) seconds: u64,
    /// Number of long transfers each way
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u64).range(1..=16))]
    pub(crate) flows: u64,
    /// Seed of the order of queues and of the times at which short transfers begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Folder for a Flent data file of each run, and summary.json
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureServeArguments {
    /// Address and port, for TCP and UDP
    #[arg(long, value_name = "ADDRESS:PORT",
          default_value_t = SocketAddr::from(([0, 0, 0, 0], MEASURE_PORT)))]
    pub(crate) listen: SocketAddr,
    /// The most seconds that one measurement of a client may take
    #[arg(long, value_name = "S", default_value_t = 900,
          value_parser = clap::value_parser!(u64).range(10..=86_400))]
    pub(crate) most_seconds: u64,
    /// Print each session as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureUndoArguments {
    /// The interface
    #[arg(value_name = "INTERFACE", value_parser = interface)]
    pub(crate) interface: String,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureReadArguments {
    /// Results of Flent, plain or compressed by gzip or zstd
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
