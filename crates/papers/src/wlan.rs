//! The claims of WLAN: Chen, Heusse, Urvoy-Keller.

mod downloads;
mod drawbacks;
mod fairness;
mod large_buffer;
mod levels;
mod mixed;
mod response;
mod round_trip;

use std::sync::Arc;

use tidegate_core::Buffer;

use crate::check::Written;
use crate::figure::Line;
use crate::lab::{Lab, Run};
use crate::{Claim, Paper, Row, Stopped, Table};
use tidegate_sim::metrics::run_summary::LinkSummary;
use tidegate_sim::scenario::{QueueSpec, Scenario};
use tidegate_study::Estimate;
use tidegate_study::shipped;

/// WLAN.
pub(super) const PAPER: Paper = Paper {
    key: "WLAN",
    reference: "J. Chen, M. Heusse, G. Urvoy-Keller: Analysis of the Early Flow Discard (EFD) \
                Discipline in 802.11 Wireless LANs",
    setting: "Ten stations and an access point with 802.11a at 54 Mbit/s, without RTS, errors or \
              hidden stations, and ten hosts behind 2 ms of wire (QualNet 4.5 in the paper). Only \
              the access point's queue to the stations is under test; stations have FIFO, which \
              never overflows. NewReno with delayed ACKs, a receive window of 65 535 bytes, \
              segments of 1 460 bytes. The paper gives neither the initial window nor the timers: \
              ours are 2 segments, and at least 1 s for timeouts. Thresholds are those of the \
              paper, 20 packets or 30 kB: BEFD is our efd in bytes, PEFD our efd in packets. The \
              paper does not say what its LARS and SCFQ count; ours count an acknowledgement as \
              its 40 bytes. Long transfers have 30 runs, as in the paper; mixed ones have ten \
              seeds of 500 s where the paper has one run of 5 000 s. The sizes of mixed transfers \
              are ours: bounded Zipf from 6 to 6 849 segments with a mean of 40 and a coefficient \
              of variation of 4.8, where the paper has 6. fq-codel and cake, which the paper \
              lacks, are for comparison. Not tested are segments of very different sizes, with \
              which PEFD is said to suit less (section VII), and why transfers are unfinished at \
              the end of a run (section V): the paper does not say under which policies.",
};

/// In the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    fairness::UPLOADS_AGAINST_DOWNLOADS,
    round_trip::ROUND_TRIPS,
    levels::IN_BYTES,
    levels::IN_PACKETS,
    levels::IN_BYTES_ASYMMETRIC,
    levels::IN_PACKETS_ASYMMETRIC,
    response::SYMMETRIC,
    response::ASYMMETRIC_LOAD,
    downloads::STREAMING_LOAD,
    large_buffer::LARGE_BUFFER,
    drawbacks::DRAWBACKS,
];

const LONG_LIVED: &str = "papers/WLAN/long-lived.toml";
const TODAY: &str = "papers/WLAN/long-lived-today.toml";

/// Runs of each simulation of long transfers in the paper (`WLAN section IV`).
const PAPERS_RUNS: u64 = 30;

/// Payload of a full segment, in bytes.
const SEGMENT: f64 = 1_460.0;
/// The receive window, in bytes: 43 segments and a bit.
const RECEIVE_WINDOW: f64 = 65_535.0;

/// Buffers of figures 2 and 3, in packets.
const BUFFERS: [u32; 7] = [10, 20, 30, 40, 50, 60, 70];
/// The buffer of section V.
const SMALL: u32 = 30;
/// With which nothing is lost any more (`WLAN section IV`).
const LARGE: u32 = 300;

/// Places of the sources in the scenario.
const UPLOADS: usize = 0;
const DOWNLOADS: usize = 1;

/// Five uploads and five downloads with this buffer at the access point.
fn long_lived(buffer: u32) -> Scenario {
    with_buffer(LONG_LIVED, buffer)
}

/// The same with today's TCP.
fn long_lived_today(buffer: u32) -> Scenario {
    with_buffer(TODAY, buffer)
}

/// A shipped scenario with this buffer at the access point.
fn with_buffer(name: &'static str, buffer: u32) -> Scenario {
    let mut scenario = shipped::scenario(name);
    for link in &mut scenario.links {
        if let QueueSpec::Tested(limit) = &mut link.queue {
            *limit = Buffer::packets(buffer);
        }
    }
    scenario
}

/// The runs of every discipline with one buffer, by label.
struct Cell {
    buffer: u32,
    scenario: Scenario,
    runs: Vec<Vec<Arc<Run>>>,
}

