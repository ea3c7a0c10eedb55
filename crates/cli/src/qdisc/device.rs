//! What is done to interfaces, by `ip`, `tc` and `ethtool`.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::note::Restore;
use crate::interface::{fact, printed};

/// The name of an interface may have 15 characters.
const MOST_CHARACTERS: usize = 15;
/// As SQM of OpenWrt calls what stands for an interface's incoming traffic.
const PREFIX: &str = "ifb4";

/// A line for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line(pub(super) &'static str, pub(super) String);

impl Line {
    /// Has the program do it.
    pub(super) fn run(&self) -> Result<(), String> {
        let Line(program, words) = self;
        let output = Command::new(program).args(words.split(' ')).stdin(Stdio::null()).output();
        let output = output.map_err(|reason| format!("{program}: {reason}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| !line.is_empty()).unwrap_or("it failed");
        Err(format!("{program} {words}: {first}"))
    }

    pub(super) fn text(&self) -> String {
        format!("{} {}", self.0, self.1)
    }
}

/// What stands for the incoming traffic of an interface.
pub(super) fn incoming(interface: &str) -> String {
    let room = MOST_CHARACTERS - PREFIX.len();
    match interface.len() <= room {
        true => format!("{PREFIX}{interface}"),
        false => format!("{PREFIX}{}", crate::link::hashed(interface, room)),
    }
}

pub(super) fn is_there(device: &str) -> bool {
    fact(device, "ifindex").is_some()
}

/// Whether frames of an interface begin with an Ethernet header (`ARPHRD_ETHER`).
pub(super) fn has_ethernet(interface: &str) -> bool {
    fact(interface, "type").as_deref() == Some("1")
}

/// The queue discipline at the root of a device, and whether somebody has put it there: those
/// of the kernel's own choice have no handle.
pub(super) fn root(device: &str) -> Option<(String, bool)> {
    let all = qdiscs(device)?;
    let root = all.as_array()?.iter().find(|qdisc| qdisc["root"] == true)?;
    let is_chosen = root["handle"].as_str().is_some_and(|handle| handle != "0:");
    Some((root["kind"].as_str()?.to_string(), is_chosen))
}

/// Whether incoming traffic of an interface is somebody's already.
pub(super) fn has_ingress(interface: &str) -> bool {
    let all = qdiscs(interface).unwrap_or_default();
    let kinds = ["ingress", "clsact"];
    all.as_array().into_iter().flatten().any(|it| kinds.iter().any(|kind| it["kind"] == *kind))
}

fn qdiscs(device: &str) -> Option<Value> {
    serde_json::from_str(&printed("tc", &["-json", "qdisc", "show", "dev", device])?).ok()
}

/// How many packets this machine may send merged at an interface, if it may.
pub(super) fn merges_outgoing(interface: &str) -> Option<Restore> {
    let listing = printed("ip", &["-json", "-details", "link", "show", "dev", interface])?;
    let listing: Value = serde_json::from_str(&listing).ok()?;
    let most = listing[0]["gso_max_segs"].as_u64()?;
    (most > 1).then_some(Restore::GsoMaxSegs(most))
}

/// Whether incoming packets of an interface are merged, and that can be changed.
pub(super) fn merges_incoming(interface: &str) -> Option<Restore> {
    let text = printed("ethtool", &["--show-features", interface])?;
    text.lines().any(|line| line.trim() == "generic-receive-offload: on").then_some(Restore::Gro)
}

impl Restore {
    /// Has the interface merge no packets.
    pub(super) fn stop(self, interface: &str) -> Line {
        match self {
            Restore::GsoMaxSegs(_) => {
                Line("ip", format!("link set dev {interface} gso_max_segs 1"))
            }
            Restore::Gro => Line("ethtool", format!("--features {interface} gro off")),
        }
    }

    /// Has it do so again.
    pub(super) fn again(self, interface: &str) -> Line {
        match self {
            Restore::GsoMaxSegs(most) => {
                Line("ip", format!("link set dev {interface} gso_max_segs {most}"))
            }
            Restore::Gro => Line("ethtool", format!("--features {interface} gro on")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_an_interface_has_a_name_that_fits() {
        assert_eq!(incoming("eth0"), "ifb4eth0");
        let long = incoming("enp0s31f6.10000");
        assert!(long.starts_with("ifb4") && long.len() <= MOST_CHARACTERS, "{long}");
    }

    #[test]
    fn a_program_that_fails_says_why() {
        let failed = Line("ip", "link set dev no-such-device up".into()).run().unwrap_err();
        assert!(failed.starts_with("ip link set dev no-such-device up: "), "{failed}");
    }
}
