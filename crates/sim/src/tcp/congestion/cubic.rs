//! CUBIC as Linux has it (Linux 7.3, tcp_cubic), in integers.
//!
//! The window follows W(t) = C (t - K)^3 + W_max of RFC 9438, which is flat around the
//! size at which the last loss happened. Linux departs from the RFC, and what Linux does
//! is what people run:
//!
//! - a loss leaves 717/1024 of the window, not of the flight;
//! - the curve is read a least round trip ahead, not a smoothed one, once in 1/32 s or
//!   when the window has changed;
//! - the window grows by whole segments, one for so many delivered, and a fraction of
//!   these is dropped; there are never fewer than two, and no more than 20 before the
//!   first loss;
//! - Reno's window is followed at 8/15 of a segment per round trip for ever, where the
//!   RFC goes on with a whole one once the old window is reached;
//! - slow start ends by HyStart.
//!
//! Windows are in segments and times in 2^-10 s, as there, so that the cube is shifted
//! and not divided. Linux knows the time in ticks, and takes its root from a table with
//! an error of a fifth of a per cent; here both are exact.

use tidegate_core::{Span, Time};

use super::linux::Window;
use super::slow_start::SlowStart;
use super::{Ack, Before, Controller, Entry, Loss};

pub(super) const ENTRY: Entry = Entry {
    name: "cubic",
    summary: "As Linux has it: a cubic function of the time since the last loss, and 0.7 after one",
    source: "Linux 7.3, tcp_cubic; RFC 9438",
    scalable: false,
    start: |start| {
        let window = Window::new(start, SlowStart::HyStart);
        Box::new(Cubic { window, curve: Curve::default() })
    },
};

/// `C` = 0.4 segments/s^3, as 410 / 1024.
const C: u64 = 410;
/// Fraction bits of a second, and of `C`.
const TICKS: u32 = 10;
/// beta_cubic = 0.7: what a loss leaves of the window, in 1 024ths.
const BETA: u64 = 717;
const WHOLE: u64 = 1_024;
/// Reno's window grows by one for so many windows delivered: 3 (1 - beta) / (1 + beta)
/// upside down, 15/8 here.
const RENO: (u64, u64) = (15, 8);
/// The curve is read this often while the window does not change.
const READING: Span = Span(1_000_000_000 / 32);
/// After a loss, round trips do not count for so long: the queue was full.
const DISCARDED: Span = Span::seconds(1);
/// Segments to be delivered for one more: at least, before the first loss at most, and
/// per segment of the window when the curve does not rise.
const LEAST_COUNT: u64 = 2;
const FIRST_COUNT: u64 = 20;
const FLAT: u64 = 100;
/// The longest time from K that makes a difference: 256 s, seven million segments.
const FARTHEST: u64 = 1 << 18;

#[derive(Debug)]
struct Cubic {
    window: Window,
    curve: Curve,
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        let Cubic { window, curve } = self;
        curve.skip_silence(ack);
        if curve.samples(ack) {
            window.search(ack);
        }
        let delivered = window.slow_start(ack);
        if delivered > 0 {
            let count = curve.count(ack.now, window.segments(), delivered, window.mss);
            window.avoid(count, delivered);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let segments = loss.window / self.window.mss;
        self.curve.on_loss(segments);
        self.window.reduce(segments * BETA / WHOLE);
    }

    fn on_timeout(&mut self, in_flight: u64) {
        self.window.collapse(in_flight);
        self.curve = Curve::default();
    }

    fn on_idle(&mut self, initial: u64) {
        self.window.restart(initial);
    }

    fn on_spurious_recovery(&mut self, before: &Before) {
        self.window.restore(before);
    }

    fn on_recovered(&mut self, window: u64) {
        self.window.size = window;
    }

    fn halves_when_idle(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.window.size
    }

    fn threshold(&self) -> u64 {
        self.window.threshold
    }
}

/// Congestion avoidance: the curve and where on it the window is, in segments.
#[derive(Debug, Default)]
struct Curve {
    /// `W_max`: the window before the last reduction, zero before the first one. With
    /// fast convergence, a little less.
    maximum: u64,
    epoch: Option<Epoch>,
    /// When the last segment was sent, if nothing has been in the network since.
    silent_since: Option<Time>,
    /// The least round trip.
    least: Option<Span>,
    /// When the curve was read last, and for which window.
    read_at: Time,
    read_for: u64,
    /// What it said: segments to be delivered for one more.
    count: u64,
    /// Bytes delivered that Reno's window has not grown by.
    delivered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// `K`, in ticks.
    ticks_to_origin: u64,
    /// Where the curve is flat.
    origin: u64,
    /// The window that Reno would have.
    reno: u64,
}

