//! A flow for each lookup, of the sizes and as often as the file says, and the same arrivals
//! under every discipline.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tidegate_core::FlowKey;

use super::{Home, QUIET};

#[test]
fn every_lookup_is_a_flow_and_asks_again_in_the_same_one() {
    let lookups = "per_second = 20\ntimeout = \"50 ms\"\nattempts = 3";
    let (rows, _) = Home { link: "loss = 0.2", lookups, ..QUIET }.run("fifo", 3);
    // By 5-tuple, the queries on the way up.
    let mut queries: BTreeMap<FlowKey, u32> = BTreeMap::new();
    for row in rows.packets.iter().filter(|row| row.link == 1) {
        let key = row.packet.flow;
        assert_eq!((key.destination().port(), key.protocol()), (53, FlowKey::UDP));
        assert!(key.source().port() >= 32_768);
        assert_eq!(row.packet.size.0, 67);
        *queries.entry(key).or_default() += 1;
    }
    assert_eq!(queries.len(), rows.flows.len());
    let again: u32 = rows.flows.iter().map(|row| row.retransmissions).sum();
    assert_eq!(queries.values().sum::<u32>(), rows.flows.len() as u32 + again);
    // And the answers come back in the opposite one.
    let answers: BTreeSet<_> =
        rows.packets.iter().filter(|row| row.link == 0).map(|row| row.packet.flow).collect();
    assert!(answers.iter().all(|key| queries.contains_key(&key.reversed())));
}

#[test]
fn lookups_are_as_many_and_answers_as_large_as_the_defaults_say() {
    let home = Home { seconds: 500, rate: "10 Mbit/s", lookups: "per_second = 20", ..QUIET };
    let (rows, _) = home.run("fifo", 5);
    let sizes: Vec<f64> =
        rows.flows.iter().map(|row| row.size.expect("an answer has a size").0 as f64).collect();
    let count = sizes.len() as f64;
    assert!((count - 10_000.0).abs() < 5.0 * 100.0, "{count}");
    // The lognormal of 142 bytes with a deviation of 59, without what is below a query.
    let mean = sizes.iter().sum::<f64>() / count;
    assert!((mean - 142.5).abs() < 5.0 * 59.0 / count.sqrt(), "{mean}");
    assert!(sizes.iter().all(|size| (67.0..=1_260.0).contains(size)));
}

#[test]
fn arrivals_are_the_same_under_every_discipline_and_runs_under_a_seed() {
    let others = r#"
        [[traffic.transfers]]
        name = "download"
        from = "resolver"
        to = "host"
        count = 1
        sizes = "endless"
    "#;
    let home = Home { seconds: 30, lookups: "per_second = 5", others, ..QUIET };
    let planned = |discipline| {
        let (rows, _) = home.run(discipline, 2);
        let names = rows.flows.iter().filter(|row| row.traffic == 0);
        let mut planned: Vec<_> = names.map(|row| (row.number, row.start, row.size)).collect();
        planned.sort();
        planned
    };
    let fifo = planned("fifo");
    assert!(fifo.len() > 100);
    for discipline in ["fq-codel", "cake", "las", "lars", "efd", "sfq", "dualpi2", "tide"] {
        assert_eq!(planned(discipline), fifo, "{discipline}");
    }
    let [one, other] = [2, 2].map(|seed| home.run("fq-codel", seed).0);
    assert!(one.flows == other.flows && one.packets == other.packets);
    assert!(home.run("fq-codel", 3).0.flows != one.flows);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn books_add_up(
        (rate, per_second, loss) in (10_u32..2_000, 1_u32..400, 0_u32..100),
        (timeout, attempts, answer) in (1_u32..3_000, 1_u32..=5, 67_u32..=1_260),
        discipline in prop::sample::select(&["fifo", "fq-codel", "las", "efd", "tide"][..]),
        seed in 0_u64..1_000,
    ) {
        let lookups = format!(
            "per_second = {per_second}\ntimeout = \"{timeout} ms\"\nattempts = {attempts}\n\
             answer = \"{answer} B\""
        );
        let home = Home {
            seconds: 10,
            rate: &format!("{rate} kbit/s"),
            link: &format!("loss = {}", f64::from(loss) / 100.0),
            lookups: &lookups,
            others: "",
        };
        // The run itself checks that every packet was delivered, lost or on its way.
        let (rows, summary) = home.run(discipline, seed);
        let source = &summary.traffic[0];
        let cut_off = source.started - source.completed - source.lookups.failed;
        prop_assert_eq!(source.lookups.times.count(), source.started - cut_off);
        prop_assert_eq!(rows.flows.len() as u64, source.started);
        let numbers: BTreeSet<_> = rows.flows.iter().map(|row| row.number).collect();
        prop_assert_eq!(numbers, (0..source.started).collect());
        let patience = f64::from(timeout * attempts) / 1e3;
        prop_assert!(source.lookups.times.largest().is_none_or(|it| it <= patience + 1e-9));
        for row in &rows.flows {
            prop_assert!(row.retransmissions < attempts && row.timeouts <= attempts);
            prop_assert_eq!(row.response.is_some(), row.end.is_some());
            prop_assert_eq!(row.delivered.0, row.response.map_or(0, |_| u64::from(answer)));
        }
        let queries = rows.packets.iter().filter(|row| row.link == 1).count() as u64;
        let again: u64 = rows.flows.iter().map(|row| u64::from(row.retransmissions)).sum();
        prop_assert_eq!(queries, source.started + again);
    }
}
