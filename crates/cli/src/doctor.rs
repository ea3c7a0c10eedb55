//! `tidegate doctor`: what this machine and this build can do.
//!
//! It looks at what the kernel says of itself under `/proc` and `/sys`, and at the
//! programs that are installed. It changes nothing and sends nothing. A thing that is
//! missing comes with the sentence that helps.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Serialize;
use tidegate_gateway::machine::{CAP_NET_ADMIN, has_capability, is_there};
use tidegate_study::machine::Machine;

use crate::arguments::DoctorArguments;
use crate::failure::Failure;
use crate::interface::{self, Interface};
use crate::output::{print, print_json, wrapped};

/// To make namespaces of networks (capabilities(7)).
const CAP_SYS_ADMIN: u32 = 21;
/// To read packets (capabilities(7)).
const CAP_NET_RAW: u32 = 13;
#[derive(Serialize)]
struct Diagnosis {
    tidegate: &'static str,
    machine: Machine,
    memory_bytes: Option<u64>,
    capabilities: Capabilities,
    /// Programs that some forms call.
    programs: Vec<Program>,
    /// What can be run.
    forms: Vec<Form>,
    interfaces: Vec<Interface>,
}

#[derive(Serialize)]
struct Capabilities {
    net_admin: bool,
    net_raw: bool,
    sys_admin: bool,
}

#[derive(Serialize)]
struct Program {
    name: &'static str,
    package: &'static str,
    found: bool,
}

/// Something to run, and whether it works here.
#[derive(Serialize)]
struct Form {
    name: &'static str,
    command: &'static str,
    works: bool,
    /// What is missing, and what helps.
    missing: Vec<String>,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<(), Failure> {
    let diagnosis = Diagnosis::of_this_machine();
    if arguments.json { print_json(&diagnosis) } else { print(&diagnosis.text()) }
}

impl Diagnosis {
    fn of_this_machine() -> Diagnosis {
        let capabilities = Capabilities {
            net_admin: has_capability(CAP_NET_ADMIN),
            net_raw: has_capability(CAP_NET_RAW),
            sys_admin: has_capability(CAP_SYS_ADMIN),
        };
        let programs = [
            ("nft", "nftables"),
            ("ip", "iproute2"),
            ("tc", "iproute2"),
            ("ethtool", "ethtool"),
            ("tcpdump", "tcpdump"),
        ];
        let interfaces = interface::all();
        Diagnosis {
            tidegate: env!("CARGO_PKG_VERSION"),
            machine: Machine::this(),
            memory_bytes: memory(),
            forms: forms(&capabilities, interfaces.len()),
            capabilities,
            programs: programs
                .map(|(name, package)| Program { name, package, found: is_there(name) })
                .into(),
            interfaces,
        }
    }

