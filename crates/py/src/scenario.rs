//! Scenarios: their text, where the files lie that they name, and what was read of both.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tidegate_core::Span;
use tidegate_sim::scenario::file::{self, Overrides};
use tidegate_sim::scenario::{self, DisciplineChoice};
use tidegate_store::Source;
use tidegate_store::study::distinct;
use tidegate_study::builtin::{self, SCENARIOS};

use crate::error::{of_file, of_request, of_study};

/// A link, who sends over it, and the disciplines to compare there.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Scenario {
    source: Source,
    scenario: Arc<scenario::Scenario>,
}

impl Scenario {
    fn of(py: Python<'_>, source: Source) -> PyResult<Scenario> {
        let scenario = source.scenario(&Overrides::default());
        let scenario = scenario.map_err(|error| of_file(py, &error))?;
        Ok(Scenario { source, scenario: Arc::new(scenario) })
    }

    /// How it was written.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The scenario, with what is asked for in place of what its text says.
    pub(crate) fn with(
        &self,
        py: Python<'_>,
        overrides: &Overrides,
    ) -> PyResult<Arc<scenario::Scenario>> {
        let Overrides { duration: None, seeds: None, disciplines: None } = overrides else {
            let read = self.source.scenario(overrides);
            return read.map(Arc::new).map_err(|error| of_file(py, &error));
        };
        Ok(self.scenario.clone())
    }
}

/// One form of the present folder, so that equal scenarios are equal.
pub(crate) fn folder_or_here(folder: Option<PathBuf>) -> PathBuf {
    folder.filter(|it| !it.as_os_str().is_empty()).unwrap_or_else(|| ".".into())
}

/// The file with the tables and keys of this JSON.
pub(crate) fn source_of_json(text: &str, name: &str, folder: Option<PathBuf>) -> PyResult<Source> {
    let wrong = |error: &dyn std::fmt::Display| of_request(format!("{name}: {error}"));
    let value: toml::Table = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    let text = toml::to_string(&value).map_err(|error| wrong(&error))?;
    Ok(Source { name: name.into(), text, folder: folder_or_here(folder) })
}

#[pymethods]
impl Scenario {
    /// Reads the text of a scenario file. Files that it names are relative to `folder`.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "scenario", folder = None))]
    fn parse(
        py: Python<'_>,
        text: String,
        name: &str,
        folder: Option<PathBuf>,
    ) -> PyResult<Scenario> {
        Scenario::of(py, Source { name: name.into(), text, folder: folder_or_here(folder) })
    }

    /// Reads a scenario from JSON that has the tables and keys of a scenario file.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "scenario", folder = None))]
    fn from_json(
        py: Python<'_>,
        text: &str,
        name: &str,
        folder: Option<PathBuf>,
    ) -> PyResult<Scenario> {
        Scenario::of(py, source_of_json(text, name, folder)?)
    }

    /// Reads a scenario file. Files that it names are relative to its folder.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "it is made of what Python calls a path")]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Scenario> {
        Scenario::of(py, Source::read(&path).map_err(|error| of_file(py, &error))?)
    }

    /// One of those that come with Tidegate.
    #[staticmethod]
    fn builtin(py: Python<'_>, name: &str) -> PyResult<Scenario> {
        let source = Source::builtin(name).ok_or_else(|| {
            let expected = builtin::expected(name, SCENARIOS);
            of_request(format!("found unknown scenario '{name}', expected {expected}"))
        });
        Scenario::of(py, source?)
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
        &self.scenario.title
    }

    /// What it shows.
    #[getter]
    fn description(&self) -> &str {
        &self.scenario.description
    }

    /// Simulated time of each run, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.scenario.duration.as_seconds()
    }

    /// Flows that began before this are not reported, in seconds.
    #[getter]
    fn warm_up_s(&self) -> f64 {
        self.scenario.warm_up.as_seconds()
    }

    /// Each discipline runs once with each.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.scenario.seeds.clone()
    }

    /// The disciplines to compare, by their labels.
    #[getter]
    fn disciplines(&self) -> Vec<&str> {
        self.scenario.disciplines.iter().map(|choice| choice.label.as_str()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Scenario '{}': {}>", self.source.name, self.scenario.title)
    }

    /// Equal scenarios have the same text, and find their files in the same folder.
    fn __eq__(&self, other: &Scenario) -> bool {
        self.source.text == other.source.text && self.source.folder == other.source.folder
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (&self.source.text, &self.source.folder).hash(&mut hasher);
        hasher.finish()
    }

    /// How a scenario gets into another process: as its text.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rebuild = py.import("tidegate._native")?.getattr("_scenario_of")?;
        let parts = (self.text(), self.name(), self.folder());
        Ok((rebuild, parts.into_pyobject(py)?))
    }
}

/// A scenario from its parts, as `pickle` wants them.
#[pyfunction]
pub(crate) fn _scenario_of(
    py: Python<'_>,
    text: String,
    name: String,
    folder: PathBuf,
) -> PyResult<Scenario> {
    Scenario::of(py, Source { name, text, folder })
}

/// The scenarios that come with Tidegate: names and titles.
#[pyfunction]
pub(crate) fn builtin_scenarios() -> Vec<(&'static str, String)> {
    SCENARIOS.iter().map(|builtin| (builtin.name, builtin.scenario().title)).collect()
}

/// The JSON Schema of scenario files.
#[pyfunction]
pub(crate) fn scenario_schema() -> String {
    file::json_schema()
}

/// What to change in a scenario for a comparison.
pub(crate) fn overrides(
    py: Python<'_>,
    duration: Option<&str>,
    seeds: Option<Vec<u64>>,
    disciplines: Option<Vec<DisciplineChoice>>,
) -> PyResult<Overrides> {
    let duration = duration.map(|text| {
        text.parse::<Span>().map_err(|_| {
            let message = format!("duration: found '{text}', expected a time, for example '30 s'");
            of_request(message)
        })
    });
    if seeds.as_ref().is_some_and(Vec::is_empty) {
        return Err(of_request("seeds: found none, expected at least one".into()));
    }
    let labels = disciplines.iter().flatten().map(|choice| choice.label.as_str());
    let told_apart = distinct(labels, seeds.as_deref().unwrap_or_default());
    told_apart.map_err(|error| of_study(py, &error))?;
    Ok(Overrides { duration: duration.transpose()?, seeds, disciplines })
}

/// A discipline as the command line takes it.
pub(crate) fn discipline(text: &str) -> PyResult<DisciplineChoice> {
    text.parse().map_err(|error| of_request(format!("disciplines: {error}")))
}
