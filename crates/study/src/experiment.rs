//! All runs of a comparison, on all cores.
//!
//! A [`Study`] compares contenders under the same traffic: disciplines on the
//! links of a scenario, or ways of sharing a gateway's link. A run uses one
//! thread and shares nothing with the others, so any number of threads gives
//! the same results, in the same order. Runs begin seed by seed: a study that
//! stops half-way has results of every contender under the same seeds.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::{Span, Time};
use tidegate_sim::metrics::{Discard, Recorder, RunSummary};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::simulation;

use crate::manifest::Contender;
use crate::pool;

/// The contenders of a comparison, and its conditions.
pub trait Study: Sync {
    /// The stored result of a run.
    type Run: Send;

    /// The names of the contenders in results; each label once.
    fn labels(&self) -> Vec<&str>;

    /// The contenders with all their parameters, in the order of their labels.
    fn contenders(&self) -> Vec<Contender>;

    /// Each contender runs once with each.
    fn seeds(&self) -> &[u64];

    /// Simulated time of each run.
    fn duration(&self) -> Span;

    /// Runs the contender at this place with this seed. Setting `stop` cuts the run off.
    fn run(
        &self,
        contender: usize,
        seed: u64,
        recorder: &mut dyn Recorder,
        stop: &AtomicBool,
    ) -> Self::Run;

    /// Its identity and its progress.
    fn about<'a>(&'a self, run: &'a Self::Run) -> About<'a>;
}

/// Its identity and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About<'a> {
    /// The label of the contender.
    pub label: &'a str,
    /// The seed.
    pub seed: u64,
    /// Simulated time that was reached; less than the study's when it was cut off.
    pub reached: Time,
    /// Events handled, as a measure of work, where they are counted.
    pub events: Option<u64>,
}

impl Study for Scenario {
    type Run = RunSummary;

    fn labels(&self) -> Vec<&str> {
        self.disciplines.iter().map(|choice| choice.label.as_str()).collect()
    }

    fn contenders(&self) -> Vec<Contender> {
        self.disciplines.iter().map(Contender::from).collect()
    }

    fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    fn duration(&self) -> Span {
        self.duration
    }

    fn run(
        &self,
        contender: usize,
        seed: u64,
        recorder: &mut dyn Recorder,
        stop: &AtomicBool,
    ) -> RunSummary {
        simulation::run(self, &self.disciplines[contender], seed, recorder, stop)
    }

    fn about<'a>(&'a self, run: &'a RunSummary) -> About<'a> {
        let RunSummary { discipline, seed, reached, events, .. } = run;
        About { label: discipline, seed: *seed, reached: *reached, events: Some(*events) }
    }
}

/// One run of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job<'a> {
    /// Its place in the results: by contender, and by seed within it.
    pub index: usize,
    /// The place of the contender.
    pub contender: usize,
    /// Its label.
    pub label: &'a str,
    /// The seed of all its randomness.
    pub seed: u64,
}

/// The destination for the rows of the runs of an `S`; many threads call it.
pub trait Output<'a, S: Study>: Sync {
    /// Takes the rows of one run.
    type Recorder: Recorder;
    /// The reason why rows cannot be stored.
    type Error: Send;

    /// A run begins.
    ///
    /// # Errors
    /// If its rows cannot be stored; this stops the experiment.
    fn begin(&self, job: &Job<'a>) -> Result<Self::Recorder, Self::Error>;

    /// A run is over; it was cut off if the time that it reached is before its end.
    ///
    /// # Errors
    /// If rows were lost; this stops the experiment.
    fn end(&self, job: &Job<'a>, recorder: Self::Recorder, run: &S::Run)
    -> Result<(), Self::Error>;
}

/// All runs of `study`, by contender and seed.
pub fn jobs<S: Study>(study: &S) -> Vec<Job<'_>> {
    let labels = study.labels().into_iter().enumerate();
    let pairs = labels.flat_map(|it| study.seeds().iter().map(move |seed| (it, *seed)));
    let job = |(index, ((contender, label), seed))| Job { index, contender, label, seed };
    pairs.enumerate().map(job).collect()
}

