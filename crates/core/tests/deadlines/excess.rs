//! Flows that send more than their curve allows, and then keep to it again.
//!
//! The adversary sends random bursts and makes pauses; from some instant on, it keeps to
//! its curve by itself, as if that were new. Best effort fills the link all the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::assignment::{Assignment, Blocking, SMALLEST_PACKET, Scheme, Typical};
use tidegate_core::contract::{Contracts, Policer, Service, Term};
use tidegate_core::discipline::deadlines::{Deadlines, Excess};
use tidegate_core::entry::Place;
use tidegate_core::residual::Residual;
use tidegate_core::setting::Settings;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, FlowKey, Losses, Packet, Span, Stream, Time,
};

use crate::flows::{PAPER, contracts};

const CONTRACTS: [&str; 3] = [
    PAPER,
    "link 10 Mbit/s; packets to 1500 B; \
        video = class 1: 1500 B + 40 Mbit/s, 12 kB + 2.5 Mbit/s within 40 ms; \
        voice = class 2: 400 B + 88 kbit/s within 10 ms",
    "link 10 Mbit/s; packets to 1500 B; frames = class 1: 6 kB every 20 ms within 15 ms; \
        control = class 2: 300 B + 1 Mbit/s, 200 B every 2 ms within 5 ms",
];

/// The class of the flow that sends too much; the others have those after it.
const ADVERSARY: u16 = 1;
/// Best effort, of three 5-tuples.
const FILLING: u16 = 0;

/// What was seen of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Packets of other real-time flows, and how many of them were late or lost.
    others: u64,
    others_late: u64,
    /// The adversary's packets that kept to the curve together with those before them
    /// that did, and how many of them were late or lost.
    kept: u64,
    kept_late: u64,
    /// The largest sum of its other packets from an instant on from which it keeps to
    /// its curve by itself.
    most_excess: Bytes,
    /// Packets that left before one of the same 5-tuple that had come earlier.
    overtaken: u64,
    /// Best-effort packets that were sent after the deadline that they were given.
    best_effort_late: u64,
}

/// The discipline before a link.
struct Link<'a> {
    contracts: &'a Contracts,
    queue: Box<dyn Discipline>,
    head_due: Arc<AtomicU64>,
    free_at: Time,
    losses: Losses,
    arrivals: u64,
    /// The deadlines of packets that are promised, by their numbers.
    due: BTreeMap<u64, Time>,
    last_left: BTreeMap<FlowKey, u64>,
    seen: Seen,
}

impl Link<'_> {
    fn arrive(&mut self, now: Time, class: u16, tuple: u8, size: Bytes, due: Option<Time>) {
        self.arrivals += 1;
        let key = FlowKey::v4([10, 0, 0, tuple], class, [10, 0, 1, 1], 9, FlowKey::UDP);
        let packet = Packet { class, arrived: now, ..Packet::new(self.arrivals, key, size) };
        if let Some(due) = due {
            self.due.insert(packet.handle, due);
            *(if class == ADVERSARY { &mut self.seen.kept } else { &mut self.seen.others }) += 1;
        }
        self.queue.enqueue(now, packet, &mut self.losses);
        let lost: Vec<Packet> = self.losses.drain().map(|loss| loss.packet).collect();
        lost.iter().for_each(|packet| self.judge(packet, Time::FAR_FUTURE));
    }

    /// A packet is on the wire at `end`, or never.
    fn judge(&mut self, packet: &Packet, end: Time) {
        if self.due.remove(&packet.handle).is_some_and(|due| end > due) {
            let adversary = packet.class == ADVERSARY;
            let Seen { kept_late, others_late, .. } = &mut self.seen;
            *(if adversary { kept_late } else { others_late }) += 1;
        }
    }

    /// Sends whatever begins before `now`.
    fn send_until(&mut self, now: Time) {
        while self.queue.backlog().packets > 0 && self.free_at < now {
            let head_due = Time(self.head_due.load(Ordering::Relaxed));
            let packet = self.queue.dequeue(self.free_at, &mut self.losses).expect("one waits");
            self.free_at += self.contracts.link.transmission(packet.size);
            self.judge(&packet, self.free_at);
            let last = self.last_left.insert(packet.flow, packet.handle);
            self.seen.overtaken += u64::from(last.is_some_and(|last| last > packet.handle));
            let late = packet.class == FILLING && self.free_at > head_due;
            self.seen.best_effort_late += u64::from(late);
        }
        self.free_at = self.free_at.max(now);
    }
}

