//! The rate that a receiver asks for.

use std::collections::VecDeque;

use tidegate_core::{Bytes, Rate};

use super::Usage;

/// The rate of what came counts over a second.
const WINDOW_MS: u64 = 1_000;

/// What came lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Incoming {
    /// By milliseconds.
    came: VecDeque<(u64, u64)>,
    bytes: u64,
    /// The first of the milliseconds that count.
    from_ms: Option<u64>,
}

impl Incoming {
    pub(super) fn add(&mut self, payload: Bytes, now_ms: u64) {
        self.forget(now_ms);
        if self.bytes == 0 {
            // After a silence of a window there is nothing to compare with.
            self.from_ms = Some(now_ms);
        }
        self.bytes += payload.0;
        match self.came.back_mut() {
            Some((at, bytes)) if *at == now_ms => *bytes += payload.0,
            _ => self.came.push_back((now_ms, payload.0)),
        }
    }

    /// In bits a second; `None` if all came in one millisecond.
    pub(super) fn rate(&mut self, now_ms: u64) -> Option<f64> {
        self.forget(now_ms);
        let counted_ms = now_ms - self.from_ms? + 1;
        let is_known = self.bytes > 0 && counted_ms > 1;
        is_known.then(|| (8_000.0 * self.bytes as f64 / counted_ms as f64).round_ties_even())
    }

    fn forget(&mut self, now_ms: u64) {
        let first_ms = (now_ms + 1).saturating_sub(WINDOW_MS);
        self.from_ms = self.from_ms.map(|from| from.max(first_ms));
        while let Some((at, bytes)) = self.came.front()
            && *at < first_ms
        {
            self.bytes -= bytes;
            self.came.pop_front();
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Hold,
    Increase,
}

/// What it asks for before it knows anything, in bits a second.
const FIRST: f64 = 30e6;
/// It looks on for so long before it asks for anything, in milliseconds.
const LOOKS_ON_MS: u64 = 3_000;
/// The part of what came that it asks for when the path is over-used.
const PART: f64 = 0.85;
/// Growth in a second, far from where it met over-use.
const GROWTH: f64 = 1.08;
/// The least growth in a step far from there, and in a second near there, in bits.
const LEAST_STEP: f64 = 1_000.0;
const LEAST_NEAR: f64 = 4_000.0;
/// A round trip and what the receiver takes to react, in milliseconds.
const REACTION_MS: f64 = 200.0 + 100.0;
/// Packets of a frame hold up to so many bits, and frames come 30 a second.
const PACKET_BITS: f64 = 1_200.0 * 8.0;
const FRAMES: f64 = 30.0;
/// What a rate at which the path was over-used counts among the earlier ones.
const WEIGHT: f64 = 0.05;
/// The variance of those rates over their mean, in kbit/s: at first, and at most.
const LEAST_SPREAD: f64 = 0.4;
const MOST_SPREAD: f64 = 2.5;

/// Goes up and down.
#[derive(Clone, Debug)]
pub(super) struct Control {
    state: State,
    /// Bits a second.
    asks: f64,
    knows: bool,
    first_ms: Option<u64>,
    changed_ms: Option<u64>,
    /// Whether it met over-use not far from here.
    is_near: bool,
    /// The rates at which it did, in kbit/s: their mean, and the variance over it.
    met: Option<f64>,
    spread: f64,
    latest: f64,
}

impl Default for Control {
    fn default() -> Control {
        Control {
            state: State::Hold,
            asks: FIRST,
            knows: false,
            first_ms: None,
            changed_ms: None,
            is_near: false,
            met: None,
            spread: LEAST_SPREAD,
            latest: FIRST,
        }
    }
}

impl Control {
    /// What it asks for now; `None` while it looks on.
    pub(super) fn ask(&mut self, usage: Usage, came: Option<f64>, now_ms: u64) -> Option<Rate> {
        if !self.knows
            && let Some(came) = came
        {
            let first_ms = *self.first_ms.get_or_insert(now_ms);
            if now_ms - first_ms > LOOKS_ON_MS {
                self.asks = came;
                self.knows = true;
            }
        }
        if !self.knows && usage != Usage::Over {
            return None;
        }
        self.latest = came.unwrap_or(self.latest);
        let came = self.latest;
        let asks = match usage {
            Usage::Over => self.go_down(came, now_ms),
            Usage::Under => {
                self.state = State::Hold;
                self.asks
            }
            Usage::Normal => {
                if self.state == State::Hold {
                    self.changed_ms = Some(now_ms);
                    self.state = State::Increase;
                }
                self.go_up(came, now_ms)
            }
        };
        // It does not go far beyond what it has seen, nor down because little is sent.
        self.asks = asks.min(((1.5 * came).trunc() + 10_000.0).max(self.asks));
        Some(Rate(self.asks as u64))
    }

    fn go_up(&mut self, came: f64, now_ms: u64) -> f64 {
        if self.met.is_some_and(|met| came / 1e3 >= met + 3.0 * self.deviation(met)) {
            self.is_near = false;
            self.met = None;
        }
        let apart_ms = now_ms - self.changed_ms.unwrap_or(now_ms);
        self.changed_ms = Some(now_ms);
        let step = if self.is_near {
            apart_ms as f64 * self.near_in_a_second() / 1e3
        } else {
            let grows = libm::pow(GROWTH, apart_ms.min(1_000) as f64 / 1e3);
            ((grows - 1.0) * self.asks).max(LEAST_STEP)
        };
        self.asks + step.trunc()
    }

    fn go_down(&mut self, came: f64, now_ms: u64) -> f64 {
        let kbits = came / 1e3;
        if self.met.is_some_and(|met| kbits < met - 3.0 * self.deviation(met)) {
            self.met = None;
        }
        let met = self.met.map_or(kbits, |met| (1.0 - WEIGHT) * met + WEIGHT * kbits);
        self.met = Some(met);
        let off = (met - kbits) * (met - kbits) / met.max(1.0);
        self.spread =
            ((1.0 - WEIGHT) * self.spread + WEIGHT * off).clamp(LEAST_SPREAD, MOST_SPREAD);
        self.is_near = true;
        self.changed_ms = Some(now_ms);
        self.state = State::Hold;
        (PART * came).round_ties_even()
    }

    fn deviation(&self, met: f64) -> f64 {
        (self.spread * met).sqrt()
    }

    /// Bits a second that it goes up in a second: about a packet in a reaction time.
    fn near_in_a_second(&self) -> f64 {
        let frame = self.asks / FRAMES;
        let packet = frame / (frame / PACKET_BITS).ceil();
        (packet * 1e3 / REACTION_MS).trunc().max(LEAST_NEAR)
    }
}
