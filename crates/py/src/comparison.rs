//! Comparisons: all runs of a scenario, on all cores, while the rest of Python goes on.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::PyType;
use tidegate_store::rows::Kept;
use tidegate_study::columns::{DISCIPLINE, Names};
use tidegate_study::verdict::Verdict;
use tidegate_study::{comparison, experiment, machine};

use crate::custom::Registered;
use crate::error::TidegateError;
use crate::estimates::{self, Measured};
use crate::recorded::Recorded;
use crate::scenario::{Scenario, discipline, overrides};
use crate::table::Table;

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
        estimates::runs(DISCIPLINE, values(&self.comparison))
    }

    /// One row for each measure of each discipline: the mean or median over the seeds, with
    /// the 95% interval.
    #[getter]
    fn summary(&self) -> PyResult<Table> {
        estimates::summary(DISCIPLINE, values(&self.comparison))
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
            Contender::Text(text) => discipline(&text),
            Contender::Class(class) => {
                custom.push(Registered::new(class, stop.clone()));
                custom.last().expect("it was put there").choice(py)
            }
        });
        choices.collect::<PyResult<Vec<_>>>()
    });
    let scenario = scenario.with(py, &overrides(py, duration, seeds, choices.transpose()?)?)?;
    let threads = threads.map_or_else(machine::cores, NonZeroUsize::get);
    let recorded = Recorded::new(Names::of(&scenario), Kept { flows, links });
    let runs = recorded.run(py, &*scenario, threads, &stop, progress);
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

/// What the measures say of each discipline.
fn values(comparison: &comparison::Comparison) -> impl Iterator<Item = Measured<'_>> {
    comparison.disciplines.iter().flat_map(|discipline| {
        discipline.values().map(|(kind, name, metric, value)| Measured {
            contender: &discipline.label,
            kind,
            name,
            metric,
            value,
        })
    })
}
