//! The rows of runs, kept in memory as parts of tables.

use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use tidegate_core::Time;
use tidegate_sim::metrics::{FlowRecord, LinkSample, Recorder};
use tidegate_store::rows::{self, Kept, Rows};
use tidegate_study::columns::Names;
use tidegate_study::experiment::{self, Job, Output, Study};

use crate::listening::{self, Progress};

/// What the runs of a comparison have said so far.
pub(crate) struct Recorded {
    names: Names,
    kept: Kept,
    flows: SchemaRef,
    links: SchemaRef,
    /// Simulated time of all runs together, in nanoseconds.
    reached: AtomicU64,
    runs: Mutex<Vec<Run>>,
}

/// The rows of one run.
struct Run {
    place: usize,
    flows: RecordBatch,
    links: RecordBatch,
}

/// A table's columns and its rows.
pub(crate) type Batches = (SchemaRef, Vec<RecordBatch>);

/// Takes the rows of one run.
pub(crate) struct Taker<'a> {
    recorded: &'a Recorded,
    rows: Rows<'a>,
    reached: Time,
}

impl Recorded {
    pub(crate) fn new(names: Names, kept: Kept) -> Recorded {
        let (reached, runs) = (AtomicU64::new(0), Mutex::default());
        let labelled =
            |schema: SchemaRef| rows::labelled_schema(&schema, std::iter::once(names.contender));
        let (flows, links) = (labelled(rows::flows()), labelled(rows::links()));
        Recorded { names, kept, flows, links, reached, runs }
    }

    /// All runs of `study`, on threads of their own, while this one listens to Python.
    pub(crate) fn run<'a, S: Study>(
        &'a self,
        py: Python<'_>,
        study: &'a S,
        threads: usize,
        stop: &AtomicBool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<S::Run>> {
        let all = study.duration().as_seconds() * experiment::jobs(study).len() as f64;
        let part = || self.reached.load(Ordering::Relaxed) as f64 / 1e9 / all;
        let progress = progress.map(|tell| Progress { tell, part: &part });
        listening::during(py, stop, progress.as_ref(), || {
            let Ok(runs) = experiment::run(study, threads, stop, &self);
            runs
        })
    }

    /// The flows and the links of `runs`, in this order.
    pub(crate) fn batches(self, runs: &[usize]) -> (Batches, Batches) {
        let mut all = self.runs.into_inner().expect("no thread has failed while it held them");
        all.retain(|run| runs.contains(&run.place));
        all.sort_by_key(|run| run.place);
        let (flows, links) = all.into_iter().map(|run| (run.flows, run.links)).unzip();
        ((self.flows, flows), (self.links, links))
    }
}

impl<'a, S: Study> Output<'a, S> for &'a Recorded {
    type Recorder = Taker<'a>;
    type Error = Infallible;

    fn begin(&self, _: &Job<'a>) -> Result<Taker<'a>, Infallible> {
        let rows = Rows::new(&self.names, self.kept);
        Ok(Taker { recorded: self, rows, reached: Time::ZERO })
    }

    fn end(&self, job: &Job<'a>, taker: Taker<'a>, _: &S::Run) -> Result<(), Infallible> {
        let (flows, links) = taker.rows.batches(job.seed);
        let label = std::iter::once(job.label);
        let flows = rows::labelled(&flows, self.flows.clone(), label.clone());
        let links = rows::labelled(&links, self.links.clone(), label);
        let run = Run { place: job.index, flows, links };
        self.runs.lock().expect("no thread has failed while it held them").push(run);
        Ok(())
    }
}

impl Recorder for Taker<'_> {
    fn flow(&mut self, row: &FlowRecord) {
        self.rows.flow(row);
    }

    fn link(&mut self, row: &LinkSample) {
        self.rows.link(row);
    }

    fn reached(&mut self, now: Time) {
        self.recorded.reached.fetch_add(now.since(self.reached).0, Ordering::Relaxed);
        self.reached = now;
    }
}
