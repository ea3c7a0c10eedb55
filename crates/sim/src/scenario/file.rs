//! Scenario files: TOML in, a [`Scenario`] that cannot be wrong out.
//!
//! A file is parsed once, here, and whatever is wrong with it ends in one line
//! that says where, which key, what was found and what was expected. After
//! that there is nothing left to check: names are nodes, texts are quantities
//! within their range, files are read, and every receiver can be reached.
//!
//! ```
//! use tidegate_sim::scenario::file::{self, Folder};
//!
//! let text = r#"
//!     title = "Two transfers"
//!     duration = "10 s"
//!     seeds = 3
//!     disciplines = ["fifo", { name = "efd", threshold = "30 kB" }]
//!     dumbbell = { pairs = 2, rate = "5 Mbit/s" }
//!     [[traffic.transfers]]
//!     name = "long"
//!     from = "senders"
//!     to = "receivers"
//!     count = 2
//!     sizes = "1 MB"
//! "#;
//! let scenario = file::parse("two.toml", text, &Folder(".".into()))?;
//! assert_eq!((scenario.nodes.len(), scenario.seeds.len()), (6, 3));
//!
//! let text = text.replace("5 Mbit/s", "0 Mbit/s");
//! let error = file::parse("two.toml", &text, &Folder(".".into())).unwrap_err();
//! assert!(error.to_string().starts_with("two.toml:6:36: dumbbell.rate: found '0 Mbit/s'"));
//! # Ok::<(), file::ScenarioError>(())
//! ```

mod builders;
mod data;
mod disciplines;
pub mod flows;
pub mod gateway;
mod measured;
mod syntax;
mod tcp;
mod topology;
mod traffic;
mod values;
pub mod vary;
mod wifi;

use std::path::Path;

use tidegate_core::{Bytes, Span};

use self::syntax::Document;
use self::tcp::within;
use self::topology::Topology;
use self::values::{At, Seeds};
use super::{DisciplineChoice, LinkSpec, QueueSpec, Scenario};
use crate::tcp::TcpConfig;
use tidegate_files::{Mistake, schema_of};

pub use data::{DataFiles, Folder};
pub use tidegate_files::FileError as ScenarioError;

/// Of seeds, when the file does not say.
const SEEDS: u32 = 5;
const SAMPLE_EVERY: Span = Span::millis(100);
/// Samples of a link in one run; all are kept for the plots.
const MOST_SAMPLES: u64 = 1_000_000;

/// What to put in place of what the file says.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// How long to simulate.
    pub duration: Option<Span>,
    /// The seeds.
    pub seeds: Option<Vec<u64>>,
    /// The disciplines.
    pub disciplines: Option<Vec<DisciplineChoice>>,
}

/// Reads the scenario file at `path`; files that it names are relative to it.
///
/// # Errors
/// When it cannot be read or makes no sense.
pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|reason| ScenarioError::Unreadable { file: name.clone(), reason })?;
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    parse(&name, &text, &Folder(folder))
}

/// Reads a scenario from `text`; `name` is for messages, `data` has the files
/// that the scenario names.
///
/// # Errors
/// When it makes no sense.
pub fn parse(name: &str, text: &str, data: &dyn DataFiles) -> Result<Scenario, ScenarioError> {
    parse_with(name, text, data, &Overrides::default())
}

/// As [`parse`], with some things other than the file says.
///
/// # Errors
/// When it makes no sense, or would not with the `overrides`.
pub fn parse_with(
    name: &str,
    text: &str,
    data: &dyn DataFiles,
    overrides: &Overrides,
) -> Result<Scenario, ScenarioError> {
    parse_changed(name, text, data, overrides, |_| Ok(()))
}

/// As [`parse_with`], with what `change` makes of the file before anything is built of it.
fn parse_changed(
    name: &str,
    text: &str,
    data: &dyn DataFiles,
    overrides: &Overrides,
    change: impl FnOnce(&mut Document) -> Result<(), Mistake>,
) -> Result<Scenario, ScenarioError> {
    toml::from_str(text)
        .map_err(|error| Mistake::from_toml(&error))
        .and_then(|mut document: Document| {
            change(&mut document)?;
            if let Some(duration) = overrides.duration {
                document.duration.value.0 = duration;
            }
            let mut scenario = scenario(&document, data)?;
            if let Some(seeds) = &overrides.seeds {
                scenario.seeds.clone_from(seeds);
            }
            if let Some(disciplines) = &overrides.disciplines {
                scenario.disciplines.clone_from(disciplines);
            }
            check_promises(&document, &scenario, overrides)?;
            Ok(scenario)
        })
        .map_err(|mistake| mistake.in_file(name, text))
}

