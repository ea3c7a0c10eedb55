//! The disciplines that count acknowledgements as what they acknowledge, compared
//! with those from which they are derived.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::{Buffer, Bytes, Discipline, LossReason, Losses, Packet, TcpFacts, Time};
use tidegate_twins::audit::{self, Operation};

use super::conformance::buffer;
use super::laws::{build, run, usual_operations};

/// One step of a queue of bare acknowledgements.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// One of a flow newly acknowledges so much.
    Ahead { flow: u8, bytes: u32 },
    /// One of a flow is so far behind what was acknowledged before.
    Behind { flow: u8, bytes: u32 },
    /// The link asks for a packet.
    Send,
}

/// Of three flows; what is ahead and what is behind at most meet.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ahead = prop_oneof![4 => 1..6_000_u32, 1 => 1..1_u32 << 31, 1 => Just((1 << 31) - 1)];
    let behind = prop_oneof![2 => Just(0), 2 => 1..6_000_u32, 1 => Just(1 << 31)];
    let step = prop_oneof![
        3 => (0..3_u8, ahead).prop_map(|(flow, bytes)| Step::Ahead { flow, bytes }),
        1 => (0..3_u8, behind).prop_map(|(flow, bytes)| Step::Behind { flow, bytes }),
        3 => Just(Step::Send),
    ];
    prop::collection::vec(step, 0..100)
}

/// A discipline and what came of its packets, by number: sent, or lost and why.
struct Course {
    discipline: Box<dyn Discipline>,
    losses: Losses,
    fates: Vec<(u64, Option<LossReason>)>,
}

impl Course {
    fn new(name: &str, given: &[(&str, &str)], packets: u32) -> Course {
        let discipline = build(name, given, Buffer::packets(packets));
        Course { discipline, losses: Losses::new(), fates: Vec::new() }
    }

    fn arrive(&mut self, packet: Packet) {
        self.discipline.enqueue(Time::ZERO, packet, &mut self.losses);
        let lost = self.losses.drain().map(|loss| (loss.packet.handle, Some(loss.reason)));
        self.fates.extend(lost);
    }

    fn send(&mut self) {
        let sent = self.discipline.dequeue(Time::ZERO, &mut self.losses);
        self.fates.extend(sent.map(|packet| (packet.handle, None)));
    }
}

/// A discipline, the one that it is derived from, and settings of both.
#[derive(Clone, Copy, Debug)]
struct Derived {
    name: &'static str,
    base: &'static str,
    given: &'static [(&'static str, &'static str)],
    /// Whether the entry of a flow is that of its life, or of its backlog only.
    for_life: bool,
}

const DERIVED: &[Derived] = &[
    Derived { name: "las-ack", base: "las", given: &[], for_life: true },
    Derived { name: "run2c-ack", base: "run2c", given: &[("threshold", "5 kB")], for_life: true },
    Derived { name: "efd-ack", base: "efd", given: &[("threshold", "5 kB")], for_life: false },
    Derived {
        name: "efd-ack",
        base: "efd",
        given: &[("threshold", "5 kB"), ("low", "las")],
        for_life: false,
    },
    Derived {
        name: "efd-ack",
        base: "efd",
        given: &[("threshold", "1 GB"), ("high", "las")],
        for_life: false,
    },
];

fn bare_acknowledgement(number: u32) -> TcpFacts {
    TcpFacts {
        sequence: 0,
        acknowledgement: Some(number),
        payload: 0,
        syn: false,
        fin: false,
        plain: true,
    }
}

/// Puts the acknowledgements through `derived`, and through its base a packet
/// of what each acknowledges in place of it: empty ones for what is behind, and
/// for what starts an entry.
fn check_that_both_serve_alike(derived: Derived, steps: &[Step], first: u32, packets: u32) {
    let mut acknowledgements = Course::new(derived.name, derived.given, packets);
    let mut data = Course::new(derived.base, derived.given, packets);
    let mut furthest = BTreeMap::<u8, u32>::new();
    let mut flows = Vec::<u8>::new();
    for step in steps {
        let known = |flow| *furthest.get(&flow).unwrap_or(&first);
        let (flow, number, news) = match *step {
            Step::Send => {
                acknowledgements.send();
                data.send();
                continue;
            }
            Step::Ahead { flow, bytes } => (flow, known(flow).wrapping_add(bytes), bytes),
            Step::Behind { flow, bytes } => (flow, known(flow).wrapping_sub(bytes), 0),
        };
        let gone: BTreeSet<u64> = data.fates.iter().map(|(handle, _)| *handle).collect();
        let has_entry = (0..)
            .zip(&flows)
            .any(|(handle, other)| *other == flow && (derived.for_life || !gone.contains(&handle)));
        if news > 0 || !has_entry {
            furthest.insert(flow, number);
        }
        let size = Bytes(if has_entry { news.into() } else { 0 });
        let packet = Packet::new(flows.len() as u64, audit::key(flow), size);
        flows.push(flow);
        data.arrive(packet);
        let tcp = Some(bare_acknowledgement(number));
        acknowledgements.arrive(Packet { size: Bytes(40), tcp, ..packet });
        assert_eq!(acknowledgements.fates, data.fates, "{derived:?} after {step:?}");
    }
    for _ in flows {
        acknowledgements.send();
        data.send();
    }
    assert_eq!(acknowledgements.fates, data.fates, "{derived:?}, what is left");
}

proptest! {
    #[test]
    fn acknowledgements_are_served_as_what_they_acknowledge(
        derived in select(DERIVED),
        steps in steps(),
        first in any::<u32>(),
        packets in 1..12_u32,
    ) {
        check_that_both_serve_alike(derived, &steps, first, packets);
    }

    /// Flows 2 and 3 of the audit are of TCP.
    #[test]
    fn what_acknowledges_nothing_is_served_as_ever(
        operations in usual_operations(),
        buffer in buffer(),
        threshold in 0..8_000_u64,
        idle in 0..60_u64,
        (high, low) in (select(&["fifo", "las"][..]), select(&["fifo", "las"][..])),
    ) {
        let operations: Vec<_> = operations
            .into_iter()
            .filter(|operation| !matches!(operation, Operation::Arrive { flow: 2 | 3, .. }))
            .collect();
        let (threshold, idle) = (format!("{threshold} B"), format!("{idle} s"));
        let (threshold, idle) = (("threshold", threshold.as_str()), ("idle", idle.as_str()));
        for (derived, base, given) in [
            ("las-ack", "las", &[idle][..]),
            ("run2c-ack", "run2c", &[threshold, idle]),
            ("efd-ack", "efd", &[threshold, ("high", high), ("low", low)]),
        ] {
            let derived = run(build(derived, given, buffer), buffer, &operations);
            prop_assert_eq!(derived, run(build(base, given, buffer), buffer, &operations));
        }
    }
}
