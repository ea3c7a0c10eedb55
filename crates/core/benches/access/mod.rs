//! The access link of `BE section 5`, as an assignment of deadlines sees it.
//!
//! Three real-time and three best-effort flows, each as early as its arrival curve
//! allows, in bursts (`BE Table 3`, `Table 4`, appendix B), go through the
//! discipline `deadlines` on a link of 10 Mbit/s. The questions put to its
//! assignment are recorded: the times at which best-effort packets became the head,
//! with their sizes, and when the past was forgotten. The scenario `access.toml` is
//! the same with other draws.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_core::assignment::{Assignment, Blocking, Bounded};
use tidegate_core::contract::{Contracts, Envelope, Policer};
use tidegate_core::discipline::deadlines::{Deadlines, Excess};
use tidegate_core::residual::Residual;
use tidegate_core::{Buffer, Bytes, Discipline, FlowKey, Losses, Packet, Span, Stream, Time};

/// The flows of `BE Table 3`, and the weights of `BE Table 4`.
pub(crate) const FLOWS: &str = "link 10 Mbit/s; packets to 1536 B; \
    transactions = class 1: 700 B + 1.2 Mbit/s, 45000 B + 400 kbit/s within 20 ms; \
    video = class 2: 1536 B + 6.4 Mbit/s, 15000 B + 4.8 Mbit/s within 30 ms; \
    voice = class 3: 100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s within 5 ms; \
    ftp = class 4: weight 5; http = class 5: weight 2; mail = class 6: weight 1";

/// The sources: name, class, arrival curve, mean and deviation of the packet
/// sizes, least and most milliseconds of a burst and from one to the next.
const SOURCES: [Row; 6] = [
    ("transactions", 1, "700 B + 1.2 Mbit/s, 45000 B + 400 kbit/s", (300, 50), (5, 35), (50, 800)),
    ("video", 2, "1536 B + 6.4 Mbit/s, 15000 B + 4.8 Mbit/s", (1_700, 200), (50, 100), (10, 20)),
    ("voice", 3, "100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s", (100, 0), (2, 4), (6, 10)),
    ("ftp", 4, "1536 B + 2 Mbit/s, 30720 B + 1.2 Mbit/s", (1_700, 200), (10, 700), (100, 300)),
    ("http", 5, "1536 B + 1.2 Mbit/s, 50000 B + 800 kbit/s", (1_700, 200), (50, 400), (50, 200)),
    ("mail", 6, "1536 B + 800 kbit/s, 12288 B + 368.64 kbit/s", (1_700, 200), (5, 50), (100, 300)),
];

type Row = (&'static str, u16, &'static str, (u64, u64), (u64, u64), (u64, u64));

/// What an assignment is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    /// A packet of so many bytes became the head.
    Assign(Time, Bytes),
    /// The queue is empty.
    Reset,
}

/// The calls of so much time on the link.
pub(crate) fn calls(duration: Span) -> Vec<Call> {
    let contracts: Contracts = FLOWS.parse().expect("the flows are well-formed");
    let residual = Residual::new(&contracts).expect("the flows are schedulable");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let bounded = Bounded::new(residual.effective());
    let recorder = Box::new(Recorder { inner: bounded, calls: Arc::clone(&calls) });
    let (link, contracts) = (contracts.link, Arc::new(contracts));
    let buffer = Buffer::packets(10_000);
    let mut queue = Deadlines::new(contracts, recorder, Excess::Demote, buffer, 1);
    let mut losses = Losses::new();
    let mut sources = SOURCES.map(Greedy::new);
    let mut free = Time::ZERO;
    loop {
        let next = sources.iter_mut().min_by_key(|source| source.due.0).expect("there are six");
        let now = next.due.0;
        while free <= now
            && let Some(packet) = queue.dequeue(free, &mut losses)
        {
            free += link.transmission(packet.size);
        }
        if now.since(Time::ZERO) >= duration {
            break;
        }
        queue.enqueue(now, next.send(), &mut losses);
        free = free.max(now);
    }
    assert!(losses.as_slice().is_empty(), "sources keep to their curves, and there is room");
    drop(queue);
    Arc::into_inner(calls)
        .expect("the queue is gone")
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Writes down what it is asked.
#[derive(Debug)]
struct Recorder {
    inner: Bounded,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Recorder {
    fn record(&self, call: Call) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

impl Assignment for Recorder {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        self.record(Call::Assign(arrived, size));
        self.inner.assign(arrived, size)
    }

    fn reset(&mut self) {
        self.record(Call::Reset);
        self.inner.reset();
    }

    fn blocking(&self) -> Blocking {
        self.inner.blocking()
    }

    fn state(&self) -> usize {
        self.inner.state()
    }
}

/// A source that sends as early as it may, in bursts.
struct Greedy {
    class: u16,
    key: FlowKey,
    policer: Policer,
    packet: (u64, u64),
    burst: (u64, u64),
    spacing: (u64, u64),
    stream: Stream,
    from: Time,
    until: Time,
    due: (Time, Bytes),
}

impl Greedy {
    fn new((name, class, curve, packet, burst, spacing): Row) -> Greedy {
        let envelope: Envelope = curve.parse().expect("the curve is well-formed");
        let port = 50_000 + class;
        let mut source = Greedy {
            class,
            key: FlowKey::v4([192, 0, 2, 1], port, [198, 51, 100, 1], 443, FlowKey::UDP),
            policer: Policer::new(&envelope),
            packet,
            burst,
            spacing,
            stream: Stream::new(1, name),
            from: Time::ZERO,
            until: Time::ZERO,
            due: (Time::ZERO, Bytes(0)),
        };
        source.until = source.from + source.draw(burst);
        source.prepare();
        source
    }

    /// The packet that is due.
    fn send(&mut self) -> Packet {
        let (now, size) = self.due;
        assert!(self.policer.admit(now, size), "a packet is due when it conforms");
        self.prepare();
        Packet { class: self.class, arrived: now, ..Packet::new(0, self.key, size) }
    }

    fn prepare(&mut self) {
        let (mean, deviation) = self.packet;
        let size = mean as f64 + deviation as f64 * self.stream.normal();
        let size = Bytes(size as u64).clamp(Bytes(40), Bytes(1_536));
        let at = self.policer.conforms_at(self.due.0, size).expect("its curve allows its packets");
        while at >= self.until {
            self.from = self.until + self.draw(self.spacing);
            self.until = self.from + self.draw(self.burst);
        }
        self.due = (at.max(self.from), size);
    }

    /// From least to most milliseconds, all equally likely.
    fn draw(&mut self, (least, most): (u64, u64)) -> Span {
        let width = Span::millis(most - least).0 as f64;
        Span::millis(least) + Span((width * self.stream.uniform()) as u64)
    }
}
