//! Studies: which runs there are, and doing them, here or wherever they were sent.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::RecordBatchReader;
use pyo3::exceptions::{PyIndexError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use tidegate_store::rows::Kept;
use tidegate_store::work::Points;
use tidegate_store::{Asked, Folder, Part, Reading, Run, Study, Table, work};
use tidegate_study::machine;
use tidegate_study::measure::Quantity;
use tidegate_study::sweep::Axis;

use crate::error::{of_request, of_study, other};
use crate::listening::{self, Progress};
use crate::scenario::{Scenario, discipline, overrides};
use crate::table::stream;

/// All runs of a study, and what does them.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Work {
    points: Points,
}

/// A table of a study, which is read from its files, one after the other.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct StoredTable {
    folder: Folder,
    study: Study,
    table: Table,
}

/// A run that was done elsewhere: its place, and its parts or what was wrong.
type Outcome<'py> = (usize, Option<Vec<Bound<'py, PyBytes>>>, Option<String>);

/// The values of a key.
#[derive(FromPyObject)]
enum Values {
    /// As on the command line, for example `10 ms..300 ms:6`.
    Text(String),
    List(Vec<String>),
}

/// A key that varies, and its values.
#[pyclass(frozen, get_all, module = "tidegate._native")]
pub(crate) struct OverKey {
    /// The path in the scenario, or a short name.
    key: String,
    /// As they were written.
    values: Vec<String>,
    /// As numbers of `unit`, if they are ascending ones.
    numbers: Option<Vec<f64>>,
    /// `s`, `bit/s`, `B`, or nothing.
    unit: &'static str,
}

impl OverKey {
    fn of(axis: &Axis) -> OverKey {
        let (key, values) = (axis.key.clone(), axis.values.clone());
        let scale = axis.scale();
        let unit = scale.as_ref().map_or("", |scale| match scale.quantity {
            Quantity::Time => "s",
            Quantity::Rate => "bit/s",
            Quantity::Size => "B",
            Quantity::Share | Quantity::Plain => "",
        });
        OverKey { key, values, numbers: scale.map(|it| it.values), unit }
    }
}

impl Work {
    fn of(study: Study) -> Work {
        Work { points: Points::new(study, machine::cores()) }
    }

    fn study(&self) -> &Study {
        self.points.study()
    }

    fn run_at(&self, index: usize) -> PyResult<Run> {
        self.study().run(index).ok_or_else(|| {
            let size = self.study().size();
            PyIndexError::new_err(format!("found run {index}, expected less than {size}"))
        })
    }
}

