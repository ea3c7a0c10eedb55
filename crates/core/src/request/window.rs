//! The number of responses that may be outstanding (`MSF section 3.2`).
//!
//! Every interval the limit *W+* follows the link's utilisation *U*,
//!
//! ```text
//! W+ := min(target / U, growth) * W+        (MSF equation 3)
//! ```
//!
//! but only while the limit holds requests back: with too few requests, a wider
//! window would change nothing (`MSF section 3.2`).
//!
//! *U* cannot exceed 1, so on a full link the equation takes 2% away in an
//! interval, and after doubling too often it needs eighty intervals to return from
//! 50 to 10. From one place to the several hundred of a fast link it takes ten
//! intervals. A scheduler with a read gate therefore has no such window: requests
//! are released as the link has room (see `room`).
//!
//! *W+* is a fixed-point number, as exact as needed and the same on every
//! machine.

use crate::units::{Bytes, NANOS_PER_SECOND, Rate, Span, Time};

/// One place, in the units of *W+*.
const PLACE: u64 = 1 << 32;
/// More places than any link needs, and far from overflow.
const MOST_PLACES: u64 = 1 << 20;
/// Shares in millionths, so that settings with six decimals are exact.
pub(super) const MILLION: u64 = 1_000_000;
/// What sets the number of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowMode {
    /// Equation (3) of MSF.
    Controlled,
    /// It keeps its initial value.
    Fixed,
    /// There is no limit: every request is released on arrival.
    Unlimited,
    /// A request is released when the link has room for its response; needs a read
    /// gate.
    Room,
}

/// Settings of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// What sets the number of places.
    pub mode: WindowMode,
    /// Places at the start.
    pub start: u32,
    /// *T*: time between two updates.
    pub interval: Span,
    /// *U+*, the target utilisation, in millionths.
    pub target_millionths: u64,
    /// *K*, the most that an update multiplies the window by, in millionths.
    pub growth_millionths: u64,
}

/// The state of the link, from its own counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// All bytes that the link has ever carried towards the gateway, including
    /// traffic that the gateway does not see.
    pub carried: Bytes,
    /// The queueing delay of the path now: what round trips to servers take beyond the
    /// least; `None` if it is unknown.
    pub queueing_delay: Option<Span>,
}

/// *W+* and what it depends on.
#[derive(Debug)]
pub(super) struct Window {
    config: WindowConfig,
    rate: Rate,
    /// *W+*, in units of 1/[`PLACE`].
    places: u64,
    /// Time and carried bytes at the last update; `None` before the first report.
    updated: Option<(Time, Bytes)>,
}

impl Window {
    pub(super) fn new(config: WindowConfig, rate: Rate) -> Window {
        let places = u64::from(config.start).clamp(1, MOST_PLACES) * PLACE;
        Window { config, rate, places, updated: None }
    }

    /// Places and the time of their next change are those of an earlier one with the same
    /// settings.
    pub(super) fn follow(&mut self, earlier: &Window) {
        if self.config == earlier.config {
            (self.places, self.updated) = (earlier.places, earlier.updated);
        }
    }

    /// The link has another rate.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Whether one more response may be outstanding beside `held` others. The
    /// listings of MSF release on arrival only at *W* = 0 and do not count
    /// that one; its section 5.5 needs this rule.
    pub(super) fn admits(&self, held: u32) -> bool {
        match self.config.mode {
            WindowMode::Unlimited => true,
            WindowMode::Room => false,
            _ => u64::from(held) * PLACE < self.places,
        }
    }

    /// Whether requests are released as the link has room.
    pub(super) fn follows_room(&self) -> bool {
        self.config.mode == WindowMode::Room
    }

    /// *W+*, or infinity.
    pub(super) fn places(&self) -> f64 {
        match self.config.mode {
            WindowMode::Unlimited | WindowMode::Room => f64::INFINITY,
            _ => self.places as f64 / PLACE as f64,
        }
    }

    /// Processes a report; after an interval the window follows, if `held`
    /// responses are as many as it admits.
    pub(super) fn report(&mut self, now: Time, report: LinkReport, held: u32) {
        let (since, before) = *self.updated.get_or_insert((now, report.carried));
        let span = now.since(since);
        if span < self.config.interval || span == Span::ZERO {
            return;
        }
        self.updated = Some((now, report.carried));
        if self.config.mode == WindowMode::Controlled && !self.admits(held) {
            let places = self.by_utilisation(report.carried - before, span);
            self.places = places.clamp(PLACE, MOST_PLACES * PLACE);
        }
    }

    /// Equation (3), with `carried` in `span` for *U*.
    fn by_utilisation(&self, carried: Bytes, span: Span) -> u64 {
        let places = u128::from(self.places);
        let most = places * u128::from(self.config.growth_millionths) / u128::from(MILLION);
        // Whole bytes, so that what follows stays below 2^128 for any real link.
        let could = u128::from(self.rate.0) * u128::from(span.0) / u128::from(8 * NANOS_PER_SECOND);
        let aimed = could.saturating_mul(u128::from(self.config.target_millionths));
        let carried = u128::from(carried.0) * u128::from(MILLION);
        let followed = places.saturating_mul(aimed).checked_div(carried).unwrap_or(most);
        u64::try_from(followed.min(most)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate(8_000_000);

    fn config() -> WindowConfig {
        WindowConfig {
            mode: WindowMode::Controlled,
            start: 6,
            interval: Span::seconds(5),
            target_millionths: 990_000,
            growth_millionths: 2 * MILLION,
        }
    }

    /// A window after reports every 5 s of `(megabytes carried, held)`.
    fn after(reports: &[(u64, u32)]) -> f64 {
        let mut window = Window::new(config(), RATE);
        let (mut now, mut carried) = (Time::ZERO, Bytes::ZERO);
        window.report(now, LinkReport { carried, queueing_delay: None }, 0);
        for (megabytes, held) in reports {
            now += Span::seconds(5);
            carried += Bytes(megabytes * 1_000_000);
            window.report(now, LinkReport { carried, queueing_delay: None }, *held);
        }
        window.places()
    }

    #[test]
    fn the_papers_example_makes_ten_of_six() {
        // 3 of 5 MB: 60%, and 6 * 0.99 / 0.6 = 9.9 (MSF section 3.2 rounds to 10).
        assert!((after(&[(3, 6)]) - 9.9).abs() < 1e-6);
        assert!((after(&[(5, 6)]) - 5.94).abs() < 1e-6);
        assert_eq!(after(&[(1, 6)]), 12.0);
        assert_eq!(after(&[(0, 6)]), 12.0);
    }

    #[test]
    fn too_few_requests_freeze_it() {
        assert_eq!(after(&[(0, 5), (1, 0), (5, 5)]), 6.0);
    }

    #[test]
    fn it_stays_within_one_and_its_most() {
        assert_eq!(after(&[(1_000_000, u32::MAX); 40]), 1.0);
        assert_eq!(after(&[(0, u32::MAX); 40]), MOST_PLACES as f64);
    }

    #[test]
    fn reports_within_an_interval_change_nothing() {
        let mut window = Window::new(config(), RATE);
        for second in 0..5 {
            let report = LinkReport { carried: Bytes(0), queueing_delay: None };
            window.report(Time(0) + Span::seconds(second), report, 6);
        }
        assert_eq!(window.places(), 6.0);
    }
}
