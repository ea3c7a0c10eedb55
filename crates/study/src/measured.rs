//! What a result of Flent says of a link, in the figures of a comparison.
//!
//! A test of Flent leaves the link idle, loads it, and leaves it idle again. *Idle* is the
//! time before the first TCP flow; the time behind the last one is left out, because
//! queues are still emptying. *Under load* is the load without its first third, but at
//! most without 20 s: slow start and its consequences do not belong to the queue that
//! stands there afterwards. A test without TCP flows has one time, which is not under load.
//!
//! Throughput is weighted by the time that each sample covers. Delays are those of
//! packets, one sample each. A ping that stops answering before nine tenths of the load are over has not
//! measured it, and is not set beside anything: `netperf` does that with its first lost
//! packet.

use tidegate_core::{Bytes, Rate, Span};
use tidegate_sim::scenario::{Observation, Observed, Spread};
use tidegate_sim::trace::{Direction, Flent, FlentKind, FlentSample, FlentSeries};

use crate::comparison::beside::rating;

/// The most of the load that does not count.
const SETTLING_S: f64 = 20.0;
/// Of more flows each way only the sum is shown.
const MOST_FLOWS: usize = 16;
/// A series that covers less of the load has not measured it.
const COMPLETE: f64 = 0.9;
/// No link is faster.
const MOST_RATE: Rate = Rate(1_000_000_000_000);
/// No queue drops more packets in a second.
const MOST_DROPS: f64 = 1e12;
/// A one-way delay of more than this, or of less than nothing, comes from clocks that differ.
const SAME_CLOCK_S: f64 = 0.5;

/// What was measured, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Seconds from the start of the measurement to the first and the last byte of TCP;
    /// `None` if there was no load.
    pub load: Option<(f64, f64)>,
    /// What figures are of: the settled load, or everything where there was none.
    pub settled: (f64, f64),
    /// The figures, without what corresponds to them in a scenario.
    pub observations: Vec<Observation>,
    /// The place of the ping that is the round trip of the link.
    pub ping: Option<usize>,
    /// The place of the call.
    pub call: Option<usize>,
    /// The places of the sums of throughput, down and up.
    pub throughput: [Option<usize>; 2],
    /// The places of the counters of queues, down and up.
    pub queues: [Option<usize>; 2],
    /// What is not what it seems.
    pub notes: Vec<String>,
}

impl Measurement {
    /// The figures of `run`.
    ///
    /// ```
    /// use tidegate_sim::trace::Flent;
    /// use tidegate_study::measured::Measurement;
    ///
    /// let text = br#"{"version": 4, "metadata": {"NAME": "ping"}, "x_values": [0, 1, 2],
    ///     "results": {"Ping (ms) ICMP": [20, 21, 22]}}"#;
    /// let measured = Measurement::of(&Flent::parse("ping.flent", text)?);
    /// assert_eq!((measured.load, measured.observations.len()), (None, 1));
    /// # Ok::<(), tidegate_sim::trace::ReadError>(())
    /// ```
    #[must_use]
    pub fn of(run: &Flent) -> Measurement {
        let load = load(run);
        let ends = run.series.iter().filter_map(|series| series.samples.last());
        let end = ends.map(|sample| sample.at_s).max_by(f64::total_cmp).unwrap_or(0.0);
        let settled = load.map_or((0.0, end + 1.0), |(begin, end)| {
            (begin + SETTLING_S.min((end - begin) / 3.0), end)
        });
        let mut found = Measurement {
            load,
            settled,
            observations: Vec::new(),
            ping: None,
            call: None,
            throughput: [None; 2],
            queues: [None; 2],
            notes: Vec::new(),
        };
        for series in run.of(FlentKind::Ping) {
            found.delays(series, 2);
        }
        for series in run.of(FlentKind::CallDelay) {
            found.delays(series, 1);
        }
        for kind in [FlentKind::Jitter, FlentKind::PageLatency] {
            for series in run.of(kind) {
                found.delays(series, 0);
            }
        }
        for direction in [Direction::Down, Direction::Up] {
            found.flows(run, direction);
        }
        found.queues(run);
        found
    }

    /// The idle time before the load, if there is any.
    fn idle(&self) -> Option<(f64, f64)> {
        self.load.map(|(begin, _)| (0.0, begin))
    }

    /// The delay without load of the ping or, without one, twice that of the call.
    #[must_use]
    pub fn round_trip(&self) -> Option<Span> {
        let idle = |place: Option<usize>| match &self.observations[place?].what {
            Observed::Delay { idle, spread, .. } => (*idle).or(spread.p5),
            _ => None,
        };
        let call = || idle(self.call).map(|it| Span(it.0 * 2)).filter(|it| *it > Span::ZERO);
        idle(self.ping).or_else(call)
    }

