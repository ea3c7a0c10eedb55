//! BBR, the first version, as Linux 7.3 has it (`tcp_bbr.c`).
//!
//! A sender that fills a queue until it overflows learns nothing from that but how long
//! the queue is. BBR measures instead what a path without a queue is: the largest rate at
//! which data has arrived in the last ten rounds, and the least round trip of the last
//! ten seconds. It paces at that rate, and keeps in the network at most twice the product
//! of the two, for which losses and delays count nothing.
//!
//! Neither can be measured without disturbing the other, so BBR takes turns. Start-up
//! sends 2.885 times the rate known so far, so that it doubles each round, until it has
//! not grown by a quarter for three rounds; then it drains the queue that this has left. From
//! then on it probes for bandwidth: for a round trip it sends a quarter more, for the
//! next one a quarter less, and as much as the bandwidth for six. Every ten seconds, if no
//! round trip was as short as the least by itself, it has no more than four segments in the
//! network for 200 ms, in which the queues of all such senders empty.
//!
//! Losses are answered only by conserving packets: in the first round of a recovery as
//! much is sent as arrives. The window of before comes back at its end.
//!
//! As in Linux, windows are whole segments, gains are in 256ths, and a bandwidth is in
//! 2^-24 segments per microsecond. What Linux draws at random, the phase in which probing
//! for bandwidth begins, comes from a stream that the connection's initial sequence number
//! seeds. Two things are not here: the undo of reductions that prove to be wrong, and
//! ticks of a timer, as times are exact.

mod aggregation;
mod maximum;
mod policer;
#[cfg(test)]
mod tests;

use tidegate_core::random::Stream;
use tidegate_core::{Rate, Span, Time};

use self::aggregation::Aggregation;
use self::maximum::Maximum;
use self::policer::{Counts, Event, Policer};
use super::{Ack, Before, Controller, Entry, Loss, LostSegment, Phase, Start};

pub(super) const ENTRY: Entry = Entry {
    name: "bbr",
    summary: "Paces at the largest recent rate of delivery, and keeps twice that in a round trip in the network",
    source: "Linux 7.3, `tcp_bbr`",
    scalable: false,
    start: |start| Box::new(Bbr::new(start)),
};

/// A gain of one.
const UNIT: u64 = 1 << 8;
/// 2/ln 2, the least gain that doubles the rate each round.
const HIGH_GAIN: u64 = UNIT * 2_885 / 1_000 + 1;
/// Its inverse drains in a round what it has left in a round.
const DRAIN_GAIN: u64 = UNIT * 1_000 / 2_885;
/// Room for acknowledgements that are late or come together.
const WINDOW_GAIN: u64 = UNIT * 2;
/// One phase each per least round trip.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Any phase may be the first but the one that drains, which nothing has made necessary.
const FIRST_PHASES: usize = 7;
/// Rounds over which the bandwidth is the largest.
const BANDWIDTH_ROUNDS: u32 = 10;
/// How long the least round trip is believed.
const ROUND_TRIP_LIFE: Span = Span::seconds(10);
/// How long the network is emptied then, at least.
const PROBE_ROUND_TRIP: Span = Span::millis(200);
/// With a receiver that acknowledges every other segment, two are under way with four.
const LEAST_WINDOW: u64 = 4;
/// `TCP_INIT_CWND`.
const INITIAL_WINDOW: u64 = 10;
/// Start-up has filled the pipe when the bandwidth has not grown so much in so many rounds.
const FULL_GROWTH: u64 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// BBR paces a hundredth below the bandwidth, so that a queue drains.
const MARGIN_PERCENT: u64 = 1;
/// Below this a burst is one segment: 1.2 Mbit/s in bytes per second.
const SLOW: u64 = 1_200_000 / 8;
/// The largest burst in bytes, and in segments (`bbr_tso_segs_goal`).
const LARGEST_BURST: u64 = 65_536 - 1 - 320;
const MOST_SEGMENTS: u64 = 127;
/// The most time's worth that gathered acknowledgements add to the window.
const LONGEST_AGGREGATION: Span = Span::millis(100);

/// A rate in 2^-24 segments per microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Bandwidth(u64);

impl Bandwidth {
    const SHIFT: u32 = 24;

