//! CUBIC (RFC 9438) in integers.
//!
//! The window follows W(t) = C (t - K)^3 + W_max, which is flat around the size
//! at which the last loss happened. All arithmetic is in integers, so that a run
//! gives the same bits on every machine: windows are in bytes, times in 2^-20 s
//! (just under a microsecond), so that the cube is shifted and not divided, and
//! fractions of a byte are carried over to the next acknowledgement.

use tidegate_core::{Span, Time};

use super::loss_based::Window;
use super::{Ack, Controller, Entry, Loss};

pub(super) const ENTRY: Entry = Entry {
    name: "cubic",
    summary: "A cubic function of the time since the last loss, and 0.7 after one",
    source: "RFC 9438",
    start: |start| Box::new(Cubic { window: Window::new(start), curve: Curve::default() }),
};

/// `C` = 0.4 segments/s^3, as a fraction.
const C: (u64, u64) = (2, 5);
/// beta_cubic = 0.7: what is left of the window after a loss.
const BETA: (u64, u64) = (7, 10);
/// Fast convergence leaves (1 + beta) / 2 of the window (section 4.7).
const RELEASE: (u64, u64) = (17, 20);
/// alpha_cubic = 3 (1 - beta) / (1 + beta) (section 4.3).
const ALPHA: (u64, u64) = (9, 17);
/// Fraction bits of a second.
const TICKS: u32 = 20;
/// The longest time from K that makes a difference: 2^32 ticks, more than an hour.
const FARTHEST: u64 = u32::MAX as u64;

#[derive(Debug)]
struct Cubic {
    window: Window,
    curve: Curve,
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.may_grow() {
            return;
        }
        let window = &mut self.window;
        if !ack.window_limited {
            self.curve.idle(ack.now);
        } else if window.in_slow_start() {
            window.grow(ack);
        } else {
            let round_trip = ack.smoothed_round_trip.unwrap_or(Span::ZERO);
            window.size = self.curve.avoid(ack.now, window.size, window.mss, ack.acked, round_trip);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(self.curve.reduced(loss.window, loss.flight));
    }

    fn on_timeout(&mut self, _: u64) {
        self.window.collapse();
        self.curve.on_timeout();
    }

    fn on_idle(&mut self, initial: u64) {
        self.window.size = self.window.size.min(initial);
    }

    fn on_recovered(&mut self, window: u64) {
        self.window.size = window;
    }

    fn window(&self) -> u64 {
        self.window.size
    }

    fn threshold(&self) -> u64 {
        self.window.threshold
    }
}

/// Congestion avoidance: the curve and where on it the window is.
#[derive(Debug, Default)]
struct Curve {
    /// `W_max`: window before the last reduction, zero before the first one.
    /// With fast convergence, a little less.
    maximum: u64,
    /// `cwnd_prior`: window before the last reduction itself.
    prior: u64,
    /// Start of this congestion avoidance, once it has started.
    epoch: Option<Epoch>,
}

#[derive(Debug)]
struct Epoch {
    /// `t_epoch`, moved on by the time in which the window was not used.
    start: Time,
    /// Last acknowledgement.
    last: Time,
    /// `K`, in ticks.
    ticks_to_maximum: u64,
    /// `W_est`: the window that Reno would have.
    estimate: u64,
    /// Numerators of the fractions of a byte not yet added to `W_est` and `cwnd`.
    estimate_rest: u64,
    window_rest: u64,
}

impl Curve {
    /// Window after an acknowledgement of `acked` bytes (sections 4.2 to 4.5).
    fn avoid(&mut self, now: Time, window: u64, mss: u64, acked: u64, round_trip: Span) -> u64 {
        let (maximum, prior) = (&mut self.maximum, self.prior);
        let epoch = self.epoch.get_or_insert_with(|| {
            // Section 4.10: without a reduction before (slow start left by its
            // threshold or by a timeout) the curve starts at its middle.
            let ticks_to_maximum = if *maximum > window {
                // K = cbrt((W_max - cwnd_epoch) / C) seconds.
                let cubed = (u128::from(*maximum - window) * u128::from(C.1)) << (3 * TICKS);
                cube_root(cubed / u128::from(C.0 * mss))
            } else {
                *maximum = window;
                0
            };
            Epoch {
                start: now,
                last: now,
                ticks_to_maximum,
                estimate: window,
                estimate_rest: 0,
                window_rest: 0,
            }
        });
        epoch.last = now;
        // Section 4.3. Once W_est is back at the old window, Reno's own slope.
        let alpha = if epoch.estimate < prior { ALPHA } else { (1, 1) };
        let grown = epoch.estimate_rest + alpha.0 * mss * acked;
        epoch.estimate += grown / (alpha.1 * window);
        epoch.estimate_rest = grown % (alpha.1 * window);

        let elapsed = ticks(now.since(epoch.start));
        let curve = |at: u64| cubic(at, epoch.ticks_to_maximum, *maximum, mss);
        if curve(elapsed) < epoch.estimate {
            // Reno-friendly region.
            return window.max(epoch.estimate);
        }
        // Section 4.2: where the curve will be a round trip from now, no more
        // than half above the window. The RFC adds (target - cwnd) / cwnd per
        // acknowledgement and has one for each segment in mind; counted in
        // bytes the target is also met with delayed acknowledgements.
        let target = curve(elapsed + ticks(round_trip)).clamp(window, window + window / 2);
        let grown = epoch.window_rest + (target - window) * acked;
        epoch.window_rest = grown % window;
        window + grown / window
    }

