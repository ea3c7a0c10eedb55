//! Flows at their worst: greedy, all at once, with the tightest deadlines that can be promised.
//!
//! A link whose promises just about can be kept is drawn at random, and its
//! real-time flows send as early as their arrival curves allow, all from the
//! same instant on, again and again after pauses in which the curves recover.
//! Best effort sends bursts, or without end. Just before that instant, a packet of best
//! effort or the largest of a flow begins, and is in the way. If a scheme ever gave a best-effort
//! packet too early a deadline, a packet of a flow would be late here: that is
//! what the curves' corners are for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::assignment::{Assignment, Blocking, SMALLEST_PACKET};
use tidegate_core::contract::{Contract, Contracts, Envelope, Policer, Selector, Service, Term};
use tidegate_core::discipline::deadlines::{Deadlines, Excess, WhenIdle};
use tidegate_core::residual::Residual;
use tidegate_core::{Buffer, Bytes, Discipline, FlowKey, Losses, Packet, Rate, Span, Stream, Time};

/// Bytes of the smallest packet: what is smaller counts as this.
const SMALLEST: u64 = SMALLEST_PACKET.0;

/// What came of a drive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drive {
    /// Real-time packets sent that kept to their contracts.
    pub(crate) real_time: u64,
    /// How many of them ended after their deadline.
    pub(crate) late: u64,
    /// Best-effort packets sent.
    pub(crate) best_effort: u64,
    /// How many of them ended after the deadline that they were given.
    pub(crate) best_effort_late: u64,
    /// Packets that left before one of the same flow that had come earlier.
    pub(crate) overtaken: u64,
}

impl Drive {
    /// Counts another drive in.
    pub(crate) fn add(&mut self, other: &Drive) {
        self.real_time += other.real_time;
        self.late += other.late;
        self.best_effort += other.best_effort;
        self.best_effort_late += other.best_effort_late;
        self.overtaken += other.overtaken;
    }
}

/// What the flow does that lies, if one does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liar {
    /// It sends so many times what its contract says.
    pub(crate) times: u64,
    /// What becomes of the excess.
    pub(crate) excess: Excess,
}

/// Contracts drawn at random, with deadlines that cannot all be shorter.
pub(crate) fn contracts(stream: &mut Stream) -> Contracts {
    loop {
        let link = Rate(1_000_000 + below(stream, 99_000_000));
        let largest_packet = Bytes([300, 1_500, 1_536, 9_000][below(stream, 4) as usize]);
        let count = 1 + below(stream, 5);
        let flows: Vec<(Envelope, u64)> = (0..count)
            .map(|_| (envelope(stream, link, largest_packet, count), 1 + below(stream, 64)))
            .collect();
        let promised = |micros: u64| {
            let contract = |(class, (envelope, weight)): (u8, &(Envelope, u64))| Contract {
                name: format!("flow {class}"),
                selector: Selector { class: Some(class.into()), ..Selector::default() },
                service: Service::RealTime {
                    envelope: envelope.clone(),
                    deadline: Span(1 + weight * micros * 1_000),
                },
            };
            let flows = (1..).zip(&flows).map(contract).collect();
            Contracts::new(link, largest_packet, flows).expect("a drawn contract is valid")
        };
        // Deadlines of up to 64 times 16 ms; flows that need longer ones are not drawn.
        const LONGEST: u64 = 1 << 14;
        if Residual::new(&promised(LONGEST)).is_err() {
            continue;
        }
        let (mut too_short, mut enough) = (0, LONGEST);
        while enough - too_short > 1 {
            let middle = too_short + (enough - too_short) / 2;
            match Residual::new(&promised(middle)) {
                Ok(_) => enough = middle,
                Err(_) => too_short = middle,
            }
        }
        return promised(enough);
    }
}

/// Part of an even share of the link, in the long run.
fn envelope(stream: &mut Stream, link: Rate, largest: Bytes, flows: u64) -> Envelope {
    let rate = (link.0 / flows).max(2) * (1 + below(stream, 19)) / 20;
    let packet = SMALLEST + below(stream, largest.0 - SMALLEST + 1);
    let burst = packet + below(stream, 20 * largest.0);
    let bucket =
        |burst, rate: u64| Term::TokenBucket { burst: Bytes(burst), rate: Rate(rate.max(1)) };
    let terms = match below(stream, 3) {
        0 => vec![bucket(burst, rate)],
        1 => vec![bucket(packet, rate * (1 + below(stream, 8))), bucket(burst, rate)],
        _ => {
            // As frames of media come: periods with a common multiple.
            let period = Span::millis(5 << below(stream, 4));
            let size = Rate(rate).volume(period).max(Bytes(SMALLEST));
            vec![Term::Staircase { size, period }]
        }
    };
    Envelope::new(terms).expect("a drawn envelope is valid")
}

