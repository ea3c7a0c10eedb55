//! What a link in user space carries, beside the kernel's bridge and `tbf` in the same run.
//!
//! ```text
//! provider --- outside [middle] inside --- user
//! ```
//!
//! The middle is either the kernel's bridge, with or without `tbf` towards the user, or the
//! live link. All hosts are namespaces of this machine and share its cores with the programs
//! that send and receive: what is compared is one way beside another, and no figure is what
//! a machine of its own would reach.

mod traffic;

use std::fs;
use std::io;
use std::time::Duration;

use serde::Serialize;
use tidegate_core::{Buffer, Bytes, Rate};
use tidegate_link::{Queue, Running};

pub use self::traffic::{Delays, Flood};
use crate::host::{BedError, Host, Missing, hurry, on_ethernet};
use crate::link;

/// The addresses of the two ends, and one that nobody has.
pub(crate) const PROVIDER: &str = "192.0.2.1";
pub(crate) const USER: &str = "192.0.2.2";
pub(crate) const NOBODY: &str = "192.0.2.99";
/// What a queue holds, that of `tbf` and that of the link: the time that a sender may be
/// without a core before the queue is empty and the rate lost.
const QUEUE_TIME_S: f64 = 0.1;
/// And at least some packets.
const LEAST_QUEUE_BYTES: f64 = 60_000.0;
/// What it holds where nothing is held back.
const FREE_QUEUE_BYTES: u64 = 8_000_000;
/// What `tbf` may send at once: two packets, or what a late timer needs at a gigabit.
const LEAST_BURST: u64 = 3_028;
const BURST_TIME_S: f64 = 0.001;
/// A rate that holds nothing back.
const NO_LIMIT: Rate = Rate(1_000_000_000_000);

/// Three hosts in a row.
pub struct Bed {
    /// The side from which downloads come.
    pub provider: Host,
    /// The side to which they go.
    pub user: Host,
    /// Where the link stands.
    pub middle: Host,
}

/// What stands in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The kernel's bridge, which holds nothing back.
    Bridge,
    /// The kernel's bridge and `tbf` with this rate of IP packets.
    Tbf(Rate),
    /// The live link with this discipline, at this rate or as fast as it can.
    Link(&'static str, Option<Rate>),
}

/// What keeps a way alive.
pub enum Carrying {
    /// The kernel does.
    Kernel,
    /// A link does, until this is dropped.
    Link(Box<Running>),
}

impl Bed {
    /// The hosts, with nothing in the middle. All offloads of the kernel are on.
    ///
    /// # Errors
    /// This machine does not permit it.
    pub fn new() -> Result<Bed, Missing> {
        let (provider, middle, user) = (Host::new()?, Host::new()?, Host::new()?);
        for (host, name, address) in [(&provider, "outside", PROVIDER), (&user, "inside", USER)] {
            let peer = host.thread();
            middle.words("ip", &format!("link add {name} type veth peer name lan netns {peer}"))?;
            host.words("ip", &format!("address add {address}/24 dev lan"))?;
            host.words("ip", "link set lan up")?;
            host.words("ip", &format!("neigh add {NOBODY} lladdr 02:00:00:00:00:77 dev lan"))?;
            middle.words("ip", &format!("link set {name} up"))?;
        }
        Ok(Bed { provider, user, middle })
    }

    /// Puts something in the middle.
    ///
    /// # Errors
    /// This machine lacks it.
    pub fn put(&self, way: Way) -> Result<Carrying, Missing> {
        match way {
            Way::Bridge => self.bridge()?,
            Way::Tbf(rate) => {
                self.bridge()?;
                let burst = LEAST_BURST.max((rate.0 as f64 / 8.0 * BURST_TIME_S) as u64);
                let (rate, limit) = (on_ethernet(rate.0), on_ethernet(held(rate)));
                let words = format!("root tbf rate {rate}bit burst {burst} limit {limit}");
                self.middle.words("tc", &format!("qdisc add dev inside {words}"))?;
            }
            Way::Link(name, rate) => {
                let queue = queue(name, rate.unwrap_or(NO_LIMIT));
                return self.link(queue.clone(), queue).map(|it| Carrying::Link(Box::new(it)));
            }
        }
        Ok(Carrying::Kernel)
    }

