//! The live link between real interfaces, with the kernel's TCP on both sides.
//!
//! ```text
//! provider === outside [link] inside === user
//! ```
//!
//! Three hosts in networks of their own, joined by `veth`, with all offloads of the kernel
//! on. This takes root's rights; where they are missing the tests say so.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tidegate_core::framing::Framing;
use tidegate_core::{Buffer, Bytes, Rate, registry};
use tidegate_judge::host::{Host, Missing};
use tidegate_link::{Change, Config, Direction, Link, Queue, Running, Status};

/// Ethernet's header, which the kernel's shapers count, too.
const ETHERNET: Framing = Framing {
    overhead: Bytes(14),
    least: Bytes::ZERO,
    carrier: tidegate_core::framing::Carrier::Bytes,
};

struct Bed {
    provider: Host,
    user: Host,
    middle: Host,
}

impl Bed {
    fn new() -> Result<Bed, Missing> {
        let (provider, middle, user) = (Host::new()?, Host::new()?, Host::new()?);
        let ends = [(&provider, "outside", "192.0.2.1"), (&user, "inside", "192.0.2.2")];
        for (host, name, address) in ends {
            let peer = host.thread();
            middle.words("ip", &format!("link add {name} type veth peer name lan netns {peer}"))?;
            host.words("ip", &format!("address add {address}/24 dev lan"))?;
            host.words("ip", "link set lan up")?;
            middle.words("ip", &format!("link set {name} up"))?;
        }
        Ok(Bed { provider, user, middle })
    }

    fn link(&self, discipline: &str, rate: Rate) -> Running {
        let entry = registry::find(discipline).unwrap();
        let queue = Queue {
            entry,
            settings: entry.settings(&[]).unwrap(),
            limit: Buffer::packets(300).into(),
            rate,
            framing: ETHERNET,
        };
        let config = Config {
            inside: "inside".into(),
            outside: "outside".into(),
            down: queue.clone(),
            up: queue,
            memory: Bytes(32_000_000),
            seed: 1,
        };
        self.middle.run(move || Link::open(config).unwrap().start().unwrap())
    }

    /// The user fetches so much from the provider; returns the time from its first byte to
    /// its last one.
    fn fetch(&self, size: usize) -> Duration {
        let (ready, listening) = std::sync::mpsc::channel();
        let served = self.provider.begin(move || {
            let listener = TcpListener::bind(("192.0.2.1", 0)).unwrap();
            ready.send(listener.local_addr().unwrap()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&vec![7; size]).unwrap();
        });
        let address = listening.recv().unwrap();
        let took = self.user.run(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut buffer = vec![0; 1 << 16];
            let mut received = stream.read(&mut buffer).unwrap();
            let (first, begun) = (received, Instant::now());
            while received < size {
                let count = stream.read(&mut buffer).unwrap();
                assert!(count > 0, "the provider sends all of it");
                assert!(buffer[..count].iter().all(|byte| *byte == 7));
                received += count;
            }
            begun.elapsed().mul_f64(size as f64 / (size - first) as f64)
        });
        served.recv().unwrap();
        took
    }
}

fn bed() -> Option<Bed> {
    match Bed::new() {
        Ok(bed) => Some(bed),
        Err(missing) => {
            println!("SKIP the live link: {missing}");
            None
        }
    }
}

/// Packets that came are sent, lost or still there.
fn assert_conserved(status: &Status) {
    for queue in &status.queues {
        let counts = queue.counts;
        let accounted = counts.sent_packets + counts.lost.all() + u64::from(queue.queued_packets);
        assert_eq!(counts.arrived_packets, accounted, "{queue:?}");
        assert_eq!(queue.failures, tidegate_link::Failures::default(), "{queue:?}");
    }
}

#[test]
fn a_download_gets_the_rate_and_a_new_rate_holds_at_once() {
    let Some(bed) = bed() else { return };
    let link = bed.link("efd", Rate(20_000_000));
    // 2 MB with headers of 66 bytes for 1 448 take 0.837 s at 20 Mbit/s.
    let expected = 2e6 * 8.0 * (1_514.0 / 1_448.0) / 20e6;
    let took = bed.fetch(2_000_000).as_secs_f64();
    assert!((took / expected - 1.0).abs() < 0.05, "{took} s, expected {expected} s");
    let change = Change { rate: Some(Rate(40_000_000)), ..Change::default() };
    link.change(Direction::Down, &change).unwrap();
    let took = bed.fetch(2_000_000).as_secs_f64();
    assert!((took / expected * 2.0 - 1.0).abs() < 0.05, "{took} s, expected {}", expected / 2.0);
    let status = link.stop();
    assert_conserved(&status);
    assert!(status.queues[0].counts.split_frames > 100, "{status:?}");
    assert_eq!(status.queues[0].rate_bps, 40_000_000);
}
