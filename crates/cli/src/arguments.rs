//! The command line, defined once: help, manual pages and completions come from it.

mod gateway;
mod link;
mod measure;
mod measured;
mod qdisc;
mod serve;
mod sizes;
mod sweep;
mod wifi;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tidegate_core::buffer::Limit;
use tidegate_core::{Buffer, Bytes, Rate, Span};
use tidegate_sim::scenario::DisciplineChoice;

pub(crate) use self::gateway::{
    GatewayCheckArguments, GatewayCommand, GatewayPlanArguments, GatewayReloadArguments,
    GatewayRulesCommand, GatewayStatusArguments, GatewayTopArguments,
};
pub(crate) use self::link::{
    ChangeArguments, Fail, LinkBypassArguments, LinkCommand, LinkDirection, LinkRunArguments,
    LinkSetArguments, LinkStatusArguments, LinkStopArguments, LinkTopArguments,
};
pub(crate) use self::measure::{
    MEASURE_PORT, MeasureCommand, MeasureReadArguments, MeasureRunArguments, MeasureServeArguments,
    MeasureUndoArguments,
};
pub(crate) use self::measured::{MeasuredArguments, MeasuredLinkArguments};
pub(crate) use self::qdisc::{
    QdiscAddArguments, QdiscChangeArguments, QdiscCommand, QdiscDelArguments, QdiscShowArguments,
};
pub(crate) use self::serve::ServeArguments;
pub(crate) use self::sizes::{SizesArguments, Way};
pub(crate) use self::sweep::SweepArguments;
pub(crate) use self::wifi::Wifi;

/// Which queue discipline should I run on my congested link, and what will my users notice?
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  tidegate compare --down '50 Mbit/s' --up '10 Mbit/s'   what to run on a home's link, and why
  tidegate compare                            the same for a built-in household
  tidegate scenarios household > my.toml      a scenario to change
  tidegate compare my.toml --out my-link      compare with it, and keep the results in my-link
  tidegate sweep --preset dsl --over 'rate=2 Mbit/s..200 Mbit/s:5'   from what rate on it matters
  tidegate replay office.pcap --rate '50 Mbit/s'
  tidegate measured rrul.flent.gz             a measurement beside the link simulated
  tidegate measure run server.example.org     this machine's own link, under load
  tidegate curves home-10mbit                 can a link keep its promises to flows?
  tidegate reproduce EFD-5 --quick            a claim of a paper, measured
  tidegate disciplines efd

Exit code: 0 success, 1 failure, 2 wrong command line or input, 130 interrupted.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a link under each of several disciplines, and report what users notice
    Compare(CompareArguments),
    /// Compare disciplines over the values of one or two keys of a scenario, and map who wins
    Sweep(SweepArguments),
    /// Send recorded traffic through several disciplines
    Replay(ReplayArguments),
    /// Set a measurement of a link beside its simulation, and report what would change it
    Measured(MeasuredArguments),
    /// Measure this machine's own link under load, with each queue in turn
    Measure {
        #[command(subcommand)]
        command: MeasureCommand,
    },
    /// Check whether a link can keep its promises to flows, and show the capacity that remains
    Curves(CurvesArguments),
    /// Measure the claims of the papers, and report which hold
    Reproduce(ReproduceArguments),
    /// List the disciplines, or explain one
    Disciplines(DisciplinesArguments),
    /// List the request schedulers of gateways, or explain one
    Requests(RequestsArguments),
    /// Run a live HTTP proxy that shares the downlink by scheduling requests
    Gateway {
        #[command(subcommand)]
        command: GatewayCommand,
    },
    /// Run a live link: a queue discipline between two network interfaces
    Link {
        #[command(subcommand)]
        command: LinkCommand,
    },
    /// Put a queue discipline in front of an interface, in the kernel
    Qdisc {
        #[command(subcommand)]
        command: QdiscCommand,
    },
    /// Measure the distribution of transfer sizes in captures, HTTP logs and page loads
    Sizes(SizesArguments),
    /// List the built-in scenarios, or print one to start from
    Scenarios(ScenariosArguments),
    /// Show the results in a folder in a browser, each by itself or side by side
    Serve(ServeArguments),
    /// Show what this machine and this build can do, and what is missing for the rest
    Doctor(DoctorArguments),
    /// Print a script that completes this command line in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages into a directory
    Man {
        /// The directory, which is created if it does not exist
        directory: PathBuf,
    },
}

