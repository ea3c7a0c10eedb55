//! How far the service of two flows can diverge while both are backlogged.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_core::{Buffer, Bytes, FlowKey};
use tidegate_twins::audit::{self, Audited, Event, Operation};

use super::laws::{build, usual_operations, usual_size};

const UNLIMITED: Buffer = Buffer::packets(u32::MAX);

/// A backlog of up to five flows, then packets that come and go, then the rest.
fn long_backlogs() -> impl Strategy<Value = Vec<Operation>> {
    let arrival = (0..5_u8, usual_size()).prop_map(|(flow, size)| Operation::Arrive { flow, size });
    let backlog = prop::collection::vec(arrival, 0..100);
    (backlog, usual_operations()).prop_map(|(mut operations, more)| {
        operations.extend(more);
        let arrived = operations.iter().filter(|one| matches!(one, Operation::Arrive { .. }));
        let left = vec![Operation::Send; arrived.count()];
        operations.into_iter().chain(left).collect()
    })
}

/// Checks |W_i - W_j| <= `constant` + L_i + L_j over every interval in which both
/// flows are backlogged, with W the bytes served and L the largest packet.
///
/// During each longest such interval the difference of their service since the
/// start keeps within a range of that width, which covers all intervals inside it.
fn serves_alike(
    (name, given): (&str, &[(&str, &str)]),
    constant: u64,
    operations: &[Operation],
) -> Result<(), TestCaseError> {
    let mut audited = Audited::new(build(name, given, UNLIMITED), UNLIMITED);
    let mut queued = BTreeMap::<FlowKey, u64>::new();
    let mut served = BTreeMap::<FlowKey, i64>::new();
    let mut largest = BTreeMap::<FlowKey, i64>::new();
    // Least and greatest difference of a pair since both are backlogged.
    let mut ranges = BTreeMap::<(FlowKey, FlowKey), (i64, i64)>::new();
    for operation in operations {
        let events = audited.apply(*operation);
        if let Operation::Arrive { flow, size } = *operation {
            let flow = audit::key(flow);
            *queued.entry(flow).or_default() += 1;
            served.entry(flow).or_default();
            let largest = largest.entry(flow).or_default();
            *largest = (*largest).max(size.0.cast_signed());
        }
        for event in events {
            let packet = match event {
                Event::Sent(packet) => packet,
                Event::Lost(loss) => {
                    *queued.entry(loss.packet.flow).or_default() -= 1;
                    continue;
                }
            };
            *queued.entry(packet.flow).or_default() -= 1;
            *served.entry(packet.flow).or_default() += packet.size.0.cast_signed();
        }
        for (one, w_one) in &served {
            for (two, w_two) in served.range(..one) {
                if queued[one] == 0 || queued[two] == 0 {
                    ranges.remove(&(*one, *two));
                    continue;
                }
                let difference = w_one - w_two;
                let range = ranges.entry((*one, *two)).or_insert((difference, difference));
                *range = (range.0.min(difference), range.1.max(difference));
                let bound = constant.cast_signed() + largest[one] + largest[two];
                prop_assert!(range.1 - range.0 <= bound, "{range:?} is wider than {bound}");
            }
        }
    }
    Ok(())
}

proptest! {
    /// Golestani 1994.
    #[test]
    fn scfq_serves_two_backlogged_flows_alike(operations in long_backlogs()) {
        serves_alike(("scfq", &[]), 0, &operations)?;
    }

    /// In `m` turns a flow sends `m Q` and what its deficit fell by, which is less
    /// than a packet; and between two turns of one flow the other has one
    /// (Shreedhar 1996). With packets up to the quantum that is three quanta.
    #[test]
    fn drr_serves_two_backlogged_flows_alike(
        operations in long_backlogs(),
        quantum in prop_oneof![Just(1_500), 1..5_000_u64],
    ) {
        let given = format!("{quantum} B");
        serves_alike(("drr", &[("quantum", given.as_str())]), quantum, &operations)?;
    }

    /// So does SFQ, when no two flows share a queue: also where a turn may be overdrawn, for
    /// what a queue owes after it is less than a packet.
    #[test]
    fn sfq_serves_flows_alike_that_have_queues_of_their_own(operations in long_backlogs()) {
        for form in ["linux", "paper"] {
            serves_alike(("sfq", &[("queues", "65536"), ("form", form)]), 1_500, &operations)?;
        }
    }

    /// Start-time fair queueing (Goyal 1997), with tags that are told apart to 1 KiB.
    #[test]
    fn tide_without_credit_serves_two_backlogged_flows_alike(operations in long_backlogs()) {
        serves_alike(("tide", &[("credit", "0 B")]), 2 * 1_023, &operations)?;
    }
}

fn bursts(flows: u8, packets: usize, size: u64) -> Vec<Operation> {
    let burst = |flow| vec![Operation::Arrive { flow, size: Bytes(size) }; packets];
    let sends = vec![Operation::Send; usize::from(flows) * packets];
    (0..flows).flat_map(burst).chain(sends).collect()
}

#[test]
fn the_bounds_tell_what_is_not_fair_enough() {
    let bytes = bursts(2, 2_000, 1);
    serves_alike(("drr", &[("quantum", "1500 B")]), 1_500, &bytes).unwrap();
    // A turn that is 5% longer.
    serves_alike(("drr", &[("quantum", "1575 B")]), 1_500, &bytes).unwrap_err();
    let packets = bursts(2, 20, 1_500);
    serves_alike(("scfq", &[]), 0, &packets).unwrap();
    serves_alike(("drr", &[]), 1_500, &packets).unwrap();
    // Five packets of one flow, then five of the other.
    serves_alike(("drr", &[("quantum", "7500 B")]), 0, &packets).unwrap_err();
    serves_alike(("fifo", &[]), 1_500, &packets).unwrap_err();
    // Two flows in one queue are served as they came.
    serves_alike(("sfq", &[("queues", "1")]), 1_500, &packets).unwrap_err();
}
