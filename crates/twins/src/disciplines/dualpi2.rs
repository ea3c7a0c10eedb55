//! DualPI2 over one plain list of packets, with a timer that ticks, in the words of the
//! pseudocode in Appendix A of RFC 9332 and with Linux's choices where that leaves some.
//!
//! It shares with the real one the stream of random numbers and the order of draws, that
//! delays are in seconds as floats, and that of a silence the last 4 000 ticks count.

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, Ecn, LossReason, Losses, Packet, Stream, Time,
};

pub(super) struct DualPi2 {
    limit: Buffer,
    random: Stream,
    target: u64,
    t_update: u64,
    alpha: f64,
    beta: f64,
    k: f64,
    step: u64,
    /// In hundredths.
    classic_weight: i128,
    drop_on_overload: bool,
    /// Both queues, in order of arrival.
    queued: Vec<Packet>,
    /// p'
    p: f64,
    prevq: u64,
    ticked: u64,
    /// What was sent while the other queue had packets, since both were last empty: the
    /// queue, and the bytes.
    turns: Vec<(bool, u64)>,
}

fn is_l4s(packet: &Packet) -> bool {
    // The lowest bit: 01 and 11 (Figure 3 of the pseudocode, `ecn(pkt) modulo 2`).
    packet.ecn as u8 % 2 == 1
}

impl DualPi2 {
    pub(super) fn boxed(settings: &Settings, limit: Buffer, seed: u64) -> Box<dyn Discipline> {
        Box::new(DualPi2 {
            limit,
            random: Stream::new(seed, "dualpi2"),
            target: settings.span("target").0,
            t_update: settings.span("update").0,
            alpha: settings.number("alpha"),
            beta: settings.number("beta"),
            k: f64::from(settings.count("coupling")),
            step: settings.span("step").0,
            classic_weight: i128::from(settings.count("classic_protection")),
            drop_on_overload: settings.choice("overload") == "drop",
            queued: Vec::new(),
            p: 0.0,
            prevq: 0,
            ticked: 0,
            turns: Vec::new(),
        })
    }

    fn tick_until(&mut self, now: Time) {
        let (first, last) = (self.ticked + 1, now.0 / self.t_update);
        for tick in first.max(last.saturating_sub(3_999))..=last {
            let age = |packet: &Packet| (tick * self.t_update).saturating_sub(packet.arrived.0);
            let curq = self.queued.iter().map(age).max().unwrap_or(0);
            let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
            let (current, previous) = (seconds(curq), seconds(self.prevq));
            self.p +=
                self.alpha * (current - seconds(self.target)) + self.beta * (current - previous);
            let ceiling = if self.drop_on_overload { 1.0 } else { 1.0 / self.k };
            self.p = self.p.max(0.0).min(ceiling);
            self.prevq = curq;
        }
        self.ticked = last;
    }

    fn bytes(&self) -> u128 {
        self.queued.iter().map(|packet| u128::from(packet.size.0)).sum()
    }

    /// Whether it is the turn of the L queue when both have packets: the sum of what each
    /// has had, weighted, is not yet above what it begins with.
    fn is_turn_of_l(&self) -> bool {
        let (w_c, w_l) = (self.classic_weight, 100 - self.classic_weight);
        let had = |low: bool| -> i128 {
            let own = self.turns.iter().filter(|(queue, _)| *queue == low);
            own.map(|(_, bytes)| i128::from(*bytes)).sum()
        };
        1_500 * (w_c - w_l) + w_c * had(true) - w_l * had(false) <= 0
    }

    fn draw(&mut self, probability: f64) -> bool {
        self.random.uniform() < probability
    }
}

impl Discipline for DualPi2 {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.tick_until(now);
        let is_full = match self.limit.amount() {
            Amount::Packets(limit) => self.queued.len() >= limit as usize,
            Amount::Bytes(limit) => self.bytes() + u128::from(packet.size.0) > u128::from(limit.0),
        };
        if is_full {
            return losses.push(packet, LossReason::Refused);
        }
        self.queued.push(packet);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.tick_until(now);
        while !self.queued.is_empty() {
            let head = |low| self.queued.iter().position(|packet| is_l4s(packet) == low);
            let heads = (head(true), head(false));
            let contested = heads.0.is_some() && heads.1.is_some();
            let from_l = if contested { self.is_turn_of_l() } else { heads.0.is_some() };
            let place = if from_l { heads.0 } else { heads.1 }.expect("there is a packet");
            let mut packet = self.queued.remove(place);

            let p_cl = self.p * self.k;
            let mut marks = false;
            if self.bytes() >= 2 * 1_500 {
                let applies_classic = !from_l || p_cl > 1.0 && self.drop_on_overload;
                // p_C = p'^2
                let hit = applies_classic && self.draw(self.p) && self.draw(self.p);
                if hit && (p_cl > 1.0 || packet.ecn == Ecn::NotEct) {
                    losses.push(packet, LossReason::Early);
                    continue;
                }
                marks = hit || from_l && (p_cl > 1.0 || self.draw(p_cl));
            }
            // The native AQM of the L queue.
            marks |= from_l && now.0 - packet.arrived.0 > self.step;
            if marks && (packet.ecn != Ecn::Ce) {
                packet = losses.signal(packet)?;
            }
            if contested {
                self.turns.push((from_l, packet.size.0));
            }
            if self.queued.is_empty() {
                self.turns.clear();
            }
            return Some(packet);
        }
        None
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        let bytes = u64::try_from(self.bytes()).unwrap_or(u64::MAX);
        Backlog { packets: self.queued.len() as u32, bytes: Bytes(bytes) }
    }

    fn sorts_by_ecn(&self) -> bool {
        true
    }
}
