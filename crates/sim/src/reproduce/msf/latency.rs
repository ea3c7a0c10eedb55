//! MSF section 5.3: latency with and without the scheduler.

use super::super::check::{Bound, Check, Written};
use super::super::lab::Lab;
use super::super::{Claim, Finding, Stopped};
use super::{PAPER, scheduler, setup};
use crate::metrics::run_summary::Times;
use crate::requests::{ClassOutcome, Outcome};

pub(super) const LATENCY: Claim = Claim {
    id: "MSF-9",
    paper: &PAPER,
    source: "MSF section 5.3, figure 9",
    text: "With all classes backlogged the mean latency is 6.76 s, 23% less than the 8.83 s of an \
           ordinary gateway, because the service time falls from 8.83 s to 1.44 s.",
    method: "Ten loops for each client, which by Little's law is what the paper's 8.83 s at 9 \
             responses a second come to. Latency is from the client's first packet to its last \
             byte; service from the release of a request to its response's last byte at the \
             gateway.",
    discussion: "In a closed loop that fills the link the mean latency follows from Little's law: \
                 loops over responses a second, less the pause. A scheduler changes it only as far \
                 as it changes what the link carries in payload, or which sizes are asked for \
                 and not yet answered. The short service time is bought with waiting, and the \
                 paper's window makes small responses wait for large ones. Who gains are the \
                 classes with large weights.",
    measure: latency,
};

fn latency(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let setup = setup(10);
    let fifo = lab.gateway_runs(&setup, &scheduler("fifo", &[]))?;
    let paper = lab.gateway_runs(&setup, &scheduler("paper", &[]))?;
    let mean = |of: fn(&ClassOutcome) -> &Times| move |run: &Outcome| run.all(of).mean();
    let (response, service) = (mean(|class| &class.response), mean(|class| &class.service));
    let ratios = |one: &[Outcome], value: &dyn Fn(&Outcome) -> Option<f64>| -> Vec<Option<f64>> {
        let ratio = |(one, fifo): (&Outcome, &Outcome)| Some(value(one)? / value(fifo)?);
        std::iter::zip(one, &fifo).map(ratio).collect()
    };
    let checks = vec![
        Check::new(
            "an ordinary gateway's mean latency is 8 to 10 s, so that the load is the paper's",
            "8.83 s",
            Written::Seconds,
            fifo.iter().map(response),
            Bound::Within(8.0, 10.0),
        ),
        Check::new(
            "MSF-RS: the mean latency is at most 0.85 of an ordinary gateway's",
            "0.77",
            Written::Ratio,
            ratios(&paper, &response),
            Bound::AtMost(0.85),
        ),
        Check::new(
            "MSF-RS: the mean service time is at most a quarter of an ordinary gateway's",
            "0.16",
            Written::Ratio,
            ratios(&paper, &service),
            Bound::AtMost(0.25),
        ),
        Check::new(
            "MSF-RS: class 1's mean latency is at most half of an ordinary gateway's",
            "less",
            Written::Ratio,
            ratios(&paper, &|run: &Outcome| run.classes[0].response.mean()),
            Bound::AtMost(0.5),
        ),
    ];
    Ok(Finding::new("MSF-9", lab, &[], checks, Vec::new()))
}
