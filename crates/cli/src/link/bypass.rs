//! `--fail open`: what carries frames when a link has died.
//!
//! A program that was killed can undo nothing. So a second process of this program waits
//! beside the link, with the right to change networks and no other. It holds the end of a
//! pipe, which the kernel closes when the link ends in any way. If the link has not said
//! before that it ends on purpose, the second process joins both interfaces in a bridge of
//! the kernel, and frames go on, without a queue of ours, within some milliseconds.
//!
//! The bridge is made when the link starts, without interfaces, so that what could fail
//! fails then. It has neither addresses nor a spanning tree, and nobody learns of it. Its
//! alias says which link it belongs to.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::thread::CapabilitySet;
use sha2::{Digest, Sha256};

use crate::arguments::LinkBypassArguments;
use crate::failure::Failure;
use crate::rights;

/// What the link says to the process beside it, a line each.
const CARRIES: &str = "carries";
const STOPS: &str = "stops";
/// What that answers.
const DONE: &str = "done";

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
        let short = if link.len() <= room {
            link.to_string()
        } else {
            let hash = Sha256::digest(link.as_bytes());
            hash.iter().take(room / 2).map(|byte| format!("{byte:02x}")).collect()
        };
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
    fn make(&self) -> io::Result<()> {
        let Bridge { name, link } = self;
        // Ports forward from the first moment, and multicast goes everywhere, as on a wire.
        ip(&format!(
            "link add name {name} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link set dev {name} alias \"tidegate link {link}\"\n\
             link set dev {name} addrgenmode none\n"
        ))
    }

    /// Has it carry the frames of these.
    fn join(&self, interfaces: [&str; 2]) -> io::Result<()> {
        let Bridge { name, .. } = self;
        let ports = interfaces.map(|port| format!("link set dev {port} master {name}\n"));
        ip(&format!("{}link set dev {name} up\n", ports.concat()))
    }

    /// Takes its interfaces away from it.
    fn empty(&self, interfaces: [&str; 2]) -> io::Result<()> {
        let ports = interfaces.into_iter().filter(|port| self.has(port));
        let lines: String = ports.map(|port| format!("link set dev {port} nomaster\n")).collect();
        ip(&format!("{lines}link set dev {} down\n", self.name))
    }

    /// Takes it away, whatever it has.
    pub(super) fn remove(&self) -> io::Result<()> {
        ip(&format!("link delete dev {} type bridge\n", self.name))
    }
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

/// The process beside a link, as the link sees it.
#[derive(Debug)]
pub(super) struct Bypass {
    child: Child,
    told: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Bypass {
    /// Starts it, and waits until the bridge is there.
    pub(super) fn start(
        name: &str,
        [inside, outside]: [&str; 2],
        user: Option<&str>,
    ) -> Result<Bypass, Failure> {
        let failed = |reason: io::Error| Failure::Other(format!("--fail open: {reason}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["link", "bypass", "--name", name]);
        command.args(user.map(|user| format!("--user={user}"))).args(["--", inside, outside]);
        // Ctrl-C in a terminal is for the link, which then tells it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let told = child.stdin.take().expect("it was asked for");
        let answers = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut bypass = Bypass { child, told, answers };
        bypass.hear().map_err(failed)?;
        Ok(bypass)
    }

    /// From now on the link carries frames: the bridge does not, until the link dies.
    pub(super) fn stand_by(&mut self) -> Result<(), Failure> {
        self.tell(CARRIES).map_err(|reason| Failure::Other(format!("--fail open: {reason}")))
    }

    /// The link ends on purpose: the bridge goes.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.tell(STOPS)?;
        self.child.wait().map(drop)
    }

    /// Whether it still waits.
    pub(super) fn waits(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn tell(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.told, "{what}")?;
        self.hear()
    }

    fn hear(&mut self) -> io::Result<()> {
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        match answer.trim_end() {
            DONE => Ok(()),
            "" => Err(io::Error::other("the process beside the link has ended")),
            error => Err(io::Error::other(error.to_string())),
        }
    }
}

/// Is that process: waits until the link ends, and stands in for it if it died.
pub(crate) fn bypass(arguments: &LinkBypassArguments) -> Result<(), Failure> {
    let LinkBypassArguments { inside, outside, name, user } = arguments;
    let user = user.as_deref().map(rights::user).transpose()?;
    rights::give_up(user.as_ref(), CapabilitySet::NET_ADMIN)?;
    // A service manager sends its signals to both; this one ends when the link has ended.
    ctrlc::set_handler(|| {}).map_err(|reason| Failure::Other(reason.to_string()))?;
    let bridge = Bridge::of(name);
    let interfaces = [inside.as_str(), outside.as_str()];
    let is_taken_over = bridge.is_there();
    let made = if is_taken_over { Ok(()) } else { bridge.make() };
    let is_made = made.is_ok();
    answer(made);
    if !is_made {
        return Ok(());
    }
    let mut carries = false;
    for line in io::stdin().lines() {
        match line.as_deref() {
            Ok(CARRIES) => {
                let emptied = bridge.empty(interfaces);
                carries |= emptied.is_ok();
                answer(emptied);
            }
            Ok(STOPS) => {
                answer(bridge.remove());
                return Ok(());
            }
            _ => break,
        }
    }
    // The link is no more, and has not said why.
    let outcome = match (carries, is_taken_over) {
        (true, _) => {
            eprintln!(
                "tidegate: the link '{name}' has died: {} joins {inside} and {outside}",
                bridge.name
            );
            bridge.join(interfaces)
        }
        // It has not begun: what there was before stays.
        (false, true) => Ok(()),
        (false, false) => bridge.remove(),
    };
    outcome.map_err(|reason| Failure::Other(format!("the bridge {}: {reason}", bridge.name)))
}

/// Tells the link, which may be gone.
fn answer(outcome: io::Result<()>) {
    let text = outcome.map_or_else(|reason| reason.to_string(), |()| DONE.into());
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
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
