//! One run, condensed: what tables and plots need, in bounded memory.

use hdrhistogram::Histogram;
use tidegate_core::{Bytes, Counters, Span, Time};

use super::{FlowRecord, LinkSample, ProgressSample};
use crate::scenario::Scenario;
use crate::video::Viewing;

/// Bins of the response-by-size curve, per factor of ten in size.
pub const BINS_PER_DECADE: usize = 4;
/// The curve begins at this size, in bytes; smaller flows go into the first bin.
const FIRST_BIN: f64 = 100.0;
/// Enough for 10 GB.
const BINS: usize = 8 * BINS_PER_DECADE;

/// Significant digits of the times in a distribution.
const DIGITS: u8 = 3;
/// Longer times count as this, in microseconds: eleven days.
const LONGEST_MICROS: u64 = 1_000_000_000_000;

/// A distribution of times in microseconds, to three significant digits, with
/// their exact sum and largest. It grows with the largest time in it, not with their number.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u32>,
    sum_seconds: f64,
    largest: Span,
}

impl Default for Times {
    fn default() -> Times {
        let histogram = Histogram::new(DIGITS).expect("three digits are valid");
        Times { histogram, sum_seconds: 0.0, largest: Span::ZERO }
    }
}

impl Times {
    /// Adds one time.
    pub fn record(&mut self, span: Span) {
        let micros = (span.0 / 1_000).clamp(1, LONGEST_MICROS);
        self.histogram.record(micros).expect("a histogram of this kind grows as needed");
        self.sum_seconds += span.as_seconds();
        self.largest = self.largest.max(span);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Times) {
        self.histogram.add(&other.histogram).expect("histograms of this kind grow as needed");
        self.sum_seconds += other.sum_seconds;
        self.largest = self.largest.max(other.largest);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their mean in seconds; `None` when there are none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_seconds / self.count() as f64)
    }

    /// The quantile `fraction` (0 to 1) in seconds; `None` when there are none.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(fraction) as f64 / 1e6)
    }

    /// The largest in seconds, exactly; `None` when there are none.
    #[must_use]
    pub fn largest(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.largest.as_seconds())
    }

    /// Points (seconds, fraction not above) of the distribution, ascending.
    pub fn distribution(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let total = self.count() as f64;
        let mut seen = 0;
        self.histogram.iter_recorded().map(move |value| {
            seen += value.count_since_last_iteration();
            (value.value_iterated_to() as f64 / 1e6, seen as f64 / total)
        })
    }
}

/// The flows of one size class.
#[derive(Clone, Debug, Default)]
pub struct ClassSummary {
    /// Flows that began.
    pub started: u64,
    /// Flows that were finished, both directions closed.
    pub completed: u64,
    /// Flows with at least one packet lost.
    pub with_loss: u64,
    /// Their response times.
    pub response: Times,
    slowdown_sum: f64,
    slowdowns: u64,
}

impl ClassSummary {
    /// The mean of response time over that on an empty link.
    #[must_use]
    pub fn mean_slowdown(&self) -> Option<f64> {
        (self.slowdowns > 0).then(|| self.slowdown_sum / self.slowdowns as f64)
    }
}

/// One bin of the response-by-size curve.
#[derive(Clone, Copy, Debug, Default)]
pub struct SizeBin {
    /// Flows with a response time.
    pub flows: u64,
    sum_seconds: f64,
}

impl SizeBin {
    /// The mean response time in seconds; `None` when there are no flows.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.flows > 0).then(|| self.sum_seconds / self.flows as f64)
    }
}

/// The lookups of a source that ended within the run.
#[derive(Clone, Debug, Default)]
pub struct LookupSummary {
    /// From the first query to the answer; of one that failed, until its host gave up.
    pub times: Times,
    /// Those whose host asked more than once.
    pub asked_again: u64,
    /// Those that nobody answered in time.
    pub failed: u64,
}

