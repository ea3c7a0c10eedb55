//! Comparisons: all runs of a scenario, on all cores, while the rest of Python goes on.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyType;
use tidegate_sim::scenario;
use tidegate_store::rows::{Kept, words};
use tidegate_study::measure::Row;
use tidegate_study::verdict::Verdict;
use tidegate_study::{comparison, experiment, machine};

use crate::custom::Registered;
use crate::error::TidegateError;
use crate::listening::{self, Progress};
use crate::recorded::Recorded;
use crate::scenario::{Scenario, discipline, overrides};
use crate::table::{Table, batch};

/// The results of disciplines under the same traffic.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Comparison {
    comparison: comparison::Comparison,
    flows: Py<Table>,
    links: Py<Table>,
}

#[pymethods]
impl Comparison {
    /// One row for each flow: who sent it, when it began, how long it took, what was lost.
    #[getter]
    fn flows(&self, py: Python<'_>) -> Py<Table> {
        self.flows.clone_ref(py)
    }

    /// One row for each sample of a link with a queue.
    #[getter]
    fn links(&self, py: Python<'_>) -> Py<Table> {
        self.links.clone_ref(py)
    }

    /// One row for each measure of each run.
    #[getter]
    fn runs(&self) -> PyResult<Table> {
        runs(&self.comparison)
    }

    /// One row for each measure of each discipline: the mean or median over the seeds, with
    /// the 95% interval.
    #[getter]
    fn summary(&self) -> PyResult<Table> {
        summary(&self.comparison)
    }

    /// The title of the scenario.
    #[getter]
    fn title(&self) -> &str {
        &self.comparison.title
    }

    /// Each discipline ran once with each.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.comparison.seeds.clone()
    }

    /// The disciplines, by their labels.
    #[getter]
    fn disciplines(&self) -> Vec<&str> {
        self.comparison.disciplines.iter().map(|it| it.label.as_str()).collect()
    }

    /// What to run instead of the first discipline, by labels: several if they are equally
    /// good, none if nobody would notice a difference.
    #[getter]
    fn recommended(&self) -> Vec<String> {
        Verdict::of(&self.comparison).run
    }

    /// All that is known, as JSON; fields are those of `tidegate compare --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.comparison)
            .map_err(|error| TidegateError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        let disciplines = self.disciplines().join(", ");
        format!("<Comparison '{}': {disciplines}; {} seeds>", self.title(), self.seeds().len())
    }
}

/// A discipline: text as on the command line, or a class of Python.
#[derive(FromPyObject)]
pub(crate) enum Contender {
    Text(String),
    Class(Py<PyType>),
}

/// Runs `scenario` under each discipline and seed. What is given stands in place of what the
/// scenario says. `flows` and `links` tell whether the rows of these tables are kept, and
/// `progress` is called with the part that is done, from 0 to 1.
#[pyfunction]
#[pyo3(signature = (scenario, *, disciplines = None, seeds = None, duration = None,
    threads = None, flows = true, links = true, progress = None))]
#[expect(clippy::too_many_arguments, reason = "each is a keyword of Python's function")]
pub(crate) fn compare(
    py: Python<'_>,
    scenario: &Scenario,
    disciplines: Option<Vec<Contender>>,
    seeds: Option<Vec<u64>>,
    duration: Option<&str>,
    threads: Option<NonZeroUsize>,
    flows: bool,
    links: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let stop = Arc::new(AtomicBool::new(false));
    // They stay as long as the runs.
    let mut custom = Vec::new();
    let choices = disciplines.map(|all| {
        let choices = all.into_iter().map(|it| match it {
            Contender::Text(text) => discipline(py, &text),
            Contender::Class(class) => {
                custom.push(Registered::new(class, stop.clone()));
                custom.last().expect("it was put there").choice(py)
            }
        });
        choices.collect::<PyResult<Vec<_>>>()
    });
    let scenario = scenario.with(py, &overrides(py, duration, seeds, choices.transpose()?)?)?;
    let threads = threads.map_or_else(machine::cores, NonZeroUsize::get);
    let recorded = Recorded::new(&scenario, Kept { flows, links });
    let runs = run(py, &scenario, threads, &recorded, &stop, progress);
    if let Some(fault) = custom.iter().find_map(|it| it.class.fault()) {
        return Err(fault);
    }
    let runs = runs?;
    let jobs = experiment::jobs(&*scenario);
    let places = experiment::places(&*scenario, &jobs, &runs);
    let (flows, links) = recorded.batches(&places);
    Ok(Comparison {
        comparison: comparison::Comparison::of(&scenario, &runs),
        flows: Py::new(py, Table::new(flows.0, flows.1))?,
        links: Py::new(py, Table::new(links.0, links.1))?,
    })
}

