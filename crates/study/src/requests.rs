//! The runs of ways of sharing a gateway's link, summed up over the seeds, in
//! seconds, bits per second and shares of one.

mod standard;

use std::fmt;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use tidegate_core::{Span, Time};
use tidegate_sim::metrics::Recorder;
use tidegate_sim::requests::{ClassOutcome, Outcome, run_way};
use tidegate_sim::scenario::file::gateway::Comparison;

use crate::experiment::{About, Study};
use crate::manifest::Contender;
use crate::measure::{Better, Facts, Measure, Quantity, Table, Value};
use crate::{Centre, Sample};

pub use standard::Standard;

/// The stored result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The place of the way.
    pub way: usize,
    /// The seed.
    pub seed: u64,
    /// What came out.
    pub outcome: Outcome,
}

impl Study for Comparison {
    type Run = Run;

    fn labels(&self) -> Vec<&str> {
        self.ways.iter().map(|way| way.label.as_str()).collect()
    }

    /// Their labels: the file has their settings.
    fn contenders(&self) -> Vec<Contender> {
        self.ways.iter().map(Contender::from).collect()
    }

    fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    fn duration(&self) -> Span {
        self.setup.duration
    }

    fn run(
        &self,
        contender: usize,
        seed: u64,
        recorder: &mut dyn Recorder,
        stop: &AtomicBool,
    ) -> Run {
        let outcome = run_way(&self.setup, &self.ways[contender], seed, recorder, stop);
        Run { way: contender, seed, outcome }
    }

    fn about<'a>(&'a self, run: &'a Run) -> About<'a> {
        let Run { way, seed, outcome } = run;
        let label = self.ways[*way].label.as_str();
        About { label, seed: *seed, reached: outcome.reached, events: None }
    }
}

/// The results of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Title of the gateway.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// Its file.
    pub file: String,
    /// Simulated time of each run.
    pub duration_s: f64,
    /// Requests that began before this are not reported.
    pub warm_up_s: f64,
    /// The seeds; each way ran once with each.
    pub seeds: Vec<u64>,
    /// Whether the comparison was interrupted: some runs are missing.
    pub partial: bool,
    /// One entry for each way that has a run, in the order asked for.
    pub ways: Vec<Way>,
}

/// One way of sharing the link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Its name.
    pub label: String,
    /// The number of runs with results.
    pub runs: usize,
    /// Share of the downlink that was used.
    pub utilisation: Option<Sample>,
    /// Share of the time in which the link was full.
    pub full: Option<Sample>,
    /// Whether that was enough for shares to show what the way does: see
    /// [`Way::untested`].
    pub shares_tested: bool,
    /// The 95% quantile of the time in the provider's queue.
    pub queueing_p95_s: Option<Sample>,
    /// The median of responses below 10 kB, of all classes together.
    pub small_p50_s: Option<Sample>,
    /// Class by class.
    pub classes: Vec<Class>,
}

/// One class under one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its weight in the file.
    pub weight: u32,
    /// Payload that reached the gateway for it.
    pub throughput_bps: Option<Sample>,
    /// Its share of what all classes received.
    pub share: Option<Sample>,
    /// The share that weights promise it, if the way has any: see [`Standard`].
    pub due_share: Option<f64>,
    /// From asking to the last byte.
    pub response_mean_s: Option<Sample>,
    /// Median of the same.
    pub response_p50_s: Option<Sample>,
    /// 95th percentile of the same.
    pub response_p95_s: Option<Sample>,
    /// 99th percentile of the same.
    pub response_p99_s: Option<Sample>,
    /// The median of responses below 10 kB.
    pub small_p50_s: Option<Sample>,
    /// How its requests ended.
    #[serde(flatten)]
    pub counts: Counts,
}

/// The least part of the time in which the link has to be full for shares to be tested.
/// They are those of the whole time, and while the link has room everybody receives what
/// they ask for, whatever the way would decide.
const TESTED: f64 = 0.5;

/// Why shares do not show what a way does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Untested {
    /// The link always had room.
    NeverFull,
    /// It had room for more than half of the time; it was full for this part of it.
    RarelyFull(f64),
}

impl Untested {
    /// What follows when the link was full for this part of the time.
    fn of(full: Option<&Sample>) -> Option<Untested> {
        match full.map_or(0.0, |full| full.estimate().value) {
            0.0 => Some(Untested::NeverFull),
            part if part < TESTED => Some(Untested::RarelyFull(part)),
            _ => None,
        }
    }
}

impl fmt::Display for Untested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Untested::NeverFull => f.write_str("the link was never full"),
            Untested::RarelyFull(part) => {
                write!(f, "the link was full for only {:.1}% of the time", part * 100.0)
            }
        }
    }
}

/// What `value` finds in each run.
fn sample(
    centre: Centre,
    runs: &[&Run],
    value: impl Fn(&Outcome) -> Option<f64>,
) -> Option<Sample> {
    Sample::of(centre, runs.iter().map(|run| (run.seed, value(&run.outcome))))
}

