//! What a lane remembers of what it sent: times, seconds, and the largest flows.
//!
//! Nothing here grows with traffic. Times go into histograms of fixed size, which are
//! right within a percent. Flows are not counted one by one, since a sender with random
//! ports would fill any table: a sample is taken whenever about so many bytes have been
//! sent, and the flows of the last thousand samples are those of about the last ten seconds.
//! The distances are random, since traffic has periods of its own.

use std::collections::{HashMap, VecDeque};

use hdrhistogram::Histogram;
use tidegate_core::discipline::Backlog;
use tidegate_core::{Bytes, Counters, FlowKey, Packet, Rate, Span, Stream, Time};

use crate::status::{Delay, DelayBucket, DelayHistogram, FlowStatus, Second};

/// How many seconds are kept.
const SECONDS: usize = 600;
/// How many samples of flows are kept, and the time in which a full link fills them.
const SAMPLES: u64 = 1_000;
const SAMPLED: Span = Span::seconds(10);
/// The least between two samples: a full frame.
const LEAST_BETWEEN_SAMPLES: Bytes = Bytes(1_514);
/// The buckets of the histogram, in milliseconds: from a packet at 100 Mbit/s to a buffer
/// that nobody manages.
const BUCKETS_MS: [f64; 13] =
    [0.1, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0];
/// How many flows are named.
const TOP: usize = 10;

/// Times of one kind, in microseconds.
#[derive(Debug)]
pub(crate) struct Times(Histogram<u64>);

impl Times {
    pub(crate) fn new() -> Times {
        /// Longer ones count as this long.
        const LONGEST_US: u64 = 3_600_000_000;
        Times(Histogram::new_with_bounds(1, LONGEST_US, 2).expect("the bounds are in order"))
    }

    pub(crate) fn record(&mut self, time: Span) {
        self.0.saturating_record(time.0 / 1_000);
    }

    pub(crate) fn summary(&self) -> Delay {
        let at = |percent| self.0.value_at_percentile(percent) as f64 / 1e3;
        match self.0.len() {
            0 => Delay::default(),
            count => Delay {
                count,
                p50_ms: at(50.0),
                p95_ms: at(95.0),
                p99_ms: at(99.0),
                max_ms: self.0.max() as f64 / 1e3,
            },
        }
    }

    pub(crate) fn histogram(&self) -> DelayHistogram {
        let buckets = BUCKETS_MS.map(|at_most_ms| DelayBucket {
            at_most_ms,
            count: self.0.count_between(0, (at_most_ms * 1e3) as u64),
        });
        let sum_ms =
            if self.0.is_empty() { 0.0 } else { self.0.mean() * self.0.len() as f64 / 1e3 };
        DelayHistogram { sum_ms, buckets: buckets.into() }
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The books of a lane.
#[derive(Debug)]
pub(crate) struct Books {
    delay: Times,
    of_levels: Vec<Times>,
    second: Times,
    /// When the present second began, and what the counters said then.
    began: Time,
    before: Counters,
    history: VecDeque<Second>,
    samples: Samples,
}

impl Books {
    pub(crate) fn new(levels: usize, rate: Rate) -> Books {
        Books {
            delay: Times::new(),
            of_levels: (0..levels).map(|_| Times::new()).collect(),
            second: Times::new(),
            began: Time::ZERO,
            before: Counters::default(),
            history: VecDeque::with_capacity(SECONDS),
            samples: Samples::new(rate),
        }
    }

    /// A packet leaves at `now` that had joined this level.
    pub(crate) fn sent(&mut self, now: Time, packet: &Packet, level: Option<usize>) {
        let time = now.since(packet.arrived);
        self.delay.record(time);
        self.second.record(time);
        if let Some(times) = level.and_then(|level| self.of_levels.get_mut(level)) {
            times.record(time);
        }
        self.samples.sent(now, packet);
    }

    /// When the present second ends.
    pub(crate) fn turns_at(&self) -> Time {
        self.began + Span::seconds(1)
    }

    /// Ends the present second.
    pub(crate) fn turn(&mut self, now: Time, rate: Rate, counters: &Counters, backlog: Backlog) {
        let elapsed = now.since(self.began).as_seconds().max(1e-9);
        let change = counters.since(&self.before);
        if self.history.len() == SECONDS {
            self.history.pop_front();
        }
        self.history.push_back(Second {
            at_s: now.as_seconds().round() as u64,
            rate_bps: rate.0,
            sent_bps: (change.delivered_bytes.0 as f64 * 8.0 / elapsed).round() as u64,
            sent_packets: change.delivered,
            lost_packets: change.lost(),
            marked_packets: change.marked,
            queued_bytes: backlog.bytes.0,
            delay: self.second.summary(),
        });
        self.second.clear();
        self.before = *counters;
        // Seconds are whole ones, also after a pause.
        self.began = Time(now.0 - now.0 % Span::seconds(1).0);
    }

    /// The seconds that ended after this one.
    pub(crate) fn history(&self, since_s: u64) -> impl Iterator<Item = &Second> {
        self.history.iter().filter(move |second| second.at_s > since_s)
    }

    pub(crate) fn last_second(&self) -> Second {
        self.history.back().copied().unwrap_or_default()
    }

    pub(crate) fn delay(&self) -> Delay {
        self.delay.summary()
    }

    pub(crate) fn delay_histogram(&self) -> DelayHistogram {
        self.delay.histogram()
    }

    pub(crate) fn delay_of_level(&self, level: usize) -> Delay {
        self.of_levels.get(level).map_or_else(Delay::default, Times::summary)
    }

    pub(crate) fn top_flows(&self, now: Time) -> Vec<FlowStatus> {
        self.samples.top(now)
    }

    pub(crate) fn rate_changed(&mut self, rate: Rate) {
        self.samples.every = Samples::every(rate);
    }
}

/// The flows of packets, one for so many bytes.
#[derive(Debug)]
struct Samples {
    every: Bytes,
    /// What has been sent since the last sample, and what has to be until the next.
    sent: Bytes,
    distance: Bytes,
    random: Stream,
    taken: VecDeque<(Time, FlowKey, Bytes)>,
}

impl Samples {
    fn new(rate: Rate) -> Samples {
        let every = Samples::every(rate);
        Samples {
            every,
            sent: Bytes::ZERO,
            distance: every,
            random: Stream::new(0, "samples"),
            taken: VecDeque::with_capacity(SAMPLES as usize),
        }
    }

    fn every(rate: Rate) -> Bytes {
        let bytes = u128::from(rate.0) * u128::from(SAMPLED.0) / 8_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX) / SAMPLES).max(LEAST_BETWEEN_SAMPLES)
    }

