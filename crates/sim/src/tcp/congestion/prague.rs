//! Prague: a scalable controller for the internet, as its authors have it for Linux
//! (L4STeam, tcp_prague 0.7; draft-briscoe-iccrg-prague-congestion-control).
//!
//! It began as [DCTCP](super::dctcp): a mark lowers the window by half of the share of
//! marks. What it adds keeps the queue short and the shares fair on any path:
//!
//! - Every segment that came in without a mark enlarges the window, in rounds with marks
//!   too. So marks come at a steady rate, some in every round.
//! - The window is kept to a fraction of a segment. The pacing rate follows it, and is
//!   what holds the sender back; the window that blocks is rounded up, is never less than
//!   two segments and moves by a segment per acknowledgement.
//! - The rate is 3% higher for half of a round and 3% lower for the other, which draws a
//!   few marks out of a queue that marks by a threshold and would have all or none.
//! - No more than a quarter of a millisecond's worth leaves at once.
//! - From four rounds after slow start on, a round trip below 25 ms counts like one of
//!   25 ms: the window grows slower by the square of the ratio, and shares are taken and
//!   reductions made no more often than that. This is to make rates on short paths
//!   equal, whichever path is the shorter.
//! - A loss halves the window, which does not grow until the loss is repaired.
//!
//! One rule is not here: below 1 Mbit/s Prague makes its segments smaller, so that there
//! are two in 25 ms. In its place a segment adds no more than itself in a round. And the first
//! mark or loss ends slow start at once, where the authors' code waits until the window
//! that blocks has taken a step down.

use tidegate_core::{Rate, Span, Time};

use super::scalable::MarkedShare;
use super::{Ack, Before, Controller, Entry, Loss, Phase, Start};

pub(super) const ENTRY: Entry = Entry {
    name: "prague",
    summary: "Scalable: gives up half of the share of marks, paced, fair below 25 ms; sends ECT(1)",
    source: "L4STeam's tcp_prague 0.7; draft-briscoe-iccrg-prague-congestion-control",
    scalable: true,
    start: |start| Box::new(Prague::new(start)),
};

/// Shorter round trips count like this one.
const LEAST_ROUND_TRIP: Span = Span::millis(25);
/// So many rounds after slow start.
const TRANSITION_ROUNDS: u32 = 4;
/// The window that blocks, in segments.
const LEAST_WINDOW: u64 = 2;
/// In bytes per second: 100 kbit/s.
const LEAST_RATE: f64 = 12_500.0;
/// By how much the rate is higher and lower in the halves of a round.
const RATE_OFFSET: f64 = 4.0 / 128.0;
/// So many bursts make a second.
const BURSTS: f64 = 4_096.0;

#[derive(Debug)]
struct Prague {
    mss: u64,
    slow_start_limit: u64,
    /// The window that blocks, and `ssthresh`.
    size: u64,
    threshold: u64,
    /// The window that the rate follows, in bytes.
    exact: f64,
    /// The same before the latest loss.
    before_loss: f64,
    share: MarkedShare,
    /// Whether a queue has ever marked anything.
    is_marked: bool,
    /// Rounds since slow start.
    rounds: u32,
    /// A round is over once this has been acknowledged.
    round_end: u64,
    /// When the share was last taken.
    share_taken: Time,
    /// A mark counts once everything below this has been acknowledged.
    reduced_until: u64,
    reduced_at: Time,
    is_in_loss: bool,
    round_trip: Option<Span>,
    /// In bytes per second.
    rate: Option<f64>,
}

impl Prague {
    fn new(start: &Start) -> Prague {
        let mut prague = Prague {
            mss: start.mss,
            slow_start_limit: start.slow_start_limit,
            size: start.window,
            threshold: start.threshold,
            exact: start.window as f64,
            before_loss: 0.0,
            share: MarkedShare::UNKNOWN,
            is_marked: false,
            rounds: 0,
            round_end: 0,
            share_taken: start.now,
            reduced_until: 0,
            reduced_at: start.now,
            is_in_loss: false,
            round_trip: start.round_trip,
            rate: None,
        };
        prague.set_rate(start.now);
        prague
    }

    fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    fn is_independent(&self) -> bool {
        !self.in_slow_start() && self.rounds >= TRANSITION_ROUNDS
    }

    /// A mark, the first in a round trip.
    fn reduce(&mut self, now: Time) {
        if self.is_independent() && now.since(self.reduced_at) < LEAST_ROUND_TRIP {
            return;
        }
        self.reduced_at = now;
        self.exact = self.share.reduced(self.exact).max(self.least());
        // Slow start is over.
        self.threshold = self.threshold.min(self.size);
    }

    /// What has come in without a mark enlarges the window: by a segment per window, or by
    /// that times the square of how much shorter than 25 ms the round trip is.
    fn grow(&mut self, ack: &Ack) {
        let mut unmarked = ack.delivered.saturating_sub(ack.marked);
        if self.is_in_loss || !ack.window_limited {
            return;
        }
        if self.in_slow_start() {
            let growth = unmarked.min(self.slow_start_limit).min(self.threshold - self.size);
            self.size += growth;
            self.exact = self.size as f64;
            unmarked -= growth;
        }
        let mss = self.mss as f64;
        let slowed = self.slowed();
        // Below a segment per round a segment would add more than itself.
        let growth = unmarked as f64 * mss / self.exact.max(mss * slowed);
        self.exact += growth * slowed * slowed;
    }

    /// How much shorter the round trip is than one that counts like itself.
    fn slowed(&self) -> f64 {
        match self.round_trip {
            Some(trip) if self.rounds >= TRANSITION_ROUNDS && trip < LEAST_ROUND_TRIP => {
                trip.as_seconds() / LEAST_ROUND_TRIP.as_seconds()
            }
            _ => 1.0,
        }
    }

    /// The least window: that of the least rate, and a byte at least.
    fn least(&self) -> f64 {
        self.round_trip.map_or(1.0, |trip| trip.as_seconds() * LEAST_RATE).max(1.0)
    }

    /// The window that blocks takes a step towards the exact one.
    fn follow(&mut self) {
        let segments = (self.exact / self.mss as f64).ceil() as u64;
        let target = segments.max(LEAST_WINDOW) * self.mss;
        if self.size > target {
            self.size -= self.mss.min(self.size - target);
            self.threshold = self.size;
        } else {
            self.size += self.mss.min(target - self.size);
        }
    }

    fn end_round(&mut self, ack: &Ack) {
        self.share.end_round(self.is_marked);
        if self.is_marked {
            self.share_taken = ack.now;
        }
        self.round_end = ack.sent;
        if !self.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    fn set_rate(&mut self, now: Time) {
        let Some(trip) = self.round_trip else { return };
        let rate = (self.exact / trip.max(Span(1)).as_seconds()).max(LEAST_RATE);
        let is_second_half = now.since(self.share_taken) >= trip.max(LEAST_ROUND_TRIP) / 2;
        self.rate = Some(match is_second_half {
            _ if self.size < self.threshold / 2 => 2.0 * rate,
            false => rate * (1.0 + RATE_OFFSET),
            true => rate * (1.0 - RATE_OFFSET),
        });
    }
}

impl Controller for Prague {
    fn on_ack(&mut self, ack: &Ack) {
        self.round_trip = ack.smoothed_round_trip.or(self.round_trip);
        self.share.on_ack(ack.delivered, ack.marked);
        if ack.marked > 0 && ack.acknowledged >= self.reduced_until && ack.phase == Phase::Open {
            self.reduced_until = ack.sent;
            self.reduce(ack.now);
        }
        self.is_marked |= ack.marked > 0;
        self.grow(ack);
        self.follow();
        let is_due = ack.now.since(self.share_taken) >= LEAST_ROUND_TRIP;
        if ack.acknowledged >= self.round_end && (is_due || !self.is_independent()) {
            self.end_round(ack);
        }
        self.set_rate(ack.now);
    }

