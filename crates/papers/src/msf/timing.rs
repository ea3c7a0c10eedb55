//! MSF section 2.1: when to release requests.

use super::latency::ratios;
use super::{PAPER, VARIANTS, keeps_the_link_in_use, measured, ordinary};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::runs::mean as mean_of;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::Outcome;

pub(super) const TIMING: Claim = Claim {
    id: "MSF-2",
    paper: &PAPER,
    source: "MSF sections 2.1 and 3.2, figure 2",
    text: "Requests released one after the other without regard to the downlink bring many \
           responses at once and congest it. If each waits until the one before is answered, the \
           link is idle in between. A window that follows the use of the link avoids both.",
    method: "Ten loops for each client, 800 s: an ordinary gateway, a window of one place, and the \
             controlled window of `paper`, with either TCP. Congestion is what the provider's \
             queue drops, and how long packets wait in it. The bounds are ours.",
    discussion: "A link of which 98% are used has a queue, whoever fills it, and a slow start \
                 fills it for a while: the window saves about two fifths of the time in the \
                 provider's queue, and most of the losses.",
    measure: timing,
};

/// Responses outstanding, on average after the warm-up.
pub(super) fn outstanding(run: &Outcome) -> Option<f64> {
    mean_of(measured(run).map(|sample| sample.outstanding as f64))
}

/// The share of packets that the provider's queue drops.
pub(super) fn dropped(run: &Outcome) -> Option<f64> {
    let counters = &run.downlink;
    Some(counters.lost() as f64 / counters.offered as f64)
}

fn timing(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    for variant in &VARIANTS[..2] {
        let (label, setup) = (variant.label, variant.looping(10));
        let single = [("window", "fixed"), ("start", "1")];
        let at_once = lab.gateway_runs(&setup, ordinary())?;
        let one = lab.gateway_runs(&setup, variant.with(&single))?;
        let controlled = lab.gateway_runs(&setup, variant.with(&[]))?;
        let check = |what: &str, paper: &str, written, values: Vec<Option<f64>>, bound| {
            Check::new(format!("{label}: {what}"), paper, written, values, bound)
        };
        checks.extend([
            check(
                "with one place, at most 90% of the link are used",
                "idle in between",
                Written::Share,
                one.iter().map(|run| Some(run.utilisation)).collect(),
                Bound::AtMost(0.9),
            ),
            check(
                "at once, at least 3 times as many responses are outstanding as in the window",
                "a large number",
                Written::Ratio,
                ratios(&at_once, &controlled, outstanding),
                Bound::AtLeast(3.0),
            ),
            check(
                "at once, at least 1% of the packets are dropped",
                "serious congestion",
                Written::Share,
                at_once.iter().map(dropped).collect(),
                Bound::AtLeast(0.01),
            ),
            check(
                "with the window, at most half of the share of packets dropped at once is dropped",
                "avoids congestion",
                Written::Ratio,
                ratios(&controlled, &at_once, dropped),
                Bound::AtMost(0.5),
            ),
            check(
                "with the window, packets wait at the provider at most half as long as at once",
                "avoids congestion",
                Written::Ratio,
                ratios(&controlled, &at_once, |run| run.queueing.mean()),
                Bound::AtMost(0.5),
            ),
            keeps_the_link_in_use(&format!("{label}, the window"), &controlled),
        ]);
    }
    Ok(Finding::new("MSF-2", lab, &[], checks, Vec::new()))
}
