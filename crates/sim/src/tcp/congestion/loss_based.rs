//! A window with its threshold and the slow start of RFC 5681, in bytes.

use super::slow_start::{Search, SlowStart};
use super::{Ack, Phase, Start};

/// Segments that are always allowed after a loss (RFC 5681 equation 4).
const LEAST_THRESHOLD: u64 = 2;

/// The window of a controller that grows until something is lost, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// `cwnd`.
    pub(super) size: u64,
    /// `ssthresh`.
    pub(super) threshold: u64,
    /// `SMSS`.
    pub(super) mss: u64,
    /// The most that one acknowledgement adds in slow start.
    slow_start_limit: u64,
    search: Search,
}

impl Window {
    pub(super) fn new(start: &Start) -> Window {
        Window {
            size: start.window,
            threshold: start.threshold,
            mss: start.mss,
            slow_start_limit: start.slow_start_limit,
            search: Search::new(start, SlowStart::Classic),
        }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Looks for the end of slow start.
    pub(super) fn search(&mut self, ack: &Ack) {
        let slow_start = self.in_slow_start();
        if self.search.ends(ack, self.size, slow_start) {
            self.threshold = self.size;
        }
    }

    /// Slow start (RFC 5681 equation 2). After a timeout one acknowledgement adds
    /// one segment at most (RFC 3465 section 2.3).
    pub(super) fn grow(&mut self, ack: &Ack) {
        let limit = if ack.phase == Phase::Loss { self.mss } else { self.slow_start_limit };
        self.size += self.search.growth(ack.acked, limit, self.mss);
    }

    /// A loss leaves `left` bytes, or the least that is always allowed.
    pub(super) fn reduce(&mut self, left: u64) {
        self.threshold = left.max(LEAST_THRESHOLD * self.mss);
        self.size = self.threshold;
        self.search.on_reduction();
    }

    /// A timeout leaves one segment.
    pub(super) fn collapse(&mut self) {
        self.size = self.mss;
        self.search.on_timeout();
    }
}
