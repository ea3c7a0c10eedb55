//! The figures of a case, taken in the same way from what ran live and from what was
//! simulated.

use serde::Serialize;
use tidegate_core::{Span, Time};
use tidegate_sim::requests::{ClassOutcome, Setup};
use tidegate_study::{Centre, Sample};

use super::{Found, LiveWay};

/// A prediction that is further than this from what happened is marked.
pub const TOLERANCE: f64 = 0.1;
/// The time in which a class that asks again should have its share back.
pub const RETURN: Span = Span::seconds(10);

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Thousands of bits a second.
    KbitPerSecond,
    /// Hundredths.
    Percent,
    /// Of time.
    Seconds,
    /// A second.
    PerSecond,
    /// None.
    Plain,
    /// Things, of which one more or less says nothing.
    Count,
}

/// What a measure is in a run, if it has one there.
type Value = Box<dyn Fn(&Found) -> Option<f64>>;

/// Something to be measured in each run.
pub struct Measure {
    /// Its name in files.
    pub name: String,
    /// Its two lines above a column.
    pub heading: [String; 2],
    /// Its unit.
    pub unit: Unit,
    of: Value,
}

/// A measure over the seeds, live and simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The name of the measure.
    pub measure: String,
    /// Its unit.
    pub unit: Unit,
    /// What was found, with each seed.
    pub live: Option<Sample>,
    /// What the simulator found.
    pub predicted: Option<Sample>,
    /// Live over predicted.
    pub ratio: Option<f64>,
    /// Whether that is out of tolerance.
    pub differs: bool,
}

/// What each class should have of what all have, when everybody wants more.
fn due(setup: &Setup, is_by_class: bool) -> Vec<f64> {
    let weights: Vec<f64> = setup
        .classes
        .iter()
        .map(|class| {
            f64::from(class.weight.get()) * if is_by_class { 1.0 } else { class.clients.into() }
        })
        .collect();
    let all: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / all).collect()
}

/// Jain's index of what each has of what is due to it.
fn jain(rates: &[f64], due: &[f64]) -> Option<f64> {
    let fair: Vec<f64> = rates.iter().zip(due).map(|(rate, due)| rate / due).collect();
    let sum: f64 = fair.iter().sum();
    let squares: f64 = fair.iter().map(|it| it * it).sum();
    (squares > 0.0).then(|| sum * sum / fair.len() as f64 / squares)
}

/// What is measured of a setup under a way.
#[must_use]
pub fn measures(setup: &Setup, way: &LiveWay) -> Vec<Measure> {
    let due = due(setup, way.is_by_class());
    let names: Vec<String> = setup.classes.iter().map(|class| class.name.clone()).collect();
    let classes = names.len();
    let mut all = Vec::new();
    let mut add = |name: String, heading: [&str; 2], unit, of: Value| {
        all.push(Measure { name, heading: heading.map(String::from), unit, of });
    };
    for (class, name) in names.iter().enumerate() {
        add(
            format!("throughput_kbps.{name}"),
            ["kbit/s", name],
            Unit::KbitPerSecond,
            Box::new(move |found| Some(found.outcome.throughput_bps(class) / 1e3)),
        );
    }
    for (class, name) in names.iter().enumerate() {
        let due = due[class];
        let of_due = move |found: &Found| {
            let rates = (0..classes).map(|class| found.outcome.throughput_bps(class));
            let all: f64 = rates.sum();
            (all > 0.0).then(|| found.outcome.throughput_bps(class) / all / due)
        };
        add(format!("of_share.{name}"), ["of share", name], Unit::Plain, Box::new(of_due));
    }
    let shares = due.clone();
    let of_all = move |found: &Found| {
        let rates: Vec<f64> =
            (0..classes).map(|class| found.outcome.throughput_bps(class)).collect();
        jain(&rates, &shares)
    };
    add("jain".into(), ["Jain", ""], Unit::Plain, Box::new(of_all));
    let used = |found: &Found| Some(found.outcome.utilisation * 100.0);
    add("link_used_percent".into(), ["link", "used %"], Unit::Percent, Box::new(used));
    let mean = |found: &Found| found.outcome.all(|class| &class.response).mean();
    add("mean_s".into(), ["mean", "s"], Unit::Seconds, Box::new(mean));
    let small = |found: &Found| found.outcome.all(|class| &class.small).quantile(0.5);
    add("small_median_s".into(), ["<10 kB", "median s"], Unit::Seconds, Box::new(small));
    let p95 = |found: &Found| found.outcome.all(|class| &class.response).quantile(0.95);
    add("p95_s".into(), ["p95", "s"], Unit::Seconds, Box::new(p95));
    for (class, name) in names.iter().enumerate() {
        let p95 = move |found: &Found| found.outcome.classes[class].response.quantile(0.95);
        add(format!("p95_s.{name}"), ["p95 s", name], Unit::Seconds, Box::new(p95));
    }
    let lost = |found: &Found| Some(found.lost * 100.0);
    add("dropped_percent".into(), ["dropped", "%"], Unit::Percent, Box::new(lost));
    let done = |found: &Found| {
        let completed: u64 = found.outcome.classes.iter().map(|class| class.completed).sum();
        Some(completed as f64 / found.outcome.measured.as_seconds())
    };
    add("done_per_s".into(), ["done", "/s"], Unit::PerSecond, Box::new(done));
    let count = |of: fn(&ClassOutcome) -> u64| {
        Box::new(
            move |found: &Found| Some(found.outcome.classes.iter().map(of).sum::<u64>() as f64),
        )
    };
    add("timeouts".into(), ["time-", "outs"], Unit::Count, count(|it| it.failures.stalled));
    let other = count(|it| it.failures.all() - it.failures.stalled);
    add("failed".into(), ["failed", ""], Unit::Count, other);
    let cpu = |found: &Found| Some(found.cpu? * 100.0);
    add("cpu_percent".into(), ["CPU", "%"], Unit::Percent, Box::new(cpu));
    all.extend(silences(setup, &due));
    all
}

