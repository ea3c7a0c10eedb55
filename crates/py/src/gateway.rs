//! Gateways on the users' side, and the ways of sharing their link.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tidegate_sim::scenario::file::{Folder, gateway};
use tidegate_store::Source;
use tidegate_store::rows::Kept;
use tidegate_store::study::distinct;
use tidegate_study::builtin::{self, GATEWAYS};
use tidegate_study::columns::{Names, WAY};
use tidegate_study::requests::Summary;
use tidegate_study::shipped::FolderAndShipped;
use tidegate_study::{experiment, machine};

use crate::error::{TidegateError, of_file, of_request, of_study};
use crate::estimates::{self, Measured};
use crate::recorded::Recorded;
use crate::scenario::{folder_or_here, source_of_json};
use crate::table::Table;

/// A gateway's link, its clients and servers, and the ways to compare there.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Gateway {
    source: Source,
    gateway: Arc<gateway::Comparison>,
}

impl Gateway {
    fn of(py: Python<'_>, source: Source) -> PyResult<Gateway> {
        let data = FolderAndShipped(Folder(source.folder.clone()));
        let read = gateway::parse(&source.name, &source.text, &data);
        let gateway = Arc::new(read.map_err(|error| of_file(py, &error))?);
        Ok(Gateway { source, gateway })
    }
}

#[pymethods]
impl Gateway {
    /// Reads the text of a gateway's file. Files that it names are relative to `folder`.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "gateway", folder = None))]
    fn parse(
        py: Python<'_>,
        text: String,
        name: &str,
        folder: Option<PathBuf>,
    ) -> PyResult<Gateway> {
        Gateway::of(py, Source { name: name.into(), text, folder: folder_or_here(folder) })
    }

    /// Reads a gateway from JSON that has the tables and keys of a gateway's file.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "gateway", folder = None))]
    fn from_json(
        py: Python<'_>,
        text: &str,
        name: &str,
        folder: Option<PathBuf>,
    ) -> PyResult<Gateway> {
        Gateway::of(py, source_of_json(text, name, folder)?)
    }

    /// Reads a gateway's file. Files that it names are relative to its folder.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "it is made of what Python calls a path")]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Gateway> {
        Gateway::of(py, Source::read(&path).map_err(|error| of_file(py, &error))?)
    }

    /// One of those that come with Tidegate.
    #[staticmethod]
    fn builtin(py: Python<'_>, name: &str) -> PyResult<Gateway> {
        let Some(found) = builtin::find(GATEWAYS, name) else {
            let expected = builtin::expected(name, GATEWAYS);
            let message = format!("found unknown gateway '{name}', expected {expected}");
            return Err(of_request(message));
        };
        let (text, folder) = (found.portable_gateway(), folder_or_here(None));
        Gateway::of(py, Source { name: name.into(), text, folder })
    }

    /// What messages call it.
    #[getter]
    fn name(&self) -> &str {
        &self.source.name
    }

    /// The text of its file.
    #[getter]
    fn text(&self) -> &str {
        &self.source.text
    }

    /// Where files that it names lie.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.source.folder.clone()
    }

    /// Its title.
    #[getter]
    fn title(&self) -> &str {
        &self.gateway.title
    }

    /// What it shows.
    #[getter]
    fn description(&self) -> &str {
        &self.gateway.description
    }

    /// Each way runs once with each.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.gateway.seeds.clone()
    }

    /// The ways to compare, by their labels.
    #[getter]
    fn ways(&self) -> Vec<&str> {
        self.gateway.ways.iter().map(|way| way.label.as_str()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Gateway '{}': {}>", self.source.name, self.gateway.title)
    }

    /// Equal gateways have the same text, and find their files in the same folder.
    fn __eq__(&self, other: &Gateway) -> bool {
        self.source.text == other.source.text && self.source.folder == other.source.folder
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (&self.source.text, &self.source.folder).hash(&mut hasher);
        hasher.finish()
    }

    /// How a gateway gets into another process: as its text.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rebuild = py.import("tidegate._native")?.getattr("_gateway_of")?;
        Ok((rebuild, (self.text(), self.name(), self.folder()).into_pyobject(py)?))
    }
}

