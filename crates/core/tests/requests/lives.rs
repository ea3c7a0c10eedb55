//! Random events through the proxy, with every kind of scheduler, at the right time
//! and at the wrong one: beside a twin, and under audit.

use std::num::NonZeroU32;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidegate_core::request::{self, Piece, ProxyConfig, TunnelConfig, catalogue};
use tidegate_core::{Bytes, Rate, Span, Stream};
use tidegate_twins::requests::proxy::{Driver, Operation};

use super::conformance::settings;

fn size() -> impl Strategy<Value = Bytes> {
    prop_oneof![4 => 0..3_000_u64, 2 => 0..40_000_u64, 1 => Just(0_u64)].prop_map(Bytes)
}

fn exchange_operation() -> impl Strategy<Value = Operation> {
    let span = prop_oneof![3 => 0..100_000_000_u64, 1 => 0..5_000_000_000_u64].prop_map(Span);
    let which = any::<usize>;
    prop_oneof![
        6 => (0..4_u32, 0..3_u64).prop_map(|(class, user)| Operation::Hear { class, user }),
        3 => which().prop_map(Operation::Connected),
        4 => (which(), size(), prop::bool::weighted(0.2))
            .prop_map(|(which, size, all)| Operation::Came(which, size, all)),
        6 => (which(), size(), prop::bool::weighted(0.2))
            .prop_map(|(which, size, complete)| Operation::Read(which, size, complete)),
        1 => which().prop_map(Operation::Reset),
        1 => which().prop_map(Operation::Broken),
        1 => which().prop_map(Operation::Left),
        3 => (0..8_u64, 0..2_000_u64)
            .prop_map(|(origin, millis)| Operation::Timed(origin, Span::millis(millis))),
        2 => size().prop_map(Operation::Report),
        4 => span.prop_map(Operation::Wait),
    ]
}

fn tunnel_operation() -> impl Strategy<Value = Operation> {
    let which = any::<usize>;
    let piece = prop_oneof![
        4 => size().prop_map(Piece::Data),
        1 => size().prop_map(Piece::Handshake)
    ];
    prop_oneof![
        2 => (0..4_u32, 0..3_u64).prop_map(|(class, user)| Operation::Open { class, user }),
        6 => (which(), piece).prop_map(|(which, piece)| Operation::Send(which, piece)),
        2 => (which(), size()).prop_map(|(which, size)| Operation::TunnelCame(which, size)),
        6 => (which(), size()).prop_map(|(which, size)| Operation::TunnelRead(which, size)),
        1 => which().prop_map(Operation::Exempt),
        1 => which().prop_map(Operation::Close),
    ]
}

fn config() -> impl Strategy<Value = ProxyConfig> {
    let patience = prop::option::of((50..5_000_u64).prop_map(Span::millis));
    let pools = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec((0..200_000_u64).prop_map(Rate), 1..4),
    ];
    let tunnels = (20..500_u64, 20..5_000_u64, 20..9_000_u64, 0..5_000_u64, 0..200_000_u64);
    let tunnels = tunnels.prop_map(|(quiet, silence, max_hold, few, steady)| TunnelConfig {
        quiet: Span::millis(quiet),
        silence: Span::millis(silence),
        max_hold: Span::millis(max_hold),
        upload: Bytes(few),
        late: Bytes(few / 2),
        steady: Rate(steady),
        ..TunnelConfig::default()
    });
    let buffer = (0..30_000_u64).prop_map(Bytes);
    (patience, pools, buffer, tunnels).prop_map(|(patience, pools, receive_buffer, tunnels)| {
        ProxyConfig { patience, pools, receive_buffer, tunnels }
    })
}

fn scheduler() -> impl Strategy<Value = request::Config> {
    (0..catalogue::SCHEDULERS.len()).prop_flat_map(|entry| {
        let entry = &catalogue::SCHEDULERS[entry];
        settings(entry.name).prop_map(move |given| {
            let given: Vec<_> = given.iter().map(|(name, value)| (*name, &value[..])).collect();
            (entry.config)(&entry.settings(&given).expect("within range"))
        })
    })
}

fn replacement() -> impl Strategy<Value = Operation> {
    (scheduler(), 1..6_u32).prop_map(|(config, classes)| Operation::Replace(config, classes))
}

fn run(operation: impl Strategy<Value = Operation>, cases: u32) {
    let operations = prop::collection::vec(operation, 0..150);
    let weights = prop::collection::vec(1..7_u32, 3);
    let input = (scheduler(), config(), weights, 1_000..20_000_000_u64, operations);
    let runs = Config { failure_persistence: None, ..Config::with_cases(cases) };
    let run = TestRunner::new(runs).run(&input, |(given, config, weights, rate, operations)| {
        let weights: Vec<_> =
            weights.iter().map(|w| NonZeroU32::new(*w).expect("from 1 on")).collect();
        let mut driver = Driver::new(given, Rate(rate), &weights, config);
        operations.into_iter().for_each(|operation| driver.apply(operation));
        driver.close();
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn exchanges_live_as_those_of_the_twin_do() {
    run(exchange_operation(), 3_000);
}

#[test]
fn no_order_of_events_spoils_the_books_of_exchanges_and_tunnels() {
    run(prop_oneof![exchange_operation(), tunnel_operation(), tunnel_operation()], 3_000);
}

#[test]
fn nor_does_another_scheduler_at_any_time() {
    let operation = prop_oneof![
        10 => exchange_operation(),
        20 => tunnel_operation(),
        2 => replacement(),
    ];
    run(operation, 3_000);
}

#[test]
fn thousands_of_exchanges_and_tunnels_with_every_kind_of_end_leave_nothing_behind() {
    let msf = catalogue::find("msf").expect("it is in the catalogue");
    let given = [("long_from", "6 kB"), ("grant", "2 kB"), ("waiting_per_user", "100000")];
    let given = (msf.config)(&msf.settings(&given).expect("within range"));
    let config = ProxyConfig { patience: Some(Span::seconds(5)), ..ProxyConfig::default() };
    let weights = [4, 2, 1].map(|weight| NonZeroU32::new(weight).expect("not zero"));
    let mut driver = Driver::new(given, Rate(20_000_000), &weights, config);
    let mut stream = Stream::new(1, "lives");
    for _ in 0..20_000 {
        let which = stream.index(1 << 20);
        let size = Bytes((stream.exponential() * 3_000.0) as u64);
        let (class, user) = (stream.index(3) as u32, stream.index(50) as u64);
        driver.apply(match stream.index(24) {
            0..4 => Operation::Hear { class, user },
            4..6 => Operation::Open { class, user },
            6..9 => Operation::Read(which, size, stream.index(4) == 0),
            9..11 => Operation::Came(which, size, stream.index(5) == 0),
            11..14 => Operation::Send(which, Piece::Data(size)),
            14..17 => Operation::TunnelRead(which, size),
            17 => Operation::TunnelCame(which, size),
            18 => Operation::Left(which),
            19 => Operation::Broken(which),
            20 => Operation::Close(which),
            21 => Operation::Report(size),
            _ => Operation::Wait(stream.exponential_span(Span::millis(50))),
        });
    }
    driver.close();
}
