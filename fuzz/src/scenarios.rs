//! Any text as a scenario file, or as a file of flows, of a gateway or of a study.
//!
//! A bug is a panic, an error of more than one line, a scenario that promises
//! routes and has none, or flows that change when they are written in one line and
//! read again, as manifests do.

use std::io::{self, Read};
use std::path::Path;

use tidegate_sim::scenario::file::{self, DataFiles};
use tidegate_store::{Study, Table};

/// Every file that a scenario may name contains the same few lines, which are a
/// size distribution; other readers have their own targets.
struct OneFile;

impl DataFiles for OneFile {
    fn open(&self, _name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(&b"size_bytes,cumulative_probability\n100,0.5\n2000,1\n"[..]))
    }
}

/// Scenario files.
///
/// # Panics
/// At a bug.
pub fn scenario(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match file::parse("file", text, &OneFile) {
        Ok(scenario) => {
            assert!(scenario.duration.0 > 0 && !scenario.disciplines.is_empty());
            for (from, to) in scenario.pairs() {
                let nodes = 0..scenario.nodes.len();
                assert!(nodes.contains(&usize::from(from.0)) && nodes.contains(&usize::from(to.0)));
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

/// Files of flows.
///
/// # Panics
/// At a bug.
pub fn flows(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match file::flows::parse("file", text) {
        Ok(contracts) => assert_eq!(contracts.to_string().parse(), Ok(contracts)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

/// Files of gateways.
///
/// # Panics
/// At a bug.
pub fn gateway(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match file::gateway::parse("file", text, &OneFile) {
        Ok(comparison) => {
            assert!(!comparison.ways.is_empty() && !comparison.seeds.is_empty());
            assert!(!comparison.setup.classes.is_empty());
            assert!(comparison.setup.warm_up < comparison.setup.duration);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

/// Files of studies, and what a worker gets of one. Whatever runs a study has, each has its
/// place, in a folder for each value.
///
/// # Panics
/// At a bug.
pub fn study(input: &[u8]) {
    const MOST: usize = 200;

    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(error) = tidegate_store::file::parse("file", text, Path::new("nowhere")) {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
    let Ok(study) = Study::parse(text) else { return };
    assert_eq!(study.run(study.size()), None);
    for (index, run) in study.runs().take(MOST).enumerate() {
        assert_eq!(run.index, index);
        let path = study.path(Table::Runs, run);
        assert_eq!(path.matches('/').count(), study.over().len() + 2, "{path}");
    }
}
