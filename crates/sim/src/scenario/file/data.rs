//! The files that a scenario names: size distributions, traces, logs, captures.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::values::At;
use crate::trace::{ReadError, stream};
use tidegate_files::Mistake;

/// Finds the files that a scenario names.
///
/// A scenario from disk has its files beside it ([`Folder`]); a scenario that
/// is built into a program, or comes from a manifest, includes them.
pub trait DataFiles {
    /// The file called `name` in the scenario.
    ///
    /// # Errors
    /// When there is no such file or it cannot be opened.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>>;
}

/// Files on disk, relative to this folder.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl DataFiles for Folder {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let path = self.0.join(name);
        // What a scenario names is read again by whoever repeats the run, and a device may
        // never end.
        if !path.metadata()?.is_file() {
            let message = "not a regular file, which can be read again";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Box::new(File::open(path)?))
    }
}

/// Reads the file called `name`, unpacked if it is compressed, with `parse`; `expected`
/// says what it should be.
pub(super) fn load<T>(
    data: &dyn DataFiles,
    name: &At<String>,
    expected: &str,
    parse: impl FnOnce(&str, Box<dyn Read + '_>) -> Result<T, ReadError>,
) -> Result<T, Mistake> {
    let wrong =
        |reason: String| Mistake::at(&name.place, format!("'{}' ({reason})", name.value), expected);
    let file = data.open(name).and_then(stream::plain);
    let file = file.map_err(|error| wrong(error.to_string()))?;
    parse(name, file).map_err(|error| wrong(error.to_string()))
}

/// Like [`load`], for the text formats, which are parsed whole.
pub(super) fn load_text<T>(
    data: &dyn DataFiles,
    name: &At<String>,
    expected: &str,
    parse: fn(&str, &[u8]) -> Result<T, ReadError>,
) -> Result<T, Mistake> {
    load(data, name, expected, |name, file| parse(name, &stream::text(name, file)?))
}
