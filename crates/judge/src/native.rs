//! The native bed: the machine's own kernel, in real time.
//!
//! Hosts in network namespaces of their own, a path between them and a shaper: see
//! [`bed`](crate::bed). Nothing needs to be cleaned up: a namespace ends with the process.
//!
//! This takes root's rights, `/dev/net/tun`, `ip`, `tc` and `tbf`. On a machine that is
//! busy with other things packets are late, and the guest is the better judge.

use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::path::Path;

use nix::unistd::gettid;
use tidegate_link::Status;

use crate::agent::{self, Event, Order};
use crate::bed::{Bed, CLIENT, SENDER};
use crate::cell::Cell;
use crate::host::{BedError, Missing};
use crate::workload::{self, Transfer};

/// What came of a log.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What the agents saw.
    pub events: Vec<Event>,
    /// How late the path was with each packet, in microseconds.
    pub late_us: Vec<u32>,
    /// The last state of the live link, if there was one.
    pub link: Option<Status>,
}

/// The kernel's release.
///
/// # Errors
/// When `/proc` is not there.
pub fn release() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned())
}

/// Sends a log through the machine's kernel, and returns what came of it.
/// `seconds` is how long the sender stays; `None`: until transfers had time to end.
///
/// # Errors
/// When the machine lacks something that this takes.
pub fn measure(
    cell: &Cell,
    log: &[Transfer],
    seconds: Option<f64>,
    watches: bool,
) -> Result<Measured, BedError> {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    if !known.split_whitespace().any(|name| name == cell.controller) {
        return Err(Missing(format!("this kernel has no {}", cell.controller)).into());
    }
    let bed = Bed::new(cell)?;
    let name = format!("tidegate-log-{}-{}", std::process::id(), gettid());
    let path = std::env::temp_dir().join(name);
    workload::write(log, fs::File::create(&path)?)?;
    let last = log.last().map_or(0.0, |transfer| transfer.start_s);
    let seconds = seconds.unwrap_or(last + cell.question.patience_s());
    let to = SocketAddrV4::new(CLIENT, 9000);
    let sink = bed.client.begin(move || {
        let mut lines = Vec::new();
        agent::sink(to, &mut lines).map(|()| lines)
    });
    let (log_path, controller) = (path.clone(), cell.controller);
    let sent = bed.sender.run(move || {
        let log: &Path = &log_path;
        let order = Order { log, to, from: SENDER, controller, seconds, watches };
        let mut lines = Vec::new();
        agent::send(&order, &mut lines).map(|()| lines)
    });
    fs::remove_file(&path)?;
    let mut lines = sent?;
    lines.extend(sink.recv().expect("the sink ends after the last probe")?);
    let text = String::from_utf8_lossy(&lines).into_owned();
    let events = text.lines().filter_map(|line| line.parse().ok()).collect();
    Ok(Measured { events, late_us: bed.late_us(), link: bed.status() })
}
