//! A sender whose every packet is the first of its flow, beside a user who sends a hundred
//! small packets a second.
//!
//! Where queues take turns, or packets go in the order of their arrival, such a sender may make
//! the user wait and lose packets, but nobody starves. The same flood is sent over a live link
//! by the tests of the command line, whose bounds are these.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tidegate_core::{Buffer, Bytes, Discipline, FlowKey, Losses, Packet, Rate, Span, Time};

use super::laws::build;

const RATE: Rate = Rate(20_000_000);
/// 100 ms at this rate.
const BUFFER: Bytes = Bytes(250_000);
/// Where nobody starves, a probe is overtaken by no more, and so many of a hundred come back.
const MOST_OVERTAKING: Bytes = Bytes(2 * BUFFER.0);
const FEWEST_PROBES: usize = 3;
const PACKETS_A_SECOND: u64 = 30_000;
const BETWEEN_PROBES: Span = Span::millis(10);
const LENGTH: Span = Span::seconds(1);
/// What the sender takes for a packet, and how often it looks whether one is due.
const EACH: Span = Span::micros(6);
const LOOKS: Span = Span::micros(350);
const LARGEST_BURST: u64 = 64;
/// After one of so many looks, it pauses for up to so long.
const SELDOM: u32 = 100;
const LONGEST_PAUSE: Span = Span::millis(300);

/// A link behind a discipline.
struct Link {
    discipline: Box<dyn Discipline>,
    losses: Losses,
    free_at: Time,
    offered: u64,
    /// Number and size of what has come out.
    came: Vec<(u64, Bytes)>,
}

impl Link {
    /// Sends what it can by then.
    fn send(&mut self, until: Time) {
        while self.free_at <= until {
            match self.discipline.dequeue(self.free_at, &mut self.losses) {
                Some(packet) => {
                    self.came.push((packet.handle, packet.size));
                    self.free_at += RATE.transmission(packet.size);
                }
                None => self.free_at = until + Span(1),
            }
        }
        self.losses.clear();
    }

    /// Takes a packet; returns its number.
    fn offer(&mut self, now: Time, flow: FlowKey, size: Bytes) -> u64 {
        self.send(now);
        let number = self.offered;
        self.discipline.enqueue(now, Packet::new(number, flow, size), &mut self.losses);
        self.offered += 1;
        number
    }
}

/// How many probes come back, and the most bytes that were sent later than one and came before
/// it.
fn flood(name: &str, seed: u64, pauses: bool) -> (usize, Bytes) {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut link = Link {
        discipline: build(name, &[], Buffer::bytes(BUFFER)),
        losses: Losses::new(),
        free_at: Time::ZERO,
        offered: 0,
        came: Vec::new(),
    };
    let user = FlowKey::v4([203, 0, 113, 9], 4_780, [10, 0, 0, 1], 4_780, FlowKey::UDP);
    let (mut now, mut probes, mut sent) = (Time::ZERO, Vec::new(), 0);
    while now < Time::ZERO + LENGTH {
        while Time(BETWEEN_PROBES.0 * probes.len() as u64) < now {
            probes.push(link.offer(now, user, Bytes(114)));
        }
        let due = PACKETS_A_SECOND * now.since(Time::ZERO).0 / Span::seconds(1).0;
        for _ in 0..due.saturating_sub(sent).min(LARGEST_BURST) {
            now += EACH;
            let ports = [random.random(), random.random_range(0..4_780)];
            let from: [u8; 4] = random.random();
            let flow = FlowKey::v4(from, ports[0], [10, 0, 0, 1], ports[1], FlowKey::UDP);
            link.offer(now, flow, Bytes(random.random_range(60..442)));
            sent += 1;
        }
        if due <= sent {
            now += LOOKS;
        }
        if pauses && random.random_range(0..SELDOM) == 0 {
            now += Span(random.random_range(0..LONGEST_PAUSE.0));
        }
    }
    link.send(now + LENGTH);
    let is_probe = |number: &u64| probes.binary_search(number).is_ok();
    let of_probe = |(at, (number, _)): (usize, &(u64, Bytes))| {
        let later = link.came[..at].iter().filter(|(other, _)| other > number);
        is_probe(number).then(|| later.map(|(_, size)| size.0).sum::<u64>())
    };
    let overtaken: Vec<u64> = link.came.iter().enumerate().filter_map(of_probe).collect();
    (overtaken.len(), Bytes(overtaken.into_iter().max().unwrap_or(0)))
}

#[test]
fn a_flood_of_flows_starves_nobody_where_queues_take_turns() {
    for name in ["efd", "fq-codel", "cake"] {
        for pauses in [false, true] {
            let found: Vec<_> = (0..10).map(|seed| flood(name, seed, pauses)).collect();
            let fewest = found.iter().map(|(back, _)| *back).min().expect("there are ten");
            let most = found.iter().map(|(_, most)| *most).max().expect("there are ten");
            assert!(fewest >= FEWEST_PROBES, "{name}: {fewest} probes come back");
            assert!(most <= MOST_OVERTAKING, "{name}: {most:?} overtake one");
        }
    }
}

#[test]
fn and_a_user_who_has_had_some_packets_starves_where_newcomers_go_first() {
    let (back, most) = flood("las", 0, false);
    assert!(back < FEWEST_PROBES, "{back} probes come back, overtaken by {most:?}");
}
