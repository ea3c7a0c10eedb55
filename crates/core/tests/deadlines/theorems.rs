//! The theorems of `BE section 3`, for every assignment.

use proptest::prelude::*;
use tidegate_core::assignment::{Assignment, Exact, Scheme};
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::residual::SMALLEST_PACKET;
use tidegate_core::{Bytes, Time};

use crate::flows::{any_kept, any_staircases, any_typical, packets};
use crate::link::{Ties, by, cut, greedy, greedy_bytes, late};

/// A packet with its deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    arrived: u64,
    size: u64,
    deadline: u64,
}

/// The deadlines of packets of `(arrived, size)`.
pub(crate) fn given(assignment: &mut dyn Assignment, packets: &[(u64, u64)]) -> Vec<Given> {
    let one = |&(arrived, size): &(u64, u64)| {
        let deadline = assignment.assign(Time(arrived), Bytes(size)).0;
        Given { arrived, size: size.max(SMALLEST_PACKET.0), deadline }
    };
    packets.iter().map(one).collect()
}

/// Whether any stretch of packets demands more than `capacity` within the time
/// from its first arrival to its last deadline.
pub(crate) fn is_too_much(given: &[Given], capacity: &Curve) -> bool {
    let ends_with = |last: usize| {
        let mut demand = 0;
        given[..=last].iter().rev().any(|first| {
            demand += i128::from(first.size) * PER_BYTE;
            capacity.value(given[last].deadline - first.arrived) < demand
        })
    };
    (0..given.len()).any(ends_with)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Theorem 1, and what the proof of Theorem 2 needs.
    #[test]
    fn deadlines_keep_the_order_and_demand_stays_below_the_capacity(
        (_, residual) in any_kept(),
        typical in any_typical(),
        packets in packets(60),
    ) {
        for scheme in Scheme::ALL {
            let given = given(&mut *scheme.build(&residual, typical), &packets);
            prop_assert!(given.is_sorted_by(|one, next| one.deadline < next.deadline), "{scheme}");
            let capacity = match scheme {
                Scheme::Tight => residual.in_order(),
                _ => residual.effective(),
            };
            prop_assert!(!is_too_much(&given, capacity), "{scheme}: {given:?}");
        }
    }

    /// Theorem 2, on a link.
    #[test]
    fn no_packet_is_late(
        (contracts, residual) in any_kept(),
        typical in any_typical(),
        packets in packets(60),
        start in 0_u64..40_000_000,
        real_time_packet in 40_u64..1_600,
        ties in prop_oneof![Just(Ties::RealTimeFirst), Just(Ties::BestEffortFirst)],
    ) {
        let largest = contracts.largest_packet.0;
        let packets: Vec<_> = packets.iter().map(|(at, size)| (*at, (*size).min(largest))).collect();
        let real_time = greedy(&contracts, start, start + 300_000_000, real_time_packet.min(largest));
        // The tight one does not allow for a packet of no flow: see `tight`.
        for scheme in Scheme::ALL.into_iter().filter(|scheme| *scheme != Scheme::Tight) {
            let mut assignment = scheme.build(&residual, typical);
            let late = late(&contracts, &real_time, &packets, ties, by(&mut *assignment));
            prop_assert_eq!(late, 0, "{}", scheme);
        }
    }

    /// Theorem 3: what the exact deadlines are rounded to is the only margin.
    #[test]
    fn a_deadline_that_is_a_nanosecond_shorter_can_be_missed(
        (contracts, residual) in any_staircases(),
        packets in packets(20),
    ) {
        let largest = contracts.largest_packet.0;
        let (packets, deadlines) = binding(residual.effective(), largest, &packets);
        let start = packets[0].0;
        let until = deadlines[deadlines.len() - 1] + 400_000_000;
        let real_time = greedy_bytes(&contracts, start, until);
        let misses = |shorter| {
            late(&contracts, &real_time, &packets, Ties::RealTimeFirst, cut(&deadlines, shorter))
        };
        prop_assert_eq!(misses(0), 0);
        prop_assert!(misses(1) > 0);
    }
}

/// The last packets of `packets`, from the one on that makes the last deadline
/// as late as it is, and their deadlines when nothing came before.
pub(crate) fn binding(
    capacity: &Curve,
    largest: u64,
    packets: &[(u64, u64)],
) -> (Vec<(u64, u64)>, Vec<u64>) {
    let packets: Vec<_> =
        packets.iter().map(|(at, size)| (*at, (*size).clamp(SMALLEST_PACKET.0, largest))).collect();
    let deadlines = |packets: &[(u64, u64)]| -> Vec<u64> {
        let mut exact = Exact::new(capacity.clone());
        given(&mut exact, packets).iter().map(|given| given.deadline).collect()
    };
    let all = deadlines(&packets);
    let same = |first: &usize| deadlines(&packets[*first..]).last() == all.last();
    let first = (0..packets.len()).rev().find(same).expect("all of them");
    (packets[first..].to_vec(), deadlines(&packets[first..]))
}
