//! The live link between real interfaces, with the kernel's TCP on both sides.
//!
//! All hosts are in networks of their own, joined by `veth` whose offloads are on, so that
//! super-packets of up to 64 kB arrive. This takes root's rights; where they are missing the
//! tests say so.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tidegate_core::framing::{Carrier, Framing};
use tidegate_core::{Buffer, Bytes, Rate};
use tidegate_judge::carry::{Bed, queue};
use tidegate_judge::host::{Host, Missing};
use tidegate_link::{Change, Direction, Failures, Queue, Running, Status};

/// Ethernet's header.
const ETHERNET: Framing =
    Framing { overhead: Bytes(14), least: Bytes::ZERO, carrier: Carrier::Bytes };
const PROVIDER: &str = "192.0.2.1";
const PROVIDER6: &str = "2001:db8::1";

fn bed() -> Option<Bed> {
    let missing = match Bed::new() {
        Ok(bed) => return Some(bed),
        Err(missing) => missing,
    };
    skip("the live link", &missing);
    None
}

/// Says so past the harness, which hides what a test that passes prints.
fn skip(what: &str, missing: &Missing) {
    writeln!(io::stderr(), "SKIP {what}: {missing}").expect("standard error is open");
}

fn link(bed: &Bed, discipline: &str, rate: Rate) -> Running {
    let queue =
        Queue { limit: Buffer::packets(300).into(), framing: ETHERNET, ..queue(discipline, rate) };
    bed.link(queue.clone(), queue).unwrap()
}

/// The user fetches so much from the provider; returns the time that it took, without that
/// to its first byte.
fn fetch(bed: &Bed, from: &'static str, size: usize) -> Duration {
    let (ready, listening) = mpsc::channel();
    let served = bed.provider.begin(move || {
        let listener = TcpListener::bind((from, 0)).unwrap();
        ready.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        stream.write_all(&bytes).unwrap();
    });
    let address = listening.recv().unwrap();
    let took = bed.user.run(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut buffer = vec![0; size];
        let first = stream.read(&mut buffer).unwrap();
        let begun = Instant::now();
        stream.read_exact(&mut buffer[first..]).unwrap();
        let took = begun.elapsed();
        assert!(buffer.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
        took.mul_f64(size as f64 / (size - first) as f64)
    });
    served.recv().unwrap();
    took
}

/// Packets that came are sent, lost or still there, and nothing failed.
fn assert_conserved(status: &Status) {
    for queue in &status.queues {
        let counts = queue.counts;
        let accounted = counts.sent_packets + counts.lost.all() + u64::from(queue.queued_packets);
        assert_eq!(counts.arrived_packets, accounted, "{queue:?}");
        assert_eq!(queue.failures, Failures::default(), "{queue:?}");
    }
}

/// A counter of `/proc/thread-self/net/snmp` on a host.
fn counter(host: &Host, protocol: &'static str, name: &'static str) -> u64 {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|(it, _)| *it == name).unwrap().1.parse().unwrap()
}

#[test]
fn a_download_gets_the_rate_and_a_new_rate_holds_at_once() {
    let Some(bed) = bed() else { return };
    let link = link(&bed, "efd", Rate(20_000_000));
    // 1 448 bytes of payload in frames of 1 514.
    let expected = 2e6 * 8.0 * (1_514.0 / 1_448.0) / 20e6;
    let took = fetch(&bed, PROVIDER, 2_000_000).as_secs_f64();
    assert!((took / expected - 1.0).abs() < 0.05, "{took} s, expected {expected} s");
    let change = Change { rate: Some(Rate(40_000_000)), ..Change::default() };
    link.change(Direction::Down, &change).unwrap();
    let took = fetch(&bed, PROVIDER, 2_000_000).as_secs_f64();
    assert!((took / expected * 2.0 - 1.0).abs() < 0.05, "{took} s, expected {}", expected / 2.0);
    let status = link.stop();
    assert_conserved(&status);
    assert!(status.queues[0].counts.split_frames > 100, "{status:?}");
    assert_eq!(status.queues[0].rate_bps, 40_000_000);
    assert_eq!(counter(&bed.user, "Tcp:", "InCsumErrors"), 0);
}

#[test]
fn marks_are_written_into_packets_and_senders_heed_them() {
    let Some(bed) = bed() else { return };
    for host in [&bed.provider, &bed.user] {
        host.set("ipv4/tcp_ecn", "1").unwrap();
        host.words("ip", "address add 2001:db8::1/64 dev lan nodad").ok();
    }
    bed.user.words("ip", "address del 2001:db8::1/64 dev lan").unwrap();
    bed.user.words("ip", "address add 2001:db8::2/64 dev lan nodad").unwrap();
    let link = link(&bed, "fq-codel", Rate(10_000_000));
    for from in [PROVIDER, PROVIDER6] {
        fetch(&bed, from, 2_000_000);
    }
    let status = link.stop();
    assert_conserved(&status);
    let counts = status.queues[0].counts;
    assert!(counts.marked_packets > 5, "{counts:?}");
    // CoDel keeps a queue of 5 ms: senders that did not react would fill the buffer.
    assert_eq!(counts.lost.all(), 0, "{counts:?}");
    assert!(status.queues[0].delay.p50_ms < 30.0, "{:?}", status.queues[0].delay);
    assert_eq!(counter(&bed.user, "Tcp:", "InCsumErrors"), 0);
    assert_eq!(counter(&bed.user, "Ip:", "InHdrErrors"), 0);
}

