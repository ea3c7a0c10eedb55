//! What rounds of a live measurement say together, in the figures of a comparison.
//!
//! A round measures each queue once, one after the other, on the same link and at nearly
//! the same time: what changes over hours falls out of a difference within a round, as
//! the traffic of a seed does in simulated comparisons. So a round stands in the place of
//! a seed, a queue in that of a discipline, and [`Verdict::of_rounds`] decides by the same
//! needs and intervals as it does there.
//!
//! Two things differ from a simulation. A delay comes from real clocks: its smallest value,
//! idle or under any queue, is taken for that of the empty link. And a short transfer that has not
//! finished when a round ends has no response time; it counts with the time for which it
//! was waited for, since leaving it out would favour the queue that starved it.
//!
//! [`Verdict::of_rounds`]: crate::verdict::Verdict::of_rounds

use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tidegate_sim::metrics::run_summary::Times;

use crate::comparison::beside::rating;
use crate::comparison::{
    ClassResult, Comparison, DelayResult, DisciplineResult, DistributionPoint, LinkResult,
    TrafficResult, distribution,
};
use crate::{Centre, Sample};

/// What one queue did in one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The number of the round, from 1.
    pub round: u64,
    /// Delays of datagrams, the same ones in each reading.
    pub streams: Vec<Stream>,
    /// The short transfers that began.
    pub short: Vec<Transfer>,
    /// Payload of the long transfers, in bit/s, towards the client and from it; `None` of a
    /// direction that was not loaded.
    pub long_bps: [Option<f64>; 2],
}

/// The delays of a stream of datagrams under load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// What it is, for example `call up`.
    pub name: String,
    /// How many ways each packet went: 2 of a round trip, of which half is one way.
    pub ways: u32,
    /// Packets that were sent.
    pub sent: u64,
    /// Time of each that arrived, over all its ways.
    pub delays_s: Vec<f64>,
    /// The least such time on the idle link, if that is known: a queue that never empties
    /// under load does not show it.
    #[serde(default)]
    pub idle_s: Option<f64>,
}

/// A short transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Its payload.
    pub bytes: u64,
    /// From the first packet of its connection to its last byte, or to the end of the wait.
    pub response_s: f64,
    /// Whether all of it came.
    pub complete: bool,
}

impl Stream {
    /// The part that never arrived; `None` of a stream that never began.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let lost = self.sent.saturating_sub(self.delays_s.len() as u64);
        (self.sent > 0).then(|| lost as f64 / self.sent as f64)
    }

    /// Its one-way delays. A round trip is taken to be the same both ways.
    fn times(&self) -> Times {
        let mut times = Times::default();
        let ways = f64::from(self.ways.max(1));
        self.delays_s.iter().for_each(|it| times.record(Span::from_seconds(it.max(0.0) / ways)));
        times
    }

    /// What it would be worth as a call, R of 100.
    fn rating(&self) -> Option<f64> {
        let loss = self.loss()?;
        let mut delays: Vec<f64> = self.delays_s.iter().map(|it| it.max(0.0)).collect();
        delays.sort_by(f64::total_cmp);
        let count = delays.len() as f64;
        let points = (1_u32..).zip(&delays).map(|(n, delay)| (*delay, f64::from(n) / count));
        // Nothing arrives: as bad as it can be, not unknown.
        rating(points.collect(), loss, self.ways.max(1)).or(Some(0.0))
    }
}

/// What was measured, in words.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// A heading.
    pub title: String,
    /// Seconds of load in each reading that count.
    pub seconds: f64,
    /// The rates that the queues were given, towards the client and from it.
    pub rates_bps: [Option<f64>; 2],
    /// Short transfers are this large at most.
    pub short_bytes: u64,
    /// Rounds that were asked for.
    pub rounds: u64,
}

