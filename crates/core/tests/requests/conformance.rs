//! Random events through every request scheduler, with random settings, under
//! audit and beside its twin.

use std::num::NonZeroU32;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use tidegate_core::request::{Opening, catalogue};
use tidegate_core::{Bytes, Rate, Span};
use tidegate_twins::requests;
use tidegate_twins::requests::gateway::{Gateway, Operation};

/// Sequences of operations on a few classes and users.
fn operations(length: usize) -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(), 0..length)
}

fn operation() -> impl Strategy<Value = Operation> {
    let size = || prop_oneof![4 => 0..3_000_u64, 2 => 0..40_000_u64, 1 => Just(720_u64)];
    let size = move || size().prop_map(Bytes);
    let span = prop_oneof![3 => 0..100_000_000_u64, 1 => 0..20_000_000_000_u64].prop_map(Span);
    let whose = prop::option::of((0..5_u32, 0..5_u64));
    let delay = prop_oneof![0..120_u64, 120..4_000_u64];
    let delay = prop::option::weighted(0.8, delay.prop_map(Span::millis));
    prop_oneof![
        6 => (0..4_u32, 0..4_u64).prop_map(|(class, user)| Operation::Arrive { class, user }),
        1 => any::<usize>().prop_map(Operation::Withdraw),
        1 => (0..4_u32, 0..4_u64, size())
            .prop_map(|(class, user, received)| Operation::Resume { class, user, received }),
        6 => (any::<usize>(), size())
            .prop_map(|(response, size)| Operation::Receive { response, size }),
        2 => (any::<usize>(), size())
            .prop_map(|(response, unread)| Operation::Come { response, unread }),
        2 => (any::<usize>(), size(), size())
            .prop_map(|(response, ahead, pace)| Operation::Open { response, opening: Opening { ahead, pace } }),
        1 => any::<usize>().prop_map(Operation::Complete),
        1 => any::<usize>().prop_map(Operation::Ask),
        2 => any::<usize>().prop_map(Operation::End),
        2 => any::<usize>().prop_map(Operation::Break),
        1 => any::<usize>().prop_map(Operation::Cancel),
        1 => (whose, size()).prop_map(|(whose, size)| Operation::Unasked { whose, size }),
        2 => (size(), delay).prop_map(|(other, delay)| Operation::Report { other, delay }),
        1 => prop_oneof![4 => 1_000..100_000_000_u64, 1 => 100_000_000..10_000_000_000_u64]
            .prop_map(|rate| Operation::Rate(Rate(rate))),
        1 => (0..4_u32, 1..6_u32).prop_map(|(class, weight)| {
            let weight = NonZeroU32::new(weight).expect("from 1 on");
            Operation::Weigh { class, weight }
        }),
        2 => span.prop_map(Operation::Wait),
    ]
}

/// Settings in which everything happens often.
pub(crate) fn settings(name: &'static str) -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let choices = (
        select(&["user", "class"][..]),
        select(&["controlled", "controlled", "fixed", "unlimited"][..]),
        1..5_u32,
        1..8_u32,
        1..4_u32,
    );
    // With the least of them, users are soon ahead by more than a lead.
    let long_from = prop_oneof![1..30_000_u64, 1..300_u64];
    let sizes = (long_from, 1..20_000_u64, 1..1_000_u32, 1..20_000_u64);
    (choices, sizes).prop_map(move |(choices, sizes)| {
        let (shares, window, start, waiting, waiting_per_user) = choices;
        let (long_from, grant, floor, quantum) = sizes;
        let window = if name == "msf" && window == "controlled" { "room" } else { window };
        let mut given = vec![
            ("window", window.to_string()),
            ("start", start.to_string()),
            ("waiting", waiting.to_string()),
            ("waiting_per_user", waiting_per_user.to_string()),
        ];
        match name {
            "drr" => given.push(("quantum", format!("{quantum} B"))),
            "msf" | "paper" => given.push(("shares", shares.to_string())),
            _ => {}
        }
        if name == "msf" {
            given.push(("long_from", format!("{long_from} B")));
            given.push(("grant", format!("{grant} B")));
            given.push(("floor", format!("{}", f64::from(floor) / 1_000.0)));
        }
        given
    })
}

#[test]
fn every_scheduler_decides_as_its_twin_does() {
    for entry in catalogue::SCHEDULERS {
        let runs = Config { failure_persistence: None, ..Config::with_cases(1_000) };
        let weights = prop::collection::vec(1..7_u32, 3);
        let rate = prop_oneof![1_000..20_000_000_u64, 10_000..200_000_u64];
        let input = (settings(entry.name), weights, rate, operations(300));
        let run = TestRunner::new(runs).run(&input, |(given, weights, rate, operations)| {
            let given: Vec<_> = given.iter().map(|(name, value)| (*name, &value[..])).collect();
            let settings = entry.settings(&given).expect("within range");
            let config = (entry.config)(&settings);
            let rate = Rate(rate);
            let nonzero: Vec<_> =
                weights.iter().map(|w| NonZeroU32::new(*w).expect("from 1 on")).collect();
            let mut gateway = Gateway::new(config, rate, &nonzero);
            operations.into_iter().for_each(|operation| gateway.apply(operation));
            gateway.close();
            let weights: Vec<_> = weights.into_iter().map(u64::from).collect();
            requests::compare(&config, rate, &weights, &gateway.log);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    }
}
