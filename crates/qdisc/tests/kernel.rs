//! What the kernel makes of the programs: it takes them, orders packets as `core` does, and
//! forgets them without a trace.
//!
//! This takes root's rights, `ip`, `tc`, and a kernel that has BPF qdiscs; elsewhere, a test
//! prints `SKIP` and the reason. `make kernel-qdisc` runs all of them in a guest.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{self, Write as _};
use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGsoSegment;
use tidegate_core::entry::Place;
use tidegate_core::framing::Framing;
use tidegate_core::{Buffer, Bytes, Egress, FlowKey, Packet, Poll, Rate, Span, Time, registry};
use tidegate_judge::host::Host;
use tidegate_link::Queue;
use tidegate_qdisc::programs::{PROGRAMS, Program, find};
use tidegate_qdisc::{Qdisc, missing};

/// Where the packets go.
const PORT: u16 = 4_000;
/// The sender of flow 0; the others follow.
const FROM: u16 = 5_000;
/// Bytes of the headers of a datagram.
const HEADERS: usize = 28;
/// How long it takes to see that nothing more comes.
const PATIENCE: Duration = Duration::from_millis(300);

/// A device with a queue, and the other end of its cable.
struct Bed {
    near: Host,
    /// Has the other end for as long as the bed is there.
    _far: Host,
    to: UdpSocket,
}

/// The hosts; `None`, and why, if this machine cannot have them.
fn bed(test: &str) -> Option<Bed> {
    let skip = |reason: &str| {
        // Past the harness, which hides what a test that passes prints.
        writeln!(io::stderr(), "SKIP {test}: {reason}").expect("standard error is open");
    };
    if let Some(reason) = missing() {
        skip(&reason);
        return None;
    }
    match Host::new().and_then(|near| Ok((near, Host::new()?))) {
        Ok((near, far)) => Some(Bed::of(near, far)),
        Err(missing) => {
            skip(&missing.0);
            None
        }
    }
}

impl Bed {
    fn of(near: Host, far: Host) -> Bed {
        let other = far.thread();
        near.words("ip", &format!("link add near type veth peer name far netns {other}")).unwrap();
        for (host, name, own, peer) in [(&near, "near", 1, 2), (&far, "far", 2, 1)] {
            // Nobody but the test sends anything: no address of IPv6, no question of ARP.
            host.words(
                "ip",
                &format!("link set {name} addrgenmode none address 02:00:00:00:00:0{own}"),
            )
            .unwrap();
            host.words("ip", &format!("address add 10.9.0.{own}/24 dev {name}")).unwrap();
            host.words("ip", &format!("link set {name} up")).unwrap();
            host.words(
                "ip",
                &format!("neighbour add 10.9.0.{peer} lladdr 02:00:00:00:00:0{peer} dev {name}"),
            )
            .unwrap();
        }
        let to = far.run(|| UdpSocket::bind(("10.9.0.2", PORT)).unwrap());
        to.set_read_timeout(Some(PATIENCE)).unwrap();
        Bed { near, _far: far, to }
    }