#[derive(Args, Debug)]
#[command(after_help = COMPARE_HELP)]
pub(crate) struct CompareArguments {
    /// Scenario file, or the name of a built-in one [default: household]
    #[arg(value_name = "SCENARIO", conflicts_with = "from")]
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) link: LinkArguments,
    #[command(flatten)]
    pub(crate) runs: RunArguments,
    /// Repeat the comparison that wrote this manifest, and check its results
    #[arg(long, value_name = "MANIFEST", conflicts_with_all = ["link", "disciplines", "seeds", "duration"])]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

/// A home link, in place of a scenario.
#[derive(Args, Debug, Default)]
#[group(id = "link", multiple = true, conflicts_with = "scenario")]
#[command(next_help_heading = "A home link instead of a scenario")]
pub(crate) struct LinkArguments {
    /// Rate towards the home, such as '50 Mbit/s' or 50Mbps
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) down: Option<Rate>,
    /// Rate from the home
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) up: Option<Rate>,
    /// Round trip to a server nearby while the link is empty [default: 20 ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<Span>,
    /// Buffer of the modem, each way: packets, a size, or a time such as '300 ms' [default: 150 ms
    /// down, 400 ms up]; of --wifi alone, that of the access point and each station [default: 1000
    /// packets]
    #[arg(long, value_name = "BUFFER")]
    pub(crate) buffer: Option<Limit>,
    /// A typical link of this kind; what else is given replaces its values
    #[arg(long, value_name = "KIND")]
    pub(crate) preset: Option<Preset>,
    /// Wi-Fi as the last hop, alone or behind --down and --up: a standard and a data rate, such as
    /// '54 Mbit/s', 802.11n, '802.11n MCS 4' or 802.11ac
    #[arg(long, value_name = "PHY")]
    pub(crate) wifi: Option<Wifi>,
    /// Number of stations that share the Wi-Fi [default: 4]
    #[arg(long, value_name = "N", requires = "wifi",
          value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) stations: Option<u32>,
    /// Print the scenario that would be run, as a file to change
    #[arg(long, conflicts_with_all = ["disciplines", "seeds", "duration", "out", "json"])]
    pub(crate) print: bool,
}

/// Kinds of home links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// 16 Mbit/s down, 1 up, 30 ms
    Dsl,
    /// 100 Mbit/s down, 10 up, 20 ms
    Cable,
    /// 300 Mbit/s down, 100 up, 10 ms
    Fibre,
    /// 30 Mbit/s down, 10 up, 50 ms, at a steady rate
    Lte,
    /// 25 Mbit/s down, 3 up, 560 ms: geostationary
    Satellite,
}

const COMPARE_HELP: &str = "\
Examples:
  tidegate compare --down '50 Mbit/s' --up '10 Mbit/s'
  tidegate compare --preset dsl --up '2 Mbit/s' --print > my.toml
  tidegate compare --preset cable --wifi '802.11n MCS 3' --stations 6
  tidegate compare                            the built-in household
  tidegate compare my.toml --disciplines fifo,efd,'efd:threshold=30 kB' --seeds 10
  tidegate compare --duration '5 min' --out five-minutes
  tidegate compare --from tidegate-household/manifest.json

The output folder receives report.html, flows.csv, links.csv, progress.csv, summary.csv,
summary.json (what --json prints) and manifest.json, from which --from repeats the comparison.
Ctrl-C keeps the finished runs, reports them, and marks the results as partial.";

