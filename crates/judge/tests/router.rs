//! The live link as keeper of a router's queue, with the kernel's TCP on both sides.
//!
//! The router routes as before; its packet filter has the kernel hold what passes the
//! interface to the provider, and the link says what leaves, and when. This takes root's
//! rights, NFQUEUE, and nftables or iptables; where something is missing the test says so.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use tidegate_core::{Buffer, Bytes, Rate};
use tidegate_judge::carry::queue;
use tidegate_judge::host::{Host, Missing};
use tidegate_link::nfqueue::filter;
use tidegate_link::nfqueue::rules::{Name, Rules};
use tidegate_link::{Change, Config, Direction, Failures, Form, Link, Queue};

const PROVIDER: &str = "198.51.100.1";
const RATE: Rate = Rate(20_000_000);

/// A provider, a router and a user, in a row.
struct Bed {
    provider: Host,
    router: Host,
    user: Host,
}

impl Bed {
    fn new() -> Result<Bed, Missing> {
        let (provider, router, user) = (Host::new()?, Host::new()?, Host::new()?);
        router.set("ipv4/ip_forward", "1").unwrap();
        for (host, name, network) in [(&provider, "wan", "198.51.100"), (&user, "lan", "192.0.2")] {
            let peer = host.thread();
            router.words("ip", &format!("link add {name} type veth peer name eth netns {peer}"))?;
            router.words("ip", &format!("address add {network}.254/24 dev {name}"))?;
            router.words("ip", &format!("link set {name} up"))?;
            host.words("ip", &format!("address add {network}.1/24 dev eth"))?;
            host.words("ip", "link set eth up")?;
            host.words("ip", &format!("route add default via {network}.254"))?;
        }
        Ok(Bed { provider, router, user })
    }

    /// Downloads so much; returns the seconds that it took.
    fn fetch(&self, size: usize) -> f64 {
        let (ready, listening) = mpsc::channel();
        let served = self.provider.begin(move || {
            let listener = TcpListener::bind((PROVIDER, 0)).unwrap();
            ready.send(listener.local_addr().unwrap()).unwrap();
            listener.accept().unwrap().0.write_all(&vec![7; size]).unwrap();
        });
        let address = listening.recv().unwrap();
        let took = self.user.run(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut buffer = vec![0; size];
            let first = stream.read(&mut buffer).unwrap();
            let begun = Instant::now();
            stream.read_exact(&mut buffer[first..]).unwrap();
            assert!(buffer.iter().all(|byte| *byte == 7));
            begun.elapsed().mul_f64(size as f64 / (size - first) as f64).as_secs_f64()
        });
        served.recv().unwrap();
        took
    }
}

fn skip(missing: &dyn std::fmt::Display) {
    writeln!(io::stderr(), "SKIP the keeper of a router's queue: {missing}")
        .expect("standard error is open");
}

#[test]
fn a_router_gets_its_rate_marks_and_order_from_the_link() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(missing) => return skip(&missing),
    };
    for host in [&bed.provider, &bed.user] {
        host.set("ipv4/tcp_ecn", "1").unwrap();
    }
    let config = Config {
        form: Form::Router { outside: "wan".into(), fail_open: false },
        // Room for all that a sender has under way before the first marks reach it.
        down: Queue { limit: Buffer::bytes(Bytes(4_000_000)).into(), ..queue("fq-codel", RATE) },
        up: queue("efd", RATE),
        memory: Bytes(16_000_000),
        seed: 1,
    };
    let opened = bed.router.run(move || {
        let link = Link::open(config).map_err(|error| error.to_string())?;
        let [down, up] = link.numbers().unwrap();
        let rules = Rules::new(Name::new("bed").unwrap(), "wan", down, up, false).unwrap();
        filter::set(&rules).map_err(|error| error.to_string())?;
        link.start().map_err(|error| error.to_string())
    });
    let link = match opened {
        Ok(link) => link,
        Err(missing) => return skip(&missing),
    };
    // IP packets of 1 500 bytes with 1 448 of payload.
    let expected = 2e6 * 8.0 * (1_500.0 / 1_448.0) / 20e6;
    let took = bed.fetch(2_000_000);
    assert!((took / expected - 1.0).abs() < 0.05, "{took} s, expected {expected} s");
    let change = Change { rate: Some(Rate(40_000_000)), ..Change::default() };
    link.change(Direction::Down, &change).unwrap();
    let took = bed.fetch(2_000_000);
    assert!((took / expected * 2.0 - 1.0).abs() < 0.05, "{took} s, expected {}", expected / 2.0);

    bed.router.run(|| filter::remove(&Name::new("bed").unwrap())).unwrap();
    let status = link.stop();
    for queue in &status.queues {
        let counts = queue.counts;
        let accounted = counts.sent_packets + counts.lost.all() + u64::from(queue.queued_packets);
        assert_eq!(counts.arrived_packets, accounted, "{queue:?}");
        assert_eq!(queue.failures, Failures::default(), "{queue:?}");
    }
    let down = &status.queues[0];
    assert!(down.counts.marked_packets > 0, "{down:?}");
    assert_eq!(down.counts.lost.all(), 0, "{down:?}");
    // And nothing is held any more.
    let took = bed.fetch(2_000_000);
    assert!(took < expected / 4.0, "{took} s without the link");
}
