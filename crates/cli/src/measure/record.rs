//! What one run measured, as series over time, and the figures that count of it.
//!
//! A run waits on the idle link, loads it, and ends with the load. The first third of the
//! load, at most 20 s, does not count: slow start and its consequences do not belong to
//! the queue that stands there afterwards. `tidegate measured` divides results of Flent in
//! the same way, so the figures of a file are those of the run that wrote it.

use std::time::SystemTime;

use tidegate_study::rounds::{Reading, Stream, Transfer};

use crate::report::rounds::Trace;

/// The most of the load that does not count, in seconds.
const SETTLING_S: f64 = 20.0;

/// Between two points of what long transfers carry, in a picture.
const TRACE_STEP_S: f64 = 0.25;

/// When a run begins, for those who read of it; all times of the run are from there, by a
/// clock that nobody sets.
#[expect(clippy::disallowed_methods, reason = "a file says when it was measured")]
pub(super) fn moment() -> SystemTime {
    SystemTime::now()
}

/// The times of a run, in seconds from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    /// When the load begins.
    pub(super) idle_s: f64,
    /// How long it lasts.
    pub(super) load_s: f64,
}

impl Times {
    /// When what counts begins and ends.
    pub(super) fn window(self) -> (f64, f64) {
        (self.idle_s + SETTLING_S.min(self.load_s / 3.0), self.end_s())
    }

    pub(super) fn end_s(self) -> f64 {
        self.idle_s + self.load_s
    }

    pub(super) fn counted_s(self) -> f64 {
        let (begin, end) = self.window();
        end - begin
    }
}

/// The series of a run. All times are in seconds from its start.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) begun: SystemTime,
    pub(super) times: Times,
    /// Round trips.
    pub(super) ping: Probes,
    /// Packets of calls; none if the other end can have none.
    pub(super) calls: Vec<Probes>,
    pub(super) flows: Vec<Flow>,
    pub(super) short: Vec<Short>,
    /// What to know of it.
    pub(super) notes: Vec<String>,
}

/// Packets that are sent at regular times, and answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    /// How they are sent, for example `UDP`.
    pub(super) kind: &'static str,
    pub(super) payload: usize,
    /// When each was sent, by its number.
    pub(super) sent_s: Vec<f64>,
    /// The answers, in the order of their numbers.
    pub(super) answers: Vec<Answer>,
    /// How far the clock of the other end is ahead of ours, if it tells its time.
    pub(super) ahead_s: Option<f64>,
}

/// The answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) number: usize,
    /// When it came.
    pub(super) at_s: f64,
    /// When the probe came to the other end, by the clock there.
    pub(super) there_s: f64,
    /// How many probes had come there until then.
    pub(super) count: u32,
}

/// A direction, as the user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Down,
    Up,
}

/// What a long transfer carried.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) way: Way,
    /// How much had arrived by when: never less than before.
    pub(super) points: Vec<(f64, u64)>,
}

/// A short transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    pub(super) at_s: f64,
    pub(super) transfer: Transfer,
}

