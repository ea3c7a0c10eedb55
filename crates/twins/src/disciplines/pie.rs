//! PIE with a timer that ticks, as in the pseudocode in Appendices A and B of RFC
//! 8033, over a plain list of packets.
//!
//! It shares with the real one the stream of random numbers, that delays are in
//! seconds as floats, and that a silence ticks at most 4 000 times.

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Bytes, Discipline, LossReason, Losses, Packet, Stream, Time};

pub(super) struct Pie {
    buffer: Buffer,
    random: Stream,
    law: Law,
    queue: Vec<Packet>,
}

impl Pie {
    pub(super) fn boxed(settings: &Settings, buffer: Buffer, seed: u64) -> Box<dyn Discipline> {
        let random = Stream::new(seed, "pie");
        Box::new(Pie { buffer, random, law: Law::new(settings), queue: Vec::new() })
    }
}

impl Discipline for Pie {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.law.tick_until(now);
        let bytes: u128 = self.queue.iter().map(|packet| u128::from(packet.size.0)).sum();
        let is_full = match self.buffer.amount() {
            Amount::Packets(limit) => self.queue.len() >= limit as usize,
            Amount::Bytes(limit) => bytes + u128::from(packet.size.0) > u128::from(limit.0),
        };
        if is_full {
            return losses.push(packet, LossReason::Refused);
        }
        if !self.law.is_hit(bytes, &mut self.random) {
            self.queue.push(packet);
        } else if self.law.marks() {
            self.queue.extend(losses.signal(packet));
        } else {
            losses.push(packet, LossReason::Early);
        }
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.law.tick_until(now);
        if self.queue.is_empty() {
            return None;
        }
        let packet = self.queue.remove(0);
        self.law.sample(now, packet, self.queue.is_empty());
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        let bytes: u128 = self.queue.iter().map(|packet| u128::from(packet.size.0)).sum();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        Backlog { packets: self.queue.len() as u32, bytes: Bytes(bytes) }
    }
}

/// What the pseudocode calls `PIE->`, in nanoseconds and in numbers.
#[derive(Clone)]
pub(super) struct Law {
    qdelay_ref: u64,
    t_update: u64,
    max_burst: u64,
    alpha: f64,
    beta: f64,
    mark_ecnth: f64,
    drop_prob: f64,
    current_qdelay: u64,
    qdelay_old: u64,
    burst_allowance: u64,
    last_tick: u64,
}

impl Law {
    pub(super) fn new(settings: &Settings) -> Law {
        let max_burst = settings.span("burst").0;
        Law {
            qdelay_ref: settings.span("target").0,
            t_update: settings.span("update").0,
            max_burst,
            alpha: settings.number("alpha"),
            beta: settings.number("beta"),
            mark_ecnth: settings.number("ecn_threshold"),
            drop_prob: 0.0,
            current_qdelay: 0,
            qdelay_old: 0,
            burst_allowance: max_burst,
            last_tick: 0,
        }
    }

    /// Ticks at every multiple of T_UPDATE up to `now`.
    pub(super) fn tick_until(&mut self, now: Time) {
        let ticks = now.0 / self.t_update - self.last_tick / self.t_update;
        for _ in 0..ticks.min(4_000) {
            self.calculate_drop_prob();
        }
        let passed = u128::from(ticks) * u128::from(self.t_update);
        self.burst_allowance =
            u128::from(self.burst_allowance).saturating_sub(passed).try_into().expect("less");
        self.last_tick = now.0 / self.t_update * self.t_update;
    }

    fn calculate_drop_prob(&mut self) {
        const TABLE: [(f64, f64); 6] = [
            (0.000001, 2048.0),
            (0.00001, 512.0),
            (0.0001, 128.0),
            (0.001, 32.0),
            (0.01, 8.0),
            (0.1, 2.0),
        ];
        let [current, old, target] = [self.current_qdelay, self.qdelay_old, self.qdelay_ref]
            .map(|nanoseconds| nanoseconds as f64 / 1e9);
        let mut p = self.alpha * (current - target) + self.beta * (current - old);
        match TABLE.iter().find(|(limit, _)| self.drop_prob < *limit) {
            Some((_, divisor)) => p /= divisor,
            None => p = p.min(0.02),
        }
        self.drop_prob += p;
        if (self.current_qdelay, self.qdelay_old) == (0, 0) {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
    }

    /// Whether an arriving packet that finds this many bytes is to be marked or
    /// dropped.
    pub(super) fn is_hit(&mut self, queued_bytes: u128, random: &mut Stream) -> bool {
        let below_half = |delay: u64| u128::from(delay) * 2 < u128::from(self.qdelay_ref);
        let (current, old) = (below_half(self.current_qdelay), below_half(self.qdelay_old));
        if self.drop_prob == 0.0 && current && old {
            self.burst_allowance = self.max_burst;
        }
        if self.burst_allowance > 0 || old && self.drop_prob < 0.2 || queued_bytes <= 2 * 1024 {
            return false;
        }
        random.uniform() < self.drop_prob
    }

    /// Whether a hit is a mark for packets that can be marked.
    pub(super) fn marks(&self) -> bool {
        self.drop_prob < self.mark_ecnth
    }

    /// A packet left, perhaps leaving nothing behind it.
    pub(super) fn sample(&mut self, now: Time, packet: Packet, is_empty: bool) {
        self.current_qdelay = if is_empty { 0 } else { now.0 - packet.arrived.0 };
    }
}
