//! EFD section 5.3: lock-outs.

use std::sync::Arc;

use super::{DUMBBELL, PAPER, dumbbell};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale, thinned};
use crate::lab::{Flow, Lab, Run};
use crate::runs::{choices, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::scenario::{Scenario, TrafficKind};
use tidegate_study::Centre;

/// In figure 6.
const COMPARED: [&str; 4] = ["las", "lars", "efd", "run2c"];
/// The largest transfers of a run.
const LARGEST: usize = 3;

pub(super) const LOCK_OUT: Claim = Claim {
    id: "EFD-6",
    paper: &PAPER,
    source: "EFD section 5.3, figure 6",
    text: "Under LAS the largest transfers stand still for long stretches while newer long ones \
           catch up. Under LARS, EFD and, to a lesser extent, Run2C they do not.",
    method: "The three largest transfers of each run in underload: the same three under every \
             discipline. The longest time without a new byte at the receiver, the largest of the \
             three. It is a maximum with a heavy tail, so the median over seeds is estimated. 'To \
             a lesser extent' is taken as: a transfer stands still at least as long under Run2C \
             as under LARS and EFD. The paper shows curves of one run; the bounds are ours.",
    discussion: "In six of ten seeds a large transfer stands still for more than 10 s under LAS, \
                 in the others for 3 to 10 s: a second transfer of its size must be present at the \
                 same time. The interval of the mean just includes our 10 s.",
    measure: lock_out,
};

fn lock_out(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let scenario = followed();
    let all = lab.all_runs(&scenario, &choices(&COMPARED))?;
    let stall = |run: &Run| largest(run).iter().map(|flow| f64::from(flow.stall)).reduce(f64::max);
    let las = &all[0];
    let mut checks = vec![Check::of(
        Centre::Median,
        "las: the largest transfers stand still for at least 10 s",
        "plateaus",
        Written::Seconds,
        las.iter().map(|run| stall(run)),
        Bound::AtLeast(10.0),
    )];
    for (name, runs) in std::iter::zip(COMPARED, &all).skip(1) {
        checks.push(Check::of(
            Centre::Median,
            format!("{name}: at most a third as long as under las"),
            "no noticeable plateau",
            Written::Share,
            ratio(runs, las, stall),
            Bound::AtMost(1.0 / 3.0),
        ));
        checks.push(Check::of(
            Centre::Median,
            format!("{name}: never still for more than 10 s"),
            "no noticeable plateau",
            Written::Seconds,
            runs.iter().map(|run| stall(run)),
            Bound::AtMost(10.0),
        ));
    }
    let run2c = &all[3];
    for (name, runs) in std::iter::zip(COMPARED, &all).skip(1).take(2) {
        checks.push(Check::of(
            Centre::Median,
            format!("run2c: still at least as long as under {name}"),
            "run2c to a lesser extent",
            Written::Ratio,
            ratio(run2c, runs, stall),
            Bound::AtLeast(1.0),
        ));
    }
    let figures = std::iter::zip(COMPARED, &all).map(|(name, runs)| curves(name, &runs[0]));
    Ok(Finding::new("EFD-6", lab, &[DUMBBELL], checks, figures.collect()))
}

/// The dumbbell in underload, with the progress of its transfers recorded.
fn followed() -> Scenario {
    let mut scenario = dumbbell(8);
    for source in &mut scenario.traffic {
        if let TrafficKind::Transfers { transfer, .. } = &mut source.kind {
            transfer.follow = true;
        }
    }
    scenario
}

/// The largest transfers by what they have to carry, which is the same under
/// every discipline; ties by number.
fn largest(run: &Run) -> Vec<Flow> {
    let mut flows: Vec<Flow> = run.flows.clone();
    flows.sort_by_key(|flow| (std::cmp::Reverse(flow.size), flow.number));
    flows.truncate(LARGEST);
    flows
}

fn curves(name: &str, run: &Arc<Run>) -> Figure {
    let line = |flow: &Flow| {
        let of_flow = |sample: &&tidegate_sim::metrics::ProgressSample| {
            sample.number == u64::from(flow.number) && sample.traffic == usize::from(flow.traffic)
        };
        let samples: Vec<_> = run.summary.progress.iter().filter(of_flow).collect();
        let start = samples.first().map_or(0.0, |sample| sample.at.as_seconds());
        let points =
            samples.iter().map(|sample| (sample.at.as_seconds() - start, sample.arrived.0 as f64));
        Line::plain(format!("{:.1} MB", f64::from(flow.size) / 1e6), thinned(points.collect()))
    };
    Figure {
        id: format!("EFD-6-{name}"),
        title: format!("Progress of the three largest transfers under {name}"),
        caption: "From the start of each, looked at every second; underload, the first seed."
            .into(),
        x: Scale::linear("Time since the start of the transfer", Measure::Time),
        y: Scale::linear("Received", Measure::Size),
        lines: largest(run).iter().map(line).collect(),
        stepped: false,
    }
}
