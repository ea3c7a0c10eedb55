//! The deadlines of best effort that is sent in order: safe on a link on which
//! nothing else is, and as early as can be.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use tidegate_core::assignment::{Assignment, Exact, Scheme};
use tidegate_core::contract::Contracts;
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::{Bytes, Time};

use crate::flows::{PAPER, any_kept, any_staircases, any_typical, contracts, packets, residual};
use crate::link::{Due, cut, greedy, greedy_bytes};
use crate::theorems::binding;

/// Sends real-time packets and best-effort packets, `(arrived, size)`, by the earliest
/// deadline. The link begins a packet as soon as it can: of packets that come at once,
/// the first begins before the others are seen. Those of real time come after best
/// effort, but for the first few of them, `ahead`.
/// Best effort gets its deadline from `assign`, which also learns whether the link was
/// idle. Returns how many packets were late.
fn late(
    contracts: &Contracts,
    real_time: &[Due],
    ahead: usize,
    best_effort: &[(u64, u64)],
    mut assign: impl FnMut(u64, u64, bool) -> u64,
) -> usize {
    let real_time = real_time.iter().map(|due| (due.arrived, due.size, Some(due.deadline)));
    let best_effort = best_effort.iter().map(|(at, size)| (*at, *size, None));
    let mut arrivals: Vec<_> = real_time.clone().take(ahead).collect();
    arrivals.extend(best_effort.chain(real_time.skip(ahead)));
    // Stable: at the same time the order stays.
    arrivals.sort_by_key(|arrival| arrival.0);
    let mut waiting: BinaryHeap<Reverse<(u64, bool, u64)>> = BinaryHeap::new();
    let (mut free_at, mut late) = (0, 0);
    let mut arrivals = arrivals.into_iter().peekable();
    while let Some((at, size, deadline)) = arrivals.next() {
        let idle = waiting.is_empty() && free_at <= at;
        let due = deadline.unwrap_or_else(|| assign(at, size, idle));
        waiting.push(Reverse((due, deadline.is_none(), size)));
        let until = arrivals.peek().map_or(u64::MAX, |next| next.0);
        free_at = free_at.max(at);
        while free_at <= until
            && let Some(Reverse((due, _, size))) = waiting.pop()
        {
            free_at += contracts.link.transmission(Bytes(size)).0;
            late += usize::from(free_at > due);
        }
    }
    late
}

/// The deadlines of `assignment`, forgotten while the link is idle.
fn by(assignment: &mut dyn Assignment) -> impl FnMut(u64, u64, bool) -> u64 + '_ {
    |arrived, size, idle| {
        if idle {
            assignment.reset();
        }
        assignment.assign(Time(arrived), Bytes(size)).0
    }
}

