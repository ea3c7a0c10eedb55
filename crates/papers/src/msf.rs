//! The claims of MSF: Tsao, Lai, Tsao, Lin.

mod batch;
mod fairness;
mod latency;
mod passing;
mod shares;
mod target;
mod variables;
mod window;

use tidegate_core::{Bytes, Span, Time};

use crate::{Claim, Paper};
use tidegate_sim::requests::{Demand, Outcome, SchedulerChoice, Setup};

/// MSF.
pub(super) const PAPER: Paper = Paper {
    key: "MSF",
    reference: "S.-C. Tsao, Y.-C. Lai, L.-C. Tsao, Y.-D. Lin: On applying fair queuing discipline \
                to schedule requests at access gateway for downlink differential QoS. Computer \
                Networks 52(18), 2008",
    setting: "A gateway that terminates TCP on both sides, on the user's side of a link of 2 \
              Mbit/s; clients at 10 Mbit/s and 2 ms; three classes of four clients with weights \
              4:2:1; 12 servers, half of them near and half far; lognormal responses (M = 9.357, S \
              = 1.318); TCP with SACK and without delayed ACKs, windows of 200 packets of 1 000 \
              bytes; drop-tail queues of 1.5 bandwidth-delay products, here 61 packets. The \
              paper's figure 7 does not give the servers' links: ours are uniform from 5 to 30 ms \
              and from 2 to 10 Mbit/s (near), or from 80 to 200 ms and from 0.5 to 5 Mbit/s (far), \
              drawn for each seed. Nor does it say how a client that pauses for 5 s keeps its \
              class backlogged: ours has loops, each of which asks for an object on a connection \
              of its own, gets it, and pauses. Measurement begins at 100 s. `paper` is MSF-RS, and \
              `msf` is this project's development of it; under `msf` a response that is not read \
              can bring 24 kB. Today's TCP is CUBIC with SACK, RACK-TLP, an initial window of ten \
              segments of 1 448 bytes, delayed ACKs, and the same queue in bytes.",
};

/// In the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    batch::BATCH,
    fairness::FAIRNESS,
    shares::PHASES,
    latency::LATENCY,
    variables::VARIABLES,
    shares::USERS,
    window::FROZEN,
    target::TARGET,
    passing::PASSING,
];

/// A scheduler with a TCP.
#[derive(Clone, Copy)]
struct Variant {
    label: &'static str,
    scheduler: &'static str,
    setup: fn() -> Setup,
}

/// What every claim of the simulations is measured with, the paper's first.
const VARIANTS: [Variant; 4] = [
    Variant { label: "`paper`", scheduler: "paper", setup: Setup::paper },
    Variant { label: "`paper`, today's TCP", scheduler: "paper", setup: Setup::today },
    Variant { label: "`msf`", scheduler: "msf", setup: unread_is_little },
    Variant { label: "`msf`, today's TCP", scheduler: "msf", setup: Setup::today },
];

impl Variant {
    /// Its set-up, with so many loops for each client.
    fn looping(self, loops: u32) -> Setup {
        looping((self.setup)(), loops)
    }

    /// Its scheduler, with these settings.
    fn with(self, given: &[(&str, &str)]) -> SchedulerChoice {
        scheduler(self.scheduler, given)
    }
}

/// The paper's set-up as `msf` needs it: what it does not read has to be little,
/// or it governs nothing.
fn unread_is_little() -> Setup {
    Setup { server_window: Bytes(24_000), ..Setup::paper() }
}

/// `setup` with so many loops for each client.
fn looping(mut setup: Setup, loops: u32) -> Setup {
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