/// One source of traffic.
#[derive(Clone, Debug, Default)]
pub struct TrafficSummary {
    /// Flows that began.
    pub started: u64,
    /// Flows that were finished.
    pub completed: u64,
    /// Payload that reached the receivers.
    pub delivered: Bytes,
    /// Datagrams sent, for sources that send datagrams.
    pub datagrams: u64,
    /// Datagrams lost.
    pub datagrams_lost: u64,
    /// Datagrams whose deadline came within the run, for sources with a deadline.
    pub due: u64,
    /// Those of them that were not there by then, lost ones among them.
    pub late: u64,
    /// One-way delay of the datagrams that arrived.
    pub delay: Times,
    /// Goodput of each long flow, in bit/s.
    pub long_goodputs: Vec<f64>,
    /// The longest time without progress of any long flow.
    pub longest_stall: Span,
    /// Pages that began, for sources that load pages.
    pub pages: u64,
    /// From the start of a page to its last object, of those that were complete.
    pub page_loads: Times,
    /// Lookups, for sources that look names up.
    pub lookups: LookupSummary,
    /// What each viewer saw, for sources of video.
    pub viewings: Vec<Viewing>,
    /// Response times of its short flows.
    pub short: Times,
}

impl TrafficSummary {
    /// Datagrams that were late or lost over those that were due; `None` when
    /// none was.
    #[must_use]
    pub fn late_ratio(&self) -> Option<f64> {
        (self.due > 0).then(|| self.late as f64 / self.due as f64)
    }

    /// Jain's index over the goodputs of its long flows; `None` unless there
    /// are two to compare.
    #[must_use]
    pub fn fairness(&self) -> Option<f64> {
        (self.long_goodputs.len() > 1)
            .then(|| jain_index(self.long_goodputs.iter().copied()))
            .flatten()
    }
}

/// One link with a queue.
#[derive(Clone, Debug, Default)]
pub struct LinkSummary {
    /// What went through.
    pub counters: Counters,
    /// Bytes sent over what the link could have sent; of a wireless link the share
    /// of the time that its medium was busy with what it sent, acknowledgements and
    /// repetitions included.
    pub utilisation: f64,
    /// Of a wireless link: for which share of the time its medium sent for anybody, or
    /// somebody waited to send.
    pub medium_use: Option<f64>,
    /// Time in the queue, of every packet sent.
    pub delay: Times,
    /// States over time, for plots: thinned as the run grows, evenly spread.
    pub samples: Vec<LinkSample>,
    /// Every how many samples one is kept.
    stride: u64,
    sampled: u64,
    sum_packets: u64,
    sum_flows: u64,
}

/// States of a link that are kept; a longer run keeps every second, fourth, ...
const MOST_SAMPLES: usize = 2_000;

impl LinkSummary {
    /// Packets lost over packets offered.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        self.counters.lost() as f64 / self.counters.offered.max(1) as f64
    }

    /// Takes the state of the link at one moment.
    pub fn add_sample(&mut self, row: LinkSample) {
        self.sum_packets += u64::from(row.backlog.packets);
        self.sum_flows += row.flows_tracked as u64;
        if self.sampled.is_multiple_of(self.stride.max(1)) {
            if self.samples.len() == MOST_SAMPLES {
                let mut place = 0;
                self.samples.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride = self.stride.max(1) * 2;
            }
            self.samples.push(row);
        }
        self.sampled += 1;
    }

    /// Mean number of packets queued, over the sampled moments.
    #[must_use]
    pub fn mean_packets(&self) -> f64 {
        self.sum_packets as f64 / self.sampled.max(1) as f64
    }

    /// Mean number of flows tracked, over the sampled moments.
    #[must_use]
    pub fn mean_flows(&self) -> f64 {
        self.sum_flows as f64 / self.sampled.max(1) as f64
    }
}

