//! A queue under load: some endless flows fill it, and small datagrams find out how long
//! one waits behind them: what a ping under load says, one way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_core::Stream;
use tidegate_sim::metrics::run_summary::jain_index;

use crate::agent::{Event, PROBE_EVERY_US};
use crate::cell::{
    Allowance, Cell, LOADED_FAIRNESS, LOADED_GOODPUT, LOADED_LOST, LOADED_WAIT, LOADED_WAIT_P95,
    Shaper,
};
use crate::figures::quantile;
use crate::flow::ENDLESS;
use crate::workload::Transfer;

/// How many flows there are: more than one, so that a queue has something to share out, and
/// as few as a household has downloads.
pub const FLOWS: usize = 4;
/// A flow begins within so many seconds after those in which the one before it did. Apart,
/// so that slow starts do not coincide in one world and miss each other in the other.
pub const APART_S: f64 = 1.0;
/// What is before this counts for nothing: the last flow has begun, and left slow start.
pub const FROM_S: f64 = 12.0;
/// Nor does what is after this.
pub const TO_S: f64 = 42.0;
/// How long the sender stays: the last probe that counts has this much time to come.
pub const SECONDS: f64 = 43.0;
/// Probes leave when tenths of a second begin, or some microseconds later: in the middle
/// between two, no probe is near the end of what counts.
const HALF_A_GAP_S: f64 = PROBE_EVERY_US as f64 / 2e6;

/// What a queue did in one log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cell's name.
    pub cell: String,
    /// The log's number.
    pub log: u64,
    /// Payload of all flows that could be read, in order, per second.
    pub goodput_mbps: f64,
    /// Jain's index of that over flows.
    pub fairness: f64,
    /// How long probes waited in the queue: the mean.
    pub mean_ms: f64,
    /// The median.
    pub median_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The 99th.
    pub p99_ms: f64,
    /// Probes that were sent.
    pub sent: usize,
    /// Those of them that did not come.
    pub lost: usize,
}

/// The cell's name: `loaded-fq_codel`; `loaded-bpf-efd` if the queue is a program of ours.
#[must_use]
pub fn name(cell: &Cell) -> String {
    let form = if cell.queue.shaper == Shaper::Program { "bpf-" } else { "" };
    format!("loaded-{form}{}", cell.queue.name)
}

/// The flows of the log of this number.
#[must_use]
pub fn log(number: u64) -> Vec<Transfer> {
    let mut stream = Stream::new(number, "loaded");
    let flow = |place: usize| {
        let start_s = (place as f64 + stream.uniform()) * APART_S;
        Transfer { start_s: (start_s * 1e6).round() / 1e6, ..ENDLESS }
    };
    (0..FLOWS).map(flow).collect()
}

/// What was seen of a log; times are in seconds from its start.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Of each flow, how much could be read until when.
    read: BTreeMap<usize, Vec<(f64, u64)>>,
    sent: usize,
    waits_ms: Vec<f64>,
}

impl Seen {
    /// Until now, so many bytes of a flow could be read.
    pub fn read(&mut self, flow: usize, at_s: f64, bytes: u64) {
        self.read.entry(flow).or_default().push((at_s, bytes));
    }

    /// A probe left.
    pub fn sent(&mut self, at_s: f64) {
        self.sent += usize::from(counts(at_s));
    }

    /// A probe that left then has come, after so long in the queue.
    pub fn waited(&mut self, sent_s: f64, wait_ms: f64) {
        self.waits_ms.extend(counts(sent_s).then_some(wait_ms));
    }

    /// What the agents saw.
    #[must_use]
    pub fn of_events(events: &[Event], cell: &Cell) -> Seen {
        let start = events.iter().find_map(|event| match event {
            Event::Start(at) => Some(*at),
            _ => None,
        });
        let start = start.unwrap_or_default();
        let since = |at: i64| (at - start) as f64 / 1e6;
        let mut seen = Seen::default();
        for event in events {
            match event {
                Event::Read(flow, at, bytes) => seen.read(*flow, since(*at), *bytes),
                Event::Probe(sent, took) => {
                    let path_ms = cell.link.delay.as_seconds() * 1e3;
                    seen.waited(since(*sent), *took as f64 / 1e3 - path_ms);
                }
                _ => {}
            }
        }
        // The sender does not write that it sends a probe: it does so without fail.
        let gap_s = PROBE_EVERY_US as f64 / 1e6;
        seen.sent = ((TO_S - FROM_S) / gap_s).round() as usize;
        seen
    }

    /// The figures of it.
    #[must_use]
    pub fn row(mut self, cell: &Cell, log: u64) -> Row {
        let goodputs: Vec<f64> = (0..FLOWS)
            .map(|flow| {
                let path = self.read.get(&flow).map_or(&[][..], Vec::as_slice);
                (bytes_at(path, TO_S) - bytes_at(path, FROM_S)) * 8.0 / (TO_S - FROM_S) / 1e6
            })
            .collect();
        self.waits_ms.sort_by(f64::total_cmp);
        let came = self.waits_ms.len();
        let at = |part| if came == 0 { 0.0 } else { rounded(quantile(&self.waits_ms, part)) };
        Row {
            cell: name(cell),
            log,
            goodput_mbps: rounded(goodputs.iter().sum()),
            fairness: rounded(jain_index(goodputs).unwrap_or_default()),
            mean_ms: rounded(self.waits_ms.iter().sum::<f64>() / came.max(1) as f64),
            median_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            sent: self.sent,
            lost: self.sent.saturating_sub(came),
        }
    }
}

