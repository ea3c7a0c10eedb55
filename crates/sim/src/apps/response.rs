//! A response on its way, and its row.

use tidegate_core::{Bytes, Span, Time};

use super::trouble::Trouble;
use crate::metrics::FlowRecord;

/// A response that somebody has asked for.
pub(super) struct Response {
    source: usize,
    /// Its number within its source.
    pub(super) number: u64,
    size: Bytes,
    asked: Time,
    /// When its first byte came.
    began: Option<Time>,
    taken: u64,
    moved: Time,
    longest_stall: Span,
    /// What its connection had lost and repeated before it came there.
    pub(super) before: Trouble,
}

impl Response {
    pub(super) fn new(source: usize, number: u64, size: Bytes, now: Time) -> Response {
        Response {
            source,
            number,
            size,
            asked: now,
            began: None,
            taken: 0,
            moved: now,
            longest_stall: Span::ZERO,
            before: Trouble::default(),
        }
    }

    /// So many bytes more of it have arrived.
    pub(super) fn take(&mut self, now: Time, bytes: u64) {
        self.began.get_or_insert(now);
        self.taken += bytes;
        self.longest_stall = self.longest_stall.max(now.since(self.moved));
        self.moved = now;
    }

    /// Bytes that have arrived.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn is_complete(&self) -> bool {
        self.taken == self.size.0
    }

    /// The time from the request to the first byte, and from there to the last that came.
    pub(super) fn took(&self) -> (Span, Span) {
        let began = self.began.unwrap_or(self.moved);
        (began.since(self.asked), self.moved.since(began))
    }

    /// Its row, with what its connection has lost and repeated so far, if there is one.
    pub(super) fn record(
        &self,
        now: Time,
        trouble: Option<Trouble>,
        congestion: Option<&'static str>,
    ) -> FlowRecord {
        let trouble = trouble.unwrap_or(self.before).since(self.before);
        let complete = self.is_complete();
        let still = if complete { Span::ZERO } else { now.since(self.moved) };
        FlowRecord {
            traffic: self.source,
            number: self.number,
            size: Some(self.size),
            start: self.asked,
            response: complete.then(|| now.since(self.asked)),
            end: complete.then_some(now),
            delivered: Bytes(self.taken),
            lost: trouble.lost,
            late: None,
            retransmissions: trouble.retransmissions as u32,
            timeouts: trouble.timeouts,
            longest_stall: self.longest_stall.max(still),
            unloaded: None,
            recorded: None,
            congestion,
        }
    }
}