/// The readings of queues, each with its label, as a comparison. The first queue is what
/// there is now.
///
/// ```
/// use tidegate_study::rounds::{Facts, Reading, Stream, comparison};
/// use tidegate_study::verdict::{Answer, Verdict};
///
/// // A queue in which packets wait for 300 ms, and one in which they wait for 20 ms.
/// let reading = |round: u64, delay_s: f64| {
///     let delays_s = (1..=100).map(|it| 0.01 + delay_s + f64::from(it) * 1e-5).collect();
///     let call = Stream { name: "call".into(), ways: 1, sent: 100, delays_s, idle_s: None };
///     Reading { round, streams: vec![call], ..Reading::default() }
/// };
/// let of = |delay_s| (1..=4).map(|round| reading(round, delay_s + 0.001 * round as f64)).collect();
/// let queues = [("deep".into(), of(0.3)), ("shallow".into(), of(0.02))];
/// let verdict = Verdict::of_rounds(&comparison(&Facts::default(), &queues));
/// assert_eq!((verdict.answer, &verdict.run[..]), (Answer::Run, &["shallow".to_string()][..]));
/// ```
#[must_use]
pub fn comparison(facts: &Facts, queues: &[(String, Vec<Reading>)]) -> Comparison {
    let disciplines: Vec<_> = queues
        .iter()
        .filter(|(_, readings)| !readings.is_empty())
        .map(|(label, readings)| discipline(facts, label, readings))
        .collect();
    let mut rounds: Vec<u64> =
        queues.iter().flat_map(|(_, readings)| readings.iter().map(|it| it.round)).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let complete =
        |it: &(String, Vec<Reading>)| u64::try_from(it.1.len()).is_ok_and(|n| n >= facts.rounds);
    Comparison {
        title: facts.title.clone(),
        description: String::new(),
        duration_s: facts.seconds,
        warm_up_s: 0.0,
        seeds: rounds,
        partial: !queues.iter().all(complete),
        waited: 0,
        short_flow_bytes: facts.short_bytes,
        long_flow_bytes: 0,
        disciplines,
        beside: Vec::new(),
        parts: Vec::new(),
    }
}

fn discipline(facts: &Facts, label: &str, readings: &[Reading]) -> DisciplineResult {
    let short = class(facts, readings);
    let names = readings[0].streams.iter().map(|it| it.name.clone());
    let mut traffic: Vec<_> =
        names.enumerate().map(|(index, name)| datagrams(name, index, readings)).collect();
    for (way, name) in ["download", "upload"].into_iter().enumerate() {
        if readings.iter().any(|it| it.long_bps[way].is_some()) {
            traffic.push(transfers(name, way, readings));
        }
    }
    DisciplineResult {
        label: label.into(),
        name: label.into(),
        runs: readings.len(),
        classes: Vec::new(),
        all: short.clone(),
        short,
        response_by_size: Vec::new(),
        short_distribution: short_distribution(readings),
        traffic,
        ratios: Vec::new(),
        links: ["down", "up"]
            .into_iter()
            .enumerate()
            .filter_map(|(way, name)| link(name, facts.rates_bps[way]?, way, readings))
            .collect(),
    }
}

/// The value of each reading, by its round.
fn sample(
    centre: Centre,
    readings: &[Reading],
    value: impl Fn(&Reading) -> Option<f64>,
) -> Option<Sample> {
    Sample::of(centre, readings.iter().map(|reading| (reading.round, value(reading))))
}

/// The times of all short transfers.
fn short_distribution(readings: &[Reading]) -> Vec<DistributionPoint> {
    let mut pooled = Times::default();
    readings.iter().for_each(|it| pooled.merge(&response_times(it)));
    distribution(&pooled)
}

fn response_times(reading: &Reading) -> Times {
    let mut times = Times::default();
    reading.short.iter().for_each(|it| times.record(Span::from_seconds(it.response_s)));
    times
}

fn class(facts: &Facts, readings: &[Reading]) -> ClassResult {
    let times = response_times;
    let all = || readings.iter().flat_map(|it| &it.short);
    ClassResult {
        label: format!("short, up to {}", tidegate_core::Bytes(facts.short_bytes)),
        up_to_bytes: Some(facts.short_bytes),
        started: all().count() as u64,
        completed: all().filter(|it| it.complete).count() as u64,
        with_loss: 0,
        mean_s: sample(Centre::Mean, readings, |it| times(it).mean()),
        median_s: sample(Centre::Median, readings, |it| times(it).quantile(0.5)),
        p95_s: sample(Centre::Median, readings, |it| times(it).quantile(0.95)),
        slowdown: None,
    }
}

fn datagrams(name: String, index: usize, readings: &[Reading]) -> TrafficResult {
    let times =
        |reading: &Reading| reading.streams.get(index).map_or_else(Times::default, Stream::times);
    let mut pooled = Times::default();
    readings.iter().for_each(|it| pooled.merge(&times(it)));
    let quantile =
        |fraction| sample(Centre::Median, readings, |it: &Reading| times(it).quantile(fraction));
    TrafficResult {
        datagrams: true,
        loss_ratio: sample(Centre::Mean, readings, |it| it.streams.get(index)?.loss()),
        call_rating: sample(Centre::Mean, readings, |it| it.streams.get(index)?.rating()),
        arrived: pooled.count(),
        delay: DelayResult {
            mean_s: sample(Centre::Mean, readings, |it| times(it).mean()),
            median_s: quantile(0.5),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
            max_s: sample(Centre::Median, readings, |it| times(it).largest()),
        },
        delay_distribution: from_idle(distribution(&pooled), index, readings),
        ..silent(name)
    }
}

