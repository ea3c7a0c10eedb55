//! MSF section 5.1: the time between two updates of the window.

use super::latency::{ratios, response};
use super::{PAPER, VARIANTS, keeps_shares, keeps_the_link_in_use, latencies, near};
use crate::check::{Check, Written};
use crate::figure::{Figure, Measure, Scale};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};

pub(super) const INTERVAL: Claim = Claim {
    id: "MSF-I",
    paper: &PAPER,
    source: "MSF section 5.1",
    text: "The time between two updates of W+ has an insignificant effect.",
    method: "T of 1, 2, 5, 10 and 20 s, where the paper has 5 s; ten loops for each client. \
             'Insignificant' is at most 5% of the mean latency and of the shares, and the use of \
             the link within its percentage point; the paper shows no figures for it. W+ begins \
             at 4 here: with T = 20 s it would otherwise still grow after the 100 s of the \
             warm-up.",
    discussion: "`paper` comes out as the paper says. `msf` has no such time: it releases \
                 requests as the link has room.",
    measure: interval,
};

/// In seconds, the paper's in the middle.
const INTERVALS: [u32; 5] = [1, 2, 5, 10, 20];
const PAPERS: usize = 2;

fn interval(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, paper_today, ..] = VARIANTS;
    let (mut checks, mut lines) = (Vec::new(), Vec::new());
    for variant in [paper, paper_today] {
        let setup = variant.looping(10);
        let mut runs = Vec::new();
        for seconds in INTERVALS {
            let given = [("interval", &*format!("{seconds} s")), ("start", "4")];
            runs.push(lab.gateway_runs(&setup, variant.with(&given))?);
        }
        for (position, seconds) in INTERVALS.into_iter().enumerate() {
            let label = format!("{}, T = {seconds} s", variant.label);
            if position != PAPERS {
                checks.push(Check::new(
                    format!("{label}: the mean latency is that at 5 s, to 5%"),
                    "insignificant",
                    Written::Ratio,
                    ratios(&runs[position], &runs[PAPERS], response),
                    near(1.0),
                ));
            }
            checks.push(keeps_the_link_in_use(&label, &runs[position]));
            checks.extend(keeps_shares(&label, &runs[position]));
        }
        lines.push(latencies(variant.label, INTERVALS.map(f64::from).into_iter().zip(&runs)));
    }
    let figure = Figure {
        id: "MSF-I".into(),
        title: "Mean latency by the time between two updates of the window".into(),
        caption: "With 95% intervals over seeds.".into(),
        x: Scale::log("Time between two updates (T)", Measure::Time),
        y: Scale::linear("Mean latency", Measure::Time),
        lines,
        stepped: false,
    };
    Ok(Finding::new("MSF-I", lab, &[], checks, vec![figure]))
}
