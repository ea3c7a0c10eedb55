//! How fast data arrives (draft-ietf-ccwg-bbr section 4.1, as Linux 7.3 measures it).
//!
//! Each segment notes, when it leaves, how much has arrived until then and since when.
//! When it arrives itself, the difference is what the network has delivered meanwhile.
//! The time for that is the longer of two: that in which it was sent, and that in which
//! it was acknowledged. So neither a burst of data nor one of acknowledgements makes the
//! network seem faster than it is.
//!
//! A sample counts as limited by the application if there was a moment, while what it
//! covers was on its way, at which the sender had nothing to send. As in Linux that is
//! looked for when the application writes: it has left a gap if what it wrote before has
//! gone, and nothing else held that back.
//!
//! The notes stand in a queue beside the scoreboard's records, one for each and in the same
//! order. Only a controller that wants samples pays for them; what they take stays out of
//! line, so that the others have no more than a test for them.

use std::collections::VecDeque;

use tidegate_core::{Span, Time};

use super::congestion::{LostSegment, RateSample};
use super::scoreboard::{Record, sent_after};

/// What a segment notes at its last transmission; the draft's names are in the
/// comments.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// `P.first_send_time`.
    first_sent: Time,
    /// `P.delivered_time`.
    delivered_at: Time,
    /// `P.delivered`.
    delivered: u64,
    /// `P.lost`.
    lost: u64,
    /// `P.tx_in_flight`.
    in_flight: u64,
    /// `P.is_app_limited`.
    limited: bool,
}

/// The latest transmission of which the present acknowledgement tells.
#[derive(Clone, Copy, Debug)]
struct Newest {
    departure: Departure,
    sent_at: Time,
    order: u32,
    retransmitted: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Delivery {
    /// One for each record of the board.
    departures: VecDeque<Departure>,
    /// `C.delivered`: bytes that have arrived.
    delivered: u64,
    /// `C.delivered_time`: when the latest of them was reported.
    delivered_at: Time,
    /// `C.first_send_time`: when the latest segment that has arrived was sent.
    first_sent: Time,
    /// `C.lost`: bytes that were found lost.
    lost: u64,
    /// `C.app_limited`: the application left a gap before the byte of this number.
    limited_until: Option<u64>,
    /// `C.min_rtt`: the least round trip of the connection. Less time than that has
    /// passed since a segment left only if its original is what has arrived.
    least_round_trip: Span,
    newest: Option<Newest>,
    /// Segments found lost, of which the controller has not heard.
    found_lost: Vec<LostSegment>,
}

impl Delivery {
    /// `handshake` is the round trip of the handshake, if it was measured.
    pub(super) fn new(handshake: Option<Span>) -> Delivery {
        Delivery {
            departures: VecDeque::new(),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            limited_until: None,
            least_round_trip: handshake.unwrap_or(Span(u64::MAX)),
            newest: None,
            found_lost: Vec::new(),
        }
    }

    fn departure(&self, in_flight: u64) -> Departure {
        Departure {
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            in_flight,
            limited: self.limited_until.is_some(),
        }
    }

    /// A segment leaves for the first time, and with it `in_flight` bytes are in the
    /// network. Nothing was outstanding before the `first` one: what arrives from now
    /// on takes its time from now on.
    #[inline(never)]
    pub(super) fn on_sent(&mut self, now: Time, in_flight: u64, first: bool) {
        if first {
            self.first_sent = now;
            self.delivered_at = now;
        }
        self.departures.push_back(self.departure(in_flight));
    }

    /// The segment at `index` leaves again.
    #[inline(never)]
    pub(super) fn on_sent_again(&mut self, index: usize, in_flight: u64) {
        self.departures[index] = self.departure(in_flight);
    }

    /// The segment at `index` has arrived, which nothing had reported before.
    #[inline(never)]
    pub(super) fn on_arrival(&mut self, index: usize, record: &Record) {
        if self.newest.is_none_or(|newest| sent_after(record.order, newest.order)) {
            self.newest = Some(Newest {
                departure: self.departures[index],
                sent_at: record.sent_at,
                order: record.order,
                retransmitted: record.retransmitted(),
            });
        }
    }

    /// The first segment has been acknowledged.
    pub(super) fn forget_first(&mut self) {
        self.departures.pop_front();
    }

    /// Nothing is outstanding any more.
    pub(super) fn clear(&mut self) {
        self.departures.clear();
    }

    /// The segment at `index`, with `bytes` of payload from `start` on, has been found lost.
    #[inline(never)]
    pub(super) fn on_loss(&mut self, index: usize, start: u64, bytes: u64) {
        self.lost += bytes;
        let departure = &self.departures[index];
        self.found_lost.push(LostSegment {
            start,
            bytes,
            in_flight: departure.in_flight,
            lost: self.lost - departure.lost,
            app_limited: departure.limited,
            total_delivered: 0,
        });
    }

    /// Hands out what has been found lost since the last call, after the acknowledgement
    /// that shows it has been measured.
    pub(super) fn found_lost(&mut self) -> impl Iterator<Item = LostSegment> {
        let total_delivered = self.delivered;
        self.found_lost.drain(..).map(move |lost| LostSegment { total_delivered, ..lost })
    }

    /// With `in_flight` bytes in the network the sender has run out of data, or its
    /// controller holds back: what leaves now says nothing about the network's rate.
    pub(super) fn mark_limited(&mut self, in_flight: u64) {
        self.limited_until = Some(self.delivered + in_flight);
    }

    /// Whether a gap that the application has left is still on its way.
    pub(super) fn is_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// What an acknowledgement that tells of `delivered` bytes more measures: a rate,
    /// and the round trip of the latest segment among them if that was sent once.
    #[inline(never)]
    pub(super) fn measure(
        &mut self,
        now: Time,
        delivered: u64,
    ) -> (Option<RateSample>, Option<Span>) {
        self.delivered += delivered;
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
        if delivered > 0 {
            self.delivered_at = now;
        }
        let Some(Newest { departure, sent_at, retransmitted, .. }) = self.newest.take() else {
            return (None, None);
        };
        self.first_sent = sent_at;
        let round_trip = (!retransmitted).then(|| now.since(sent_at));
        self.least_round_trip = self.least_round_trip.min(round_trip.unwrap_or(Span(u64::MAX)));
        let to_send = sent_at.since(departure.first_sent);
        let to_arrive = now.since(departure.delivered_at);
        let sample = RateSample {
            delivered: self.delivered - departure.delivered,
            interval: to_send.max(to_arrive),
            total_delivered: self.delivered,
            prior_delivered: departure.delivered,
            in_flight: departure.in_flight,
            lost: self.lost - departure.lost,
            app_limited: departure.limited,
        };
        let plausible = sample.interval >= self.least_round_trip && sample.interval > Span::ZERO;
        (plausible.then_some(sample), round_trip)
    }
}
