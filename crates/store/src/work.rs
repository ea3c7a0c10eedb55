//! All runs of a study on the cores of this machine, and single ones for those who hand them
//! out themselves.
//!
//! A run that fails takes no other with it: what was wrong is told at the end, with
//! everything that repeats the run.

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_study::pool;

use crate::folder::Folder;
use crate::study::{Part, Point, Run, Study};

/// The scenarios that runs need at the moment: those of one point more than there may be
/// threads, since runs begin point by point.
#[derive(Debug)]
pub struct Points {
    study: Study,
    most: usize,
    read: Mutex<Vec<(usize, Arc<Point>)>>,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which one.
    pub run: Run,
    /// Why.
    pub message: String,
}

impl Points {
    /// For as many threads.
    #[must_use]
    pub fn new(study: Study, threads: usize) -> Points {
        Points { study, most: threads.saturating_add(1), read: Mutex::default() }
    }

    /// Their study.
    #[must_use]
    pub fn study(&self) -> &Study {
        &self.study
    }

    fn find(&self, point: usize) -> Result<Arc<Point>, String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = read.iter().find(|(it, _)| *it == point) {
            return Ok(found.clone());
        }
        let found = Arc::new(self.study.point(point).map_err(|error| error.to_string())?);
        if read.len() >= self.most {
            read.remove(0);
        }
        read.push((point, found.clone()));
        Ok(found)
    }

    /// Does `run`, and returns its parts; `None` if it was stopped.
    ///
    /// # Errors
    /// What is wrong with its scenario, or the message with which the simulator panicked.
    pub fn perform(&self, run: Run, stop: &AtomicBool) -> Result<Option<Vec<Part>>, String> {
        // Nothing of a run outlives its failure.
        let work = AssertUnwindSafe(|| {
            let point = self.find(run.point)?;
            Ok(self.study.perform(&point, run, stop))
        });
        panic::catch_unwind(work)
            .unwrap_or_else(|panic| Err(format!("the simulator failed: {}", in_words(&*panic))))
    }
}

/// What a panic has said.
#[must_use]
pub fn in_words(panic: &(dyn Any + Send)) -> &str {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it did not say why")
}

/// Does all runs of `study` on `threads` threads, except those that `folder` has, and keeps
/// each there as soon as it is done. `done` is called once for each run, also for one that
/// was there. Setting `stop` cuts off the active runs. Returns the runs that failed.
///
/// # Errors
/// If a run cannot be kept; it also sets `stop`.
pub fn run(
    study: &Study,
    folder: &Folder,
    threads: usize,
    stop: &AtomicBool,
    done: &(dyn Fn() + Sync),
) -> io::Result<Vec<Failure>> {
    let missing = folder.missing(study);
    (missing.len()..study.size()).for_each(|_| done());
    let points = Points::new(study.clone(), threads);
    let outcomes = pool::map(&missing, threads, stop, |run| {
        let failure = match points.perform(*run, stop) {
            Ok(Some(parts)) => folder.keep(&parts).map(|()| None),
            Ok(None) => return Ok(None),
            Err(message) => Ok(Some(Failure { run: *run, message })),
        };
        done();
        failure.inspect_err(|_| stop.store(true, Ordering::Relaxed))
    });
    let outcomes: io::Result<Vec<Option<Failure>>> = outcomes.into_iter().collect();
    Ok(outcomes?.into_iter().flatten().collect())
}
