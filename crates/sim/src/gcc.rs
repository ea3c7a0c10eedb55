//! Google's congestion control of calls: how a browser's video call finds the rate that a
//! path carries (draft-ietf-rmcat-gcc-02).
//!
//! The receiver looks at how the spacing of packets grows on the way. It takes packets that
//! were sent within 5 ms for a group, and follows by a Kalman filter what each group takes
//! longer than the one before (`arrival`). Where that stays above a threshold, which itself
//! follows what is usual on the path, the path is *over-used* (`detector`); its queue
//! grows. Then the receiver asks for 85% of what came lately, and otherwise for more and
//! more: 8% a second far from the rates at which it met over-use before, and about half a
//! packet for each reaction time near them (`rate`).
//!
//! The [`Sender`] sends at the rate that it is asked for, or less where packets are lost:
//! beyond 10% of them it goes down by half of the lost part, below 2% up by 5%, once a second,
//! and never above what the receiver asks for.
//!
//! The draft leaves constants open, and browsers have others than it recommends. Those here,
//! and the filter with a term for the sizes of groups, are those of the WebRTC project's
//! receiver, which browsers had until they moved the estimate to the sender and took a line of
//! trend in place of the filter. Tests hold the receiver against aiortc, which has it, too.
//!
//! Left out: probes by bursts of packets at the start, and ECN.

mod arrival;
mod detector;
mod rate;

use tidegate_core::{Bytes, Rate, Span, Time};

use self::arrival::{Filter, Groups};
use self::detector::Detector;
use self::rate::{Control, Incoming};

/// How the queue of the path seems to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Usage {
    /// It stays as it is.
    #[default]
    Normal,
    /// It becomes shorter.
    Under,
    /// It grows.
    Over,
}

/// The receiver of a call: what rate it asks for.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    incoming: Incoming,
    groups: Groups,
    filter: Filter,
    detector: Detector,
    control: Control,
    /// When it asked last, in milliseconds.
    asked_ms: Option<u64>,
}

/// How long it is silent while nothing happens, in milliseconds.
const SILENT_MS: u64 = 500;

impl Receiver {
    /// A packet that was sent at `sent`, and has so much payload, has arrived at `now`.
    /// Returns the rate that it asks for, when it is time to.
    pub fn arrived(&mut self, now: Time, sent: Time, payload: Bytes) -> Option<Rate> {
        let now_ms = now.0 / 1_000_000;
        self.incoming.add(payload, now_ms);
        if let Some(grown) = self.groups.take(sent, now_ms, payload) {
            self.filter.take(&grown, self.detector.usage());
            self.detector.take(&self.filter, grown.sent_ms, now_ms);
        }
        let is_due = self.asked_ms.is_none_or(|asked| now_ms - asked > SILENT_MS);
        if !is_due && self.detector.usage() != Usage::Over {
            return None;
        }
        let asked = self.control.ask(self.detector.usage(), self.incoming.rate(now_ms), now_ms)?;
        self.asked_ms = Some(now_ms);
        Some(asked)
    }
}

/// The sender of a call: at what rate it sends.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    rate: Rate,
    least: Rate,
    most: Rate,
}

/// Below this part of packets lost it sends more, above the other one less.
const FEW_LOST: f64 = 0.02;
const MANY_LOST: f64 = 0.10;
/// What it sends more each time that it hears of few.
const GROWTH: f64 = 1.05;

impl Sender {
    /// A sender that begins with the rate `first`, and keeps between `least` and `most`.
    #[must_use]
    pub fn new(first: Rate, least: Rate, most: Rate) -> Sender {
        Sender { rate: first.clamp(least, most.max(least)), least, most: most.max(least) }
    }

    /// A report of the receiver: the rate that it asks for, if it has asked for one yet, and the
    /// part of packets that were lost since it last told that, if it does.
    pub fn heard(&mut self, asked: Option<Rate>, lost: Option<f64>) {
        let rate = self.rate.0 as f64;
        let rate = match lost {
            Some(lost) if lost > MANY_LOST => rate * (1.0 - lost / 2.0),
            Some(lost) if lost < FEW_LOST => rate * GROWTH,
            _ => rate,
        };
        let most = asked.map_or(self.most, |asked| asked.min(self.most)).max(self.least);
        self.rate = Rate(rate as u64).clamp(self.least, most);
    }

    /// The rate at which it sends.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

/// A call's frames, and how they leave.
pub(crate) mod media {
    use super::{Bytes, Span};

    /// Between two frames on average: 30 a second.
    pub(crate) const BETWEEN_FRAMES: Span = Span(1_000_000_000 / 30);
    /// The most payload of a packet.
    pub(crate) const PAYLOAD: Bytes = Bytes(1_200);
    /// IPv4, UDP (RFC 768) and RTP (RFC 3550 section 5.1) around it.
    pub(crate) const HEADERS: Bytes = Bytes(20 + 8 + 12);
    /// The packets of a frame leave two and a half times as fast as the call's rate, as from a
    /// browser's pacer.
    pub(crate) const PACING_PERCENT: u64 = 250;
    /// A report on the wire: IPv4, UDP, and RTCP with the rate and the loss (RFC 3550 section
    /// 6.4.2, and REMB).
    pub(crate) const REPORT: Bytes = Bytes(20 + 8 + 32 + 24);
}