/// The real-time flows send byte by byte from `start` on, whatever their curves allow,
/// but the first bytes of the one with this index come together, as its largest packet,
/// before everything else.
fn greedy_behind(contracts: &Contracts, blocking: usize, start: u64, until: u64) -> Vec<Due> {
    let flow = contracts.real_time().nth(blocking).expect("a flow has this index");
    let size = flow.envelope.largest_packet().min(contracts.largest_packet).0;
    let mut packets = vec![Due { arrived: start, size, deadline: start + flow.deadline.0 }];
    for (index, flow) in contracts.real_time().enumerate() {
        let curve = flow.envelope.curve().expect("flows of the tests are simple");
        let arrival = |sent: i128| Some(start + curve.first_reaching(sent * PER_BYTE)?);
        let first = if index == blocking { i128::from(size) + 1 } else { 1 };
        let arrivals = (first..).map_while(arrival).take_while(|at| *at < until);
        packets.extend(arrivals.map(|arrived| Due {
            arrived,
            size: 1,
            deadline: arrived + flow.deadline.0,
        }));
    }
    packets[1..].sort_unstable();
    packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_packet_is_late(
        (contracts, residual) in any_kept(),
        typical in any_typical(),
        packets in packets(60),
        start in 0_u64..40_000_000,
        sizes in prop::collection::vec(40_u64..1_600, 4),
    ) {
        let largest = contracts.largest_packet.0;
        let packets: Vec<_> = packets.iter().map(|(at, size)| (*at, (*size).min(largest))).collect();
        // Each flow's packets come first in turn, and are in the way of the others'.
        for packet in sizes {
            let real_time = greedy(&contracts, start, start + 300_000_000, packet.min(largest));
            let mut tight = Scheme::Tight.build(&residual, typical);
            let ahead = if packet % 2 == 0 { real_time.len() } else { 0 };
            prop_assert_eq!(late(&contracts, &real_time, ahead, &packets, by(&mut *tight)), 0);
        }
    }

    /// With the largest packet of some flow in the way, a deadline that is a nanosecond
    /// shorter is missed, or makes another packet late.
    #[test]
    fn a_deadline_that_is_a_nanosecond_shorter_can_be_missed(
        (contracts, residual) in any_staircases(),
        packets in packets(20),
    ) {
        let largest = contracts.largest_packet.0;
        let (packets, deadlines) = binding(residual.in_order(), largest, &packets);
        let start = packets[0].0;
        let until = deadlines[deadlines.len() - 1] + 400_000_000;
        let misses = |(real_time, ahead): &(Vec<Due>, usize), shorter| {
            late(&contracts, real_time, *ahead, &packets, cut(&deadlines, shorter))
        };
        let flows = contracts.real_time().count();
        // Nothing is in the way, or a packet of one of the flows.
        let mut ways = vec![(greedy_bytes(&contracts, start, until), 0)];
        let behind = |blocking| (greedy_behind(&contracts, blocking, start, until), 1);
        ways.extend((0..flows).map(behind));
        prop_assert!(ways.iter().all(|way| misses(way, 0) == 0));
        prop_assert!(ways.iter().any(|way| misses(way, 1) > 0));
    }

    #[test]
    fn more_is_left_than_with_a_largest_packet_in_the_way_by_at_most_that(
        (contracts, residual) in any_kept(),
        at in 0_u64..2_000_000_000,
    ) {
        let more = residual.in_order().value(at) - residual.effective().value(at);
        prop_assert!((0..=i128::from(contracts.largest_packet.0) * PER_BYTE).contains(&more));
    }
}

#[test]
fn a_single_packet_beside_voice_need_not_wait_for_what_cannot_be_in_its_way() {
    // The voice packet of 100 B takes 80 us, and each other flow's may be in the way
    // within its deadline.
    let text = "link 10 Mbit/s; packets to 1500 B; voice = class 1: 100 B every 20 ms within 12 ms";
    let (voice, left) = (contracts(text), residual(text));
    let first = |curve: &Curve| curve.first_reaching(1_500 * PER_BYTE);
    // A largest packet, its own 1.2 ms and, from 12 ms on, the voice packet.
    assert_eq!(first(left.effective()), Some(2_400_000));
    assert_eq!(first(left.in_order()), Some(1_280_000));
    let mut exact = Exact::new(left.in_order().clone());
    let due = exact.assign(Time(0), Bytes(1_500));
    let real_time = greedy(&voice, 0, 100_000_000, 100);
    assert_eq!(late(&voice, &real_time, 1, &[(0, 1_500)], |_, _, _| due.0), 0);
    assert_eq!(late(&voice, &real_time, 1, &[(0, 1_500)], |_, _, _| due.0 - 1), 1);
    // In the paper's example, a packet of 1 536 B has 2.458 ms with a largest packet in
    // the way; its flows' largest is as large.
    let paper = residual(PAPER);
    assert_eq!(paper.earliest_deadline(Bytes(1_536)).0, 2_457_600);
    assert_eq!(paper.in_order().first_reaching(1_536 * PER_BYTE), Some(2_457_600));
}