#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// Disciplines to compare instead of the scenario's, for example fifo,efd:threshold=30kB
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) disciplines: Option<Vec<DisciplineChoice>>,
    /// Number of seeds: one run for each discipline and seed
    #[arg(long, value_name = "N", value_parser = seeds())]
    pub(crate) seeds: Option<u64>,
    /// Simulated time of each run, such as '60 s'
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
}

/// Seeds are 1, 2, and so on to this.
fn seeds() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=10_000)
}

#[derive(Args, Debug)]
pub(crate) struct ResultArguments {
    /// Folder for the results [default: the first free of tidegate-NAME, tidegate-NAME-2, ...]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace earlier results in the folder
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Number of runs at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the report in a browser, beside other results of the folder around it, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    pub(crate) serve: bool,
}

#[derive(Args, Debug)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct ReplayArguments {
    /// Capture (pcap, pcapng), HTTP log (common, combined, Squid), page loads (HAR), log of
    /// connections (Zeek, tcptrace) or of transfers (CSV with start_s and size_bytes), plain or
    /// compressed by gzip or zstd; '-' for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Rate of the link towards the users
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) rate: Rate,
    /// Rate of the link from the users [default: the same as --rate]
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) up_rate: Option<Rate>,
    /// Buffer in front of the link, each way
    #[arg(long, value_name = "BUFFER", default_value = "300 packets")]
    pub(crate) buffer: Buffer,
    /// One-way propagation delay [default: of transfers 20 ms; of a capture's packets none, which
    /// leaves the delay that the link adds]
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<Span>,
    /// Run the transfers that a capture holds as TCP, which reacts to the link, beside its calls
    #[arg(long)]
    pub(crate) as_transfers: bool,
    /// Addresses and prefixes on the users' side, for example 192.168.0.0/16; for a capture
    /// [default: found from the capture]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', value_parser = network)]
    pub(crate) local: Vec<String>,
    /// How results of a capture are divided
    #[arg(long, value_enum, default_value_t = By::Application, conflicts_with = "as_transfers")]
    pub(crate) by: By,
    /// Disciplines to compare, for example fifo,efd:threshold=30kB
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "fifo,fq-codel,cake,efd"
    )]
    pub(crate) disciplines: Vec<DisciplineChoice>,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

/// How a capture is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// By the server's name or port, with calls apart
    Application,
    /// By the users' addresses
    Host,
    /// Not at all
    Nothing,
}

/// An address or a prefix, as it was written.
fn network(text: &str) -> Result<String, String> {
    let read = tidegate_sim::trace::hosts::network_of(text);
    let expected = "expected an IP address, or a prefix such as 192.168.0.0/16";
    read.map(|_| text.to_owned()).map_err(|_| expected.to_owned())
}

/// A time in which something can happen.
fn interval(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    let least = Span::millis(100);
    if span < least { Err(format!("less than {least}")) } else { Ok(span) }
}

/// A time above zero.
fn positive_span(text: &str) -> Result<Span, String> {
    match text.parse() {
        Ok(Span::ZERO) => Err("expected a time above zero".into()),
        other => other.map_err(|error: tidegate_core::units::UnitError| error.to_string()),
    }
}

fn positive_rate(text: &str) -> Result<Rate, String> {
    match text.parse() {
        Ok(Rate(0)) => Err("expected a rate above zero".into()),
        other => other.map_err(|error: tidegate_core::units::UnitError| error.to_string()),
    }
}

const REPLAY_HELP: &str = "\
Examples:
  tidegate replay office.pcap --rate '50 Mbit/s' --up-rate '10 Mbit/s'
  tidegate replay office.pcap --rate '50 Mbit/s' --as-transfers --local 192.168.0.0/16
  tidegate replay access.log.gz --rate '10 Mbit/s' --disciplines fifo,las,efd
  ssh router tcpdump -w - -i wan -c 100000 | tidegate replay - --rate '50 Mbit/s'

