//! MSF section 5.5: the window over time.

use tidegate_core::Span;

use super::{PAPER, VARIANTS, Variant, at, used};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale, thinned};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Demand, Outcome, Sample, Setup};

pub(super) const FROZEN: Claim = Claim {
    id: "MSF-11",
    paper: &PAPER,
    source: "MSF section 5.5, figure 11",
    text: "While there are too few requests, the window does not change; with enough of them, the \
           use of the link stays around 98%, and returns there at once when requests return. In \
           between, requests are released as they come.",
    method: "1 500 s; pauses of 1 s in classes 1 and 2, which are silent from 500 to 1 000 s, and \
             of 10 s in class 3, with ten loops for each client of classes 1 and 2 and one for \
             those of class 3. Requests from before 500 s are over at 600 s.",
    discussion: "`msf` aims at 99%: the capacity that long responses do not use while requests \
                 wait is lost, here about one percentage point.",
    measure: frozen,
};

fn window_at(run: &Outcome, second: u64) -> Option<f64> {
    let sample = run.samples.iter().find(|sample| sample.at >= at(second));
    sample.map(|sample| sample.window)
}

fn frozen(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    let mut figures = Vec::new();
    for variant in VARIANTS {
        let setup = pausing(variant);
        let runs = lab.gateway_runs(&setup, variant.with(&[]))?;
        checks.extend(over_time(variant.label, &setup, &runs));
        if figures.is_empty() {
            figures.push(window(&runs[0]));
        }
    }
    Ok(Finding::new("MSF-11", lab, &[], checks, figures))
}

/// The paper's demand: for a third of the time too few requests.
fn pausing(variant: Variant) -> Setup {
    let mut setup = variant.looping(10);
    setup.duration = Span::seconds(1_501);
    for class in &mut setup.classes[..2] {
        class.demand = Demand::Closed { loops: 10, pause: Span::seconds(1) };
        class.silent.push((at(500), at(1_000)));
    }
    setup.classes[2].demand = Demand::Closed { loops: 1, pause: Span::seconds(10) };
    setup
}

fn over_time(label: &str, setup: &Setup, runs: &[Outcome]) -> [Check; 6] {
    let in_use = |from, to| runs.iter().map(move |run| used(run, setup, from, to));
    let share = |what: &str, figure: &str, (from, to): (u64, u64), bound: Bound| {
        let statement = format!("{label}: {what}");
        Check::new(statement, figure, Written::Share, in_use(from, to), bound)
    };
    // The worst of all runs: the window does not move at all.
    let worst = |value: &dyn Fn(&Sample, f64) -> f64| {
        let of_run = |run: &Outcome| {
            let Some(start) = window_at(run, 600) else { return f64::INFINITY };
            let few = run.samples.iter().filter(|s| (at(600)..=at(1_000)).contains(&s.at));
            few.map(|sample| value(sample, start)).fold(0.0, f64::max)
        };
        runs.iter().map(of_run).fold(0.0, f64::max)
    };
    [
        share(
            "the use of the link is 97 to 99% from 100 to 500 s",
            "around 98%",
            (100, 500),
            Bound::Within(0.97, 0.99),
        ),
        share(
            "the use of the link is 97 to 99% from 1 005 to 1 500 s",
            "around 98%",
            (1_005, 1_500),
            Bound::Within(0.97, 0.99),
        ),
        Check::exact(
            format!("{label}: W+ stays what it was at 600 s until 1 000 s, the largest change"),
            "constant",
            Written::Share,
            worst(&|sample, start| (sample.window / start - 1.0).abs()),
            Bound::AtMost(0.0),
        ),
        Check::exact(
            format!("{label}: no request waits from 600 to 1 000 s, the most in any sample"),
            "released immediately",
            Written::Count,
            worst(&|sample, _| sample.waiting as f64),
            Bound::AtMost(0.0),
        ),
        share(
            "less than 60% of the link is used from 600 to 1 000 s",
            "falls",
            (600, 1_000),
            Bound::AtMost(0.6),
        ),
        share(
            "at least 95% is used from 1 005 to 1 025 s",
            "at once",
            (1_005, 1_025),
            Bound::AtLeast(0.95),
        ),
    ]
}

/// The window of one run.
fn window(run: &Outcome) -> Figure {
    let line = |label: &str, value: fn(&Sample) -> f64| {
        let points = run.samples.iter().map(|sample| (sample.at.as_seconds(), value(sample)));
        Line::plain(label, thinned(points.collect()))
    };
    Figure {
        id: "MSF-11".into(),
        title: "The window while requests are too few".into(),
        caption: "W+ and the responses outstanding (W) of the first seed; classes 1 and 2 are \
                  silent from 500 to 1 000 s."
            .into(),
        x: Scale::linear("Time", Measure::Time),
        y: Scale::linear("Responses", Measure::Count),
        lines: vec![line("W+", |sample| sample.window), line("W", |sample| f64::from(sample.held))],
        stepped: false,
    }
}
