//! The scenarios that Tidegate ships, by their path in `scenarios/`.
//!
//! A scenario on disk may name shipped files too, wherever it lies: `builtin:` and the
//! path, for example `builtin:data/pages.har`. That is how a shipped scenario is printed
//! to start from ([`portable`]), so that it runs in any folder.

use std::io::{self, Cursor, Read};

use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, DataFiles, Folder};

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

/// What the name of a shipped file begins with in a scenario on disk.
const BUILTIN: &str = "builtin:";

/// The shipped file called `name`, `builtin:` and all; `None` if the name has no such
/// beginning.
///
/// # Errors
/// If it has, and there is no such file.
pub(crate) fn named(name: &str) -> Option<io::Result<&'static [u8]>> {
    let path = name.strip_prefix(BUILTIN)?;
    Some(tidegate_scenarios::bytes(path).ok_or_else(|| {
        let message = format!("no file called '{path}' is built in");
        io::Error::new(io::ErrorKind::NotFound, message)
    }))
}

/// Files in a folder, and those that ship with Tidegate.
#[derive(Clone, Debug)]
pub struct FolderAndShipped(pub Folder);

impl DataFiles for FolderAndShipped {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        match named(name) {
            Some(shipped) => Ok(Box::new(Cursor::new(shipped?))),
            None => self.0.open(name),
        }
    }
}

/// The shipped text at `path` with `names`, the files that it names, as they are called
/// from any folder.
///
/// ```
/// use tidegate_study::shipped::portable;
///
/// let text = portable("links/household.toml", &["../data/pages.har".into()]);
/// assert!(text.contains("builtin:data/pages.har"));
/// ```
///
/// # Panics
/// If there is no such text.
#[must_use]
pub fn portable(path: &'static str, names: &[String]) -> String {
    let text = tidegate_scenarios::text(path);
    let mut text =
        text.unwrap_or_else(|| panic!("{path} is not among the shipped files")).to_owned();
    for name in names {
        let beside = tidegate_scenarios::path_beside(path, name);
        let builtin = format!("\"{BUILTIN}{}\"", beside.expect("it was read from there"));
        text = text.replace(&format!("\"{name}\""), &builtin);
    }
    text
}
