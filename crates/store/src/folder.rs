//! Where the parts of runs lie: a folder for each table, in it one for each value that made
//! the runs, and a file for each seed.
//!
//! `manifest.json` says what the folder holds. Every file appears complete or not at all, so
//! one that is there is a run that is done. That holds for all runs of one scenario in one
//! version of the program, and a folder takes no others. More seeds, disciplines and values
//! of the same keys may join what is there.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_study::sweep;

use crate::reading::Reading;
use crate::study::{Definition, Part, Run, Study, StudyError, Table};

/// What a folder holds.
const MANIFEST: &str = "manifest.json";
/// Where files are written before they are put in their places. Tables have no others in their
/// folders, which readers would take for parts.
const UNFINISHED: &str = ".unfinished";

/// The folder of a study.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Why a folder cannot be that of a study.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system refused.
    #[error("{path}: {reason}")]
    System {
        /// The file or folder.
        path: String,
        /// The message of the operating system.
        reason: io::Error,
    },
    /// There is something else in it.
    #[error("{path}: found {found}, expected {expected}")]
    Other {
        /// The folder.
        path: String,
        /// What is in it.
        found: String,
        /// What can be done.
        expected: String,
    },
}

impl Folder {
    /// The folder at `path`, ready for the runs of `study`.
    ///
    /// # Errors
    /// If it cannot be written to, or holds something other than runs of this scenario.
    pub fn prepare(path: &Path, study: &Study) -> Result<Folder, FolderError> {
        let folder = Folder { path: path.into() };
        let system = |reason| folder.system(path, reason);
        fs::create_dir_all(path).map_err(system)?;
        let definition = match folder.manifest()? {
            Some(earlier) => folder.joined(earlier, study.definition())?,
            None => {
                let mut files = fs::read_dir(path).map_err(system)?.flatten();
                if files.any(|file| file.file_name() != UNFINISHED) {
                    return Err(folder.other("other files", "an empty folder, or that of a study"));
                }
                study.definition().clone()
            }
        };
        let text = serde_json::to_string_pretty(&definition).map_err(io::Error::from);
        text.and_then(|text| folder.write(MANIFEST, text.as_bytes())).map_err(system)?;
        Ok(folder)
    }

    /// The folder at `path`, and the study of all that it holds.
    ///
    /// # Errors
    /// If it is not that of a study.
    pub fn open(path: &Path) -> Result<(Folder, Study), FolderError> {
        let folder = Folder { path: path.into() };
        let Some(definition) = folder.manifest()? else {
            let expected = format!("the folder of a study, which has a {MANIFEST}");
            return Err(folder.other("none", &expected));
        };
        let study = Study::of(definition);
        let study = study.map_err(|error: StudyError| {
            folder.other(&format!("a {MANIFEST} of which {error}"), "that of a study")
        })?;
        Ok((folder, study))
    }

    /// The folder at `path`, which was prepared before.
    #[must_use]
    pub fn at(path: PathBuf) -> Folder {
        Folder { path }
    }

    /// Its place.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all parts of `run` are here.
    #[must_use]
    pub fn has(&self, study: &Study, run: Run) -> bool {
        study.tables().all(|table| self.path.join(study.path(table, run)).is_file())
    }

    /// The runs of `study` that are not here, in their order.
    #[must_use]
    pub fn missing(&self, study: &Study) -> Vec<Run> {
        study.runs().filter(|run| !self.has(study, *run)).collect()
    }

