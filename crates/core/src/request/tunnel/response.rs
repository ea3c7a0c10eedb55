//! A response in a tunnel, as far as it can be told from bytes.
//!
//! Nothing says where it ends. It *is answered* as soon as more has come than heartbeats bring,
//! *seems whole* when what is on its way would have come, and is *over* after quiet. Each is a
//! guess that the next byte may show to be wrong, and none takes anything from the response that
//! it does not get back then.

use super::TunnelConfig;
use crate::request::buffer::Buffer;
use crate::request::{Permit, Reading, Scheduler};
use crate::units::{Bytes, Span, Time};

/// An answer brings more than so many times what the client sends next.
const ANSWER: u64 = 4;

/// What a server sends at once before it hears anything: ten packets (RFC 6928).
const FIRST_FLIGHT: Bytes = Bytes(14_000);

/// Packets that a server sends one after another come no further apart than this and what
/// the queue on their way adds.
const GAP: Span = Span::millis(20);

/// A request that was let go, or the response to one.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) permit: Permit,
    pub(super) reading: Reading,
    pub(super) received: Bytes,
    /// What has come and is not read.
    pub(super) unread: Bytes,
    /// The last time at which the request was sent, part of the response was
    /// read, or bytes were there that could not be read.
    pub(super) moved: Time,
    /// Uplink data since the last downlink bytes; `None` once there are some.
    pub(super) unanswered: Option<Bytes>,
    /// Downlink bytes since the last uplink data; all that there are of what nobody has
    /// asked for.
    pub(super) answer: Bytes,
    /// When all of it seems to have come, if nothing comes until then.
    pub(super) whole_at: Option<Time>,
}

impl Response {
    /// The time at which it is over, if nothing more arrives.
    pub(super) fn over_at(&self, config: &TunnelConfig, round_trip: Span) -> Time {
        let is_asked = self.unanswered.is_some();
        self.moved + if is_asked { config.silence } else { config.quiet + round_trip }
    }

    /// Whether so much uplink data is no part of what it answers.
    pub(super) fn is_answered(&self, size: Bytes, config: &TunnelConfig) -> bool {
        let is_good = self.answer > config.late.max(size * ANSWER);
        self.unanswered.is_none() && self.unread == Bytes::ZERO && is_good
    }

    /// Whether something is there that may not be read.
    pub(super) fn is_held_back(&self) -> bool {
        matches!(self.reading, Reading::UpTo(may) if self.unread > may)
    }

    /// `fresh` bytes of it come now. What is behind them comes within the queueing delay and,
    /// unless it belongs to the first flight, a round trip; if the path is not known, nobody
    /// can say.
    pub(super) fn expect_more(
        &mut self,
        now: Time,
        fresh: Bytes,
        buffer: &Buffer,
        scheduler: &Scheduler,
    ) {
        let is_first = self.received + fresh < FIRST_FLIGHT;
        let round_trip = if is_first { Span::ZERO } else { buffer.round_trip() };
        let delay = scheduler.queueing_delay().filter(|_| buffer.is_timed());
        self.whole_at = delay.map(|delay| now + round_trip + delay + GAP);
    }

    /// Whether its server may wait until more is read: what may be sent is a part of what the
    /// receive buffer holds.
    pub(super) fn may_fill(&self, buffer: &Buffer) -> bool {
        self.unread * 2 > buffer.size()
    }

    /// The time at which it seems to have come, or is over.
    pub(super) fn due(&self, config: &TunnelConfig, round_trip: Span) -> Time {
        let over = self.over_at(config, round_trip);
        self.whole_at.map_or(over, |whole| whole.min(over))
    }
}
