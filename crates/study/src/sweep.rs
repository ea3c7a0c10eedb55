//! Comparisons over the values of one or two keys of a scenario.
//!
//! One link has one verdict, and the next question is where that verdict ends: from what
//! rate on does the queue matter no longer, up to what round trip? A sweep compares the
//! same disciplines under the same seeds at each [point](Point) of a grid. A point is the
//! scenario with its keys set to the values of the point, and is read as any scenario:
//! everything is checked before anything runs.
//!
//! The runs of all points share one pool of threads, point by point, so that no core waits
//! at the end of a point. A point that is complete is condensed to its verdict and its
//! values, and is stored under a key of everything that determines it. An interrupted
//! sweep therefore continues where it was, and a larger one reuses what it has in common
//! with a smaller one. A point counts only if all its runs reached their end: a verdict on
//! some of the seeds would not be comparable with those beside it.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use tidegate_sim::scenario::file::{Overrides, vary};
//! use tidegate_study::shipped::Beside;
//! use tidegate_study::sweep::{self, Axis, Plan};
//!
//! let path = "papers/EFD/dumbbell.toml";
//! let text = tidegate_scenarios::text(path).expect("it is shipped");
//! let axes: Vec<Axis> = vec!["rate=5 Mbit/s,20 Mbit/s".parse()?];
//! let short = Overrides {
//!     duration: Some("1 s".parse()?),
//!     seeds: Some(vec![1, 2]),
//!     disciplines: Some(vec!["fifo".parse()?, "efd".parse()?]),
//! };
//! # let text = text.replace("warm_up", "# warm_up");
//! let plan = Plan::of(axes, |settings| vary::parse(path, &text, &Beside(path), &short, settings))?;
//! let results = sweep::run(&plan, 2, &AtomicBool::new(false), None, &|_| ())?;
//! let sweep = plan.sum_up(results);
//! assert!(sweep.points.iter().all(|point| point.result.is_some()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod axis;
mod kept;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tidegate_sim::metrics::{Discard, RunSummary};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::vary::{Setting, SettingError};

use crate::comparison::{self, Comparison, DisciplineResult};
use crate::experiment::{self, Study};
use crate::measure::{Facts, Row};
use crate::pool;
use crate::verdict::{Need, Verdict};

pub use axis::{Axis, AxisError, Scale};

/// A thread that panics ends the program.
const POISON: &str = "no thread panics while it holds this lock";

/// More points than anybody waits for; each is a scenario in memory, with its data.
const MOST_POINTS: usize = 1_000;

/// The points of a sweep, checked, before anything has run.
#[derive(Clone, Debug)]
pub struct Plan {
    axes: Vec<Axis>,
    /// The last axis varies fastest.
    points: Vec<(Vec<String>, Scenario)>,
}

impl Plan {
    /// The points of `axes`, each of which `read` makes of its settings.
    ///
    /// # Errors
    /// The first error of `read`, point by point; a key that is given twice; and more than
    /// 1000 points.
    pub fn of(
        axes: Vec<Axis>,
        mut read: impl FnMut(&[Setting]) -> Result<Scenario, SettingError>,
    ) -> Result<Plan, SettingError> {
        let places = points(&axes)?;
        let point = |place: Vec<String>| {
            let settings = axes
                .iter()
                .zip(&place)
                .map(|(axis, value)| Setting { key: axis.key.clone(), value: value.clone() });
            let scenario = read(&settings.collect::<Vec<_>>())?;
            Ok((place, scenario))
        };
        let points = places.into_iter().map(point).collect::<Result<_, _>>()?;
        Ok(Plan { axes, points })
    }

    /// What is varied.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The scenario of each point.
    pub fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        self.points.iter().map(|(_, scenario)| scenario)
    }

    /// Simulated time of all runs of all points.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.scenarios().map(duration).fold(Span::ZERO, |sum, it| sum + it)
    }

    /// The sweep with these `results`, one for each point.
    #[must_use]
    pub fn sum_up(&self, results: Vec<Option<Found>>) -> Sweep {
        let first = self.scenarios().next();
        let points = self.points.iter().zip(results);
        Sweep {
            title: first.map_or_else(String::new, |it| it.title.clone()),
            description: first.map_or_else(String::new, |it| it.description.clone()),
            axes: self.axes.clone(),
            disciplines: first.map_or_else(Vec::new, |it| {
                it.disciplines.iter().map(|choice| choice.label.clone()).collect()
            }),
            seeds: first.map_or_else(Vec::new, |it| it.seeds.clone()),
            points: points.map(|((at, _), result)| Point { at: at.clone(), result }).collect(),
        }
    }
}

