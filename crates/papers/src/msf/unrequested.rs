//! MSF section 6: traffic of a class that the gateway does not request.

use tidegate_core::{Bytes, Rate, Span};

use super::{PAPER, VARIANTS, Variant, keeps_shares, keeps_the_link_in_use};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Cbr, Setup};

pub(super) const UNREQUESTED: Claim = Claim {
    id: "MSF-U",
    paper: &PAPER,
    source: "MSF section 6 (2)",
    text: "Bytes that come for a user of a class without a request that the gateway recognises, \
           such as mail, count as service of the class. The class then releases fewer requests, \
           and neither the shares of classes nor the use of the link are affected.",
    method: "Datagrams of 1 000 bytes at a constant rate for the first user of one class, all the \
             time; ten loops for each client, 800 s. What a class receives includes them. 40% of \
             the link are less than the 57% that class 1 is due, 10% less than the 14% of class \
             3, and 40% more than that.",
    discussion: "The counter can take requests from a class, and nothing else: traffic above the \
                 class's share cannot be held back from the user's side. Class 3 then receives \
                 what comes for it, releases hardly a request, and the other two share the rest in \
                 proportion. The paper does not name this limit.",
    measure: unrequested,
};

/// The class, and the traffic for its first user in percent of the link.
const CASES: [(usize, u64); 3] = [(0, 40), (2, 10), (2, 40)];

fn unrequested(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, .., msf_today] = VARIANTS;
    let mut checks = Vec::new();
    for variant in [paper, msf_today] {
        for (class, percent) in CASES {
            let setup = mailed(variant, class, percent);
            let runs = lab.gateway_runs(&setup, variant.with(&[]))?;
            let label = format!("{}, {percent}% for class {}", variant.label, class + 1);
            checks.extend(keeps_shares(&label, &runs));
            checks.push(keeps_the_link_in_use(&label, &runs));
        }
    }
    Ok(Finding::new("MSF-U", lab, &[], checks, Vec::new()))
}

/// The set-up with this traffic.
fn mailed(variant: Variant, class: usize, percent: u64) -> Setup {
    let mut setup = variant.looping(10);
    setup.passing.push(Cbr {
        rate: Rate(setup.rate.0 * percent / 100),
        packet: Bytes(1_000),
        off: Span::ZERO,
        on: setup.duration,
        whose: Some((class, 0)),
    });
    setup
}
