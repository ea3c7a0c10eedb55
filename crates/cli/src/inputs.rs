//! The source of a scenario or gateway.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tidegate_sim::scenario::file::{DataFiles, Folder, ScenarioError};
use tidegate_sim::trace::{Flent, ReadError, Recording, recording, stream};
use tidegate_study::builtin::{self, Builtin};
use tidegate_study::data::{DataFile, Ledger, Recorded};
use tidegate_study::manifest::{Manifest, SourceText};
use tidegate_study::shipped::{self, Beside, FolderAndShipped};

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
    /// Its path among the shipped files, if it is one of them.
    shipped: Option<&'static str>,
}

impl Input {
    /// The content of the file called `name`, or of the one among `builtins`;
    /// without a name, that of the first of these.
    pub(crate) fn named(
        name: Option<&Path>,
        builtins: &'static [Builtin],
    ) -> Result<Input, Failure> {
        let path = name.unwrap_or(Path::new(builtins[0].name));
        let name = path.to_string_lossy();
        if let (Some(builtin), false) = (builtin::find(builtins, &name), path.is_file()) {
            return Ok(Input::of_builtin(builtin));
        }
        let text = read_text(path).map_err(|reason| {
            let or = if path.extension().is_none() {
                format!("; built in: {}", builtin::expected(&name, builtins))
            } else {
                String::new()
            };
            Failure::Input(format!("{}: {reason}{or}", path.display()))
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(Input {
            name: path.display().to_string(),
            stem: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            text,
            data: Box::new(FolderAndShipped(Folder(folder.clone()))),
            folder: Some(folder),
            shipped: None,
        })
    }

    /// A built-in file.
    pub(crate) fn of_builtin(builtin: &Builtin) -> Input {
        Input {
            name: builtin.name.into(),
            stem: builtin.name.into(),
            text: builtin.text().into(),
            data: Box::new(Beside(builtin.path)),
            folder: None,
            shipped: Some(builtin.path),
        }
    }

    /// A scenario that the program has written, which names no files but built-in ones.
    pub(crate) fn of_text(name: &str, stem: &str, text: String) -> Input {
        let data = Box::new(FolderAndShipped(Folder(PathBuf::new())));
        Input { name: name.into(), stem: stem.into(), text, data, folder: None, shipped: None }
    }

    /// A scenario that was made of the recording `file`, which it names `data`.
    pub(crate) fn of_recording(file: &Path, data: RecordingFile, text: String) -> Input {
        Input {
            name: stream::name(file),
            stem: match file.file_stem() {
                Some(stem) if data.path.is_some() => stem.to_string_lossy().into_owned(),
                _ => "recording".into(),
            },
            text,
            folder: data.path.as_deref().and_then(Path::parent).map(Path::to_path_buf),
            data: Box::new(data),
            shipped: None,
        }
    }

    /// Its text in a form that can be run from any folder, if it is built in; read with
    /// `parse`, which tells what files it names.
    pub(crate) fn portable<T>(
        &self,
        parse: impl FnOnce(&dyn DataFiles) -> Result<T, ScenarioError>,
    ) -> Result<String, Failure> {
        let Some(path) = self.shipped else { return Ok(self.text.clone()) };
        let (_, files) = self.read(parse)?;
        let names: Vec<String> = files.into_iter().map(|file| file.name).collect();
        Ok(shipped::portable(path, &names))
    }

    /// The input that a manifest records.
    ///
    /// # Errors
    /// A manifest that cannot be read, or is of a sweep.
    pub(crate) fn of_manifest(path: &Path) -> Result<(Input, Manifest), Failure> {
        let manifest = Manifest::read(path).map_err(Failure::Input)?;
        if manifest.is_of_sweep() {
            return Err(Failure::Input(format!(
                "{}: found the manifest of a sweep, expected one of a comparison; the sweep's \
                 report has the command that repeats it",
                path.display()
            )));
        }
        let SourceText { name, stem, text } = manifest.source.clone();
        let data = Box::new(Recorded(manifest.data.clone()));
        let input = Input { name, stem, text, data, folder: None, shipped: None };
        Ok((input, manifest))
    }

    /// This input as a manifest records it.
    pub(crate) fn source(&self) -> SourceText {
        let Input { name, stem, text, .. } = self;
        SourceText { name: name.clone(), stem: stem.clone(), text: text.clone() }
    }

    /// Reads it with `parse`, and records the files that it names.
    pub(crate) fn read<T, E: Display>(
        &self,
        parse: impl FnOnce(&dyn DataFiles) -> Result<T, E>,
    ) -> Result<(T, Vec<DataFile>), Failure> {
        let ledger = Ledger::new(&*self.data, self.folder.as_deref());
        let read = parse(&ledger).map_err(Failure::input)?;
        Ok((read, ledger.into_seen()))
    }
}

/// The text of a scenario; a recording in its place is told apart.
fn read_text(path: &Path) -> Result<String, String> {
    /// No scenario is larger; a device may never end.
    const MOST: u64 = 16 << 20;

    let unreadable = |reason: io::Error| format!("cannot be read: {reason}");
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if is_flent(path) {
        return Err(format!(
            "found a result of Flent, expected a scenario; 'tidegate measured {}' makes one of it",
            path.display()
        ));
    }
    let packed = bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    if packed || recording::is_capture(bytes.get(..4).unwrap_or_default()) {
        return Err(format!(
            "found a recording, expected a scenario; 'tidegate replay {} --rate ...' runs a \
             recording",
            path.display()
        ));
    }
    if bytes.len() as u64 > MOST {
        return Err("found more than 16 MiB, expected a scenario".into());
    }
    String::from_utf8(bytes)
        .map_err(|_| "found bytes that are not UTF-8, expected a scenario".into())
}

/// Whether the file at `path` is a result of Flent. Of a pipe nothing is read.
pub(crate) fn is_flent(path: &Path) -> bool {
    /// The keys that tell are among the first of any result.
    const START: u64 = 1 << 20;

    if !path.is_file() {
        return false;
    }
    let Ok(plain) = stream::open(path) else { return false };
    let mut start = Vec::new();
    // What breaks off may be told all the same.
    let _ = plain.take(START).read_to_end(&mut start);
    Flent::recognises(&start)
}

/// The file of a recording, which its scenario calls by one name.
#[derive(Clone, Debug)]
pub(crate) struct RecordingFile {
    /// That name.
    pub(crate) name: String,
    /// Where it is, if it can be read again.
    pub(crate) path: Option<PathBuf>,
    /// Its content, if it cannot.
    content: Vec<u8>,
}

impl RecordingFile {
    /// The file at `path`. What comes from a pipe or a device comes once, so it is kept in
    /// memory.
    pub(crate) fn open(path: &Path) -> Result<RecordingFile, ReadError> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let file = stream::name(path);
        let unreadable = |reason| ReadError::Unreadable { file: file.clone(), reason };
        let is_input = path.as_os_str() == stream::STANDARD_INPUT;
        if !is_input && path.metadata().map_err(unreadable)?.is_file() {
            return Ok(RecordingFile { name, path: Some(path.into()), content: Vec::new() });
        }
        let content = if is_input {
            stream::text(&file, io::stdin())
        } else {
            stream::text(&file, File::open(path).map_err(unreadable)?)
        };
        Ok(RecordingFile { name, path: None, content: content? })
    }

    /// Reads it, whatever its format.
    pub(crate) fn read(&self) -> Result<Recording, ReadError> {
        match &self.path {
            Some(path) => Recording::read(path),
            None => Recording::stream(&self.name, &self.content[..]),
        }
    }
}

impl DataFiles for RecordingFile {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        match &self.path {
            _ if name != self.name => Err(io::ErrorKind::NotFound.into()),
            Some(path) => Ok(Box::new(File::open(path)?)),
            None => Ok(Box::new(&self.content[..])),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sim::scenario::file::{self, gateway};

    use super::*;
    use tidegate_study::builtin::{GATEWAYS, SCENARIOS};

    /// Where there is nothing.
    fn elsewhere() -> FolderAndShipped {
        FolderAndShipped(Folder("/nowhere".into()))
    }

    #[test]
    fn what_is_printed_runs_in_any_folder() {
        for it in SCENARIOS {
            let input = Input::of_builtin(it);
            let text = input.portable(|data| file::parse(it.name, it.text(), data)).unwrap();
            file::parse(it.name, &text, &elsewhere()).unwrap_or_else(|error| panic!("{error}"));
        }
        for it in GATEWAYS {
            let input = Input::of_builtin(it);
            let text = input.portable(|data| gateway::parse(it.name, it.text(), data)).unwrap();
            let parsed = gateway::parse(it.name, &text, &elsewhere());
            parsed.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