    fn text(&self) -> String {
        let Machine { processor, cores, system } = &self.machine;
        let memory = self
            .memory_bytes
            .map_or_else(String::new, |bytes| format!(", {:.1} GB of memory", bytes as f64 / 1e9));
        let mut text = format!("tidegate {} on {system}\n{processor}, ", self.tidegate);
        let cores = if *cores == 1 { "one core".into() } else { format!("{cores} cores") };
        let _ = writeln!(text, "{cores}{memory}");
        let Capabilities { net_admin, net_raw, sys_admin } = self.capabilities;
        let held =
            [(net_admin, "CAP_NET_ADMIN"), (net_raw, "CAP_NET_RAW"), (sys_admin, "CAP_SYS_ADMIN")];
        let held: Vec<_> = held.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect();
        let held = if held.is_empty() { "none of interest".into() } else { held.join(", ") };
        let _ = writeln!(text, "capabilities: {held}");
        let missing: Vec<String> = self
            .programs
            .iter()
            .filter(|program| !program.found)
            .map(|program| format!("{} (package {})", program.name, program.package))
            .collect();
        if !missing.is_empty() {
            let _ = writeln!(text, "not installed: {}", missing.join(", "));
        }
        text.push_str("\nWhat works here:\n");
        for Form { name, command, works, missing } in &self.forms {
            let mark = if *works { "yes" } else { "no" };
            let _ = writeln!(text, "  {mark:<4} {name}: {command}");
            for sentence in missing {
                text.push_str(&wrapped(sentence, "         "));
            }
        }
        text.push_str("\nInterfaces:\n");
        for interface in &self.interfaces {
            let _ = writeln!(text, "  {}", interface.text());
        }
        let merges = self.interfaces.iter().find(|interface| {
            interface.merging.as_ref().is_some_and(|merging| !merging.is_empty())
        });
        if let Some(Interface { name, .. }) = merges {
            let note = format!(
                "An interface that merges packets shows a queue pieces of up to 64 kB. Before a \
                 discipline is set in front of a slow link, 'ethtool -K {name} tso off gso off \
                 gro off' turns that off; CAKE cuts them itself."
            );
            text.push_str(&wrapped(&note, "  "));
        }
        text
    }
}

/// What can be run here.
fn forms(capabilities: &Capabilities, interfaces: usize) -> Vec<Form> {
    let rights = |has: bool, name: &str| {
        (!has).then(|| format!("This process lacks {name}: run it as root, for example with sudo."))
    };
    let program = |name: &str, package: &str| {
        (!is_there(name)).then(|| {
            format!("{name} is not installed: 'apt install {package}' on Debian and Ubuntu.")
        })
    };
    let linux = (!cfg!(target_os = "linux")).then(|| "It needs Linux.".to_string());
    let form = |name, command, missing: Vec<Option<String>>| {
        let missing: Vec<String> = missing.into_iter().flatten().collect();
        Form { name, command, works: missing.is_empty(), missing }
    };
    vec![
        form("simulation", "tidegate compare, replay, curves, reproduce", vec![]),
        form(
            "gateway, for clients that name it as their proxy",
            "tidegate gateway run FILE",
            vec![linux.clone()],
        ),
        form(
            "gateway, for clients that know nothing of it",
            "tidegate gateway run --rules FILE",
            vec![
                linux.clone(),
                rights(capabilities.net_admin, "CAP_NET_ADMIN"),
                program("nft", "nftables"),
            ],
        ),
        form(
            "link, between two interfaces",
            "tidegate link run INSIDE OUTSIDE",
            vec![
                linux.clone(),
                rights(capabilities.net_raw, "CAP_NET_RAW"),
                (!Path::new("/proc/net/packet").exists())
                    .then(|| "This kernel has no packet sockets (CONFIG_PACKET).".into()),
                (interfaces < 2).then(|| {
                    "It takes two interfaces, one on the users' side and one on the provider's."
                        .into()
                }),
            ],
        ),
        form(
            "link between two interfaces that fails open",
            "tidegate link run INSIDE OUTSIDE --fail open",
            vec![
                linux.clone(),
                rights(
                    capabilities.net_raw && capabilities.net_admin,
                    "CAP_NET_RAW and CAP_NET_ADMIN",
                ),
                program("ip", "iproute2"),
                module("bridge", "CONFIG_BRIDGE"),
            ],
        ),
        form(
            "link as keeper of a router's queue (NFQUEUE)",
            "tidegate link run OUTSIDE",
            vec![
                linux.clone(),
                rights(capabilities.net_admin, "CAP_NET_ADMIN"),
                module("nfnetlink_queue", "CONFIG_NETFILTER_NETLINK_QUEUE"),
                (!["nft", "iptables", "iptables-legacy"].into_iter().any(is_there)).then(|| {
                    "nft and iptables are missing; Debian has them in the packages nftables and \
                     iptables."
                        .into()
                }),
            ],
        ),
        form(
            "queue of the kernel, for an interface",
            "tidegate qdisc add INTERFACE",
            vec![
                linux.clone(),
                rights(capabilities.sys_admin && capabilities.net_admin, "CAP_SYS_ADMIN"),
                tidegate_qdisc::missing().map(|reason| format!("{}.", capitalized(&reason))),
                program("ip", "iproute2"),
                program("tc", "iproute2"),
            ],
        ),
        form(
            "a discipline of Linux in front of a link",
            "tc qdisc replace, with what 'tidegate disciplines NAME' names",
            vec![
                linux.clone(),
                rights(capabilities.net_admin, "CAP_NET_ADMIN"),
                program("tc", "iproute2"),
            ],
        ),
        form(
            "a measurement of this link as it is",
            "tidegate measure run SERVER",
            vec![linux.clone()],
        ),
        form(
            "a measurement with each queue in turn",
            "tidegate measure run SERVER --up RATE --down RATE",
            vec![
                linux.clone(),
                rights(capabilities.net_admin, "CAP_NET_ADMIN"),
                program("tc", "iproute2"),
                module("ifb", "CONFIG_IFB"),
            ],
        ),
        form(
            "captures to replay",
            "tcpdump -w office.pcap",
            vec![rights(capabilities.net_raw, "CAP_NET_RAW"), program("tcpdump", "tcpdump")],
        ),
        form(
            "the test bed of networks in namespaces",
            "make live-bed",
            vec![
                linux,
                rights(
                    capabilities.sys_admin && capabilities.net_admin,
                    "CAP_SYS_ADMIN and CAP_NET_ADMIN",
                ),
                program("ip", "iproute2"),
                (!Path::new("/proc/self/ns/net").exists())
                    .then(|| "This kernel has no namespaces of networks (CONFIG_NET_NS).".into()),
            ],
        ),
    ]
}

/// A sentence that begins as sentences do.
fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// What to do where the kernel has no module of this name; nothing where it has one, or
/// does not say what it has.
fn module(name: &str, option: &str) -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let lists = ["modules.builtin", "modules.dep"].map(|list| {
        fs::read_to_string(format!("/lib/modules/{}/{list}", release.trim())).unwrap_or_default()
    });
    let is_known = lists.iter().any(|list| !list.is_empty());
    let is_there = Path::new("/sys/module").join(name).exists()
        || lists.iter().any(|list| list.contains(&format!("/{name}.ko")));
    (is_known && !is_there).then(|| {
        format!("This kernel has no module {name} ({option}): install the kernel of your system.")
    })
}

fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_what_helps() {
        let none = Capabilities { net_admin: false, net_raw: false, sys_admin: false };
        let forms = forms(&none, 2);
        assert!(forms[0].works && forms[0].missing.is_empty());
        let rules = forms.iter().find(|form| form.command.contains("--rules")).unwrap();
        assert!(!rules.works && rules.missing[0].contains("CAP_NET_ADMIN: run it as root"));
        let link = forms.iter().find(|form| form.command == "tidegate link run INSIDE OUTSIDE");
        assert!(link.unwrap().missing[0].contains("CAP_NET_RAW: run it as root"));
        assert!(forms.iter().all(|form| form.works == form.missing.is_empty()));
    }
}
