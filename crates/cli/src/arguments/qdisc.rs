//! The arguments of `tidegate qdisc`.

use clap::{Args, Subcommand};
use tidegate_core::Rate;
use tidegate_core::buffer::Limit;
use tidegate_core::framing::Framing;
use tidegate_sim::scenario::DisciplineChoice;

use super::link::{ChangeArguments, interface};
use super::positive_rate;

#[derive(Debug, Subcommand)]
#[command(after_help = QDISC_HELP)]
pub(crate) enum QdiscCommand {
    /// Put a discipline in front of an interface, in the kernel
    ///
    /// The rates are to be a little below those of the link behind the interface, so that the
    /// queue is here, where it is ordered, and not in a modem or at the provider. No process
    /// stays: the kernel keeps the queue until `del` or a restart of the machine.
    Add(QdiscAddArguments),
    /// Change rates, buffers, framing or parameters; no packet is lost by it
    Change(QdiscChangeArguments),
    /// Show what the queues do
    Show(QdiscShowArguments),
    /// Take the queues away, and put everything back as it was
    Del(QdiscDelArguments),
}

const QDISC_HELP: &str = "\
Examples:
  sudo tidegate qdisc add eth0 --down '47 Mbit/s' --up '9 Mbit/s' --dry-run
  sudo tidegate qdisc add eth0 --down '47 Mbit/s' --up '9 Mbit/s'
  sudo tidegate qdisc add ppp0 --up 9mbit --discipline 'efd:threshold=30 kB' --framing pppoe-ptm
  sudo tidegate qdisc change eth0 --up '7 Mbit/s'
  sudo tidegate qdisc show
  tc -s qdisc show dev eth0                   the same in the words of tc
  sudo tidegate qdisc del eth0

This takes Linux 6.16 or later with CONFIG_NET_SCH_BPF; 'tidegate doctor' says whether it is
there. docs/qdisc.md says what is changed and how that is undone.
Exit code: 0 success, 1 failure, 2 wrong command line.";

#[derive(Args, Debug)]
pub(crate) struct QdiscAddArguments {
    /// The interface to the provider
    #[arg(value_parser = interface)]
    pub(crate) interface: String,
    /// Rate of what leaves by the interface, such as '9 Mbit/s' or 9mbit
    #[arg(long, value_name = "RATE", value_parser = positive_rate, required_unless_present = "down")]
    pub(crate) up: Option<Rate>,
    /// Rate of what comes in by the interface
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) down: Option<Rate>,
    /// Discipline with its settings, for example 'efd:threshold=30 kB'
    #[arg(long, value_name = "NAME", default_value = "efd")]
    pub(crate) discipline: DisciplineChoice,
    /// What each queue may hold: packets, a size, or what the rate sends in a time
    #[arg(long, value_name = "BUFFER", default_value = "100 ms")]
    pub(crate) buffer: Limit,
    /// What a packet takes of the link behind the interface: 'docsis', 'pppoe-ptm' and others
    /// as in tc-cake(8), or words such as 'overhead 34 mpu 64 ptm'
    #[arg(long, value_name = "FRAMING", default_value = "ethernet")]
    pub(crate) framing: Framing,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct QdiscChangeArguments {
    /// The interface to the provider
    #[arg(value_parser = interface)]
    pub(crate) interface: String,
    #[command(flatten)]
    pub(crate) changes: ChangeArguments,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct QdiscShowArguments {
    /// The interface to the provider [default: all that have such queues]
    #[arg(value_parser = interface)]
    pub(crate) interface: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct QdiscDelArguments {
    /// The interface to the provider
    #[arg(value_parser = interface)]
    pub(crate) interface: String,
}
