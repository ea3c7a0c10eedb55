//! A study as a file: which scenario, and what varies.
//!
//! ```
//! use std::path::Path;
//! use tidegate_store::file;
//!
//! let text = r#"
//!     scenario = "household"
//!     over = ["rate=5 Mbit/s,20 Mbit/s", "rtt=10 ms..100 ms:3"]
//!     seeds = 10
//!     duration = "30 s"
//!     disciplines = ["fifo", "tide:credit=15 kB"]
//!     flows = true
//! "#;
//! let asked = file::parse("my-study.toml", text, Path::new("."))?;
//! assert_eq!(asked.over[1].values, ["10 ms", "31.6 ms", "100 ms"]);
//!
//! let error = file::parse("my-study.toml", &text.replace("rtt=", "rtt "), Path::new("."));
//! let error = error.unwrap_err().to_string();
//! assert!(error.starts_with("my-study.toml:3:40: over: found 'rtt 10 ms..100 ms:3', expected"));
//! # Ok::<(), tidegate_files::FileError>(())
//! ```

use std::path::Path;

use serde::Deserialize;
use tidegate_core::Span;
use tidegate_files::{At, Count, FileError, Mistake, Quantity};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file::Overrides;
use tidegate_study::builtin::{self, SCENARIOS};

use crate::rows::Kept;
use crate::study::{Asked, Source};

/// More runs of one discipline than anybody waits for.
const MOST_SEEDS: u32 = 1_000_000;

/// A scenario over some of its keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// The scenario: a file, relative to this one, or the name of one that comes with
    /// Tidegate.
    scenario: At<String>,
    /// Keys of the scenario with their values, for example 'rate=5 Mbit/s,20 Mbit/s' or
    /// 'rtt=10 ms..300 ms:6'. The last one varies fastest.
    #[serde(default)]
    over: Vec<At<String>>,
    /// The number of seeds, from 1 on. Default: those of the scenario.
    seeds: Option<Count<1, MOST_SEEDS>>,
    /// Simulated time of each run. Default: that of the scenario.
    duration: Option<Quantity<Span>>,
    /// The disciplines, as on the command line, for example 'tide:credit=15 kB'. Default:
    /// those of the scenario.
    disciplines: Option<Vec<At<String>>>,
    /// Whether a row for each flow is kept.
    #[serde(default)]
    flows: bool,
    /// Whether a row for each sample of a link with a queue is kept.
    #[serde(default)]
    links: bool,
}

/// Reads the text of a study's file, which lies in `folder`; `name` is for messages.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Asked, FileError> {
    let document: Result<Document, Mistake> =
        toml::from_str(text).map_err(|error| Mistake::from_toml(&error));
    let document = document.map_err(|mistake| mistake.in_file(name, text))?;
    let asked = asked(&document, folder);
    asked.map_err(|mistake| mistake.in_file(name, text))
}

/// Whether the text is that of a study, and not of a scenario, as far as can be seen.
#[must_use]
pub fn is_study(text: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|it| it.contains_key("scenario"))
}

fn asked(document: &Document, folder: &Path) -> Result<Asked, Mistake> {
    let Document { scenario, over, seeds, duration, disciplines, flows, links } = document;
    let over = over.iter().map(|text| text.value.parse().map_err(|error| of_text(text, &error)));
    let disciplines = disciplines.as_ref().map(|list| {
        if list.is_empty() {
            let place = &scenario.place;
            return Err(Mistake::at(place, "no disciplines", "at least one, or no such key"));
        }
        list.iter().map(choice).collect::<Result<Vec<_>, _>>()
    });
    Ok(Asked {
        source: source(scenario, folder)?,
        over: over.collect::<Result<_, _>>()?,
        overrides: Overrides {
            duration: duration.as_ref().map(|it| it.value.0),
            seeds: seeds.as_ref().map(|count| (1..=u64::from(count.0)).collect()),
            disciplines: disciplines.transpose()?,
        },
        kept: Kept { flows: *flows, links: *links },
    })
}

fn choice(text: &At<String>) -> Result<DisciplineChoice, Mistake> {
    text.value.parse().map_err(|error| of_text(text, &error))
}

/// What is wrong with a text that stands on its own: 'found X, expected Y'.
fn of_text(text: &At<String>, error: &dyn std::fmt::Display) -> Mistake {
    let message = error.to_string();
    match message.strip_prefix("found ").and_then(|rest| rest.split_once(", expected ")) {
        Some((found, expected)) => Mistake::at(&text.place, found, expected),
        None => Mistake::at(&text.place, format!("'{}' ({message})", text.value), "what it takes"),
    }
}

fn source(scenario: &At<String>, folder: &Path) -> Result<Source, Mistake> {
    let path = folder.join(&scenario.value);
    if let (false, Some(source)) = (path.is_file(), Source::builtin(&scenario.value)) {
        return Ok(source);
    }
    Source::read(&path).map_err(|error| {
        let known = builtin::expected(&scenario.value, SCENARIOS);
        let found = format!("'{}' ({error})", scenario.value);
        Mistake::at(&scenario.place, found, format!("a file, or one that is built in: {known}"))
    })
}
