//! A bed for the kernel's own TCP: two hosts, and between them a path in user space.
//!
//! Each host is a thread in a network namespace of its own, with a TUN device. A
//! socket stays in the namespace in which it was made, so only that is done on
//! the host's thread; it may be used from anywhere. What one device hands out is
//! carried to the other after the delay that a function decides on, or lost.
//! Nothing needs to be cleaned up: a namespace ends with the process.
//!
//! This takes root's rights and `/dev/net/tun`. Packets leave some tens of
//! microseconds late, which is as well as threads are woken; `chrt` of util-linux, if
//! it is there, keeps it so on a busy machine.

use std::fmt::Display;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use tappers::{AddAddressV4, Interface, Tun};
use tidegate_wire::{Headers, Link};

/// A part of the network: this much of an address belongs to it.
const NETWORK_BITS: u8 = 24;

/// The largest IP packet.
const LARGEST_PACKET: usize = 65_535;

type Job = Box<dyn FnOnce() + Send>;

/// A kernel of its own, as far as the network goes.
pub(crate) struct Host {
    jobs: mpsc::Sender<Job>,
}

impl Host {
    /// A host with an address, its device, and settings: paths below
    /// `/proc/sys/net` and what to write there.
    fn open(address: Ipv4Addr, settings: &[(&str, &str)]) -> io::Result<(Host, Tun)> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (ready, opened) = mpsc::channel();
        let settings: Vec<(String, String)> = settings
            .iter()
            .map(|(path, value)| (format!("/proc/sys/net/{path}"), (*value).into()))
            .collect();
        thread::spawn(move || {
            hurry();
            let device = enter(address, &settings);
            let works = device.is_ok();
            if ready.send(device).is_ok() && works {
                queue.iter().for_each(|job| job());
            }
        });
        let device = opened.recv().expect("the thread answers before it ends")?;
        Ok((Host { jobs }, device))
    }

    /// Does something on this host, and waits for it.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        let job = move || done.send(job()).expect("the caller waits");
        self.jobs.send(Box::new(job)).expect("the host lives as long as its bed");
        result.recv().expect("the job does not panic")
    }

    /// A counter of this host, as `nstat` calls it without the protocol's name:
    /// `TCPTimeouts`.
    pub(crate) fn counter(&self, name: &'static str) -> u64 {
        self.run(move || {
            ["netstat", "snmp"]
                .iter()
                .find_map(|file| {
                    let text = fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok()?;
                    // A line of names, and below it a line of numbers.
                    let lines: Vec<&str> = text.lines().collect();
                    lines.chunks_exact(2).find_map(|pair| {
                        let names = pair[0].split_whitespace();
                        let mut counters = names.zip(pair[1].split_whitespace());
                        counters.find(|(found, _)| *found == name)?.1.parse().ok()
                    })
                })
                .unwrap_or_else(|| panic!("this kernel does not count {name}"))
        })
    }
}

/// Has the calling thread, not those that it starts, run before all that is ordinary.
/// It works without, but a busy machine then makes packets late.
pub(crate) fn hurry() {
    let thread = gettid().to_string();
    let _ =
        Command::new("chrt").args(["--reset-on-fork", "--fifo", "--pid", "1", &thread]).output();
}

/// Says what failed.
fn failed<E: Display>(what: &str) -> impl FnOnce(E) -> io::Error {
    move |error| io::Error::other(format!("{what}: {error}"))
}

/// Takes the calling thread into a new namespace and sets it up.
fn enter(address: Ipv4Addr, settings: &[(String, String)]) -> io::Result<Tun> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(failed("a network namespace"))?;
    for (path, value) in settings {
        fs::write(path, value).map_err(failed(path))?;
    }
    let mut device = Tun::new_named(Interface::new("path")?).map_err(failed("a TUN device"))?;
    let mut request = AddAddressV4::new(address);
    request.set_netmask(NETWORK_BITS);
    device.add_addr(request).map_err(failed("an address"))?;
    device.set_up().map_err(failed("the device"))?;
    Ok(device)
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives after this time, in order.
    Arrive(Duration),
    Lose,
}

/// Decides on a packet from a host (0 or 1).
type Decide = Arc<Mutex<dyn FnMut(usize, &Headers) -> Fate + Send>>;

/// Two hosts with a path between them.
pub(crate) struct Bed {
    pub(crate) hosts: [Host; 2],
}

impl Bed {
    /// The hosts' addresses.
    pub(crate) const ADDRESSES: [Ipv4Addr; 2] =
        [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];

    /// Sets up both hosts alike. Fails where this is not allowed or not possible.
    pub(crate) fn new(
        settings: &[(&str, &str)],
        decide: impl FnMut(usize, &Headers) -> Fate + Send + 'static,
    ) -> io::Result<Bed> {
        let decide: Decide = Arc::new(Mutex::new(decide));
        let (first, a) = Host::open(Bed::ADDRESSES[0], settings)?;
        let (second, b) = Host::open(Bed::ADDRESSES[1], settings)?;
        let (a, b) = (Arc::new(a), Arc::new(b));
        carry(0, &a, &b, &decide);
        carry(1, &b, &a, &decide);
        Ok(Bed { hosts: [first, second] })
    }
}

/// Carries what the host `from` sends, for as long as the process lives: nothing
/// interrupts the reading of a device.
fn carry(from: usize, source: &Arc<Tun>, target: &Arc<Tun>, decide: &Decide) {
    let (flying, arriving) = mpsc::channel::<(Instant, Vec<u8>)>();
    let (source, target, decide) = (source.clone(), target.clone(), decide.clone());
    thread::spawn(move || {
        hurry();
        let mut buffer = [0; LARGEST_PACKET];
        while let Ok(length) = source.recv(&mut buffer) {
            let now = Instant::now();
            let packet = &buffer[..length];
            let Ok(headers) = Headers::read(Link::RawIp, packet) else { continue };
            let fate = decide.lock().expect("deciding does not panic")(from, &headers);
            if let Fate::Arrive(delay) = fate
                && flying.send((now + delay, packet.to_vec())).is_err()
            {
                return;
            }
        }
    });
    thread::spawn(move || {
        hurry();
        for (due, packet) in arriving {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if target.send(&packet).is_err() {
                return;
            }
        }
    });
}
