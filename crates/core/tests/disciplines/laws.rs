//! Laws that hold exactly on every sample path, without statistics.

use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::entry::{Drops, Entry};
use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::setting::{Parameter, Settings, Value};
use tidegate_core::units::Amount;
use tidegate_core::{Buffer, Bytes, Discipline, LossReason, Span};
use tidegate_twins::audit::{Audited, Event, Operation};

use super::conformance::{buffer, operations, value};

pub(crate) fn usual_size() -> impl Strategy<Value = Bytes> {
    prop_oneof![1..=1_500_u64, select(&[40, 1_500][..])].prop_map(Bytes)
}

fn usual_span() -> impl Strategy<Value = Span> {
    prop_oneof![0..10_000_u64, (0..40_u64).prop_map(|s| s * 1_000_000_000)].prop_map(Span)
}

pub(crate) fn usual_operations() -> impl Strategy<Value = Vec<Operation>> {
    operations(usual_size(), usual_span())
}

const UNLIMITED: Buffer = Buffer::packets(u32::MAX);

pub(crate) fn build(name: &str, given: &[(&str, &str)], buffer: Buffer) -> Box<dyn Discipline> {
    let entry = registry::find(name).unwrap_or_else(|| panic!("{name} is registered"));
    entry.build(given, buffer, 1).unwrap_or_else(|error| panic!("{error}"))
}

/// What came of each packet, by its number: sent, or lost and why.
pub(crate) fn run(
    discipline: Box<dyn Discipline>,
    buffer: Buffer,
    operations: &[Operation],
) -> Vec<(u64, Option<LossReason>)> {
    let mut audited = Audited::new(discipline, buffer);
    let mut events: Vec<Event> =
        operations.iter().flat_map(|operation| audited.apply(*operation)).collect();
    events.append(&mut audited.drain());
    let fate = |event| match event {
        Event::Sent(packet) => (packet.handle, None),
        Event::Lost(loss) => (loss.packet.handle, Some(loss.reason)),
    };
    events.into_iter().map(fate).collect()
}

/// A link of one byte per nanosecond: when each transmission ends, and what
/// work is unfinished just after each arrival.
fn serve(discipline: Box<dyn Discipline>, arrivals: &[(u64, u8, Bytes)]) -> (Vec<u64>, Vec<u64>) {
    let mut audited = Audited::new(discipline, UNLIMITED);
    let (mut ends, mut unfinished) = (Vec::new(), Vec::new());
    let (mut now, mut free_at) = (0, 0);
    let mut send_until = |audited: &mut Audited, until: u64, free_at: &mut u64| {
        while *free_at <= until {
            let [Event::Sent(packet)] = audited.apply(Operation::Send)[..] else { break };
            *free_at += packet.size.0;
            ends.push(*free_at);
        }
    };
    for (gap, flow, size) in arrivals {
        now += gap;
        audited.apply(Operation::Wait(Span(*gap)));
        send_until(&mut audited, now, &mut free_at);
        free_at = free_at.max(now);
        audited.apply(Operation::Arrive { flow: *flow, size: *size });
        unfinished.push(audited.discipline().backlog().bytes.0 + (free_at - now));
    }
    send_until(&mut audited, u64::MAX, &mut free_at);
    (ends, unfinished)
}

