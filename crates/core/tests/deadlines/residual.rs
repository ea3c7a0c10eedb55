//! What real-time flows leave, and the messages when it is too little.

use proptest::prelude::*;
use tidegate_core::contract::Contracts;
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::residual::{Residual, Unschedulable};
use tidegate_core::{Bytes, Rate, Span};

use crate::flows::{PAPER, any_contracts, any_staircase_contracts, contracts, residual};
use crate::link::{Ties, greedy, greedy_bytes, late};

#[test]
fn the_papers_flows_leave_what_was_computed_independently() {
    let residual = residual(PAPER);
    for (millis, bytes) in [(5, 4_614), (20, 20_214), (30, 28_178), (100, 39_214), (1_000, 407_914)]
    {
        assert_eq!(residual.effective().bytes(Span::millis(millis)), Bytes(bytes), "{millis} ms");
    }
    for (bytes, micros) in [(40, 1_261), (1_536, 2_458), (20_000, 19_169), (40_000, 102_246)] {
        let deadline = residual.earliest_deadline(Bytes(bytes));
        assert_eq!((deadline.0 + 500) / 1_000, micros, "{bytes} B");
    }
}

fn error(text: &str) -> Unschedulable {
    Residual::new(&contracts(text)).expect_err("these promises cannot be kept")
}

#[test]
fn a_deadline_that_is_too_short_is_named() {
    // 30 kB take 24 ms. In 20 ms the link sends 25 000 B; voice needs 100 B of
    // them, and a packet of 1 500 B is in the way.
    let late = error(
        "link 10 Mbit/s; packets to 1500 B; \
         voice = class 1: 100 B every 20 ms within 5 ms; \
         video = class 2: 30 kB every 33 ms within 20 ms",
    );
    let named = Unschedulable::Late {
        flow: "video".into(),
        deadline: Span::millis(20),
        from: Span::millis(20),
        at: Span::millis(20),
        short: Bytes(30_000 + 100 + 1_500 - 25_000),
    };
    assert_eq!(late, named);
    assert_eq!(
        late.to_string(),
        "the deadline of 'video', 20 ms, is too short: if all real-time flows send as much as \
         they may, what they must have sent 20 ms later is 6.6 kB more than the link can send \
         by then, after a largest packet that was in its way; it is too much from 20 ms on"
    );
}

#[test]
fn a_slope_that_is_too_steep_is_named() {
    // Both together are 12 Mbit/s for as long as the burst of 'steep' lasts.
    let late = error(
        "link 10 Mbit/s; packets to 1100 B; \
         flat = class 1: 500 B + 4 Mbit/s within 4 ms; \
         steep = class 2: 500 B + 8 Mbit/s, 9500 B + 2 Mbit/s within 4 ms",
    );
    // At 4 ms 5 000 B can have been sent, and 2 100 B are due or in the way. The
    // other 2 900 B last for 11.6 ms in which 250 B/ms more come due than can be
    // sent, but the burst ends after 12 ms only.
    let Unschedulable::Late { flow, from, at, short, .. } = late else {
        unreachable!("{late}");
    };
    assert_eq!(flow, "steep");
    assert_eq!((from, at), (Span(15_600_001), Span::millis(16)));
    assert_eq!(short, Bytes(100));
}

#[test]
fn flows_that_are_too_fast_are_named_with_their_rates() {
    let unstable = error(
        "link 1 Mbit/s; \
         voice = class 1: 100 B + 400 kbit/s within 5 ms; \
         video = class 2: 2500 B every 33 ms within 1 s",
    );
    assert_eq!(
        unstable.to_string(),
        "the real-time flows send 1.006 Mbit/s in the long run ('voice' 400 kbit/s, 'video' \
         606.061 kbit/s), which is not less than the 1 Mbit/s that the link is certain to send"
    );
}

#[test]
fn packets_that_are_smaller_than_any_are_refused() {
    for text in
        ["link 1 Mbit/s; packets to 39 B", "link 1 Mbit/s; a = udp: 39 B + 8 kbit/s within 1 s"]
    {
        assert!(matches!(error(text), Unschedulable::TooSmall { .. }), "{text}");
    }
}

#[test]
fn periods_without_a_common_measure_are_no_obstacle() {
    let flows = "a = class 1: 1000 B every 9999991 ns within 8 ms; \
        b = class 2: 1500 B every 16666667 ns within 20 ms; \
        c = class 3: 700 B every 33366701 ns within 12 ms";
    let residual = residual(&format!("link 10 Mbit/s; packets to 1500 B; {flows}"));
    let staircase = |size, period| Curve::staircase(Bytes(size), Span(period));
    let exact = |at: u64| {
        let due = [(1_000, 9_999_991, 8), (1_500, 16_666_667, 20), (700, 33_366_701, 12)].map(
            |(size, period, deadline)| {
                staircase(size, period).delayed(deadline * 1_000_000).value(at)
            },
        );
        i128::from(at) * 10_000_000 - 1_500 * PER_BYTE - due.iter().sum::<i128>()
    };
    // Exact up to where the tails were cut, and too small from there on.
    let cut = residual.capacity().tail();
    assert!((20_000_000..1_000_000_000).contains(&cut), "{cut}");
    for at in (0..cut).step_by(9_973) {
        assert_eq!(residual.capacity().value(at), exact(at), "{at}");
    }
    for at in (cut..100 * cut).step_by(999_983) {
        let capacity = residual.capacity().value(at);
        assert!((0..=exact(at)).contains(&capacity), "{at}");
    }
    // Only 2 400 B of 2 500 B can be sent in 8 ms on this link.
    let tight = format!("link 2.4 Mbit/s; packets to 1500 B; {flows}");
    assert!(matches!(error(&tight), Unschedulable::Late { .. }));
}

