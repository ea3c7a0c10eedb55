//! What holds at the limits of all ranges, and for ever.

use allocation_counter::measure;
use proptest::prelude::*;
use tidegate_core::assignment::{Assignment, Scheme, Typical};
use tidegate_core::contract::Contracts;
use tidegate_core::residual::Residual;
use tidegate_core::{Bytes, Rate, Span, Time};

use crate::flows::{PAPER, any_typical, residual};

/// Any number up to `most`, often one of the ends.
fn up_to(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), Just(most), 1..=most, (0_u32..63).prop_map(move |n| most.min(1 << n))]
}

fn any_text() -> impl Strategy<Value = String> {
    let bucket = (up_to(1_000_000_000_000), up_to(1_000_000_000_000))
        .prop_map(|(burst, rate)| format!("{burst} B + {rate} bit/s"));
    let staircase = (up_to(1_000_000_000_000), up_to(u64::MAX))
        .prop_map(|(size, period)| format!("{size} B every {period} ns"));
    let terms = prop::collection::vec(prop_oneof![bucket, staircase], 1..4);
    let flow = (terms, up_to(u64::MAX))
        .prop_map(|(terms, deadline)| format!("{} within {deadline} ns", terms.join(", ")));
    let flows = prop::collection::vec(flow, 0..4);
    (up_to(1_000_000_000_000), up_to(1 << 20), flows).prop_map(|(rate, largest, flows)| {
        let flow = |(index, flow): (usize, &String)| format!("; f{index} = class {index}: {flow}");
        let flows: String = flows.iter().enumerate().map(flow).collect();
        format!("link {rate} bit/s; packets to {largest} B{flows}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn nothing_overflows(
        text in any_text(),
        typical in any_typical(),
        packets in prop::collection::vec((up_to(u64::MAX), up_to(u64::MAX)), 1..20),
        burst in up_to(u64::MAX),
        deadline in up_to(u64::MAX),
    ) {
        let contracts: Contracts = text.parse().expect("within its limits");
        let residual = match Residual::new(&contracts) {
            Ok(residual) => residual,
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                return Ok(());
            }
        };
        for flow in contracts.real_time() {
            prop_assert!(residual.shortest_deadline(flow.name).is_some_and(|d| d <= flow.deadline));
        }
        let rate = residual.highest_rate(Bytes(burst), Span(deadline));
        prop_assert!(rate.is_none_or(|rate| rate < residual.certain_rate()));
        for scheme in Scheme::ALL {
            let typical = Typical { burst: Bytes(burst), ..typical };
            let mut assignment = scheme.build(&residual, typical);
            let (mut now, mut last) = (Time::ZERO, Time::ZERO);
            for (gap, size) in &packets {
                now += Span(*gap);
                let due = assignment.assign(now, Bytes(*size));
                prop_assert!(due >= last && due >= now, "{scheme}");
                last = due;
            }
        }
    }
}

#[test]
fn a_sum_of_sizes_at_its_largest_value_makes_no_deadline_earlier() {
    let residual = residual("link 1000 Gbit/s; packets to 1048576 B");
    let mut assignment =
        Scheme::Bounded.build(&residual, Typical { packet: Bytes(1), burst: Bytes(1) });
    let packets = [(1, u64::MAX), (1 << 62, 1), (u64::MAX, 1), (u64::MAX, 1), (u64::MAX, 1)];
    let due = packets.map(|(now, size)| assignment.assign(Time(now), Bytes(size)));
    assert!(due.is_sorted() && due[4] == Time::FAR_FUTURE, "{due:?}");
}

/// Bursts and single packets at nine tenths of what is left, never idle.
fn traffic(assignment: &mut dyn Assignment, now: &mut Time, packets: u64) {
    for number in 0..packets {
        let size = Bytes(40 + number * 97 % 1_497);
        if number % 8 == 0 {
            *now += Span(Rate(3_240_000).transmission(Bytes(788)).0 * 8);
        }
        assignment.assign(*now, size);
    }
}

#[test]
fn no_assignment_but_the_exact_one_allocates_in_its_steady_state() {
    let residual = residual(PAPER);
    let typical = Typical { packet: Bytes(1_536), burst: Bytes(15_360) };
    for scheme in Scheme::ALL {
        let (mut assignment, mut now) = (scheme.build(&residual, typical), Time::ZERO);
        // Less for the one that looks at every packet again.
        let packets = if scheme == Scheme::Exact { 1_000 } else { 100_000 };
        traffic(&mut *assignment, &mut now, packets);
        let steady = measure(|| traffic(&mut *assignment, &mut now, 4 * packets));
        assert_eq!(steady.count_total == 0, scheme != Scheme::Exact, "{scheme}");
    }
}
