//! The arguments of `tidegate sizes`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
#[command(after_help = SIZES_HELP)]
pub(crate) struct SizesArguments {
    /// Captures (pcap, pcapng), page loads (HAR), HTTP logs (common, combined, Squid), logs of
    /// connections (Zeek, tcptrace) or of transfers (CSV), plain or compressed; '-' for standard
    /// input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The direction of captures and logs of connections; the other formats are all 'down'
    #[arg(long, value_enum, default_value_t = Way::Down)]
    pub(crate) direction: Way,
    /// Largest number of points in the distribution
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u64).range(2..=100_000))]
    pub(crate) points: u64,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const SIZES_HELP: &str = "\
Examples:
  tidegate sizes access.log > web.csv         then, in a scenario: sizes.file = \"web.csv\"
  tidegate sizes office.pcap.zst --direction up
  zcat logs/*.gz | tidegate sizes - --json";

/// A direction on the access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// To the users
    Down,
    /// From the users
    Up,
    /// Each direction of each flow by itself
    Both,
}
