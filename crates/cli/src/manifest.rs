//! `manifest.json`: everything that a comparison came from, so that
//! `tidegate compare --from` can repeat it to the byte.
//!
//! What has no influence on the results stands apart, under `made`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tidegate_sim::scenario::file::Overrides;
use tidegate_sim::scenario::{DisciplineChoice, Scenario};

use crate::failure::Failure;
use crate::inputs::{DataFile, Input, Recorded};
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

/// A scenario as it was written.
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
    /// Reads the manifest at `path`.
    pub(crate) fn read(path: &Path) -> Result<Manifest, Failure> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|reason| Failure::Input(format!("{name}: cannot be read: {reason}")))?;
        serde_json::from_str(&text).map_err(|error| {
            Failure::Input(format!("{name}: is not a manifest of a comparison: {error}"))
        })
    }

    /// The scenario that it is about, not parsed yet.
    pub(crate) fn input(&self) -> Input {
        Input {
            name: self.scenario.name.clone(),
            stem: self.scenario.stem.clone(),
            text: self.scenario.text.clone(),
            data: Box::new(Recorded(self.data.clone())),
            folder: None,
        }
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
            scenario: ScenarioText {
                name: input.name.clone(),
                stem: input.stem.clone(),
                text: input.text.clone(),
            },
            data,
            duration_ns: scenario.duration.0,
            seeds: scenario.seeds.clone(),
            disciplines: scenario.disciplines.iter().map(Discipline::of).collect(),
            partial: true,
            runs: Vec::new(),
            results: BTreeMap::new(),
            made: Made {
                command: std::env::args().collect(),
                threads,
                wall_s: 0.0,
                machine: Machine::this(),
            },
        }
    }
}