/// All runs, on threads of their own, while this one listens to Python.
fn run(
    py: Python<'_>,
    scenario: &scenario::Scenario,
    threads: usize,
    recorded: &Recorded,
    stop: &AtomicBool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<tidegate_sim::metrics::RunSummary>> {
    let runs = scenario.disciplines.len() * scenario.seeds.len();
    let all = scenario.duration.as_seconds() * runs as f64;
    let part = || recorded.reached.load(Ordering::Relaxed) as f64 / 1e9 / all;
    let progress = progress.map(|tell| Progress { tell, part: &part });
    listening::during(py, stop, progress.as_ref(), || {
        let Ok(runs) = experiment::run(scenario, threads, stop, &recorded);
        runs
    })
}

/// What every measure says of every run.
fn runs(comparison: &comparison::Comparison) -> PyResult<Table> {
    let mut labels = Labels::default();
    let (mut seeds, mut values) = (UInt64Builder::new(), Float64Builder::new());
    for discipline in &comparison.disciplines {
        for (kind, name, metric, value) in discipline.values() {
            let of_runs = value.sample().into_iter().flat_map(tidegate_study::Sample::by_seed);
            for (seed, value) in of_runs {
                labels.add(&discipline.label, kind, &name, metric);
                seeds.append_value(seed);
                values.append_value(value);
            }
        }
    }
    let mut fields = Labels::fields();
    fields.push(Field::new("seed", DataType::UInt64, false));
    fields.push(Field::new("value", DataType::Float64, false));
    let mut columns = labels.columns();
    columns.push(Arc::new(seeds.finish()));
    columns.push(Arc::new(values.finish()));
    table(fields, columns)
}

/// What every measure says of every discipline.
fn summary(comparison: &comparison::Comparison) -> PyResult<Table> {
    let mut labels = Labels::default();
    let mut estimates = StringBuilder::new();
    let mut numbers = [(); 3].map(|()| Float64Builder::new());
    let mut runs = UInt64Builder::new();
    for discipline in &comparison.disciplines {
        for (kind, name, metric, value) in discipline.values() {
            let Some(row) = Row::from_value(kind, &name, metric, value) else { continue };
            labels.add(&discipline.label, kind, &name, metric);
            estimates.append_value(&row.estimate);
            let [centre, low, high] = &mut numbers;
            centre.append_value(row.value);
            low.append_option(row.interval.map(|it| it.0));
            high.append_option(row.interval.map(|it| it.1));
            runs.append_option(row.runs.map(|count| count as u64));
        }
    }
    let mut fields = Labels::fields();
    fields.push(words("estimate", false));
    fields.push(Field::new("value", DataType::Float64, false));
    fields.extend(["low_95", "high_95"].map(|name| Field::new(name, DataType::Float64, true)));
    fields.push(Field::new("runs", DataType::UInt64, true));
    let mut columns = labels.columns();
    columns.push(Arc::new(estimates.finish()));
    columns.extend(numbers.map(|mut it| Arc::new(it.finish()) as ArrayRef));
    columns.push(Arc::new(runs.finish()));
    table(fields, columns)
}

fn table(fields: Vec<Field>, columns: Vec<ArrayRef>) -> PyResult<Table> {
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let all: RecordBatch = batch(schema.clone(), columns)?;
    Ok(Table::new(schema, vec![all]))
}

/// The columns that say what a value is of, which are those of `summary.csv`.
#[derive(Default)]
struct Labels([StringBuilder; 4]);

impl Labels {
    const NAMES: [&str; 4] = ["discipline", "kind", "name", "metric"];

    fn fields() -> Vec<Field> {
        Labels::NAMES.map(|name| words(name, false)).to_vec()
    }

    fn add(&mut self, discipline: &str, kind: &str, name: &str, metric: &str) {
        for (words, word) in std::iter::zip(&mut self.0, [discipline, kind, name, metric]) {
            words.append_value(word);
        }
    }

    fn columns(self) -> Vec<ArrayRef> {
        self.0.map(|mut words| Arc::new(words.finish()) as ArrayRef).to_vec()
    }
}
