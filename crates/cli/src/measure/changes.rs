//! What a measurement changes at an interface, and how that is undone.
//!
//! Each change is noted in a file before it is made, and forgotten when it is undone. The
//! file is locked as long as the process lives, which the kernel ends in any case: a note
//! that nobody holds is of a process that was killed, and the next `run`, or `undo`, puts
//! back what it says. What is undone has to be ours, by a handle or a name; what somebody
//! else has put there since stays.
//!
//! A network namespace has interfaces of its own, so its number is a part of the file's
//! name.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;

const FOLDER: &str = "/run/tidegate/measure";
/// The handle of our root queues, by which they are known.
pub(super) const ROOT_HANDLE: &str = "7d1e";
/// No note is longer.
const MOST_NOTE: u64 = 64 << 10;

/// Something that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub(super) enum Change {
    /// The queue in front of a device.
    Root { device: String },
    /// What comes in is redirected.
    Ingress,
    /// A device that was made.
    Device { name: String },
    /// A queue of `tidegate qdisc`.
    Qdisc,
    /// A link of `tidegate link`.
    Link { name: String },
}

/// What is noted in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    changes: Vec<Change>,
}

/// The right to change an interface, and what has been changed.
#[derive(Debug)]
pub(super) struct Held {
    interface: String,
    path: PathBuf,
    file: File,
    note: Note,
}

/// The folder of the notes: systemd names one for each service.
fn folder() -> PathBuf {
    let named = env::var_os("RUNTIME_DIRECTORY");
    let first = named.as_deref().and_then(|folders| env::split_paths(folders).next());
    first.filter(|folder| folder.is_absolute()).unwrap_or_else(|| FOLDER.into())
}

/// Where the note of an interface is.
fn path(folder: &Path, interface: &str) -> PathBuf {
    let network = fs::read_link("/proc/thread-self/ns/net").unwrap_or_default();
    let number: String = network.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    folder.join(format!("{interface}@{number}.json"))
}

/// Whether a process that is gone may have left something at an interface.
pub(super) fn is_noted(interface: &str) -> bool {
    path(&folder(), interface).exists()
}

impl Held {
    /// Takes the right; what a process that was killed has left can then be
    /// [undone](Held::undo).
    pub(super) fn take(interface: &str) -> Result<Held, Failure> {
        Held::take_in(&folder(), interface)
    }

