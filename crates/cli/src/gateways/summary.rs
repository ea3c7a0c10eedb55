//! The numbers of a comparison: over the seeds for people and JSON, by run and
//! over the seeds as CSV. In seconds, bits per second and shares of one.

use csv::Writer;
use serde::Serialize;
use tidegate_sim::metrics::run_summary::Times;
use tidegate_sim::requests::{ClassOutcome, Outcome};
use tidegate_sim::scenario::file::gateway::Comparison;
use tidegate_study::Estimate;

/// What came out of a comparison.
#[derive(Serialize)]
pub(crate) struct Summary {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) file: String,
    pub(crate) duration_s: f64,
    pub(crate) warm_up_s: f64,
    pub(crate) seeds: Vec<u64>,
    pub(crate) ways: Vec<Way>,
}

/// One way of sharing the link.
#[derive(Serialize)]
pub(crate) struct Way {
    pub(crate) label: String,
    /// Share of the downlink that was used.
    pub(crate) utilisation: Option<Estimate>,
    /// The 95% quantile of the time in the provider's queue.
    pub(crate) queueing_p95_s: Option<Estimate>,
    /// The median of responses below 10 kB, of all classes together.
    pub(crate) small_p50_s: Option<Estimate>,
    pub(crate) classes: Vec<Class>,
}

/// One class under one way.
#[derive(Serialize)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) weight: u32,
    #[serde(flatten)]
    pub(crate) measures: Measures<Option<Estimate>>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
}

/// What is measured of a class in a run, or over the seeds.
#[derive(Serialize)]
pub(crate) struct Measures<T> {
    pub(crate) throughput_bps: T,
    /// Of what all classes received.
    pub(crate) share: T,
    /// From asking to the last byte.
    pub(crate) response_mean_s: T,
    pub(crate) response_p50_s: T,
    pub(crate) response_p95_s: T,
    pub(crate) response_p99_s: T,
    /// The median of responses below 10 kB.
    pub(crate) small_p50_s: T,
}

/// How requests ended, of all seeds together.
#[derive(Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) asked: u64,
    pub(crate) completed: u64,
    pub(crate) refused: u64,
    pub(crate) broken: u64,
    pub(crate) reset: u64,
    pub(crate) stalled: u64,
    pub(crate) abandoned: u64,
    pub(crate) unfinished: u64,
}

impl<T> Measures<T> {
    const NAMES: [&str; 7] = [
        "throughput_bps",
        "share",
        "response_mean_s",
        "response_p50_s",
        "response_p95_s",
        "response_p99_s",
        "small_p50_s",
    ];

    /// All of them, in the order of their names.
    fn each(&self) -> [&T; 7] {
        [
            &self.throughput_bps,
            &self.share,
            &self.response_mean_s,
            &self.response_p50_s,
            &self.response_p95_s,
            &self.response_p99_s,
            &self.small_p50_s,
        ]
    }
}

impl Measures<Option<f64>> {
    fn of(outcome: &Outcome, class: usize) -> Measures<Option<f64>> {
        let all: u64 = outcome.classes.iter().map(|class| class.received.0).sum();
        let ClassOutcome { received, response, small, .. } = &outcome.classes[class];
        let quantile = |times: &Times, fraction| times.quantile(fraction);
        Measures {
            throughput_bps: Some(outcome.throughput_bps(class)),
            share: (all > 0).then(|| received.0 as f64 / all as f64),
            response_mean_s: response.mean(),
            response_p50_s: quantile(response, 0.5),
            response_p95_s: quantile(response, 0.95),
            response_p99_s: quantile(response, 0.99),
            small_p50_s: quantile(small, 0.5),
        }
    }
}

impl Measures<Option<Estimate>> {
    fn over(outcomes: &[Outcome], class: usize) -> Measures<Option<Estimate>> {
        let runs: Vec<_> = outcomes.iter().map(|outcome| Measures::of(outcome, class)).collect();
        let over = |of: fn(&Measures<Option<f64>>) -> Option<f64>| {
            Estimate::of(runs.iter().filter_map(of))
        };
        Measures {
            throughput_bps: over(|run| run.throughput_bps),
            share: over(|run| run.share),
            response_mean_s: over(|run| run.response_mean_s),
            response_p50_s: over(|run| run.response_p50_s),
            response_p95_s: over(|run| run.response_p95_s),
            response_p99_s: over(|run| run.response_p99_s),
            small_p50_s: over(|run| run.small_p50_s),
        }
    }
}