impl Curve {
    /// Time in which there was nothing to send does not count (`cwnd_event_tx_start`): from
    /// the last segment of a flight that was acknowledged whole to the first of the next.
    fn skip_silence(&mut self, ack: &Ack) {
        let sent = |trip: Span| Time(ack.now.0.saturating_sub(trip.0));
        if let (Some(since), Some(epoch), Some(trip)) =
            (self.silent_since.take(), &mut self.epoch, ack.round_trip)
        {
            epoch.start += sent(trip).since(since);
        }
        if ack.in_flight == 0 {
            self.silent_since = ack.latest_round_trip.map(sent);
        }
    }

    /// Takes in the round trip of an acknowledgement. Returns whether it counts.
    fn samples(&mut self, ack: &Ack) -> bool {
        let Some(delay) = ack.latest_round_trip else { return false };
        if self.epoch.is_some_and(|epoch| ack.now.since(epoch.start) < DISCARDED) {
            return false;
        }
        self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
        true
    }

    /// How many segments have to be delivered for the window to grow by one, after
    /// `delivered` bytes more.
    fn count(&mut self, now: Time, window: u64, delivered: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        if window == self.read_for && now.since(self.read_at) <= READING {
            return self.count;
        }
        self.read_for = window;
        self.read_at = now;
        let maximum = self.maximum;
        let epoch = self.epoch.get_or_insert_with(|| {
            self.delivered = delivered;
            let below = maximum.saturating_sub(window);
            Epoch {
                start: now,
                // K = cbrt((W_max - cwnd) / C) seconds.
                ticks_to_origin: cube_root((u128::from(below) << (4 * TICKS)) / u128::from(C)),
                origin: maximum.max(window),
                reno: window,
            }
        });
        let elapsed = now.since(epoch.start) + self.least.unwrap_or(Span::ZERO);
        let target = cubic(ticks(elapsed), epoch.ticks_to_origin, epoch.origin);
        let mut count = if target > window { window / (target - window) } else { FLAT * window };
        if maximum == 0 {
            count = count.min(FIRST_COUNT);
        }
        let price = window * RENO.0 / RENO.1 * mss;
        // What is left over is above zero, as it is in Linux.
        let grown = self.delivered.saturating_sub(1) / price.max(1);
        epoch.reno += grown;
        self.delivered -= grown * price;
        if epoch.reno > window {
            count = count.min(window / (epoch.reno - window));
        }
        self.count = count.max(LEAST_COUNT);
        self.count
    }

    /// A loss ends the epoch. Fast convergence lets go of half of what a loss takes when
    /// the window has not come back to the maximum (RFC 9438 section 4.7).
    fn on_loss(&mut self, window: u64) {
        self.maximum =
            if window < self.maximum { window * (WHOLE + BETA) / (2 * WHOLE) } else { window };
        self.epoch = None;
    }
}

fn ticks(span: Span) -> u64 {
    ((u128::from(span.0) << TICKS) / 1_000_000_000) as u64
}

/// W(t) in segments, not below zero.
fn cubic(at: u64, ticks_to_origin: u64, origin: u64) -> u64 {
    let distance = at.abs_diff(ticks_to_origin).min(FARTHEST);
    // 410 * 2^54 at most.
    let segments = (C * distance * distance * distance) >> (4 * TICKS);
    if at < ticks_to_origin { origin.saturating_sub(segments) } else { origin + segments }
}

