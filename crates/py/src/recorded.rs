//! The rows of runs, kept in memory as parts of tables.

use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use tidegate_core::Time;
use tidegate_sim::metrics::{FlowRecord, LinkSample, Recorder, RunSummary};
use tidegate_sim::scenario::Scenario;
use tidegate_study::columns::{self, Names};
use tidegate_study::experiment::{Job, Output};

use crate::table::Rows;

/// Whose rows are kept.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) flows: bool,
    pub(crate) links: bool,
}

/// What the runs of a comparison have said so far.
pub(crate) struct Recorded {
    names: Names,
    kept: Kept,
    /// Simulated time of all runs together, in nanoseconds.
    pub(crate) reached: AtomicU64,
    runs: Mutex<Vec<Run>>,
}

/// The rows of one run.
pub(crate) struct Run {
    place: usize,
    flows: RecordBatch,
    links: RecordBatch,
}

/// Takes the rows of one run.
pub(crate) struct Taker<'a> {
    recorded: &'a Recorded,
    contender: &'a str,
    seed: u64,
    flows: Rows<FlowRecord>,
    links: Rows<LinkSample>,
    reached: Time,
}

impl Recorded {
    pub(crate) fn new(scenario: &Scenario, kept: Kept) -> Recorded {
        let (reached, runs) = (AtomicU64::new(0), Mutex::default());
        Recorded { names: Names::of(scenario), kept, reached, runs }
    }

    /// The flows and the links of `runs`, in this order.
    pub(crate) fn batches(self, runs: &[usize]) -> (Vec<RecordBatch>, Vec<RecordBatch>) {
        let mut all = self.runs.into_inner().expect("no thread has failed while it held them");
        all.retain(|run| runs.contains(&run.place));
        all.sort_by_key(|run| run.place);
        all.into_iter().map(|run| (run.flows, run.links)).unzip()
    }
}

impl<'a> Output<'a, Scenario> for &'a Recorded {
    type Recorder = Taker<'a>;
    type Error = Infallible;

    fn begin(&self, job: &Job<'a>) -> Result<Taker<'a>, Infallible> {
        let (flows, links) = (Rows::of(columns::FLOWS), Rows::of(columns::LINKS));
        let (contender, seed) = (job.label, job.seed);
        Ok(Taker { recorded: self, contender, seed, flows, links, reached: Time::ZERO })
    }

    fn end(&self, job: &Job<'a>, taker: Taker<'a>, _: &RunSummary) -> Result<(), Infallible> {
        let contender = self.names.contender;
        let flows = taker.flows.batch(contender).expect("rows have the schema of their table");
        let links = taker.links.batch(contender).expect("rows have the schema of their table");
        let run = Run { place: job.index, flows, links };
        self.runs.lock().expect("no thread has failed while it held them").push(run);
        Ok(())
    }
}

impl Recorder for Taker<'_> {
    fn flow(&mut self, row: &FlowRecord) {
        if self.recorded.kept.flows {
            self.flows.add(self.contender, self.seed, row, &self.recorded.names);
        }
    }

    fn link(&mut self, row: &LinkSample) {
        if self.recorded.kept.links {
            self.links.add(self.contender, self.seed, row, &self.recorded.names);
        }
    }

    fn reached(&mut self, now: Time) {
        self.recorded.reached.fetch_add(now.since(self.reached).0, Ordering::Relaxed);
        self.reached = now;
    }
}