The packets of a capture are sent at the times at which they were captured: a replay shows delay
and loss, not how TCP would have reacted. Transfers, those of a capture too with --as-transfers,
are simulated with TCP, beside the capture's calls as they were. A recording runs once: the verdict
compares ten equal parts of it, if it lasts 20 s or more.";

#[derive(Args, Debug)]
#[command(after_help = CURVES_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct CurvesArguments {
    /// File of flows, or the name of a built-in one
    #[arg(value_name = "FLOWS")]
    pub(crate) flows: Option<String>,
    /// Size of a best-effort packet whose deadline is shown besides those of 40 B and the largest
    #[arg(long = "packet", value_name = "SIZE", value_parser = packet_size)]
    pub(crate) packets: Vec<Bytes>,
    /// Folder for curves.html, its plots and curves.json; earlier ones are replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the file as it is, to start from a built-in one
    #[arg(long, requires = "flows", conflicts_with_all = ["packets", "out", "json"])]
    pub(crate) print: bool,
    /// Print the JSON Schema of files of flows, for editors
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
    #[command(subcommand)]
    pub(crate) command: Option<CurvesCommand>,
}

const CURVES_HELP: &str = "\
Examples:
  tidegate measure run server.example.org     this machine's own link, under load
  tidegate curves home-10mbit                 can the link keep its promises?
  tidegate curves home-10mbit --print > my.toml
  tidegate curves my.toml --packet '300 B' --out my-curves
  tidegate curves measure call.pcap --port 5004

Built in: home-10mbit, papers-be. Exit code: 0 it can, 1 it cannot, 2 wrong command line or file.";

#[derive(Debug, Subcommand)]
pub(crate) enum CurvesCommand {
    /// Measure the most that the flows of a capture send, as arrival curves for a file of flows
    Measure(MeasureArguments),
}

#[derive(Args, Debug)]
#[command(after_help = MEASURE_HELP)]
pub(crate) struct MeasureArguments {
    /// Capture (pcap, pcapng), or packets as CSV with start_s and size_bytes
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Flows with this port at either end
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Flows from this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) from: Option<IpAddr>,
    /// Flows to this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: Option<IpAddr>,
    /// Number of flows to show, largest first
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) flows: u64,
    /// Largest number of token buckets in a curve
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u64).range(1..=16))]
    pub(crate) terms: u64,
    /// Longest time over which packets are counted together, at most the duration of the flow
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = positive_span)]
    pub(crate) horizon: Span,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const MEASURE_HELP: &str = "\
Examples:
  tidegate curves measure call.pcap --port 5004
  tidegate curves measure frames.csv --terms 3

A curve holds for the recorded traffic only: leave room for traffic that was not recorded.";

fn packet_size(text: &str) -> Result<Bytes, String> {
    match text.parse() {
        Ok(size @ Bytes(40..=1_048_576)) => Ok(size),
        Ok(_) => Err("expected a packet from 40 B to 1 MiB".into()),
        Err(error) => Err(tidegate_core::units::UnitError::to_string(&error)),
    }
}

#[derive(Args, Debug)]
#[command(after_help = REPRODUCE_HELP)]
pub(crate) struct ReproduceArguments {
    /// Claims, such as EFD-5, or papers, such as EFD [default: all]
    #[arg(value_name = "CLAIM")]
    pub(crate) claims: Vec<String>,
    /// List the claims without measuring them
    #[arg(long, conflicts_with_all = ["quick", "full", "seeds", "out", "threads"])]
    pub(crate) list: bool,
    /// Three seeds instead of ten, and some runs half as long: on two cores about a minute for
    /// each paper, and four for MSF
    #[arg(long)]
    pub(crate) quick: bool,
    /// Thirty seeds instead of ten
    #[arg(long, conflicts_with = "quick")]
    pub(crate) full: bool,
    /// Number of seeds: each experiment runs once with each, at its full length
    #[arg(long, value_name = "N", conflicts_with_all = ["quick", "full"],
          value_parser = seeds())]
    pub(crate) seeds: Option<u64>,
    /// Folder for pages, plots and results.json; earlier ones are replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Number of runs at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const REPRODUCE_HELP: &str = "\
