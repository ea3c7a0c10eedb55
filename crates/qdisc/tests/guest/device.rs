//! A device whose packets vanish, so that nothing but the way to it takes time.

use std::fs;
use std::io::{self, Write as _};
use std::net::UdpSocket;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt::SndBufForce};
use tidegate_core::framing::Framing;
use tidegate_core::{Buffer, Rate, registry};
use tidegate_judge::host::Host;
use tidegate_link::Queue;
use tidegate_qdisc::missing;
use tidegate_qdisc::programs::Program;

/// What a sender may have in the queue: more than any test queues.
const ROOM: usize = 1 << 26;
/// The port of the first flow.
const PORT: u16 = 4_000;
/// Ports that a flood uses of each address.
const PORTS: u32 = 50_000;
/// How long anything may take that happens by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Says that a test cannot run here.
pub(crate) fn skip(test: &str, reason: &str) {
    // Past the harness, which hides what a test that passes prints.
    writeln!(io::stderr(), "SKIP {test}: {reason}").expect("standard error is open");
}

/// A host on a kernel that has BPF qdiscs; `None`, and why, if this machine cannot have it.
pub(crate) fn host(test: &str) -> Option<Host> {
    if let Some(reason) = missing() {
        skip(test, &reason);
        return None;
    }
    Host::new().map_err(|missing| skip(test, &missing.0)).ok()
}

/// A host with two devices, `out` and `other`.
pub(crate) struct Device {
    host: Host,
}

impl Device {
    /// `None`, and why, if this machine cannot have it.
    pub(crate) fn new(test: &str) -> Option<Device> {
        let host = host(test)?;
        for (name, network) in [("out", 9), ("other", 8)] {
            for line in [
                format!("link add {name} type dummy"),
                // Nobody but the test sends anything.
                format!("link set {name} addrgenmode none arp off"),
                format!("address add 10.{network}.0.1/16 dev {name}"),
                format!("link set {name} up"),
            ] {
                host.words("ip", &line).unwrap();
            }
        }
        Some(Device { host })
    }

    pub(crate) fn ip(&self, line: &str) {
        self.host.words("ip", line).unwrap();
    }

    /// Runs `tc`: what it prints, or what it complains of.
    pub(crate) fn tc(&self, line: &str) -> Result<String, String> {
        let words: Vec<String> = line.split(' ').map(Into::into).collect();
        let output = self.host.run(move || Command::new("tc").args(words).output()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// A `tc` that waits for lines.
    pub(crate) fn waiting_tc(&self) -> WaitingTc {
        let start = || Command::new("tc").args(["-batch", "-"]).stdin(Stdio::piped()).spawn();
        let mut process = self.host.run(start).unwrap();
        let lines = process.stdin.take().unwrap();
        WaitingTc { process, lines: Some(lines) }
    }

    /// Packets that have left by `out`.
    pub(crate) fn sent(&self) -> u64 {
        let table = self.host.run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
        let line = table.lines().find_map(|line| line.trim().strip_prefix("out:")).unwrap();
        line.split_whitespace().nth(9).unwrap().parse().unwrap()
    }

    pub(crate) fn sender(&self) -> Sender {
        let socket = self.host.run(|| UdpSocket::bind(("10.9.0.1", 3_000))).unwrap();
        setsockopt(&socket, SndBufForce, &ROOM).unwrap();
        Sender(socket)
    }
}

/// A `tc` that does at once what it is told; what fails shows in what is then not as it
/// should be.
pub(crate) struct WaitingTc {
    process: Child,
    lines: Option<ChildStdin>,
}

impl WaitingTc {
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.lines.as_mut().unwrap(), "{line}").unwrap();
    }
}

impl Drop for WaitingTc {
    fn drop(&mut self) {
        self.lines = None;
        let _ = self.process.wait();
    }
}

/// Sends datagrams through `out`; who they are for tells the flows.
pub(crate) struct Sender(UdpSocket);

impl Sender {
    /// A datagram with so much payload.
    pub(crate) fn send(&self, flow: u16, payload: usize) {
        // What the queue loses is an error to some kernels.
        let _ = self.0.send_to(&[0; 1_472][..payload], ("10.9.0.2", PORT + flow));
    }

    /// So many, each the first of its flow.
    pub(crate) fn flood(&self, count: u32) {
        for number in 0..count {
            let address = [10, 9, 1, (number / PORTS) as u8];
            let port = 1_024 + (number % PORTS) as u16;
            let _ = self.0.send_to(&[0; 22], (std::net::Ipv4Addr::from(address), port));
        }
    }
}

/// Waits until something is so; whether it came to be.
pub(crate) fn comes(mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A queue with the settings that the discipline has by itself.
pub(crate) fn queue(program: &Program, packets: u32, rate: Rate) -> Queue {
    let entry = registry::find(program.discipline).unwrap();
    Queue {
        entry,
        settings: entry.settings(&[]).unwrap(),
        limit: Buffer::packets(packets).into(),
        rate,
        framing: Framing::RAW,
    }
}
