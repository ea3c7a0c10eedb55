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
//! 50 to 10. With a delay limit the window therefore also shrinks, by 15%, each
//! time the path's queueing delay has stayed above the limit for two intervals or
//! more. That is not in the paper.
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
/// The rest of the window after intervals of delay, in percent: steeper than
/// the 2% of equation (3), gentler than TCP's halving.
const PERCENT_LEFT_BY_DELAY: u64 = 85;
/// Shorter peaks are those of the responses' own slow start.
const INTERVALS_OF_DELAY: u32 = 2;

/// What sets the number of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowMode {
    /// Equation (3) of MSF.
    Controlled,
    /// It keeps its initial value.
    Fixed,
    /// There is no limit: every request is released on arrival.
    Unlimited,
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
    /// Queueing delay that shrinks the window if it lasts; `None` for none.
    pub delay_limit: Option<Span>,
}

/// The state of the link, from its own counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// All bytes that the link has ever carried towards the gateway, including
    /// traffic that the gateway does not see.
    pub carried: Bytes,
    /// The queueing delay of the path now, as the smoothed round trip of the
    /// responses' connections above its minimum; `None` if it is unknown.
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
    /// The least delay reported since the last update.
    least_delay: Option<Span>,
    /// Intervals in a row with a delay above the limit.
    delayed: u32,
}

impl Window {
    pub(super) fn new(config: WindowConfig, rate: Rate) -> Window {
        let places = u64::from(config.start).clamp(1, MOST_PLACES) * PLACE;
        Window { config, rate, places, updated: None, least_delay: None, delayed: 0 }
    }

    /// Whether one more response may be outstanding beside `held` others. The
    /// listings of MSF release on arrival only at *W* = 0 and do not count
    /// that one; its section 5.5 needs this rule.
    pub(super) fn admits(&self, held: u32) -> bool {
        self.config.mode == WindowMode::Unlimited || u64::from(held) * PLACE < self.places
    }

    /// *W+*, or infinity.
    pub(super) fn places(&self) -> f64 {
        match self.config.mode {
            WindowMode::Unlimited => f64::INFINITY,
            _ => self.places as f64 / PLACE as f64,
        }
    }

    /// Processes a report; after an interval the window follows, if `held`
    /// responses are as many as it admits.
    pub(super) fn report(&mut self, now: Time, report: LinkReport, held: u32) {
        let (since, before) = *self.updated.get_or_insert((now, report.carried));
        if let Some(delay) = report.queueing_delay {
            self.least_delay = Some(self.least_delay.map_or(delay, |least| least.min(delay)));
        }
        let span = now.since(since);
        if span < self.config.interval || span == Span::ZERO {
            return;
        }
        self.updated = Some((now, report.carried));
        let least_delay = self.least_delay.take();
        let delayed = std::iter::zip(least_delay, self.config.delay_limit)
            .next()
            .is_some_and(|(delay, limit)| delay > limit);
        self.delayed = if delayed { self.delayed.saturating_add(1) } else { 0 };
        if self.config.mode == WindowMode::Controlled && !self.admits(held) {
            self.places = if self.delayed >= INTERVALS_OF_DELAY {
                self.places / 100 * PERCENT_LEFT_BY_DELAY
            } else {
                self.by_utilisation(report.carried - before, span)
            };
            self.places = self.places.clamp(PLACE, MOST_PLACES * PLACE);
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
            delay_limit: Some(Span::millis(50)),
        }
    }

    /// A window after reports every 5 s of `(megabytes carried, delay in ms, held)`.
    fn after(reports: &[(u64, Option<u64>, u32)]) -> f64 {
        let mut window = Window::new(config(), RATE);
        let (mut now, mut carried) = (Time::ZERO, Bytes::ZERO);
        window.report(now, LinkReport { carried, queueing_delay: None }, 0);
        for (megabytes, delay, held) in reports {
            now += Span::seconds(5);
            carried += Bytes(megabytes * 1_000_000);
            let queueing_delay = delay.map(Span::millis);
            window.report(now, LinkReport { carried, queueing_delay }, *held);
        }
        window.places()
    }

    #[test]
    fn the_papers_example_makes_ten_of_six() {
        // 3 of 5 MB: 60%, and 6 * 0.99 / 0.6 = 9.9 (MSF section 3.2 rounds to 10).
        assert!((after(&[(3, None, 6)]) - 9.9).abs() < 1e-6);
        assert!((after(&[(5, None, 6)]) - 5.94).abs() < 1e-6);
        assert_eq!(after(&[(1, None, 6)]), 12.0);
        assert_eq!(after(&[(0, None, 6)]), 12.0);
    }

    #[test]
    fn too_few_requests_freeze_it() {
        assert_eq!(after(&[(0, None, 5), (1, Some(900), 0), (5, Some(900), 5)]), 6.0);
    }

    #[test]
    fn delay_that_stays_takes_fifteen_percent_in_every_interval() {
        let held = u32::MAX;
        let equation = 6.0 * 0.99;
        assert!((after(&[(5, Some(60), held)]) - equation).abs() < 1e-6);
        let twice = [(5, Some(60), held), (5, Some(51), held)];
        assert!((after(&twice) - equation * 0.85).abs() < 1e-6);
        let thrice = [(5, Some(60), held), (5, Some(51), held), (5, Some(51), held)];
        assert!((after(&thrice) - equation * 0.85 * 0.85).abs() < 1e-6);
        let broken = [(5, Some(60), held), (5, Some(50), held), (5, Some(51), held)];
        assert!((after(&broken) - equation * 0.99 * 0.99).abs() < 1e-6);
    }

    #[test]
    fn it_stays_within_one_and_its_most() {
        assert_eq!(after(&[(1_000_000, None, u32::MAX); 40]), 1.0);
        assert_eq!(after(&[(0, None, u32::MAX); 40]), MOST_PLACES as f64);
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
