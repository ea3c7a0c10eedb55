//! Pacing: segments leave at a rate instead of all that the window allows at once.
//!
//! As Linux does it (7.3, `tcp_output.c`): about a millisecond's worth leaves at once,
//! and the next burst when the rate has paid for this one. So a timer runs once per
//! burst and not once per segment. A burst that leaves late, because its timer was late
//! or because there was nothing to send, need pay for half of itself at least
//! (`tcp_update_skb_after_send`): a long pause earns half a burst and no more.
//!
//! Linux holds segments back itself or leaves that to the queue discipline `fq` of its
//! host, which releases them at the times that the sender has set. What leaves is the same:
//! for one BBR sender at 10 Mbit/s and 40 ms the smoothed round trip was 47.8 ms without
//! and 48.0 ms with `fq`, and the goodput equal to 0.01%. So there is one way here.

use tidegate_core::{Bytes, Rate, Span, Time};

use super::congestion::Congestion;

/// The first data segments of a connection are not paced: the initial window
/// (RFC 6928) leaves at once.
const UNPACED_SEGMENTS: u64 = 10;
/// A burst is a 1 024th of what the rate carries in a second (`sk_pacing_shift`).
const BURST_SHIFT: u32 = 10;
/// The largest burst in bytes (`GSO_LEGACY_MAX_SIZE`).
const LARGEST_BURST: u64 = 65_536;
/// A burst on a short path is longer by `LARGEST_BURST`, halved for each 512 µs of the
/// least round trip (`tcp_tso_rtt_log`): there it is over before anyone notices.
const ROUND_TRIP_SHIFT: u32 = 9;

/// How many segments of `mss` bytes leave at once (`tcp_tso_autosize`), of which the
/// window must hold two bursts (`tcp_cwnd_test`).
fn burst(congestion: &Congestion, rate: Rate, mss: u64, least_round_trip: Span) -> u64 {
    if congestion.burst > 0 {
        return congestion.burst.into();
    }
    let shift = (least_round_trip.0 / 1_000) >> ROUND_TRIP_SHIFT;
    let extra = if shift < u64::from(u32::BITS) { LARGEST_BURST >> shift } else { 0 };
    let bytes = (((rate.0 / 8) >> BURST_SHIFT) + extra).min(LARGEST_BURST);
    let half = (congestion.window / (2 * mss)).max(1);
    (bytes / mss).max(congestion.least_burst).min(half)
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    /// When the rate has paid for all that has been sent (`tcp_wstamp_ns`).
    paid_at: Time,
    /// When the latest burst began, and how many segments may still join it then.
    burst_at: Time,
    left: u64,
    /// How late that burst was, as far as it has not been credited.
    late: Span,
    /// Bytes of that burst that the rate has not paid for, because they were among the
    /// first of the connection.
    unpaid: u64,
}

impl Pacer {
    /// When the next segment may leave: `now` or later.
    pub(super) fn departure(&self, now: Time) -> Time {
        if self.in_burst(now) { now } else { self.idle_from(now) }
    }

    fn in_burst(&self, now: Time) -> bool {
        self.left > 0 && self.burst_at == now
    }

    /// When the rate has paid for all that has been sent: `now` or later.
    pub(super) fn idle_from(&self, now: Time) -> Time {
        now.max(self.paid_at)
    }

    /// A segment of `bytes` leaves, of at most `mss`, after `segments` with data. A burst
    /// that goes beyond the first segments of the connection is paid for as a whole.
    pub(super) fn on_sent(
        &mut self,
        now: Time,
        congestion: &Congestion,
        rate: Rate,
        (bytes, mss): (u64, u64),
        segments: u64,
        least_round_trip: Span,
    ) {
        if !self.in_burst(now) {
            self.late = now.since(self.paid_at.min(now));
            self.paid_at = self.idle_from(now);
            self.burst_at = now;
            self.left = burst(congestion, rate, mss, least_round_trip);
            self.unpaid = 0;
        }
        self.left -= 1;
        self.unpaid += bytes;
        if segments + 1 >= UNPACED_SEGMENTS {
            let price = rate.transmission(Bytes(self.unpaid));
            let credit = self.late.min(price / 2);
            self.late = Span(self.late.0 - credit.0);
            self.paid_at += Span(price.0 - credit.0);
            self.unpaid = 0;
        }
    }
}
