//! MSF section 1: packets scheduled on the user's side of the bottleneck.

use tidegate_core::Span;

use super::{PAPER, todays_tcp};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Outcome, Setup, Way};

pub(super) const SHAPING: Claim = Claim {
    id: "MSF-1",
    paper: &PAPER,
    source: "MSF section 1, figure 1",
    text: "Where the downlink is the bottleneck, a packet scheduler at the user's side is useless: \
           the queue is at the provider's end, and packets have passed the bottleneck before they \
           reach the scheduler.",
    method: "HTB at the user's side, between the access link and the clients: a share for each \
             class by the weights 4:2:1, lent when idle. Its rate is that of the access link, or \
             95% of it; the second is this project's question. Ten loops for each client, 400 s. \
             The provider's queue is FIFO.",
    discussion: "At the link's own rate, hardly a packet finds another one waiting at the user's \
                 side. Just below that rate the queue forms at the user's side, where the classes \
                 are known, because TCP fills whatever is the narrowest: a part of the link buys \
                 control over the rest. The paper does not consider that.",
    measure: shaping,
};

fn shaping(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    for (profile, setup) in [("", Setup::paper()), (", today's TCP", todays_tcp())] {
        let setup = Setup { duration: Span::seconds(400), ..setup };
        for (label, share) in [("the link's rate", "1"), ("95% of the link's rate", "0.95")] {
            let runs = lab.gateway_runs(&setup, htb(share))?;
            let ratio = |run: &Outcome| Some(run.throughput_bps(0) / run.throughput_bps(2));
            checks.push(Check::new(
                format!("HTB at {label}{profile}: class 1 receives at most 1.15 times class 3"),
                "fails to share",
                Written::Ratio,
                runs.iter().map(ratio),
                Bound::AtMost(1.15),
            ));
        }
    }
    Ok(Finding::new("MSF-1", lab, &[], checks, Vec::new()))
}

fn htb(share: &str) -> Way {
    let way = Way::new("htb", "htb", &[("share", share)]).expect("the share is within range");
    way.expect("it is a rival")
}