/// What is measured around the time in which a class asks for nothing.
fn silences(setup: &Setup, due: &[f64]) -> Vec<Measure> {
    let mut all = Vec::new();
    for (class, of) in setup.classes.iter().enumerate() {
        let Some((from, to)) = of.silent.first().copied() else { continue };
        let name = &of.name;
        // What it had asked for before has come by then.
        let settled = (from + RETURN).min(to);
        let rate = setup.rate.0 as f64;
        let used = move |found: &Found| Some(used_between(found, settled, to)? / rate * 100.0);
        all.push(Measure {
            name: format!("link_used_percent.without_{name}"),
            heading: ["used % in".into(), "silence".into()],
            unit: Unit::Percent,
            of: Box::new(used),
        });
        let others: Vec<usize> = (0..due.len()).filter(|other| *other != class).collect();
        let of_others: Vec<f64> = others.iter().map(|other| due[*other]).collect();
        let fair = move |found: &Found| {
            let rate = |class: &usize| found.outcome.throughput_between_bps(*class, settled, to);
            jain(&others.iter().map(rate).collect::<Vec<_>>(), &of_others)
        };
        all.push(Measure {
            name: format!("jain.without_{name}"),
            heading: ["Jain in".into(), "silence".into()],
            unit: Unit::Plain,
            of: Box::new(fair),
        });
        let end = Time::ZERO + setup.duration;
        for (name, heading, from, to) in
            [("first_10_s", "back 10 s", to, to + RETURN), ("later", "and later", to + RETURN, end)]
        {
            let (due, classes) = (due[class], setup.classes.len());
            let back = move |found: &Found| {
                let rate = |class| found.outcome.throughput_between_bps(class, from, to);
                let all: f64 = (0..classes).map(rate).sum();
                (all > 0.0).then(|| rate(class) / all / due)
            };
            all.push(Measure {
                name: format!("of_share.{}.{name}", of.name),
                heading: ["of share".into(), heading.into()],
                unit: Unit::Plain,
                of: Box::new(back),
            });
        }
    }
    all
}

/// What the link carried between two samples in bit/s.
fn used_between(found: &Found, from: Time, to: Time) -> Option<f64> {
    let at = |time: Time| found.outcome.samples.iter().rev().find(|sample| sample.at <= time);
    let (first, last) = (at(from)?, at(to)?);
    let time = last.at.since(first.at).as_seconds();
    (time > 0.0).then(|| (last.carried - first.carried).0 as f64 * 8.0 / time)
}

impl Measure {
    /// The measure over the seeds.
    #[must_use]
    pub fn figure(&self, live: &[(u64, Found)], predicted: &[(u64, Found)]) -> Figure {
        let sample = |runs: &[(u64, Found)]| {
            Sample::of(Centre::Mean, runs.iter().map(|(seed, found)| (*seed, (self.of)(found))))
        };
        let (live, predicted) = (sample(live), sample(predicted));
        let value = |sample: &Option<Sample>| sample.as_ref().map(|it| it.estimate().value);
        let ratio = match (value(&live), value(&predicted)) {
            (Some(live), Some(predicted)) if predicted > 0.0 => Some(live / predicted),
            _ => None,
        };
        let differs =
            self.unit != Unit::Count && ratio.is_some_and(|it| (it - 1.0).abs() > TOLERANCE);
        Figure { measure: self.name.clone(), unit: self.unit, live, predicted, ratio, differs }
    }
}
