//! The rate that no queue of [`Fq`](super::Fq) exceeds, and who waits for it.
//!
//! A queue sends until its credits are used up, a quantum after the first turn; then it
//! waits for as long as that quantum, or the last packet if that is larger, takes at the
//! rate. So at a quantum of two packets it sends two at once, and with `initial_quantum`
//! ten for a start. Up to [`LOW_RATE`] it waits after each packet instead. No wait is
//! longer than a second (Linux 7.3, `sch_fq`).
//!
//! The time of a queue outlasts its packets: who pauses and comes back early waits still.
//! A queue that is found too early in its turn has no turns until its time has come, and
//! is an old one then. Linux finds it when the link is free, this when a packet leaves.

use std::collections::BTreeSet;

use crate::units::{Bytes, Rate, Span, Time};

/// `low_rate_threshold`.
const LOW_RATE: Rate = Rate(550_000);

/// Beyond this Linux does not trust the rate of a socket, which may change.
const LONGEST_WAIT: Span = Span::seconds(1);

#[derive(Debug)]
pub(super) struct MaxRate {
    rate: Rate,
    /// Queues with packets, by the time before which they may not send.
    waiting: BTreeSet<(Time, u32)>,
    /// Those of them that have no turns until then.
    throttled: BTreeSet<(Time, u32)>,
}

impl MaxRate {
    pub(super) fn new(rate: Rate) -> MaxRate {
        MaxRate { rate, waiting: BTreeSet::new(), throttled: BTreeSet::new() }
    }

    /// When the first queue with packets may send.
    pub(super) fn first(&self) -> Option<Time> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// A queue that had no packets has one, which may leave from `at` on.
    pub(super) fn wait(&mut self, at: Time, queue: u32) {
        self.waiting.insert((at, queue));
    }

    /// A queue that could send from `before` on has sent, and may again at `next`, or has
    /// nothing left.
    pub(super) fn sent(&mut self, queue: u32, before: Time, next: Option<Time>) {
        if next == Some(before) {
            return;
        }
        self.waiting.remove(&(before, queue));
        if let Some(next) = next {
            self.waiting.insert((next, queue));
        }
    }

    /// A queue with packets has no turns until `at`.
    pub(super) fn throttle(&mut self, at: Time, queue: u32) {
        self.throttled.insert((at, queue));
    }

    /// A queue that has turns again from `now` on, the earliest first.
    pub(super) fn release(&mut self, now: Time) -> Option<u32> {
        let (at, _) = self.throttled.first()?;
        if *at > now {
            return None;
        }
        self.throttled.pop_first().map(|(_, queue)| queue)
    }

    /// How long a queue that is left with `credits` after a packet of `size` has to wait;
    /// `None` if it may send on.
    pub(super) fn span(&self, credits: &mut i128, size: Bytes, quantum: Bytes) -> Option<Span> {
        let size = if self.rate <= LOW_RATE {
            *credits = 0;
            size
        } else if *credits > 0 {
            return None;
        } else {
            size.max(quantum)
        };
        Some(self.rate.transmission(size).min(LONGEST_WAIT))
    }
}
