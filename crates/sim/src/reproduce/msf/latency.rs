//! MSF sections 5.3 and 5.6: latency, with and without the scheduler, and what the
//! target utilisation does to it.

use super::super::check::{Bound, Check, Written};
use super::super::figure::{Figure, Line, Measure, Scale};
use super::super::lab::Lab;
use super::super::runs::mean as mean_of;
use super::super::{Claim, Finding, Stopped};
use super::{PAPER, scheduler, setup, used};
use crate::metrics::run_summary::Times;
use crate::requests::{ClassOutcome, Outcome, Setup};

pub(super) const LATENCY: Claim = Claim {
    id: "MSF-9",
    paper: &PAPER,
    source: "MSF section 5.3, figure 9",
    text: "With all classes backlogged the mean latency is 6.76 s, 23% less than the 8.83 s of an \
           ordinary gateway, because the service time falls from 8.83 s to 1.44 s.",
    method: "Ten loops for each client, which by Little's law is what the paper's 8.83 s at 9 \
             responses a second come to. Latency is from the client's first packet to its last \
             byte; service from the release of a request to its response's last byte at the \
             gateway.",
    discussion: "In a closed loop that fills the link the mean latency follows from Little's law: \
                 loops over responses a second, less the pause. A scheduler changes it only as far \
                 as it changes what the link carries in payload, or which sizes are asked for \
                 and not yet answered. The short service time is bought with waiting, and the \
                 paper's window makes small responses wait for large ones. Who gains are the \
                 classes with large weights.",
    measure: latency,
};

fn latency(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let setup = setup(10);
    let fifo = lab.gateway_runs(&setup, &scheduler("fifo", &[]))?;
    let paper = lab.gateway_runs(&setup, &scheduler("paper", &[]))?;
    let mean = |of: fn(&ClassOutcome) -> &Times| move |run: &Outcome| run.all(of).mean();
    let (response, service) = (mean(|class| &class.response), mean(|class| &class.service));
    let ratios = |one: &[Outcome], value: &dyn Fn(&Outcome) -> Option<f64>| -> Vec<Option<f64>> {
        let ratio = |(one, fifo): (&Outcome, &Outcome)| Some(value(one)? / value(fifo)?);
        std::iter::zip(one, &fifo).map(ratio).collect()
    };
    let checks = vec![
        Check::new(
            "an ordinary gateway's mean latency is 8 to 10 s, so that the load is the paper's",
            "8.83 s",
            Written::Seconds,
            fifo.iter().map(response),
            Bound::Within(8.0, 10.0),
        ),
        Check::new(
            "MSF-RS: the mean latency is at most 0.85 of an ordinary gateway's",
            "0.77",
            Written::Ratio,
            ratios(&paper, &response),
            Bound::AtMost(0.85),
        ),
        Check::new(
            "MSF-RS: the mean service time is at most a quarter of an ordinary gateway's",
            "0.16",
            Written::Ratio,
            ratios(&paper, &service),
            Bound::AtMost(0.25),
        ),
        Check::new(
            "MSF-RS: class 1's mean latency is at most half of an ordinary gateway's",
            "less",
            Written::Ratio,
            ratios(&paper, &|run: &Outcome| run.classes[0].response.mean()),
            Bound::AtMost(0.5),
        ),
    ];
    Ok(Finding::new("MSF-9", lab, &[], checks, Vec::new()))
}

pub(super) const TARGET: Claim = Claim {
    id: "MSF-12",
    paper: &PAPER,
    source: "MSF section 5.6, figure 12",
    text: "A higher target utilisation U+ gives shorter latencies and more queueing at the \
           provider's end; 98% is recommended.",
    method: "U+ of 65, 80, 90, 98 and 99%, ten loops for each client. Bounds are ours: the paper \
             has a figure without numbers, and says nothing of how well low targets are met.",
    discussion: "Equation (3) multiplies W+ by U+/U in each interval. What it keeps at U+ is the \
                 mean of the logarithm of U, that is U's geometric mean; the link's mean use is \
                 above that by as much as U varies between intervals, which it does more at low \
                 targets.",
    measure: target,
};