    /// A live link with these queues, whose threads go before ordinary ones.
    ///
    /// # Errors
    /// This machine does not permit it.
    pub fn link(&self, down: Queue, up: Queue) -> Result<Running, Missing> {
        link::start(&self.middle, down, up)
    }

    fn bridge(&self) -> Result<(), Missing> {
        self.middle.words("ip", "link add both type bridge")?;
        for name in ["inside", "outside"] {
            self.middle.words("ip", &format!("link set {name} master both"))?;
        }
        self.middle.words("ip", "link set both up")
    }

    /// Frames that the user's interface has received.
    pub(crate) fn received(&self) -> io::Result<u64> {
        let text = self.user.run(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("lan:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        number.ok_or_else(|| {
            io::Error::other("there is no interface 'lan' in /proc/thread-self/net/dev")
        })
    }
}

/// What a queue at this rate holds, in bytes of IP packets.
fn held(rate: Rate) -> u64 {
    if rate == NO_LIMIT {
        return FREE_QUEUE_BYTES;
    }
    (rate.0 as f64 / 8.0 * QUEUE_TIME_S).max(LEAST_QUEUE_BYTES) as u64
}

/// A queue of this discipline, whose rate is that of IP packets.
///
/// # Panics
/// When there is no discipline of this name.
#[must_use]
pub fn queue(name: &str, rate: Rate) -> Queue {
    let choice = name.parse().expect("the discipline is registered");
    link::queue(choice, Buffer::bytes(Bytes(held(rate))).into(), rate)
}

/// How close the rate is.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RateFound {
    /// What was set, of IP packets.
    pub set_bps: u64,
    /// What was sent.
    pub offered_bps: f64,
    /// What came.
    pub found_bps: f64,
}

/// Sends more than the rate, and measures what comes.
///
/// # Errors
/// This machine lacks something, or a socket fails.
pub fn rate(way: Way, rate: Rate, time: Duration) -> Result<RateFound, BedError> {
    let bed = Bed::new()?;
    let _carrying = bed.put(way)?;
    let [offered_bps, found_bps] = traffic::flood_at(&bed, rate.0 as f64 * 1.25, time)?;
    Ok(RateFound { set_bps: rate.0, offered_bps, found_bps })
}

/// Probes of a way: on an idle link, and beside a download.
///
/// # Errors
/// This machine lacks something, or a socket fails.
pub fn delays(way: Way, time: Duration) -> Result<[Delays; 2], BedError> {
    let bed = Bed::new()?;
    // Probes sleep most of the time; programs that flood would keep the link from its core.
    for host in [&bed.provider, &bed.user] {
        host.run(hurry);
    }
    let _carrying = bed.put(way)?;
    let idle = traffic::probe(&bed, time)?;
    let loaded = traffic::beside_a_download(&bed, time, || traffic::probe(&bed, time))?;
    Ok([idle, loaded])
}

/// As many of the smallest frames as can be, and then as many bytes of TCP.
///
/// # Errors
/// This machine lacks something, or a socket fails.
pub fn speed(way: Way, time: Duration) -> Result<Flood, BedError> {
    let bed = Bed::new()?;
    let carrying = bed.put(way)?;
    let before = cpu_of_the_link();
    let (offered, carried) = traffic::flood(&bed, time)?;
    let used = cpu_of_the_link().saturating_sub(before);
    let tcp_bps = traffic::download(&bed, time)?;
    let busy_ns = matches!(carrying, Carrying::Link(_)).then(|| used.as_nanos() as f64 / carried);
    let seconds = time.as_secs_f64();
    Ok(Flood {
        offered_pps: offered / seconds,
        carried_pps: carried / seconds,
        cpu_ns_per_packet: busy_ns,
        tcp_bps,
    })
}

/// Time that the threads of links in this process have been on a core.
fn cpu_of_the_link() -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_links = threads.filter(|thread| {
        let name = fs::read_to_string(thread.path().join("comm"));
        // Others have the name of the program.
        name.is_ok_and(|name| matches!(name.trim_end(), "tidegate-down" | "tidegate-up"))
    });
    let times = of_links.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    });
    times.sum()
}
