//! What Linux's Reno and CUBIC have in common (Linux 7.3, tcp_cong and tcp_input).
//!
//! It counts in whole segments: the window grows by one when as many segments have been
//! delivered as the controller asks for, whether one acknowledgement tells of them or
//! several, so that delayed acknowledgements do not slow it down. All that was delivered
//! counts, in slow start too, and what slow start leaves over at its threshold counts for
//! congestion avoidance. A loss reduces the window and not the flight: whoever had less
//! in the network than the window allowed keeps what the window was good for.

use super::slow_start::{Search, SlowStart};
use super::{Ack, Before, Start};

/// `ssthresh` is never less, in segments.
const LEAST_THRESHOLD: u64 = 2;

/// How much of the window was used.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// The window is judged by what happened until this is acknowledged.
    end: u64,
    /// It held the sender back.
    limited: bool,
    /// The most that was in the network, in bytes.
    most: u64,
}

/// A window in whole segments, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// `snd_cwnd`.
    pub(super) size: u64,
    /// `snd_ssthresh`.
    pub(super) threshold: u64,
    pub(super) mss: u64,
    /// `snd_cwnd_cnt`: bytes delivered that have not enlarged the window yet.
    credit: u64,
    slow_start_limit: u64,
    usage: Usage,
    search: Search,
}

impl Window {
    pub(super) fn new(start: &Start, slow_start: SlowStart) -> Window {
        Window {
            size: start.window,
            threshold: start.threshold,
            mss: start.mss,
            credit: 0,
            slow_start_limit: start.slow_start_limit,
            usage: Usage::default(),
            search: Search::new(start, slow_start),
        }
    }

    pub(super) fn segments(&self) -> u64 {
        self.size / self.mss
    }

    fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Looks for the end of slow start.
    pub(super) fn search(&mut self, ack: &Ack) {
        let slow_start = self.in_slow_start();
        if self.search.ends(ack, self.size, slow_start) {
            self.threshold = self.size;
        }
    }

    /// Does what slow start does with an acknowledgement. Returns how many of its bytes
    /// are left for congestion avoidance.
    pub(super) fn slow_start(&mut self, ack: &Ack) -> u64 {
        let used = self.is_used(ack);
        if !ack.may_grow() || !used {
            return 0;
        }
        if !self.in_slow_start() {
            return ack.delivered;
        }
        let growth = self.search.growth(ack.delivered, self.slow_start_limit, self.mss);
        let growth = growth.min(self.threshold - self.size);
        self.size += growth;
        if self.in_slow_start() { 0 } else { ack.delivered - growth }
    }

    /// Congestion avoidance: a segment more for each `count` segments delivered
    /// (`tcp_cong_avoid_ai`).
    pub(super) fn avoid(&mut self, count: u64, delivered: u64) {
        let price = count * self.mss;
        // What was saved at a higher price buys one segment only.
        if self.credit >= price {
            self.credit = 0;
            self.size += self.mss;
        }
        self.credit += delivered;
        self.size += self.credit / price * self.mss;
        self.credit %= price;
    }

    /// Whether the window is used well enough to grow (`tcp_cwnd_validate`): it has held
    /// the sender back in this round trip, or, in slow start, more than half of it was
    /// in the network.
    fn is_used(&mut self, ack: &Ack) -> bool {
        let out = ack.in_flight + ack.delivered;
        let usage = &mut self.usage;
        if ack.acknowledged >= usage.end || ack.window_limited || !usage.limited && out > usage.most
        {
            *usage = Usage { end: ack.sent, limited: ack.window_limited, most: out };
        }
        usage.limited || self.size < self.threshold && self.size < 2 * self.usage.most
    }

    /// A loss leaves so many segments.
    pub(super) fn reduce(&mut self, segments: u64) {
        self.threshold = segments.max(LEAST_THRESHOLD) * self.mss;
        self.size = self.threshold;
        self.credit = 0;
        self.search.on_reduction();
    }

    /// A reduction was needless (`tcp_undo_cwnd_reduction`).
    pub(super) fn restore(&mut self, before: &Before) {
        self.size = self.size.max(before.window);
        self.threshold = self.threshold.max(before.threshold);
    }

    /// A timeout leaves what is in the network and one segment more, which is sent again.
    pub(super) fn collapse(&mut self, in_flight: u64) {
        self.size = in_flight.next_multiple_of(self.mss) + self.mss;
        self.credit = 0;
        self.search.on_timeout();
    }

    /// A silence leaves `size` at most. Three quarters of what the window was stay the
    /// aim of the slow start that follows (RFC 2861, `tcp_current_ssthresh`).
    pub(super) fn restart(&mut self, size: u64) {
        self.threshold = self.threshold.max(self.size / 4 * 3);
        self.size = self.size.min(size);
    }
}