/// A distribution of one-way delays, from the least of the idle link on.
fn from_idle(
    mut points: Vec<DistributionPoint>,
    index: usize,
    readings: &[Reading],
) -> Vec<DistributionPoint> {
    let idle = readings.iter().filter_map(|it| {
        let stream = it.streams.get(index)?;
        stream.idle_s.map(|idle_s| idle_s / f64::from(stream.ways.max(1)))
    });
    let least = idle.min_by(f64::total_cmp);
    if let Some(at_s) = least.filter(|it| points.first().is_some_and(|first| *it < first.at_s)) {
        points.insert(0, DistributionPoint { at_s, fraction: 0.0 });
    }
    points
}

fn transfers(name: &str, way: usize, readings: &[Reading]) -> TrafficResult {
    let rate = sample(Centre::Mean, readings, |it| it.long_bps[way]);
    TrafficResult { throughput_bps: rate.clone(), long_goodput_bps: rate, ..silent(name.into()) }
}

/// A source of which nothing is known.
fn silent(name: String) -> TrafficResult {
    TrafficResult {
        name,
        datagrams: false,
        replayed: false,
        started: 0,
        completed: 0,
        throughput_bps: None,
        fairness: None,
        long_goodput_bps: None,
        longest_stall_s: None,
        loss_ratio: None,
        deadline_s: None,
        late_ratio: None,
        call_rating: None,
        recorded_call: None,
        pages: None,
        adapts: false,
        video: None,
        lookups: None,
        arrived: 0,
        delay: DelayResult::default(),
        delay_distribution: Vec::new(),
        progress: Vec::new(),
    }
}

/// How much of the rate of a direction its long transfers use, with their headers.
fn link(name: &str, rate_bps: f64, way: usize, readings: &[Reading]) -> Option<LinkResult> {
    /// A full packet of Ethernet with what of it is payload: 1448 of 1514 bytes.
    const WITH_HEADERS: f64 = 1_514.0 / 1_448.0;
    let utilisation = sample(Centre::Mean, readings, |it| {
        Some((it.long_bps[way]? * WITH_HEADERS / rate_bps).min(1.0))
    })?;
    let utilisation = Some(utilisation);
    Some(LinkResult { name: name.into(), tested: true, utilisation, ..LinkResult::default() })
}

#[cfg(test)]
mod tests {
    use tidegate_core::random::Stream;

    use super::{Facts, Reading, Transfer, class, comparison};
    use crate::verdict::{Answer, Effect, Need, Verdict};

    const CALL: super::Stream =
        super::Stream { name: String::new(), ways: 1, sent: 0, delays_s: Vec::new(), idle_s: None };

    /// A reading with these delays in ms and response times in s.
    fn reading(round: u64, delay_ms: f64, response_s: f64, rates_bps: f64) -> Reading {
        let delays_s = (0..200).map(|it| (delay_ms + 10.0 + f64::from(it % 7) * 0.1) / 1e3);
        let stream =
            super::Stream { name: "call".into(), sent: 200, delays_s: delays_s.collect(), ..CALL };
        let transfer = |complete| Transfer { bytes: 10_000, response_s, complete };
        Reading {
            round,
            streams: vec![stream],
            short: vec![transfer(true), transfer(false)],
            long_bps: [Some(rates_bps), None],
        }
    }

    fn facts() -> Facts {
        Facts { rounds: 4, short_bytes: 100_000, ..Facts::default() }
    }

    #[test]
    fn a_queue_that_is_longer_is_told_by_its_size() {
        let of = |delay: f64, response: f64| -> Vec<Reading> {
            let more = |round| if round % 2 == 0 { 1.02 } else { 0.98 };
            (1..=4).map(|it| reading(it, delay * more(it), response * more(it), 9e6)).collect()
        };
        let queues = [("deep".into(), of(300.0, 1.0)), ("short".into(), of(20.0, 0.1))];
        let comparison = comparison(&facts(), &queues);
        assert!(!comparison.partial && comparison.seeds == [1, 2, 3, 4]);
        let verdict = Verdict::of_rounds(&comparison);
        assert_eq!((verdict.answer, &verdict.run[..]), (Answer::Run, &["short".to_owned()][..]));
        let told = |need| verdict.changes.iter().find(|it| it.need == need).unwrap();
        let delay = told(Need::Reaction);
        assert_eq!(delay.effect, Effect::Gain);
        assert!((delay.was - delay.least - 0.28).abs() < 0.001, "{delay:?}");
        assert_eq!(told(Need::LongTransfers).effect, Effect::Same);
        let added = verdict.latency[0].added_s.unwrap();
        assert!((added - 0.2803).abs() < 0.001, "above the least of any queue: {added}");
    }