    fn on_loss(&mut self, _: &Loss) {
        self.before_loss = self.exact;
        self.exact = (self.exact / 2.0).max(self.least());
        self.threshold = (self.exact as u64).max(LEAST_WINDOW * self.mss);
        self.is_in_loss = true;
    }

    fn on_timeout(&mut self, in_flight: u64) {
        self.size = in_flight.next_multiple_of(self.mss) + self.mss;
        self.is_in_loss = true;
    }

    /// A silence changes nothing, for the rate spaces what follows.
    fn on_idle(&mut self, _: u64) {}

    fn on_recovered(&mut self, _: u64) {
        self.is_in_loss = false;
    }

    fn on_spurious_recovery(&mut self, before: &Before) {
        self.is_in_loss = false;
        self.exact = self.exact.max(self.before_loss);
        self.size = self.size.max(before.window);
        self.threshold = self.threshold.max(before.threshold);
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.size
    }

    fn threshold(&self) -> u64 {
        self.threshold
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate((self.rate? * 8.0) as u64))
    }

    fn burst(&self) -> Option<u32> {
        Some(((self.rate? / self.mss as f64 / BURSTS) as u32).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::tests::{MSS, ack, start};

    const TRIP: Span = Span::millis(50);

    fn prague(trip: Span, threshold: u64) -> Prague {
        Prague::new(&Start { threshold, ..start(trip) })
    }

    fn at(millis: u64, acknowledged: u64, sent: u64, trip: Span) -> Ack {
        ack(Time::ZERO + Span::millis(millis), Some(trip), acknowledged, sent)
    }

    /// Ten segments of 1 000 bytes in 50 ms are 1.6 Mbit/s, doubled in slow start, and 3%
    /// less from half a round after the last share on.
    #[test]
    fn the_rate_follows_the_window() {
        let mut prague = prague(TRIP, u64::MAX);
        assert_eq!(prague.pacing_rate(), Some(Rate(3_200_000)));
        prague.on_ack(&at(50, MSS, 10 * MSS, TRIP));
        assert_eq!((prague.window(), prague.pacing_rate()), (11 * MSS, Some(Rate(3_520_000))));
        prague.threshold = 11 * MSS;
        prague.set_rate(Time::ZERO + Span::millis(24));
        assert_eq!(prague.pacing_rate(), Some(Rate(1_815_000)));
        prague.set_rate(Time::ZERO + Span::millis(25));
        assert_eq!(prague.pacing_rate(), Some(Rate(1_705_000)));
        assert_eq!(prague.burst(), Some(1));
    }

    /// The first mark halves the window and ends slow start: it steps down by a segment per
    /// acknowledgement, each of which enlarges the exact one by a segment over its size.
    #[test]
    fn the_first_mark_halves_and_ends_slow_start() {
        let mut prague = prague(TRIP, u64::MAX);
        prague.on_ack(&Ack { marked: MSS, ..at(50, MSS, 10 * MSS, TRIP) });
        assert_eq!((prague.window(), prague.threshold(), prague.exact), (9_000, 9_000, 5_000.0));
        prague.on_ack(&at(51, 2 * MSS, 10 * MSS, TRIP));
        assert_eq!((prague.window(), prague.exact), (8_000, 5_200.0));
        // A second mark in the same round trip changes nothing.
        prague.on_ack(&Ack { marked: MSS, ..at(52, 3 * MSS, 10 * MSS, TRIP) });
        assert_eq!((prague.window(), prague.exact), (7_000, 5_200.0));
    }

    /// At a share of 1/8 that stays, a window of 100 segments gives up 1/16 at the first
    /// mark of each round trip.
    #[test]
    fn a_mark_takes_half_of_the_share() {
        let mut prague = prague(TRIP, MSS);
        prague.exact = 100_000.0;
        for _ in 0..200 {
            prague.share.on_ack(8 * MSS, MSS);
            prague.share.end_round(true);
        }
        prague.reduce(Time::ZERO + TRIP);
        assert!((prague.exact - 93_750.0).abs() < 1.0, "{}", prague.exact);
    }

    /// 5 ms are a fifth of 25 ms: once four rounds are over the window grows by 1/25 of a
    /// segment per window, and a second mark within 25 ms takes nothing.
    #[test]
    fn short_round_trips_count_like_25_ms() {
        let trip = Span::millis(5);
        let mut prague = prague(trip, MSS);
        assert_eq!(prague.slowed(), 1.0);
        prague.rounds = TRANSITION_ROUNDS;
        assert!((prague.slowed() - 0.2).abs() < 1e-12);
        prague.exact = 10_000.0;
        prague.grow(&at(99, MSS, 10 * MSS, trip));
        assert!((prague.exact - 10_004.0).abs() < 1e-6, "{}", prague.exact);
        prague.exact = 10_000.0;
        let now = Time::ZERO + Span::millis(100);
        prague.reduce(now);
        prague.reduce(now + Span::millis(24));
        assert_eq!(prague.exact, 5_000.0);
        prague.reduce(now + Span::millis(25));
        assert_eq!(prague.exact, 2_500.0);
        prague.round_trip = Some(Span::millis(30));
        assert_eq!(prague.slowed(), 1.0);
    }

    #[test]
    fn a_loss_halves_and_nothing_grows_until_it_is_repaired() {
        let mut prague = prague(TRIP, u64::MAX);
        prague.on_loss(&Loss { window: 10 * MSS, flight: 10 * MSS });
        prague.on_ack(&Ack { phase: Phase::Recovery, ..at(50, MSS, 10 * MSS, TRIP) });
        assert_eq!((prague.exact, prague.window(), prague.threshold()), (5_000.0, 9_000, 9_000));
        prague.on_recovered(0);
        prague.on_ack(&at(60, 2 * MSS, 10 * MSS, TRIP));
        assert_eq!((prague.exact, prague.window()), (5_200.0, 8_000));
    }

    /// Each segment has a mark with probability 1/20, whatever the window is. A reduction
    /// waits for a round trip and then for the next mark, 1 + 1/x round trips for x marks in
    /// one, and takes half of the share; meanwhile 19/20 of a segment per round trip are
    /// added. So x = 1.9 (1 + 1/x) = 2.62. Where reductions followed each other without that
    /// wait, x would be 1.9.
    #[test]
    fn under_random_marks_there_are_2_6_of_them_in_a_round_trip() {
        let per_trip = marks_per_trip(TRIP);
        assert!((per_trip / 2.62 - 1.0).abs() < 0.04, "{per_trip}");
    }

    /// At 20 ms 0.64 of that are added. A mark comes 20 + 20/x ms after a reduction in the
    /// mean. If it comes before 25 ms, with a chance of 1 - e^(-x/4), it takes nothing, and
    /// the next one that counts comes as much later: I = (20 + 20/x) (2 - e^(-x/4)) ms, and
    /// x = 0.0608 I = 2.49. If the first mark after 25 ms counted it would be 2.10.
    #[test]
    fn at_20_ms_a_mark_that_comes_too_early_holds_off_the_next() {
        let per_trip = marks_per_trip(Span::millis(20));
        assert!((per_trip / 2.49 - 1.0).abs() < 0.04, "{per_trip}");
    }

    /// Marks in a round trip when one segment in twenty has one.
    fn marks_per_trip(trip: Span) -> f64 {
        let mut random = tidegate_core::Stream::new(1, "marks");
        let mut prague = prague(trip, 1);
        let (mut now, mut acknowledged, mut marks, mut since) = (0.0, 0, 0, 0.0);
        for number in 0..400_000 {
            now += trip.as_seconds() * MSS as f64 / prague.exact;
            acknowledged += MSS;
            let marked = if random.uniform() < 0.05 { MSS } else { 0 };
            let sent = acknowledged + prague.exact as u64;
            let at = Time((now * 1e9) as u64);
            prague.on_ack(&Ack { marked, ..ack(at, Some(trip), acknowledged, sent) });
            // After the start.
            if number == 10_000 {
                (marks, since) = (0, now);
            }
            marks += marked / MSS;
        }
        marks as f64 / ((now - since) / trip.as_seconds())
    }
}
