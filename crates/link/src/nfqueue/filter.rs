//! The packet filter that this machine has, told the [rules](super::rules).
//!
//! Kernels differ in what they have of it, and machines in the programs for it. nftables
//! comes first, then iptables (which mostly is nftables in disguise, with targets that
//! nftables itself may lack), then the old iptables: the first that takes all rules has
//! them.
//!
//! ```no_run
//! use tidegate_link::nfqueue::filter;
//! use tidegate_link::nfqueue::rules::{Name, Rules};
//!
//! let rules = Rules::new(Name::new("wan")?, "ppp0", 1, 2, true)?;
//! // Once both queues are open, so that packets wait for somebody.
//! let filter = filter::set(&rules)?;
//! println!("held by {filter}");
//! filter::remove(rules.name())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::rules::{Name, Rules};

/// A packet filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// `nft`.
    Nftables,
    /// `iptables` and `ip6tables`.
    Iptables,
    /// `iptables-legacy` and `ip6tables-legacy`, where `iptables` is something else.
    IptablesLegacy,
}

impl Filter {
    /// All, in the order in which they are tried.
    pub const ALL: [Filter; 3] = [Filter::Nftables, Filter::Iptables, Filter::IptablesLegacy];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Filter::Nftables => "nftables",
            Filter::Iptables => "iptables",
            Filter::IptablesLegacy => "iptables-legacy",
        }
    }

    /// For iptables, the name of its programs for IPv4 and for IPv6, which have ends such
    /// as `-save`.
    const fn families(self) -> Option<[&'static str; 2]> {
        match self {
            Filter::Nftables => None,
            Filter::Iptables => Some(["iptables", "ip6tables"]),
            Filter::IptablesLegacy => Some(["iptables-legacy", "ip6tables-legacy"]),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why rules are not set.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// Earlier rules of this name are not removed.
    #[error("earlier rules are not removed: {0}")]
    Earlier(String),
    /// No packet filter takes them; none of them is set.
    #[error("found no packet filter that holds packets, expected one: {}", .0.join("; "))]
    None(Vec<String>),
}

impl From<RemoveError> for SetError {
    fn from(error: RemoveError) -> SetError {
        match error {
            RemoveError::Refused(complaint) => SetError::Earlier(complaint),
            RemoveError::None(complaints) => SetError::None(complaints),
        }
    }
}

/// Why rules may still be there.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// A packet filter does not remove them.
    #[error("the rules are not removed: {0}")]
    Refused(String),
    /// No packet filter says whether there are any.
    #[error("found no packet filter, expected one that lists its rules: {}", .0.join("; "))]
    None(Vec<String>),
}

/// Sets the rules, instead of those of the same name, and returns who has them. They stay
/// until they are removed or the machine starts anew.
///
/// # Errors
/// Rules that are there are not removed, or no packet filter takes these.
pub fn set(rules: &Rules) -> Result<Filter, SetError> {
    // Another packet filter than the one that will have them may have had them.
    remove(rules.name())?;
    let mut complaints = Vec::new();
    for filter in Filter::ALL {
        match try_set(filter, rules) {
            Ok(()) => return Ok(filter),
            Err(complaint) => complaints.push(complaint),
        }
        // One family may have taken them.
        remove(rules.name())?;
    }
    Err(SetError::None(complaints))
}

/// Removes the rules of this name from all packet filters, if there are any.
///
/// # Errors
/// A packet filter has them and does not remove them, or none can be asked.
pub fn remove(name: &Name) -> Result<(), RemoveError> {
    let refused = RemoveError::Refused;
    let mut complaints = Vec::new();
    let mut is_known = false;
    for filter in Filter::ALL {
        let Some(families) = filter.families() else {
            match run("nft", &["list", "tables"], "") {
                Ok(_) => {
                    is_known = true;
                    run("nft", &["-f", "-"], &name.nft_removal()).map_err(refused)?;
                }
                Err(complaint) => complaints.push(complaint),
            }
            continue;
        };
        for program in families {
            match list(program) {
                Ok(listed) => {
                    is_known = true;
                    let removal = name.iptables_removal(&listed);
                    removal.map_or(Ok(()), |text| restore(program, &text)).map_err(refused)?;
                }
                Err(complaint) => complaints.push(complaint),
            }
        }
    }
    if is_known { Ok(()) } else { Err(RemoveError::None(complaints)) }
}

fn try_set(filter: Filter, rules: &Rules) -> Result<(), String> {
    let Some([v4, v6]) = filter.families() else {
        return run("nft", &["-f", "-"], &rules.nft()).map(drop);
    };
    restore(v4, &rules.iptables(&list(v4)?))?;
    // Without IPv6, there is nothing to hold, and perhaps no program for it.
    if Path::new("/proc/thread-self/net/if_inet6").exists() {
        restore(v6, &rules.iptables(&list(v6)?))?;
    }
    Ok(())
}

fn list(program: &str) -> Result<String, String> {
    run(&format!("{program}-save"), &["-t", "mangle"], "")
}

/// Has one of iptables take this, and wait for others that do something with it.
fn restore(program: &str, text: &str) -> Result<(), String> {
    run(&format!("{program}-restore"), &["--noflush", "-w"], text).map(drop)
}

/// Runs a program with this on its standard input, and returns what it prints.
fn run(program: &str, arguments: &[&str], text: &str) -> Result<String, String> {
    let output = || -> io::Result<_> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // One that ends before it has read everything says why.
            let _ = input.write_all(text.as_bytes());
        }
        child.wait_with_output()
    };
    let output = output().map_err(|reason| format!("{program}: {reason}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(format!("{program}: {}", said.join(" ")))
}
