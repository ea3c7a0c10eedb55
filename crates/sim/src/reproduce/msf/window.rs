//! MSF section 5.5: the window over time.

use tidegate_core::Span;

use super::super::check::{Bound, Check, Written};
use super::super::figure::{Figure, Line, Measure, Scale, thinned};
use super::super::lab::Lab;
use super::super::{Claim, Finding, Stopped};
use super::{PAPER, at, scheduler, setup, used};
use crate::requests::{Demand, Outcome};

pub(super) const FROZEN: Claim = Claim {
    id: "MSF-11",
    paper: &PAPER,
    source: "MSF section 5.5, figure 11",
    text: "While requests are too few the window stays as it is; with enough of them the use of \
           the link stays around 98%, and is there again at once when they return.",
    method: "1 500 s; pauses of 1 s in classes 1 and 2, which are silent from 500 to 1 000 s, and \
             of 10 s in class 3, with ten loops for each client of classes 1 and 2 and one for \
             those of class 3. What was asked for before 500 s is over at 600 s.",
    discussion: "",
    measure: frozen,
};

fn window_at(run: &Outcome, second: u64) -> Option<f64> {
    let sample = run.samples.iter().find(|sample| sample.at >= at(second));
    sample.map(|sample| sample.window)
}

fn frozen(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut setup = setup(10);
    setup.duration = Span::seconds(1_501);
    for class in &mut setup.classes[..2] {
        class.demand = Demand::Closed { loops: 10, pause: Span::seconds(1) };
        class.silent.push((at(500), at(1_000)));
    }
    setup.classes[2].demand = Demand::Closed { loops: 1, pause: Span::seconds(10) };
    let runs = lab.gateway_runs(&setup, &scheduler("paper", &[]))?;
    let in_use = |from, to| runs.iter().map(move |run| (run, from, to));
    let use_of = |(run, from, to): (&Outcome, u64, u64)| used(run, &setup, from, to);
    let checks = vec![
        Check::new(
            "the use of the link is 97 to 99% from 100 to 500 s",
            "around 98%",
            Written::Share,
            in_use(100, 500).map(use_of),
            Bound::Within(0.97, 0.99),
        ),
        Check::new(
            "W+ at 1 000 s is what it was at 600 s",
            "constant",
            Written::Ratio,
            runs.iter().map(|run| Some(window_at(run, 1_000)? / window_at(run, 600)?)),
            Bound::Within(1.0, 1.0),
        ),
        Check::new(
            "less than 60% of the link is used from 600 to 1 000 s",
            "falls",
            Written::Share,
            in_use(600, 1_000).map(use_of),
            Bound::AtMost(0.6),
        ),
        Check::new(
            "at least 95% is used from 1 005 to 1 025 s",
            "at once",
            Written::Share,
            in_use(1_005, 1_025).map(use_of),
            Bound::AtLeast(0.95),
        ),
    ];
    let first = &runs[..1];
    let line = |label: &str, value: fn(&crate::requests::Sample) -> f64| {
        let points = first.iter().flat_map(|run| &run.samples);
        Line::plain(
            label,
            thinned(points.map(|sample| (sample.at.as_seconds(), value(sample))).collect()),
        )
    };
    let figure = Figure {
        id: "MSF-11".into(),
        title: "The window while requests are too few".into(),
        caption: "W+ and the responses outstanding (W) of the first seed; classes 1 and 2 are \
                  silent from 500 to 1 000 s."
            .into(),
        x: Scale::linear("Time", Measure::Time),
        y: Scale::linear("Responses", Measure::Count),
        lines: vec![line("W+", |sample| sample.window), line("W", |sample| f64::from(sample.held))],
        stepped: false,
    };
    Ok(Finding::new("MSF-11", lab, &[], checks, vec![figure]))
}
