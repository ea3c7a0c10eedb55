//! The networks of a case, and what their links have carried.
//!
//! ```text
//! clients --- users [router] access --- provider === path === servers
//! ```
//!
//! Every client of the case is an address, and so is every server, which is as far away as
//! the seed says. The provider's end of `access` has the link's rate and buffer. All of it
//! ends with the process, or when the network is dropped.
//!
//! No segment that a host cuts only at its wire passes the access link: what comes from
//! a TUN device has the size of packets.

use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tidegate_core::units::Amount;
use tidegate_core::{Bytes, Span};
use tidegate_sim::requests::Setup;

use crate::host::{BURST_BYTES, Host, Missing, hurry, hurry_programs, on_ethernet};
use crate::path;

/// Where a proxy listens, on the router.
pub(crate) const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The router's interface to the users, and the one that the access link ends at.
pub(crate) const USERS: &str = "users";
pub(crate) const ACCESS: &str = "access";
/// The most clients of a class, and the most servers, that have addresses.
pub(crate) const MOST_HOSTS: usize = 250;
/// Room for every packet that connections send at once: the uplink loses none.
const UPLINK_BYTES: u64 = 10_000_000;
/// Of Ethernet, which the counter of an interface counts.
const HEADER: u64 = 14;
/// Where the address of the other end is in an IPv4 packet from the servers, and in one
/// to them.
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

/// The hosts.
pub(crate) struct Network {
    pub(crate) clients: Host,
    pub(crate) router: Host,
    provider: Host,
    pub(crate) servers: Host,
    /// The address of each server, by its number.
    pub(crate) server_addresses: Vec<Ipv4Addr>,
}

/// The address of a client.
pub(crate) fn client(class: usize, number: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, class as u8 + 1, number as u8 + 1)
}

/// All clients of a class.
pub(crate) fn clients_of(class: usize) -> String {
    format!("10.77.{}.0/24", class + 1)
}

fn server(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, 0, number as u8 + 1)
}

/// What the provider's end of the access link has done.
pub(crate) struct Watched {
    /// What it had sent at each look.
    pub(crate) carried: Vec<Bytes>,
    /// The packets after the warm-up.
    pub(crate) counted: Counted,
}

/// Packets that came, and those of them that were lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) offered: u64,
    pub(crate) lost: u64,
}

/// `tc -s -j qdisc show`.
#[derive(Deserialize)]
struct Queue {
    #[serde(default)]
    root: bool,
    packets: u64,
    drops: u64,
}

impl Network {
    /// The network of `setup` with the paths that `seed` draws.
    ///
    /// # Errors
    /// This machine does not have it.
    pub(crate) fn new(setup: &Setup, seed: u64) -> Result<Network, Missing> {
        let (clients, router) = (Host::new()?, Host::new()?);
        let (provider, servers) = (Host::new()?, Host::new()?);
        // What else the machine does should not decide.
        for host in [&clients, &servers] {
            host.run(hurry);
        }
        router.run(hurry_programs);
        for (device, peer) in [(USERS, &clients), (ACCESS, &provider)] {
            let (name, peer) = (if device == USERS { "lan" } else { ACCESS }, peer.thread());
            router.words(
                "ip",
                &format!("link add {device} type veth peer name {name} netns {peer}"),
            )?;
        }
        let mut addresses = vec![
            (&router, format!("{ROUTER}/16"), USERS),
            (&router, "192.0.2.2/24".into(), ACCESS),
            (&provider, "192.0.2.1/24".into(), ACCESS),
        ];
        for (class, of) in setup.classes.iter().enumerate() {
            let all = (0..of.clients).map(|number| client(class, number));
            addresses.extend(all.map(|address| (&clients, format!("{address}/16"), "lan")));
        }
        for (host, address, device) in addresses {
            host.words("ip", &format!("address add {address} dev {device}"))?;
        }
        for (host, device) in
            [(&router, USERS), (&router, ACCESS), (&provider, ACCESS), (&clients, "lan")]
        {
            host.words("ip", &format!("link set {device} up"))?;
        }
        let links = setup.server_links(seed);
        let near = path::end(&provider, Ipv4Addr::new(198, 18, 1, 1), 24)?;
        let far = path::end(&servers, Ipv4Addr::new(198, 18, 1, 2), 24)?;
        let server_addresses: Vec<_> = (0..links.len()).map(server).collect();
        for address in &server_addresses {
            servers.words("ip", &format!("address add {address}/32 dev {}", path::DEVICE))?;
        }
        clients.words("ip", &format!("route add default via {ROUTER}"))?;
        router.words("ip", "route add default via 192.0.2.1")?;
        provider.words("ip", "route add 10.77.0.0/16 via 192.0.2.2")?;
        provider.words("ip", &format!("route add 198.18.0.0/24 dev {}", path::DEVICE))?;
        // The simulator's controller, whatever the machine's is.
        let route = format!("route add default dev {} congctl cubic", path::DEVICE);
        servers.words("ip", &route)?;
        for (host, setting, value) in [
            (&router, "ipv4/ip_forward", "1"),
            (&provider, "ipv4/ip_forward", "1"),
            // Nothing is remembered of earlier connections.
            (&servers, "ipv4/tcp_no_metrics_save", "1"),
            (&router, "ipv4/tcp_no_metrics_save", "1"),
        ] {
            host.set(setting, value).map_err(|reason| Missing(format!("{setting}: {reason}")))?;
        }
        // Clients and the access link have no delay of their own here.
        let beside = setup.delay + setup.client_delay;
        let delays: Vec<Span> = links.iter().map(|(delay, _)| *delay + beside).collect();
        path::carry(&far, &near, delay_of(&delays, SOURCE));
        path::carry(&near, &far, delay_of(&delays, DESTINATION));
        let network = Network { clients, router, provider, servers, server_addresses };
        network.shape(setup)?;
        Ok(network)
    }

