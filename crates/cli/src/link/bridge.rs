//! The bridge of the kernel that joins two interfaces when their link has died.
//!
//! It is made when the link starts, without interfaces, so that what could fail fails then.
//! It has neither addresses nor a spanning tree, and nobody learns of it. Its alias says
//! which link it belongs to.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

/// The name of an interface may have 15 characters.
const MOST_CHARACTERS: usize = 15;
const PREFIX: &str = "tidegate-";

/// A bridge that joins two interfaces when their link has died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bridge {
    pub(super) name: String,
    link: String,
}

impl Bridge {
    /// That of a link. A name that is too long is shortened to a part of its hash.
    pub(super) fn of(link: &str) -> Bridge {
        let room = MOST_CHARACTERS - PREFIX.len();
        let short = if link.len() <= room { link.to_string() } else { hashed(link, room) };
        Bridge { name: format!("{PREFIX}{short}"), link: link.into() }
    }

    /// All that are there.
    pub(super) fn all() -> Vec<Bridge> {
        let Ok(entries) = fs::read_dir("/sys/class/net") else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let found = names.filter(|name| name.starts_with(PREFIX)).filter_map(|name| {
            let alias = fs::read_to_string(format!("/sys/class/net/{name}/ifalias")).ok()?;
            let link = alias.trim().strip_prefix("tidegate link ")?.to_string();
            Some(Bridge { name, link })
        });
        found.collect()
    }

    /// The name of the link that it belongs to.
    pub(super) fn link(&self) -> &str {
        &self.link
    }

    pub(super) fn is_there(&self) -> bool {
        Path::new("/sys/class/net").join(&self.name).exists()
    }

    /// Whether it carries the frames of this interface.
    pub(super) fn has(&self, interface: &str) -> bool {
        let master = fs::read_link(format!("/sys/class/net/{interface}/master"));
        master.is_ok_and(|master| master.file_name().is_some_and(|name| *name == *self.name))
    }

    /// Makes it, without interfaces.
    pub(super) fn make(&self) -> io::Result<()> {
        let Bridge { name, link } = self;
        // Ports forward from the first moment, and multicast goes everywhere, as on a wire.
        ip(&format!(
            "link add name {name} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link set dev {name} alias \"tidegate link {link}\"\n\
             link set dev {name} addrgenmode none\n"
        ))
    }

    /// Has it carry the frames of these.
    pub(super) fn join(&self, interfaces: [&str; 2]) -> io::Result<()> {
        let Bridge { name, .. } = self;
        let ports = interfaces.map(|port| format!("link set dev {port} master {name}\n"));
        ip(&format!("{}link set dev {name} up\n", ports.concat()))
    }

    /// Takes its interfaces away from it.
    pub(super) fn empty(&self, interfaces: [&str; 2]) -> io::Result<()> {
        let ports = interfaces.into_iter().filter(|port| self.has(port));
        let lines: String = ports.map(|port| format!("link set dev {port} nomaster\n")).collect();
        ip(&format!("{lines}link set dev {} down\n", self.name))
    }

    /// Takes it away, whatever it has.
    pub(super) fn remove(&self) -> io::Result<()> {
        ip(&format!("link delete dev {} type bridge\n", self.name))
    }
}

/// A name of at most so many letters and digits, which others hardly have.
pub(crate) fn hashed(name: &str, room: usize) -> String {
    let hash = Sha256::digest(name.as_bytes());
    hash.iter().take(room / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Has `ip` of iproute2 do these lines, in one process.
fn ip(lines: &str) -> io::Result<()> {
    let mut command = Command::new("ip");
    let piped = command.args(["-batch", "-"]).stdin(Stdio::piped());
    let spawned = piped.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|reason| io::Error::other(format!("ip: {reason}")))?;
    child.stdin.take().expect("it was asked for").write_all(lines.as_bytes())?;
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().next().unwrap_or("it failed").to_string();
            Err(io::Error::other(format!("ip: {first}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_bridges_fit_and_differ() {
        assert_eq!(Bridge::of("home").name, "tidegate-home");
        let [a, b] = ["lan0-wan0", "lan0-wan1"].map(|link| Bridge::of(link).name);
        assert!(a != b && a.len() == 15 && b.len() == 15, "{a} {b}");
    }
}
