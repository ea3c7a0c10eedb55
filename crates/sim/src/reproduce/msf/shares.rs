//! MSF sections 5.2 and 5.4: what classes and users receive.

use tidegate_core::Span;

use super::super::check::{Bound, Check, Written};
use super::super::figure::{Figure, Line, Measure, Scale};
use super::super::lab::Lab;
use super::super::{Claim, Finding, Stopped};
use super::{PAPER, at, scheduler, setup, used};
use crate::requests::{Outcome, Setup};

pub(super) const PHASES: Claim = Claim {
    id: "MSF-8",
    paper: &PAPER,
    source: "MSF section 5.2, figure 8",
    text: "Over four phases of 200 s backlogged classes receive 4:2:1 (3.96:1.98:1); when class 1, \
           and then classes 1 and 2, ask for nothing, the others share what is left in proportion. \
           DRR at the user's side changes nothing: requests never wait, and class 3 receives as \
           much as the others.",
    method: "Phases of 200 s: all classes; class 1 silent; classes 1 and 2 silent; all. 24 loops \
             for each client, so that class 3 alone can fill the link in spite of its pauses. \
             Shares are measured in the last 150 s of each phase, when what was asked for before \
             is over. DRR at the user's side is the one without a window. Bounds are 7.5% on \
             either side.",
    discussion: "",
    measure: phases,
};

/// Payload of class `one` for that of class `other` between two seconds.
fn ratio(outcome: &Outcome, one: usize, other: usize, from: u64, to: u64) -> Option<f64> {
    let rate = |class| outcome.throughput_between_bps(class, at(from), at(to));
    Some(rate(one) / rate(other)).filter(|ratio| ratio.is_finite())
}

fn phases(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut setup = setup(24);
    setup.duration = Span::seconds(801);
    setup.classes[0].silent.push((at(200), at(600)));
    setup.classes[1].silent.push((at(400), at(600)));
    let paper = lab.gateway_runs(&setup, &scheduler("paper", &[]))?;
    let drr = lab.gateway_runs(&setup, &scheduler("drr", &[("window", "unlimited")]))?;
    let mut checks = Vec::new();
    let mut share = |what: &str, figure: &str, classes: (usize, usize), from: u64, exact: f64| {
        let values = paper.iter().map(|run| ratio(run, classes.0, classes.1, from, from + 150));
        checks.push(Check::new(
            format!(
                "{what}: class {} receives {exact} times class {}",
                classes.0 + 1,
                classes.1 + 1
            ),
            figure,
            Written::Ratio,
            values,
            Bound::Within(exact * 0.925, exact * 1.075),
        ));
    };
    share("all backlogged", "3.96", (0, 2), 50, 4.0);
    share("all backlogged", "1.98", (1, 2), 50, 2.0);
    share("class 1 silent", "2", (1, 2), 250, 2.0);
    share("all again", "4", (0, 2), 650, 4.0);
    share("all again", "2", (1, 2), 650, 2.0);
    checks.push(Check::new(
        "classes 1 and 2 silent: at least 96% of the link is used, by class 3",
        "occupies all bandwidth",
        Written::Share,
        paper.iter().map(|run| used(run, &setup, 450, 600)),
        Bound::AtLeast(0.96),
    ));
    checks.push(Check::new(
        "DRR, all backlogged: class 1 receives at most 1.15 times class 3",
        "no more",
        Written::Ratio,
        drr.iter().map(|run| ratio(run, 0, 2, 50, 200)),
        Bound::AtMost(1.15),
    ));
    let longest = |run: &Outcome| {
        run.samples.iter().map(|sample| sample.waiting as f64).max_by(f64::total_cmp)
    };
    checks.push(Check::new(
        "DRR: no request waits, the most in any sample",
        "queues are empty",
        Written::Count,
        drr.iter().map(longest),
        Bound::AtMost(0.0),
    ));
    let figures =
        vec![over_time("MSF-8-paper", "MSF-RS", &paper), over_time("MSF-8-drr", "DRR", &drr)];
    Ok(Finding::new("MSF-8", lab, &[], checks, figures))
}

/// Payload of each class, in steps of 20 s, as means over all seeds.
fn over_time(id: &str, name: &str, runs: &[Outcome]) -> Figure {
    const STEP: u64 = 20;
    let line = |class: usize| {
        let point = |step: u64| {
            let (from, to) = (at(step * STEP), at((step + 1) * STEP));
            let sum: f64 = runs.iter().map(|run| run.throughput_between_bps(class, from, to)).sum();
            (((step + 1) * STEP) as f64, sum / runs.len() as f64)
        };
        Line::plain(format!("class {}", class + 1), (0..800 / STEP).map(point).collect())
    };
    Figure {
        id: id.into(),
        title: format!("Payload of three classes over four phases: {name}"),
        caption: "In the 20 s before each point, means over all seeds. Class 1 is silent from 200 \
                  to 600 s, class 2 from 400 to 600 s."
            .into(),
        x: Scale::linear("Time", Measure::Time),
        y: Scale::linear("Payload received", Measure::Rate),
        lines: (0..3).map(line).collect(),
        stepped: false,
    }
}

pub(super) const USERS: Claim = Claim {
    id: "MSF-10",
    paper: &PAPER,
    source: "MSF section 5.4, figure 10",
    text: "With 4 to 24 users in class 1 each of them receives twice as much as one of class 2 and \
           four times as much as one of class 3. Without the count of users this is lost as \
           class 1 grows.",
    method: "4, 12 and 24 clients in class 1, ten loops for each client, 800 s. Without the \
             count of users is the setting shares = class. Bounds are 7.5% on either side.",
    discussion: "",
    measure: users,
};

/// Payload of a user of class `one` for that of a user of class `other`.
fn user_ratio(outcome: &Outcome, setup: &Setup, one: usize, other: usize) -> Option<f64> {
    let user =
        |class: usize| outcome.throughput_bps(class) / f64::from(setup.classes[class].clients);
    Some(user(one) / user(other))
}

fn users(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    for clients in [4, 12, 24] {
        let mut setup = setup(10);
        setup.classes[0].clients = clients;
        let by_user = lab.gateway_runs(&setup, &scheduler("paper", &[]))?;
        for (other, exact) in [(1, 2.0), (2, 4.0)] {
            let class = other + 1;
            checks.push(Check::new(
                format!(
                    "{clients} users: one of class 1 receives {exact} times one of class {class}"
                ),
                exact.to_string(),
                Written::Ratio,
                by_user.iter().map(|run| user_ratio(run, &setup, 0, other)),
                Bound::Within(exact * 0.925, exact * 1.075),
            ));
        }
        if clients == 24 {
            let by_class = lab.gateway_runs(&setup, &scheduler("paper", &[("shares", "class")]))?;
            checks.push(Check::new(
                "24 users, without their count: one of class 1 receives less than one of class 3",
                "less",
                Written::Ratio,
                by_class.iter().map(|run| user_ratio(run, &setup, 0, 2)),
                Bound::AtMost(1.0),
            ));
        }
    }
    Ok(Finding::new("MSF-10", lab, &[], checks, Vec::new()))
}