    fn sent(&mut self, now: Time, packet: &Packet) {
        self.sent += packet.size;
        if self.sent < self.distance {
            return;
        }
        if self.taken.len() as u64 == SAMPLES {
            self.taken.pop_front();
        }
        self.taken.push_back((now, packet.flow, self.sent));
        self.sent = Bytes::ZERO;
        // Between half and one and a half of it.
        self.distance = Bytes(self.every.0 / 2 + self.random.index(self.every.0 as usize) as u64);
    }

    fn top(&self, now: Time) -> Vec<FlowStatus> {
        let recent = || self.taken.iter().filter(|(at, ..)| now.since(*at) <= SAMPLED);
        let Some((first, ..)) = recent().next() else { return Vec::new() };
        // A link that has just begun to be used has been for at least a second.
        let seconds = now.since(*first).as_seconds().max(1.0);
        let mut flows: HashMap<FlowKey, u64> = HashMap::new();
        for (_, flow, bytes) in recent() {
            *flows.entry(*flow).or_default() += bytes.0;
        }
        let mut flows: Vec<_> = flows.into_iter().collect();
        flows.sort_by_key(|(flow, bytes)| (std::cmp::Reverse(*bytes), *flow));
        flows.truncate(TOP);
        let status = |(flow, bytes): (FlowKey, u64)| FlowStatus {
            flow: flow.to_string(),
            rate_bps: (bytes as f64 * 8.0 / seconds).round() as u64,
        };
        flows.into_iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate(8_000_000);

    fn packet(flow: u16, size: u64, arrived: Time) -> Packet {
        let flow = FlowKey::v4([192, 0, 2, 1], flow, [198, 51, 100, 1], 443, FlowKey::TCP);
        Packet { arrived, ..Packet::new(0, flow, Bytes(size)) }
    }

    #[test]
    fn the_largest_flows_are_found_among_ten_thousand() {
        let mut books = Books::new(0, RATE);
        // A megabyte each second: half of one flow, a quarter of another, the rest of many.
        let mut now = Time::ZERO;
        for number in 0..10_000_u16 {
            now += Span::micros(1_000);
            let flow = match number % 4 {
                0 | 2 => 1,
                1 => 2,
                _ => 1_000 + number,
            };
            books.sent(now, &packet(flow, 1_000, now), None);
        }
        let top = books.top_flows(now);
        assert_eq!(top.len(), TOP);
        for (flow, expected) in top.iter().zip([4_000_000.0, 2_000_000.0]) {
            let error = (flow.rate_bps as f64 - expected).abs() / expected;
            assert!(error < 0.1, "{flow:?}");
        }
        assert!(top[2].rate_bps < 100_000, "{:?}", top[2]);
        // Ten quiet seconds later they are forgotten.
        assert!(books.top_flows(now + Span::millis(10_001)).is_empty());
        assert!(books.samples.taken.len() as u64 <= SAMPLES);
    }

    #[test]
    fn a_second_says_what_happened_in_it() {
        let mut books = Books::new(2, RATE);
        for number in 0..100 {
            let arrived = Time(number * 5_000_000);
            let level = (number % 2) as usize;
            books.sent(arrived + Span::millis(1 + number), &packet(1, 1_000, arrived), Some(level));
        }
        let mut counters = Counters::default();
        (counters.delivered, counters.delivered_bytes) = (100, Bytes(100_000));
        let end = books.turns_at();
        assert_eq!(end, Time(1_000_000_000));
        books.turn(end, RATE, &counters, Backlog::default());
        let second = books.last_second();
        assert_eq!((second.at_s, second.sent_bps, second.sent_packets), (1, 800_000, 100));
        assert!((second.delay.p50_ms - 50.0).abs() < 1.0, "{second:?}");
        assert!((second.delay.max_ms - 100.0).abs() < 1.0, "{second:?}");
        assert_eq!(books.delay_of_level(0).count, 50);
        // Times of 1 to 100 ms.
        let histogram = books.delay_histogram();
        assert!((histogram.sum_ms - 5_050.0).abs() < 51.0, "{}", histogram.sum_ms);
        let count = |at_most_ms| {
            let mut buckets = histogram.buckets.iter();
            buckets.find(|bucket| bucket.at_most_ms == at_most_ms).expect("it is there").count
        };
        assert_eq!([0.1, 10.0, 50.0, 5_000.0].map(count), [0, 10, 50, 100]);
        books.turn(books.turns_at(), RATE, &counters, Backlog::default());
        assert_eq!(books.last_second(), Second { at_s: 2, rate_bps: RATE.0, ..Second::default() });
        assert_eq!(books.history(1).count(), 1);
        for _ in 0..SECONDS {
            books.turn(books.turns_at(), RATE, &counters, Backlog::default());
        }
        assert_eq!(books.history(0).count(), SECONDS);
    }
}