impl Cell {
    /// Runs the disciplines of a scenario.
    fn of_scenario(
        lab: &Lab<'_>,
        seeds: &[u64],
        buffer: u32,
        scenario: Scenario,
    ) -> Result<Cell, Stopped> {
        let runs = lab.all_runs_over(seeds, &scenario, &scenario.disciplines)?;
        Ok(Cell { buffer, scenario, runs })
    }

    /// Five uploads and five downloads, as often as in the paper.
    fn with_buffer(lab: &Lab<'_>, buffer: u32) -> Result<Cell, Stopped> {
        Cell::of_scenario(lab, &lab.seeds_as(PAPERS_RUNS), buffer, long_lived(buffer))
    }

    /// What the disciplines are called.
    fn labels(&self) -> impl Iterator<Item = &str> {
        self.scenario.disciplines.iter().map(|choice| choice.label.as_str())
    }

    /// By seed.
    fn of(&self, label: &str) -> &[Arc<Run>] {
        let place = self.scenario.disciplines.iter().position(|choice| choice.label == label);
        &self.runs[place.expect("claims name disciplines of the scenario")]
    }

    /// What the access point's queue has done.
    fn downlink<'a>(&self, run: &'a Run) -> &'a LinkSummary {
        let tested = |queue: &QueueSpec| matches!(queue, QueueSpec::Tested(_));
        let place = self.scenario.links.iter().position(|link| tested(&link.queue));
        let place = place.expect("the cell has a tested link");
        run.summary.links[place].as_ref().expect("a tested link has a queue")
    }
}

/// The cells of figures 2 and 3.
fn cells(lab: &Lab<'_>) -> Result<Vec<Cell>, Stopped> {
    BUFFERS.iter().map(|buffer| Cell::with_buffer(lab, *buffer)).collect()
}

/// Payload that the flows of one source brought to their receivers, in bytes.
/// A source that brought none counts as one segment, so that ratios are finite.
fn carried(run: &Run, source: usize) -> f64 {
    (run.summary.traffic[source].delivered.0 as f64).max(SEGMENT)
}

/// What uploads brought over what downloads did.
fn imbalance(run: &Run) -> f64 {
    carried(run, UPLOADS) / carried(run, DOWNLOADS)
}

/// A value of one discipline over the buffers, with its intervals.
fn over_buffers(
    label: impl Into<String>,
    cells: &[Cell],
    discipline: &str,
    value: impl Fn(&Cell, &Run) -> f64,
) -> Line {
    let at = |cell: &Cell| {
        let values = cell.of(discipline).iter().map(|run| value(cell, run));
        (f64::from(cell.buffer), values.collect())
    };
    Line::over_seeds(label, cells.iter().map(at))
}

/// A value of every discipline, in each of `directions`, over the buffers.
fn table(
    title: &str,
    caption: &str,
    cells: &[Cell],
    directions: &[(usize, &str)],
    value: impl Fn(&Run, usize) -> Option<f64>,
) -> Table {
    let buffers = cells.iter().map(|cell| format!("{} packets", cell.buffer));
    let row = |label: &str, (source, suffix): (usize, &str)| {
        let over_seeds = |cell: &Cell| {
            Estimate::mean(cell.of(label).iter().filter_map(|run| value(run, source)))
        };
        Row::new(format!("{label}{suffix}"), Written::Ratio, cells.iter().map(over_seeds))
    };
    let rows = cells[0].labels().flat_map(|label| directions.iter().map(move |it| (label, *it)));
    Table {
        title: title.into(),
        caption: caption.into(),
        columns: std::iter::once("discipline".to_string()).chain(buffers).collect(),
        rows: rows.map(|(label, direction)| row(label, direction)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_access_points_buffer_changes() {
        let (small, large) = (long_lived(10), long_lived(LARGE));
        let tested = |scenario: &Scenario| {
            let buffer = |queue: &QueueSpec| match queue {
                QueueSpec::Tested(buffer) => Some(*buffer),
                _ => None,
            };
            scenario.links.iter().filter_map(|link| buffer(&link.queue)).collect::<Vec<_>>()
        };
        assert_eq!(tested(&small), [Buffer::packets(10)]);
        assert_eq!(tested(&large), [Buffer::packets(300)]);
    }

    #[test]
    fn sources_stand_in_the_scenario_as_they_are_named_here() {
        let scenario = long_lived(30);
        assert_eq!(scenario.traffic[UPLOADS].name, "uploads");
        assert_eq!(scenario.traffic[DOWNLOADS].name, "downloads");
    }
}
