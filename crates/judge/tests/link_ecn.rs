//! Congestion marks from end to end: the live link writes them, and Linux's senders heed
//! them.
//!
//! A sender with Reno, which has no other cause to leave slow start than a mark or a loss,
//! sends for some seconds over a link of 10 Mbit/s and a path of 40 ms. With marks nothing
//! is lost, and `ss -ti` shows that it has heard of them and reduced its window. Both checksums
//! of a packet are computed before the link changes its header, and verified by the
//! receiver's kernel. This takes root's rights; where they are missing the tests say so.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use tidegate_core::framing::Framing;
use tidegate_core::{Buffer, registry};
use tidegate_judge::bed::{Bed, CLIENT};
use tidegate_judge::cell::long_flow;
use tidegate_judge::host::BedError;
use tidegate_link::{Counts, Queue};

/// How long it sends: ten times the time in which CoDel marks first.
const SENDS: Duration = Duration::from_secs(3);

/// What both ends and the link saw.
struct Seen {
    counts: Counts,
    /// What `ss -ti` says of the sender's connection at the end.
    sender: String,
    /// The counters of the receiver's kernel, such as `Tcp.InCsumErrors`.
    receiver: BTreeMap<String, u64>,
    received: usize,
}

/// One connection through a bed whose link has this discipline; the sender asks for marks,
/// or does not.
fn send(discipline: &str, asks: bool) -> Option<Seen> {
    let cell = long_flow("reno");
    let entry = registry::find(discipline).expect("it is in the registry");
    let queue = Queue {
        entry,
        // Not CoDel's default, as in Linux.
        settings: entry.settings(&[("ecn", "on")]).expect("it can mark"),
        limit: Buffer::packets(1_000).into(),
        rate: cell.link.rate,
        framing: Framing::RAW,
    };
    let bed = match Bed::with_link(&cell, queue) {
        Err(BedError::Missing(reason)) => {
            // Past the harness, which hides what a test that passes prints.
            writeln!(io::stderr(), "SKIP marks of the live link: {reason}")
                .expect("standard error is open");
            return None;
        }
        bed => bed.unwrap_or_else(|error| panic!("{error}")),
    };
    bed.sender.set("ipv4/tcp_ecn", if asks { "1" } else { "0" }).expect("Linux has it");
    bed.sender.set("ipv4/tcp_congestion_control", "reno").expect("Linux has it");
    let (ready, listening) = std::sync::mpsc::channel();
    let read = bed.client.begin(move || {
        let listener = TcpListener::bind((CLIENT, 0)).expect("the port is free");
        ready.send(listener.local_addr().expect("it is bound").port()).expect("it is heard");
        let (mut stream, _) = listener.accept().expect("the sender comes");
        let (mut received, mut buffer) = (0, vec![0; 1 << 16]);
        loop {
            let count = stream.read(&mut buffer).expect("nothing breaks it");
            if count == 0 {
                return received;
            }
            assert!(buffer[..count].iter().all(|byte| *byte == 7), "nothing is changed");
            received += count;
        }
    });
    let to = SocketAddrV4::new(CLIENT, listening.recv().expect("it listens"));
    let sender = bed.sender.run(move || {
        let mut stream = TcpStream::connect(to).expect("the client listens");
        stream.set_write_timeout(Some(Duration::from_millis(100))).expect("it is not zero");
        let until = Instant::now() + SENDS;
        while Instant::now() < until {
            match stream.write(&[7; 1 << 14]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                count => drop(count.expect("nothing breaks it")),
            }
        }
        // Flags are shown with the options.
        let shown = Command::new("ss").args(["-tinoH", "dst", &to.to_string()]).output();
        String::from_utf8_lossy(&shown.expect("ss is installed").stdout).into_owned()
    });
    let received = read.recv().expect("the reader does not panic");
    let receiver = bed.client.run(counters);
    let counts = bed.status().expect("there is a link").queues[0].counts;
    Some(Seen { counts, sender, receiver, received })
}

/// The counters of this thread's network.
fn counters() -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for file in ["snmp", "netstat"] {
        let text =
            fs::read_to_string(format!("/proc/thread-self/net/{file}")).expect("Linux has it");
        let lines: Vec<&str> = text.lines().collect();
        // A line of names, and one of values.
        for pair in lines.chunks_exact(2) {
            let (Some((kind, names)), Some((_, values))) =
                (pair[0].split_once(": "), pair[1].split_once(": "))
            else {
                continue;
            };
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                counters.insert(format!("{kind}.{name}"), value.parse().unwrap_or_default());
            }
        }
    }
    counters
}

/// The number behind `name:` in the output of `ss -ti`.
fn shown(text: &str, name: &str) -> Option<u64> {
    let of_it = |word: &str| word.strip_prefix(name)?.strip_prefix(':')?.parse().ok();
    text.split_whitespace().find_map(of_it)
}

fn assert_verified(seen: &Seen) {
    for counter in ["Ip.InHdrErrors", "Tcp.InErrs", "Tcp.InCsumErrors"] {
        assert_eq!(seen.receiver.get(counter), Some(&0), "{counter}");
    }
    // 10 Mbit/s of packets are 1.2 MB of payload a second.
    assert!(seen.received > 2_500_000, "{} bytes", seen.received);
}

#[test]
fn linux_senders_heed_the_marks_of_the_link() {
    for discipline in ["codel", "fq-codel"] {
        let Some(seen) = send(discipline, true) else { return };
        let Seen { counts, sender, receiver, .. } = &seen;
        assert!(counts.marked_packets > 0, "{discipline}: {counts:?}");
        assert_eq!(counts.lost.all(), 0, "{discipline}: {counts:?}");
        assert_verified(&seen);
        // Every mark has come: the receiver's kernel counts packets that carry one.
        assert_eq!(receiver["IpExt.InCEPkts"], counts.marked_packets, "{discipline}");
        let flags: Vec<&str> = sender.split_whitespace().collect();
        // `ecnseen` is for hosts that receive data; a sender's word for marks is the last.
        assert!(flags.contains(&"ecn"), "{discipline}: {sender}");
        assert!(shown(sender, "delivered_ce").is_some_and(|count| count > 0), "{sender}");
        // It sent nothing again, and yet has left slow start.
        assert!(!sender.contains("retrans:"), "{discipline}: {sender}");
        let threshold = shown(sender, "ssthresh").unwrap_or(u64::MAX);
        let window = shown(sender, "cwnd").unwrap_or(u64::MAX);
        println!(
            "{discipline}: {} packets marked, threshold {threshold}, window {window}",
            counts.marked_packets
        );
        // A round trip of 40 ms and CoDel's 5 ms hold 38 packets of 1 500 B; slow start
        // had brought it to more than twice that within half a second.
        assert!(threshold < 120 && window < 120, "{discipline}: {sender}");
    }
}

#[test]
fn senders_that_do_not_ask_for_marks_are_told_by_losses() {
    let Some(seen) = send("fq-codel", false) else { return };
    assert_eq!(seen.counts.marked_packets, 0, "{:?}", seen.counts);
    assert!(seen.counts.lost.early > 0, "{:?}", seen.counts);
    assert!(shown(&seen.sender, "ssthresh").is_some(), "{}", seen.sender);
    assert_eq!(shown(&seen.sender, "delivered_ce"), None, "{}", seen.sender);
    assert_verified(&seen);
}