    fn take_in(folder: &Path, interface: &str) -> Result<Held, Failure> {
        let path = path(folder, interface);
        let failed = |reason: &dyn std::fmt::Display| {
            Failure::Other(format!("{}: {reason}", path.display()))
        };
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(|it| failed(&it))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(|it| failed(&it))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let text = format!("{interface}: another 'tidegate measure run' is at it");
            return Err(Failure::Other(text));
        }
        let mut text = String::new();
        let read = Read::by_ref(&mut file).take(MOST_NOTE).read_to_string(&mut text);
        read.map_err(|it| failed(&it))?;
        let note =
            if text.trim().is_empty() { Ok(Note::default()) } else { serde_json::from_str(&text) };
        let note =
            note.map_err(|reason| failed(&format!("found no note of ours ({reason}); remove it")))?;
        Ok(Held { interface: interface.into(), path, file, note })
    }

    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    /// The name of the device that stands for what comes in.
    pub(super) fn device(&self) -> String {
        let index = fs::read_to_string(format!("/sys/class/net/{}/ifindex", self.interface));
        format!("tgmeasure{}", index.unwrap_or_default().trim())
    }

    /// Whether something is to be undone.
    pub(super) fn has_changes(&self) -> bool {
        !self.note.changes.is_empty()
    }

    /// Notes what is changed next.
    pub(super) fn will(&mut self, change: Change) -> Result<(), String> {
        self.note.changes.push(change);
        self.write().map_err(|reason| format!("{}: {reason}", self.path.display()))
    }

    fn write(&mut self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.note).expect("our types are plain JSON");
        self.file.seek(SeekFrom::Start(0))?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }

    /// Undoes everything, the last change first; what fails is tried again by the next one
    /// who asks.
    pub(super) fn undo(&mut self) -> Result<(), Failure> {
        let mut failures = Vec::new();
        let changes = std::mem::take(&mut self.note.changes);
        for change in changes.into_iter().rev() {
            if let Err(reason) = change.undo(&self.interface) {
                failures.push(reason);
                self.note.changes.insert(0, change);
            }
        }
        let written = self.write();
        if failures.is_empty() {
            return written.map_err(|reason| Failure::unwritable(&self.path, &reason));
        }
        let help = format!("'tidegate measure undo {}' tries again", self.interface);
        Err(Failure::Other(format!("not undone: {}; {help}", failures.join("; "))))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // An error on the way has kept others from undoing it.
        let undone = if self.has_changes() { self.undo() } else { Ok(()) };
        if let Err(Failure::Other(reason)) = undone {
            eprintln!("tidegate: {reason}");
        }
        if !self.has_changes() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Change {
    /// Undoes it, if it is still there.
    fn undo(&self, interface: &str) -> Result<(), String> {
        match self {
            Change::Root { device } => {
                let queues = if is_there(device) { queues(device)? } else { Vec::new() };
                let ours = format!("{ROOT_HANDLE}:");
                if queues.iter().any(|it| it["root"] == true && it["handle"] == *ours) {
                    tool("tc", &format!("qdisc del dev {device} root"))?;
                }
                Ok(())
            }
            Change::Ingress => {
                let queues = if is_there(interface) { queues(interface)? } else { Vec::new() };
                if queues.iter().any(|it| it["kind"] == "ingress") {
                    tool("tc", &format!("qdisc del dev {interface} ingress"))?;
                }
                Ok(())
            }
            Change::Device { name } if is_there(name) => tool("ip", &format!("link del {name}")),
            Change::Device { .. } => Ok(()),
            Change::Qdisc => {
                // Where this cannot be done there was nothing to undo, unless a queue is left.
                ourselves(&["qdisc", "del", interface]).or_else(|reason| {
                    let left = queues(interface).is_ok_and(|it| configured(&it).is_some());
                    if left && is_there(interface) { Err(reason) } else { Ok(()) }
                })
            }
            Change::Link { name } => {
                ourselves(&["link", "stop", "--name", name]).or_else(|reason| {
                    let gone = reason.contains("does not run");
                    if gone { Ok(()) } else { Err(reason) }
                })
            }
        }
    }
}

/// Whether there is such a device.
pub(super) fn is_there(device: &str) -> bool {
    Path::new("/sys/class/net").join(device).exists()
}

/// The queues of a device, as `tc` tells them.
pub(super) fn queues(device: &str) -> Result<Vec<Value>, String> {
    let output = Command::new("tc").args(["-json", "qdisc", "show", "dev", device]).output();
    let output = output.map_err(|reason| missing("tc", &reason))?;
    if !output.status.success() {
        return Err(format!("tc: {}", first_line(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|reason| format!("tc qdisc show: {reason}"))
}

/// What of these somebody has configured, in words: what the kernel put there itself has no
/// handle. Ingress filters are not in the way of what goes out.
pub(super) fn configured(queues: &[Value]) -> Option<String> {
    let is_ingress = |it: &&Value| it["kind"] == "ingress" || it["kind"] == "clsact";
    let is_set = |it: &&Value| it["handle"].as_str().is_some_and(|handle| handle != "0:");
    let found = queues.iter().filter(|it| !is_ingress(it)).find(is_set)?;
    let text = |key: &str| found[key].as_str().unwrap_or("unknown").to_owned();
    Some(format!("{} {}", text("kind"), text("handle")))
}

/// Whether something filters what comes in.
pub(super) fn filters(queues: &[Value]) -> bool {
    queues.iter().any(|it| it["kind"] == "ingress" || it["kind"] == "clsact")
}

/// Runs a program of one line.
pub(super) fn tool(program: &'static str, line: &str) -> Result<(), String> {
    let output = Command::new(program).args(line.split(' ')).stdin(Stdio::null()).output();
    let output = output.map_err(|reason| missing(program, &reason))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("'{program} {line}': {}", first_line(&output.stderr)))
}

fn missing(program: &str, reason: &std::io::Error) -> String {
    match reason.kind() {
        std::io::ErrorKind::NotFound => {
            format!("{program} is not installed; Debian has it in the package iproute2")
        }
        _ => format!("{program}: {reason}"),
    }
}

fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().find(|it| !it.trim().is_empty()).unwrap_or("it failed");
    line.trim().trim_end_matches('.').to_owned()
}

/// Runs this program with other words.
pub(super) fn ourselves(words: &[&str]) -> Result<(), String> {
    let program = env::current_exe().map_err(|reason| reason.to_string())?;
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|reason| reason.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(said(&String::from_utf8_lossy(&output.stderr)))
}

/// What a program of ours says when it fails, in a line.
pub(super) fn said(text: &str) -> String {
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed");
    line.trim().trim_start_matches("tidegate: ").trim_end_matches("; see --help").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_note_outlives_the_process_and_is_held_by_one() {
        let folder = env::temp_dir().join(format!("tidegate-measure-{}", std::process::id()));
        let mut held = Held::take_in(&folder, "test0").unwrap();
        assert!(!held.has_changes());
        let device = Change::Device { name: "no-such-device".into() };
        held.will(device.clone()).unwrap();
        let other = Held::take_in(&folder, "test0");
        assert!(matches!(other, Err(Failure::Other(text)) if text.contains("another")));
        // As a process that is killed leaves it.
        let left = fs::read(&held.path).unwrap();
        let path = held.path.clone();
        drop(held);
        assert!(!path.exists(), "what is undone is forgotten");
        fs::write(&path, left).unwrap();
        let mut held = Held::take_in(&folder, "test0").unwrap();
        assert_eq!(held.note.changes, [device]);
        held.undo().unwrap();
        assert!(!held.has_changes());
        drop(held);
        fs::write(&path, "nonsense").unwrap();
        let wrong = Held::take_in(&folder, "test0");
        assert!(matches!(wrong, Err(Failure::Other(text)) if text.contains("no note of ours")));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_somebody_has_configured_has_a_handle() {
        let of = |kind: &str, handle: &str| json!({ "kind": kind, "handle": handle, "root": true });
        assert_eq!(configured(&[of("mq", "0:"), of("pfifo_fast", "0:")]), None);
        assert_eq!(configured(&[of("noqueue", "0:"), of("clsact", "ffff:")]), None);
        assert_eq!(configured(&[of("mq", "0:"), of("cake", "8001:")]), Some("cake 8001:".into()));
        assert!(filters(&[of("clsact", "ffff:")]) && !filters(&[of("mq", "0:")]));
    }
}
