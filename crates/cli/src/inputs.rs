//! The source of a scenario or gateway.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tidegate_sim::scenario::file::{DataFiles, Folder, ScenarioError};
use tidegate_study::data::{DataFile, Ledger, Recorded};
use tidegate_study::manifest::{Manifest, SourceText};
use tidegate_study::shipped::Beside;

use crate::builtin::{self, Builtin};
use crate::failure::Failure;

/// A scenario or gateway as it was written, not parsed yet.
pub(crate) struct Input {
    /// The file's name, for messages.
    pub(crate) name: String,
    /// The name of its results.
    pub(crate) stem: String,
    /// The TOML.
    pub(crate) text: String,
    /// The place of the files that it names.
    pub(crate) data: Box<dyn DataFiles>,
    /// The folder of these files, if they are on disk.
    pub(crate) folder: Option<PathBuf>,
}

impl Input {
    /// The content of the file called `name`, or of the one among `builtins`;
    /// without a name, that of the first of these.
    pub(crate) fn named(
        name: Option<&str>,
        builtins: &'static [Builtin],
    ) -> Result<Input, Failure> {
        let name = name.unwrap_or(builtins[0].name);
        let path = Path::new(name);
        if let (Some(builtin), false) = (builtin::find(builtins, name), path.is_file()) {
            return Ok(Input {
                name: builtin.name.into(),
                stem: builtin.name.into(),
                text: builtin.text().into(),
                data: Box::new(Beside(builtin.path)),
                folder: None,
            });
        }
        let text = std::fs::read_to_string(path).map_err(|reason| {
            let or = if path.extension().is_none() {
                format!("; built in: {}", builtin::names(builtins))
            } else {
                String::new()
            };
            Failure::Input(format!("{}: cannot be read: {reason}{or}", path.display()))
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(Input {
            name: path.display().to_string(),
            stem: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            text,
            data: Box::new(Folder(folder.clone())),
            folder: Some(folder),
        })
    }

    /// The input that a manifest records.
    pub(crate) fn of_manifest(manifest: &Manifest) -> Input {
        let SourceText { name, stem, text } = manifest.source.clone();
        let data = Box::new(Recorded(manifest.data.clone()));
        Input { name, stem, text, data, folder: None }
    }

    /// This input as a manifest records it.
    pub(crate) fn source(&self) -> SourceText {
        let Input { name, stem, text, .. } = self;
        SourceText { name: name.clone(), stem: stem.clone(), text: text.clone() }
    }

    /// Reads it with `parse`, and records the files that it names.
    pub(crate) fn read<T>(
        &self,
        parse: impl FnOnce(&dyn DataFiles) -> Result<T, ScenarioError>,
    ) -> Result<(T, Vec<DataFile>), Failure> {
        let ledger = Ledger::new(&*self.data, self.folder.as_deref());
        let read = parse(&ledger).map_err(Failure::input)?;
        Ok((read, ledger.into_seen()))
    }
}

/// Whether the file has the magic number of pcap or pcapng.
pub(crate) fn starts_as_capture(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(tidegate_sim::trace::sizes::is_capture(&start))
}
