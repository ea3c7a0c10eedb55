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

/// Throughput of classes 0 and 1 for that of class 2, as means over three seeds.
fn shares(setup: &Setup, name: &str, given: &[(&str, &str)]) -> [f64; 2] {
    let mut sums = [0.0; 3];
    for seed in 1..=3 {
        let outcome = outcome(setup, name, given, seed);
        sums.iter_mut().enumerate().for_each(|(n, sum)| *sum += outcome.throughput_bps(n));
    }
    [sums[0] / sums[2], sums[1] / sums[2]]
}

fn within(value: f64, expected: f64, tolerance: f64) -> bool {
    (value / expected - 1.0).abs() <= tolerance
}
