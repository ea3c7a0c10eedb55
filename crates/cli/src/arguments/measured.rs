//! The command line of `tidegate measured`.

use std::path::PathBuf;

use clap::Args;
use tidegate_core::buffer::Limit;
use tidegate_core::{Rate, Span};
use tidegate_sim::scenario::DisciplineChoice;

use super::{ResultArguments, positive_rate};

#[derive(Args, Debug)]
#[command(after_help = MEASURED_HELP)]
pub(crate) struct MeasuredArguments {
    /// Result of Flent, plain or compressed by gzip or zstd; '-' for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    #[command(flatten)]
    pub(crate) link: MeasuredLinkArguments,
}

/// What is known of a measured link, in place of what the file says.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "The link, where the file says nothing or is wrong")]
pub(crate) struct MeasuredLinkArguments {
    /// Rate towards the client
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) down: Option<Rate>,
    /// Rate from the client
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) up: Option<Rate>,
    /// Round trip while the link is empty
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<Span>,
    /// Buffer of the link, each way: packets, a size, or a time such as '300 ms'
    #[arg(long, value_name = "BUFFER")]
    pub(crate) buffer: Option<Limit>,
    /// Discipline that the link had, for example fq-codel
    #[arg(long, value_name = "DISCIPLINE")]
    pub(crate) discipline: Option<DisciplineChoice>,
    /// Print the scenario that would be run, as a file to change
    #[arg(long, conflicts_with_all = ["out", "json"])]
    pub(crate) print: bool,
}

const MEASURED_HELP: &str = "\
Examples:
  tidegate measured rrul-2026.flent.gz
  tidegate measured tcp_upload.flent.gz --down '50 Mbit/s' --discipline fq-codel
  tidegate measured http-1up.flent.gz --rtt '50 ms' --print > my.toml
  tidegate compare my.toml                    the same, after changes

Tests of which the load is known (rrul and its forms, tcp_*, voip-*, http-*) are simulated; of
others, what was measured is reported.";
