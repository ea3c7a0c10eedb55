//! The claims of EFD: Chen, Heusse, Urvoy-Keller.

mod call;
mod progress;
mod response;
mod table;

use std::sync::Arc;

use tidegate_core::Rate;

use super::lab::{Run, Setting};
use super::{Claim, Paper};
use crate::scenario::file::{self, Folder};
use crate::scenario::{Arrivals, DisciplineChoice, Scenario, TrafficKind};

/// EFD.
pub(super) const PAPER: Paper = Paper {
    key: "EFD",
    reference: "J. Chen, M. Heusse, G. Urvoy-Keller: EFD: An Efficient Low-Overhead Scheduler. \
                IFIP Networking 2011",
    setting: "A dumbbell of 5 senders and 5 receivers, edges of 100 Mbit/s, a bottleneck of \
              10 Mbit/s, 1 ms on each link, a buffer of 300 packets, packets of 1 500 bytes, TCP \
              transfers with Poisson arrivals between random pairs, 8 Mbit/s (underload) or \
              15 Mbit/s (overload), 1 000 s. The paper gives no parameters of the sizes: ours are \
              bounded Zipf from 6 to 6 849 segments with a mean of 40. Nor does it give those of \
              its TCP: ours is NewReno with delayed ACKs and an initial window of 2. Responses \
              run from the SYN to the arrival of the last byte and are of completed transfers.",
};

/// In the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    table::FRAGMENTS,
    table::OVER_TIME,
    table::SIZE,
    response::VOLUMES,
    response::INCOMPLETE,
    response::RESPONSE,
    progress::LOCK_OUT,
    call::LOSS,
];

const DUMBBELL: &str = "papers/EFD/dumbbell.toml";
const CALL: &str = "papers/EFD/call.toml";

/// Payload of a full segment, in bytes.
const SEGMENT: f64 = 1_460.0;

/// Underload and overload, in Mbit/s, with their names.
const LOADS: [(u64, &str); 2] = [(8, "underload"), (15, "overload")];

/// The dumbbell with so many Mbit/s of transfers.
fn dumbbell(megabits: u64) -> Setting {
    const TEXT: &str = include_str!("../../../../scenarios/papers/EFD/dumbbell.toml");
    let mut scenario = shipped(DUMBBELL, TEXT);
    set_load(&mut scenario, megabits);
    Setting { name: format!("{DUMBBELL} {megabits} Mbit/s"), scenario }
}

/// The dumbbell with a flow of constant rate.
fn call(kilobits: u64, megabits: u64) -> Setting {
    const TEXT: &str = include_str!("../../../../scenarios/papers/EFD/call.toml");
    let mut scenario = shipped(CALL, TEXT);
    set_load(&mut scenario, megabits);
    for source in &mut scenario.traffic {
        if let TrafficKind::Cbr { rate, .. } = &mut source.kind {
            *rate = Rate(kilobits * 1_000);
        }
    }
    Setting { name: format!("{CALL} {kilobits} kbit/s {megabits} Mbit/s"), scenario }
}

fn shipped(name: &str, text: &str) -> Scenario {
    // It names no files.
    file::parse(name, text, &Folder(".".into())).expect("a test reads every shipped scenario")
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

/// Disciplines by name, with their defaults, which are the paper's settings.
fn choices(names: &[&str]) -> Vec<DisciplineChoice> {
    let choice = |name: &&str| name.parse().expect("claims name registered disciplines");
    names.iter().map(choice).collect()
}

/// One value for each seed, from the runs of two disciplines with that seed.
fn paired<'a>(
    one: &'a [Arc<Run>],
    other: &'a [Arc<Run>],
    value: impl Fn(&Run, &Run) -> Option<f64> + 'a,
) -> impl Iterator<Item = Option<f64>> + 'a {
    std::iter::zip(one, other).map(move |(one, other)| value(one, other))
}

/// The ratio of a value of each run of `one` to that of its pair in `other`.
fn ratio<'a>(
    one: &'a [Arc<Run>],
    other: &'a [Arc<Run>],
    value: impl Fn(&Run) -> Option<f64> + 'a,
) -> impl Iterator<Item = Option<f64>> + 'a {
    paired(one, other, move |one, other| Some(value(one)? / value(other)?))
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

fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.into_iter().fold((0, 0.0), |(count, sum), x| (count + 1, sum + x));
    (count > 0).then(|| sum / f64::from(count))
}