Examples:
  tidegate reproduce --list
  tidegate reproduce EFD --quick
  tidegate reproduce EFD-5 EFD-7 --out my-pages
  tidegate reproduce EFD-6 --seeds 50

A claim is a list of checks, each with its bound. The verdict is computed from them: 'holds' when
all hold, 'does not hold here' when some fail and none holds, and otherwise 'holds in part'. A check
is undecided while its bound lies within the 95% interval over seeds: more seeds may decide it. The
interval of a median needs at least six. Without an option there are ten seeds, or as many as the
paper had if those are more.";

#[derive(Args, Debug)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct DoctorArguments {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const DOCTOR_HELP: &str = "\
Examples:
  tidegate doctor
  sudo tidegate doctor                        what root can do here
  tidegate doctor --json | jq '.forms[] | select(.works | not)'

Nothing is changed, and nothing is sent. Exit code: 0, whatever is missing.";

#[derive(Args, Debug)]
pub(crate) struct DisciplinesArguments {
    /// The discipline to explain
    pub(crate) name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = REQUESTS_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct RequestsArguments {
    /// The request scheduler to explain
    pub(crate) name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<RequestsCommand>,
}

const REQUESTS_HELP: &str = "\
Examples:
  tidegate requests msf                       what it does and what you can set
  tidegate requests compare                   a school's link, shared in several ways";

#[derive(Debug, Subcommand)]
pub(crate) enum RequestsCommand {
    /// Simulate a gateway's link under request schedulers and their rivals, and
    /// report what users notice
    Compare(RequestsCompareArguments),
}

#[derive(Args, Debug)]
#[command(after_help = REQUESTS_COMPARE_HELP)]
pub(crate) struct RequestsCompareArguments {
    /// File of a gateway, or the name of a built-in one [default: school]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Repeat the comparison that wrote this manifest, and check its results
    #[arg(long, value_name = "MANIFEST", conflicts_with_all = ["file", "seeds"])]
    pub(crate) from: Option<PathBuf>,
    /// Number of seeds: one run for each way and seed
    #[arg(long, value_name = "N", value_parser = seeds())]
    pub(crate) seeds: Option<u64>,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Print the file, to start from a built-in one in any folder
    #[arg(long, conflicts_with_all = ["from", "seeds", "out", "threads", "json"])]
    pub(crate) print: bool,
    /// Print the JSON Schema of files of gateways, for editors
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
}

const REQUESTS_COMPARE_HELP: &str = "\
Examples:
  tidegate requests compare
  tidegate requests compare school --print > my.toml
  tidegate requests compare my.toml --seeds 10 --out my-gateway
  tidegate requests compare --from my-gateway/manifest.json

Built in: school. A file names classes, servers and the ways to compare: request schedulers, or
without one 'direct', 'htb', 'pools' and packet disciplines as shapers, such as 'shaped-fq-codel'.
The output folder receives report.html, its plots as SVG files, flows.csv (a row for each request),
links.csv, summary.csv, summary.json (what --json prints) and manifest.json, from which --from
repeats the comparison. Ctrl-C keeps the finished runs, reports them, and marks the results as
partial.
Exit code: 0 success, 2 wrong command line or file, 130 interrupted.";

#[derive(Args, Debug)]
pub(crate) struct ScenariosArguments {
    /// The scenario to print
    pub(crate) name: Option<String>,
    /// Print the JSON Schema of scenario files, for editors
    #[arg(long, conflicts_with = "name")]
    pub(crate) schema: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }
}
