//! The steps of every comparison, whatever is compared: it runs each contender
//! with each seed, writes rows, figures, report and manifest into a folder, and
//! prints a table of the results. After an interruption the finished runs
//! remain, marked as partial.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::Serialize;
use tidegate_study::columns::Names;
use tidegate_study::data::DataFile;
use tidegate_study::experiment::{self, Job, Output, Study};
use tidegate_study::manifest::{self, Manifest};

use crate::arguments::ResultArguments;
use crate::calls;
use crate::failure::Failure;
use crate::folder::{CSV, JSON, ResultFolder};
use crate::inputs::Input;
use crate::interrupt::stop_flag;
use crate::output::{json, print};
use crate::progress::Progress;
use crate::report;
use crate::rows::{RowWriter, Table};
use crate::serve;
use tidegate_study::machine;

/// What can be compared, and how its results look.
pub(crate) trait Compared: Study {
    /// The runs summed up.
    type Summary: Serialize;

    /// The tables of rows that its runs fill.
    fn tables(&self) -> &'static [Table];

    /// What its rows are about.
    fn names(&self) -> Names;

    /// Sums the runs up.
    fn sum_up(&self, input: &Input, runs: &[Self::Run]) -> Self::Summary;

    /// Whether runs are missing.
    fn is_partial(summary: &Self::Summary) -> bool;

    /// `summary.csv`.
    fn csv(summary: &Self::Summary) -> Vec<u8>;

    /// The calls that were recorded, as CSV; `None` without any.
    fn calls(_summary: &Self::Summary) -> Option<Vec<u8>> {
        None
    }

    /// The table for a terminal.
    fn text(&self, summary: &Self::Summary) -> String;

    /// Writes the report into `folder`.
    ///
    /// # Errors
    /// When it cannot be written.
    fn report(&self, folder: &Path, summary: &Self::Summary, manifest: &Manifest)
    -> io::Result<()>;
}

/// Compares the contenders of `study`, which `input` describes with the files
/// in `data`. With an `earlier` manifest, it checks the results against that.
pub(crate) fn compare<S: Compared>(
    study: &S,
    input: &Input,
    data: Vec<DataFile>,
    earlier: Option<&Manifest>,
    arguments: &ResultArguments,
) -> Result<(), Failure> {
    let folder = ResultFolder::prepare(arguments.out.as_deref(), arguments.force, &input.stem)?;
    let stop = stop_flag()?;
    let threads = arguments.threads.map_or_else(machine::cores, NonZeroUsize::get);
    let mut manifest = Manifest::of(study, input.source(), data, threads);
    let begun = Instant::now();

    let jobs = experiment::jobs(study);
    let progress = Progress::new(jobs.len(), study.duration());
    let rows = Rows { folder: &folder, names: study.names(), progress: &progress };
    let outcome = experiment::run(study, threads, stop, &rows);
    progress.finish();
    let runs = outcome.map_err(|reason| {
        folder.discard();
        Failure::unwritable(folder.path(), &reason)
    })?;
    let runs = experiment::worth_keeping(study, runs);
    if runs.is_empty() {
        folder.discard();
        return Err(Failure::Interrupted("interrupted before there was any result".into()));
    }

    let summary = study.sum_up(input, &runs);
    folder.join(study.tables(), rows.names.contender, &experiment::places(study, &jobs, &runs))?;
    let document = json(&summary);
    folder.write(CSV, &S::csv(&summary))?;
    folder.write(JSON, document.as_bytes())?;
    let mut results: Vec<_> = study.tables().iter().map(|table| table.file()).collect();
    results.extend([CSV, JSON, report::NAME]);
    if let Some(calls) = S::calls(&summary) {
        folder.write(calls::FILE, &calls)?;
        results.push(calls::FILE);
    }
    manifest.partial = S::is_partial(&summary);
    manifest.note_runs(study, &runs);
    study
        .report(folder.path(), &summary, &manifest)
        .map_err(|reason| Failure::unwritable(&folder.path().join(report::NAME), &reason))?;
    manifest.made.wall_s = begun.elapsed().as_secs_f64();
    manifest
        .note_results(folder.path(), results)
        .map_err(|(name, reason)| Failure::unwritable(&folder.path().join(name), &reason))?;
    folder.write(manifest::NAME, json(&manifest).as_bytes())?;

    if arguments.json {
        print(&document)?;
    } else {
        print(&study.text(&summary))?;
        let took = Duration::from_secs_f64(manifest.made.wall_s);
        print(&report::written(runs.len(), took, folder.path()))?;
    }
    if stop.load(Ordering::Relaxed) && manifest.partial {
        let (done, all) = (runs.len(), jobs.len());
        return Err(Failure::Interrupted(format!(
            "interrupted: the results cover {done} of {all} runs, and are marked as partial"
        )));
    }
    earlier.map_or(Ok(()), |earlier| check(earlier, &manifest))?;
    if arguments.serve { serve::beside(folder.path()) } else { Ok(()) }
}

/// Reports whether the results are those of the earlier comparison.
fn check(earlier: &Manifest, now: &Manifest) -> Result<(), Failure> {
    if earlier.partial {
        eprintln!("The manifest describes a partial comparison; this one is complete.");
        return Ok(());
    }
    let changed = earlier.changed(now);
    if changed.is_empty() {
        eprintln!("All {} results are the same as before, byte for byte.", earlier.results.len());
        return Ok(());
    }
    let by = if earlier.tidegate == now.tidegate {
        String::new()
    } else {
        format!(" (made by tidegate {}, this is {})", earlier.tidegate, now.tidegate)
    };
    Err(Failure::Other(format!("not the same as before{by}: {}", changed.join(", "))))
}

/// Puts the rows of runs into the folder.
struct Rows<'a> {
    folder: &'a ResultFolder,
    names: Names,
    progress: &'a Progress,
}

impl<'a, S: Study> Output<'a, S> for Rows<'a> {
    type Recorder = RowWriter<'a>;
    type Error = io::Error;

    fn begin(&self, job: &Job<'a>) -> io::Result<RowWriter<'a>> {
        RowWriter::new(self.folder, self.names.clone(), self.progress, job)
    }

    fn end(&self, _: &Job<'a>, recorder: RowWriter<'a>, _: &S::Run) -> io::Result<()> {
        recorder.finish()
    }
}