impl Probes {
    /// How long each answered probe was under way, of those sent within `window`, with when
    /// it was sent.
    pub(super) fn round_trips(&self, window: (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
        self.answered(window).map(|(sent_s, answer)| (sent_s, answer.at_s - sent_s))
    }

    fn answered(&self, window: (f64, f64)) -> impl Iterator<Item = (f64, &Answer)> {
        let sent = |answer: &Answer| self.sent_s.get(answer.number).copied();
        let with_time = self.answers.iter().filter_map(move |it| Some((sent(it)?, it)));
        with_time.filter(move |(sent_s, _)| (window.0..window.1).contains(sent_s))
    }

    /// How far the other clock is ahead: by the quickest of the answers to what was sent
    /// before `until_s`, both ways of which are taken to be the same. The quickest waited the
    /// least anywhere, so there is the least room for a difference between its two ways.
    pub(super) fn ahead(&self, until_s: f64) -> Option<f64> {
        let quickest = self
            .answered((0.0, until_s))
            .min_by(|one, other| (one.1.at_s - one.0).total_cmp(&(other.1.at_s - other.0)))?;
        let (sent_s, answer) = quickest;
        Some(answer.there_s - f64::midpoint(sent_s, answer.at_s))
    }

    /// Those within `window` as one stream of round trips.
    fn as_ping(&self, window: (f64, f64)) -> Stream {
        Stream {
            name: "ping".into(),
            ways: 2,
            sent: self.sent_within(window),
            delays_s: self.round_trips(window).map(|(_, it)| it).collect(),
            idle_s: None,
        }
    }

    /// Those within `window` as the two directions of a call: what is answered has come up,
    /// and its answer is the packet that goes down.
    fn as_call(&self, window: (f64, f64), ahead_s: f64) -> [Stream; 2] {
        let sent = self.sent_within(window);
        let answered: Vec<_> = self.answered(window).collect();
        let lost = sent.saturating_sub(answered.len() as u64);
        // Between the first and the last answer, the other end's count says what came there.
        let ends = answered.first().zip(answered.last());
        let lost_up = ends.map_or(lost, |((_, first), (_, last))| {
            let sent = last.number.saturating_sub(first.number) as u64;
            sent.saturating_sub(u64::from(last.count.wrapping_sub(first.count))).min(lost)
        });
        let up = answered.iter().map(|(sent_s, it)| it.there_s - ahead_s - sent_s);
        let down = answered.iter().map(|(_, it)| it.at_s + ahead_s - it.there_s);
        // What came there and was not answered here was lost on the way down, but its delay
        // on the way up is unknown; it is taken to be like the others'.
        let came = sent - lost_up;
        let stream = |name: &str, sent, delays: Vec<f64>| Stream {
            name: name.into(),
            ways: 1,
            sent,
            delays_s: delays,
            idle_s: None,
        };
        let mut up: Vec<f64> = up.collect();
        let missing = usize::try_from(came).unwrap_or(0).saturating_sub(up.len());
        if let Some(middle) = quantile(&sorted(&up), 0.5) {
            up.extend(std::iter::repeat_n(middle, missing));
        }
        [stream("call up", sent, up), stream("call down", came, down.collect())]
    }

    fn sent_within(&self, window: (f64, f64)) -> u64 {
        let within = self.sent_s.iter().filter(|it| (window.0..window.1).contains(*it));
        within.count() as u64
    }
}

impl Flow {
    /// The bytes that had arrived at a time, in between two points on a straight line.
    fn arrived(&self, at_s: f64) -> f64 {
        let next = self.points.partition_point(|(time, _)| *time <= at_s);
        let before = next.checked_sub(1).map_or((0.0, 0), |it| self.points[it]);
        let Some(after) = self.points.get(next) else { return before.1 as f64 };
        let part = (at_s - before.0) / (after.0 - before.0);
        before.1 as f64 + part * (after.1 - before.1) as f64
    }
}

impl Record {
    /// What counts of it.
    pub(super) fn reading(&self, round: u64) -> Reading {
        let window = self.times.window();
        let mut calls = self.calls.iter().map(|it| it.as_call(window, it.ahead_s.unwrap_or(0.0)));
        let mut streams = match calls.next() {
            Some(first) => calls.fold(first, together).into(),
            None => vec![self.ping.as_ping(window)],
        };
        let idle = self.ping.round_trips((0.0, self.times.idle_s)).map(|it| it.1);
        let idle_s = idle.min_by(f64::total_cmp);
        for stream in &mut streams {
            // Both ways of the idle link are taken to be the same, as the clocks are.
            stream.idle_s = idle_s.map(|it| it * f64::from(stream.ways) / 2.0);
        }
        let short = self.short.iter().filter(|it| it.at_s >= window.0).map(|it| it.transfer);
        Reading {
            round,
            streams,
            short: short.collect(),
            long_bps: [Way::Down, Way::Up].map(|way| self.rate(way)),
        }
    }

    /// The run over time, for a picture.
    pub(super) fn trace(&self) -> Trace {
        let (from_s, end_s) = (self.times.idle_s, self.times.end_s());
        let steps = ((end_s - from_s) / TRACE_STEP_S) as u32;
        let rates = [Way::Down, Way::Up].map(|way| {
            let flows: Vec<&Flow> = self.flows.iter().filter(|it| it.way == way).collect();
            let rate = |step: u32| {
                let begin_s = from_s + f64::from(step) * TRACE_STEP_S;
                let (at_s, end_s) = (begin_s + TRACE_STEP_S / 2.0, begin_s + TRACE_STEP_S);
                let bytes: f64 =
                    flows.iter().map(|it| it.arrived(end_s) - it.arrived(begin_s)).sum();
                (at_s, bytes * 8.0 / TRACE_STEP_S)
            };
            let all = if flows.is_empty() { 0 } else { steps };
            (0..all).map(rate).collect()
        });
        Trace { round_trips: self.ping.round_trips((0.0, end_s)).collect(), rates }
    }

    /// What the flows of a direction carried within the window, in bit/s.
    fn rate(&self, way: Way) -> Option<f64> {
        let (begin, end) = self.times.window();
        let mut flows = self.flows.iter().filter(|it| it.way == way).peekable();
        flows.peek()?;
        let bytes: f64 = flows.map(|it| it.arrived(end) - it.arrived(begin)).sum();
        Some(bytes * 8.0 / (end - begin))
    }