/// In percent.
const TARGETS: [u32; 5] = [65, 80, 90, 98, 99];

fn target(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let setup = setup(10);
    let mut runs = Vec::new();
    for percent in TARGETS {
        let share = (f64::from(percent) / 100.0).to_string();
        runs.push(lab.gateway_runs(&setup, &scheduler("paper", &[("target", &share)]))?);
    }
    let response = |run: &Outcome| run.all(|class| &class.response).mean();
    let waiting = |run: &Outcome| run.all(|class| &class.waiting).mean();
    let queueing = |run: &Outcome| run.queueing.mean();
    let utilisation = |run: &Outcome| Some(run.utilisation);
    let ratio = |one: usize, other: usize, value: fn(&Outcome) -> Option<f64>| {
        let pairs = std::iter::zip(&runs[one], &runs[other]);
        pairs.map(|(one, other)| Some(value(one)? / value(other)?)).collect::<Vec<_>>()
    };
    let mut checks: Vec<Check> = [(1, 0), (2, 1), (3, 2)]
        .into_iter()
        .map(|(one, other)| {
            let (high, low) = (TARGETS[one], TARGETS[other]);
            Check::new(
                format!("the mean latency at {high}% is at most 0.98 of that at {low}%"),
                "shorter",
                Written::Ratio,
                ratio(one, other, response),
                Bound::AtMost(0.98),
            )
        })
        .collect();
    checks.push(Check::new(
        "the mean time in the provider's queue at 99% is at least twice that at 65%",
        "more",
        Written::Ratio,
        ratio(4, 0, queueing),
        Bound::AtLeast(2.0),
    ));
    for (position, percent) in TARGETS.into_iter().enumerate() {
        let exact = f64::from(percent) / 100.0;
        checks.push(Check::new(
            format!("a target of {percent}% is met to a hundredth"),
            "not said",
            Written::Share,
            runs[position].iter().map(utilisation),
            Bound::Within(exact - 0.01, exact + 0.01),
        ));
    }
    checks.push(Check::new(
        "at 65% the geometric mean of the use in intervals of 5 s is 64 to 66%",
        "not said",
        Written::Share,
        runs[0].iter().map(|run| geometric_mean_use(run, &setup)),
        Bound::Within(0.64, 0.66),
    ));
    let line = |label: &str, value: fn(&Outcome) -> Option<f64>| {
        let point = |(percent, runs): (u32, &Vec<Outcome>)| {
            Some((f64::from(percent) / 100.0, mean_of(runs.iter().filter_map(value))?))
        };
        Line::plain(label, TARGETS.into_iter().zip(&runs).filter_map(point).collect())
    };
    let figure = Figure {
        id: "MSF-12".into(),
        title: "Latency and where it comes from, by target utilisation".into(),
        caption: "Means over all seeds: of responses, of waiting at the gateway, and of packets \
                  in the provider's queue."
            .into(),
        x: Scale::linear("Target utilisation (U+)", Measure::Share),
        y: Scale::linear("Time", Measure::Time),
        lines: vec![
            line("latency", response),
            line("gateway", waiting),
            line("provider's queue", queueing),
        ],
        stepped: false,
    };
    Ok(Finding::new("MSF-12", lab, &[], checks, vec![figure]))
}

/// The geometric mean of the link's use over the intervals of the window.
fn geometric_mean_use(run: &Outcome, setup: &Setup) -> Option<f64> {
    let intervals = (100..800).step_by(5);
    let logarithms =
        intervals.filter_map(|from| Some(libm::log(used(run, setup, from, from + 5)?)));
    mean_of(logarithms).map(libm::exp)
}