/// The values of each point of a grid over `axes`; the last axis varies fastest.
///
/// # Errors
/// A key that is given twice, and more than 1000 points.
pub fn points(axes: &[Axis]) -> Result<Vec<Vec<String>>, SettingError> {
    let keys: BTreeSet<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
    if let (true, Some(last)) = (keys.len() < axes.len(), axes.last()) {
        return Err(SettingError {
            key: last.key.clone(),
            found: "the same key twice".into(),
            expected: "each once, with all its values".into(),
        });
    }
    let count = axes.iter().fold(1, |all: usize, axis| all.saturating_mul(axis.values.len()));
    if let (true, Some(last)) = (count > MOST_POINTS, axes.last()) {
        return Err(SettingError {
            key: last.key.clone(),
            found: format!("{count} points in all"),
            expected: format!("at most {MOST_POINTS}"),
        });
    }
    let mut places: Vec<Vec<String>> = vec![Vec::new()];
    for axis in axes {
        let next = |place: &Vec<String>| {
            let place = place.clone();
            axis.values.iter().map(move |value| [&place[..], std::slice::from_ref(value)].concat())
        };
        places = places.iter().flat_map(next).collect();
    }
    Ok(places)
}

/// Simulated time of all runs of a point.
fn duration(scenario: &Scenario) -> Span {
    scenario.duration * (scenario.disciplines.len() * scenario.seeds.len()) as u64
}

/// A sweep and what came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Title of the scenario.
    pub title: String,
    /// What the scenario shows.
    pub description: String,
    /// What was varied.
    pub axes: Vec<Axis>,
    /// The labels of what was compared at each point.
    pub disciplines: Vec<String>,
    /// The seeds; at each point each discipline ran once with each.
    pub seeds: Vec<u64>,
    /// All points; the last axis varies fastest.
    pub points: Vec<Point>,
}

/// A point and what was measured there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The value of each axis.
    pub at: Vec<String>,
    /// `None` where the runs were interrupted.
    pub result: Option<Found>,
}

/// What was measured at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// What to run there, and why.
    pub verdict: Verdict,
    /// The kinds and names of the subjects that disciplines are judged by.
    pub judged: Vec<(String, String)>,
    /// The values of each discipline, in the order of their labels.
    pub disciplines: Vec<Values>,
}

/// The values of a discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Values {
    /// Its label.
    pub label: String,
    /// One for each subject and measure that has a value.
    pub rows: Vec<Row>,
}

/// What a map shows: a measure of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The kind of the subject.
    pub kind: String,
    /// The subject.
    pub name: String,
    /// The measure.
    pub facts: Facts,
    /// Whether disciplines are judged by it: it has a headline, and the subject counts.
    pub judges: bool,
}

impl Found {
    /// Condenses the runs of a point.
    #[must_use]
    pub fn of(scenario: &Scenario, runs: &[RunSummary]) -> Found {
        let comparison = Comparison::of(scenario, runs);
        let disciplines = comparison.disciplines.iter();
        let first = comparison.disciplines.first();
        Found {
            verdict: Verdict::of(&comparison),
            judged: first.map_or_else(Vec::new, DisciplineResult::judged_by),
            disciplines: disciplines
                .map(|it| Values { label: it.label.clone(), rows: it.rows() })
                .collect(),
        }
    }

    /// The value of `theme` for the discipline at this place.
    #[must_use]
    pub fn value(&self, discipline: usize, theme: &Theme) -> Option<&Row> {
        let rows = &self.disciplines.get(discipline)?.rows;
        rows.iter().find(|row| {
            (&*row.kind, &*row.name, &*row.metric) == (&*theme.kind, &*theme.name, theme.facts.name)
        })
    }
}

