//! MSF section 5.6: what the target utilisation does to latency.

use super::latency::{ratios, response};
use super::{PAPER, VARIANTS, Variant, used};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::Lab;
use crate::runs::mean as mean_of;
use crate::table::{Row, Table};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Outcome, Setup};
use tidegate_study::Estimate;

pub(super) const TARGET: Claim = Claim {
    id: "MSF-12",
    paper: &PAPER,
    source: "MSF section 5.6, figure 12",
    text: "A higher target utilisation U+ gives shorter latencies and more queueing at the \
           provider's end; 98% is recommended.",
    method: "U+ of 65, 80, 90, 98 and 99%, ten loops for each client. The bounds are ours: the \
             paper has a figure without numbers, and does not say how well low targets are met. \
             That 98% is best is advice, and not tested.",
    discussion: "Equation (3) multiplies W+ by U+/U in each interval. It keeps the mean of the \
                 logarithm of U, that is U's geometric mean, at U+; the link's mean use exceeds \
                 that the more U varies between intervals, and U varies more at low targets.",
    measure: target,
};

/// In percent.
const TARGETS: [u32; 5] = [65, 80, 90, 98, 99];

/// The paper's scheduler with its TCP, and the project's with today's.
const MEASURED: [(Variant, &str, &str); 2] =
    [(VARIANTS[0], "paper", "MSF-RS"), (VARIANTS[3], "msf-today", "msf, today's TCP")];

/// What is looked at in a run.
type Value = fn(&Outcome) -> Option<f64>;

const VALUES: [(&str, Value); 4] = [
    ("latency, s", response),
    ("gateway, s", |run| run.all(|class| &class.waiting).mean()),
    ("provider's queue, s", queueing),
    ("use of the link", utilisation),
];

fn queueing(run: &Outcome) -> Option<f64> {
    run.queueing.mean()
}

fn utilisation(run: &Outcome) -> Option<f64> {
    Some(run.utilisation)
}

fn target(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (mut checks, mut figures, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    for (variant, id, name) in MEASURED {
        let setup = variant.looping(10);
        let mut runs = Vec::new();
        for percent in TARGETS {
            let share = (f64::from(percent) / 100.0).to_string();
            runs.push(lab.gateway_runs(&setup, variant.with(&[("target", &share)]))?);
        }
        checks.extend(latencies(variant.label, &runs));
        if figures.is_empty() {
            checks.extend(targets(&setup, &runs));
        }
        figures.push(by_target(&format!("MSF-12-{id}"), name, &runs));
        tables.push(table(variant.label, &runs));
    }
    Ok(Finding::new("MSF-12", lab, &[], checks, figures).with_tables(tables))
}

/// What the paper says of latency and queueing, of runs by target.
fn latencies(label: &str, runs: &[Vec<Outcome>]) -> Vec<Check> {
    let mut checks: Vec<Check> = (1..=3)
        .map(|position| {
            let (high, low) = (TARGETS[position], TARGETS[position - 1]);
            Check::new(
                format!("{label}: the mean latency at {high}% is at most 0.98 of that at {low}%"),
                "shorter",
                Written::Ratio,
                ratios(&runs[position], &runs[position - 1], response),
                Bound::AtMost(0.98),
            )
        })
        .collect();
    checks.extend((1..TARGETS.len()).map(|position| {
        let (high, low) = (TARGETS[position], TARGETS[position - 1]);
        Check::new(
            format!(
                "{label}: the mean time in the provider's queue at {high}% is above that at {low}%"
            ),
            "more",
            Written::Ratio,
            ratios(&runs[position], &runs[position - 1], queueing),
            Bound::AtLeast(1.0),
        )
    }));
    checks.push(Check::new(
        format!(
            "{label}: the mean time in the provider's queue at 99% is at least twice that at 65%"
        ),
        "more",
        Written::Ratio,
        ratios(&runs[4], &runs[0], queueing),
        Bound::AtLeast(2.0),
    ));
    checks
}

/// How well equation (3) meets its targets.
fn targets(setup: &Setup, runs: &[Vec<Outcome>]) -> Vec<Check> {
    let met = |(percent, runs): (u32, &Vec<Outcome>)| {
        let exact = f64::from(percent) / 100.0;
        Check::new(
            format!("`paper`: a target of {percent}% is met to a hundredth"),
            "not said",
            Written::Share,
            runs.iter().map(utilisation),
            Bound::Within(exact - 0.01, exact + 0.01),
        )
    };
    let mut checks: Vec<Check> = TARGETS.into_iter().zip(runs).map(met).collect();
    checks.push(Check::new(
        "`paper`: at 65% the geometric mean of the use in intervals of 5 s is 64 to 66%",
        "not said",
        Written::Share,
        runs[0].iter().map(|run| geometric_mean_use(run, setup)),
        Bound::Within(0.64, 0.66),
    ));
    checks
}

/// Latency and where it comes from.
fn by_target(id: &str, name: &str, runs: &[Vec<Outcome>]) -> Figure {
    let line = |(label, value): &(&str, Value)| {
        let point = |(percent, runs): (u32, &Vec<Outcome>)| {
            Some((f64::from(percent) / 100.0, mean_of(runs.iter().filter_map(value))?))
        };
        let label = label.trim_end_matches(", s");
        Line::plain(label, TARGETS.into_iter().zip(runs).filter_map(point).collect())
    };
    Figure {
        id: id.into(),
        title: format!("Latency and where it comes from, by target utilisation: {name}"),
        caption: "Means over all seeds: of responses, of waiting at the gateway, and of packets \
                  in the provider's queue."
            .into(),
        x: Scale::linear("Target utilisation (U+)", Measure::Share),
        y: Scale::linear("Time", Measure::Time),
        lines: VALUES[..3].iter().map(line).collect(),
        stepped: false,
    }
}

fn table(label: &str, runs: &[Vec<Outcome>]) -> Table {
    let row = |(percent, runs): (u32, &Vec<Outcome>)| {
        let values = VALUES.map(|(_, value)| Estimate::mean(runs.iter().filter_map(value)));
        Row::new(format!("{percent}%"), Written::Ratio, values)
    };
    let columns = std::iter::once("U+").chain(VALUES.map(|(name, _)| name));
    Table {
        title: format!("By target utilisation, {label}"),
        caption: "Means over seeds.".into(),
        columns: columns.map(String::from).collect(),
        rows: TARGETS.into_iter().zip(runs).map(row).collect(),
    }
}

/// The geometric mean of the link's use over the intervals of the window.
fn geometric_mean_use(run: &Outcome, setup: &Setup) -> Option<f64> {
    let intervals = (100..800).step_by(5);
    let logarithms =
        intervals.filter_map(|from| Some(libm::log(used(run, setup, from, from + 5)?)));
    mean_of(logarithms).map(libm::exp)
}
