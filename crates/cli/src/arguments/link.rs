//! The arguments of `tidegate link`.

use std::net::{IpAddr, SocketAddr};

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use tidegate_core::buffer::Limit;
use tidegate_core::framing::Framing;
use tidegate_core::{Rate, Span};
use tidegate_sim::scenario::DisciplineChoice;

use super::{interval, positive_rate};

#[derive(Debug, Subcommand)]
#[command(after_help = LINK_HELP)]
pub(crate) enum LinkCommand {
    /// Show what `run` would do on this machine and for whom, and what it lacks for that
    Plan(LinkRunArguments),
    /// Carry all frames between two interfaces, each way through a queue, until interrupted
    ///
    /// With one interface, this machine is a router: it goes on to route, and its kernel holds what
    /// passes that interface until the link lets it go (NFQUEUE).
    ///
    /// The rates are to be a little below those of the link behind the outer interface, so that the queue
    /// is here, where it is ordered, and not in a modem or at the provider. When the link ends
    /// by Ctrl-C, SIGTERM or `stop`, everything is as it was.
    Run(LinkRunArguments),
    /// Change rates, buffers, framing or parameters of a running link; no packet is lost by it
    Set(LinkSetArguments),
    /// Show what a running link does
    Status(LinkStatusArguments),
    /// Show what a running link does, again and again, until interrupted
    Top(LinkTopArguments),
    /// End a running link, and take away the bridge or the rules that one that died has left
    Stop(LinkStopArguments),
    /// Be the process beside a link; `run` starts it
    #[command(hide = true)]
    Bypass(LinkBypassArguments),
}

const LINK_HELP: &str = "\
Examples:
  tidegate link plan lan0 wan0 --down '47 Mbit/s' --up '9 Mbit/s'
  sudo tidegate link run lan0 wan0 --down '47 Mbit/s' --up '9 Mbit/s'
  sudo tidegate link run lan0 wan0 --down 47mbit --up 9mbit --discipline 'efd:threshold=30 kB'
  sudo tidegate link run ppp0 --down 47mbit --up 9mbit       on a router, at its interface to the provider
  sudo tidegate link run lan0 wan0 --down 47mbit --up 9mbit --framing pppoe-ptm --user nobody
  sudo tidegate link set --up '7 Mbit/s'
  sudo tidegate link status
  sudo tidegate link stop

docs/link.md says what a link changes and how that is undone, and how programs control it.
Exit code: 0 success, 1 failure, 2 wrong command line.";

#[derive(Args, Debug)]
pub(crate) struct LinkRunArguments {
    /// The interfaces on the users' side and on the provider's; on a router that on the provider's
    /// side alone
    #[arg(value_name = "INTERFACE", required = true, num_args = 1..=2, value_parser = interface)]
    pub(crate) interfaces: Vec<String>,
    /// Rate towards the users, such as '47 Mbit/s' or 47mbit
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) down: Rate,
    /// Rate towards the provider
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) up: Rate,
    /// Discipline with its settings, for example 'efd:threshold=30 kB'
    #[arg(long, value_name = "NAME", default_value = "fq-codel")]
    pub(crate) discipline: DisciplineChoice,
    /// Discipline towards the provider [default: that of --discipline]
    #[arg(long, value_name = "NAME")]
    pub(crate) up_discipline: Option<DisciplineChoice>,
    /// What each queue may hold: packets, a size, or what the rate sends in a time
    #[arg(long, value_name = "BUFFER", default_value = "100 ms")]
    pub(crate) buffer: Limit,
    /// What a packet takes of the link behind the outer interface: 'docsis', 'pppoe-ptm' and others as in
    /// tc-cake(8), or words such as 'overhead 34 mpu 64 ptm'
    #[arg(long, value_name = "FRAMING", default_value = "ethernet")]
    pub(crate) framing: Framing,
    /// Name of the link, for the other commands [default: the names of the interfaces]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Show a live page at this address, which has to be of this machine or a private network
    #[arg(long, value_name = "ADDRESS", value_parser = near)]
    pub(crate) page: Option<SocketAddr>,
    /// Become this user of the machine when the sockets are open; takes root's rights. With or
    /// without, no rights are kept
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// What becomes of traffic if the link dies: 'open' lets it pass without a queue, between two
    /// interfaces by a bridge of the kernel, and 'closed' carries nothing until a link runs again
    #[arg(long, value_enum, default_value_t = Fail::Closed)]
    pub(crate) fail: Fail,
    /// Print what is printed as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What becomes of frames when a link dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fail {
    /// A bridge of the kernel carries them, without a queue of ours.
    Open,
    /// Nothing is carried.
    #[default]
    Closed,
}