/// A gateway from its parts, as `pickle` wants them.
#[pyfunction]
pub(crate) fn _gateway_of(
    py: Python<'_>,
    text: String,
    name: String,
    folder: PathBuf,
) -> PyResult<Gateway> {
    Gateway::of(py, Source { name, text, folder })
}

/// The gateways that come with Tidegate.
#[pyfunction]
pub(crate) fn builtin_gateways() -> Vec<&'static str> {
    GATEWAYS.iter().map(|builtin| builtin.name).collect()
}

/// The JSON Schema of files of gateways.
#[pyfunction]
pub(crate) fn gateway_schema() -> String {
    gateway::json_schema()
}

/// The results of ways of sharing a gateway's link.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct WaysComparison {
    summary: Summary,
    flows: Py<Table>,
    links: Py<Table>,
}

#[pymethods]
impl WaysComparison {
    /// One row for each transfer.
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
        estimates::runs(WAY, values(&self.summary))
    }

    /// One row for each measure of each way: the mean or median over the seeds, with the 95%
    /// interval.
    #[getter]
    fn summary(&self) -> PyResult<Table> {
        estimates::summary(WAY, values(&self.summary))
    }

    /// The title of the gateway.
    #[getter]
    fn title(&self) -> &str {
        &self.summary.title
    }

    /// Each way ran once with each.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.summary.seeds.clone()
    }

    /// The ways, by their labels.
    #[getter]
    fn ways(&self) -> Vec<&str> {
        self.summary.ways.iter().map(|it| it.label.as_str()).collect()
    }

    /// All that is known, as JSON; fields are those of `tidegate requests compare --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.summary)
            .map_err(|error| TidegateError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        let ways = self.ways().join(", ");
        format!("<WaysComparison '{}': {ways}; {} seeds>", self.title(), self.seeds().len())
    }
}

/// Runs `gateway` under each way and seed. What is given stands in place of what its file says.
#[pyfunction]
#[pyo3(signature = (gateway, *, seeds = None, threads = None, flows = true, links = true,
    progress = None))]
pub(crate) fn compare_ways(
    py: Python<'_>,
    gateway: &Gateway,
    seeds: Option<Vec<u64>>,
    threads: Option<NonZeroUsize>,
    flows: bool,
    links: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<WaysComparison> {
    let mut comparison = (*gateway.gateway).clone();
    if let Some(seeds) = seeds {
        if seeds.is_empty() {
            return Err(of_request("seeds: found none, expected at least one".into()));
        }
        distinct([], &seeds).map_err(|error| of_study(py, &error))?;
        comparison.seeds = seeds;
    }
    let (sources, links_of) = (comparison.setup.source_names(), comparison.setup.link_names());
    let names = Names { contender: WAY, sources, links: links_of };
    let threads = threads.map_or_else(machine::cores, NonZeroUsize::get);
    let recorded = Recorded::new(names, Kept { flows, links });
    let runs = recorded.run(py, &comparison, threads, &AtomicBool::new(false), progress)?;
    let places = experiment::places(&comparison, &experiment::jobs(&comparison), &runs);
    let (flows, links) = recorded.batches(&places);
    Ok(WaysComparison {
        summary: Summary::of(&gateway.source.name, &comparison, &runs),
        flows: Py::new(py, Table::new(flows.0, flows.1))?,
        links: Py::new(py, Table::new(links.0, links.1))?,
    })
}

/// What the measures say of each way.
fn values(summary: &Summary) -> impl Iterator<Item = Measured<'_>> {
    summary.ways.iter().flat_map(|way| {
        way.values().map(|(kind, name, metric, value)| Measured {
            contender: &way.label,
            kind,
            name: name.into(),
            metric,
            value,
        })
    })
}
