//! Ctrl-C and termination: the first signal stops the runs and keeps finished
//! work; the second ends the program at once, and takes what it would leave behind
//! with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::failure::Failure;

/// Becomes true at the first signal. Call it once.
pub(crate) fn stop_flag() -> Result<&'static AtomicBool, Failure> {
    static STOP: AtomicBool = AtomicBool::new(false);
    static HANDLER: OnceLock<Result<(), String>> = OnceLock::new();
    let installed = HANDLER.get_or_init(|| {
        ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                remove_scratch();
                std::process::exit(130);
            }
        })
        .map_err(|error| error.to_string())
    });
    match installed {
        Ok(()) => Ok(&STOP),
        Err(error) => Err(Failure::Other(format!("cannot listen for signals: {error}"))),
    }
}

/// The folder of what is of no use without the rest of the run.
static SCRATCH: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Has the second signal remove this folder, and the one around it if nothing else is in
/// that; `None` when there is nothing to remove any more.
pub(crate) fn set_scratch(folder: Option<&Path>) {
    *SCRATCH.lock().unwrap_or_else(PoisonError::into_inner) = folder.map(Path::to_path_buf);
}

fn remove_scratch() {
    /// The runs go on writing while their folder is being removed.
    const ATTEMPTS: u32 = 10;

    let scratch = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(folder) = scratch.as_deref() else { return };
    for _ in 0..ATTEMPTS {
        if fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            break;
        }
    }
    // It stays if it has anything else in it.
    let _ = folder.parent().map(fs::remove_dir);
}
