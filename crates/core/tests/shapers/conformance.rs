//! Random sequences of operations through every shaper, under audit and beside its
//! twin, with rates and sizes to the ends of their ranges.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use tidegate_core::discipline::fifo::Fifo;
use tidegate_core::entry::Entry;
use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::shaper::{Htb, Paced};
use tidegate_core::{Buffer, Bytes, Discipline, Rate, Span};
use tidegate_twins::audit::{self, Audited, Operation};
use tidegate_twins::{egress, shapers};

fn size(most: u64) -> impl Strategy<Value = Bytes> {
    prop_oneof![
        8 => 1..=1_500_u64,
        2 => select(&[0, 40, 1_500][..]),
        1 => select(vec![65_535, most - 1, most]),
    ]
    .prop_map(Bytes)
}

/// About as long as packets take, longer than any credit, and to the end of time.
fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        6 => 0..3_000_000_u64,
        4 => 0..30_000_000_u64,
        2 => (0..40_u64).prop_map(|seconds| seconds * 1_000_000_000),
        1 => any::<u64>().prop_map(|nanos| nanos >> 4),
        1 => Just(u64::MAX),
    ]
    .prop_map(Span)
}

/// Flows that stay in their classes: 0, 0, 1, 2 and 3.
const FLOWS: &[u8] = &[0, 2, 1, 8, 9];

fn operations(most: u64) -> impl Strategy<Value = Vec<Operation>> {
    let arrive =
        (select(FLOWS), size(most)).prop_map(|(flow, size)| Operation::Arrive { flow, size });
    let operation = prop_oneof![
        6 => arrive,
        3 => Just(Operation::Send),
        4 => Just(Operation::SendWhenReady),
        4 => span().prop_map(Operation::Wait),
    ];
    prop::collection::vec(operation, 0..100)
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        6 => 100_000..20_000_000_u64,
        2 => select(&[0, 1, 3, 100_000_000_000, u64::MAX][..]),
    ]
    .prop_map(Rate)
}

fn built(entry: &'static Entry, buffer: Buffer, seed: u64) -> Box<dyn Discipline> {
    entry.build(&[], buffer, seed).expect("defaults are valid")
}

fn buffer() -> impl Strategy<Value = Buffer> {
    (1..12_u32).prop_map(Buffer::packets)
}

#[test]
fn every_discipline_held_back_to_a_rate_keeps_the_rules_and_leaves_when_the_twin_says() {
    for entry in DISCIPLINES {
        let inputs = (rate(), buffer(), any::<u64>(), operations(u64::MAX));
        TestRunner::new(Config { cases: 200, ..Config::with_source_file(file!()) })
            .run(&inputs, |(rate, buffer, seed, operations)| {
                let real = Box::new(Paced::new(built(entry, buffer, seed), rate));
                let twin = shapers::paced(built(entry, buffer, seed), rate);
                let [real, twin] = [real, twin].map(|shaper| Audited::new(shaper, buffer));
                audit::compare(entry.name, real, twin, &operations, |_, _| {});
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{}: {failure}", entry.name));
    }
}

proptest! {
    #![proptest_config(Config { cases: 3_000, ..Config::with_source_file(file!()) })]

    /// Every leaf may be ahead by its burst and a packet, and so may the root.
    #[test]
    fn htb_keeps_the_rules_and_sends_what_its_twin_sends(
        rate in prop_oneof![6 => 100_000..20_000_000_u64, 2 => select(&[8, 100_000_000_000][..])],
        weights in prop::collection::vec(1..=2_u64, 1..=4),
        packets in 1..12_u32,
        operations in operations(1 << 50),
    ) {
        let sum: u64 = weights.iter().sum();
        let leaves = || weights.iter().map(|weight| {
            let queue: Box<dyn Discipline> = Box::new(Fifo::new(Buffer::packets(packets)));
            (Rate(rate * weight / sum), queue)
        }).collect();
        let largest = operations.iter().map(|operation| match operation {
            Operation::Arrive { size, .. } => *size,
            _ => Bytes::ZERO,
        });
        let largest = largest.max().unwrap_or_default();
        let real = Box::new(Htb::new(Rate(rate), leaves()));
        let twin = shapers::htb(Rate(rate), leaves());
        let count = weights.len() as u32;
        let [real, twin] = [real, twin].map(|shaper| {
            let burst = (largest + Bytes(1_600)) * u64::from(count + 1);
            Audited::new(shaper, Buffer::packets(packets * count)).with_burst(burst)
        });
        audit::compare("htb", real, twin, &operations, |_, _| {});
    }

    /// Under FIFO, under priorities by service, and with drops at the head.
    #[test]
    fn an_egress_sends_what_its_twin_sends_whenever_it_is_polled(
        name in select(&["fifo", "las", "fq-codel", "drr"][..]),
        first in rate(),
        packets in 1..12_u32,
        operations in prop::collection::vec(egress_operation(), 0..100),
    ) {
        let entry = registry::find(name).expect("it is registered");
        let built = || built(entry, Buffer::packets(packets), 1);
        egress::compare([built(), built()], first, &operations);
    }
}

fn egress_operation() -> impl Strategy<Value = egress::Operation> {
    use egress::Operation;
    prop_oneof![
        8 => (0..4_u8, size(u64::MAX)).prop_map(|(flow, size)| Operation::Offer { flow, size }),
        4 => Just(Operation::Poll),
        4 => (0..20_000_000_u64).prop_map(|late| Operation::PollWhenReady { late: Span(late) }),
        4 => span().prop_map(Operation::Wait),
        1 => rate().prop_map(Operation::SetRate),
    ]
}

#[test]
fn rates_sizes_and_times_at_the_ends_of_their_ranges_do_no_harm() {
    let sizes = [0, 1, 1_500, u64::MAX - 1, u64::MAX].map(Bytes);
    let times = [0, 1, 1 << 32, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    for rate in [0, 1, 2, 100_000_000_000, u64::MAX - 1, u64::MAX].map(Rate) {
        let fifo = || -> Box<dyn Discipline> { Box::new(Fifo::new(Buffer::packets(100))) };
        let shapers: [Box<dyn Discipline>; 3] = [
            Box::new(Paced::new(fifo(), rate)),
            Box::new(Htb::new(rate, vec![(rate, fifo())])),
            Box::new(Paced::new(Box::new(Htb::new(rate, vec![(Rate(0), fifo())])), rate)),
        ];
        for shaper in shapers {
            let burst = Bytes(u64::MAX);
            let mut audited = Audited::new(shaper, Buffer::packets(100)).with_burst(burst);
            let mut now = 0;
            for time in times {
                audited.apply(Operation::Wait(Span(time - now)));
                now = time;
                for size in sizes {
                    audited.apply(Operation::Arrive { flow: 0, size });
                    audited.apply(Operation::Send);
                }
            }
            let sent = audited.drain().len();
            assert!(sent <= times.len() * sizes.len());
            assert_eq!(audited.discipline().backlog().packets, 0);
        }
    }
}
