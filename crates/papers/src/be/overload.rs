//! BE section 3: too much best effort harms best effort, and nothing else.

use super::access::{BEST_EFFORT, REAL_TIME, late};
use super::{ACCESS, PAPER, access};
use crate::check::{Bound, Check, Written};
use crate::lab::{Lab, Run};
use crate::runs::ratio;
use crate::{Claim, Finding, Stopped};

pub(super) const OVERLOAD: Claim = Claim {
    id: "BE-Over",
    paper: &PAPER,
    source: "BE section 3",
    text: "However much best effort comes, no real-time packet misses its deadline; only the \
           delays of best effort grow.",
    method: "The traffic of tables 3 and 4 with every source of best effort there eight times, \
             which is more than the link can send. Delays are those of the sources that are there \
             in both cases.",
    discussion: "Real-time delays do grow with the load, up to their deadlines, since best effort \
                 goes first whenever that makes nobody late. That is the scheme's purpose, and \
                 harms nobody who only has a deadline.",
    measure: overload,
};

/// Sources in the place of each one of best effort: their queue grows all the time.
const TIMES: usize = 8;

fn overload(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let usual = access();
    let mut over = usual.clone();
    for copy in 2..=TIMES {
        for (name, source) in BEST_EFFORT {
            let mut another = usual.traffic[source].clone();
            another.name = format!("{name} {copy}");
            over.traffic.push(another);
        }
    }
    let usual_runs = lab.all_runs(&usual, &usual.disciplines)?;
    let over_runs = lab.all_runs(&over, &over.disciplines)?;
    let average = |source: usize| move |run: &Run| run.summary.traffic[source].delay.mean();
    let longest = |source: usize| move |run: &Run| run.summary.traffic[source].delay.largest();
    let mut checks = Vec::new();
    for (discipline, runs) in over.disciplines.iter().zip(&over_runs) {
        checks.push(Check::exact(
            format!("{}: real-time packets that miss their deadlines", discipline.label),
            "never jeopardized",
            Written::Count,
            runs.iter().map(|run| late(run)).sum(),
            Bound::AtMost(0.0),
        ));
    }
    let (usual_exact, exact) = (&usual_runs[3], &over_runs[3]);
    for (name, source) in BEST_EFFORT {
        checks.push(Check::new(
            format!("exact: the mean delay of {name} grows"),
            "increases",
            Written::Ratio,
            ratio(exact, usual_exact, average(source)),
            Bound::AtLeast(1.0),
        ));
    }
    for (name, source) in REAL_TIME {
        let deadline = usual.traffic[source].deadline.expect("real time has deadlines");
        checks.push(Check::exact(
            format!("exact: the longest delay of {name} stays within its {deadline}"),
            "never jeopardized",
            Written::Seconds,
            exact.iter().filter_map(|run| longest(source)(run)).fold(0.0, f64::max),
            Bound::AtMost(deadline.as_seconds()),
        ));
    }
    Ok(Finding::new("BE-Over", lab, &[ACCESS], checks, Vec::new()))
}
