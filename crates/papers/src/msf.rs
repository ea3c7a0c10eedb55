//! The claims of MSF: Tsao, Lai, Tsao, Lin.

mod batch;
mod beside;
mod fairness;
mod field;
mod interval;
mod latency;
mod passing;
mod shaping;
mod shares;
mod target;
mod timing;
mod unrequested;
mod uplink;
mod variables;
mod video;
mod window;
mod work;

use tidegate_core::{Bytes, Span, Time};

use crate::check::{Bound, Check, Written};
use crate::figure::Line;
use crate::runs::mean;
use crate::{Claim, Paper};
use tidegate_sim::requests::{Demand, Http, Outcome, Sample, SchedulerChoice, Setup};
use tidegate_study::Estimate;

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
              segments of 1 448 bytes, delayed ACKs, and the same queue in bytes. Not tested in \
              simulation: the CPU time of the Squid process (table 3); MSF-T3 tests its supposed \
              reason and tells what was measured live. Not tested: the absolute latencies of the \
              field trial, whose log, servers and paths are not published; that a U+ of 98% is \
              best, which is advice; that \
              address translation hides the classes from the provider, which is not a quantity; \
              malicious traffic, which the paper leaves out; and video in segments, which came \
              after it.",
};

/// In the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    shaping::SHAPING,
    timing::TIMING,
    batch::BATCH,
    fairness::FAIRNESS,
    interval::INTERVAL,
    shares::PHASES,
    latency::LATENCY,
    variables::VARIABLES,
    shares::USERS,
    window::FROZEN,
    target::TARGET,
    uplink::UPLINK,
    unrequested::UNREQUESTED,
    passing::PASSING,
    beside::BESIDE,
    field::FIELD,
    work::WORK,
    video::VIDEO,
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
    Variant { label: "`paper`, today's TCP", scheduler: "paper", setup: todays_tcp },
    Variant { label: "`msf`", scheduler: "msf", setup: unread_is_little },
    Variant { label: "`msf`, today's TCP", scheduler: "msf", setup: todays_tcp },
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

/// The paper's set-up with today's TCP: each response still has a connection of its own.
fn todays_tcp() -> Setup {
    Setup { http: Http::ONCE, ..Setup::today() }
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

/// An ordinary gateway: requests leave as they come.
fn ordinary() -> SchedulerChoice {
    scheduler("fifo", &[])
}

/// A ratio that the paper calls unaffected: within 5% of `exact`.
fn near(exact: f64) -> Bound {
    Bound::Within(exact * 0.95, exact * 1.05)
}

/// Whether classes 1 and 2 receive 4 and 2 times as much as class 3.
fn keeps_shares(label: &str, runs: &[Outcome]) -> [Check; 2] {
    [(0, 4.0), (1, 2.0)].map(|(class, exact)| {
        let ratio = move |run: &Outcome| Some(run.throughput_bps(class) / run.throughput_bps(2));
        Check::new(
            format!("{label}: class {} receives {exact} times class 3", class + 1),
            "not affected",
            Written::Ratio,
            runs.iter().map(ratio),
            near(exact),
        )
    })
}

/// Whether the link is used as the target of 98% asks.
fn keeps_the_link_in_use(label: &str, runs: &[Outcome]) -> Check {
    Check::new(
        format!("{label}: 97 to 99% of the link are used"),
        "98%",
        Written::Share,
        runs.iter().map(|run| Some(run.utilisation)),
        Bound::Within(0.97, 0.99),
    )
}

/// The mean latency of runs over what their setups differ in, with its interval.
fn latencies<'a>(label: &str, runs: impl Iterator<Item = (f64, &'a Vec<Outcome>)>) -> Line {
    let mut line = Line::plain(label.replace('`', ""), Vec::new());
    for (x, runs) in runs {
        if let Some(latency) = Estimate::mean(runs.iter().filter_map(latency::response)) {
            let (from, to) = latency.ends();
            line.points.push((x, latency.value));
            line.band.push((x, from, to));
        }
    }
    line
}

/// The samples after the warm-up.
fn measured(run: &Outcome) -> impl Iterator<Item = &Sample> {
    run.samples.iter().filter(|sample| run.reached.since(sample.at) <= run.measured)
}

/// The mean window after the warm-up.
fn mean_window(run: &Outcome) -> Option<f64> {
    // Without a window, as many as hold a place.
    let places = |sample: &Sample| match sample.window {
        window if window.is_finite() => window,
        _ => f64::from(sample.held),
    };
    mean(measured(run).map(places))
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
