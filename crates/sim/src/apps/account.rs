//! What is known of a transfer whatever carries it: when it was asked for, what has reached
//! its receiver, and the row that comes of it.

use tidegate_core::{Bytes, Span, Time};

use crate::metrics::FlowRecord;
use crate::scenario::NodeId;

/// More than any run can carry, and far from overflow.
pub(super) const ENDLESS: u64 = 1 << 60;

/// A transfer that a source has asked for: what is known of it before it begins.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) at: Time,
    pub(super) size: Option<Bytes>,
    /// Its source, and its number there.
    pub(super) traffic: u32,
    pub(super) number: u64,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
}

impl Asked {
    /// The row of one that has waited until `now` and never began.
    pub(super) fn record(&self, now: Time) -> FlowRecord {
        FlowRecord {
            traffic: self.traffic as usize,
            number: self.number,
            size: self.size,
            start: self.at,
            congestion: None,
            response: None,
            end: None,
            delivered: Bytes::ZERO,
            lost: 0,
            late: None,
            retransmissions: 0,
            timeouts: 0,
            longest_stall: now.since(self.at),
            unloaded: None,
            recorded: None,
        }
    }
}

/// What a sender has done for a transfer.
pub(super) struct Sent {
    pub(super) congestion: &'static str,
    /// Packets lost on the way, in both directions.
    pub(super) lost: u32,
    pub(super) retransmissions: u32,
    pub(super) timeouts: u32,
}

/// The account of a transfer that has begun.
pub(super) struct Account {
    pub(super) size: Option<Bytes>,
    /// Its source, and its number there.
    pub(super) traffic: usize,
    pub(super) number: u64,
    started: Time,
    response: Option<Span>,
    /// Payload that had reached the receiver when the record began: at the
    /// start, or at the end of the warm-up.
    delivered_before: u64,
    /// Payload that had reached the receiver at the last progress, and the time of that.
    delivered: u64,
    progressed: Time,
    longest_stall: Span,
}

impl Account {
    pub(super) fn new(asked: &Asked) -> Account {
        Account {
            size: asked.size,
            traffic: asked.traffic as usize,
            number: asked.number,
            started: asked.at,
            response: None,
            delivered_before: 0,
            delivered: 0,
            progressed: asked.at,
            longest_stall: Span::ZERO,
        }
    }

    /// So much has reached the receiver so far; `complete` when the end of a transfer of no
    /// bytes has.
    pub(super) fn reached(&mut self, now: Time, delivered: u64, complete: bool) {
        if delivered > self.delivered || complete {
            self.delivered = delivered;
            self.longest_stall = self.longest_stall.max(now.since(self.progressed));
            self.progressed = now;
            if self.size.is_some_and(|size| delivered >= size.0) && self.response.is_none() {
                self.response = Some(now.since(self.started));
            }
        }
    }

    /// Payload that has reached the receiver.
    pub(super) fn delivered(&self) -> Bytes {
        Bytes(self.delivered)
    }

    /// The warm-up is over: a transfer without end counts from now on. Returns whether it is
    /// one.
    pub(super) fn forget_warm_up(&mut self, now: Time) -> bool {
        if self.size.is_some() {
            return false;
        }
        (self.started, self.progressed) = (now, now);
        self.longest_stall = Span::ZERO;
        self.delivered_before = self.delivered;
        true
    }

    /// Its row: when it has `finished`, both directions are done.
    pub(super) fn record(&self, now: Time, sent: &Sent, finished: bool) -> FlowRecord {
        let still = if self.response.is_none() { now.since(self.progressed) } else { Span::ZERO };
        FlowRecord {
            traffic: self.traffic,
            number: self.number,
            size: self.size,
            start: self.started,
            congestion: Some(sent.congestion),
            response: self.response,
            end: (finished && self.response.is_some()).then_some(now),
            delivered: Bytes(self.delivered - self.delivered_before),
            lost: sent.lost,
            late: None,
            retransmissions: sent.retransmissions,
            timeouts: sent.timeouts,
            longest_stall: self.longest_stall.max(still),
            unloaded: None,
            recorded: None,
        }
    }
}
