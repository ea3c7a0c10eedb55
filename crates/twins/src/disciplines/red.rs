//! RED with the average derived from all arrivals (Floyd 1993, figure 2), and the
//! guard and the wait of ns-3.
//!
//! It shares with the real one the stream of random numbers, one of which is drawn
//! for each packet about which chance decides; that sizes add up to at most 2^64 -
//! 1; and the order of operations on floats.

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Discipline, LossReason, Losses, Packet, Stream, Time};

/// What an arriving packet found.
enum Found {
    Length(f64),
    /// An empty queue, and for how many packets' time.
    Idle(f64),
}

/// What came of it.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// Chance had no say: the average was below `min`, or the guard spared it.
    Spared,
    Passed,
    Signalled,
}

pub(super) struct Red {
    buffer: Buffer,
    min: f64,
    max: f64,
    in_bytes: bool,
    probability: f64,
    weight: f64,
    gentle: bool,
    guard: bool,
    wait: bool,
    packet_time: f64,
    ecn: bool,
    random: Stream,
    arrivals: Vec<(Found, Outcome)>,
    queue: Vec<Packet>,
    backlog: Backlog,
    empty_since: Time,
}

impl Red {
    pub(super) fn boxed(settings: &Settings, buffer: Buffer, seed: u64) -> Box<dyn Discipline> {
        let is_zero = |amount| matches!(amount, Amount::Packets(0)) || size(amount, false) == 0.0;
        let max = settings.amount("max");
        let unit = if is_zero(max) { buffer.amount() } else { max };
        let in_bytes = matches!(unit, Amount::Bytes(_));
        let max = if is_zero(max) { size(unit, in_bytes) / 4.0 } else { size(max, in_bytes) };
        let min = settings.amount("min");
        let min = if is_zero(min) { max / 3.0 } else { size(min, in_bytes) };
        Box::new(Red {
            buffer,
            min,
            max,
            in_bytes,
            probability: settings.number("probability"),
            weight: settings.number("weight"),
            gentle: settings.switch("gentle"),
            guard: settings.switch("guard"),
            wait: settings.switch("wait"),
            packet_time: settings.span("packet_time").0 as f64,
            ecn: settings.switch("ecn"),
            random: Stream::new(seed, "red"),
            arrivals: Vec::new(),
            queue: Vec::new(),
            backlog: Backlog::default(),
            empty_since: Time::ZERO,
        })
    }

    fn average(&self, found: &Found) -> f64 {
        let founds = self.arrivals.iter().map(|(found, _)| found).chain([found]);
        founds.fold(0.0, |average, found| match found {
            Found::Length(length) => average + self.weight * (length - average),
            Found::Idle(packets) => average * libm::pow(1.0 - self.weight, *packets),
        })
    }

    /// `count` of figure 2 as it is for the next packet about which chance decides.
    fn count(&self) -> f64 {
        let (mut count, mut before) = (0.0, self.arrivals.iter().rev());
        loop {
            match before.next().map(|(_, outcome)| *outcome) {
                Some(Outcome::Passed) => count += 1.0,
                Some(Outcome::Signalled) => return count + 1.0,
                // The guard counts the first packet about which chance could decide.
                Some(Outcome::Spared) | None => return count + f64::from(u8::from(self.guard)),
            }
        }
    }
}

/// An amount as a number of bytes or of packets, of 1 500 bytes each.
fn size(amount: Amount, in_bytes: bool) -> f64 {
    match (amount, in_bytes) {
        (Amount::Packets(count), false) => f64::from(count),
        (Amount::Packets(count), true) => f64::from(count) * 1_500.0,
        (Amount::Bytes(size), false) => size.0 as f64 / 1_500.0,
        (Amount::Bytes(size), true) => size.0 as f64,
    }
}

impl Discipline for Red {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let found = if self.queue.is_empty() {
            Found::Idle(now.since(self.empty_since).0 as f64 / self.packet_time)
        } else if self.in_bytes {
            Found::Length(self.backlog.bytes.0 as f64)
        } else {
            Found::Length(self.queue.len() as f64)
        };
        let average = self.average(&found);
        let has_room = match self.buffer.amount() {
            Amount::Packets(limit) => self.queue.len() < limit as usize,
            Amount::Bytes(limit) => {
                u128::from(self.backlog.bytes.0) + u128::from(packet.size.0) <= u128::from(limit.0)
            }
        };
        // The probability, and whether chance decides at all.
        let spared = self.guard && self.queue.len() <= 1;
        let (p_b, by_chance) = if average < self.min || spared {
            (0.0, false)
        } else if average < self.max {
            (self.probability * (average - self.min) / (self.max - self.min), true)
        } else if self.gentle && average < 2.0 * self.max {
            let steep = (1.0 - self.probability) * (average - self.max) / self.max;
            (self.probability + steep, true)
        } else {
            (1.0, false)
        };
        let outcome = if !has_room {
            losses.push(packet, LossReason::Refused);
            Outcome::Signalled
        } else if by_chance {
            let is_first = matches!(self.arrivals.last(), None | Some((_, Outcome::Spared)));
            let passed = self.count() * p_b;
            let p_a = match (self.wait, passed) {
                (true, ..1.0) => 0.0,
                (true, 1.0..2.0) => p_b / (2.0 - passed),
                (false, ..1.0) => p_b / (1.0 - passed),
                _ => 1.0,
            };
            if self.guard && is_first || self.random.uniform() >= p_a {
                self.queue.push(packet);
                Outcome::Passed
            } else {
                if self.ecn {
                    self.queue.extend(losses.signal(packet));
                } else {
                    losses.push(packet, LossReason::Early);
                }
                Outcome::Signalled
            }
        } else if p_b == 0.0 {
            self.queue.push(packet);
            Outcome::Spared
        } else {
            losses.push(packet, LossReason::Early);
            Outcome::Signalled
        };
        if self.queue.last().is_some_and(|last| last.handle == packet.handle) {
            self.backlog.add(packet.size);
        }
        self.arrivals.push((found, outcome));
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        if self.queue.is_empty() {
            return None;
        }
        let packet = self.queue.remove(0);
        self.backlog.remove(packet.size);
        if self.queue.is_empty() {
            self.empty_since = now;
        }
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}
