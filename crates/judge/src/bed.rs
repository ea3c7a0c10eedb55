//! Three hosts on this machine, and a link between two of them.
//!
//! ```text
//! sender --- path --- provider --- access --- client
//! ```
//!
//! Each host is a thread in a network namespace of its own. The path holds each packet for
//! the delay, and notes how late it was with it. The access is either a `veth` with `tbf`
//! over a queue of Linux, or the live link as its users have it:
//!
//! ```text
//! provider === outside [link] inside === client
//! ```
//!
//! There it has a host of its own, and a queue in front of the rate towards the client.
//! What goes back waits in a FIFO in front of 1 Gbit/s, which is what the simulator's links
//! have in that direction: acknowledgements never wait.
//!
//! All threads that touch packets have the priority of real time where that is permitted,
//! so that other work of the machine makes few of them late. This takes root's rights,
//! `/dev/net/tun`, `ip`, `tc` and `tbf`.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Buffer, Rate};
use tidegate_link::{Queue, Running, Status};
use tidegate_sim::scenario::DisciplineChoice;

use crate::cell::{Cell, Shaper};
use crate::guest::{queue_words, shaped_rate};
use crate::host::{BURST_BYTES, BedError, Host, hurry};
use crate::link;
use crate::path::{self, Lateness};

/// The address of the host that sends.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PROVIDER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The address of the host that receives.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// A part of the network: this much of an address belongs to it.
const NETWORK_BITS: u8 = 24;
/// Nothing is remembered of earlier connections.
const SETTINGS: [(&str, &str); 2] =
    [("ipv4/tcp_no_metrics_save", "1"), ("ipv4/ip_local_port_range", "10000 64999")];
/// The way back: see above.
const UP: Rate = Rate(1_000_000_000);
const UP_PACKETS: u32 = 10_000;

/// The three hosts, and what is between them.
pub struct Bed {
    /// The host at the far end.
    pub sender: Host,
    /// The host behind the access.
    pub client: Host,
    link: Option<Running>,
    late: [Arc<Lateness>; 2],
    /// They only forward, but must not end before the others.
    between: Vec<Host>,
}

impl Bed {
    /// The bed of a cell.
    ///
    /// # Errors
    /// This machine lacks something.
    ///
    /// # Panics
    /// When a live cell's discipline is not in the registry, or its buffer is none.
    pub fn new(cell: &Cell) -> Result<Bed, BedError> {
        if cell.queue.shaper == Shaper::Link {
            let choice: DisciplineChoice = cell.queue.ours.parse().expect("it is in the registry");
            let buffer = cell.queue.buffer.expect("a live cell has one");
            let limit = buffer.parse().expect("a number of packets");
            let queue = link::queue(choice, limit, cell.link.rate);
            return Bed::with_link(cell, queue);
        }
        let (sender, provider, client) = (Host::new()?, Host::new()?, Host::new()?);
        let peer = client.thread();
        provider
            .words("ip", &format!("link add access type veth peer name access netns {peer}"))?;
        let bed = Bed::join(cell, sender, provider, client, "access")?;
        let provider = &bed.between[0];
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
        Ok(bed)
    }

    /// The bed of a cell with this queue of the live link, in place of its own.
    ///
    /// # Errors
    /// This machine lacks something.
    pub fn with_link(cell: &Cell, down: Queue) -> Result<Bed, BedError> {
        let (sender, provider, client) = (Host::new()?, Host::new()?, Host::new()?);
        let middle = Host::new()?;
        for (host, name) in [(&provider, "outside"), (&client, "inside")] {
            let peer = host.thread();
            middle
                .words("ip", &format!("link add {name} type veth peer name access netns {peer}"))?;
            middle.words("ip", &format!("link set {name} up"))?;
        }
        let fifo = "fifo".parse().expect("it is in the registry");
        let up = link::queue(fifo, Buffer::packets(UP_PACKETS).into(), UP);
        let link = link::start(&middle, down, up)?;
        let mut bed = Bed::join(cell, sender, provider, client, "access")?;
        bed.link = Some(link);
        bed.between.push(middle);
        Ok(bed)
    }

    /// What all beds have in common: addresses, routes and the path; `access` is what the
    /// device between provider and client is called on both.
    fn join(
        cell: &Cell,
        sender: Host,
        provider: Host,
        client: Host,
        access: &str,
    ) -> Result<Bed, BedError> {
        for host in [&sender, &client] {
            for (setting, value) in SETTINGS {
                host.set(setting, value)?;
            }
        }
        provider.set("ipv4/ip_forward", "1")?;
        let near = path::end(&sender, SENDER, NETWORK_BITS)?;
        let far = path::end(&provider, PROVIDER, NETWORK_BITS)?;
        let delay = Duration::from_nanos(cell.link.delay.0);
        let late =
            [(&near, &far), (&far, &near)].map(|(from, to)| path::carry(from, to, move |_| delay));
        for (host, address) in [(&provider, "192.0.2.1/24"), (&client, "192.0.2.2/24")] {
            host.words("ip", &format!("address add {address} dev {access}"))?;
            host.words("ip", &format!("link set {access} up"))?;
        }
        sender.words("ip", "route add default dev path")?;
        client.words("ip", "route add default via 192.0.2.1")?;
        // Only now: what is set up takes no part in the measurement, and should not keep
        // another bed's packets waiting.
        for host in [&sender, &provider, &client] {
            host.run(hurry);
        }
        Ok(Bed { sender, client, link: None, late, between: vec![provider] })
    }

    /// The state of the live link, if there is one.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.link.as_ref().map(Running::status)
    }

    /// How late the path was with each packet so far, in microseconds, in both directions.
    #[must_use]
    pub fn late_us(&self) -> Vec<u32> {
        self.late.iter().flat_map(|late| late.all_us()).collect()
    }
}

impl Drop for Bed {
    /// The threads of the path end with its devices; nothing can be done if that fails.
    fn drop(&mut self) {
        for host in [&self.sender, &self.between[0]] {
            let _ = host.words("ip", &format!("link delete {}", path::DEVICE));
        }
    }
}