impl Sweep {
    /// Whether points are missing.
    #[must_use]
    pub fn partial(&self) -> bool {
        self.points.iter().any(|point| point.result.is_none())
    }

    /// All measures of all subjects that have a value anywhere, in the order of tables.
    #[must_use]
    pub fn themes(&self) -> Vec<Theme> {
        let mut themes: Vec<Theme> = Vec::new();
        let facts: Vec<_> = comparison::measured().collect();
        for found in self.points.iter().filter_map(|point| point.result.as_ref()) {
            for row in found.disciplines.iter().flat_map(|it| &it.rows) {
                let is_of =
                    |(kind, facts): &&(&str, Facts)| *kind == row.kind && facts.name == row.metric;
                let Some((_, facts)) = facts.iter().find(is_of) else { continue };
                let subject = (row.kind.clone(), row.name.clone());
                let judges = facts.headline.is_some() && found.judged.contains(&subject);
                let (kind, name) = subject;
                let theme = Theme { kind, name, facts: *facts, judges };
                if !themes.contains(&theme) {
                    themes.push(theme);
                }
            }
        }
        themes
    }

    /// The measure of the most urgent need, by which verdicts are decided first.
    #[must_use]
    pub fn most_urgent(&self) -> Option<&'static str> {
        let verdicts = self.points.iter().filter_map(|point| Some(&point.result.as_ref()?.verdict));
        let needs = verdicts.flat_map(|verdict| &verdict.contests).map(|contest| contest.need);
        needs.min().map(Need::metric)
    }
}

/// A run of a point.
struct Job {
    point: usize,
    contender: usize,
    seed: u64,
    /// Its place among the runs of the point: by contender, and by seed within it.
    index: usize,
}

/// Runs all points of `plan` on `threads` threads, except those whose results `folder`
/// has; those that are complete are stored there. `advanced` is told of each piece of
/// simulated time. Setting `stop` cuts off the active runs, and points that are not
/// complete have no result.
///
/// # Errors
/// When a result cannot be stored; it also sets `stop`.
pub fn run(
    plan: &Plan,
    threads: usize,
    stop: &AtomicBool,
    folder: Option<&Path>,
    advanced: &(dyn Fn(Span) + Sync),
) -> io::Result<Vec<Option<Found>>> {
    let mut results: Vec<Option<Found>> = Vec::new();
    let mut jobs = Vec::new();
    for (point, scenario) in plan.scenarios().enumerate() {
        let stored = folder.and_then(|folder| kept::find(folder, scenario));
        match &stored {
            Some(_) => advanced(duration(scenario)),
            None => {
                let of_point = experiment::jobs(scenario).into_iter().map(|job| Job {
                    point,
                    contender: job.contender,
                    seed: job.seed,
                    index: job.index,
                });
                jobs.extend(of_point);
            }
        }
        results.push(stored);
    }
    let runs: Vec<Mutex<Vec<Option<RunSummary>>>> = plan
        .scenarios()
        .map(|it| Mutex::new(vec![None; it.disciplines.len() * it.seeds.len()]))
        .collect();
    let work = |job: &Job| -> io::Result<Option<(usize, Found)>> {
        let scenario = &plan.points[job.point].1;
        let run = Study::run(scenario, job.contender, job.seed, &mut Discard, stop);
        advanced(scenario.duration);
        if run.reached.0 < scenario.duration.0 {
            return Ok(None);
        }
        let complete = {
            let mut runs = runs[job.point].lock().expect(POISON);
            runs[job.index] = Some(run);
            // The last run of a point takes them all, and memory holds no point for long.
            runs.iter().all(Option::is_some).then(|| std::mem::take(&mut *runs))
        };
        let Some(complete) = complete else { return Ok(None) };
        let complete: Vec<RunSummary> = complete.into_iter().flatten().collect();
        let found = Found::of(scenario, &complete);
        folder.map_or(Ok(()), |folder| kept::keep(folder, scenario, &found))?;
        Ok(Some((job.point, found)))
    };
    let done = pool::map(&jobs, threads, stop, |job| {
        work(job).inspect_err(|_| stop.store(true, Ordering::Relaxed))
    });
    for found in done {
        if let Some((point, found)) = found? {
            results[point] = Some(found);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests;