/// Largest integer whose cube is not above `value`.
fn cube_root(value: u128) -> u64 {
    // Bit by bit from the top: done once per loss, so clarity wins over Newton.
    // 2^42 - 1 is the largest root of a value below 2^126.
    let value = value.min(1 << 126);
    (0..42).rev().fold(0_u64, |root, bit| {
        let larger = u128::from(root | 1 << bit);
        if larger * larger * larger <= value { larger as u64 } else { root }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::tests::ack;

    const MSS: u64 = 1_000;

    #[test]
    fn roots_are_exact() {
        for root in [0_u64, 1, 2, 3, 10, 1_000, 123_456_789, (1 << 42) - 1] {
            let cube = u128::from(root).pow(3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 1), root.max(u64::from(root == 0)));
            if root > 0 {
                assert_eq!(cube_root(cube - 1), root - 1);
            }
        }
        assert_eq!(cube_root(u128::MAX), (1 << 42) - 1);
    }

    /// The curve against the formula in floating point: K = cbrt(300 / 0.4) after a
    /// reduction to 700 segments of 1 000.
    #[test]
    fn the_curve_is_the_formula() {
        let to_origin = cube_root((300_u128 << 40) / u128::from(C));
        let seconds = to_origin as f64 / 1_024.0;
        assert!((seconds - 750_f64.cbrt()).abs() < 0.005, "{seconds}");
        for tenth in 0..300_u64 {
            let t = (tenth * 1_024 / 10) as f64 / 1_024.0;
            let expected = 410.0 / 1_024.0 * (t - seconds).powi(3) + 1_000.0;
            let found = cubic(tenth * 1_024 / 10, to_origin, 1_000) as f64;
            assert!((found - expected).abs() <= 1.0, "{t}: {found} {expected}");
        }
    }

    /// A window of 100 segments loses: 70 are left, K = cbrt(30 / 0.4) = 4.22 s. Worked
    /// out with W(t) = 100 - 0.4004 (4.22 - t)^3, a round trip of 100 ms ahead: at 0 s
    /// the curve is at 73, so one more for 70 / 3 = 23; at 1 s it is at 88, so for
    /// 70 / 18 = 3; at 2 s it is at 97, so for two, the least.
    #[test]
    fn the_count_is_what_the_curve_asks_for() {
        let mut curve = Curve { least: Some(Span::millis(100)), ..Curve::default() };
        curve.on_loss(100);
        assert_eq!(curve.maximum, 100);
        let mut at = |seconds: u64| curve.count(Time::ZERO + Span::seconds(seconds), 70, MSS, MSS);
        assert_eq!([at(0), at(1), at(2)], [23, 3, 2]);
    }

    /// Before the first loss the window grows by a twentieth per round trip at least, and
    /// by half at most.
    #[test]
    fn without_a_loss_the_window_grows_by_a_twentieth() {
        let mut curve = Curve { least: Some(Span::millis(40)), ..Curve::default() };
        assert_eq!(curve.count(Time::ZERO, 50, MSS, MSS), 20);
        // 0.4 (10 s)^3 = 400 segments above.
        assert_eq!(curve.count(Time::ZERO + Span::seconds(10), 50, MSS, MSS), 2);
    }

    /// Reno's window: one more for 15/8 windows delivered. At ten segments that is 18, long
    /// before the curve leaves its origin: 0.4 (1.2 s)^3 is less than a segment.
    #[test]
    fn a_flat_curve_follows_reno() {
        let mut curve = Curve { least: Some(Span::millis(1)), ..Curve::default() };
        curve.on_loss(10);
        let mut now = Time::ZERO;
        let mut counts = Vec::new();
        for _ in 0..38 {
            now += Span::millis(32);
            counts.push(curve.count(now, 10, MSS, MSS));
        }
        let (flat, followed) = (counts[17], counts[18]);
        assert_eq!(curve.epoch.map(|epoch| epoch.reno), Some(12));
        assert_eq!((flat, followed), (1_000, 10), "{counts:?}");
    }

    /// Section 4.7 of RFC 9438: a second loss below the first one's window lets go of
    /// more, and no epoch survives a loss.
    #[test]
    fn a_shrinking_share_is_released_faster() {
        let mut curve = Curve::default();
        curve.on_loss(100);
        assert_eq!(curve.maximum, 100);
        curve.on_loss(90);
        // 90 * 1741 / 2048.
        assert_eq!(curve.maximum, 76);
        curve.on_loss(90);
        assert_eq!(curve.maximum, 90);
    }

    /// A flight of two segments that was sent at 1 s is acknowledged whole at 1.1 s; the
    /// next one is sent at 4 s and acknowledged at 4.1 s. Three seconds do not count.
    #[test]
    fn a_silence_does_not_count() {
        let at = |millis: u64| Time::ZERO + Span::millis(millis);
        let mut curve = Curve::default();
        curve.count(at(1_050), 10, MSS, MSS);
        curve.skip_silence(&ack(at(1_100), Some(Span::millis(100)), 3_000, 3_000));
        curve.skip_silence(&ack(at(4_100), Some(Span::millis(100)), 4_000, 5_000));
        assert_eq!(curve.epoch.map(|epoch| epoch.start), Some(at(4_050)));
        curve.skip_silence(&ack(at(4_101), Some(Span::millis(101)), 5_000, 5_000));
        assert_eq!(curve.epoch.map(|epoch| epoch.start), Some(at(4_050)));
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let mut curve = Curve { least: Some(Span::seconds(1_000_000)), ..Curve::default() };
        curve.count(Time::ZERO, 1, MSS, MSS);
        for _ in 0..100 {
            assert!(curve.count(Time(u64::MAX), 1 << 40, 1 << 40, MSS) >= LEAST_COUNT);
        }
    }
}
