//! Scenarios of the project's folder, and what differs from them in some of their words.

use std::path::{Path, PathBuf};

use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, Folder, ScenarioError};

/// The base case of the survey.
pub(crate) const BASE: &str = "survey/access.toml";

/// A text of the file, and what replaces it.
pub(crate) type Change<'a> = (&'a str, &'a str);

/// The scenario of the file `name` with these changes, one after the other.
///
/// # Panics
/// If the file does not have a text that is to be replaced.
pub(crate) fn of(name: &str, changes: &[Change<'_>]) -> Result<Scenario, ScenarioError> {
    with(name, changes, "")
}

/// The same with `more` at the end of the file.
pub(crate) fn with(
    name: &str,
    changes: &[Change<'_>],
    more: &str,
) -> Result<Scenario, ScenarioError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let mut text = std::fs::read_to_string(&path)
        .map_err(|reason| ScenarioError::Unreadable { file: name.into(), reason })?;
    for (from, to) in changes {
        assert!(text.contains(from), "{name} has no {from}");
        text = text.replace(from, to);
    }
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    file::parse(name, &(text + more), &Folder(folder))
}