    /// `bytes` in so many microseconds, which are not zero.
    fn of(bytes: u64, micros: u64, mss: u64) -> Bandwidth {
        Bandwidth((bytes << Bandwidth::SHIFT) / (micros * mss))
    }

    /// Whole segments in this time.
    fn segments(self, span: Span) -> u64 {
        self.0.saturating_mul(span.0 / 1_000) >> Bandwidth::SHIFT
    }

    /// Bytes per second at this gain, less the margin (`bbr_rate_bytes_per_sec`).
    fn bytes_per_second(self, mss: u64, gain: u64) -> u64 {
        let gained = u128::from(self.0 * mss) * u128::from(gain) / u128::from(UNIT);
        let scaled = (gained * u128::from(10_000 * (100 - MARGIN_PERCENT))) >> Bandwidth::SHIFT;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    StartUp,
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

#[derive(Debug)]
struct Bbr {
    mss: u64,
    mode: Mode,
    /// The window, and `ssthresh`, in segments.
    window: u64,
    threshold: u64,
    /// The last window that was good, before a loss or a probe of the round trip.
    good_window: u64,
    /// Bytes per second.
    pacing_rate: u64,
    pacing_gain: u64,
    window_gain: u64,
    bandwidth: Maximum,
    policer: Policer,
    aggregation: Aggregation,
    /// The least round trip in microseconds, and when it was measured.
    round_trip: Option<u64>,
    round_trip_at: Time,
    /// Whether the pacing rate of the start rests on a measured round trip.
    rate_is_measured: bool,
    /// What has been delivered and lost.
    counts: Counts,
    /// A round is over when a segment has arrived that was sent with so much delivered.
    round_end: u64,
    rounds: u32,
    round_start: bool,
    /// The phase of the cycle, and when it began.
    phase: usize,
    phase_at: Time,
    /// Bandwidth at the last growth in start-up, and rounds since then.
    full_bandwidth: Bandwidth,
    full_rounds: u32,
    pipe_is_full: bool,
    /// When enough has been waited for the round trip, and whether a round has passed.
    probe_until: Option<Time>,
    probe_round_done: bool,
    /// The latest acknowledgement has found a probe of the round trip.
    holds_back: bool,
    /// Data was sent after a pause of the application, and none of it has arrived.
    restarting: bool,
    /// What the sender did about losses when last asked.
    recovery: Phase,
    conserving: bool,
    draws: Stream,
}

impl Bbr {
    /// `bbr_init`.
    fn new(start: &Start) -> Bbr {
        let counts = Counts { at: start.now, ..Counts::default() };
        let mut policer = Policer::default();
        policer.reset(counts);
        let mut bbr = Bbr {
            mss: start.mss,
            mode: Mode::StartUp,
            window: start.window / start.mss,
            threshold: u64::MAX,
            good_window: 0,
            pacing_rate: 0,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            bandwidth: Maximum::default(),
            policer,
            aggregation: Aggregation::new(start.now),
            round_trip: start.round_trip.map(|span| span.0 / 1_000),
            round_trip_at: start.now,
            rate_is_measured: false,
            counts,
            round_end: 0,
            rounds: 0,
            round_start: false,
            phase: 0,
            phase_at: Time::ZERO,
            full_bandwidth: Bandwidth::default(),
            full_rounds: 0,
            pipe_is_full: false,
            probe_until: None,
            probe_round_done: false,
            holds_back: false,
            restarting: false,
            recovery: Phase::Open,
            conserving: false,
            draws: Stream::new(u64::from(start.seed), "bbr cycle"),
        };
        bbr.pace_by_round_trip(start.round_trip);
        bbr
    }

    /// Whole segments that hold so many bytes.
    fn segments(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss)
    }

    fn largest_bandwidth(&self) -> Bandwidth {
        Bandwidth(self.bandwidth.largest())
    }

    /// `bbr_bw`.
    fn bandwidth(&self) -> Bandwidth {
        self.policer.rate().unwrap_or(self.largest_bandwidth())
    }

    /// The rate of the start: the gain times a window per round trip, or per millisecond
    /// if that is unknown (`bbr_init_pacing_rate_from_rtt`).
    fn pace_by_round_trip(&mut self, smoothed: Option<Span>) {
        self.rate_is_measured = smoothed.is_some();
        let micros = smoothed.map_or(1_000, |span| (span.0 / 1_000).max(1));
        let bandwidth = Bandwidth::of(self.window * self.mss, micros, self.mss);
        self.pacing_rate = bandwidth.bytes_per_second(self.mss, HIGH_GAIN);
    }

    /// `bbr_set_pacing_rate`: before the pipe is full the rate only rises.
    fn set_pacing_rate(&mut self, gain: u64, smoothed: Option<Span>) {
        let rate = self.bandwidth().bytes_per_second(self.mss, gain);
        if !self.rate_is_measured && smoothed.is_some() {
            self.pace_by_round_trip(smoothed);
        }
        if self.pipe_is_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `bbr_tso_segs_goal`.
    fn burst(&self) -> u64 {
        let bytes = (self.pacing_rate >> 10).min(LARGEST_BURST);
        (bytes / self.mss).max(self.least_burst()).min(MOST_SEGMENTS)
    }

    /// The product of bandwidth and least round trip in segments, rounded up (`bbr_bdp`).
    fn product(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        let Some(round_trip) = self.round_trip else { return INITIAL_WINDOW };
        let product = u128::from(bandwidth.0) * u128::from(round_trip) * u128::from(gain);
        let segments = (product / u128::from(UNIT)).div_ceil(1 << Bandwidth::SHIFT);
        u64::try_from(segments).unwrap_or(u64::MAX >> 1)
    }

    /// Room for three bursts at the ends of the path, in an even number, and a little more
    /// where the probe would drown in rounding (`bbr_quantization_budget`).
    fn with_bursts(&self, window: u64) -> u64 {
        let even = (window + 3 * self.burst()).next_multiple_of(2);
        let probes = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        even + if probes { 2 } else { 0 }
    }

    /// `bbr_inflight`.
    fn target(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        self.with_bursts(self.product(bandwidth, gain))
    }

    /// How many of `in_flight` segments will be in the network when the next burst leaves,
    /// that burst included if the number is to rise (`bbr_packets_in_net_at_edt`).
    fn in_flight_at_departure(&self, ack: &Ack, in_flight: u64) -> u64 {
        let arrived = self.bandwidth().segments(ack.departure.since(ack.now));
        let burst = if self.pacing_gain > UNIT { self.burst() } else { 0 };
        (in_flight + burst).saturating_sub(arrived)
    }

    /// `bbr_save_cwnd`.
    fn save_window(&mut self) {
        let good = self.recovery == Phase::Open && self.mode != Mode::ProbeRoundTrip;
        self.good_window = if good { self.window } else { self.good_window.max(self.window) };
    }

    /// `bbr_reset_probe_bw_mode`.
    fn probe_bandwidth(&mut self) {
        self.mode = Mode::ProbeBandwidth;
        self.phase = CYCLE.len() - 1 - self.draws.index(FIRST_PHASES);
        self.next_phase();
    }

    /// `bbr_advance_cycle_phase`.
    fn next_phase(&mut self) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_at = self.counts.at;
    }

    /// `bbr_update_bw`.
    fn update_bandwidth(&mut self, ack: &Ack) {
        self.round_start = false;
        let Some(rate) = ack.rate.filter(|rate| rate.interval.0 >= 1_000) else { return };
        if rate.prior_delivered >= self.round_end {
            self.round_end = self.counts.delivered;
            self.rounds = self.rounds.wrapping_add(1);
            self.round_start = true;
            self.conserving = false;
        }
        self.look_for_policer(ack.lost > 0, rate.app_limited);
        let bandwidth = Bandwidth::of(rate.delivered, rate.interval.0 / 1_000, self.mss);
        // A sample that the application has limited counts if it is none the less large.
        if !rate.app_limited || bandwidth >= self.largest_bandwidth() {
            self.bandwidth.insert(BANDWIDTH_ROUNDS, self.rounds, bandwidth.0);
        }
        let known = self.bandwidth();
        let acked = self.segments(ack.delivered);
        if acked > 0 {
            self.aggregation.update(ack.now, acked, known, self.window, self.round_start);
        }
        self.check_full_pipe(rate.app_limited);
    }

    fn look_for_policer(&mut self, losses: bool, app_limited: bool) {
        let event = Event {
            losses,
            app_limited,
            round_start: self.round_start,
            probes_bandwidth: self.mode == Mode::ProbeBandwidth,
        };
        let found = self.policer.rate().is_some();
        if self.policer.update(self.counts, event, self.mss) {
            self.probe_bandwidth();
        } else if !found && self.policer.rate().is_some() {
            self.pacing_gain = UNIT;
        }
    }

    /// `bbr_update_cycle_phase`. A phase that sends more goes on until there is so much in
    /// the network or something is lost, and one that sends less until the queue is gone.
    fn update_cycle(&mut self, ack: &Ack) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let passed = self.counts.at.since(self.phase_at).0 / 1_000;
        let full_length = self.round_trip.is_some_and(|round_trip| passed > round_trip);
        let over = if self.pacing_gain == UNIT {
            full_length
        } else {
            let before = self.segments(ack.in_flight_before);
            let in_flight = self.in_flight_at_departure(ack, before);
            let target = self.target(self.largest_bandwidth(), self.pacing_gain.max(UNIT));
            if self.pacing_gain > UNIT {
                full_length && (ack.lost > 0 || in_flight >= target)
            } else {
                full_length || in_flight <= target
            }
        };
        if over {
            self.next_phase();
        }
    }

