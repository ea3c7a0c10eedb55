//! What Python's package `tidegate` calls: a thin layer over `tidegate-study`.
//!
//! A scenario crosses the border as text, in the form of a scenario file: so there is one
//! reader with one set of errors, and a scenario can be sent to another process as it is.
//! Results cross it as tables of Arrow, which Python takes over without copying
//! (`table`). While runs go on, other threads of Python do too (`listening`).

mod audit;
mod comparison;
mod custom;
mod differences;
mod disciplines;
mod error;
mod estimates;
mod gateway;
mod listening;
mod recorded;
mod scenario;
mod study;
mod table;

use pyo3::prelude::*;

/// The module `tidegate._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::audit::check_discipline;
    #[pymodule_export]
    use super::comparison::{Comparison, compare};
    #[pymodule_export]
    use super::custom::Packet;
    #[pymodule_export]
    use super::differences::differences;
    #[pymodule_export]
    use super::disciplines::{disciplines, ways};
    #[pymodule_export]
    use super::error::{ScenarioError, TidegateError};
    #[pymodule_export]
    use super::gateway::{
        _gateway_of, Gateway, WaysComparison, builtin_gateways, compare_ways, gateway_schema,
    };
    #[pymodule_export]
    use super::scenario::{_scenario_of, Scenario, builtin_scenarios, scenario_schema};
    #[pymodule_export]
    use super::study::{OverKey, StoredTable, Work};
    #[pymodule_export]
    use super::table::Table;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::error::init(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