    /// What load adds to a delay at most: the 95th percentile less the delay without load,
    /// of the ping or else of the call.
    #[must_use]
    pub fn added(&self) -> Option<Span> {
        match &self.observations[self.ping.or(self.call)?].what {
            Observed::Delay { idle, spread, .. } => {
                Some(Span(spread.p95?.0.saturating_sub((*idle)?.0)))
            }
            _ => None,
        }
    }

    fn add(&mut self, name: &str, what: Observed) -> usize {
        self.observations.push(Observation { name: name.into(), what });
        self.observations.len() - 1
    }

    /// The figures of delays, of `ways` one-way delays each; 0 for other times.
    fn delays(&mut self, series: &FlentSeries, ways: u32) {
        let is_call = series.kind == FlentKind::CallDelay;
        let mut samples: Vec<FlentSample> = series.samples.clone();
        samples.iter_mut().for_each(|sample| sample.value /= 1e3);
        let least = samples.iter().map(|sample| sample.value).min_by(f64::total_cmp);
        let least = least.unwrap_or(0.0);
        let shifted = is_call && !(0.0..SAME_CLOCK_S).contains(&least);
        if shifted {
            samples.iter_mut().for_each(|sample| sample.value -= least);
            self.notes.push(format!(
                "The clocks of the two machines differ: the least delay of '{}' is {:.0} ms. Its \
                 delays are counted from there.",
                series.name,
                least * 1e3
            ));
        }
        let within = |window: (f64, f64)| -> Vec<&FlentSample> {
            let inside = |sample: &&FlentSample| (window.0..window.1).contains(&sample.at_s);
            samples.iter().filter(inside).collect()
        };
        let loaded = within(self.settled);
        let values = sorted(&loaded);
        let idle = self.idle().map(within).map(|samples| sorted(&samples));
        let idle = idle.and_then(|values| quantile(&values, 0.5)).map(Span::from_seconds);
        let loss = lost(&loaded);
        let mean = mean(&values).map(Span::from_seconds);
        let at = |fraction| quantile(&values, fraction).map(Span::from_seconds);
        let spread = Spread { mean, p5: at(0.05), median: at(0.5), p95: at(0.95) };
        let worth = loss.filter(|_| ways > 0 && !shifted).and_then(|loss| {
            let count = values.len() as f64;
            let points = (1_u32..).zip(&values).map(|(n, value)| (*value, f64::from(n) / count));
            rating(points.collect(), loss, ways)
        });
        let of = Vec::new();
        let what = Observed::Delay { ways, of, idle, spread, loss, rating: worth };
        let place = self.add(&series.name, what);
        let (begin, end) = self.settled;
        let last = loaded.last().map_or(begin, |sample| sample.at_s);
        if self.load.is_some() && last - begin < COMPLETE * (end - begin) {
            let name = &series.name;
            self.notes
                .push(format!("'{name}' stops answering under load, and is set beside nothing."));
            return;
        }
        match series.kind {
            FlentKind::Ping => self.ping = self.ping.or(Some(place)),
            FlentKind::CallDelay => self.call = self.call.or(Some(place)),
            _ => {}
        }
    }

    /// The throughput of the flows of a direction, each and together.
    fn flows(&mut self, run: &Flent, direction: Direction) {
        let flows: Vec<_> = run.of(FlentKind::Throughput(direction)).collect();
        if flows.is_empty() {
            return;
        }
        if flows.len() <= MOST_FLOWS && flows.len() > 1 {
            for flow in &flows {
                let spread = rates(&[flow], self.settled);
                self.add(&flow.name, Observed::Throughput { of: Vec::new(), spread });
            }
        }
        let name = match (direction, flows.len()) {
            (_, 1) => flows[0].name.clone(),
            (Direction::Down, count) => format!("all {count} downloads"),
            (Direction::Up, count) => format!("all {count} uploads"),
        };
        let spread = rates(&flows, self.settled);
        let place = self.add(&name, Observed::Throughput { of: Vec::new(), spread });
        self.throughput[usize::from(direction == Direction::Up)] = Some(place);
    }