    /// Two queues that differ in nothing but chance, with about what chance does to runs of
    /// eight seconds behind a FIFO of 150 ms that TCP fills: a tenth of the delay, a third of the
    /// loss, a fifth of the response time, a few hundredths of the rates.
    #[test]
    fn two_queues_that_are_alike_are_rarely_told_apart() {
        const MEASUREMENTS: u64 = 100;
        let readings = |random: &mut Stream, rounds: u64| -> Vec<Reading> {
            let reading = |round| {
                let mut about = |value: f64, part: f64| value * (1.0 + part * random.normal());
                let (delay_s, lost) = (about(0.13, 0.1), about(8.0, 0.35).clamp(0.0, 100.0));
                let arrived = 400 - lost as usize;
                let stream = super::Stream {
                    name: "call".into(),
                    sent: 400,
                    delays_s: vec![delay_s; arrived],
                    ..CALL
                };
                let transfer =
                    Transfer { bytes: 10_000, response_s: about(0.5, 0.2), complete: true };
                Reading {
                    round,
                    streams: vec![stream],
                    short: vec![transfer],
                    long_bps: [Some(about(16e6, 0.03)), Some(about(8e6, 0.05))],
                }
            };
            (1..=rounds).map(reading).collect()
        };
        let mut random = Stream::new(1, "alike");
        let mut answers = std::collections::BTreeMap::new();
        for _ in 0..MEASUREMENTS {
            let all = ["a", "b"].map(|it| (it.to_owned(), readings(&mut random, 18)));
            let mut answer = Answer::Unclear;
            // As many rounds as were asked for, and up to three times as many.
            for rounds in [6, 12, 18] {
                let cut =
                    |(label, it): &(String, Vec<Reading>)| (label.clone(), it[..rounds].to_vec());
                let comparison = comparison(&facts(), &all.each_ref().map(cut));
                let verdict = Verdict::of_rounds(&comparison);
                answer = verdict.answer;
                if verdict.is_settled(&comparison) {
                    break;
                }
            }
            *answers.entry(format!("{answer:?}")).or_insert(0) += 1;
        }
        let of = |answer: &str| answers.get(answer).copied().unwrap_or(0);
        // Of 400 it was 15, and 383 were alike; at the first look alone 26 and 288.
        assert!(of("Run") <= 7 && of("Alike") >= 92, "{answers:?}");
    }

    #[test]
    fn what_has_not_finished_counts_with_its_wait() {
        let result = class(&facts(), &[reading(1, 0.0, 2.0, 1.0)]);
        assert_eq!((result.started, result.completed), (2, 1));
        assert_eq!(result.mean_s.unwrap().estimate().value, 2.0);
    }

    #[test]
    fn a_round_that_is_missing_makes_it_partial_and_nothing_else() {
        let of = |rounds: &[u64]| -> Vec<Reading> {
            rounds.iter().map(|it| reading(*it, 20.0, 0.1, 9e6)).collect()
        };
        let queues = [("a".into(), of(&[1, 2, 3, 4])), ("b".into(), of(&[1, 2, 3]))];
        let comparison = comparison(&facts(), &queues);
        assert!(comparison.partial);
        assert_eq!(Verdict::of_rounds(&comparison).answer, Answer::Alike);
    }

    #[test]
    fn a_queue_that_never_empties_is_told_by_the_idle_link() {
        let mut reading = reading(1, 300.0, 1.0, 9e6);
        let added = |reading: &Reading| {
            let queues = [("now".into(), vec![reading.clone()])];
            Verdict::of_rounds(&comparison(&facts(), &queues)).latency[0].added_s.unwrap()
        };
        assert!(added(&reading) < 0.001, "nothing tells that it is not the link");
        reading.streams[0].idle_s = Some(0.01);
        let found = added(&reading);
        assert!((found - 0.3).abs() < 0.001, "{found}");
    }

    #[test]
    fn half_of_a_round_trip_is_one_way() {
        let stream =
            super::Stream { name: "ping".into(), ways: 2, sent: 4, delays_s: vec![0.2; 3], ..CALL };
        assert_eq!(stream.loss(), Some(0.25));
        assert!((stream.times().mean().unwrap() - 0.1).abs() < 1e-9);
        let lost = super::Stream { delays_s: Vec::new(), ..stream };
        assert_eq!(lost.rating(), Some(0.0), "nothing arrives");
    }
}
