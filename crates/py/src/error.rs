//! Errors as exceptions, with the messages of the command line.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use tidegate_files::FileError;
use tidegate_store::StudyError;

pyo3::create_exception!(
    tidegate,
    TidegateError,
    PyException,
    "What Tidegate refuses, and why. Every exception of its own is one of these."
);
pyo3::create_exception!(
    tidegate,
    ScenarioError,
    TidegateError,
    "A scenario that makes no sense or cannot be read. The attributes 'file', 'line', 'column' \
     (both from 1), 'key', 'found' and 'expected' say where and what; those that are not known \
     are None."
);

/// What a [`ScenarioError`] tells beside its message, if that is known.
const FACTS: [&str; 6] = ["file", "line", "column", "key", "found", "expected"];

/// Says of the class that nothing is known: so it is of exceptions that Python raises, too.
pub(crate) fn init(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<ScenarioError>();
    FACTS.iter().try_for_each(|name| class.setattr(*name, py.None()))
}

/// The exception for a file.
pub(crate) fn of_file(py: Python<'_>, error: &FileError) -> PyErr {
    let exception = of_request(error.to_string());
    let value = exception.value(py);
    let facts = || match error {
        FileError::Unreadable { file, .. } => value.setattr("file", file),
        FileError::Wrong { file, line, column, key, found, expected } => {
            value.setattr("file", file)?;
            value.setattr("line", line)?;
            value.setattr("column", column)?;
            value.setattr("key", (!key.is_empty()).then_some(key))?;
            value.setattr("found", found)?;
            value.setattr("expected", expected)
        }
    };
    facts().err().unwrap_or(exception)
}

/// The exception for something that was asked for and stands in no file.
pub(crate) fn of_request(message: String) -> PyErr {
    ScenarioError::new_err(message)
}

/// The exception for a study that makes no sense.
pub(crate) fn of_study(py: Python<'_>, error: &StudyError) -> PyErr {
    let exception = of_request(error.to_string());
    let value = exception.value(py);
    let facts = || match error {
        StudyError::File(error) => Err(of_file(py, error)),
        StudyError::Over(error) => {
            value.setattr("key", &error.key)?;
            value.setattr("found", &error.found)?;
            value.setattr("expected", &error.expected)
        }
        StudyError::Twice { key, .. } => value.setattr("key", key),
        StudyError::Version(_) | StudyError::Text(_) => Ok(()),
    };
    facts().err().unwrap_or(exception)
}

/// The exception for anything else.
pub(crate) fn other(error: &dyn std::error::Error) -> PyErr {
    TidegateError::new_err(error.to_string())
}