#[pymethods]
impl Work {
    /// The study of `scenario` over these keys with their values. Every point of it is read.
    #[new]
    #[pyo3(signature = (scenario, over, *, disciplines = None, seeds = None, duration = None,
        flows = false, links = false))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of Python's function")]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        over: Vec<(String, Values)>,
        disciplines: Option<Vec<String>>,
        seeds: Option<Vec<u64>>,
        duration: Option<&str>,
        flows: bool,
        links: bool,
    ) -> PyResult<Work> {
        let axis = |(key, values): (String, Values)| match values {
            Values::Text(values) => format!("{key}={values}").parse(),
            Values::List(values) => Axis::new(&key, values),
        };
        let over = over.into_iter().map(axis).collect::<Result<_, _>>();
        let over = over.map_err(|error| of_request(format!("over: {error}")))?;
        let disciplines = disciplines
            .map(|all| all.iter().map(|it| discipline(it)).collect::<PyResult<Vec<_>>>())
            .transpose()?;
        let overrides = overrides(py, duration, seeds, disciplines)?;
        let kept = Kept { flows, links };
        let asked = Asked { source: scenario.source().clone(), over, overrides, kept };
        let study = py.detach(|| Study::new(asked));
        study.map(Work::of).map_err(|error| of_study(py, &error))
    }

    /// The study that `text` has written.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Work> {
        Study::parse(text).map(Work::of).map_err(|error| of_study(py, &error))
    }

    /// The study of all that lies in `folder`.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "it is made of what Python calls a path")]
    fn open(folder: PathBuf) -> PyResult<Work> {
        Folder::open(&folder).map(|(_, study)| Work::of(study)).map_err(|error| other(&error))
    }

    /// Everything that another process needs for the same runs.
    #[getter]
    fn text(&self) -> String {
        self.study().text()
    }

    /// The title of the scenario.
    #[getter]
    fn title(&self) -> &str {
        self.study().title()
    }

    /// The number of runs.
    fn __len__(&self) -> usize {
        self.study().size()
    }

    /// The keys that vary.
    #[getter]
    fn over(&self) -> Vec<OverKey> {
        self.study().over().iter().map(OverKey::of).collect()
    }

    /// The disciplines at each point, by their labels.
    #[getter]
    fn disciplines(&self) -> Vec<&str> {
        self.study().disciplines().iter().map(|it| &*it.label).collect()
    }

    /// The seeds.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.study().seeds().to_vec()
    }

    /// The names of the tables that are kept.
    #[getter]
    fn tables(&self) -> Vec<&'static str> {
        self.study().tables().map(Table::name).collect()
    }

    /// What made the run at this place: keys with their values, and its seed.
    fn labels(&self, index: usize) -> PyResult<(Vec<(&str, &str)>, u64)> {
        let run = self.run_at(index)?;
        Ok((self.study().labels(run).collect(), run.seed))
    }

    /// Makes `folder` ready for these runs.
    #[expect(clippy::needless_pass_by_value, reason = "it is made of what Python calls a path")]
    fn prepare(&self, folder: PathBuf) -> PyResult<()> {
        let prepared = Folder::prepare(&folder, self.study());
        prepared.map(|_| ()).map_err(|error| other(&error))
    }

    /// The places of the runs that `folder` does not have.
    fn missing(&self, py: Python<'_>, folder: PathBuf) -> Vec<usize> {
        let folder = Folder::at(folder);
        py.detach(|| folder.missing(self.study()).iter().map(|run| run.index).collect())
    }

    /// Does all runs that `folder` does not have, and returns the places of those that
    /// failed, with the reasons.
    #[pyo3(signature = (folder, *, threads = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        threads: Option<NonZeroUsize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<(usize, String)>> {
        let threads = threads.map_or_else(machine::cores, NonZeroUsize::get);
        let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        let all = self.study().size().max(1) as f64;
        let part = || done.load(Ordering::Relaxed) as f64 / all;
        let folder = Folder::at(folder);
        let count = || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        let progress = progress.map(|tell| Progress { tell, part: &part });
        let failures = listening::during(py, &stop, progress.as_ref(), || {
            work::run(self.study(), &folder, threads, &stop, &count)
        })?;
        let failures = failures.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(failures.into_iter().map(|it| (it.run.index, it.message)).collect())
    }

    /// Does the runs at these places, and returns their parts or what was wrong.
    fn perform<'py>(&self, py: Python<'py>, indices: Vec<usize>) -> PyResult<Vec<Outcome<'py>>> {
        let never = AtomicBool::new(false);
        let perform = |index| {
            let run = self.run_at(index)?;
            let done = py.detach(|| self.points.perform(run, &never));
            py.check_signals()?;
            let bytes = |part: Part| PyBytes::new(py, &part.bytes);
            Ok(match done {
                Ok(parts) => (index, parts.map(|it| it.into_iter().map(bytes).collect()), None),
                Err(message) => (index, None, Some(message)),
            })
        };
        indices.into_iter().map(perform).collect()
    }

    /// Keeps the parts of the run at this place in `folder`.
    fn keep(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        index: usize,
        parts: Vec<Vec<u8>>,
    ) -> PyResult<()> {
        let run = self.run_at(index)?;
        let parts = std::iter::zip(self.study().tables(), parts);
        let part = |(table, bytes)| Part { path: self.study().path(table, run), bytes };
        let parts: Vec<_> = parts.map(part).collect();
        Ok(py.detach(|| Folder::at(folder).keep(&parts))?)
    }

    /// The table of this name in `folder`.
    fn table(&self, folder: PathBuf, name: &str) -> PyResult<StoredTable> {
        let table = Table::ALL.into_iter().find(|table| table.name() == name);
        let table = table.ok_or_else(|| PyIndexError::new_err(format!("there is no '{name}'")))?;
        let (folder, study) = (Folder::at(folder), self.study().clone());
        folder.read(&study, table).map_err(|error| other(&error))?;
        Ok(StoredTable { folder, study, table })
    }
}

impl StoredTable {
    pub(crate) fn reading(&self) -> PyResult<Reading> {
        self.folder.read(&self.study, self.table).map_err(|error| other(&error))
    }
}

#[pymethods]
impl StoredTable {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> PyResult<Vec<String>> {
        let schema = self.reading()?.schema();
        Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    fn __repr__(&self) -> PyResult<String> {
        let columns = self.column_names()?.join(", ");
        Ok(format!("<Table in {}: {columns}>", self.folder.path().display()))
    }

    /// The PyCapsule interface of Arrow. There is one form of each column, so that of
    /// `requested_schema` is not made.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        stream(py, self.reading()?)
    }
}
