//! Whether a path is over-used: growth of its queue beside a threshold that follows it.

use super::Usage;
use super::arrival::Filter;

/// The growth counts for so many groups at most.
const MOST_GROUPS: u32 = 60;
/// The threshold at first, its least and its most, in milliseconds.
const FIRST_MS: f64 = 12.5;
const LEAST_MS: f64 = 6.0;
const MOST_MS: f64 = 600.0;
/// How fast it goes up and down, a millisecond.
const UP: f64 = 0.0087;
const DOWN: f64 = 0.039;
/// What is this far above it is an accident, and leaves it alone.
const ACCIDENT_MS: f64 = 15.0;
/// The threshold changes by at most so many milliseconds' worth at once.
const MOST_APART_MS: u64 = 100;
/// How long the growth has to last, in milliseconds.
const LASTING_MS: f64 = 10.0;

/// Watches the growth.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    usage: Usage,
    threshold_ms: f64,
    /// When the threshold was looked at last.
    looked_ms: Option<u64>,
    /// How long the growth has been above it, and for how many groups.
    above_ms: Option<f64>,
    above: u32,
    growth_before_ms: f64,
}

impl Default for Detector {
    fn default() -> Detector {
        Detector {
            usage: Usage::Normal,
            threshold_ms: FIRST_MS,
            looked_ms: None,
            above_ms: None,
            above: 0,
            growth_before_ms: 0.0,
        }
    }
}

impl Detector {
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Takes the growth after a group that was sent so long after the one before.
    pub(super) fn take(&mut self, filter: &Filter, sent_ms: f64, now_ms: u64) {
        if filter.groups() < 2 {
            return;
        }
        let growth_ms = filter.growth_ms();
        let all_ms = f64::from(filter.groups().min(MOST_GROUPS)) * growth_ms;
        if all_ms > self.threshold_ms {
            let above_ms = self.above_ms.map_or(sent_ms / 2.0, |above_ms| above_ms + sent_ms);
            self.above_ms = Some(above_ms);
            self.above += 1;
            if above_ms > LASTING_MS && self.above > 1 && growth_ms >= self.growth_before_ms {
                self.above_ms = Some(0.0);
                self.above = 0;
                self.usage = Usage::Over;
            }
        } else {
            self.above_ms = None;
            self.above = 0;
            let shrinks = all_ms < -self.threshold_ms;
            self.usage = if shrinks { Usage::Under } else { Usage::Normal };
        }
        self.growth_before_ms = growth_ms;
        self.follow(all_ms.abs(), now_ms);
    }

    fn follow(&mut self, all_ms: f64, now_ms: u64) {
        let apart_ms = now_ms - self.looked_ms.unwrap_or(now_ms);
        self.looked_ms = Some(now_ms);
        if all_ms > self.threshold_ms + ACCIDENT_MS {
            return;
        }
        let speed = if all_ms < self.threshold_ms { DOWN } else { UP };
        let step = speed * (all_ms - self.threshold_ms) * apart_ms.min(MOST_APART_MS) as f64;
        self.threshold_ms = (self.threshold_ms + step).clamp(LEAST_MS, MOST_MS);
    }
}
