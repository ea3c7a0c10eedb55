//! Where running links are found: a Unix socket for each, by its name.
//!
//! Who may open a socket may control its link, so it is its owner's alone. One that nobody
//! answers at belongs to a link that was killed.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::process::umask;

use crate::failure::Failure;

const FOLDER: &str = "/run/tidegate/link";
const ENDING: &str = ".sock";

/// The folder of the sockets: systemd names one for each service.
pub(super) fn folder() -> PathBuf {
    let named = env::var_os("RUNTIME_DIRECTORY");
    let first = named.as_deref().and_then(|folders| env::split_paths(folders).next());
    first.filter(|folder| folder.is_absolute()).unwrap_or_else(|| FOLDER.into())
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{ENDING}"))
}

/// The socket of a link that runs, which goes when the link does.
#[derive(Debug)]
pub(super) struct Held {
    path: PathBuf,
    pub(super) listener: UnixListener,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Whoever has become another user since may not; then it is found to be dead.
        let _ = fs::remove_file(&self.path);
    }
}

/// The refusal of a second link of a name.
pub(super) fn runs_already(name: &str) -> String {
    let help = format!("'tidegate link stop --name {name}' ends it");
    format!("a link called '{name}' runs already; {help}, and --name gives another name")
}

/// Removes the socket of a link that has ended, if there still is one.
pub(super) fn forget(folder: &Path, name: &str) {
    let _ = fs::remove_file(path(folder, name));
}

/// Takes the socket of this name, also from a link that was killed.
pub(super) fn take(folder: &Path, name: &str) -> Result<Held, Failure> {
    let path = path(folder, name);
    let failed = |reason: io::Error| Failure::Other(format!("{}: {reason}", path.display()));
    DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(failed)?;
    // Of two that start at the same time, the second sees the first.
    let lock = File::open(folder).map_err(failed)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|reason| failed(reason.into()))?;
    match UnixStream::connect(&path) {
        Ok(_) => return Err(Failure::Other(runs_already(name))),
        Err(reason) if reason.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(&path).map_err(failed)?;
        }
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => {}
        Err(reason) => return Err(failed(reason)),
    }
    let before = umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(&path);
    umask(before);
    let listener = listener.map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(Held { path, listener })
}

/// A connection to the link of this name, or the reason why there is none.
pub(super) fn connect(folder: &Path, name: &str) -> io::Result<UnixStream> {
    UnixStream::connect(path(folder, name))
}

/// The names of the links that run, sorted. Those of others count too.
pub(super) fn running(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(ENDING)?.to_owned()))
        .filter(|name| match connect(folder, name) {
            Ok(_) => true,
            Err(reason) => reason.kind() == io::ErrorKind::PermissionDenied,
        })
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_name_is_taken_once_and_freed_by_death() {
        let folder = env::temp_dir().join(format!("tidegate-link-{}", std::process::id()));
        let held = take(&folder, "a").unwrap();
        let mode = fs::metadata(&held.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(running(&folder), ["a"]);
        assert!(
            matches!(take(&folder, "a"), Err(Failure::Other(text)) if text.contains("already"))
        );
        assert!(connect(&folder, "a").is_ok() && take(&folder, "b").is_ok());
        // As a link that is killed leaves it.
        let copy = folder.join("c.sock");
        drop(UnixListener::bind(&copy).unwrap());
        assert!(copy.exists() && running(&folder) == ["a"]);
        let taken = take(&folder, "c").unwrap();
        assert_eq!(running(&folder), ["a", "c"]);
        drop((held, taken));
        assert!(running(&folder).is_empty());
        fs::remove_dir(&folder).unwrap();
    }
}
