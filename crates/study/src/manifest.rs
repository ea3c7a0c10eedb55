//! `manifest.json`: everything from which a comparison was made, so that it can
//! be repeated byte for byte.
//!
//! There is one form for everything that can be compared. Facts without
//! influence on the results are separate, under `made`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tidegate_sim::requests::Way;
use tidegate_sim::scenario::DisciplineChoice;

use crate::data::{DataFile, sha256_of};
use crate::experiment::{About, Study};
use crate::machine::Machine;

/// The name of the file.
pub const NAME: &str = "manifest.json";

/// The inputs of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program.
    pub tidegate: String,
    /// The scenario or gateway, in its own words.
    #[serde(rename = "scenario", alias = "gateway")]
    pub source: SourceText,
    /// The files that it names.
    pub data: Vec<DataFile>,
    /// Simulated time of each run.
    pub duration_ns: u64,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The contenders, with all parameters.
    #[serde(alias = "disciplines")]
    pub contenders: Vec<Contender>,
    /// Whether runs are missing.
    pub partial: bool,
    /// The runs from which the results were computed.
    pub runs: Vec<Run>,
    /// SHA-256 of each result.
    pub results: BTreeMap<String, String>,
    /// How it was made; without influence on the results.
    pub made: Made,
    /// The keys that a sweep has varied, which its own form of this writes.
    #[serde(default, skip_serializing)]
    over: Option<IgnoredAny>,
}

/// A scenario or gateway, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// The file's name, for messages.
    pub name: String,
    /// The name of its results.
    pub stem: String,
    /// The TOML.
    pub text: String,
}

/// A contender with all its parameters, in the form of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// Its name in results.
    pub label: String,
    /// Its name among those that can be compared.
    pub name: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The label of the contender.
    #[serde(alias = "discipline")]
    pub contender: String,
    /// The seed.
    pub seed: u64,
    /// Simulated time that it reached.
    pub reached_ns: u64,
    /// Events handled, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
}

/// How results were made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Made {
    /// The command line.
    pub command: Vec<String>,
    /// Runs at the same time.
    pub threads: usize,
    /// How long it took.
    pub wall_s: f64,
    /// What it ran on.
    pub machine: Machine,
}

impl Manifest {
    /// A manifest for a comparison before its runs, without results.
    pub fn of<S: Study>(
        study: &S,
        source: SourceText,
        data: Vec<DataFile>,
        threads: usize,
    ) -> Manifest {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let command = words.collect();
        Manifest {
            tidegate: env!("CARGO_PKG_VERSION").into(),
            source,
            data,
            duration_ns: study.duration().0,
            seeds: study.seeds().to_vec(),
            contenders: study.contenders(),
            partial: true,
            runs: Vec::new(),
            results: BTreeMap::new(),
            made: Made { command, threads, wall_s: 0.0, machine: Machine::this() },
            over: None,
        }
    }

    /// Records the `runs`.
    pub fn note_runs<S: Study>(&mut self, study: &S, runs: &[S::Run]) {
        let note = |run: &S::Run| {
            let About { label, seed, reached, events } = study.about(run);
            Run { contender: label.into(), seed, reached_ns: reached.0, events }
        };
        self.runs = runs.iter().map(note).collect();
    }

    /// Records the SHA-256 of each of these results in `folder`.
    ///
    /// # Errors
    /// The name of one that cannot be read, and why.
    pub fn note_results<'a>(
        &mut self,
        folder: &Path,
        files: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), (&'a str, io::Error)> {
        for name in files {
            let hash = sha256_of(&folder.join(name)).map_err(|reason| (name, reason))?;
            self.results.insert(name.into(), hash);
        }
        Ok(())
    }

    /// Reads the manifest at `path`.
    ///
    /// # Errors
    /// One line that names the file and its error.
    pub fn read(path: &Path) -> Result<Manifest, String> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|reason| format!("{name}: cannot be read: {reason}"))?;
        serde_json::from_str(&text)
            .map_err(|error| format!("{name}: is not a manifest of a comparison: {error}"))
    }

    /// Whether it is of a sweep, which is more than one comparison.
    #[must_use]
    pub fn is_of_sweep(&self) -> bool {
        self.over.is_some()
    }

    /// The names of the results that differ in `now`.
    #[must_use]
    pub fn changed(&self, now: &Manifest) -> Vec<&str> {
        let changed =
            self.results.iter().filter(|(name, hash)| now.results.get(*name) != Some(hash));
        changed.map(|(name, _)| name.as_str()).collect()
    }
}

impl From<&DisciplineChoice> for Contender {
    fn from(choice: &DisciplineChoice) -> Contender {
        let parameters = choice.parameters().into_iter();
        Contender {
            label: choice.label.clone(),
            name: choice.entry.name.into(),
            parameters: parameters.map(|(name, text)| (name.into(), text)).collect(),
        }
    }
}

impl From<&Way> for Contender {
    fn from(way: &Way) -> Contender {
        let parameters = way.parameters().into_iter();
        Contender {
            label: way.label.clone(),
            name: way.name(),
            parameters: parameters.map(|(name, text)| (name.into(), text)).collect(),
        }
    }
}

impl Contender {
    /// The discipline that it is.
    ///
    /// # Errors
    /// When there is none of this name with these parameters.
    pub fn discipline(&self) -> Result<DisciplineChoice, String> {
        let settings: Vec<_> =
            self.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        DisciplineChoice::new(&self.name, Some(&self.label), &settings)
            .map_err(|error| error.to_string())
    }
}
