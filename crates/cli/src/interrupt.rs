//! Ctrl-C and termination: the first signal stops the runs and keeps finished
//! work; the second ends the program at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// Becomes true at the first signal. Call it once.
pub(crate) fn stop_flag() -> Result<&'static AtomicBool, Failure> {
    static STOP: AtomicBool = AtomicBool::new(false);
    static HANDLER: OnceLock<Result<(), String>> = OnceLock::new();
    let installed = HANDLER.get_or_init(|| {
        ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
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