    /// What the shaped queues counted: over time where that was recorded, otherwise before
    /// and after.
    fn queues(&mut self, run: &Flent) {
        let Some((begin, end)) = self.load else { return };
        let seconds = self.settled.1 - self.settled.0;
        for direction in [Direction::Down, Direction::Up] {
            let Some(queue) = run.queues.iter().find(|queue| queue.direction == direction) else {
                continue;
            };
            let inside = |kind| {
                let prefix = format!("{}, ", queue.host);
                let series = run.of(kind).find(|series| series.name.starts_with(&prefix))?;
                let inside =
                    |it: &&FlentSample| (self.settled.0..self.settled.1).contains(&it.at_s);
                Some(series.samples.iter().filter(inside).map(|it| it.value).collect::<Vec<_>>())
            };
            let counted = |kind, total: Option<u64>| {
                let over_time = inside(kind).map(|values| values.iter().sum::<f64>() / seconds);
                let before_and_after = total.map(|total| total as f64 / (end - begin));
                over_time.or(before_and_after).filter(|rate| (0.0..MOST_DROPS).contains(rate))
            };
            let backlog = inside(FlentKind::Backlog).and_then(|values| mean(&values));
            let what = Observed::Queue {
                of: None,
                dropped_per_second: counted(FlentKind::Dropped, queue.dropped),
                marked_per_second: counted(FlentKind::Marked, queue.marked),
                backlog: backlog.map(|bytes| Bytes(bytes as u64)),
            };
            let way = if direction == Direction::Down { "down" } else { "up" };
            let name = if queue.host.is_empty() {
                format!("queue {way}, {}", queue.name)
            } else {
                format!("queue {way}, {} at {}", queue.name, queue.host)
            };
            let place = self.add(&name, what);
            self.queues[usize::from(direction == Direction::Up)] = Some(place);
        }
    }
}

/// From the start of the first TCP flow to the end of the last, but no longer than was asked
/// for, in seconds.
fn load(run: &Flent) -> Option<(f64, f64)> {
    let flows =
        || run.series.iter().filter(|series| matches!(series.kind, FlentKind::Throughput(_)));
    let begins = flows().filter_map(|flow| flow.samples.first()).map(|it| it.at_s - it.covers_s);
    let ends = flows().filter_map(|flow| flow.samples.last()).map(|it| it.at_s);
    let begin = begins.min_by(f64::total_cmp)?;
    let last = ends.max_by(f64::total_cmp)?;
    // A tool that begins late, as one of many does, also ends late.
    let end = run.length_s.map_or(last, |length| last.min(begin + length));
    (begin < end).then_some((begin, end))
}

/// When each flow of a direction begins, in seconds after the load.
#[must_use]
pub fn starts(run: &Flent, direction: Direction) -> Vec<f64> {
    let Some((begin, _)) = load(run) else { return Vec::new() };
    let flows = run.of(FlentKind::Throughput(direction));
    let first = flows.filter_map(|flow| flow.samples.first());
    first.map(|it| (it.at_s - it.covers_s - begin).max(0.0)).collect()
}

/// The throughput of `flows` together within `window`.
fn rates(flows: &[&FlentSeries], window: (f64, f64)) -> Spread<Rate> {
    let rate = |mbps: f64| Rate(((mbps * 1e6) as u64).clamp(1, MOST_RATE.0));
    // Samples of several flows are not of the same moments, so each second is summed up.
    let seconds = (window.1 - window.0).floor().clamp(0.0, 1e6) as usize;
    let mut by_second = vec![0.0; seconds];
    let mut total = 0.0;
    for flow in flows {
        let (mut volume, mut covered) = (0.0, 0.0);
        for sample in &flow.samples {
            let begin = (sample.at_s - sample.covers_s).max(window.0);
            let end = sample.at_s.min(window.1);
            if end <= begin {
                continue;
            }
            volume += sample.value * (end - begin);
            covered += end - begin;
            let (first, last) = (begin - window.0, end - window.0);
            let touched = by_second.iter_mut().enumerate().take(last.ceil() as usize);
            for (second, sum) in touched.skip(first as usize) {
                let from = first.max(second as f64);
                let to = last.min((second + 1) as f64);
                *sum += sample.value * (to - from).max(0.0);
            }
        }
        // Samples rarely begin and end with the window. What is missing beyond that did not flow.
        let whole = window.1 - window.0;
        total += volume / if covered > COMPLETE * whole { covered } else { whole };
    }
    by_second.sort_by(f64::total_cmp);
    let at = |fraction| quantile(&by_second, fraction).map(rate);
    Spread { mean: Some(rate(total)), p5: at(0.05), median: at(0.5), p95: at(0.95) }
}