/// Shows the last deadline that was given.
#[derive(Debug)]
struct Watched(Box<dyn Assignment>, Arc<AtomicU64>);

impl Assignment for Watched {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        let deadline = self.0.assign(arrived, size);
        self.1.store(deadline.0, Ordering::Relaxed);
        deadline
    }
    fn reset(&mut self) {
        self.0.reset();
    }
    fn blocking(&self) -> Blocking {
        self.0.blocking()
    }
    fn state(&self) -> usize {
        self.0.state()
    }
}

/// What the flow of a class may send, and its deadline.
fn promise(contracts: &Contracts, class: u16) -> (Policer, Span, Bytes) {
    let Service::RealTime { envelope, deadline } = &contracts.flows[usize::from(class) - 1].service
    else {
        panic!("class {class} has a promise");
    };
    let largest = envelope.largest_packet().min(contracts.largest_packet);
    (Policer::new(envelope), *deadline, largest)
}

/// Bursts of the adversary, pauses, and times in which it keeps to its curve, so many of
/// each, while `queue` has best effort all the time.
fn drive(
    contracts: &Contracts,
    queue: Box<dyn Discipline>,
    head_due: Arc<AtomicU64>,
    rounds: u32,
    stream: &mut Stream,
) -> Seen {
    let mut link = Link {
        contracts,
        queue,
        head_due,
        free_at: Time::ZERO,
        losses: Losses::new(),
        arrivals: 0,
        due: BTreeMap::new(),
        last_left: BTreeMap::new(),
        seen: Seen::default(),
    };
    let mut below = |count: u64| stream.index(count as usize) as u64;
    let (mut meter, deadline, largest) = promise(contracts, ADVERSARY);
    let mut others: Vec<_> = (ADVERSARY + 1..)
        .zip(contracts.real_time().skip(1))
        .map(|(class, _)| (class, promise(contracts, class), Time::ZERO))
        .collect();
    let mut now = Time::ZERO;
    for _ in 0..rounds {
        // Anything from a packet to two seconds of the link, at once or over time.
        let most = if below(4) == 0 { 1_500 } else { 60 };
        let burst = 1 + below(most);
        let gap = if below(2) == 0 { 0 } else { below(3_000_000) };
        let kept = 20 + below(200);
        // From its start on, a phase in which it keeps to its curve has a meter of its
        // own; it sends at once when it may, or later, or all it has at the end.
        let (mut own, _, _) = promise(contracts, ADVERSARY);
        let (mut excess, lazy) = (Bytes::ZERO, below(3));
        let pause = if below(2) == 0 { 0 } else { below(100_000_000) };
        for number in 0..burst + kept {
            let size = match below(3) {
                0 => Bytes(40 + below(largest.0 - 39)),
                _ => largest,
            };
            let keeps = number >= burst;
            now += Span(if number == burst { pause } else { 0 });
            now = if keeps {
                let at = own.conforms_at(now, size).expect("no packet is over the curve");
                at + Span(if below(4) < lazy { below(40_000_000) } else { 0 })
            } else {
                now + Span(gap)
            };
            assert!(!keeps || own.admit(now, size), "it was asked when");
            // Until then, the others send whatever they may, and best effort fills.
            while let Some((class, (meter, deadline, largest), next)) =
                others.iter_mut().min_by_key(|other| other.2).filter(|other| other.2 <= now)
            {
                link.send_until(*next);
                assert!(meter.admit(*next, *largest), "it was asked when");
                link.arrive(*next, *class, 0, *largest, Some(*next + *deadline));
                let at = meter.conforms_at(*next, *largest).expect("as before");
                *next = at + Span(if below(8) == 0 { below(20_000_000) } else { 0 });
            }
            link.send_until(now);
            while link.queue.backlog().packets < 40 {
                link.arrive(now, FILLING, 1 + below(3) as u8, contracts.largest_packet, None);
            }
            let due = meter.admit(now, size.max(SMALLEST_PACKET)).then(|| now + deadline);
            if keeps && due.is_none() {
                excess += size;
                link.seen.most_excess = link.seen.most_excess.max(excess);
            }
            link.arrive(now, ADVERSARY, 0, size, due);
        }
    }
    link.send_until(now + Span::seconds(1_000));
    link.seen
}