    /// Keeps the parts of a run.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn keep(&self, parts: &[Part]) -> io::Result<()> {
        parts.iter().try_for_each(|part| self.write(&part.path, &part.bytes))
    }

    /// A table of all runs of `study` that are here.
    ///
    /// # Errors
    /// If the study does not keep this table.
    pub fn read(&self, study: &Study, table: Table) -> Result<Reading, FolderError> {
        if !study.tables().any(|it| it == table) {
            let name = table.name();
            return Err(self.other(&format!("no {name}"), &format!("a study that keeps {name}")));
        }
        Ok(Reading::new(self.path.clone(), study.clone(), table))
    }

    /// Writes a file, which appears complete or not at all.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        /// Does something again once its folder is there.
        fn within(folder: Option<&Path>, work: impl Fn() -> io::Result<()>) -> io::Result<()> {
            work().or_else(|error| {
                let folder = folder.filter(|_| error.kind() == ErrorKind::NotFound);
                folder.map_or(Err(error), fs::create_dir_all)?;
                work()
            })
        }

        let path = self.path.join(name);
        // Another process may do the same, and what is written last is what the first wrote.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.path.join(UNFINISHED);
        let unfinished = unfinished.join(format!("{}-{number}", std::process::id()));
        let written = within(unfinished.parent(), || fs::write(&unfinished, bytes));
        let put = || within(path.parent(), || fs::rename(&unfinished, &path));
        written.and_then(|()| put()).inspect_err(|_| {
            // What is left of it is of no use, and there may be nothing.
            let _ = fs::remove_file(&unfinished);
        })
    }

    fn manifest(&self) -> Result<Option<Definition>, FolderError> {
        let path = self.path.join(MANIFEST);
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                self.other(&format!("a {MANIFEST} that is not of a study ({error})"), "one that is")
            }),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(None),
            Err(error) => Err(self.system(&path, error)),
        }
    }

    /// What the folder holds once the runs of `now` have joined those of `earlier`.
    fn joined(&self, earlier: Definition, now: &Definition) -> Result<Definition, FolderError> {
        let keys =
            |it: &Definition| it.over.iter().map(|axis| axis.key.clone()).collect::<Vec<_>>();
        let files = |it: &Definition| {
            let files = it.data.iter().map(|file| (file.name.clone(), file.sha256.clone()));
            files.collect::<Vec<_>>()
        };
        let (before, after) = (files(&earlier), files(now));
        let changed = |(name, hash): &(String, String)| {
            after.iter().any(|(other, new)| other == name && new != hash)
        };
        let settings = |it: &tidegate_study::manifest::Contender| {
            now.disciplines.iter().any(|new| new.label == it.label && new != it)
        };
        let found = if earlier.tidegate != now.tidegate {
            Some(format!("runs of version {}", earlier.tidegate))
        } else if earlier.scenario.text != now.scenario.text {
            Some("runs of another scenario".into())
        } else if let Some((name, _)) = before.iter().find(|it| changed(it)) {
            Some(format!("runs with another content of '{name}'"))
        } else if earlier.duration_ns != now.duration_ns {
            Some("runs of another duration".into())
        } else if keys(&earlier) != keys(now) {
            Some(format!("runs over {}", listed(&keys(&earlier))))
        } else {
            let other = earlier.disciplines.iter().find(|it| settings(it));
            other.map(|it| format!("runs of another '{}'", it.label))
        };
        if let Some(found) = found {
            return Err(self.other(&found, "another folder, or none of this name"));
        }
        let mut joined = earlier;
        for (axis, new) in std::iter::zip(&mut joined.over, &now.over) {
            join(&mut axis.values, &new.values);
        }
        if let Err(error) = sweep::points(&joined.over) {
            return Err(self.other(&format!("too much for one folder: {error}"), "another folder"));
        }
        join(&mut joined.seeds, &now.seeds);
        join(&mut joined.disciplines, &now.disciplines);
        join(&mut joined.data, &now.data);
        joined.flows |= now.flows;
        joined.links |= now.links;
        joined.scenario = now.scenario.clone();
        Ok(joined)
    }

    fn other(&self, found: &str, expected: &str) -> FolderError {
        let path = self.path.display().to_string();
        FolderError::Other { path, found: found.into(), expected: expected.into() }
    }

    fn system(&self, path: &Path, reason: io::Error) -> FolderError {
        FolderError::System { path: path.display().to_string(), reason }
    }
}

fn listed(keys: &[String]) -> String {
    if keys.is_empty() { "no keys".into() } else { keys.join(" and ") }
}

/// Adds what is new of `more`.
fn join<T: Clone + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for it in more {
        if !all.contains(it) {
            all.push(it.clone());
        }
    }
}
