//! The arguments of `tidegate gateway`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tidegate_core::Span;

use super::interval;

#[derive(Debug, Subcommand)]
#[command(after_help = GATEWAY_HELP)]
pub(crate) enum GatewayCommand {
    /// Check the file of a gateway, and show what it says
    Check(GatewayCheckArguments),
    /// Show what `run` would do on this machine and for whom, and what it lacks for that
    Plan(GatewayPlanArguments),
    /// Have a running gateway read its file again: all of it holds from then on, or nothing
    Reload(GatewayReloadArguments),
    /// Show what a running gateway does
    Status(GatewayStatusArguments),
    /// Show what a running gateway does, again and again, until interrupted
    Top(GatewayTopArguments),
    /// Serve the clients of a gateway until interrupted
    ///
    /// Each request ends in a line of JSON on standard output. When the file changes, on
    /// SIGHUP and by `reload`, it is read again: all of it holds from then on, or nothing.
    Run {
        /// The file of the gateway
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Have the kernel hand over what the table 'intercept' says, until the gateway ends in any way
        #[arg(long)]
        rules: bool,
        /// Become this user of the machine when the sockets are open; takes root's rights. With or
        /// without, no rights are kept but CAP_NET_ADMIN, and that only with --rules
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Print, set or remove the rules of nftables that hand connections to a gateway
    Rules {
        /// What to do
        #[command(subcommand)]
        what: GatewayRulesCommand,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayRulesCommand {
    /// Print what `apply` would set
    Print {
        /// The file of the gateway
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Set the rules, instead of those that were set before, until they are removed
    Apply {
        /// The file of the gateway
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove them: connections go to their servers again
    Remove {
        /// The file of the gateway
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

const GATEWAY_HELP: &str = "\
Examples:
  tidegate gateway check office.toml
  tidegate gateway plan office.toml --users 20
  tidegate gateway run office.toml
  tidegate gateway reload office.toml
  tidegate gateway status office.toml
  tidegate gateway top office.toml --every '10 s'
  sudo tidegate gateway run --rules --user nobody school.toml

docs/gateway.md has a file to start from, and says what the gateway serves.
Exit code: 0 success, 1 failure, 2 wrong command line or file.";

#[derive(Args, Debug)]
pub(crate) struct GatewayPlanArguments {
    /// The file of the gateway
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Plan `run --rules`, which has the kernel hand over what the table 'intercept' says
    #[arg(long)]
    pub(crate) rules: bool,
    /// Active users of each class, beside one, for whom shares are shown
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) users: u32,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayReloadArguments {
    /// The file of the gateway, which names its admin port
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayStatusArguments {
    /// The file of the gateway, which names its admin port
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayTopArguments {
    /// The file of the gateway, which names its admin port
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "2 s", value_parser = interval)]
    pub(crate) every: Span,
    /// Number of looks [default: until interrupted]
    #[arg(long, value_name = "N")]
    pub(crate) times: Option<u32>,
    /// Print each as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayCheckArguments {
    /// The file of the gateway
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub(crate) file: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON Schema of files of gateways, for editors
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
}
