//! Long work beside Python: its other threads go on, progress is told, and Ctrl-C ends it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// So often it is asked whether the user wants the work to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Who is told of progress, and how much is done.
pub(crate) struct Progress<'a, 'py> {
    pub(crate) tell: &'a Bound<'py, PyAny>,
    pub(crate) part: &'a dyn Fn() -> f64,
}

/// Does `work` on a thread of its own, while this one listens to Python. An interruption, or
/// an exception of who is told, sets `stop`, and is returned once the work has ended.
pub(crate) fn during<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    progress: Option<&Progress<'_, '_>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    thread::scope(|scope| {
        let work = scope.spawn(work);
        let listen = || {
            while !work.is_finished() {
                py.detach(|| thread::sleep(LOOK_EVERY));
                py.check_signals()?;
                if let Some(Progress { tell, part }) = progress {
                    tell.call1((part().min(1.0),))?;
                }
            }
            Ok(())
        };
        let heard = listen();
        if heard.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        let done = py.detach(|| work.join());
        heard.map(|()| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