#[test]
fn slack_is_what_a_deadline_can_lose() {
    let with = |millis: u64, nanos: u64| {
        let deadline = millis * 1_000_000 + nanos;
        contracts(&PAPER.replace("within 30 ms", &format!("within {deadline} ns")))
    };
    let residual = residual(PAPER);
    let shortest = residual.shortest_deadline("video").expect("it is a flow");
    assert_eq!(residual.slack("video"), Some(Span::millis(30) - shortest));
    assert!(Residual::new(&with(0, shortest.0)).is_ok());
    assert!(Residual::new(&with(0, shortest.0 - 1)).is_err());
    assert_eq!(residual.slack("ftp"), None);
}

/// With the flow or the contract changed as it says, and otherwise as they are.
fn changed(contracts: &Contracts, index: usize, deadline: Span) -> Contracts {
    let mut changed = contracts.clone();
    if let tidegate_core::contract::Service::RealTime { deadline: old, .. } =
        &mut changed.flows[index].service
    {
        *old = deadline;
    }
    changed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Necessary and sufficient, on a link.
    #[test]
    fn flows_are_refused_if_and_only_if_a_packet_can_be_late(
        contracts in any_staircase_contracts(),
    ) {
        let real_time = |until: Span| greedy_bytes(&contracts, 0, until.0);
        let misses = |until| {
            late(&contracts, &real_time(until), &[], Ties::RealTimeFirst, |_, _, _| 0)
        };
        match Residual::new(&contracts) {
            Ok(_) => prop_assert_eq!(misses(Span::millis(150)), 0),
            Err(Unschedulable::Late { at, .. }) => {
                prop_assert!(misses(at + Span(1)) > 0, "by {}", at);
            }
            Err(other) => prop_assert!(matches!(other, Unschedulable::Unstable { .. }), "{other}"),
        }
    }

    #[test]
    fn the_shortest_deadline_is_the_last_that_can_be_met(text in any_contracts()) {
        let contracts = contracts(&text);
        let Ok(residual) = Residual::new(&contracts) else { return Ok(()) };
        for (index, flow) in contracts.flows.iter().enumerate() {
            let shortest = residual.shortest_deadline(&flow.name).expect("it is a flow");
            prop_assert!(Residual::new(&changed(&contracts, index, shortest)).is_ok());
            prop_assert!(Residual::new(&changed(&contracts, index, shortest - Span(1))).is_err());
        }
    }

    #[test]
    fn the_highest_rate_is_the_last_that_fits(
        text in any_contracts(),
        burst in 40_u64..5_000,
        millis in 1_u64..60,
    ) {
        let Ok(residual) = Residual::new(&contracts(&text)) else { return Ok(()) };
        let highest = residual.highest_rate(Bytes(burst), Span::millis(millis));
        let with = |rate: u64| {
            let rate = Rate(rate);
            let more = format!("{text}; more = class 9: {burst} B + {rate:#} within {millis} ms");
            Residual::new(&contracts(&more))
        };
        let highest = highest.map_or(0, |rate| rate.0);
        prop_assert!(highest == 0 || with(highest).is_ok());
        prop_assert!(with(highest + 1).is_err());
    }

    /// On links that take up to a nanosecond longer for each packet, with one
    /// deadline as short as it can be.
    #[test]
    fn no_packet_is_late_on_a_link_of_any_rate(
        rate in 7_000_000_u64..15_000_000,
        flows in prop::collection::vec((1_u64..60, 4_u64..40, 2_u64..60), 1..4),
    ) {
        // Steps of packets of 40 B each, so that flows can send all they may.
        let flow = |(index, &(packets, period, deadline)): (usize, &(u64, u64, u64))| {
            let size = 40 * packets;
            format!("; f{index} = class {index}: {size} B every {period} ms within {deadline} ms")
        };
        let flows: String = flows.iter().enumerate().map(flow).collect();
        let contracts = contracts(&format!("link {rate} bit/s; packets to 40 B{flows}"));
        let Ok(residual) = Residual::new(&contracts) else { return Ok(()) };
        let shortest = residual.shortest_deadline("f0").expect("it is a flow");
        let contracts = changed(&contracts, 0, shortest);
        let real_time = greedy(&contracts, 0, 200_000_000, 40);
        let late = late(&contracts, &real_time, &[], Ties::RealTimeFirst, |_, _, _| 0);
        prop_assert_eq!(late, 0);
    }
}
