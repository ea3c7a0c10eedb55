//! Points that are complete, each a file under the key of everything that determines it.
//!
//! What lies there may be of another program, half written or changed by hand: whatever is
//! not a result is measured again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use tidegate_sim::scenario::Scenario;

use super::Found;
use crate::cache::Content;

/// A result with what made it.
#[derive(Serialize, Deserialize)]
struct Stored<F> {
    program: String,
    found: F,
}

/// The program, so that the results of one are not taken for those of another: two builds
/// of one version may differ.
fn program() -> String {
    let facts = std::env::current_exe().and_then(fs::metadata).and_then(|it| {
        let changed = it.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(format!("{} bytes of {} ns", it.len(), changed.as_nanos()))
    });
    format!("{} {}", env!("CARGO_PKG_VERSION"), facts.unwrap_or_default())
}

fn path(folder: &Path, scenario: &Scenario) -> PathBuf {
    folder.join(format!("{}.json", Content::of_all(scenario)))
}

/// The result of `scenario` in `folder`.
pub(super) fn find(folder: &Path, scenario: &Scenario) -> Option<Found> {
    let text = fs::read(path(folder, scenario)).ok()?;
    let stored: Stored<Found> = serde_json::from_slice(&text).ok()?;
    (stored.program == program()).then_some(stored.found)
}

/// Stores the result of `scenario` in `folder`. It appears there complete or not at all.
pub(super) fn keep(folder: &Path, scenario: &Scenario, found: &Found) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = path(folder, scenario);
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, serde_json::to_vec(&Stored { program: program(), found })?)?;
    fs::rename(unfinished, path)
}
