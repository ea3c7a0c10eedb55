//! RED with the average derived from all arrivals (Floyd 1993, figure 2), and the
//! guard and the wait of ns-3; or as in Linux, with what its `tc` computes.
//!
//! It shares with the real one the stream of random numbers, one of which is drawn
//! for each packet about which chance decides; that sizes add up to at most 2^64 -
//! 1; and the order of operations on floats.

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Discipline, LossReason, Losses, Packet, Span, Stream, Time};

/// What an arriving packet found.
enum Found {
    Length(f64),
    /// An empty queue, and for how long.
    Idle(Span),
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
    is_linux: bool,
    buffer: Buffer,
    min: f64,
    max: f64,
    in_bytes: bool,
    probability: f64,
    weight: f64,
    gentle: bool,
    guard: bool,
    wait: bool,
    idle: bool,
    packet_time: f64,
    ecn: bool,
    /// Linux: the number drawn for the present gap.
    drawn: f64,
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
            is_linux: settings.choice("form") == "linux",
            buffer,
            min,
            max,
            in_bytes,
            probability: settings.number("probability"),
            weight: match settings.number("weight") {
                0.0 if in_bytes => weight(min / 1_000.0, max / 1_000.0),
                0.0 => weight(min, max),
                given => given,
            },
            gentle: settings.switch("gentle"),
            guard: settings.switch("guard"),
            wait: settings.switch("wait"),
            idle: settings.switch("idle"),
            packet_time: settings.span("packet_time").0 as f64,
            ecn: settings.switch("ecn"),
            drawn: 0.0,
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
            Found::Idle(time) if self.is_linux => self.damped(average, *time),
            Found::Idle(time) => {
                average * libm::pow(1.0 - self.weight, time.0 as f64 / self.packet_time)
            }
        })
    }

    /// Linux's table, written out for each use: 256 cells of so many microseconds that 31
    /// halvings take fewer than 512 of them.
    fn damped(&self, average: f64, time: Span) -> f64 {
        let rate = -libm::log(1.0 - self.weight) / (self.packet_time / 64.0);
        let cell =
            (0..32).map(|log| 1_u64 << log).find(|cell| 31.0 / rate / (*cell as f64) < 512.0);
        let cell = cell.unwrap_or(1 << 32);
        let mut table: Vec<f64> =
            (0..256).map(|i| libm::floor((i * cell) as f64 * rate).min(31.0)).collect();
        (table[0], table[255]) = (0.0, 31.0);
        let micros = (time.0 / 1_000).min(255 * cell);
        match table[(micros / cell) as usize] {
            0.0 => average - average * (micros as f64 / cell as f64).min(0.5),
            halvings => average / libm::pow(2.0, halvings),
        }
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

impl Red {
    fn decide(
        &mut self,
        packet: Packet,
        has_room: bool,
        p_b: f64,
        by_chance: bool,
        losses: &mut Losses,
    ) -> Outcome {
        if !has_room {
            losses.push(packet, LossReason::Refused);
            return Outcome::Signalled;
        }
        if !by_chance && p_b == 0.0 {
            self.queue.push(packet);
            return Outcome::Spared;
        }
        if by_chance {
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
                return Outcome::Passed;
            }
            if self.ecn {
                self.queue.extend(losses.signal(packet));
                return Outcome::Signalled;
            }
        }
        losses.push(packet, LossReason::Early);
        Outcome::Signalled
    }

    /// `red_enqueue` and `red_action`: packets about which chance had no say, for the
    /// average was low or too high, are `Spared`.
    fn decide_as_linux(
        &mut self,
        packet: Packet,
        has_room: bool,
        p_b: f64,
        by_chance: bool,
        losses: &mut Losses,
    ) -> Outcome {
        let mut is_hit = p_b == 1.0 && !by_chance;
        let mut outcome = Outcome::Spared;
        if by_chance {
            let before = self.arrivals.iter().rev().map(|(_, outcome)| *outcome);
            let count = before.take_while(|outcome| *outcome == Outcome::Passed).count();
            // The packet that was signalled is none of them; the first that passes is.
            let after_signal = self.arrivals.iter().rev().nth(count);
            let after_signal = matches!(after_signal, Some((_, Outcome::Signalled)));
            let count = count as f64 + f64::from(u8::from(after_signal));
            is_hit = count > 0.0 && count * p_b >= self.drawn;
            outcome = if is_hit { Outcome::Signalled } else { Outcome::Passed };
            if is_hit || count == 0.0 {
                self.drawn = self.random.uniform();
            }
        }
        let is_marked = is_hit && self.ecn && packet.ecn.is_markable();
        if is_hit && !is_marked {
            losses.push(packet, LossReason::Early);
        } else if !has_room {
            losses.push(packet, LossReason::Refused);
        } else if is_marked {
            self.queue.extend(losses.signal(packet));
        } else {
            self.queue.push(packet);
        }
        outcome
    }
}

/// `tc`'s weight: the largest power of a half with which (2 min + max) / 3 packets into an
/// empty queue keep the average within min.
fn weight(min: f64, max: f64) -> f64 {
    let burst = libm::floor((2.0 * min + max) / 3.0).max(1.0);
    let mut weight = 0.5;
    while (1.0 - libm::pow(1.0 - weight, burst)) / weight < burst + 1.0 - min
        && weight > 1.0 / f64::from(1_u32 << 31)
    {
        weight /= 2.0;
    }
    weight
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
        let found = if self.queue.is_empty() && self.idle {
            Found::Idle(now.since(self.empty_since))
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
        let outcome = if self.is_linux {
            self.decide_as_linux(packet, has_room, p_b, by_chance, losses)
        } else {
            self.decide(packet, has_room, p_b, by_chance, losses)
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
