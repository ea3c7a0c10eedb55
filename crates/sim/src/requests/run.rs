//! A run of a gateway's users: their programs on the simulator's network.

use std::sync::atomic::AtomicBool;

use tidegate_core::Time;

use super::outcome::Outcome;
use super::setup::{SchedulerChoice, Setup};
use super::ways::Way;
use crate::apps::Gateway;
use crate::metrics::{Discard, Recorder};
use crate::simulation;

/// Runs `setup` with a gateway and this scheduler. When `stop` becomes true the run
/// ends early, with what it has.
#[must_use]
pub fn run(setup: &Setup, scheduler: &SchedulerChoice, seed: u64, stop: &AtomicBool) -> Outcome {
    run_way(setup, &scheduler.clone().into(), seed, &mut Discard, stop)
}

/// Runs `setup` in any way, as [`run`], and gives the rows of requests and links to
/// `recorder`.
#[must_use]
pub fn run_way(
    setup: &Setup,
    way: &Way,
    seed: u64,
    recorder: &mut dyn Recorder,
    stop: &AtomicBool,
) -> Outcome {
    let (scenario, hosts) = setup.network(way, seed);
    let gateway = Gateway::new(setup, way, &hosts, seed);
    // Nothing is tested here: every queue is what the way or the setup says.
    let tested = &setup.provider;
    let (summary, gateway) =
        simulation::run_gateway(&scenario, tested, seed, recorder, stop, gateway);
    let mut outcome = gateway.outcome();
    let link = |index: usize| summary.links[index].clone().unwrap_or_default();
    let downlink = link(hosts.downlink);
    outcome.downlink = downlink.counters;
    outcome.utilisation = downlink.utilisation;
    outcome.full = outcome.full_time(Time(setup.warm_up.0), way.hands_out(setup.rate));
    outcome.queueing = downlink.delay;
    outcome.shaper = hosts.shaper.map(|shaper| link(shaper).counters);
    outcome.uplink = hosts.uplink.map(|uplink| link(uplink).counters);
    outcome.reached = summary.reached;
    outcome.measured = summary.reached.since(Time(setup.warm_up.0));
    outcome
}