/// The part of the packets that are missing between the first and the last; `None` if
/// they are not numbered.
fn lost(samples: &[&FlentSample]) -> Option<f64> {
    let numbers: Option<Vec<u64>> = samples.iter().map(|sample| sample.number).collect();
    let mut numbers = numbers.filter(|numbers| numbers.len() > 1)?;
    numbers.sort_unstable();
    let sent = numbers.last()? - numbers.first()? + 1;
    numbers.dedup();
    Some((sent - numbers.len() as u64) as f64 / sent as f64)
}

fn sorted(samples: &[&FlentSample]) -> Vec<f64> {
    let mut values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Between the two nearest of the sorted values.
fn quantile(sorted: &[f64], fraction: f64) -> Option<f64> {
    let place = fraction * (sorted.len().checked_sub(1)?) as f64;
    let (low, above) = (place as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    Some(sorted[low] + above * (sorted[high] - sorted[low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result with these raw values: a ping and an upload, in seconds, ms and Mbit/s.
    fn run(pings: &[(f64, f64, u64)], upload: &[(f64, f64, f64)]) -> Flent {
        let pings: Vec<String> = pings
            .iter()
            .map(|(t, val, seq)| format!("{{\"t\":{t},\"val\":{val},\"seq\":{seq}}}"))
            .collect();
        let upload: Vec<String> = upload
            .iter()
            .map(|(t, dur, val)| format!("{{\"t\":{t},\"dur\":{dur},\"val\":{val}}}"))
            .collect();
        let text = format!(
            "{{\"version\":4,\"metadata\":{{\"NAME\":\"tcp_1up\"}},\"results\":{{}},\
             \"raw_values\":{{\"Ping (ms) ICMP\":[{}],\"TCP upload\":[{}]}}}}",
            pings.join(","),
            upload.join(",")
        );
        Flent::parse("run", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Pings of 20 ms until the load begins at 5 s, and then of 70 ms, once a second.
    fn pings(until: u64) -> Vec<(f64, f64, u64)> {
        (0..until).map(|n| (n as f64, if n < 5 { 20.0 } else { 70.0 }, n)).collect()
    }

    fn uploads() -> Vec<(f64, f64, f64)> {
        (6..=35).map(|n| (f64::from(n), 1.0, if n < 16 { 1.0 } else { 4.0 })).collect()
    }

    #[test]
    fn figures_are_of_the_settled_load() {
        let mut pings = pings(40);
        // Two answers are missing under load.
        pings.retain(|(_, _, n)| *n != 20 && *n != 30);
        let measured = Measurement::of(&run(&pings, &uploads()));
        assert_eq!(measured.load, Some((5.0, 35.0)));
        assert_eq!(measured.settled, (15.0, 35.0));
        let Observed::Delay { ways: 2, idle, spread, loss, .. } = &measured.observations[0].what
        else {
            panic!("{measured:?}")
        };
        assert_eq!((*idle, spread.median), (Some(Span::millis(20)), Some(Span::millis(70))));
        assert_eq!(*loss, Some(0.1));
        assert_eq!(measured.round_trip(), Some(Span::millis(20)));
        assert_eq!(measured.added(), Some(Span::millis(50)));
        let Observed::Throughput { spread, .. } = &measured.observations[1].what else {
            panic!("{measured:?}")
        };
        assert_eq!(spread.mean, Some(Rate(4_000_000)));
        assert_eq!((measured.throughput, measured.call), ([None, Some(1)], None));
    }

    #[test]
    fn a_ping_that_stops_under_load_is_set_beside_nothing() {
        let measured = Measurement::of(&run(&pings(20), &uploads()));
        assert_eq!((measured.ping, measured.round_trip()), (None, None));
        assert!(measured.notes[0].contains("stops answering"), "{:?}", measured.notes);
    }

    #[test]
    fn clocks_that_differ_shift_the_delays_of_a_call() {
        let text = br#"{"version": 4, "metadata": {"NAME": "voip"}, "results": {}, "raw_values":
            {"VoIP": [{"t": 0, "val": -5, "seq": 1}, {"t": 1, "val": 15, "seq": 2}]}}"#;
        let run = Flent::parse("run", text).unwrap_or_else(|error| panic!("{error}"));
        let measured = Measurement::of(&run);
        let Observed::Delay { spread, rating, .. } = &measured.observations[0].what else {
            panic!("{measured:?}")
        };
        assert_eq!((spread.mean, *rating), (Some(Span::millis(10)), None));
        assert!(measured.notes[0].contains("clocks"), "{:?}", measured.notes);
    }

    #[test]
    fn quantiles_are_between_the_two_nearest_values() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), Some(3.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
