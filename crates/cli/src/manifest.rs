//! `manifest.json`: everything that a comparison came from, so that
//! `tidegate compare --from` can repeat it to the byte.
//!
//! What has no influence on the results stands apart, under `made`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tidegate_sim::scenario::file::Overrides;
use tidegate_sim::scenario::{DisciplineChoice, Scenario};

use crate::failure::Failure;
use crate::inputs::{DataFile, Input, Recorded, sha256_of};
use crate::machine::Machine;

/// The name of the file.
pub(crate) const NAME: &str = "manifest.json";

/// What a comparison came from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Version of the program.
    pub(crate) tidegate: String,
    /// The scenario as it was written.
    pub(crate) scenario: ScenarioText,
    /// The files that it names.
    pub(crate) data: Vec<DataFile>,
    /// Simulated time of each run.
    pub(crate) duration_ns: u64,
    /// The seeds.
    pub(crate) seeds: Vec<u64>,
    /// The disciplines, with all their parameters.
    pub(crate) disciplines: Vec<Discipline>,
    /// Whether runs are missing.
    pub(crate) partial: bool,
    /// The runs that the results are made of.
    pub(crate) runs: Vec<Run>,
    /// SHA-256 of each result.
    pub(crate) results: BTreeMap<String, String>,
    /// How it was made; without influence on the results.
    pub(crate) made: Made,
}

/// A scenario or gateway as it was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ScenarioText {
    /// The file's name, for messages.
    pub(crate) name: String,
    /// What results are called after.
    pub(crate) stem: String,
    /// The TOML.
    pub(crate) text: String,
}

/// A discipline with all its parameters, as they would be written in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Discipline {
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) parameters: BTreeMap<String, String>,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) discipline: String,
    pub(crate) seed: u64,
    /// Simulated time that it came to.
    pub(crate) reached_ns: u64,
    /// Events handled.
    pub(crate) events: u64,
}

/// How results were made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) command: Vec<String>,
    pub(crate) threads: usize,
    pub(crate) wall_s: f64,
    pub(crate) machine: Machine,
}

impl ScenarioText {
    pub(crate) fn of(input: &Input) -> ScenarioText {
        let Input { name, stem, text, .. } = input;
        ScenarioText { name: name.clone(), stem: stem.clone(), text: text.clone() }
    }

    /// The scenario with the files that it names, not parsed yet.
    pub(crate) fn input(&self, data: &[DataFile]) -> Input {
        Input {
            name: self.name.clone(),
            stem: self.stem.clone(),
            text: self.text.clone(),
            data: Box::new(Recorded(data.into())),
            folder: None,
        }
    }
}

impl Made {
    /// What is made now, and has taken no time yet.
    pub(crate) fn here(threads: usize) -> Made {
        let command = std::env::args().collect();
        Made { command, threads, wall_s: 0.0, machine: Machine::this() }
    }
}

/// Reads the manifest at `path`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|reason| Failure::Input(format!("{name}: cannot be read: {reason}")))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::Input(format!("{name}: is not a manifest of a comparison: {error}"))
    })
}

/// The SHA-256 of each of the files in `folder`.
pub(crate) fn hashes(folder: &Path, files: &[&str]) -> Result<BTreeMap<String, String>, Failure> {
    let of = |name: &&str| {
        let path = folder.join(name);
        let hash = sha256_of(&path).map_err(|reason| Failure::unwritable(&path, &reason))?;
        Ok((name.to_string(), hash))
    };
    files.iter().map(of).collect()
}

/// Says whether results are those that `version` of the program made earlier.
pub(crate) fn check(
    version: &str,
    earlier: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let changed = earlier.iter().filter(|(name, hash)| now.get(*name) != Some(hash));
    let changed: Vec<_> = changed.map(|(name, _)| name.as_str()).collect();
    if changed.is_empty() {
        eprintln!("All {} results are the same as before, to the byte.", earlier.len());
        return Ok(());
    }
    let by = match env!("CARGO_PKG_VERSION") {
        this if this == version => String::new(),
        this => format!(" (made by tidegate {version}, this is {this})"),
    };
    Err(Failure::Other(format!("not the same as before{by}: {}", changed.join(", "))))
}

impl Discipline {
    pub(crate) fn of(choice: &DisciplineChoice) -> Discipline {
        let parameters = choice.parameters().into_iter();
        Discipline {
            label: choice.label.clone(),
            name: choice.entry.name.into(),
            parameters: parameters.map(|(name, text)| (name.into(), text)).collect(),
        }
    }

    fn choice(&self) -> Result<DisciplineChoice, String> {
        let settings: Vec<_> =
            self.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        DisciplineChoice::new(&self.name, Some(&self.label), &settings)
            .map_err(|error| error.to_string())
    }
}

impl Manifest {
    /// The scenario that it is about, not parsed yet.
    pub(crate) fn input(&self) -> Input {
        self.scenario.input(&self.data)
    }

    /// What was other than the scenario file says.
    pub(crate) fn overrides(&self) -> Result<Overrides, Failure> {
        let choices = self.disciplines.iter().map(Discipline::choice);
        let disciplines = choices.collect::<Result<_, _>>().map_err(Failure::Input)?;
        Ok(Overrides {
            duration: Some(Span(self.duration_ns)),
            seeds: Some(self.seeds.clone()),
            disciplines: Some(disciplines),
        })
    }

    /// A manifest of what is going to be run, without results.
    pub(crate) fn of(
        input: &Input,
        scenario: &Scenario,
        data: Vec<DataFile>,
        threads: usize,
    ) -> Manifest {
        Manifest {
            tidegate: env!("CARGO_PKG_VERSION").into(),
            scenario: ScenarioText::of(input),
            data,
            duration_ns: scenario.duration.0,
            seeds: scenario.seeds.clone(),
            disciplines: scenario.disciplines.iter().map(Discipline::of).collect(),
            partial: true,
            runs: Vec::new(),
            results: BTreeMap::new(),
            made: Made::here(threads),
        }
    }
}