    fn tc(&self, line: &str) -> Result<String, String> {
        let words: Vec<String> = line.split(' ').map(Into::into).collect();
        let output = self.near.run(move || Command::new("tc").args(words).output()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// The sockets of so many flows.
    fn flows(&self, from: u16, count: u16) -> Vec<UdpSocket> {
        self.near.run(move || {
            let socket = |flow| UdpSocket::bind(("10.9.0.1", from + flow)).unwrap();
            (0..count).map(socket).collect()
        })
    }

    /// The numbers of the packets that come, in their order.
    fn received(&self) -> Vec<u64> {
        let next = || {
            let mut bytes = [0; 2_048];
            self.to.recv(&mut bytes).ok()?;
            bytes.first_chunk().copied().map(u64::from_be_bytes)
        };
        std::iter::from_fn(next).collect()
    }
}

/// A packet that is to be sent: its flow, and how many bytes of IP it has.
#[derive(Clone, Copy, Debug)]
struct Sent {
    flow: u16,
    size: usize,
}

/// The same sequence for everybody: bursts of few flows, of other sizes in each.
fn arrivals(count: usize, flows: u16) -> Vec<Sent> {
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut all = Vec::new();
    while all.len() < count {
        // Low numbers more often.
        let flow = next(u64::from(flows)).min(next(u64::from(flows))) as u16;
        let size = 200 + 7 * usize::from(flow);
        all.extend((0..=next(4)).map(|_| Sent { flow, size }));
    }
    all.truncate(count);
    all
}

fn send(sockets: &[UdpSocket], arrivals: &[Sent]) {
    for (number, Sent { flow, size }) in arrivals.iter().enumerate() {
        let mut bytes = (number as u64).to_be_bytes().to_vec();
        bytes.resize(size - HEADERS, 0);
        // What the queue loses is an error to some kernels.
        let _ = sockets[usize::from(*flow)].send_to(&bytes, ("10.9.0.2", PORT));
    }
}

/// What is left, in its order, if nothing leaves before all have come.
fn through_core(queue: &Queue, from: u16, arrivals: &[Sent]) -> Vec<u64> {
    let place = Place::from(queue.buffer()).at_rate(queue.rate);
    let mut egress = Egress::new((queue.entry.build)(&queue.settings, place, 7), queue.rate);
    let mut now = Time::ZERO;
    for (number, Sent { flow, size }) in arrivals.iter().enumerate() {
        now += Span::micros(1);
        let key = FlowKey::v4([10, 9, 0, 1], from + flow, [10, 9, 0, 2], PORT, FlowKey::UDP);
        egress.offer(now, Packet::new(number as u64, key, Bytes(*size as u64)));
    }
    let mut sent = Vec::new();
    loop {
        match egress.poll(now) {
            Poll::Packet { packet, .. } => sent.push(packet.handle),
            Poll::ReadyAt(time) => now = time,
            Poll::Idle => return sent,
        }
    }
}

fn queue(program: &Program, packets: u32, rate: Rate) -> Queue {
    let entry = registry::find(program.discipline).unwrap();
    // Nothing decays while the test runs, flows have more than is small, and one flow of each
    // round is promised less than it takes.
    let flows = "link 1 Mbit/s; packets to 1500 B; \
        promised = port 5001: 100 kB + 8 bit/s within 10 s; \
        weighted = port 5102: weight 3";
    let sizes = [("threshold", "1 kB"), ("credit", "1 kB")];
    let slow = [("half_life", "86400 s"), sizes[0], sizes[1], ("flows", flows)];
    let has = |name: &str| entry.parameters.iter().any(|parameter| parameter.name == name);
    let given: Vec<_> = slow.into_iter().filter(|(name, _)| has(name)).collect();
    Queue {
        entry,
        settings: entry.settings(&given).unwrap(),
        limit: Buffer::packets(packets).into(),
        rate,
        framing: Framing::RAW,
    }
}

/// The longest time that any packet of a call took to the other end, beside a flood of more
/// than twice the rate.
fn slowest_of_a_call(bed: &Bed, queue: &Queue) -> Duration {
    const CALL: u16 = 5_060;
    const PACKETS: u32 = 150;
    let program = find(queue.entry.name).unwrap();
    let qdisc = Qdisc::load(program, queue, true, "").unwrap();
    bed.tc(&format!("qdisc add dev near root {}", qdisc.name())).unwrap();
    let start = Instant::now();
    let end = start + Duration::from_millis(20) * PACKETS;
    let [call, flood] = [CALL, CALL + 1].map(|port| bed.flows(port, 1).remove(0));
    let sends = [(call, 172, 20), (flood, 1_172, 2)].map(|(socket, payload, every_ms)| {
        thread::spawn(move || {
            let mut due = start;
            while due < end {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let mut bytes = (start.elapsed().as_nanos() as u64).to_be_bytes().to_vec();
                bytes.resize(payload, 0);
                let _ = socket.send_to(&bytes, ("10.9.0.2", PORT));
                due += Duration::from_millis(every_ms);
            }
        })
    });
    let mut delays = Vec::new();
    let mut bytes = [0; 2_048];
    while let Ok((_, from)) = bed.to.recv_from(&mut bytes) {
        let sent = u64::from_be_bytes(*bytes.first_chunk().unwrap());
        if from.port() == CALL {
            delays.push(start.elapsed().saturating_sub(Duration::from_nanos(sent)));
        }
    }
    sends.into_iter().for_each(|sends| sends.join().unwrap());
    bed.tc("qdisc del dev near root").unwrap();
    qdisc.remove().unwrap();
    // A queue without promises loses some of them.
    assert!(delays.len() > PACKETS as usize / 10, "{} of {PACKETS}", delays.len());
    assert!(queue.entry.name == "fifo" || delays.len() == PACKETS as usize);
    delays.into_iter().max().unwrap()
}

#[test]
fn a_call_gets_what_it_was_promised() {
    let Some(bed) = bed("a_call_gets_what_it_was_promised") else { return };
    let flows = "link 2 Mbit/s; packets to 1500 B; \
        calls = udp and port 5060: 400 B + 88 kbit/s within 20 ms";
    let of = |discipline: &str, given: &[(&str, &str)]| {
        let entry = registry::find(discipline).unwrap();
        Queue {
            entry,
            settings: entry.settings(given).unwrap(),
            limit: Buffer::packets(100).into(),
            rate: Rate(2_000_000),
            framing: Framing::RAW,
        }
    };
    let with = slowest_of_a_call(&bed, &of("deadlines", &[("flows", flows)]));
    let without = slowest_of_a_call(&bed, &of("fifo", &[]));
    println!(
        "a call beside a flood: at most {with:?} with a promise of 20 ms, {without:?} without"
    );
    // The kernel's timers and this program's threads come late, too.
    assert!(with < Duration::from_millis(21), "{with:?}");
    assert!(without > Duration::from_millis(200), "{without:?}");
}

/// A packet that is several: it cannot be split in the kernel, so it counts as what it will be.
#[test]
fn a_super_packet_counts_as_its_packets_and_leaves_in_one_piece() {
    const PAYLOAD: usize = 1_000;
    const PACKETS: usize = 5;
    let Some(bed) = bed("a_super_packet_counts_as_its_packets_and_leaves_in_one_piece") else {
        return;
    };
    for program in PROGRAMS {
        let closed = queue(program, 100, CLOSED);
        let qdisc = Qdisc::load(program, &closed, true, "").unwrap();
        bed.tc(&format!("qdisc add dev near root {}", qdisc.name())).unwrap();
        let socket = bed.flows(FROM, 1).remove(0);
        setsockopt(&socket, UdpGsoSegment, &i32::try_from(PAYLOAD).unwrap()).unwrap();
        // The last one is shorter.
        let bytes = vec![0; PAYLOAD * PACKETS - 300];
        socket.send_to(&bytes, ("10.9.0.2", PORT)).unwrap();
        let statistics = qdisc.statistics().unwrap();
        let word = |name| statistics.word(name) as usize;
        let of = program.discipline;
        assert_eq!(word("super_packets"), 1, "{of}");
        assert_eq!([word("arrived_packets"), word("queued_packets")], [PACKETS; 2], "{of}");
        assert_eq!(word("arrived_bytes"), bytes.len() + PACKETS * HEADERS, "{of}");
        let status = bed.tc("-s qdisc show dev near").unwrap();
        assert!(status.contains(&format!("backlog {}b 1p", word("arrived_bytes"))), "{status}");
        qdisc.change(&Queue { rate: FAST, ..closed }, true).unwrap();
        let mut found = vec![0; 2_048];
        let lengths: Vec<usize> = std::iter::from_fn(|| bed.to.recv(&mut found).ok()).collect();
        assert_eq!(lengths, [PAYLOAD, PAYLOAD, PAYLOAD, PAYLOAD, PAYLOAD - 300], "{of}");
        assert_eq!(qdisc.statistics().unwrap().word("sent_packets"), PACKETS as u64, "{of}");
        bed.tc("qdisc del dev near root").unwrap();
        qdisc.remove().unwrap();
    }
}

const FAST: Rate = Rate(1_000_000_000);
const CLOSED: Rate = Rate(0);

#[test]
fn every_program_orders_packets_as_core_does() {
    let Some(bed) = bed("every_program_orders_packets_as_core_does") else { return };
    for program in PROGRAMS {
        let closed = queue(program, 100, CLOSED);
        let open = Queue { rate: FAST, ..closed.clone() };
        let qdisc = Qdisc::load(program, &closed, true, "a note").unwrap();
        assert_eq!(qdisc.note().unwrap(), "a note");
        bed.tc(&format!("qdisc add dev near root {}", qdisc.name())).unwrap();
        for (round, count) in [60, 160].into_iter().enumerate() {
            // Other flows each time: some disciplines remember those of before.
            let from = FROM + 100 * round as u16;
            let sockets = bed.flows(from, 8);
            let arrivals = arrivals(count, 8);
            let before = qdisc.statistics().unwrap();
            qdisc.change(&closed, true).unwrap();
            send(&sockets, &arrivals);
            let statistics = qdisc.statistics().unwrap();
            let since = |name| statistics.word(name) - before.word(name);
            assert_eq!(since("arrived_packets"), count as u64, "{}", program.discipline);
            assert_eq!(statistics.word("queued_packets"), count.min(100) as u64);
            assert_eq!(
                since("refused_packets") + since("pushed_out_packets"),
                count.saturating_sub(100) as u64
            );
            qdisc.change(&open, true).unwrap();
            let expected = through_core(&open, from, &arrivals);
            assert_eq!(bed.received(), expected, "{} with {count}", program.discipline);
        }
        let status = bed.tc("-s qdisc show dev near").unwrap();
        assert!(status.contains("backlog 0b 0p"), "{status}");
        assert!(status.contains("(dropped 60,"), "{status}");
        bed.tc("qdisc del dev near root").unwrap();
        assert_eq!(qdisc.statistics().unwrap().word("in_use"), 0);
        qdisc.remove().unwrap();
    }
    assert_eq!(Qdisc::all(), []);
    assert!(bed.tc(&format!("qdisc add dev near root {}_1", PROGRAMS[0].discipline)).is_err());
}