/// Runs each contender of `study` with each seed on `threads` threads, and returns
/// what is kept of each run, by contender and seed. Setting `stop` cuts off the
/// active runs, begins no others, and returns the results so far.
///
/// # Errors
/// The first of `output`, in the order of the runs; it also sets `stop`.
pub fn run<'a, S: Study, O: Output<'a, S>>(
    study: &'a S,
    threads: usize,
    stop: &AtomicBool,
    output: &O,
) -> Result<Vec<S::Run>, O::Error> {
    let mut queue = jobs(study);
    let seeds = study.seeds().len();
    queue.sort_by_key(|job| (job.index % seeds, job.index));
    let runs = pool::map(&queue, threads, stop, |job| {
        let run = output.begin(job).and_then(|mut recorder| {
            let run = study.run(job.contender, job.seed, &mut recorder, stop);
            output.end(job, recorder, &run).map(|()| (job.index, run))
        });
        run.inspect_err(|_| stop.store(true, Ordering::Relaxed))
    });
    let runs: BTreeMap<usize, S::Run> = runs.into_iter().collect::<Result<_, _>>()?;
    Ok(runs.into_values().collect())
}

/// The `runs` that reached their end; if an interruption left none, all that were cut off.
pub fn worth_keeping<S: Study>(study: &S, mut runs: Vec<S::Run>) -> Vec<S::Run> {
    let end = Time::ZERO + study.duration();
    let whole = |run: &S::Run| study.about(run).reached >= end;
    if runs.iter().any(whole) {
        runs.retain(whole);
    }
    runs
}

/// The places among `jobs` of these `runs`.
pub fn places<S: Study>(study: &S, jobs: &[Job<'_>], runs: &[S::Run]) -> Vec<usize> {
    let is_of = |job: &Job<'_>, run: &S::Run| {
        let About { label, seed, .. } = study.about(run);
        label == job.label && seed == job.seed
    };
    let done = jobs.iter().filter(|job| runs.iter().any(|run| is_of(job, run)));
    done.map(|job| job.index).collect()
}

/// Discards rows, for callers that need only the summaries of the runs.
#[derive(Clone, Copy, Debug)]
pub struct Forget;

impl<S: Study> Output<'_, S> for Forget {
    type Recorder = Discard;
    type Error = Infallible;

    fn begin(&self, _: &Job<'_>) -> Result<Discard, Infallible> {
        Ok(Discard)
    }

    fn end(&self, _: &Job<'_>, _: Discard, _: &S::Run) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::scenario::file::{self, Folder};

    struct Fail;

    impl Output<'_, Scenario> for Fail {
        type Recorder = Discard;
        type Error = String;

        fn begin(&self, job: &Job<'_>) -> Result<Discard, String> {
            if job.index == 3 { Err("full".into()) } else { Ok(Discard) }
        }

        fn end(&self, _: &Job<'_>, _: Discard, _: &RunSummary) -> Result<(), String> {
            Ok(())
        }
    }

    fn scenario() -> Scenario {
        let text = r#"
            title = "t"
            duration = "2 s"
            seeds = [7, 3, 5]
            disciplines = ["fifo", "efd"]
            dumbbell = {}
            [[traffic.transfers]]
            name = "files"
            from = "senders"
            to = "receivers"
            load = "5 Mbit/s"
            sizes = "20 kB"
        "#;
        file::parse("t", text, &Folder(".".into())).unwrap()
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let scenario = scenario();
        let with = |threads| run(&scenario, threads, &AtomicBool::new(false), &Forget).unwrap();
        let runs = with(1);
        let order: Vec<_> = runs.iter().map(|run| (run.discipline.as_str(), run.seed)).collect();
        let expected = [("fifo", 7), ("fifo", 3), ("fifo", 5), ("efd", 7), ("efd", 3), ("efd", 5)];
        assert_eq!(order, expected);
        assert_eq!(format!("{:?}", with(4)), format!("{runs:?}"));
    }

    #[test]
    fn a_failure_stops_everything_and_is_returned() {
        let stop = AtomicBool::new(false);
        assert_eq!(run(&scenario(), 2, &stop, &Fail).unwrap_err(), "full");
        assert!(stop.load(Ordering::Relaxed));
    }

    #[test]
    fn nothing_runs_when_stopped_before() {
        let runs = run(&scenario(), 2, &AtomicBool::new(true), &Forget).unwrap();
        assert!(runs.is_empty());
    }
}
