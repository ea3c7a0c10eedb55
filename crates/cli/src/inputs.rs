//! Where a scenario or gateway comes from, and a record of the files that it
//! names, so that a manifest can bring them back.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tidegate_sim::scenario::file::{DataFiles, Folder, ScenarioError};
use tidegate_study::shipped::Beside;

use crate::builtin::{self, Builtin};
use crate::failure::Failure;

/// Text files up to this size go into the manifest; of others it has place and hash.
const EMBEDDED: usize = 1 << 20;

/// A scenario or gateway as it was written, not parsed yet.
pub(crate) struct Input {
    /// The file's name, for messages.
    pub(crate) name: String,
    /// What results are called after.
    pub(crate) stem: String,
    /// The TOML.
    pub(crate) text: String,
    /// Where the files that it names are.
    pub(crate) data: Box<dyn DataFiles>,
    /// The folder of these files, when they are on disk.
    pub(crate) folder: Option<PathBuf>,
}

/// A file that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DataFile {
    /// As the scenario names it.
    pub(crate) name: String,
    /// Its length.
    pub(crate) bytes: u64,
    /// Its SHA-256.
    pub(crate) sha256: String,
    /// Where it was, when it is not in here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<PathBuf>,
    /// The file itself, when it is small text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
}

impl Input {
    /// What is in the file called `name`, or the one of `builtins` of this name; the
    /// first of them without a name.
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

    /// Reads it with `parse`, and records the files that it names.
    pub(crate) fn read<T>(
        &self,
        parse: impl FnOnce(&dyn DataFiles) -> Result<T, ScenarioError>,
    ) -> Result<(T, Vec<DataFile>), Failure> {
        let ledger = Ledger { input: self, seen: RefCell::default() };
        let read = parse(&ledger).map_err(Failure::input)?;
        Ok((read, ledger.seen.into_inner()))
    }
}

/// Hands out files and notes what was in them.
struct Ledger<'a> {
    input: &'a Input,
    seen: RefCell<Vec<DataFile>>,
}

impl DataFiles for Ledger<'_> {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let path = self.input.folder.as_ref().map(|folder| folder.join(name));
        Ok(Box::new(Noted {
            inner: self.input.data.open(name)?,
            name: name.into(),
            path: path.map(|path| std::path::absolute(&path).unwrap_or(path)),
            hash: Sha256::new(),
            bytes: 0,
            start: Vec::new(),
            ledger: self,
        }))
    }
}

/// A file that is noted in the ledger when it has been read.
struct Noted<'a> {
    inner: Box<dyn Read + 'a>,
    name: String,
    path: Option<PathBuf>,
    hash: Sha256,
    bytes: u64,
    /// The first [`EMBEDDED`] bytes and one more, to know that there are more.
    start: Vec<u8>,
    ledger: &'a Ledger<'a>,
}

impl Read for Noted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let read = &buffer[..count];
        self.hash.update(read);
        self.bytes += count as u64;
        let room = (EMBEDDED + 1).saturating_sub(self.start.len());
        self.start.extend_from_slice(&read[..count.min(room)]);
        Ok(count)
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        // A reader may stop before the end; the hash is that of the whole file.
        let _ = io::copy(self, &mut io::sink());
        let small = self.start.len() <= EMBEDDED;
        let start = std::mem::take(&mut self.start);
        let content = small.then(|| String::from_utf8(start).ok()).flatten();
        self.ledger.seen.borrow_mut().push(DataFile {
            name: self.name.clone(),
            bytes: self.bytes,
            sha256: hexadecimal(&std::mem::take(&mut self.hash).finalize()),
            path: if content.is_none() { self.path.clone() } else { None },
            content,
        });
    }
}

/// Files out of a manifest, or where it says that they were.
pub(crate) struct Recorded(pub(crate) Vec<DataFile>);

impl DataFiles for Recorded {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let found = self.0.iter().find(|file| file.name == name);
        let file = found.ok_or(io::ErrorKind::NotFound)?;
        if let Some(content) = &file.content {
            return Ok(Box::new(Cursor::new(content.as_bytes())));
        }
        let path = file.path.as_deref().ok_or(io::ErrorKind::NotFound)?;
        if sha256_of(path)? != file.sha256 {
            let message = format!("{} is not the file that the manifest is about", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Box::new(File::open(path)?))
    }
}

/// The SHA-256 of the file at `path`.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hexadecimal(&hash.finalize()));
        }
        hash.update(&buffer[..count]);
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
