//! The files that a scenario names, recorded while they are read, so that a
//! manifest can bring them back.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tidegate_sim::scenario::file::DataFiles;

use crate::shipped;

/// The manifest contains text files up to this size; for others it has place and hash.
const EMBEDDED: usize = 1 << 20;

/// A file that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Its name in the scenario.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// Its place, if its content is not stored here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The content of the file, if it is small text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// Hands out files and records their content.
pub struct Ledger<'a> {
    files: &'a dyn DataFiles,
    folder: Option<&'a Path>,
    seen: RefCell<Vec<DataFile>>,
}

impl<'a> Ledger<'a> {
    /// Records what is read from `files`, which are in `folder` if they are on disk.
    #[must_use]
    pub fn new(files: &'a dyn DataFiles, folder: Option<&'a Path>) -> Ledger<'a> {
        Ledger { files, folder, seen: RefCell::default() }
    }

    /// The files that were read, in the order in which they were closed.
    #[must_use]
    pub fn into_seen(self) -> Vec<DataFile> {
        self.seen.into_inner()
    }
}

impl DataFiles for Ledger<'_> {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let shipped = shipped::named(name).is_some();
        let folder = self.folder.filter(|_| !shipped);
        // A manifest is text, so a path that is not cannot be in it.
        let path = folder.map(|folder| folder.join(name)).filter(|path| path.to_str().is_some());
        Ok(Box::new(Noted {
            inner: self.files.open(name)?,
            name: name.into(),
            path: path.map(|path| std::path::absolute(&path).unwrap_or(path)),
            hash: Sha256::new(),
            bytes: 0,
            start: Vec::new(),
            seen: &self.seen,
        }))
    }
}

/// A file that enters the ledger once it has been read.
struct Noted<'a> {
    inner: Box<dyn Read + 'a>,
    name: String,
    path: Option<PathBuf>,
    hash: Sha256,
    bytes: u64,
    /// The first [`EMBEDDED`] bytes and one more, to know that there are more.
    start: Vec<u8>,
    seen: &'a RefCell<Vec<DataFile>>,
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
        self.seen.borrow_mut().push(DataFile {
            name: self.name.clone(),
            bytes: self.bytes,
            sha256: hexadecimal(&std::mem::take(&mut self.hash).finalize()),
            path: if content.is_none() { self.path.clone() } else { None },
            content,
        });
    }
}

/// Files from a manifest, or from the places that it names.
#[derive(Clone, Debug)]
pub struct Recorded(pub Vec<DataFile>);

impl DataFiles for Recorded {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let found = self.0.iter().find(|file| file.name == name);
        let file = found.ok_or(io::ErrorKind::NotFound)?;
        if let Some(content) = &file.content {
            return Ok(Box::new(Cursor::new(content.as_bytes())));
        }
        if let Some(shipped) = shipped::named(name) {
            let content = shipped?;
            if hexadecimal(&Sha256::digest(content)) != file.sha256 {
                return Err(other_than_recorded(name));
            }
            return Ok(Box::new(Cursor::new(content)));
        }
        let path = file.path.as_deref().ok_or_else(|| {
            let message = "the manifest neither contains it nor says where it is";
            io::Error::new(io::ErrorKind::NotFound, message)
        })?;
        if sha256_of(path)? != file.sha256 {
            return Err(other_than_recorded(&path.display().to_string()));
        }
        Ok(Box::new(File::open(path)?))
    }
}

fn other_than_recorded(name: &str) -> io::Error {
    let message = format!("{name} is not the file that the manifest is about");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// The SHA-256 of the file at `path`, in hexadecimal.
///
/// # Errors
/// When it cannot be read.
pub fn sha256_of(path: &Path) -> io::Result<String> {
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

/// Lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