proptest! {
    /// However packets are ordered, a link that never rests with work to do
    /// has the same work left at every instant.
    #[test]
    fn unfinished_work_is_the_same_under_all_disciplines(
        arrivals in prop::collection::vec((0..2_000_u64, 0..5_u8, usual_size()), 0..100),
    ) {
        let (ends, unfinished) = serve(build("fifo", &[], UNLIMITED), &arrivals);
        for entry in DISCIPLINES.iter().filter(|entry| entry.drops == Drops::WhenFull) {
            let discipline = build(entry.name, &[], UNLIMITED);
            let (other_ends, other) = serve(discipline, &arrivals);
            prop_assert_eq!(&unfinished, &other, "{}", entry.name);
            prop_assert_eq!(ends.last(), other_ends.last(), "{}", entry.name);
        }
    }

    #[test]
    fn las_with_one_flow_is_fifo(operations in usual_operations(), buffer in buffer()) {
        let operations: Vec<_> = operations
            .into_iter()
            .map(|operation| match operation {
                Operation::Arrive { size, .. } => Operation::Arrive { flow: 0, size },
                other => other,
            })
            .collect();
        let las = run(build("las", &[], buffer), buffer, &operations);
        prop_assert_eq!(las, run(build("fifo", &[], buffer), buffer, &operations));
    }

    #[test]
    fn two_levels_of_which_one_is_never_used_are_fifo(
        operations in usual_operations(),
        buffer in buffer(),
        (name, threshold) in select(&[
            ("run2c", "0 B"),
            ("run2c", "1 GB"),
            ("run2c-ack", "0 B"),
            ("run2c-ack", "1 GB"),
            ("efd", "0 packets"),
            ("efd", "0 B"),
            ("efd", "1000 packets"),
            ("efd", "1 GB"),
            ("efd-ack", "0 B"),
            ("efd-ack", "1 GB"),
            ("x-protect", "1 GB"),
        ][..]),
    ) {
        let two_level = build(name, &[("threshold", threshold)], buffer);
        let fifo = run(build("fifo", &[], buffer), buffer, &operations);
        prop_assert_eq!(run(two_level, buffer, &operations), fifo);
    }

    /// Every flow is tracked from its first packet, or none ever.
    #[test]
    fn x_protect_that_finds_all_is_run2c_and_one_that_finds_none_is_fifo(
        operations in usual_operations(),
        buffer in buffer(),
        threshold in 0..8_000_u64,
        idle in 0..60_u64,
    ) {
        let (threshold, idle) = (format!("{threshold} B"), format!("{idle} s"));
        let shared = [("threshold", threshold.as_str()), ("idle", idle.as_str())];
        for (probability, same, given) in [("1", "run2c", &shared[..]), ("0", "fifo", &[])] {
            let [threshold, idle] = shared;
            let given_all = [("probability", probability), threshold, idle];
            let x_protect = run(build("x-protect", &given_all, buffer), buffer, &operations);
            prop_assert_eq!(x_protect, run(build(same, given, buffer), buffer, &operations));
        }
    }

    /// Flows 1 and 4 of the audit are of the priority class, or are at times.
    #[test]
    fn las_log_in_bytes_without_priority_is_las(
        operations in usual_operations(),
        buffer in buffer(),
    ) {
        let operations: Vec<_> = operations
            .into_iter()
            .filter(|operation| !matches!(operation, Operation::Arrive { flow: 1 | 4, .. }))
            .collect();
        let las_log = run(build("las-log", &[("unit", "bytes")], buffer), buffer, &operations);
        prop_assert_eq!(las_log, run(build("las", &[], buffer), buffer, &operations));
    }

    /// An entry that lives has counted all that its flow has had.
    #[test]
    fn efd_with_one_level_of_las_is_las_while_no_flow_starts_afresh(
        arrivals in prop::collection::vec((0..5_u8, usual_size()), 0..60),
        (threshold, level) in select(&[("0 B", "low"), ("1 GB", "high")][..]),
    ) {
        let arrivals: Vec<_> = arrivals
            .into_iter()
            .map(|(flow, size)| Operation::Arrive { flow, size })
            .collect();
        let efd = build("efd", &[("threshold", threshold), (level, "las")], UNLIMITED);
        let efd = run(efd, UNLIMITED, &arrivals);
        prop_assert_eq!(efd, run(build("las", &[], UNLIMITED), UNLIMITED, &arrivals));
    }

    #[test]
    fn efd_in_packets_of_one_size_is_efd_in_bytes(
        operations in operations(Just(Bytes(1_500)), usual_span()),
        buffer in buffer(),
        threshold in 0..10_u64,
    ) {
        let efd = |text: String| build("efd", &[("threshold", &text)], buffer);
        let packets = run(efd(format!("{threshold} packets")), buffer, &operations);
        let bytes = run(efd(format!("{} B", 1_500 * threshold)), buffer, &operations);
        prop_assert_eq!(packets, bytes);
    }

    /// Round robin, in the order in which the flows' first packets came.
    #[test]
    fn scfq_with_equal_sizes_alternates(
        flows in prop::collection::vec(0..5_u8, 0..60),
        size in 1..10_000_u64,
    ) {
        let arrivals: Vec<_> = flows
            .iter()
            .map(|flow| Operation::Arrive { flow: *flow, size: Bytes(size) })
            .collect();
        let round = |i: &usize| flows[..*i].iter().filter(|flow| **flow == flows[*i]).count();
        let mut expected: Vec<usize> = (0..flows.len()).collect();
        expected.sort_by_key(|i| (round(i), *i));
        let sent = run(build("scfq", &[], UNLIMITED), UNLIMITED, &arrivals);
        let sent: Vec<usize> = sent.into_iter().map(|(handle, _)| handle as usize).collect();
        prop_assert_eq!(sent, expected);
    }

    /// A turn is a packet, and flows take turns in the order in which they came.
    #[test]
    fn drr_with_a_quantum_of_the_equal_sizes_is_round_robin(
        flows in prop::collection::vec(0..5_u8, 0..60),
        size in 1..10_000_u64,
    ) {
        let arrivals: Vec<_> = flows
            .iter()
            .map(|flow| Operation::Arrive { flow: *flow, size: Bytes(size) })
            .collect();
        let round = |i: &usize| flows[..*i].iter().filter(|flow| **flow == flows[*i]).count();
        let came = |i: &usize| flows.iter().position(|flow| *flow == flows[*i]);
        let mut expected: Vec<usize> = (0..flows.len()).collect();
        expected.sort_by_key(|i| (round(i), came(i)));
        let quantum = format!("{size} B");
        let drr = build("drr", &[("quantum", quantum.as_str())], UNLIMITED);
        let sent = run(drr, UNLIMITED, &arrivals).into_iter();
        let sent: Vec<usize> = sent.map(|(handle, _)| handle as usize).collect();
        prop_assert_eq!(sent, expected);
    }

    /// Time has no scale of its own, and neither have sizes: the same scenario
    /// with all times or all sizes multiplied has the same course.
    #[test]
    fn scaling_changes_nothing(
        (entry, values) in select(scale_free()).prop_flat_map(|entry| {
            let values: Vec<_> = entry.parameters.iter().map(value).collect();
            (Just(entry), values)
        }),
        operations in usual_operations(),
        buffer in buffer(),
        times in 1..20_u64,
        sizes in 1..20_u64,
    ) {
        let names = entry.parameters.iter().map(|parameter| parameter.name);
        let given: Vec<_> = names.clone().zip(values.iter().map(String::as_str)).collect();
        let settings = entry.settings(&given).unwrap();
        let scaled: Vec<String> = entry
            .parameters
            .iter()
            .map(|parameter| scaled_value(parameter, &settings, times, sizes))
            .collect();
        let scaled: Vec<_> = names.zip(scaled.iter().map(String::as_str)).collect();
        // A value at the end of its range has no multiple.
        prop_assume!(entry.settings(&scaled).is_ok());
        let scaled_buffer = match buffer.amount() {
            Amount::Packets(_) => buffer,
            Amount::Bytes(size) => Buffer::bytes(size * sizes),
        };
        let scaled_operations: Vec<_> = operations
            .iter()
            .map(|operation| match *operation {
                Operation::Arrive { flow, size } => Operation::Arrive { flow, size: size * sizes },
                Operation::Send | Operation::SendWhenReady => *operation,
                Operation::Wait(span) => Operation::Wait(span * times),
            })
            .collect();
        prop_assert_eq!(
            run(build(entry.name, &given, buffer), buffer, &operations),
            run(build(entry.name, &scaled, scaled_buffer), scaled_buffer, &scaled_operations)
        );
    }
}

/// The disciplines without a time or size of their own: active queue management
/// has constants, and so have the bands of `fq`; logarithms do not scale, and neither
/// does what the audit's segments acknowledge.
fn scale_free() -> Vec<&'static Entry> {
    let free =
        |entry: &&Entry| entry.drops == Drops::WhenFull && !HAVE_A_SCALE.contains(&entry.name);
    DISCIPLINES.iter().filter(free).collect()
}

const HAVE_A_SCALE: [&str; 6] = ["fq", "las-log", "lars", "las-ack", "run2c-ack", "efd-ack"];

fn scaled_value(parameter: &Parameter, settings: &Settings, times: u64, sizes: u64) -> String {
    match settings.value(parameter.name) {
        Value::Span(span) => format!("{} ns", (*span * times).0),
        Value::Bytes(size) => format!("{} B", (*size * sizes).0),
        Value::Amount(Amount::Bytes(size)) => format!("{} B", (*size * sizes).0),
        other => other.to_string(),
    }
}
