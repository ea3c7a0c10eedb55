//! The one rule for late polls, and the pace of a link that follows it.
//!
//! [`shaper`](crate::shaper) states the rule.

use crate::units::{Span, Time};

/// The delay up to which a late poll loses nothing. A kernel whose clock ticks at
/// 100 Hz wakes a sleeper up to 10 ms late.
pub const CREDIT: Span = Span::millis(10);

/// The time at which the next packet is due. It outlasts calls, so that a late
/// call is known to be late.
#[derive(Debug, Default)]
pub(crate) struct Credit {
    due: Option<Time>,
}

impl Credit {
    /// A call at `now` brought or lost packets. `ready` returns when the first
    /// queued packet may leave, not before the time that it is given.
    #[inline]
    pub(crate) fn queue_changed(&mut self, now: Time, ready: impl FnOnce(Time) -> Option<Time>) {
        let next = ready(now);
        // A packet that could have left before now keeps its credit.
        if next.is_none() || self.due.is_none_or(|due| due > now) {
            self.due = next;
        }
    }

    /// The time at which a packet taken at `now` counts as leaving; `None` while none may leave.
    #[inline]
    pub(crate) fn start(&self, now: Time) -> Option<Time> {
        let due = self.due.filter(|due| *due <= now)?;
        Some(due.max(Time(now.0.saturating_sub(CREDIT.0))))
    }

    /// A packet has left; the next one is due at `next`.
    #[inline]
    pub(crate) fn left(&mut self, next: Option<Time>) {
        self.due = next;
    }

    /// When the next packet may leave, not before `now`.
    #[inline]
    pub(crate) fn next_ready(&self, now: Time) -> Option<Time> {
        self.due.map(|due| due.max(now))
    }
}

/// A link that sends a packet when the one before has left. How long a packet takes
/// is for its owner to say, who knows the rate.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When the last bit of the packet before has left.
    free: Time,
    credit: Credit,
}

impl Pace {
    /// A call at `now` brought or lost packets. `ready` returns when the first
    /// queued packet may leave, not before the time that it is given.
    #[inline]
    pub(crate) fn queue_changed(&mut self, now: Time, ready: impl FnOnce(Time) -> Option<Time>) {
        let free = self.free;
        self.credit.queue_changed(now, |now| ready(now.max(free)));
    }

    /// The time at which a packet taken at `now` counts as leaving; `None` while none may leave.
    #[inline]
    pub(crate) fn start(&self, now: Time) -> Option<Time> {
        self.credit.start(now)
    }

    /// A packet leaves from `start` on, which takes `span`; returns when its last bit
    /// has left.
    #[inline]
    pub(crate) fn send(
        &mut self,
        start: Time,
        span: Span,
        ready: impl FnOnce(Time) -> Option<Time>,
    ) -> Time {
        self.free = start + span;
        self.credit.left(ready(self.free));
        self.free
    }

    /// When the next packet may leave, not before `now`.
    #[inline]
    pub(crate) fn next_ready(&self, now: Time) -> Option<Time> {
        self.credit.next_ready(now)
    }
}