/// How requests ended, of all seeds together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests that clients made. Each counts in one of the fields below.
    pub asked: u64,
    /// Answered.
    pub completed: u64,
    /// Refused, because too many were already waiting.
    pub refused: u64,
    /// Broken: TCP gave up a connection.
    pub broken: u64,
    /// Reset by the server.
    pub reset: u64,
    /// Stalled: nothing arrived for too long.
    pub stalled: u64,
    /// Abandoned by users who left.
    pub abandoned: u64,
    /// Cut off by the end of the run.
    pub unfinished: u64,
}

const fn time(
    name: &'static str,
    headline: &'static str,
    value: fn(&Class) -> Value<'_>,
) -> Measure<Class> {
    let (quantity, better) = (Quantity::Time, Better::Less);
    Measure {
        name,
        heading: headline,
        headline: Some(headline),
        quantity,
        better,
        tables: &[],
        value,
    }
}

const fn ending(
    name: &'static str,
    heading: &'static str,
    better: Better,
    value: fn(&Class) -> Value<'_>,
) -> Measure<Class> {
    let tables = &[Class::ENDINGS];
    Measure { name, heading, headline: None, quantity: Quantity::Plain, better, tables, value }
}

impl Way {
    /// Every measure of it, apart from its classes.
    pub const MEASURES: &'static [Measure<Way>] = &[
        Measure {
            name: "utilisation",
            heading: "Link used",
            headline: Some("Link used"),
            quantity: Quantity::Share,
            better: Better::Neither,
            tables: &[],
            value: |it| Value::Sample(it.utilisation.as_ref()),
        },
        Measure {
            name: "full",
            heading: "Time in which the link was full",
            headline: Some("Time in which the link was full"),
            quantity: Quantity::Share,
            better: Better::Neither,
            tables: &[],
            value: |it| Value::Sample(it.full.as_ref()),
        },
        Measure {
            name: "queueing_p95_s",
            heading: "Time in the provider’s queue, 95th percentile",
            headline: Some("Time in the provider’s queue, 95th percentile"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[],
            value: |it| Value::Sample(it.queueing_p95_s.as_ref()),
        },
        Measure {
            name: "small_p50_s",
            heading: "Small responses, median",
            headline: Some("Small responses, median"),
            quantity: Quantity::Time,
            better: Better::Less,
            tables: &[],
            value: |it| Value::Sample(it.small_p50_s.as_ref()),
        },
    ];
}

impl Class {
    /// The table of how requests ended.
    pub const ENDINGS: Table = "Requests by class";

    /// Every measure of it.
    pub const MEASURES: &'static [Measure<Class>] = &[
        Measure {
            name: "throughput_bps",
            heading: "Throughput",
            headline: Some("Throughput"),
            quantity: Quantity::Rate,
            better: Better::Neither,
            tables: &[],
            value: |it| Value::Sample(it.throughput_bps.as_ref()),
        },
        Measure {
            name: "share",
            heading: "Share",
            headline: Some("Share"),
            quantity: Quantity::Share,
            better: Better::Neither,
            tables: &[],
            value: |it| Value::Sample(it.share.as_ref()),
        },
        time("response_mean_s", "Response time, mean", |it| {
            Value::Sample(it.response_mean_s.as_ref())
        }),
        time("response_p50_s", "Response time, median", |it| {
            Value::Sample(it.response_p50_s.as_ref())
        }),
        time("response_p95_s", "Response time, 95th percentile", |it| {
            Value::Sample(it.response_p95_s.as_ref())
        }),
        time("response_p99_s", "Response time, 99th percentile", |it| {
            Value::Sample(it.response_p99_s.as_ref())
        }),
        time("small_p50_s", "Small responses, median", |it| Value::Sample(it.small_p50_s.as_ref())),
        ending("asked", "Asked", Better::Neither, |it| Value::Sum(it.counts.asked)),
        ending("completed", "Completed", Better::More, |it| Value::Sum(it.counts.completed)),
        ending("refused", "Refused", Better::Less, |it| Value::Sum(it.counts.refused)),
        ending("broken", "Broken", Better::Less, |it| Value::Sum(it.counts.broken)),
        ending("reset", "Reset", Better::Less, |it| Value::Sum(it.counts.reset)),
        ending("stalled", "Stalled", Better::Less, |it| Value::Sum(it.counts.stalled)),
        ending("abandoned", "Abandoned", Better::Neither, |it| Value::Sum(it.counts.abandoned)),
        ending("unfinished", "Unfinished", Better::Less, |it| Value::Sum(it.counts.unfinished)),
    ];

    /// The class at this place in `runs` of one way, which promises it this share.
    fn of(comparison: &Comparison, place: usize, runs: &[&Run], due: Option<f64>) -> Class {
        let of_class = |centre, value: &dyn Fn(&ClassOutcome) -> Option<f64>| {
            sample(centre, runs, |outcome| value(&outcome.classes[place]))
        };
        let quantile =
            |fraction| of_class(Centre::Median, &|class| class.response.quantile(fraction));
        let share = |outcome: &Outcome| {
            let all: u64 = outcome.classes.iter().map(|class| class.received.0).sum();
            (all > 0).then(|| outcome.classes[place].received.0 as f64 / all as f64)
        };
        Class {
            name: comparison.setup.classes[place].name.clone(),
            weight: comparison.setup.classes[place].weight.get(),
            throughput_bps: sample(Centre::Mean, runs, |outcome| {
                Some(outcome.throughput_bps(place))
            }),
            share: sample(Centre::Mean, runs, share),
            due_share: due,
            response_mean_s: of_class(Centre::Mean, &|class| class.response.mean()),
            response_p50_s: quantile(0.5),
            response_p95_s: quantile(0.95),
            response_p99_s: quantile(0.99),
            small_p50_s: of_class(Centre::Median, &|class| class.small.quantile(0.5)),
            counts: Counts::of(runs.iter().map(|run| &run.outcome.classes[place])),
        }
    }
}