/// Sends so many packets through the discipline.
pub(crate) fn drive(
    contracts: &Arc<Contracts>,
    assignment: Box<dyn Assignment>,
    liar: Option<Liar>,
    packets: u64,
    stream: &mut Stream,
) -> Drive {
    run(contracts, assignment, liar, packets, stream).outcome
}

/// The packets that come when best effort is sent only while nothing else waits, until so
/// many have been sent.
pub(crate) fn arrivals(
    contracts: &Arc<Contracts>,
    packets: u64,
    stream: &mut Stream,
) -> Vec<Packet> {
    run(contracts, Box::new(WhenIdle), None, packets, stream).offered
}

/// The link after so many packets.
fn run(
    contracts: &Arc<Contracts>,
    assignment: Box<dyn Assignment>,
    liar: Option<Liar>,
    packets: u64,
    stream: &mut Stream,
) -> Link {
    let excess = liar.map_or(Excess::Drop, |liar| liar.excess);
    let head_due = Arc::new(AtomicU64::new(0));
    let watched = Box::new(Watched { assignment, last: head_due.clone() });
    let buffer = Buffer::packets(1 << 20);
    let mut link = Link {
        queue: Deadlines::new(contracts.clone(), watched, excess, buffer, stream.bits()),
        rate: contracts.link,
        head_due,
        free_at: Time::ZERO,
        offered: Vec::new(),
        last_left: BTreeMap::new(),
        losses: Losses::new(),
        outcome: Drive::default(),
    };
    let times = |class| liar.filter(|_| class == 1).map_or(1, |liar| liar.times);
    let mut sources: Vec<Greedy> = contracts
        .real_time()
        .zip(1..)
        .map(|(flow, class)| Greedy {
            class,
            deadline: flow.deadline,
            policer: Policer::new(flow.envelope),
            largest: flow.envelope.largest_packet().min(contracts.largest_packet),
            times: times(class),
            next: (Time::ZERO, Bytes::ZERO),
        })
        .collect();
    let horizon = sources.iter().map(|source| source.deadline).max().unwrap_or(Span::millis(10));
    let largest = contracts.largest_packet;
    let mut best_effort = BestEffort { at: Time::ZERO, endless: false, largest, horizon };
    let (mut now, mut phase_end) = (Time::ZERO, Time::ZERO);
    while link.outcome.real_time + link.outcome.best_effort < packets {
        if now >= phase_end {
            // A pause in which every curve recovers, mostly; then all start at once.
            let start = now + Span(below(stream, 4 * horizon.0 + 1));
            phase_end = start + Span(horizon.0 * (1 + below(stream, 8)));
            sources.iter_mut().for_each(|source| source.plan(start, stream));
            // What is in the way: best effort, or a packet of one of the flows.
            let before = Time(start.0.saturating_sub(1)).max(now);
            if below(stream, 2) == 0 || sources.is_empty() {
                best_effort.plan(now, before, stream);
            } else {
                let blocking = below(stream, sources.len() as u64) as usize;
                sources[blocking].plan_largest(before);
                best_effort.plan(now, start, stream);
            }
        }
        let next = sources.iter().map(|source| source.next.0).chain([best_effort.at]);
        let next = next.chain(link.waits_until()).chain([phase_end]).min().unwrap_or(phase_end);
        now = now.max(next);
        best_effort.send(now, phase_end, &mut link, stream);
        sources.iter_mut().for_each(|source| source.send(now, &mut link, stream));
        link.send(now, &sources);
    }
    link
}

/// A source that sends as early as it may.
struct Greedy {
    class: u8,
    deadline: Span,
    policer: Policer,
    largest: Bytes,
    /// It sends each packet so often: once, unless it lies.
    times: u64,
    next: (Time, Bytes),
}

impl Greedy {
    /// Decides on the next packet, no earlier than `from`.
    fn plan(&mut self, from: Time, stream: &mut Stream) {
        // Mostly the largest packets: they make the curve bind at its corners.
        let size = match below(stream, 4) {
            0 => Bytes(SMALLEST + below(stream, self.largest.0 - SMALLEST + 1)),
            _ => self.largest,
        };
        let at = self.policer.conforms_at(from, size).expect("no packet is over the envelope");
        self.next = (at, size);
    }

    /// Decides on a largest packet, no earlier than `from`.
    fn plan_largest(&mut self, from: Time) {
        let at = self.policer.conforms_at(from, self.largest);
        self.next = (at.expect("no packet is over the envelope"), self.largest);
    }

    fn send(&mut self, now: Time, link: &mut Link, stream: &mut Stream) {
        while self.next.0 <= now {
            let (at, size) = self.next;
            assert!(self.policer.admit(at, size), "the policer was asked when it would");
            (0..self.times).for_each(|_| link.offer(now, self.class, self.class, size));
            self.plan(now, stream);
        }
    }

    fn lies(&self) -> bool {
        self.times > 1
    }
}

