//! Groups of packets, and what each takes longer on the way than the one before.

use tidegate_core::{Bytes, Time};

use super::Usage;

/// Packets sent within this many ticks are a group: 5 ms.
const GROUP: u64 = (5 << SHIFT) / 1_000;
/// A tick of the stamps that packets carry is 2^-18 s; the filter has 8 bits more.
const SHIFT: u32 = 26;
/// What comes at once this soon after a group belongs to it, in milliseconds.
const BURST_MS: u64 = 5;

/// When a packet was sent, as it says itself: in ticks, rounded.
fn stamp(sent: Time) -> u64 {
    let ticks = ((u128::from(sent.0) << 18) + 500_000_000) / 1_000_000_000;
    (ticks as u64) << 8
}

fn milliseconds(ticks: u64) -> f64 {
    ticks as f64 * 1_000.0 / f64::from(1_u32 << SHIFT)
}

/// By how much a group is later, and larger, than the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grown {
    /// Between the last packets of both where they were sent, in milliseconds.
    pub(super) sent_ms: f64,
    /// And where they arrived.
    arrived_ms: f64,
    /// In bytes.
    size: f64,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first: u64,
    last: u64,
    arrived_ms: u64,
    bytes: u64,
}

/// Cuts what arrives into groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    current: Option<Group>,
    before: Option<Group>,
}

impl Groups {
    /// Takes a packet; returns what the last group has grown by, if it ends a group that has
    /// one before it.
    pub(super) fn take(&mut self, sent: Time, now_ms: u64, payload: Bytes) -> Option<Grown> {
        let stamp = stamp(sent);
        let Some(current) = &mut self.current else {
            self.current = Some(Group::new(stamp, now_ms, payload));
            return None;
        };
        if stamp < current.first {
            // It was overtaken, and tells nothing of the queue.
            return None;
        }
        if current.has(stamp, now_ms) {
            current.last = current.last.max(stamp);
            current.bytes += payload.0;
            current.arrived_ms = now_ms;
            return None;
        }
        let ended = *current;
        self.current = Some(Group::new(stamp, now_ms, payload));
        let before = self.before.replace(ended)?;
        Some(Grown {
            sent_ms: milliseconds(ended.last - before.last),
            arrived_ms: ended.arrived_ms as f64 - before.arrived_ms as f64,
            size: ended.bytes as f64 - before.bytes as f64,
        })
    }
}

impl Group {
    fn new(stamp: u64, now_ms: u64, payload: Bytes) -> Group {
        Group { first: stamp, last: stamp, arrived_ms: now_ms, bytes: payload.0 }
    }

    /// Whether a packet belongs to it.
    fn has(&self, stamp: u64, now_ms: u64) -> bool {
        // To even, as the check against another program has it; it matters for ties only.
        let apart_ms = milliseconds(stamp.saturating_sub(self.last)).round_ties_even() as u64;
        let arrived_apart_ms = now_ms - self.arrived_ms;
        let is_burst = apart_ms == 0 || arrived_apart_ms < apart_ms && arrived_apart_ms <= BURST_MS;
        is_burst || stamp - self.first <= GROUP
    }
}

/// The variance of the noise at first, and its least.
const NOISE: f64 = 50.0;
const LEAST_NOISE: f64 = 1.0;
/// What the state may change between two groups: of the time of a byte, and of the growth.
const DRIFT: [f64; 2] = [1e-13, 1e-3];
/// How sure the state is at first.
const DOUBT: [f64; 2] = [100.0, 0.1];
/// Milliseconds that a byte takes at first: about half a Mbit/s.
const BYTE_MS: f64 = 1.0 / 64.0;
/// Groups of which the shortest distance counts, and those that count at all.
const DISTANCES: usize = 60;
const MOST_GROUPS: u32 = 1_000;

/// A Kalman filter of two numbers: milliseconds that a byte takes, and by how many
/// milliseconds the queue grows from group to group.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    byte_ms: f64,
    growth_ms: f64,
    growth_before_ms: f64,
    doubt: [[f64; 2]; 2],
    noise_mean: f64,
    noise: f64,
    groups: u32,
    /// Distances of the latest groups, in milliseconds.
    distances_ms: Vec<f64>,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            byte_ms: BYTE_MS,
            growth_ms: 0.0,
            growth_before_ms: 0.0,
            doubt: [[DOUBT[0], 0.0], [0.0, DOUBT[1]]],
            noise_mean: 0.0,
            noise: NOISE,
            groups: 0,
            distances_ms: Vec::with_capacity(DISTANCES),
        }
    }
}

impl Filter {
    /// By how much the queue grows from group to group, in milliseconds.
    pub(super) fn growth_ms(&self) -> f64 {
        self.growth_ms
    }

    /// Groups that it has seen, up to a thousand.
    pub(super) fn groups(&self) -> u32 {
        self.groups
    }

    pub(super) fn take(&mut self, grown: &Grown, usage: Usage) {
        self.groups = (self.groups + 1).min(MOST_GROUPS);
        if self.distances_ms.len() == DISTANCES {
            self.distances_ms.remove(0);
        }
        let distance_ms = self.distances_ms.iter().copied().fold(grown.sent_ms, f64::min);
        self.distances_ms.push(grown.sent_ms);
        self.doubt[0][0] += DRIFT[0];
        self.doubt[1][1] += DRIFT[1];
        // What goes back to normal does so faster than it drifts.
        let returns = match usage {
            Usage::Over => self.growth_ms < self.growth_before_ms,
            Usage::Under => self.growth_ms > self.growth_before_ms,
            Usage::Normal => false,
        };
        if returns {
            self.doubt[1][1] += 10.0 * DRIFT[1];
        }
        let seen = [grown.size, 1.0];
        let [[a, b], [c, d]] = self.doubt;
        let carried = [a * seen[0] + b * seen[1], c * seen[0] + d * seen[1]];
        let surprise = grown.arrived_ms - grown.sent_ms - self.byte_ms * seen[0] - self.growth_ms;
        if usage == Usage::Normal {
            let most = 3.0 * self.noise.sqrt();
            self.learn_noise(surprise.clamp(-most, most), distance_ms);
        }
        let whole = self.noise + seen[0] * carried[0] + seen[1] * carried[1];
        let gain = [carried[0] / whole, carried[1] / whole];
        let kept = [
            [1.0 - gain[0] * seen[0], -gain[0] * seen[1]],
            [-gain[1] * seen[0], 1.0 - gain[1] * seen[1]],
        ];
        self.doubt = [
            [a * kept[0][0] + c * kept[0][1], b * kept[0][0] + d * kept[0][1]],
            [a * kept[1][0] + c * kept[1][1], b * kept[1][0] + d * kept[1][1]],
        ];
        self.growth_before_ms = self.growth_ms;
        self.byte_ms += gain[0] * surprise;
        self.growth_ms += gain[1] * surprise;
    }

    fn learn_noise(&mut self, surprise: f64, distance_ms: f64) {
        // Ten seconds of a call of 30 frames a second.
        let slow = if self.groups > 300 { 0.002 } else { 0.01 };
        let kept = libm::pow(1.0 - slow, distance_ms * 30.0 / 1_000.0);
        self.noise_mean = kept * self.noise_mean + (1.0 - kept) * surprise;
        let off = self.noise_mean - surprise;
        self.noise = (kept * self.noise + (1.0 - kept) * off * off).max(LEAST_NOISE);
    }
}