/// Whether a probe that left then counts.
fn counts(sent_s: f64) -> bool {
    (FROM_S..TO_S).contains(&(sent_s + HALF_A_GAP_S))
}

/// How much of a flow could be read at a time, between two notes as if it came evenly.
fn bytes_at(path: &[(f64, u64)], at_s: f64) -> f64 {
    let next = path.partition_point(|(noted, _)| *noted < at_s);
    let Some((to_s, to)) = path.get(next) else {
        return path.last().map_or(0.0, |(_, bytes)| *bytes as f64);
    };
    let Some((from_s, from)) = next.checked_sub(1).map(|before| path[before]) else {
        return if at_s < *to_s { 0.0 } else { *to as f64 };
    };
    from as f64 + (to - from) as f64 * (at_s - from_s) / (to_s - from_s)
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// A figure of a loaded queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// What all flows carry.
    Goodput,
    /// How evenly it is shared out.
    Fairness,
    /// How long probes wait: the mean.
    Mean,
    /// The median.
    Median,
    /// The 95th percentile.
    P95,
    /// The 99th: three probes of a log wait longer, too few for a verdict.
    P99,
    /// Lost probes, in percent.
    Lost,
}

impl Measure {
    /// Every measure, in the order of tables.
    pub const ALL: [Measure; 7] = [
        Measure::Goodput,
        Measure::Fairness,
        Measure::Mean,
        Measure::Median,
        Measure::P95,
        Measure::P99,
        Measure::Lost,
    ];

    /// What it is called, with its unit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Measure::Goodput => "goodput, Mbit/s",
            Measure::Fairness => "Jain's index",
            Measure::Mean => "wait, mean, ms",
            Measure::Median => "wait, median, ms",
            Measure::P95 => "wait, p95, ms",
            Measure::P99 => "wait, p99, ms",
            Measure::Lost => "probes lost, %",
        }
    }

    /// The figure in a row.
    #[must_use]
    pub fn of(self, row: &Row) -> f64 {
        match self {
            Measure::Goodput => row.goodput_mbps,
            Measure::Fairness => row.fairness,
            Measure::Mean => row.mean_ms,
            Measure::Median => row.median_ms,
            Measure::P95 => row.p95_ms,
            Measure::P99 => row.p99_ms,
            Measure::Lost => 100.0 * row.lost as f64 / row.sent.max(1) as f64,
        }
    }

    /// How far it may be off; `None` if it is not judged.
    #[must_use]
    pub fn allowance(self) -> Option<Allowance> {
        match self {
            Measure::Goodput => Some(LOADED_GOODPUT),
            Measure::Fairness => Some(LOADED_FAIRNESS),
            Measure::Mean | Measure::Median => Some(LOADED_WAIT),
            Measure::P95 => Some(LOADED_WAIT_P95),
            Measure::P99 => None,
            Measure::Lost => Some(LOADED_LOST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::loaded_cells;

    #[test]
    fn flows_begin_one_after_the_other_and_logs_differ() {
        let starts = |number| log(number).into_iter().map(|flow| flow.start_s).collect::<Vec<_>>();
        let first = starts(1);
        assert!(first.is_sorted() && first.len() == FLOWS && first[FLOWS - 1] < 4.0, "{first:?}");
        assert_ne!(first, starts(2));
    }

    #[test]
    fn every_loaded_queue_has_a_name_of_its_own() {
        let mut names: Vec<String> = loaded_cells().iter().map(name).collect();
        assert!(names.contains(&"loaded-fq_codel".into()));
        assert!(names.contains(&"loaded-fifo".into()));
        assert!(names.contains(&"loaded-bpf-fifo".into()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn what_is_seen_becomes_figures() {
        let cell = &loaded_cells()[0];
        let mut events = vec![Event::Start(1_000_000)];
        // Two flows at 4 Mbit/s each, two that get nothing.
        for tenth in 0..=430_i64 {
            let at = 1_000_000 + tenth * 100_000 + 30_000;
            let bytes = 50_000 * tenth as u64;
            events.extend([0, 1].map(|flow| Event::Read(flow, at, bytes)));
            // The path takes 20 ms, and the queue 30; one of six is lost.
            let sent = 1_000_000 + tenth * 100_000 + 40;
            events.extend((tenth % 6 != 0).then_some(Event::Probe(sent, 50_000)));
        }
        let row = Seen::of_events(&events, cell).row(cell, 3);
        assert_eq!((row.cell.as_str(), row.log), ("loaded-fifo", 3));
        assert_eq!((row.goodput_mbps, row.fairness), (8.0, 0.5));
        assert_eq!((row.mean_ms, row.median_ms, row.p95_ms, row.p99_ms), (30.0, 30.0, 30.0, 30.0));
        assert_eq!((row.sent, row.lost), (300, 50));
    }
}