/// Best effort: bursts of packets of all sizes, or no end of them.
struct BestEffort {
    at: Time,
    endless: bool,
    largest: Bytes,
    /// The longest deadline of a real-time flow.
    horizon: Span,
}

impl BestEffort {
    /// Decides what to do until the next pause: bursts begin at `start`.
    fn plan(&mut self, now: Time, start: Time, stream: &mut Stream) {
        self.endless = below(stream, 3) == 0;
        self.at = if self.endless { now } else { start };
    }

    fn send(&mut self, now: Time, phase_end: Time, link: &mut Link, stream: &mut Stream) {
        const ENOUGH: u32 = 50;
        const TOO_MANY: u32 = 2_000;
        if self.at > now {
            return;
        }
        let (size, gap) = if self.endless && link.queue.backlog().packets > ENOUGH {
            (self.largest, link.rate.transmission(self.largest))
        } else {
            let size = match below(stream, 3) {
                0 => Bytes(SMALLEST + below(stream, self.largest.0 - SMALLEST + 1)),
                _ => self.largest,
            };
            let gap = if below(stream, 4) > 0 { 0 } else { below(stream, 2 * self.horizon.0 + 1) };
            (size, Span(gap))
        };
        link.offer(now, 0, FIRST_BEST_EFFORT + below(stream, 3) as u8, size);
        self.at = now + gap;
        if link.queue.backlog().packets > TOO_MANY {
            self.at = self.at.max(phase_end);
        }
    }
}

/// The first of the best-effort flows; real-time flows are numbered as their classes.
const FIRST_BEST_EFFORT: u8 = 100;

/// The discipline in front of a link, and what is seen of it.
struct Link {
    queue: Deadlines,
    rate: Rate,
    /// The deadline of the best-effort packet that is next.
    head_due: Arc<AtomicU64>,
    free_at: Time,
    /// All that came.
    offered: Vec<Packet>,
    /// The packet of each flow that left last, numbered as they came.
    last_left: BTreeMap<FlowKey, u64>,
    losses: Losses,
    outcome: Drive,
}

impl Link {
    fn offer(&mut self, now: Time, class: u8, flow: u8, size: Bytes) {
        let number = self.offered.len() as u64 + 1;
        let flow = FlowKey::v4([10, 0, 0, flow], flow.into(), [10, 0, 1, 1], 9, FlowKey::UDP);
        let packet =
            Packet { class: class.into(), arrived: now, ..Packet::new(number, flow, size) };
        self.offered.push(packet);
        self.queue.enqueue(now, packet, &mut self.losses);
    }

    /// When the next packet can be sent, if one waits.
    fn waits_until(&self) -> Option<Time> {
        (self.queue.backlog().packets > 0).then_some(self.free_at)
    }

    /// Sends the next packet if the link is free, and looks what came of it.
    fn send(&mut self, now: Time, sources: &[Greedy]) {
        let source_of =
            |packet: &Packet| sources.iter().find(|source| u16::from(source.class) == packet.class);
        let head_due = Time(self.head_due.load(Ordering::Relaxed));
        let next = (self.free_at <= now).then(|| self.queue.dequeue(now, &mut self.losses));
        if let Some(packet) = next.flatten() {
            self.free_at = now + self.rate.transmission(packet.size);
            let before = self.last_left.insert(packet.flow, packet.handle);
            self.outcome.overtaken += u64::from(before.is_some_and(|last| packet.handle < last));
            match source_of(&packet) {
                // What of the liar's packets was promised cannot be told from outside.
                Some(source) if source.lies() => {}
                Some(source) => {
                    self.outcome.real_time += 1;
                    self.outcome.late += u64::from(self.free_at > packet.arrived + source.deadline);
                }
                None => {
                    self.outcome.best_effort += 1;
                    self.outcome.best_effort_late += u64::from(self.free_at > head_due);
                }
            }
        }
        // An honest flow's packet that was dropped was not there in time either.
        let honest = |packet: &Packet| source_of(packet).is_some_and(|source| !source.lies());
        let dropped = self.losses.drain().filter(|loss| honest(&loss.packet)).count();
        self.outcome.late += dropped as u64;
    }
}

/// An assignment that shows the deadline that it gave last: only one best-effort
/// packet has a deadline at a time.
#[derive(Debug)]
struct Watched {
    assignment: Box<dyn Assignment>,
    last: Arc<AtomicU64>,
}

impl Assignment for Watched {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        let deadline = self.assignment.assign(arrived, size);
        self.last.store(deadline.0, Ordering::Relaxed);
        deadline
    }

    fn reset(&mut self) {
        self.assignment.reset();
    }

    fn blocking(&self) -> Blocking {
        self.assignment.blocking()
    }

    fn state(&self) -> usize {
        self.assignment.state()
    }
}

/// A whole number below `count`.
pub(super) fn below(stream: &mut Stream, count: u64) -> u64 {
    stream.index(count as usize) as u64
}
