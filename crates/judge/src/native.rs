//! The native bed: the machine's own kernel, in real time.
//!
//! ```text
//! sender --- path --- provider --- access --- client
//! ```
//!
//! Each host is a thread in a network namespace of its own. The path holds each packet for
//! the delay; the access is a `veth` with `tbf` over the cell's queue. Nothing needs to be
//! cleaned up: a namespace ends with the process.
//!
//! This takes root's rights, `/dev/net/tun`, `ip`, `tc` and `tbf`. On a machine that is
//! busy with other things packets are late, and the guest is the better judge.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use nix::unistd::gettid;

use crate::agent::{self, Event, Order};
use crate::cell::Cell;
use crate::guest::{queue_words, shaped_rate};
use crate::host::{BURST_BYTES, Host, Missing, hurry};
use crate::path;
use crate::workload::{self, PATIENCE_S, Transfer};

const SENDER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PROVIDER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// A part of the network: this much of an address belongs to it.
const NETWORK_BITS: u8 = 24;
/// Nothing is remembered of earlier connections.
const SETTINGS: [(&str, &str); 2] =
    [("ipv4/tcp_no_metrics_save", "1"), ("ipv4/ip_local_port_range", "10000 64999")];

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// This machine lacks something.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// Something that should work did not.
    #[error("the native bed: {0}")]
    Io(#[from] io::Error),
}

/// The three hosts of a cell.
struct Bed {
    sender: Host,
    client: Host,
    /// It only forwards, but must not end before the others.
    _provider: Host,
}

impl Bed {
    fn new(cell: &Cell) -> Result<Bed, NativeError> {
        let (sender, provider, client) = (Host::new()?, Host::new()?, Host::new()?);
        for host in [&sender, &provider, &client] {
            host.run(hurry);
        }
        for host in [&sender, &client] {
            for (setting, value) in SETTINGS {
                host.set(setting, value)?;
            }
        }
        provider.set("ipv4/ip_forward", "1")?;
        let near = path::end(&sender, SENDER, NETWORK_BITS)?;
        let far = path::end(&provider, PROVIDER, NETWORK_BITS)?;
        let delay = Duration::from_nanos(cell.link.delay.0);
        path::carry(&near, &far, move |_| delay);
        path::carry(&far, &near, move |_| delay);
        let peer = client.thread();
        provider
            .words("ip", &format!("link add access type veth peer name access netns {peer}"))?;
        for (host, address) in [(&provider, "192.0.2.1/24"), (&client, "192.0.2.2/24")] {
            host.words("ip", &format!("address add {address} dev access"))?;
            host.words("ip", "link set access up")?;
        }
        sender.words("ip", "route add default dev path")?;
        client.words("ip", "route add default via 192.0.2.1")?;
        let rate = shaped_rate(cell);
        provider.words(
            "tc",
            &format!(
                "qdisc add dev access root handle 1: tbf rate {rate}bit burst {BURST_BYTES} \
                 limit 15140"
            ),
        )?;
        let queue = queue_words(cell);
        provider.words("tc", &format!("qdisc add dev access parent 1:1 handle 10: {queue}"))?;
        Ok(Bed { sender, client, _provider: provider })
    }
}

/// The kernel's release.
///
/// # Errors
/// When `/proc` is not there.
pub fn release() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned())
}

/// Sends a log through the machine's kernel, and returns what the agents saw.
/// `seconds` is how long the sender stays; `None`: until transfers had time to end.
///
/// # Errors
/// When the machine lacks something that this takes.
pub fn measure(
    cell: &Cell,
    log: &[Transfer],
    seconds: Option<f64>,
    watches: bool,
) -> Result<Vec<Event>, NativeError> {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    if !known.split_whitespace().any(|name| name == cell.controller) {
        return Err(Missing(format!("this kernel has no {}", cell.controller)).into());
    }
    let bed = Bed::new(cell)?;
    let name = format!("tidegate-log-{}-{}", std::process::id(), gettid());
    let path = std::env::temp_dir().join(name);
    workload::write(log, fs::File::create(&path)?)?;
    let last = log.last().map_or(0.0, |transfer| transfer.start_s);
    let seconds = seconds.unwrap_or(last + PATIENCE_S);
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
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}