/// Holds what disciplines were set to promise to the links that they are put on.
fn check_promises(
    document: &Document,
    scenario: &Scenario,
    overrides: &Overrides,
) -> Result<(), Mistake> {
    let tested = |link: &&LinkSpec| matches!(link.queue, QueueSpec::Tested(_));
    for (index, choice) in scenario.disciplines.iter().enumerate() {
        let place = match &overrides.disciplines {
            Some(_) => 0..0,
            None => document.disciplines[index].place.clone(),
        };
        for link in scenario.links.iter().filter(tested) {
            disciplines::check_promises(choice, &place, &link.name, &link.capacity)?;
        }
    }
    Ok(())
}

/// The JSON Schema of scenario files, for editors.
#[must_use]
pub fn json_schema() -> String {
    schema_of::<Document>()
}

fn scenario(document: &Document, data: &dyn DataFiles) -> Result<Scenario, Mistake> {
    if document.title.trim().is_empty() {
        return Err(Mistake::at(&document.title.place, "an empty title", "a line of text"));
    }
    let least = Span::millis(1);
    let duration = within(&document.duration, least, Span::seconds(1_000_000))?;
    let warm_up = match &document.warm_up {
        Some(warm_up) if warm_up.value.0 >= duration => {
            let expected = format!("less than the duration, '{duration}'");
            return Err(Mistake::at(&warm_up.place, format!("'{}'", warm_up.value.0), expected));
        }
        warm_up => warm_up.as_ref().map_or(Span::ZERO, |warm_up| warm_up.value.0),
    };
    let sample_every = match &document.sample_every {
        Some(every) => within(every, Span((duration.0 / MOST_SAMPLES).max(1)), duration)?,
        None => Span(SAMPLE_EVERY.0.max(duration.0 / MOST_SAMPLES)),
    };
    let short_flow = document.short_flow.as_ref().map_or(Scenario::SHORT_FLOW, |size| size.value.0);
    let long_flow = match &document.long_flow {
        Some(size) => within(size, short_flow, Bytes(u64::MAX))?,
        None => Scenario::LONG_FLOW.max(short_flow),
    };
    let topology = Topology::of(document, data)?;
    let disciplines = disciplines::list(&document.disciplines, data)?;
    if !topology.layout.links.iter().any(|link| matches!(link.queue, QueueSpec::Tested(_))) {
        let expected = "at least one link with queue = \"tested\"";
        return Err(Mistake::at(&(0..0), "no link to put the disciplines on", expected));
    }
    let tcp = document.tcp.over(&TcpConfig::today())?;
    let reader = traffic::Reader { topology: &topology, data, duration, tcp };
    let traffic = reader.sources(document)?;
    let measured = measured::observations(document, &traffic, &topology.layout.links)?;
    Ok(Scenario {
        title: document.title.trim().into(),
        description: document.description.trim().into(),
        duration,
        warm_up,
        seeds: match &document.seeds {
            Some(seeds) => seed_list(seeds)?,
            None => (1..=u64::from(SEEDS)).collect(),
        },
        sample_every,
        size_classes: size_classes(document)?,
        short_flow,
        long_flow,
        disciplines,
        nodes: topology.layout.nodes,
        links: topology.layout.links,
        talks: Vec::new(),
        traffic,
        measured,
    })
}

/// The seeds, each once.
fn seed_list(seeds: &At<Seeds>) -> Result<Vec<u64>, Mistake> {
    let list = match &seeds.value {
        Seeds::Count(count) => return Ok((1..=u64::from(*count)).collect()),
        Seeds::List(list) => list,
    };
    let mut numbers = Vec::new();
    for seed in list {
        let found = seed.value.to_string();
        let number = u64::try_from(seed.value)
            .map_err(|_| Mistake::at(&seed.place, found.clone(), "a whole number from 0"))?;
        if numbers.contains(&number) {
            return Err(Mistake::at(&seed.place, format!("{found} twice"), "each seed once"));
        }
        numbers.push(number);
    }
    if numbers.is_empty() || numbers.len() as u64 > u64::from(Seeds::MOST) {
        let expected = format!("from 1 to {} seeds", Seeds::MOST);
        return Err(Mistake::at(&seeds.place, format!("{} seeds", numbers.len()), expected));
    }
    Ok(numbers)
}

fn size_classes(document: &Document) -> Result<Vec<Bytes>, Mistake> {
    let Some(bounds) = &document.size_classes else { return Ok(Scenario::SIZE_CLASSES.to_vec()) };
    if let Some(pair) = bounds.windows(2).find(|pair| pair[1].value.0 <= pair[0].value.0) {
        let expected = format!("more than the bound before it, '{}'", pair[0].value.0);
        return Err(Mistake::at(&pair[1].place, format!("'{}'", pair[1].value.0), expected));
    }
    Ok(bounds.iter().map(|bound| bound.value.0).collect())
}

#[cfg(test)]
mod tests;
