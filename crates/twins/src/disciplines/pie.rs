//! PIE with a timer that ticks, as in the pseudocode in Appendices A and B of RFC
//! 8033, or as in Linux 7.3's `sch_pie`, over a plain list of packets. In Linux's form
//! the sum of probabilities is summed again for each packet.
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
        let bytes: u128 = self.queue.iter().map(|packet| u128::from(packet.size.0)).sum();
        self.law.tick_until(now, bytes);
        let is_full = match self.buffer.amount() {
            Amount::Packets(limit) => self.queue.len() >= limit as usize,
            Amount::Bytes(limit) => bytes + u128::from(packet.size.0) > u128::from(limit.0),
        };
        if is_full {
            self.law.forget_sum();
            return losses.push(packet, LossReason::Refused);
        }
        self.queue.extend(self.law.admit(packet, bytes, &mut self.random, losses));
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        let bytes = |queue: &[Packet]| queue.iter().map(|packet| u128::from(packet.size.0)).sum();
        self.law.tick_until(now, bytes(&self.queue));
        if self.queue.is_empty() {
            return None;
        }
        let packet = self.queue.remove(0);
        self.law.sample(now, packet, bytes(&self.queue));
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
    is_linux: bool,
    qdelay_ref: u64,
    t_update: u64,
    max_burst: u64,
    alpha: f64,
    beta: f64,
    ecn: bool,
    mark_ecnth: f64,
    drop_prob: f64,
    /// Linux: the probabilities since the sum last began anew.
    accumulated: Vec<f64>,
    current_qdelay: u64,
    qdelay_old: u64,
    burst_allowance: u64,
    last_tick: u64,
    /// Linux: the departures since the allowance was last renewed.
    departures: Vec<Time>,
}

impl Law {
    pub(super) fn new(settings: &Settings) -> Law {
        let max_burst = settings.span("burst").0;
        Law {
            is_linux: settings.choice("form") == "linux",
            qdelay_ref: settings.span("target").0,
            t_update: settings.span("update").0,
            max_burst,
            alpha: settings.number("alpha"),
            beta: settings.number("beta"),
            ecn: settings.switch("ecn"),
            mark_ecnth: settings.number("ecn_threshold"),
            drop_prob: 0.0,
            accumulated: Vec::new(),
            current_qdelay: 0,
            qdelay_old: 0,
            burst_allowance: max_burst,
            last_tick: 0,
            departures: Vec::new(),
        }
    }

    /// Ticks at every multiple of T_UPDATE up to `now`, with this many bytes queued.
    pub(super) fn tick_until(&mut self, now: Time, bytes: u128) {
        let ticks = now.0 / self.t_update - self.last_tick / self.t_update;
        for _ in 0..ticks.min(4_000) {
            self.calculate_drop_prob(bytes);
        }
        let passed = u128::from(ticks) * u128::from(self.t_update);
        if !self.is_linux {
            self.burst_allowance =
                u128::from(self.burst_allowance).saturating_sub(passed).try_into().expect("less");
        }
        self.last_tick = now.0 / self.t_update * self.t_update;
    }

    fn calculate_drop_prob(&mut self, bytes: u128) {
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
        let no_delay = (self.current_qdelay, self.qdelay_old) == (0, 0);
        if self.is_linux {
            let beyond = if self.current_qdelay > 250_000_000 { 0.02 } else { 0.0 };
            let risen = self.drop_prob + (p + beyond);
            self.drop_prob = match risen {
                ..0.0 => 0.0,
                256.0.. => 1.0,
                _ if no_delay && bytes == 0 => risen - risen / 64.0,
                _ => risen,
            };
            if self.is_quiet() {
                self.burst_allowance = self.max_burst;
                self.accumulated.clear();
                self.departures.clear();
            }
        } else {
            self.drop_prob += p;
            if no_delay {
                self.drop_prob *= 0.98;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        }
        self.qdelay_old = self.current_qdelay;
    }

    fn below_half(&self, delay: u64) -> bool {
        u128::from(delay) * 2 < u128::from(self.qdelay_ref)
    }

    fn is_quiet(&self) -> bool {
        self.drop_prob == 0.0
            && self.below_half(self.current_qdelay)
            && self.below_half(self.qdelay_old)
    }

    /// What becomes of an arriving packet that finds this many bytes.
    pub(super) fn admit(
        &mut self,
        packet: Packet,
        queued_bytes: u128,
        random: &mut Stream,
        losses: &mut Losses,
    ) -> Option<Packet> {
        let is_hit = if self.is_linux {
            self.is_hit_in_linux(queued_bytes, random)
        } else {
            self.is_hit_in_the_rfc(queued_bytes, random)
        };
        if !is_hit {
            return Some(packet);
        }
        let is_low =
            self.drop_prob < self.mark_ecnth || self.is_linux && self.drop_prob == self.mark_ecnth;
        if self.ecn && is_low && packet.ecn.is_markable() {
            return losses.signal(packet);
        }
        self.forget_sum();
        losses.push(packet, LossReason::Early);
        None
    }

    fn is_hit_in_the_rfc(&mut self, queued_bytes: u128, random: &mut Stream) -> bool {
        if self.is_quiet() {
            self.burst_allowance = self.max_burst;
        }
        let safe = self.below_half(self.qdelay_old) && self.drop_prob < 0.2;
        if self.burst_allowance > 0 || safe || queued_bytes <= 2 * 1024 {
            return false;
        }
        random.uniform() < self.drop_prob
    }

    fn is_hit_in_linux(&mut self, queued_bytes: u128, random: &mut Stream) -> bool {
        let safe = self.below_half(self.current_qdelay) && self.drop_prob < 0.2;
        if self.burst_allowance > 0 || safe || queued_bytes < 2 * 1_500 {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accumulated.clear();
        }
        self.accumulated.push(self.drop_prob);
        match self.accumulated.iter().fold(0.0, |sum, probability| sum + probability) {
            ..0.85 => false,
            8.5.. => true,
            _ if random.uniform() < self.drop_prob => {
                self.accumulated.clear();
                true
            }
            _ => false,
        }
    }

    pub(super) fn forget_sum(&mut self) {
        self.accumulated.clear();
    }

    /// A packet left, and this many bytes are left behind it.
    pub(super) fn sample(&mut self, now: Time, packet: Packet, bytes: u128) {
        self.current_qdelay = if bytes == 0 { 0 } else { now.0 - packet.arrived.0 };
        if self.is_linux {
            let passed = self.departures.last().map_or(0, |before| now.0 - before.0);
            self.burst_allowance = self.burst_allowance.saturating_sub(passed);
            self.departures.push(now);
        }
    }

    /// All that was queued has been pushed out.
    pub(super) fn emptied(&mut self) {
        self.current_qdelay = 0;
    }
}
