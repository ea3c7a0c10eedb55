//! The claims of MSF: Tsao, Lai, Tsao, Lin.

mod batch;
mod fairness;
mod latency;
mod shares;
mod window;

use tidegate_core::{Span, Time};

use super::{Claim, Paper};
use crate::requests::{Demand, Outcome, SchedulerChoice, Setup};

/// MSF.
pub(super) const PAPER: Paper = Paper {
    key: "MSF",
    reference: "S.-C. Tsao, Y.-C. Lai, L.-C. Tsao, Y.-D. Lin: On applying fair queuing discipline \
                to schedule requests at access gateway for downlink differential QoS. Computer \
                Networks 52(18), 2008",
    setting: "A gateway that terminates TCP on both sides, on the user's side of a link of 2 \
              Mbit/s; clients at 10 Mbit/s and 2 ms; three classes 4:2:1 of four clients; 12 \
              servers, half of them near and half far; lognormal responses (M = 9.357, \
              S = 1.318); TCP with SACK and without delayed ACKs, windows of 200 packets of 1 000 \
              bytes; drop-tail queues of 1.5 bandwidth-delay products, here 61 packets. The \
              paper's figure 7 does not give the servers' links: ours are uniform in 5 to 30 ms \
              and 2 to 10 Mbit/s (near), 80 to 200 ms and 0.5 to 5 Mbit/s (far), drawn by each \
              seed. Nor does it say how a client that pauses for 5 s keeps its class backlogged: \
              ours has loops, each of which asks for an object on a connection of its own, gets \
              it, and pauses. Measured from 100 s on.",
};

/// In the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    batch::BATCH,
    fairness::FAIRNESS,
    shares::PHASES,
    latency::LATENCY,
    shares::USERS,
    window::FROZEN,
    latency::TARGET,
];

/// The paper's set-up, with so many loops for each client.
fn setup(loops: u32) -> Setup {
    let mut setup = Setup::paper();
    for class in &mut setup.classes {
        class.demand = Demand::Closed { loops, pause: Span::seconds(5) };
    }
    setup
}

/// A scheduler by name, with these settings.
fn scheduler(name: &str, given: &[(&str, &str)]) -> SchedulerChoice {
    let choice = SchedulerChoice::new(name, name, given).expect("claims use settings within range");
    choice.expect("claims name schedulers of the catalogue")
}

fn at(second: u64) -> Time {
    Time::ZERO + Span::seconds(second)
}

/// The share of the link's rate that is used between two seconds.
fn used(outcome: &Outcome, setup: &Setup, from: u64, to: u64) -> Option<f64> {
    let carried = |second| {
        let sample = outcome.samples.iter().find(|sample| sample.at >= at(second));
        sample.map(|sample| sample.carried.0 as f64)
    };
    let could = setup.rate.volume(Span::seconds(to - from)).0 as f64;
    Some((carried(to)? - carried(from)?) / could)
}
