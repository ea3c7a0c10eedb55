//! MSF section 6: traffic of a class that the gateway does not request.

use tidegate_core::{Bytes, Rate, Span};

use super::latency::ratios;
use super::{PAPER, VARIANTS, Variant, keeps_shares, keeps_the_link_in_use};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Cbr, Outcome, Setup};

pub(super) const UNREQUESTED: Claim = Claim {
    id: "MSF-U",
    paper: &PAPER,
    source: "MSF section 6 (2)",
    text: "Bytes that come for a user of a class without a request that the gateway recognises, \
           such as mail, count as service of the class. The class then releases fewer requests, \
           and neither the shares of classes nor the use of the link are affected.",
    method: "Datagrams of 1 000 bytes at a constant rate for the first user of one class; ten \
             loops for each client, 800 s. What a class receives includes them. 40% of the link \
             are less than the 57% that class 1 is due, 10% less than the 14% of class 3, and 40% \
             more than that. In bursts they come at twice the rate for 20 s of every 40 s, which \
             for a while is more than the class is due. Requests are compared with the same class \
             without datagrams.",
    discussion: "The counter can take requests from a class, and nothing else: traffic above the \
                 class's share cannot be held back from the user's side. Class 3 then receives \
                 what comes for it, releases hardly a request, and the other two share the rest in \
                 proportion. The paper does not name this limit.",
    measure: unrequested,
};

/// The class, the traffic for its first user in percent of the link, and how it comes.
const CASES: [(usize, u64, Coming); 5] = [
    (0, 40, Coming::Evenly),
    (0, 40, Coming::InBursts),
    (2, 10, Coming::Evenly),
    (2, 10, Coming::InBursts),
    (2, 40, Coming::Evenly),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Coming {
    /// All the time.
    Evenly,
    /// At twice the rate for half of the time.
    InBursts,
}

/// How long a burst lasts, and the pause before it.
const BURST: Span = Span::seconds(20);

fn unrequested(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, .., msf_today] = VARIANTS;
    let mut checks = Vec::new();
    for variant in [paper, msf_today] {
        let without = lab.gateway_runs(&variant.looping(10), variant.with(&[]))?;
        for (class, percent, coming) in CASES {
            let setup = mailed(variant, class, percent, coming);
            let runs = lab.gateway_runs(&setup, variant.with(&[]))?;
            let bursts = if coming == Coming::InBursts { " in bursts" } else { "" };
            let label = format!("{}, {percent}%{bursts} for class {}", variant.label, class + 1);
            checks.push(releases_fewer(&label, class, &runs, &without));
            checks.extend(keeps_shares(&label, &runs));
            checks.push(keeps_the_link_in_use(&label, &runs));
        }
    }
    Ok(Finding::new("MSF-U", lab, &[], checks, Vec::new()))
}

/// What the counter does to the class's own requests.
fn releases_fewer(label: &str, class: usize, runs: &[Outcome], without: &[Outcome]) -> Check {
    Check::new(
        format!("{label}: fewer of its requests are answered than without"),
        "fewer requests",
        Written::Ratio,
        ratios(runs, without, |run| Some(run.classes[class].completed as f64)),
        Bound::AtMost(1.0),
    )
}

/// The set-up with this traffic.
fn mailed(variant: Variant, class: usize, percent: u64, coming: Coming) -> Setup {
    let mut setup = variant.looping(10);
    let (times, off, on) = match coming {
        Coming::Evenly => (1, Span::ZERO, setup.duration),
        Coming::InBursts => (2, BURST, BURST),
    };
    setup.passing.push(Cbr {
        rate: Rate(setup.rate.0 * percent * times / 100),
        packet: Bytes(1_000),
        off,
        on,
        whose: Some((class, 0)),
    });
    setup
}
