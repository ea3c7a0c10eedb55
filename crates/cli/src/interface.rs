//! The network interfaces of this machine, by what the kernel says of them under `/sys` and
//! by the programs that are installed.

use std::fs;
use std::process::Command;

use serde::Serialize;

/// What the kernel or the card merges or cuts, by the names of ethtool(8): a queue then
/// sees pieces of up to 64 kB where the link carries packets.
const MERGING: [&str; 4] = [
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
];

/// A network interface of this machine.
#[derive(Serialize)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) mtu: Option<u64>,
    /// The rate of the port, if it has one.
    pub(crate) rate_bps: Option<u64>,
    /// The queue discipline in front of it, as `tc` names it.
    pub(crate) qdisc: Option<String>,
    /// What merges packets; `None` if that is not known.
    pub(crate) merging: Option<Vec<String>>,
}

/// The interfaces but the loopback, by name.
pub(crate) fn all() -> Vec<Interface> {
    let Ok(entries) = fs::read_dir("/sys/class/net") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name != "lo").collect();
    names.sort();
    names.into_iter().map(Interface::of).collect()
}

impl Interface {
    /// The interface of this name, with what can be found about it.
    pub(crate) fn of(name: String) -> Interface {
        let fact = |what: &str| fact(&name, what);
        let megabits = fact("speed").and_then(|speed| speed.parse::<i64>().ok());
        Interface {
            state: fact("operstate").unwrap_or_else(|| "unknown".into()),
            mtu: fact("mtu").and_then(|mtu| mtu.parse().ok()),
            // Ports that are down, and virtual ones, state -1.
            rate_bps: megabits
                .and_then(|rate| u64::try_from(rate).ok())
                .map(|rate| rate * 1_000_000),
            qdisc: printed("tc", &["qdisc", "show", "dev", &name, "root"])
                .and_then(|text| text.split_whitespace().nth(1).map(str::to_string)),
            merging: printed("ethtool", &["-k", &name]).map(|text| merging(&text)),
            name,
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut facts = vec![self.state.clone()];
        facts.extend(self.rate_bps.map(|rate| tidegate_core::Rate(rate).to_string()));
        facts.extend(self.mtu.map(|mtu| format!("MTU {mtu}")));
        facts.extend(self.qdisc.as_ref().map(|qdisc| format!("qdisc {qdisc}")));
        facts.push(match &self.merging {
            None => "offloads unknown without ethtool".into(),
            Some(merging) if merging.is_empty() => "merges nothing".into(),
            Some(merging) => format!("merges packets ({})", merging.join(", ")),
        });
        format!("{}: {}", self.name, facts.join(", "))
    }
}

/// What the kernel says about an interface under `/sys`.
pub(crate) fn fact(interface: &str, what: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/{what}")).ok()?;
    Some(text.trim().to_string())
}

/// What a program prints; `None` if it cannot be run or fails.
pub(crate) fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What is on of [`MERGING`] in the listing of `ethtool -k`.
fn merging(listing: &str) -> Vec<String> {
    let is_on = |name: &&str| {
        let state = listing.lines().find_map(|line| line.trim().strip_prefix(*name));
        state.is_some_and(|state| state.trim_start_matches(':').trim().starts_with("on"))
    };
    MERGING.into_iter().filter(is_on).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_are_found_in_the_listing_of_ethtool() {
        let listing = "Features for eth0:\nrx-checksumming: on\n\
            tcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\n\
            generic-segmentation-offload: off [requested on]\n\
            generic-receive-offload: on\nlarge-receive-offload: off [fixed]\n";
        assert_eq!(merging(listing), ["tcp-segmentation-offload", "generic-receive-offload"]);
        assert!(merging("").is_empty());
    }
}
