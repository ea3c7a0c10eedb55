//! The one rule for late polls, and the pace of a link that follows it.

use super::CREDIT;
use crate::units::{Bytes, Rate, Time};

/// The time at which the next packet is due. It outlasts calls, so that a late
/// call is known to be late.
#[derive(Debug, Default)]
pub(super) struct Credit {
    due: Option<Time>,
}

impl Credit {
    /// A call at `now` brought or lost packets. `ready` returns when the first
    /// queued packet may leave, not before the time that it is given.
    #[inline]
    pub(super) fn queue_changed(&mut self, now: Time, ready: impl FnOnce(Time) -> Option<Time>) {
        let next = ready(now);
        // A packet that could have left before now keeps its credit.
        if next.is_none() || self.due.is_none_or(|due| due > now) {
            self.due = next;
        }
    }

    /// The time at which a packet taken at `now` counts as leaving; `None` while none may leave.
    #[inline]
    pub(super) fn start(&self, now: Time) -> Option<Time> {
        let due = self.due.filter(|due| *due <= now)?;
        Some(due.max(Time(now.0.saturating_sub(CREDIT.0))))
    }

    /// A packet has left; the next one is due at `next`.
    #[inline]
    pub(super) fn left(&mut self, next: Option<Time>) {
        self.due = next;
    }

    /// When the next packet may leave, not before `now`.
    #[inline]
    pub(super) fn next_ready(&self, now: Time) -> Option<Time> {
        self.due.map(|due| due.max(now))
    }
}

/// A link of a rate: it sends a packet when the one before has left.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Rate,
    /// When the last bit of the packet before has left.
    free: Time,
    credit: Credit,
}

impl Pace {
    pub(crate) fn new(rate: Rate) -> Pace {
        Pace { rate, free: Time::ZERO, credit: Credit::default() }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Sets the rate from the next packet on; the packet that is being sent
    /// takes as long as before.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

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

    /// A packet of `size` leaves from `start` on; returns when its last bit has left.
    #[inline]
    pub(crate) fn send(
        &mut self,
        start: Time,
        size: Bytes,
        ready: impl FnOnce(Time) -> Option<Time>,
    ) -> Time {
        self.free = start + self.rate.transmission(size);
        self.credit.left(ready(self.free));
        self.free
    }

    /// When the next packet may leave, not before `now`.
    #[inline]
    pub(crate) fn next_ready(&self, now: Time) -> Option<Time> {
        self.credit.next_ready(now)
    }
}