impl Counts {
    fn of<'a>(classes: impl Iterator<Item = &'a ClassOutcome>) -> Counts {
        let mut counts = Counts::default();
        for class in classes {
            counts.asked += class.asked;
            counts.completed += class.completed;
            counts.refused += class.failures.refused;
            counts.broken += class.failures.broken;
            counts.reset += class.failures.reset;
            counts.stalled += class.failures.stalled;
            counts.abandoned += class.abandoned;
            counts.unfinished += class.unfinished.all();
        }
        counts
    }

    /// Requests that ended without an answer, except those whose users had left.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.refused + self.broken + self.reset + self.stalled
    }
}

/// What is measured of all classes together.
const ALL: &str = "all classes";
/// What is measured of one.
const CLASS: &str = "class";

/// What is measured of each kind of subject.
pub fn measured() -> impl Iterator<Item = (&'static str, Facts)> {
    let all = Way::MEASURES.iter().map(|it| (ALL, it.facts()));
    all.chain(Class::MEASURES.iter().map(|it| (CLASS, it.facts())))
}

/// A value of a way with what it is of: kind, name and measure.
pub type Measured<'a> = (&'static str, &'a str, &'static str, Value<'a>);

impl Way {
    /// What all measures say of it and of its classes.
    pub fn values(&self) -> impl Iterator<Item = Measured<'_>> {
        let all = Way::MEASURES.iter().map(|it| (ALL, "", it.name, (it.value)(self)));
        let classes = self.classes.iter().flat_map(|class| {
            let measures = Class::MEASURES.iter();
            measures.map(move |it| (CLASS, &*class.name, it.name, (it.value)(class)))
        });
        all.chain(classes)
    }

    /// Why the shares of its classes do not show what it does; `None` when they do.
    #[must_use]
    pub fn untested(&self) -> Option<Untested> {
        Untested::of(self.full.as_ref())
    }

    /// Sums up `runs` of the way at this place.
    fn of(comparison: &Comparison, place: usize, runs: &[&Run], standard: &Standard) -> Way {
        let small = |outcome: &Outcome| outcome.all(|class| &class.small).quantile(0.5);
        let due = |class: usize| standard.due(place).map(|due| due[class]);
        let class = |class| Class::of(comparison, class, runs, due(class));
        let full = sample(Centre::Mean, runs, |outcome| Some(outcome.full));
        Way {
            label: comparison.ways[place].label.clone(),
            runs: runs.len(),
            utilisation: sample(Centre::Mean, runs, |outcome| Some(outcome.utilisation)),
            shares_tested: Untested::of(full.as_ref()).is_none(),
            full,
            queueing_p95_s: sample(Centre::Median, runs, |outcome| outcome.queueing.quantile(0.95)),
            small_p50_s: sample(Centre::Median, runs, small),
            classes: (0..comparison.setup.classes.len()).map(class).collect(),
        }
    }
}

impl Summary {
    /// Sums up `runs` of a comparison that `file` describes.
    #[must_use]
    pub fn of(file: &str, comparison: &Comparison, runs: &[Run]) -> Summary {
        let Comparison { title, description, setup, ways, seeds, .. } = comparison;
        let of_way =
            |place: usize| -> Vec<&Run> { runs.iter().filter(|run| run.way == place).collect() };
        let ran = (0..ways.len()).map(|place| (place, of_way(place)));
        let end = Time::ZERO + setup.duration;
        let standard = Standard::of(comparison);
        let cut_short = runs.iter().any(|run| run.outcome.reached < end);
        Summary {
            title: title.clone(),
            description: description.clone(),
            file: file.into(),
            duration_s: setup.duration.as_seconds(),
            warm_up_s: setup.warm_up.as_seconds(),
            seeds: seeds.clone(),
            partial: cut_short || runs.len() < ways.len() * seeds.len(),
            ways: ran
                .filter(|(_, runs)| !runs.is_empty())
                .map(|(place, runs)| Way::of(comparison, place, &runs, &standard))
                .collect(),
        }
    }
}