    /// Gives the access link its rate, each way.
    fn shape(&self, setup: &Setup) -> Result<(), Missing> {
        let rate = on_ethernet(setup.rate.0);
        let queue = match setup.buffer.amount() {
            Amount::Bytes(Bytes(bytes)) => format!("bfifo limit {}", on_ethernet(bytes)),
            Amount::Packets(packets) => format!("pfifo limit {packets}"),
        };
        let uplink = on_ethernet(setup.uplink.rate.unwrap_or(setup.rate).0);
        let shaped = |rate| format!("tbf rate {rate}bit burst {BURST_BYTES} limit {UPLINK_BYTES}");
        self.provider
            .words("tc", &format!("qdisc add dev {ACCESS} root handle 1: {}", shaped(rate)))?;
        self.provider.words("tc", &format!("qdisc add dev {ACCESS} parent 1:1 {queue}"))?;
        self.router.words("tc", &format!("qdisc add dev {ACCESS} root {}", shaped(uplink)))
    }

    /// Has the provider look at the downlink at each of these times from now on, and
    /// returns where what it has done comes out. Packets are counted from the first look that is
    /// no earlier than `warm_up`.
    pub(crate) fn watch(
        &self,
        begun: Instant,
        times: Vec<Duration>,
        warm_up: Duration,
    ) -> mpsc::Receiver<io::Result<Watched>> {
        self.provider.begin(move || {
            hurry();
            let (mut carried, mut before) = (Vec::with_capacity(times.len()), None);
            for at in times {
                thread::sleep((begun + at).saturating_duration_since(Instant::now()));
                carried.push(sent()?);
                if at >= warm_up && before.is_none() {
                    before = Some(counted()?);
                }
            }
            let (before, after) = (before.unwrap_or_default(), counted()?);
            let counted =
                Counted { offered: after.offered - before.offered, lost: after.lost - before.lost };
            Ok(Watched { carried, counted })
        })
    }
}

/// What the queue of the access link has seen so far, in the network of this thread.
fn counted() -> io::Result<Counted> {
    let output = Command::new("tc").args(["-s", "-j", "qdisc", "show", "dev", ACCESS]).output()?;
    let queues: Vec<Queue> = serde_json::from_slice(&output.stdout)?;
    let root = queues.iter().find(|queue| queue.root);
    let root = root.ok_or_else(|| io::Error::other("the access link has no queue"))?;
    Ok(Counted { offered: root.packets + root.drops, lost: root.drops })
}

/// The IP packets that have left by the access link from the network of this thread.
fn sent() -> io::Result<Bytes> {
    // proc_net(5): of /proc/net, the main thread's is shown.
    let counters = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    sent_by(ACCESS, &counters).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn sent_by(device: &str, counters: &str) -> Option<Bytes> {
    let mut lines = counters.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| name.trim() == device)?;
    // Eight numbers of what came, and then bytes and packets that were sent.
    let mut sent = numbers.split_whitespace().skip(8).map(str::parse::<u64>);
    let (bytes, packets) = (sent.next()?.ok()?, sent.next()?.ok()?);
    Some(Bytes(bytes - packets * HEADER))
}

/// The delay of packets whose server stands at `place`.
fn delay_of(delays: &[Span], place: usize) -> impl Fn(&[u8]) -> Duration + Send + use<> {
    let delays: Vec<Duration> = delays.iter().map(|delay| Duration::from_nanos(delay.0)).collect();
    move |packet| {
        // Whatever else a kernel sends has no server.
        let number = packet.get(place + 3).map_or(0, |number| usize::from(*number));
        delays.get(number.wrapping_sub(1)).copied().unwrap_or_default()
    }
}

impl Drop for Network {
    /// The devices of the path are held by the threads that read them, and these end with
    /// the devices.
    fn drop(&mut self) {
        for host in [&self.provider, &self.servers] {
            let _ = host.words("ip", &format!("link delete {}", path::DEVICE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interface_has_sent_is_counted_without_ethernet() {
        let counters = "Inter-|   Receive                            |  Transmit\n \
            face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n    \
            lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n\
            access: 7 7 0 0 0 0 0 5 3028 2 0 0 0 0 0 0\n";
        assert_eq!(sent_by("access", counters), Some(Bytes(3_000)));
        assert_eq!(sent_by("acc", counters), None);
    }

    #[test]
    fn the_delay_of_a_packet_is_that_of_its_server() {
        let delay = delay_of(&[Span::millis(10), Span::millis(60)], SOURCE);
        let mut packet = vec![0; 40];
        packet[SOURCE..SOURCE + 4].copy_from_slice(&server(1).octets());
        assert_eq!(delay(&packet), Duration::from_millis(60));
        assert_eq!(delay(&[0; 3]), Duration::ZERO);
    }
}
