//! Random sequences of operations through every registered discipline, with
//! random settings and buffers, under audit and beside its twin.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use tidegate_core::registry::DISCIPLINES;
use tidegate_core::setting::{Kind, Parameter};
use tidegate_core::{Buffer, Bytes, Span};
use tidegate_twins::audit::Operation;
use tidegate_twins::disciplines;

/// Sizes as on a link, and the ends of the range, which must do no harm.
fn size() -> impl Strategy<Value = Bytes> {
    const EDGES: &[u64] = &[0, 1, 65_535, u32::MAX as u64, u64::MAX - 1, u64::MAX];
    prop_oneof![
        6 => 1..=3_000_u64,
        3 => select(&[40, 500, 1_000, 1_500][..]),
        1 => select(EDGES),
    ]
    .prop_map(Bytes)
}

/// From no time at all, past the default sweep and idle time, to the end of time.
fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        4 => 0..2_000_000_u64,
        4 => (0..40_u64).prop_map(|seconds| seconds * 1_000_000_000),
        1 => any::<u64>().prop_map(|nanos| nanos >> 4),
        1 => Just(u64::MAX),
    ]
    .prop_map(Span)
}

/// Sequences of operations on five flows.
pub(crate) fn operations(
    size: impl Strategy<Value = Bytes> + 'static,
    span: impl Strategy<Value = Span> + 'static,
) -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        5 => (0..5_u8, size).prop_map(|(flow, size)| Operation::Arrive { flow, size }),
        4 => Just(Operation::Send),
        1 => span.prop_map(Operation::Wait),
    ];
    prop::collection::vec(operation, 0..120)
}

/// Small enough to be full often.
pub(crate) fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        3 => (1..12_u32).prop_map(Buffer::packets),
        3 => (1..12_000_u64).prop_map(|size| Buffer::bytes(Bytes(size))),
        1 => Just(Buffer::packets(u32::MAX)),
        1 => Just(Buffer::bytes(Bytes(1 << 62))),
    ]
}

/// A value within the parameter's range, as it would be written in a file.
pub(crate) fn value(parameter: &'static Parameter) -> BoxedStrategy<String> {
    // Most of the range's ends and of what the operations above can tell apart.
    fn within(least: u64, most: u64, usual: u64) -> BoxedStrategy<u64> {
        let usual = usual.clamp(least, most);
        prop_oneof![1 => Just(least), 1 => Just(most), 4 => least..=usual].boxed()
    }
    let drawn = match &parameter.kind {
        Kind::Span { least, most } => {
            within(least.0, most.0, 60_000_000_000).prop_map(|nanos| format!("{nanos} ns")).boxed()
        }
        Kind::Bytes { least, most } => {
            within(least.0, most.0, 8_000).prop_map(|size| format!("{size} B")).boxed()
        }
        Kind::Amount => prop_oneof![
            within(0, u64::from(u32::MAX), 6).prop_map(|count| format!("{count} packets")),
            within(0, u64::MAX, 8_000).prop_map(|size| format!("{size} B")),
        ]
        .boxed(),
        // From one packet a minute to a thousand a millisecond.
        Kind::Bandwidth { least } => prop_oneof![
            1 => Just("unlimited".to_owned()),
            2 => within(least.0, 1 << 34, 20_000_000).prop_map(|bits| format!("{bits} bit/s")),
        ]
        .boxed(),
        Kind::Count { least, most } => within(u64::from(*least), u64::from(*most), 40)
            .prop_map(|count| count.to_string())
            .boxed(),
        Kind::Number { least, most } => (*least..=*most).prop_map(|x| x.to_string()).boxed(),
        Kind::Switch => select(&["on", "off"][..]).prop_map(String::from).boxed(),
        Kind::Choice(words) => select(*words).prop_map(String::from).boxed(),
        Kind::Contracts => select(CONTRACTS).prop_map(String::from).boxed(),
    };
    prop_oneof![1 => Just(parameter.default.to_owned()), 3 => drawn].boxed()
}

/// Promises to flows of the audit: by class, by protocol, and to none.
const CONTRACTS: &[&str] = &[
    "link 1 Mbit/s",
    "link 10 Mbit/s; calls = class 1: 2 kB + 1 Mbit/s, 9 kB + 100 kbit/s within 60 ms",
    "link 1 Gbit/s; a = class 1: 4 kB every 5 ms within 3 ms; b = tcp: weight 7; \
     c = udp: 300 B + 20 Mbit/s within 1 ms",
];

#[test]
fn every_registered_discipline_keeps_the_rules_and_agrees_with_its_twin() {
    for entry in DISCIPLINES {
        let settings: Vec<_> = entry.parameters.iter().map(value).collect();
        let inputs = (settings, buffer(), any::<u64>(), operations(size(), span()));
        TestRunner::new(Config { cases: 2_000, ..Config::with_source_file(file!()) })
            .run(&inputs, |(values, buffer, seed, operations)| {
                let names = entry.parameters.iter().map(|parameter| parameter.name);
                let given: Vec<_> = names.zip(values.iter().map(String::as_str)).collect();
                disciplines::compare(entry, &given, buffer, seed, &operations);
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{}: {failure}", entry.name));
    }
}
