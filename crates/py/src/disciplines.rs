//! The registries, as Python needs them to make a class of each discipline and each way.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidegate_core::registry;
use tidegate_core::request::catalogue::SCHEDULERS;
use tidegate_core::setting::{Kind, Parameter};
use tidegate_sim::requests::{RIVALS, SHAPED};

/// Every discipline, as in the registry: `name`, `summary`, `source`, and `parameters`, each
/// with `name`, `help`, `type`, `default` and `expected`.
#[pyfunction]
pub(crate) fn disciplines(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let all = registry::DISCIPLINES.iter();
    all.map(|it| facts(py, it.name, it.summary, it.source, it.parameters)).collect()
}

/// Every way of sharing a gateway's link in the same form; the one whose name ends in "-" stands
/// for each discipline as a shaper.
#[pyfunction]
pub(crate) fn ways(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let schedulers = SCHEDULERS.iter().map(|it| (it.name, it.summary, it.source, it.parameters));
    let rivals = RIVALS.iter().chain([&SHAPED]);
    let rivals = rivals.map(|it| (it.name, it.summary, it.source, it.parameters));
    schedulers
        .chain(rivals)
        .map(|(name, summary, source, parameters)| facts(py, name, summary, source, parameters))
        .collect()
}

fn facts<'py>(
    py: Python<'py>,
    name: &str,
    summary: &str,
    source: &str,
    parameters: &[Parameter],
) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("name", name)?;
    facts.set_item("summary", summary)?;
    facts.set_item("source", source)?;
    let parameters = parameters.iter().map(|it| of_parameter(py, it));
    facts.set_item("parameters", parameters.collect::<PyResult<Vec<_>>>()?)?;
    Ok(facts)
}

fn of_parameter<'py>(py: Python<'py>, parameter: &Parameter) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("name", parameter.name)?;
    facts.set_item("help", parameter.help)?;
    let kind = match &parameter.kind {
        Kind::Count { .. } => "int",
        Kind::Number { .. } => "float",
        Kind::Switch => "bool",
        Kind::Choice(words) => {
            facts.set_item("words", words.to_vec())?;
            "word"
        }
        // Quantities are text with a unit, as in files.
        Kind::Span { .. } | Kind::Bytes { .. } | Kind::Amount | Kind::Bandwidth { .. } => "str",
        Kind::Contracts => "str",
    };
    facts.set_item("type", kind)?;
    facts.set_item("default", parameter.default)?;
    facts.set_item("expected", parameter.kind.expected())?;
    Ok(facts)
}
