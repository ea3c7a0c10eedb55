//! The simulated request gateway, its rivals, and what passes through them.

mod connections;
mod demand;
mod failures;
mod networks;
mod shares;
mod tunnels;
mod ways;

use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::Discard;
use tidegate_sim::requests::{Outcome, Setup, Way, run_way};

/// A run of this way to serve requests.
fn outcome(setup: &Setup, name: &str, given: &[(&str, &str)], seed: u64) -> Outcome {
    let way = Way::new(name, name, given).expect("its settings are right").expect("it is listed");
    run_way(setup, &way, seed, &mut Discard, &AtomicBool::new(false))
}
