//! Pacing: segments leave at a rate instead of all that the window allows at once.
//!
//! As Linux does it: a quantum of about a millisecond's worth leaves at once, and
//! the next one when the rate has paid for it. So a timer runs once per quantum
//! and not once per segment. A sender that is late, because its timer was or
//! because it had nothing to send, makes up for at most one quantum.

use tidegate_core::{Bytes, Rate, Span, Time};

/// What leaves at once: so much time's worth. Linux sends a 1 024th of what its
/// rate carries in a second (`sk_pacing_shift` 10).
const QUANTUM: Span = Span::millis(1);
/// But at least so many segments (`tcp_min_tso_segs` of Linux).
const LEAST_SEGMENTS: u64 = 2;
/// The first data segments of a connection are not paced: the initial window
/// (RFC 6928) leaves at once, as in Linux's fq.
const UNPACED_SEGMENTS: u64 = 10;

#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    /// When the rate has paid for all that has been sent.
    paid_at: Time,
    /// Bytes of the present quantum that may leave before that.
    left: u64,
}

impl Pacer {
    /// When `bytes` may leave, after `segments` with data: `now` or later.
    pub(super) fn departure(&self, now: Time, bytes: u64, segments: u64) -> Time {
        let free = bytes <= self.left || segments < UNPACED_SEGMENTS;
        if free { now } else { now.max(self.paid_at) }
    }

    /// When the rate has paid for all that has been sent: `now` or later.
    pub(super) fn idle_from(&self, now: Time) -> Time {
        now.max(self.paid_at)
    }

    /// A segment of `bytes` leaves, of at most `mss`, after `segments` with data.
    /// Of those that are not paced, the rate pays for the last one only.
    pub(super) fn on_sent(&mut self, now: Time, rate: Rate, bytes: u64, mss: u64, segments: u64) {
        if segments < UNPACED_SEGMENTS {
            self.paid_at = now;
        } else if self.paid_at <= now {
            let quantum = rate.volume(QUANTUM).max(Bytes(LEAST_SEGMENTS * mss));
            let credit = rate.transmission(quantum);
            self.paid_at = self.paid_at.max(Time(now.0.saturating_sub(credit.0)));
            self.left = quantum.0;
        }
        self.left = self.left.saturating_sub(bytes);
        self.paid_at += rate.transmission(Bytes(bytes));
    }
}
