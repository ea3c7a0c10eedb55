//! Other settings for a discipline that runs, of every registered discipline.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidegate_core::entry::{Drops, Entry, Medium, Place};
use tidegate_core::registry::DISCIPLINES;
use tidegate_core::{Buffer, Bytes, Packet, Port, Rate, Span, Time};
use tidegate_twins::audit::{Audited, Operation, key};
use tidegate_twins::disciplines;

use super::conformance::{buffer, operations, value};

/// A value for each parameter.
fn values(entry: &'static Entry) -> Vec<BoxedStrategy<String>> {
    entry.parameters.iter().map(value).collect()
}

/// Parameters with their values, all or only those that can be set while it runs.
fn pairs<'a>(
    entry: &'static Entry,
    values: &'a [String],
    running: bool,
) -> Vec<(&'static str, &'a str)> {
    let names = entry.parameters.iter().map(|parameter| parameter.name);
    let pairs = names.zip(values.iter().map(String::as_str));
    pairs.filter(|(name, _)| !running || entry.can_change(name)).collect()
}

fn place() -> impl Strategy<Value = Place> {
    let rate = prop::option::of((10_000..10_000_000_u64).prop_map(Rate));
    let medium = prop::sample::select(&[Medium::Wire, Medium::Radio]);
    (buffer(), rate, medium).prop_map(|(buffer, rate, medium)| Place { buffer, rate, medium })
}

/// Operations whose packets all fit into 64 bits together, so that every backlog
/// is exact in bytes too.
fn exact_operations() -> impl Strategy<Value = Vec<Operation>> {
    let size = prop_oneof![8 => 1..=3_000_u64, 1 => Just(0), 1 => Just(u64::from(u32::MAX))];
    let span = prop_oneof![
        4 => 0..2_000_000_u64,
        // As long as what CoDel and its like tell apart.
        4 => 0..60_000_000_u64,
        4 => (0..40_u64).prop_map(|seconds| seconds * 1_000_000_000),
        1 => any::<u64>().prop_map(|nanos| nanos >> 8),
    ];
    operations(size.prop_map(Bytes), span.prop_map(Span))
}

fn run<I: Strategy>(
    cases: u32,
    inputs: impl Fn(&'static Entry) -> I,
    test: impl Fn(&'static Entry, I::Value),
) {
    for entry in DISCIPLINES {
        TestRunner::new(Config { cases, ..Config::with_source_file(file!()) })
            .run(&inputs(entry), |input| {
                test(entry, input);
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{}: {failure}", entry.name));
    }
}

#[test]
fn set_before_the_first_packet_it_is_as_if_it_had_been_built_so() {
    let inputs =
        |entry| (values(entry), place(), values(entry), place(), any::<u64>(), exact_operations());
    run(500, inputs, |entry, (built, first, later, then, seed, operations)| {
        let settings = entry.settings(&pairs(entry, &built, false)).unwrap();
        let mut real = Audited::new((entry.build)(&settings, first, seed), first.buffer);
        let settings = entry.change(&settings, &pairs(entry, &later, true)).unwrap();
        real.reconfigure(&settings, then);
        disciplines::follow(entry, real, &settings, then, seed, &operations, |_, _| {});
    });
}

#[test]
fn set_to_what_it_is_set_to_nothing_changes() {
    let inputs = |entry| (values(entry), place(), any::<u64>(), exact_operations());
    run(500, inputs, |entry, (values, place, seed, operations)| {
        let settings = entry.settings(&pairs(entry, &values, false)).unwrap();
        let real = Audited::new((entry.build)(&settings, place, seed), place.buffer);
        disciplines::follow(entry, real, &settings, place, seed, &operations, |step, real| {
            // Not where only time passes: PIE makes up for a limited number of updates
            // at a call, so that one call more may matter after a long silence.
            let waits = matches!(operations[step], Operation::Wait(_));
            if !waits && seed >> (step % 64) & 1 == 1 {
                real.reconfigure(&settings, place);
            }
        });
    });
}

#[test]
fn set_at_any_time_it_loses_nothing_and_keeps_the_order_of_flows() {
    let inputs = |entry| {
        let change = (values(entry), place(), exact_operations());
        (values(entry), place(), any::<u64>(), prop::collection::vec(change, 1..6))
    };
    run(500, inputs, |entry, (built, place, seed, changes)| {
        let mut settings = entry.settings(&pairs(entry, &built, false)).unwrap();
        let mut audited = Audited::new((entry.build)(&settings, place, seed), place.buffer);
        for (values, place, operations) in changes {
            settings = entry.change(&settings, &pairs(entry, &values, true)).unwrap();
            audited.reconfigure(&settings, place);
            for operation in operations {
                audited.apply(operation);
            }
        }
        audited.drain();
    });
}

#[test]
fn a_buffer_that_becomes_smaller_keeps_what_it_holds() {
    for entry in DISCIPLINES {
        let settings = entry.settings(&[]).unwrap();
        let large = (entry.build)(&settings, Buffer::packets(200).into(), 1);
        let mut port = Port::new(large);
        let packet = |handle| Packet::new(handle, key((handle % 5) as u8), Bytes(1_000));
        (0..60).for_each(|handle| assert!(port.offer(Time::ZERO, packet(handle)).is_empty()));
        port.reconfigure(Time::ZERO, &settings, Buffer::packets(4));
        assert_eq!(port.backlog().packets, 60, "{}", entry.name);
        // An arrival costs one packet, or half of a flow's 13 where victims come in batches.
        port.offer(Time::ZERO, packet(60));
        assert!((54..=60).contains(&port.backlog().packets), "{}", entry.name);
        while port.backlog().packets >= 4 {
            port.take(Time::ZERO).expect("no time passes: nothing is too late");
        }
        let lost = port.offer(Time::ZERO, packet(61)).len();
        assert!(lost == 0 || entry.drops == Drops::Early, "{} has room again", entry.name);
        assert!(port.is_conserved());
    }
}

#[test]
fn another_value_of_a_fixed_parameter_is_refused_and_the_same_is_not() {
    for entry in DISCIPLINES {
        let running = entry.settings(&[]).unwrap();
        for fixed in entry.fixed {
            let known = entry.parameters.iter().any(|parameter| parameter.name == fixed.name);
            assert!(known, "{}: {}", entry.name, fixed.name);
            assert_eq!(entry.change(&running, &[(fixed.name, fixed.default)]), Ok(running.clone()));
        }
    }
    let flows = DISCIPLINES.iter().find(|entry| entry.name == "fq-codel").unwrap();
    let error = flows.change(&flows.settings(&[]).unwrap(), &[("flows", "16")]).unwrap_err();
    assert_eq!(error.to_string(), "flows of 'fq-codel' cannot be set while it runs");
}