    /// The latency that a user would see of it.
    pub(super) fn latency(&self) -> Latency {
        let of = |window| sorted(&self.ping.round_trips(window).map(|it| it.1).collect::<Vec<_>>());
        let (idle, loaded) = (of((0.0, self.times.idle_s)), of(self.times.window()));
        Latency {
            idle_s: quantile(&idle, 0.5),
            median_s: quantile(&loaded, 0.5),
            p95_s: quantile(&loaded, 0.95),
            p99_s: quantile(&loaded, 0.99),
        }
    }
}

/// The packets of several calls, each way, as one: chance has less of a part in what more
/// packets tell.
fn together(mut one: [Stream; 2], other: [Stream; 2]) -> [Stream; 2] {
    for (one, other) in one.iter_mut().zip(other) {
        one.sent += other.sent;
        one.delays_s.extend(other.delays_s);
    }
    one
}

/// Round trips, idle and under load.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(super) struct Latency {
    pub(super) idle_s: Option<f64>,
    pub(super) median_s: Option<f64>,
    pub(super) p95_s: Option<f64>,
    pub(super) p99_s: Option<f64>,
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// Between the two nearest of sorted values.
fn quantile(sorted: &[f64], fraction: f64) -> Option<f64> {
    let place = fraction * (sorted.len().checked_sub(1)?) as f64;
    let (low, above) = (place as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    Some(sorted[low] + above * (sorted[high] - sorted[low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { idle_s: 1.0, load_s: 3.0 };

    /// Probes every 100 ms to a clock that is 1000 s ahead, of which these are lost on the
    /// way there and on the way back. They take 10 ms up and 30 ms down, idle 10 ms and 10 ms.
    fn probes(lost_up: &[usize], lost_down: &[usize]) -> Probes {
        let sent_s: Vec<f64> = (0..40).map(|it| f64::from(it) * 0.1).collect();
        let mut answers = Vec::new();
        let came = sent_s.iter().enumerate().filter(|(it, _)| !lost_up.contains(it));
        for (count, (number, sent)) in (1..).zip(came) {
            if !lost_down.contains(&number) {
                let back = if *sent < 1.0 { 0.01 } else { 0.03 };
                let there_s = sent + 0.01 + 1000.0;
                answers.push(Answer { number, at_s: sent + 0.01 + back, there_s, count });
            }
        }
        let probes = Probes { kind: "UDP", payload: 172, sent_s, answers, ahead_s: None };
        Probes { ahead_s: probes.ahead(1.0), ..probes }
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-6
    }

    #[test]
    fn the_first_third_of_the_load_does_not_count() {
        assert_eq!(TIMES.window(), (2.0, 4.0));
        let long = Times { idle_s: 2.0, load_s: 90.0 };
        assert_eq!((long.window(), long.counted_s()), ((22.0, 92.0), 70.0));
    }

    #[test]
    fn a_call_is_told_by_direction_over_clocks_that_differ() {
        let probes = probes(&[25, 26], &[30]);
        let ahead_s = probes.ahead_s.unwrap();
        assert!(close(ahead_s, 1000.0), "{ahead_s}");
        let [up, down] = probes.as_call(TIMES.window(), ahead_s);
        assert_eq!((up.sent, up.delays_s.len()), (20, 18));
        assert_eq!((down.sent, down.delays_s.len()), (18, 17));
        assert!(up.delays_s.iter().all(|it| close(*it, 0.01)), "{up:?}");
        assert!(down.delays_s.iter().all(|it| close(*it, 0.03)), "{down:?}");
        assert!(close(up.loss().unwrap(), 0.1));
    }

    #[test]
    fn what_is_lost_without_an_answer_behind_it_is_known_to_be_lost_at_all() {
        let all: Vec<usize> = (0..40).collect();
        let [up, down] = probes(&all, &[]).as_call(TIMES.window(), 0.0);
        assert_eq!((up.loss(), down.sent), (Some(1.0), 0));
    }

    #[test]
    fn a_rate_is_what_arrived_within_the_window() {
        let flow = |way, per_s: u64| Flow {
            way,
            points: (1..=40)
                .map(|it| (f64::from(it) * 0.1, u64::from(it as u32) * per_s / 10))
                .collect(),
        };
        let record = Record {
            begun: SystemTime::UNIX_EPOCH,
            times: TIMES,
            ping: probes(&[], &[]),
            calls: Vec::new(),
            flows: vec![flow(Way::Down, 1_000_000), flow(Way::Down, 500_000)],
            short: Vec::new(),
            notes: Vec::new(),
        };
        let reading = record.reading(1);
        assert!(close(reading.long_bps[0].unwrap() / 12e6, 1.0), "{reading:?}");
        assert_eq!(reading.long_bps[1], None);
        assert_eq!((reading.streams.len(), reading.streams[0].ways), (1, 2));
        let latency = record.latency();
        assert!(close(latency.idle_s.unwrap(), 0.02) && close(latency.p99_s.unwrap(), 0.04));
    }
}
