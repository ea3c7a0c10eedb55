//! One run, with all its rows.

use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::{FlowRecord, PacketRecord, ProgressSample, Recorder, RunSummary};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::simulation;

/// The rows of a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Rows {
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) progress: Vec<ProgressSample>,
    pub(crate) packets: Vec<PacketRecord>,
}

impl Recorder for Rows {
    fn flow(&mut self, row: &FlowRecord) {
        self.flows.push(row.clone());
    }
    fn progress(&mut self, row: &ProgressSample) {
        self.progress.push(row.clone());
    }
    fn takes_packets(&self) -> bool {
        true
    }
    fn packet(&mut self, row: &PacketRecord) {
        self.packets.push(*row);
    }
}

/// A scenario, with the recordings that are shipped.
pub(crate) fn scenario(text: &str) -> Scenario {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/data");
    let scenario = file::parse("quic.toml", text, &Folder(data.into()));
    scenario.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario under the first of its disciplines.
pub(crate) fn run(text: &str, seed: u64) -> (RunSummary, Rows) {
    let mut rows = Rows::default();
    let (scenario, stop) = (scenario(text), AtomicBool::new(false));
    let summary = simulation::run(&scenario, &scenario.disciplines[0], seed, &mut rows, &stop);
    (summary, rows)
}

/// Keeps the rows of flows.
#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl Recorder for Flows {
    fn flow(&mut self, row: &FlowRecord) {
        self.0.push(row.clone());
    }
}

/// The same without rows of packets and of progress.
pub(crate) fn run_quietly(text: &str, seed: u64) -> (RunSummary, Vec<FlowRecord>) {
    let mut flows = Flows::default();
    let (scenario, stop) = (scenario(text), AtomicBool::new(false));
    let summary = simulation::run(&scenario, &scenario.disciplines[0], seed, &mut flows, &stop);
    (summary, flows.0)
}