/// Everything that is kept of a run.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// The discipline's label.
    pub discipline: String,
    /// The seed.
    pub seed: u64,
    /// Simulated time that was reached; less than asked for when interrupted.
    pub reached: Time,
    /// Transfers that did not begin at their time, because
    /// [`MOST_OPEN`](crate::scenario::MOST_OPEN) others were open.
    pub waited: u64,
    /// Events handled, as a measure of work.
    pub events: u64,
    /// By size class, in the order of [`Scenario::size_classes`], the rest last.
    pub classes: Vec<ClassSummary>,
    /// All short flows.
    pub short: ClassSummary,
    /// All flows with an end.
    pub all: ClassSummary,
    /// By size, finer.
    pub bins: Vec<SizeBin>,
    /// By source, in the order of [`Scenario::traffic`].
    pub traffic: Vec<TrafficSummary>,
    /// By link, in the order of [`Scenario::links`]; `None` without a queue.
    pub links: Vec<Option<LinkSummary>>,
    /// Samples of the followed flows.
    pub progress: Vec<ProgressSample>,
    /// The traffic of each part of a recording ([`Scenario::part`]) by itself, by the time at
    /// which it began; the number of the part is the seed. Empty for others.
    pub parts: Vec<RunSummary>,
    /// The length of a part, and where the first one begins.
    part: Span,
    since: Time,
}

impl RunSummary {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(scenario: &Scenario, discipline: &str, seed: u64) -> RunSummary {
        RunSummary {
            discipline: discipline.into(),
            seed,
            reached: Time::ZERO,
            waited: 0,
            events: 0,
            classes: vec![ClassSummary::default(); scenario.size_classes.len() + 1],
            short: ClassSummary::default(),
            all: ClassSummary::default(),
            bins: vec![SizeBin::default(); BINS],
            traffic: vec![TrafficSummary::default(); scenario.traffic.len()],
            links: vec![None; scenario.links.len()],
            progress: Vec::new(),
            parts: Vec::new(),
            part: scenario.part().unwrap_or_default(),
            since: Time(scenario.warm_up.0),
        }
    }

    /// Cuts what is to come into the parts of the scenario.
    #[must_use]
    pub fn in_parts(mut self, scenario: &Scenario) -> RunSummary {
        let count = (scenario.duration.0 - self.since.0).checked_div(self.part.0);
        let part = |number| RunSummary::new(scenario, &self.discipline, number);
        self.parts = (1..=count.unwrap_or(0)).map(part).collect();
        self
    }

    /// Notes what began at `start`: in the whole, and in its part if there are any.
    pub fn note(&mut self, start: Time, what: impl Fn(&mut RunSummary)) {
        what(self);
        let Some(last) = self.parts.len().checked_sub(1) else { return };
        let place = start.0.saturating_sub(self.since.0) / self.part.0;
        what(&mut self.parts[(place as usize).min(last)]);
    }

    /// Adds a flow that has ended or was cut off at `now`.
    pub fn add_flow(&mut self, scenario: &Scenario, row: &FlowRecord, now: Time) {
        self.note(row.start, |it| it.add_to_books(scenario, row, now));
    }

    fn add_to_books(&mut self, scenario: &Scenario, row: &FlowRecord, now: Time) {
        let source = &mut self.traffic[row.traffic];
        source.started += 1;
        source.completed += u64::from(row.end.is_some());
        source.delivered += row.delivered;
        let kind = &scenario.traffic[row.traffic].kind;
        if !kind.is_transfers() {
            // A flow of datagrams takes as long as its sender wants: what the
            // queue does to it is the delay and the loss of its packets.
            return;
        }
        if row.size.is_none_or(|size| size >= scenario.long_flow) {
            let lasted = row.response.unwrap_or_else(|| now.since(row.start)).as_seconds();
            if lasted > 0.0 {
                source.long_goodputs.push(row.delivered.0 as f64 * 8.0 / lasted);
            }
            source.longest_stall = source.longest_stall.max(row.longest_stall);
        }
        let Some(size) = row.size else { return };
        let class = scenario.size_classes.partition_point(|bound| *bound < size);
        self.classes[class].add(row);
        self.all.add(row);
        if size <= scenario.short_flow {
            self.short.add(row);
            if let (Some(response), Some(_)) = (row.response, row.end) {
                source.short.record(response);
            }
        }
        if let (Some(response), Some(_)) = (row.response, row.end) {
            let bin = &mut self.bins[bin_of(size)];
            bin.flows += 1;
            bin.sum_seconds += response.as_seconds();
        }
    }
}