/// What queues that run are to do otherwise.
#[derive(Args, Debug)]
pub(crate) struct ChangeArguments {
    /// Rate towards the users
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) down: Option<Rate>,
    /// Rate towards the provider
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) up: Option<Rate>,
    /// What each queue may hold
    #[arg(long, value_name = "BUFFER")]
    pub(crate) buffer: Option<Limit>,
    /// What a packet takes of the link behind the interface to the provider
    #[arg(long, value_name = "FRAMING")]
    pub(crate) framing: Option<Framing>,
    /// A parameter of the discipline, such as 'threshold=30 kB'; may be given several times
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, String)>,
    /// The direction for which --buffer, --framing and --parameter hold [default: both]
    #[arg(long, value_enum)]
    pub(crate) direction: Option<LinkDirection>,
}

impl ChangeArguments {
    /// Why they say nothing, if that is so.
    pub(crate) fn mistake(&self) -> Option<String> {
        let ChangeArguments { down, up, buffer, framing, parameters, direction } = self;
        let is_any = buffer.is_some() || framing.is_some() || !parameters.is_empty();
        if direction.is_some() && !is_any {
            let expected = "expected --buffer, --framing or --parameter with it";
            return Some(format!("found --direction alone, {expected}"));
        }
        let expected = "expected at least one of --down, --up, --buffer, --framing, --parameter";
        let is_none = !is_any && down.is_none() && up.is_none();
        is_none.then(|| format!("found nothing to set, {expected}"))
    }
}

#[derive(Args, Debug)]
pub(crate) struct LinkSetArguments {
    #[command(flatten)]
    pub(crate) changes: ChangeArguments,
    /// The link [default: the only one that runs]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A way through a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkDirection {
    /// Towards the users
    Down,
    /// Towards the provider
    Up,
}

#[derive(Args, Debug)]
pub(crate) struct LinkStatusArguments {
    /// The link [default: the only one that runs]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LinkTopArguments {
    /// The link [default: the only one that runs]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = interval)]
    pub(crate) every: Span,
    /// Number of looks [default: until interrupted]
    #[arg(long, value_name = "N")]
    pub(crate) times: Option<u32>,
    /// Print each as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LinkStopArguments {
    /// The link [default: the only one that runs]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct LinkBypassArguments {
    /// The interfaces on the users' side and on the provider's, or the latter alone
    #[arg(required = true, num_args = 1..=2, value_parser = interface)]
    pub(crate) interfaces: Vec<String>,
    /// The name of the link
    #[arg(long, value_parser = name)]
    pub(crate) name: String,
    /// What becomes of packets if the link dies
    #[arg(long, value_enum, default_value_t = Fail::Closed)]
    pub(crate) fail: Fail,
    /// The kernel's queues for down and up, on a router
    #[arg(long, value_delimiter = ',')]
    pub(crate) numbers: Vec<u16>,
    /// The user to become
    #[arg(long)]
    pub(crate) user: Option<String>,
}

/// The name of an interface: what the kernel takes for one (`dev_valid_name`).
pub(super) fn interface(text: &str) -> Result<String, String> {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '/' && c != ':';
    match text {
        "" | "." | ".." => Err("expected the name of an interface, such as eth0".into()),
        name if name.len() <= 15 && name.chars().all(is_plain) => Ok(name.into()),
        _ => Err("expected the name of an interface, such as eth0: at most 15 characters".into()),
    }
}

/// The name of a link, which becomes that of a file.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && text.len() <= 40 && text.chars().all(is_plain) {
        Ok(text.into())
    } else {
        Err("expected a name of letters, digits, '-', '_', '.' and '@', at most 40".into())
    }
}

/// An address where only this machine or a private network can ask.
fn near(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address with a port, such as 127.0.0.1:4780";
    let address: SocketAddr = text.parse().map_err(|_| expected.to_string())?;
    let is_near = match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    };
    let private = "expected a loopback or private address: whoever reaches the page may read it";
    if is_near { Ok(address) } else { Err(private.into()) }
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, as 'threshold=30 kB'")?;
    Ok((name.trim().into(), value.trim().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_for_this_machine_and_private_networks() {
        for own in ["127.0.0.1:4780", "[::1]:1", "192.168.1.1:80", "[fd00::1]:80", "10.0.0.1:9"] {
            assert!(near(own).is_ok(), "{own}");
        }
        for other in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "[2001:db8::1]:80", "127.0.0.1"] {
            assert!(near(other).is_err(), "{other}");
        }
    }

    #[test]
    fn names_are_those_of_files_and_of_interfaces() {
        assert!(name("lan0-wan0.100").is_ok() && interface("wan0.100").is_ok());
        for wrong in ["", "../x", ".x", "a b", "a/b"] {
            assert!(
                name(wrong).is_err() && (wrong == ".x" || interface(wrong).is_err()),
                "{wrong}"
            );
        }
        assert!(interface("sixteen-letters-").is_err());
    }
}
