//! How long something took: of late, and since the start.
//!
//! Of late means the last 10 to 20 seconds. Two histograms count everything and are
//! cleared in turn, and the one that was cleared longer ago is read: nothing is merged or
//! allocated. What Prometheus reads is never cleared, in fixed buckets.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tokio::time::Instant;

/// Times in a histogram are in units of this, of which a second has so many.
const UNIT: Span = Span::micros(10);
const UNITS_PER_SECOND: f64 = 100_000.0;
/// Longer ones count as this long.
const LONGEST: Span = Span::seconds(3_600);
/// Figures are right within a percent.
const DIGITS: u8 = 2;
/// How often the older of the two histograms is cleared.
const ROUNDS: u32 = 10;

/// The upper ends of the buckets, in seconds; the last bucket has none.
pub(crate) const BOUNDS: [f64; 13] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Times of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// The first of them is read.
    recent: [Histogram<u32>; 2],
    rounds: u32,
    all: Buckets,
}

/// All times since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets {
    /// How many there are up to each of [`BOUNDS`] and above the one before, and then the
    /// others.
    pub(crate) counts: [u64; BOUNDS.len() + 1],
    pub(crate) sum: Span,
}

/// What is typical of the last 10 to 20 seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Typical {
    /// How many there were.
    pub count: u64,
    /// Half of them took at most this long.
    pub median_s: f64,
    /// 95 of 100 took at most this long.
    pub p95_s: f64,
}

/// The time since then.
pub(crate) fn since(instant: Instant) -> Span {
    between(instant, Instant::now())
}

/// The time from one instant to a later one.
pub(crate) fn between(before: Instant, after: Instant) -> Span {
    Span(u64::try_from((after - before).as_nanos()).unwrap_or(u64::MAX))
}

impl Times {
    pub(crate) fn new() -> Times {
        let histogram =
            || Histogram::new_with_bounds(1, LONGEST.0 / UNIT.0, DIGITS).expect("it is in order");
        Times { recent: [histogram(), histogram()], rounds: 0, all: Buckets::default() }
    }

    /// Something took this long.
    pub(crate) fn record(&mut self, span: Span) {
        for histogram in &mut self.recent {
            histogram.saturating_record(span.0 / UNIT.0);
        }
        let seconds = span.as_seconds();
        self.all.counts[BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
        self.all.sum += span;
    }

    /// A second is over.
    pub(crate) fn second(&mut self) {
        self.rounds += 1;
        if self.rounds == ROUNDS {
            self.rounds = 0;
            self.recent[0].clear();
            self.recent.swap(0, 1);
        }
    }

    /// `None` if there was nothing.
    pub(crate) fn typical(&self) -> Option<Typical> {
        let [recent, _] = &self.recent;
        let at = |quantile| recent.value_at_quantile(quantile) as f64 / UNITS_PER_SECOND;
        (!recent.is_empty()).then(|| Typical {
            count: recent.len(),
            median_s: at(0.5),
            p95_s: at(0.95),
        })
    }

    pub(crate) fn all(&self) -> &Buckets {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_is_what_happened_of_late() {
        let mut times = Times::new();
        assert_eq!(times.typical(), None);
        for milliseconds in 1..=100 {
            times.record(Span::millis(milliseconds));
        }
        for _ in 0..ROUNDS {
            let typical = times.typical().expect("there was something");
            assert_eq!(typical.count, 100);
            assert!((typical.median_s - 0.050).abs() < 0.001, "{typical:?}");
            assert!((typical.p95_s - 0.095).abs() < 0.001, "{typical:?}");
            times.second();
        }
        times.record(Span::seconds(2));
        // It is remembered for 10 s at least, and for 20 s at most.
        for _ in 0..ROUNDS {
            assert_eq!(times.typical().map(|typical| typical.count), Some(101));
            times.second();
        }
        assert_eq!(times.typical().map(|typical| typical.count), Some(1));
        (0..ROUNDS).for_each(|_| times.second());
        assert_eq!(times.typical(), None);
    }

    #[test]
    fn every_time_is_in_one_bucket() {
        let mut times = Times::new();
        for span in [Span::ZERO, Span::millis(5), Span::micros(5_001), Span::seconds(100_000)] {
            times.record(span);
        }
        let Buckets { counts, sum } = times.all();
        assert_eq!((counts[0], counts[1], counts[BOUNDS.len()]), (2, 1, 1));
        assert_eq!(counts.iter().sum::<u64>(), 4);
        assert_eq!(*sum, Span::seconds(100_000) + Span::micros(10_001));
        // Within the range of a histogram, as the longest.
        let longest = times.typical().expect("there was something").p95_s;
        assert!((longest - LONGEST.as_seconds()).abs() < 0.01 * LONGEST.as_seconds());
    }
}