    /// The window was not used: time in which it could not grow does not count
    /// (end of section 4.2).
    fn idle(&mut self, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += now.since(epoch.last);
            epoch.last = now;
        }
    }

    /// What a loss leaves of `flight` (section 4.6), with fast convergence (4.7).
    fn reduced(&mut self, window: u64, flight: u64) -> u64 {
        self.maximum = if window < self.maximum { window * RELEASE.0 / RELEASE.1 } else { window };
        self.prior = window;
        self.epoch = None;
        flight * BETA.0 / BETA.1
    }

    /// After a timeout the curve starts at the window at which slow start ends
    /// (section 4.8).
    fn on_timeout(&mut self) {
        self.maximum = 0;
        self.epoch = None;
    }
}

fn ticks(span: Span) -> u64 {
    // 128 bits: 2^20 / 10^9 of a nanosecond count that may be an hour or a year.
    ((u128::from(span.0) << TICKS) / 1_000_000_000) as u64
}

/// W(t) in bytes, not below zero.
fn cubic(at: u64, ticks_to_maximum: u64, maximum: u64, mss: u64) -> u64 {
    let distance = at.abs_diff(ticks_to_maximum).min(FARTHEST);
    // At most 2^96 >> 40 = 2^56, in 2^-20 segments; the segment size comes in
    // before the rest of the fraction is dropped.
    let cube = (u128::from(distance * distance) * u128::from(distance)) >> (2 * TICKS);
    let bytes = (cube * u128::from(mss * C.0)) >> TICKS;
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX) / C.1;
    if at < ticks_to_maximum {
        maximum.saturating_sub(bytes)
    } else {
        maximum.saturating_add(bytes)
    }
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

    #[test]
    fn cube_roots_are_exact() {
        for root in [0, 1, 2, 9, 1_000, 123_456_789, (1 << 42) - 1] {
            let cube = u128::from(root).pow(3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 1), root.max(u64::from(root == 0)));
            if root > 0 {
                assert_eq!(cube_root(cube - 1), root - 1);
            }
        }
        assert_eq!(cube_root(u128::MAX), (1 << 42) - 1);
    }

    /// The curve against RFC 9438 equations 1 and 2 in floating point.
    #[test]
    fn the_curve_is_the_formula() {
        let mss = 1_460;
        let maximum = 1_000 * mss;
        // K = cbrt(300 / 0.4) = 9.086 s after a reduction to 700 segments.
        let to_maximum = cube_root(((300_u128 * 5) << 60) / 2);
        let seconds = to_maximum as f64 / f64::from(1 << TICKS);
        assert!((seconds - 750_f64.cbrt()).abs() < 1e-5, "{seconds}");
        for tenth in 0..300_u64 {
            let at = (tenth << TICKS) / 10;
            let t = at as f64 / f64::from(1 << TICKS);
            let expected = (0.4 * (t - seconds).powi(3) + 1_000.0) * mss as f64;
            let found = cubic(at, to_maximum, maximum, mss) as f64;
            assert!((found - expected).abs() < 2.0, "{t}: {found} {expected}");
        }
    }

    /// Section 4.7: a second loss below the first one's window lets go of
    /// 0.15 of it, and no epoch survives a loss.
    #[test]
    fn a_shrinking_share_is_released_faster() {
        let mut curve = Curve::default();
        assert_eq!(curve.reduced(100_000, 90_000), 63_000);
        assert_eq!((curve.maximum, curve.prior), (100_000, 100_000));
        assert_eq!(curve.reduced(90_000, 90_000), 63_000);
        assert_eq!((curve.maximum, curve.prior), (76_500, 90_000));
        assert_eq!(curve.reduced(90_000, 90_000), 63_000);
        assert_eq!((curve.maximum, curve.prior), (90_000, 90_000));
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let mut curve = Curve::default();
        let far = Time(u64::MAX);
        let mut window = curve.avoid(Time::ZERO, 1_460, 1_460, 1_460, Span::ZERO);
        for _ in 0..100 {
            window = curve.avoid(far, window, 1_460, 1_460, Span::seconds(1_000_000));
        }
        assert!(curve.reduced(window, window) <= window);
    }
}
