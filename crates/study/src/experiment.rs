//! All runs of a comparison, on all cores.
//!
//! A run is one thread and shares nothing with the others, so any number of
//! threads gives the same results, in the same order. Runs begin seed by seed:
//! whoever stops half-way has every discipline under the same seeds.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_sim::metrics::{Discard, Recorder, RunSummary};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};
use tidegate_sim::simulation;

use crate::pool;

/// One run of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its place in the results: by discipline, and by seed within it.
    pub index: usize,
    /// The discipline on the tested links.
    pub discipline: &'a DisciplineChoice,
    /// The seed of all its randomness.
    pub seed: u64,
}

/// What a program does with the rows of runs; called from many threads.
pub trait Output<'a>: Sync {
    /// Takes the rows of one run.
    type Recorder: Recorder;
    /// Why rows cannot be taken.
    type Error: Send;

    /// A run begins.
    ///
    /// # Errors
    /// When its rows could not be put anywhere; this stops the experiment.
    fn begin(&self, job: &Job<'a>) -> Result<Self::Recorder, Self::Error>;

    /// A run is over; it was cut off when `summary.reached` is before its end.
    ///
    /// # Errors
    /// When rows were lost; this stops the experiment.
    fn end(
        &self,
        job: &Job<'a>,
        recorder: Self::Recorder,
        summary: &RunSummary,
    ) -> Result<(), Self::Error>;
}

/// All runs of `scenario`, by discipline and seed.
#[must_use]
pub fn jobs(scenario: &Scenario) -> Vec<Job<'_>> {
    let pairs = scenario
        .disciplines
        .iter()
        .flat_map(|discipline| scenario.seeds.iter().map(move |seed| (discipline, *seed)));
    pairs.enumerate().map(|(index, (discipline, seed))| Job { index, discipline, seed }).collect()
}

/// Runs `scenario` with each discipline and seed on `threads` threads, and
/// returns what each run measured, by discipline and seed. Setting `stop` cuts
/// off the runs that are going, begins no other, and returns what there is.
///
/// # Errors
/// The first of `output`; it also sets `stop`.
pub fn run<'a, O: Output<'a>>(
    scenario: &'a Scenario,
    threads: usize,
    stop: &AtomicBool,
    output: &O,
) -> Result<Vec<RunSummary>, O::Error> {
    let mut queue = jobs(scenario);
    let seeds = scenario.seeds.len();
    queue.sort_by_key(|job| (job.index % seeds, job.index));
    let runs = pool::map(&queue, threads, stop, |job| {
        let run = output.begin(job).and_then(|mut recorder| {
            let summary = simulation::run(scenario, job.discipline, job.seed, &mut recorder, stop);
            output.end(job, recorder, &summary).map(|()| (job.index, summary))
        });
        run.inspect_err(|_| stop.store(true, Ordering::Relaxed))
    });
    let runs: BTreeMap<usize, RunSummary> = runs.into_iter().collect::<Result<_, _>>()?;
    Ok(runs.into_values().collect())
}

/// Takes rows and forgets them: the summaries of the runs are all that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Forget;

impl Output<'_> for Forget {
    type Recorder = Discard;
    type Error = Infallible;

    fn begin(&self, _: &Job<'_>) -> Result<Discard, Infallible> {
        Ok(Discard)
    }

    fn end(&self, _: &Job<'_>, _: Discard, _: &RunSummary) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::scenario::file::{self, Folder};

    struct Fail;

    impl Output<'_> for Fail {
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
