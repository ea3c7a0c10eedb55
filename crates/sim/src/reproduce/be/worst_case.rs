//! Flows at their worst: greedy, all at once, with the tightest deadlines that can be promised.
//!
//! A link whose promises just about can be kept is drawn at random, and its
//! real-time flows send as early as their arrival curves allow, all from the
//! same instant on, again and again after pauses in which the curves recover.
//! Best effort sends bursts, or without end. If a scheme ever gave a best-effort
//! packet too early a deadline, a packet of a flow would be late here: that is
//! what the curves' corners are for.

use std::sync::Arc;

use tidegate_core::assignment::{Assignment, SMALLEST_PACKET};
use tidegate_core::contract::{Contract, Contracts, Envelope, Policer, Selector, Service, Term};
use tidegate_core::discipline::deadlines::{Deadlines, Excess};
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
    /// How many of them left before one of the same flow that had come earlier.
    pub(crate) overtaken: u64,
}

impl Drive {
    /// Counts another drive in.
    pub(crate) fn add(&mut self, other: &Drive) {
        self.real_time += other.real_time;
        self.late += other.late;
        self.best_effort += other.best_effort;
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
                selector: Selector { class: Some(class), ..Selector::default() },
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

/// A source that sends as early as it may.
struct Greedy {
    class: u8,
    deadline: Span,
    policer: Policer,
    largest: Bytes,
    /// Of the flow that lies: it sends so many times as much.
    times: u64,
    next: (Time, Bytes),
    repeats: u64,
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
        self.repeats = self.times;
    }
}

/// Sends so many packets through the discipline.
pub(crate) fn drive(
    contracts: &Arc<Contracts>,
    assignment: Box<dyn Assignment>,
    liar: Option<Liar>,
    packets: u64,
    stream: &mut Stream,
) -> Drive {
    let excess = liar.map_or(Excess::Drop, |liar| liar.excess);
    let buffer = Buffer::packets(1 << 20);
    let mut queue = Deadlines::new(contracts.clone(), assignment, excess, buffer, stream.bits());
    let mut sources: Vec<Greedy> = contracts
        .real_time()
        .zip(1..)
        .map(|(flow, class)| Greedy {
            class,
            deadline: flow.deadline,
            policer: Policer::new(flow.envelope),
            largest: flow.envelope.largest_packet().min(contracts.largest_packet),
            times: liar.filter(|_| class == 1).map_or(1, |liar| liar.times),
            next: (Time::ZERO, Bytes::ZERO),
            repeats: 1,
        })
        .collect();
    let horizon = sources.iter().map(|source| source.deadline).max().unwrap_or(Span::millis(10));
    let link = contracts.link;
    let mut outcome = Drive::default();
    let mut losses = Losses::new();
    let (mut now, mut free_at) = (Time::ZERO, Time::ZERO);
    let mut phase_end = Time::ZERO;
    let mut best_effort_at = Time::ZERO;
    let mut endless = false;
    let mut handle = 0;
    let mut last_left: Vec<u64> = vec![0; usize::from(u8::MAX) + 1];
    while outcome.real_time + outcome.best_effort < packets {
        if now >= phase_end {
            // A pause in which every curve recovers, mostly; then all start at once.
            let pause = Span(below(stream, 4 * horizon.0 + 1));
            let start = now + pause;
            phase_end = start + Span(horizon.0 * (1 + below(stream, 8)));
            sources.iter_mut().for_each(|source| source.plan(start, stream));
            endless = below(stream, 3) == 0;
            // The largest packet begins just before them, when it can.
            best_effort_at = if endless { now } else { Time(start.0.saturating_sub(1)).max(now) };
        }
        let next_source = sources.iter().map(|source| source.next.0).min().unwrap_or(phase_end);
        let waiting = queue.backlog().packets > 0;
        let next = next_source.min(best_effort_at).min(if waiting { free_at } else { phase_end });
        now = now.max(next.min(phase_end));
        if best_effort_at <= now {
            let (size, gap) = if endless && queue.backlog().packets > 50 {
                (contracts.largest_packet, link.transmission(contracts.largest_packet))
            } else {
                let size = match below(stream, 3) {
                    0 => SMALLEST + below(stream, contracts.largest_packet.0 - SMALLEST + 1),
                    _ => contracts.largest_packet.0,
                };
                let gap = if below(stream, 4) > 0 { 0 } else { below(stream, 2 * horizon.0 + 1) };
                (Bytes(size), Span(gap))
            };
            let flow = key(100 + below(stream, 3) as u8);
            offer(&mut queue, now, flow, 0, size, &mut handle, &mut losses);
            best_effort_at = now + gap;
            if queue.backlog().packets > 2_000 {
                best_effort_at = best_effort_at.max(phase_end);
            }
        }
        for source in &mut sources {
            while source.next.0 <= now {
                let (at, size) = source.next;
                let lies = source.times > 1;
                if lies || source.policer.admit(at, size) {
                    offer(
                        &mut queue,
                        now,
                        key(source.class),
                        source.class,
                        size,
                        &mut handle,
                        &mut losses,
                    );
                }
                source.repeats -= 1;
                if source.repeats == 0 {
                    if lies {
                        source.policer.admit(at, size);
                    }
                    source.plan(now, stream);
                }
            }
        }
        if free_at <= now
            && let Some(packet) = queue.dequeue(now, &mut losses)
        {
            free_at = now + link.transmission(packet.size);
            let order = &mut last_left[usize::from(packet.flow.source().port() as u8)];
            outcome.overtaken += u64::from(packet.handle < *order);
            *order = packet.handle;
            let source = sources.iter().find(|source| source.class == packet.class);
            match source {
                // What of the liar's packets was promised cannot be told from outside.
                Some(source) if source.times == 1 => {
                    let due = packet.arrived + source.deadline;
                    outcome.real_time += 1;
                    outcome.late += u64::from(free_at > due);
                }
                Some(_) => {}
                None => outcome.best_effort += 1,
            }
        }
        // An honest flow's packet that was dropped is one that was not there in time.
        let honest =
            |class| sources.iter().any(|source| source.class == class && source.times == 1);
        outcome.late += losses.drain().filter(|loss| honest(loss.packet.class)).count() as u64;
    }
    outcome
}

/// A whole number below `count`.
fn below(stream: &mut Stream, count: u64) -> u64 {
    stream.index(count as usize) as u64
}

fn key(number: u8) -> FlowKey {
    FlowKey::v4([10, 0, 0, number], u16::from(number), [10, 0, 1, 1], 9, FlowKey::UDP)
}

fn offer(
    queue: &mut Deadlines,
    now: Time,
    flow: FlowKey,
    class: u8,
    size: Bytes,
    handle: &mut u64,
    losses: &mut Losses,
) {
    *handle += 1;
    let packet = Packet { class, arrived: now, ..Packet::new(*handle, flow, size) };
    queue.enqueue(now, packet, losses);
}
