//! What a controller hears: how its connection starts, and what acknowledgements, losses
//! and marks say.

use tidegate_core::{Span, Time};

#[cfg(doc)]
use super::Controller;
use super::{Phase, SlowStart};

/// What a connection starts with; all sizes are in bytes of payload.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// `SMSS`: the most payload that one segment carries.
    pub mss: u64,
    /// The initial window.
    pub window: u64,
    /// The initial slow start threshold; the largest number when there is none.
    pub threshold: u64,
    /// The most that one acknowledgement adds to the window in slow start.
    pub slow_start_limit: u64,
    /// How slow start ends, if that is not the controller's own choice.
    pub slow_start: Option<SlowStart>,
    /// Whether segments are paced although the controller sets no rate: what a train of
    /// acknowledgements says depends on it.
    pub paced: bool,
    /// When the connection came up. A controller that
    /// [samples rates](Controller::samples_rate) starts anew then, others when the
    /// endpoint is made.
    pub now: Time,
    /// The round trip of the handshake, if it was measured.
    pub round_trip: Option<Span>,
    /// Differs from connection to connection: the initial sequence number. A
    /// controller that chooses at random seeds a stream of its own with it.
    pub seed: u32,
    /// Whether the peer reports selectively what has arrived: more than one loss per
    /// round trip can be found then.
    pub selective: bool,
}

/// What an acknowledgement says, after the sender has taken it in.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came in.
    pub now: Time,
    /// Bytes by which it moves the cumulative acknowledgement on.
    pub acked: u64,
    /// Bytes that it reports for the first time, cumulatively or by SACK. Over a
    /// connection these add up to what the peer has received.
    pub delivered: u64,
    /// The round trip that it measures. It measures none if a segment that it
    /// acknowledges was sent more than once (Karn's algorithm).
    pub round_trip: Option<Span>,
    /// The round trip of the latest segment that it reports, if that was sent once:
    /// `RS.rtt` of draft-ietf-ccwg-bbr. SACK's reports count with detection by time, and
    /// for a controller that [asks](Controller::samples_rate) for rates. With delayed
    /// acknowledgements `round_trip` is longer: the receiver has held back what that one
    /// measures.
    pub latest_round_trip: Option<Span>,
    /// `SRTT` (RFC 6298), this measurement included.
    pub smoothed_round_trip: Option<Span>,
    /// Bytes in the network now: FlightSize, or `pipe` with SACK (RFC 6675).
    pub in_flight: u64,
    /// Bytes that were in the network before it came in.
    pub in_flight_before: u64,
    /// Bytes that it newly shows to be lost.
    pub lost: u64,
    /// Bytes that it newly shows to have come in with a mark, in whole segments: none
    /// without accurate ECN. They may be told of before or after their delivery.
    pub marked: u64,
    /// When pacing lets the next segment leave: now or later.
    pub departure: Time,
    /// SND.UNA, it included: the offset up to which all has been acknowledged.
    pub acknowledged: u64,
    /// SND.NXT: the offset up to which all has been sent. A round trip is over when
    /// the offset that stood here at its start has been acknowledged.
    pub sent: u64,
    /// How fast data has arrived, if the controller [asks](Controller::samples_rate)
    /// and data has.
    pub rate: Option<RateSample>,
    /// Whether the window held the sender back, or would have without pacing
    /// (RFC 9002 section 7.8). When it did not, the application or the peer's
    /// window did, and the window must not grow (RFC 7661, RFC 9438 section 5.8).
    /// An acknowledgement that echoes a mark as in RFC 3168 counts as one of those.
    pub window_limited: bool,
    /// What the sender does about losses. It is in recovery also when this
    /// acknowledgement is the first to tell of a loss. A controller that
    /// [rules recovery](Controller::rules_recovery) is told of the phase that follows
    /// when this acknowledgement ends one, others of the phase that ends.
    pub phase: Phase,
}

impl Ack {
    /// Whether a window that answers losses grows by this acknowledgement: it
    /// covers new data, and no fast recovery is under way.
    #[must_use]
    pub fn may_grow(&self) -> bool {
        self.acked > 0 && self.phase != Phase::Recovery
    }
}

/// A measurement of the delivery rate (draft-ietf-ccwg-bbr section 4.1): what has
/// arrived since the latest segment that an acknowledgement reports was sent, in
/// the longer of the times that it took to be sent and to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// `RS.delivered`: bytes that arrived in the interval.
    pub delivered: u64,
    /// `RS.interval`.
    pub interval: Span,
    /// `C.delivered`: bytes that have arrived over the connection, now.
    pub total_delivered: u64,
    /// `RS.prior_delivered`: the same when the segment left.
    pub prior_delivered: u64,
    /// `RS.tx_in_flight`: bytes in the network when the segment left, it included.
    pub in_flight: u64,
    /// `RS.lost`: bytes that were found lost between its departure and now.
    pub lost: u64,
    /// `RS.is_app_limited`: it left while the application, and not the network, set
    /// the pace.
    pub app_limited: bool,
}

/// A segment that has been found lost, for a controller that
/// [asks](Controller::samples_rate) for rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Its offset.
    pub start: u64,
    /// Its payload in bytes.
    pub bytes: u64,
    /// Bytes in the network when it left, it included.
    pub in_flight: u64,
    /// Bytes that were found lost since it left, it included.
    pub lost: u64,
    /// Whether it left while the application set the pace.
    pub app_limited: bool,
    /// `C.delivered`: bytes that have arrived over the connection, by what shows the
    /// loss too.
    pub total_delivered: u64,
}

/// What the sender knows when it finds a loss or a mark.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The window in force, in bytes. It differs from the controller's own when a
    /// timeout ends a fast recovery.
    pub window: u64,
    /// FlightSize (RFC 5681): bytes outstanding, without those of limited transmit.
    pub flight: u64,
}

/// Window and threshold before a reduction, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// The window in force.
    pub window: u64,
    /// `ssthresh`, three quarters of the window at least.
    pub threshold: u64,
}
