//! Contracts and arrivals that the tests share.

use proptest::prelude::*;
use tidegate_core::Bytes;
use tidegate_core::assignment::Typical;
use tidegate_core::contract::Contracts;
use tidegate_core::residual::Residual;

/// The flows of `BE Table 3` on a link of 10 Mbit/s.
pub(crate) const PAPER: &str = "link 10 Mbit/s; packets to 1536 B; \
    transactions = class 1: 700 B + 1.2 Mbit/s, 45000 B + 400 kbit/s within 20 ms; \
    video = class 2: 1536 B + 6.4 Mbit/s, 15000 B + 4.8 Mbit/s within 30 ms; \
    voice = class 3: 100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s within 5 ms";

pub(crate) fn contracts(text: &str) -> Contracts {
    text.parse().expect("the contracts are well-formed")
}

pub(crate) fn residual(text: &str) -> Residual {
    Residual::new(&contracts(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A real-time flow of up to a third of a link of 10 Mbit/s.
fn flow() -> impl Strategy<Value = String> {
    let deadline = 2_u64..60;
    let bucket =
        (40_u64..6_000, 50_u64..2_500, deadline.clone()).prop_map(|(burst, rate, deadline)| {
            format!("{burst} B + {rate} kbit/s within {deadline} ms")
        });
    let tspec = (40_u64..1_500, 500_u64..4_000, 1_500_u64..6_000, 50_u64..2_500, deadline.clone())
        .prop_map(|(packet, peak, burst, rate, deadline)| {
            format!("{packet} B + {peak} kbit/s, {burst} B + {rate} kbit/s within {deadline} ms")
        });
    let staircase = (40_u64..3_000, 4_u64..40, deadline).prop_map(|(size, period, deadline)| {
        format!("{size} B every {period} ms within {deadline} ms")
    });
    prop_oneof![2 => bucket, 2 => tspec, 1 => staircase]
}

/// Contracts of a link of 10 Mbit/s, schedulable or not.
pub(crate) fn any_contracts() -> impl Strategy<Value = String> {
    (40_u64..1_600, prop::collection::vec(flow(), 0..4))
        .prop_map(|(largest, flows)| text(largest, &flows))
}

fn text(largest: u64, flows: &[String]) -> String {
    let flow = |(index, flow): (usize, &String)| format!("; f{index} = class {index}: {flow}");
    let flows: String = flows.iter().enumerate().map(flow).collect();
    format!("link 10 Mbit/s; packets to {largest} B{flows}")
}

/// Contracts that can be kept, and what they leave.
pub(crate) fn any_kept() -> impl Strategy<Value = (Contracts, Residual)> {
    any_contracts().prop_filter_map("cannot be kept", |text| {
        let contracts = contracts(&text);
        let residual = Residual::new(&contracts).ok()?;
        Some((contracts, residual))
    })
}

/// Contracts of staircases, whose steps are whole bytes, schedulable or not.
pub(crate) fn any_staircase_contracts() -> impl Strategy<Value = Contracts> {
    let flow = (40_u64..3_000, 4_u64..40, 2_u64..60).prop_map(|(size, period, deadline)| {
        format!("{size} B every {period} ms within {deadline} ms")
    });
    (40_u64..1_600, prop::collection::vec(flow, 0..4))
        .prop_map(|(largest, flows)| contracts(&text(largest, &flows)))
}

/// Those that can be kept, and what they leave.
pub(crate) fn any_staircases() -> impl Strategy<Value = (Contracts, Residual)> {
    any_staircase_contracts().prop_filter_map("cannot be kept", |contracts| {
        let residual = Residual::new(&contracts).ok()?;
        Some((contracts, residual))
    })
}

/// What contracts that can be kept leave.
pub(crate) fn any_residual() -> impl Strategy<Value = Residual> {
    any_kept().prop_map(|(_, residual)| residual)
}

/// Packets of best effort, as `(arrived, size)`: bursts with pauses between.
pub(crate) fn packets(count: usize) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![4 => Just(0_u64), 3 => 0_u64..2_000_000, 1 => 0_u64..60_000_000];
    let size = prop_oneof![1_u64..1_600, Just(40_u64), Just(1_500_u64)];
    prop::collection::vec((gap, size), 1..count).prop_map(|steps| {
        let mut now = 0;
        let mut packet = |(gap, size)| {
            now += gap;
            (now, size)
        };
        steps.into_iter().map(&mut packet).collect()
    })
}

/// The best-effort traffic to fit to.
pub(crate) fn any_typical() -> impl Strategy<Value = Typical> {
    (1_u64..1_600, 1_u64..200_000)
        .prop_map(|(packet, burst)| Typical { packet: Bytes(packet), burst: Bytes(burst) })
}

/// What happens to an assignment of deadlines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// So much later, in nanoseconds, a packet of so many bytes comes.
    Packet(u64, u64),
    /// The link was idle.
    Idle,
}

/// Bursts, steady packets, long silences, and now and then an idle link.
pub(crate) fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![
        4 => Just(0_u64),
        3 => 0_u64..2_000_000,
        1 => 0_u64..100_000_000,
        1 => 0_u64..20_000_000_000,
    ];
    let size = prop_oneof![1_u64..1_600, Just(40_u64), Just(1_500_u64)];
    let packet = (gap, size).prop_map(|(gap, size)| Step::Packet(gap, size));
    prop::collection::vec(prop_oneof![30 => packet, 1 => Just(Step::Idle)], 1..count)
}