    /// `bbr_check_full_bw_reached`.
    fn check_full_pipe(&mut self, app_limited: bool) {
        if self.pipe_is_full || !self.round_start || app_limited {
            return;
        }
        let bandwidth = self.largest_bandwidth();
        if bandwidth.0 >= self.full_bandwidth.0 * FULL_GROWTH / UNIT {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            self.pipe_is_full = self.full_rounds >= FULL_ROUNDS;
        }
    }

    /// `bbr_check_drain`.
    fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::StartUp && self.pipe_is_full {
            self.mode = Mode::Drain;
            self.threshold = self.target(self.largest_bandwidth(), UNIT);
        }
        if self.mode == Mode::Drain {
            let in_flight = self.in_flight_at_departure(ack, self.segments(ack.in_flight));
            if in_flight <= self.target(self.largest_bandwidth(), UNIT) {
                self.probe_bandwidth();
            }
        }
    }

    /// `bbr_update_min_rtt`.
    fn update_round_trip(&mut self, ack: &Ack) {
        let expired = ack.now > self.round_trip_at + ROUND_TRIP_LIFE;
        if let Some(measured) = ack.latest_round_trip.map(|span| span.0 / 1_000)
            && (self.round_trip.is_none_or(|least| measured < least)
                || expired && !self.is_held_back_by_receiver(ack))
        {
            self.round_trip = Some(measured);
            self.round_trip_at = ack.now;
        }
        if expired && !self.restarting && self.mode != Mode::ProbeRoundTrip {
            self.mode = Mode::ProbeRoundTrip;
            self.save_window();
            self.probe_until = None;
        }
        self.holds_back = self.mode == Mode::ProbeRoundTrip;
        if self.holds_back {
            self.probe_round_trip(ack);
        }
        if ack.delivered > 0 {
            self.restarting = false;
        }
    }

    /// A single short segment in the whole round trip: its acknowledgement has probably
    /// been delayed (`FLAG_ACK_MAYBE_DELAYED`).
    fn is_held_back_by_receiver(&self, ack: &Ack) -> bool {
        let alone =
            ack.rate.is_some_and(|rate| rate.prior_delivered + ack.acked == rate.total_delivered);
        alone && ack.acked < self.mss && ack.acked == ack.delivered && ack.phase == Phase::Open
    }

    fn probe_round_trip(&mut self, ack: &Ack) {
        if self.probe_until.is_some() {
            self.probe_round_done |= self.round_start;
            if self.probe_round_done {
                self.end_probe_if_due(ack.now);
            }
        } else if self.segments(ack.in_flight) <= LEAST_WINDOW {
            self.probe_until = Some(ack.now + PROBE_ROUND_TRIP);
            self.probe_round_done = false;
            self.round_end = self.counts.delivered;
        }
    }

    /// `bbr_check_probe_rtt_done`.
    fn end_probe_if_due(&mut self, now: Time) {
        if self.probe_until.is_none_or(|until| now <= until) {
            return;
        }
        self.round_trip_at = now;
        self.window = self.window.max(self.good_window);
        if self.pipe_is_full {
            self.probe_bandwidth();
        } else {
            self.mode = Mode::StartUp;
        }
    }

    /// `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::StartUp => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (UNIT, WINDOW_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.phase], WINDOW_GAIN),
            Mode::ProbeRoundTrip => (UNIT, UNIT),
        };
    }

    /// `bbr_set_cwnd`.
    fn set_window(&mut self, ack: &Ack) {
        let acked = self.segments(ack.delivered);
        if acked > 0 && !self.recover_or_restore(ack, acked) {
            let bandwidth = self.bandwidth();
            let excess = if self.pipe_is_full {
                self.aggregation.most().min(bandwidth.segments(LONGEST_AGGREGATION))
            } else {
                0
            };
            let target = self.with_bursts(self.product(bandwidth, self.window_gain) + excess);
            if self.pipe_is_full {
                self.window = (self.window + acked).min(target);
            } else if self.window < target
                || self.segments(self.counts.delivered) + 1 < INITIAL_WINDOW
            {
                // The SYN counts as delivered.
                self.window += acked;
            }
            self.window = self.window.max(LEAST_WINDOW);
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.window = self.window.min(LEAST_WINDOW);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: whether packets are conserved, in the first
    /// round of a recovery.
    fn recover_or_restore(&mut self, ack: &Ack, acked: u64) -> bool {
        self.window = self.window.saturating_sub(self.segments(ack.lost)).max(1);
        let before = std::mem::replace(&mut self.recovery, ack.phase);
        let conserved = self.segments(ack.in_flight) + acked;
        if ack.phase == Phase::Recovery && before != Phase::Recovery {
            self.conserving = true;
            self.round_end = self.counts.delivered;
            self.window = conserved;
        } else if ack.phase == Phase::Open && before != Phase::Open {
            self.window = self.window.max(self.good_window);
            self.conserving = false;
        }
        if self.conserving {
            self.window = self.window.max(conserved);
        }
        self.conserving
    }
}

impl Controller for Bbr {
    /// `bbr_main`.
    fn on_ack(&mut self, ack: &Ack) {
        if ack.phase == Phase::Recovery && self.recovery == Phase::Open {
            // The loss is told after the acknowledgement.
            self.save_window();
        }
        self.counts.delivered += ack.delivered;
        if ack.delivered > 0 {
            self.counts.at = ack.now;
        }
        self.update_bandwidth(ack);
        self.update_cycle(ack);
        self.check_drain(ack);
        self.update_round_trip(ack);
        self.update_gains();
        self.set_pacing_rate(self.pacing_gain, ack.smoothed_round_trip);
        self.set_window(ack);
    }

    /// `bbr_ssthresh`.
    fn on_loss(&mut self, _: &Loss) {
        self.save_window();
    }

    /// `bbr_set_state`; the window is that of `tcp_enter_loss`.
    fn on_timeout(&mut self, in_flight: u64) {
        self.window = self.segments(in_flight) + 1;
        self.recovery = Phase::Loss;
        self.full_bandwidth = Bandwidth::default();
        self.round_start = true;
        self.look_for_policer(true, false);
    }

    /// A pause leaves the window as it is: what is sent after it is paced.
    fn on_idle(&mut self, _: u64) {}

    fn on_recovered(&mut self, _: u64) {}

    /// `bbr_undo_cwnd`: what has not grown may have been held back.
    fn on_spurious_recovery(&mut self, _: &Before) {
        self.full_bandwidth = Bandwidth::default();
        self.full_rounds = 0;
        self.policer.reset(self.counts);
    }

    fn on_segment_lost(&mut self, segment: &LostSegment) {
        self.counts.lost += segment.bytes;
    }

    /// `bbr_cwnd_event_tx_start`.
    fn on_restart(&mut self, now: Time) {
        self.counts.at = now;
        self.restarting = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth => self.set_pacing_rate(UNIT, None),
            Mode::ProbeRoundTrip => self.end_probe_if_due(now),
            Mode::StartUp | Mode::Drain => {}
        }
    }

    fn samples_rate(&self) -> bool {
        true
    }

    fn holds_back(&self) -> bool {
        self.holds_back
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.window * self.mss
    }

    fn threshold(&self) -> u64 {
        self.threshold.saturating_mul(self.mss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate(self.pacing_rate.saturating_mul(8)))
    }

    /// `bbr_min_tso_segs`.
    fn least_burst(&self) -> u64 {
        if self.pacing_rate < SLOW { 1 } else { 2 }
    }
}
