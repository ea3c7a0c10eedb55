//! The registry, as Python needs it to make a class of each discipline.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidegate_core::entry::Entry;
use tidegate_core::registry;
use tidegate_core::setting::{Kind, Parameter};

/// Every discipline, as in the registry: `name`, `summary`, `source`, and `parameters`, each
/// with `name`, `help`, `type`, `default` and `expected`.
#[pyfunction]
pub(crate) fn disciplines(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let of_entry = |entry: &'static Entry| {
        let facts = PyDict::new(py);
        facts.set_item("name", entry.name)?;
        facts.set_item("summary", entry.summary)?;
        facts.set_item("source", entry.source)?;
        let parameters = entry.parameters.iter().map(|it| of_parameter(py, it));
        facts.set_item("parameters", parameters.collect::<PyResult<Vec<_>>>()?)?;
        Ok(facts)
    };
    registry::DISCIPLINES.iter().map(of_entry).collect()
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