#[test]
fn tags_fragments_and_jumbo_frames_pass() {
    let Some(bed) = bed() else { return };
    let link = link(&bed, "fq-codel", Rate(50_000_000));
    let tagged =
        [(&bed.provider, "10.9.0.1/24"), (&bed.user, "10.9.0.2/24")].map(|(host, address)| {
            host.words("ip", "link add link lan name tagged type vlan id 5")?;
            host.words("ip", &format!("address add {address} dev tagged"))?;
            host.words("ip", "link set tagged up")
        });
    match tagged.into_iter().find_map(Result::err) {
        Some(missing) => skip("frames with tags", &missing),
        None => drop(fetch(&bed, "10.9.0.1", 500_000)),
    }
    // Three fragments at the usual size, and one packet where frames may be large.
    let datagram = || {
        let socket = bed.user.run(|| UdpSocket::bind(("192.0.2.2", 0)).unwrap());
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let to = socket.local_addr().unwrap();
        bed.provider
            .run(move || UdpSocket::bind((PROVIDER, 0)).unwrap().send_to(&[5; 4_000], to).unwrap());
        bed.user.run(move || {
            let mut buffer = [0; 5_000];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], [5; 4_000]);
        });
    };
    datagram();
    assert_eq!(counter(&bed.user, "Ip:", "ReasmOKs"), 1);
    for host in [&bed.provider, &bed.user] {
        host.words("ip", "link set lan mtu 9000").unwrap();
    }
    for name in ["inside", "outside"] {
        bed.middle.words("ip", &format!("link set {name} mtu 9000")).unwrap();
    }
    datagram();
    assert_eq!(counter(&bed.user, "Ip:", "ReasmOKs"), 1);
    let took = fetch(&bed, PROVIDER, 2_000_000).as_secs_f64();
    let expected = 2e6 * 8.0 * (9_014.0 / 8_948.0) / 50e6;
    assert!((took / expected - 1.0).abs() < 0.05, "{took} s, expected {expected} s");
    assert_conserved(&link.stop());
}

#[test]
fn tcp_gets_the_rate_without_offloads_too() {
    let Some(bed) = bed() else { return };
    for host in [&bed.provider, &bed.user] {
        if let Err(missing) = host.words("ethtool", "-K lan tso off gso off gro off tx off") {
            return skip("offloads off", &missing);
        }
    }
    let link = link(&bed, "efd", Rate(20_000_000));
    let expected = 2e6 * 8.0 * (1_514.0 / 1_448.0) / 20e6;
    let took = fetch(&bed, PROVIDER, 2_000_000).as_secs_f64();
    assert!((took / expected - 1.0).abs() < 0.05, "{took} s, expected {expected} s");
    let status = link.stop();
    assert_conserved(&status);
    assert_eq!(status.queues[0].counts.split_frames, 0);
}

#[test]
fn an_interface_that_vanishes_ends_the_link_and_one_that_is_down_does_not() {
    let Some(bed) = bed() else { return };
    let link = link(&bed, "efd", Rate(20_000_000));
    bed.middle.words("ip", "link set inside down").unwrap();
    sleep(Duration::from_millis(1_200));
    assert!(link.failed().is_none(), "{:?}", link.failed());
    bed.middle.words("ip", "link set inside up").unwrap();
    fetch(&bed, PROVIDER, 100_000);
    bed.middle.words("ip", "link del inside").unwrap();
    let begun = Instant::now();
    let failure = loop {
        match link.failed() {
            Some(failure) => break failure,
            None if begun.elapsed() > Duration::from_secs(3) => panic!("nothing was noticed"),
            None => sleep(Duration::from_millis(20)),
        }
    };
    assert_eq!(failure.to_string(), "the interface 'inside' has vanished");
    // Whoever asks a link that has ended is not left waiting.
    let _ = link.status();
    let change = Change { rate: Some(Rate(1_000_000)), ..Change::default() };
    let _ = link.change(Direction::Down, &change);
    let _ = link.stop();
}

#[test]
fn nothing_is_left_of_a_link_that_has_ended() {
    let Some(bed) = bed() else { return };
    let state =
        || bed.middle.run(|| std::fs::read_to_string("/proc/thread-self/net/packet").unwrap());
    let flags = || {
        let flags = ["inside", "outside"].map(|name| {
            // The namespace's own /sys is not mounted: ask the kernel.
            bed.middle.run(move || {
                let out =
                    std::process::Command::new("ip").args(["-d", "link", "show", name]).output();
                String::from_utf8(out.unwrap().stdout).unwrap()
            })
        });
        flags.map(|text| text.contains("promiscuity 0"))
    };
    let before = state();
    assert_eq!(flags(), [true, true]);
    let running = link(&bed, "efd", Rate(20_000_000));
    assert_eq!(flags(), [false, false]);
    drop(running);
    assert_eq!((state(), flags()), (before, [true, true]));
}