impl ClassSummary {
    fn add(&mut self, row: &FlowRecord) {
        self.started += 1;
        self.completed += u64::from(row.end.is_some());
        self.with_loss += u64::from(row.lost > 0);
        // As in the papers, only transfers that were finished have a response
        // time (`EFD section 5.2`).
        if let (Some(response), Some(_)) = (row.response, row.end) {
            self.response.record(response);
            if let Some(unloaded) = row.unloaded.filter(|span| span.0 > 0) {
                self.slowdown_sum += response.0 as f64 / unloaded.0 as f64;
                self.slowdowns += 1;
            }
        }
    }
}

/// The bin of a size. Found by comparison with the bins' bounds, not by a
/// logarithm, so that it is the same on every machine.
fn bin_of(size: Bytes) -> usize {
    (1..BINS).find(|bin| (size.0 as f64) < bin_start(*bin)).map_or(BINS - 1, |bin| bin - 1)
}

/// Where a bin of [`RunSummary::bins`] begins, in bytes.
#[must_use]
pub fn bin_start(bin: usize) -> f64 {
    // 10^(i/4), to more digits than matter for a bin's bound.
    const STEPS: [f64; BINS_PER_DECADE] = [1.0, 1.778_279_410, 3.162_277_660, 5.623_413_252];
    let decade = (0..bin / BINS_PER_DECADE).fold(FIRST_BIN, |bound, _| bound * 10.0);
    decade * STEPS[bin % BINS_PER_DECADE]
}

/// Jain's index of fairness: 1 when all are alike, 1/n when one has everything.
/// `None` without values or when all are zero.
pub fn jain_index(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) = values
        .into_iter()
        .fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Backlog;

    #[test]
    fn samples_are_thinned_evenly_and_means_are_of_all() {
        let mut link = LinkSummary::default();
        for second in 0..9_000_u32 {
            let backlog = Backlog { packets: second, bytes: Bytes(0) };
            let at = Time(u64::from(second));
            let counters = Counters::default();
            link.add_sample(LinkSample { link: 0, at, backlog, flows_tracked: 3, counters });
        }
        assert!((1_000..=MOST_SAMPLES).contains(&link.samples.len()));
        let steps = link.samples.windows(2).map(|pair| pair[1].at.0 - pair[0].at.0);
        assert!(steps.into_iter().all(|step| step == 8));
        assert_eq!((link.mean_packets(), link.mean_flows()), (4_499.5, 3.0));
    }

    #[test]
    fn every_size_has_its_bin() {
        assert_eq!(bin_of(Bytes(0)), 0);
        assert_eq!(bin_of(Bytes(177)), 0);
        assert_eq!(bin_of(Bytes(178)), 1);
        assert_eq!(bin_of(Bytes(1_000)), BINS_PER_DECADE);
        assert_eq!(bin_of(Bytes(u64::MAX)), BINS - 1);
    }

    #[test]
    fn times_keep_three_digits_and_the_exact_mean() {
        let mut times = Times::default();
        for millis in 1..=1_000 {
            times.record(Span::millis(millis));
        }
        assert!((times.mean().unwrap() - 0.5005).abs() < 1e-12);
        assert!((times.quantile(0.95).unwrap() - 0.95).abs() < 0.001);
        assert_eq!(times.distribution().last().unwrap().1, 1.0);
    }

    #[test]
    fn fairness_runs_from_one_over_n_to_one() {
        assert_eq!(jain_index([2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain_index([3.0, 0.0, 0.0]), Some(1.0 / 3.0));
        assert_eq!(jain_index([]), None);
        assert_eq!(jain_index([0.0]), None);
    }
}
