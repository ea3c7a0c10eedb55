//! The scenarios that Tidegate ships, by their path in `scenarios/`.

use std::io::{self, Cursor, Read};

use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, DataFiles};

/// The scenario at `path`, for example `links/household.toml`.
///
/// # Panics
/// If there is none: programs ask only for files that ship with Tidegate.
#[must_use]
pub fn scenario(path: &'static str) -> Scenario {
    let text = tidegate_scenarios::text(path);
    let text = text.unwrap_or_else(|| panic!("{path} is not among the shipped files"));
    let scenario = file::parse(path, text, &Beside(path));
    scenario.unwrap_or_else(|error| panic!("{error}, which a test of all shipped files denies"))
}

/// The shipped files, relative to the one at this path.
#[derive(Clone, Copy, Debug)]
pub struct Beside(pub &'static str);

impl DataFiles for Beside {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let content = tidegate_scenarios::beside(self.0, name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(content)))
    }
}