impl Counts {
    pub(crate) const NAMES: [&str; 8] =
        ["asked", "completed", "refused", "broken", "reset", "stalled", "abandoned", "unfinished"];

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

    /// All of them, in the order of their names.
    pub(crate) fn each(&self) -> [u64; 8] {
        let Counts { asked, completed, refused, broken, reset, stalled, abandoned, unfinished } =
            *self;
        [asked, completed, refused, broken, reset, stalled, abandoned, unfinished]
    }

    /// Those that ended without an answer, but for their users' leaving.
    pub(crate) fn failed(&self) -> u64 {
        self.refused + self.broken + self.reset + self.stalled
    }
}

impl Summary {
    pub(crate) fn of(file: &str, comparison: &Comparison, outcomes: &[Vec<Outcome>]) -> Summary {
        let Comparison { title, description, setup, classes, ways, seeds } = comparison;
        let way = |(way, outcomes): (&tidegate_sim::requests::Way, &Vec<Outcome>)| {
            let class = |(number, name): (usize, &String)| Class {
                name: name.clone(),
                weight: setup.classes[number].weight.get(),
                measures: Measures::over(outcomes, number),
                counts: Counts::of(outcomes.iter().map(|outcome| &outcome.classes[number])),
            };
            Way {
                label: way.label.clone(),
                utilisation: Estimate::of(outcomes.iter().map(|outcome| outcome.utilisation)),
                queueing_p95_s: Estimate::of(
                    outcomes.iter().filter_map(|outcome| outcome.queueing.quantile(0.95)),
                ),
                small_p50_s: Estimate::of(outcomes.iter().filter_map(|outcome| {
                    outcome.all(|class: &ClassOutcome| &class.small).quantile(0.5)
                })),
                classes: classes.iter().enumerate().map(class).collect(),
            }
        };
        Summary {
            title: title.clone(),
            description: description.clone(),
            file: file.into(),
            duration_s: setup.duration.as_seconds(),
            warm_up_s: setup.warm_up.as_seconds(),
            seeds: seeds.clone(),
            ways: ways.iter().zip(outcomes).map(way).collect(),
        }
    }

    /// Every estimate, one in each row.
    pub(crate) fn csv(&self) -> Vec<u8> {
        let mut rows = vec![
            ["way", "class", "measure", "runs", "mean", "half_width"].map(String::from).to_vec(),
        ];
        for way in &self.ways {
            let mut row = |class: &str, measure: &str, estimate: &Option<Estimate>| {
                let Some(Estimate { mean, half_width, runs }) = estimate else { return };
                let half_width = half_width.map_or(String::new(), |half| half.to_string());
                let (runs, mean) = (runs.to_string(), mean.to_string());
                let texts = [way.label.as_str(), class, measure, &runs, &mean, &half_width];
                rows.push(texts.map(String::from).to_vec());
            };
            row("", "utilisation", &way.utilisation);
            row("", "queueing_p95_s", &way.queueing_p95_s);
            row("", "small_p50_s", &way.small_p50_s);
            for class in &way.classes {
                let names = Measures::<Option<Estimate>>::NAMES;
                for (name, estimate) in names.iter().zip(class.measures.each()) {
                    row(&class.name, name, estimate);
                }
            }
        }
        written(&rows)
    }
}

/// Every run, a row for each class.
pub(crate) fn runs_csv(comparison: &Comparison, outcomes: &[Vec<Outcome>]) -> Vec<u8> {
    let names = Measures::<Option<f64>>::NAMES;
    let heading = ["way", "seed", "class"].iter().chain(&names).chain(&Counts::NAMES);
    let mut rows = vec![heading.map(ToString::to_string).collect::<Vec<_>>()];
    for (way, outcomes) in comparison.ways.iter().zip(outcomes) {
        for (seed, outcome) in comparison.seeds.iter().zip(outcomes) {
            for (number, name) in comparison.classes.iter().enumerate() {
                let mut row = vec![way.label.clone(), seed.to_string(), name.clone()];
                let measures = Measures::of(outcome, number);
                let text = |value: &Option<f64>| value.map_or(String::new(), |v| v.to_string());
                row.extend(measures.each().map(text));
                let counts = Counts::of(std::iter::once(&outcome.classes[number]));
                row.extend(counts.each().map(|count| count.to_string()));
                rows.push(row);
            }
        }
    }
    written(&rows)
}

fn written(rows: &[Vec<String>]) -> Vec<u8> {
    let mut writer = Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).expect("memory takes everything");
    }
    writer.into_inner().expect("memory takes everything")
}
