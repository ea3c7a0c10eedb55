//! CoDel whose count goes up and down, and BLUE in 4 096 x 2^20 steps.

use tidegate_core::{Packet, Stream};

/// In nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Parameters {
    target: u64,
    tolerated: u64,
    interval: u64,
}

impl Parameters {
    pub(super) fn new(rtt: u64, rate: Option<u64>) -> Parameters {
        let packet = rate.map_or(0, |rate| (1_514 * 8_000_000_000_u64).div_ceil(rate));
        let target = (rtt / 20).max(packet * 3 / 2);
        let interval = (rtt + target - rtt / 20).max(2 * target);
        Parameters { target, tolerated: target.max(4 * packet), interval }
    }
}

/// What to do with a packet; one that must not be dropped may still be marked.
pub(super) struct Verdict {
    pub(super) drop: bool,
    pub(super) mark: bool,
}

#[derive(Clone, Default)]
pub(super) struct Cobalt {
    count: u64,
    /// Signals and steps back so far.
    steps: u64,
    above: bool,
    next: u64,
    blue: u64,
    blue_at: u64,
}

impl Cobalt {
    /// Nanoseconds from one signal to the next.
    fn gap(&self, interval: u64) -> u64 {
        if self.steps == 0 {
            return 0;
        }
        // The largest number whose square, times the count, is within the interval's.
        let fits = |gap: u128| {
            gap * gap * u128::from(self.count.max(1)) <= u128::from(interval) * u128::from(interval)
        };
        // An interval of an hour and a packet has 43 bits.
        let bits = (0..43).rev().map(|bit| 1_u128 << bit);
        bits.fold(0, |gap, bit| if fits(gap | bit) { gap | bit } else { gap }) as u64
    }

    fn count_to(&mut self, count: u64, interval: u64) {
        self.count = count.min(u64::from(u32::MAX));
        self.steps += 1;
        self.next = self.next.saturating_add(self.gap(interval));
    }

    pub(super) fn judge(
        &mut self,
        set: Parameters,
        now: u64,
        packet: &Packet,
        random: &mut Stream,
    ) -> Verdict {
        let mut past = now.saturating_sub(self.next);
        let due = self.count > 0 && self.next <= now;
        let waited_long = now - packet.arrived.0 > set.tolerated;
        if waited_long && !self.above {
            self.next = now.saturating_add(self.gap(set.interval));
        }
        self.above = waited_long;
        self.count = self.count.max(u64::from(waited_long));
        let signal = due && waited_long;
        if signal {
            self.count_to(self.count + 1, set.interval);
        }
        while due && !signal && self.count > 0 && self.next <= now {
            self.count_to(self.count - 1, set.interval);
        }
        if due {
            past = now.saturating_sub(self.next);
        }
        let can_be_marked = packet.ecn.is_markable();
        let struck = self.blue > 0 && random.bits() >> 32 < self.blue;
        let drop = struck || signal && !can_be_marked;
        if self.count == 0 {
            self.next = now.saturating_add(set.interval);
        } else if !drop && past > 0 {
            self.next = now;
        }
        Verdict { drop, mark: signal && can_be_marked }
    }

    pub(super) fn overflow(&mut self, set: Parameters, now: u64) {
        if now - self.blue_at > set.target {
            self.blue = (self.blue + (1 << 24)).min(1 << 32);
            self.blue_at = now;
        }
        self.above = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    pub(super) fn found_empty(&mut self, set: Parameters, now: u64) {
        if self.blue > 0 && now - self.blue_at > set.target {
            self.blue = self.blue.saturating_sub(1 << 20);
            self.blue_at = now;
        }
        self.above = false;
        if self.count > 0 && self.next <= now {
            self.count_to(self.count - 1, set.interval);
        }
    }

    pub(super) fn is_at_rest(&self, now: u64) -> bool {
        (self.count, self.blue) == (0, 0) && self.next <= now
    }
}