/// The same through the discipline, or through another one around it.
fn seen(
    text: &str,
    scheme: Scheme,
    excess: Excess,
    rounds: u32,
    around: impl FnOnce(Deadlines, &Contracts) -> Box<dyn Discipline>,
) -> Seen {
    let contracts = Arc::new(contracts(text));
    let residual = Residual::new(&contracts).expect("they can be kept");
    let typical = Typical { packet: Bytes(1_500), burst: Bytes(15_000) };
    let head_due = Arc::new(AtomicU64::new(0));
    let watched = Box::new(Watched(scheme.build(&residual, typical), head_due.clone()));
    let buffer = Buffer::packets(1 << 20);
    let queue = Deadlines::new(contracts.clone(), watched, excess, buffer, 1);
    let queue = around(queue, &contracts);
    drive(&contracts, queue, head_due, rounds, &mut Stream::new(1, text))
}

/// Less than the largest burst of its curve, and one packet.
fn bound(text: &str) -> Bytes {
    let contracts = contracts(text);
    let flow = contracts.real_time().next().expect("it has a flow");
    let bursts = flow.envelope.terms().iter().map(|term| match *term {
        Term::TokenBucket { burst, .. } => burst,
        Term::Staircase { size, .. } => size,
    });
    bursts.max().expect("a curve has a term") + flow.envelope.largest_packet()
}

#[test]
fn a_flow_that_keeps_to_its_curve_again_is_real_time_whatever_came_before() {
    for text in CONTRACTS {
        for scheme in [Scheme::Bounded, Scheme::Tight] {
            for excess in [Excess::Demote, Excess::Drop] {
                let seen = seen(text, scheme, excess, 60, |queue, _| Box::new(queue));
                assert!(seen.kept > 4_000 && seen.others > 1_000, "{seen:?}");
                let Seen { kept, others, most_excess, .. } = seen;
                assert_eq!(seen, Seen { kept, others, most_excess, ..Seen::default() }, "{text}");
                assert!(most_excess < bound(text), "{text}: {most_excess}");
                // The bound is not far: some bursts leave nothing of the curve.
                assert!(most_excess > Bytes(bound(text).0 / 4), "{text}: {most_excess}");
            }
        }
    }
}

/// What a packet of a 5-tuple was before: best effort for as long as any of its
/// 5-tuple waits as that.
struct Latched {
    queue: Deadlines,
    meter: Policer,
    /// Its packets that wait as best effort.
    waiting: u32,
}

impl Discipline for Latched {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let is_real_time = packet.class != ADVERSARY
            || self.waiting == 0 && self.meter.admit(now, packet.size.max(SMALLEST_PACKET));
        let class = if is_real_time { packet.class } else { FILLING };
        self.waiting += u32::from(!is_real_time);
        self.queue.enqueue(now, Packet { class, ..packet }, losses);
    }
    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        let packet = self.queue.dequeue(now, losses)?;
        let is_adversary = packet.flow.source().port() == ADVERSARY;
        self.waiting -= u32::from(is_adversary && packet.class == FILLING);
        Some(Packet { class: packet.flow.source().port(), ..packet })
    }
    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        self.queue.reconfigure(now, settings, place);
    }
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}

#[test]
fn the_adversary_finds_a_queue_that_holds_its_packets_behind_their_excess() {
    for text in CONTRACTS {
        let seen = seen(text, Scheme::Bounded, Excess::Demote, 60, |queue, contracts| {
            let (meter, ..) = promise(contracts, ADVERSARY);
            Box::new(Latched { queue, meter, waiting: 0 })
        });
        assert!(seen.kept_late > seen.kept / 10, "{text}: {seen:?}");
        assert_eq!((seen.others_late, seen.overtaken), (0, 0), "{text}");
    }
}
