//! The claims of EFD: Chen, Heusse, Urvoy-Keller.

mod call;
mod losses;
mod progress;
mod response;
mod table;

use tidegate_core::Rate;

use crate::lab::Run;
use crate::runs::mean;
use crate::{Claim, Paper};
use tidegate_sim::scenario::{Arrivals, Scenario, TrafficKind};
use tidegate_study::shipped;

/// EFD.
pub(super) const PAPER: Paper = Paper {
    key: "EFD",
    reference: "J. Chen, M. Heusse, G. Urvoy-Keller: EFD: An Efficient Low-Overhead Scheduler. \
                IFIP Networking 2011",
    setting: "A dumbbell of 5 senders and 5 receivers, edges of 100 Mbit/s, a bottleneck of 10 \
              Mbit/s, 1 ms on each link, a buffer of 300 packets, packets of 1 500 bytes, TCP \
              transfers with Poisson arrivals between random pairs, 8 Mbit/s (underload) or 15 \
              Mbit/s (overload), 1 000 s. The paper does not give the parameters of its sizes: \
              ours are bounded Zipf from 6 to 6 849 segments with a mean of 40. Nor does it give \
              those of its TCP: ours is NewReno with delayed ACKs and an initial window of 2. \
              Responses run from the SYN to the arrival of the last byte and cover completed \
              transfers only.",
};

/// In the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    table::FRAGMENTS,
    losses::SPACE,
    table::OVER_TIME,
    table::SIZE,
    response::VOLUMES,
    response::INCOMPLETE,
    response::RESPONSE,
    progress::LOCK_OUT,
    call::LOSS,
];

const DUMBBELL: &str = "papers/EFD/dumbbell.toml";
const LONG_TRANSFERS: &str = "papers/EFD/dumbbell-long-transfers.toml";
const CALL: &str = "papers/EFD/call.toml";

/// Payload of a full segment, in bytes.
const SEGMENT: f64 = 1_460.0;

/// Underload and overload, in Mbit/s, with their names.
const LOADS: [(u64, &str); 2] = [(8, "underload"), (15, "overload")];

/// The dumbbell with so many Mbit/s of transfers.
fn dumbbell(megabits: u64) -> Scenario {
    let mut scenario = shipped::scenario(DUMBBELL);
    set_load(&mut scenario, megabits);
    scenario
}

/// The dumbbell with a flow of constant rate.
fn call(kilobits: u64, megabits: u64) -> Scenario {
    let mut scenario = shipped::scenario(CALL);
    set_load(&mut scenario, megabits);
    for source in &mut scenario.traffic {
        if let TrafficKind::Cbr { rate, .. } = &mut source.kind {
            *rate = Rate(kilobits * 1_000);
        }
    }
    scenario
}

/// Sets the load of a scenario that is written for 8 Mbit/s.
fn set_load(scenario: &mut Scenario, megabits: u64) {
    for source in &mut scenario.traffic {
        if let TrafficKind::Transfers { arrivals: Arrivals::Poisson { per_second }, .. } =
            &mut source.kind
        {
            *per_second *= megabits as f64 / 8.0;
        }
    }
}

/// A transfer's size in segments.
fn segments(size: u32) -> f64 {
    (f64::from(size) / SEGMENT).ceil()
}

/// The mean response of completed transfers of `least` to `most` segments.
fn mean_response(run: &Run, least: u32, most: u32) -> Option<f64> {
    let sizes = f64::from(least)..=f64::from(most);
    let of_size = run.flows.iter().filter(|flow| sizes.contains(&segments(flow.size)));
    mean(of_size.filter_map(|flow| flow.response.map(f64::from)))
}
