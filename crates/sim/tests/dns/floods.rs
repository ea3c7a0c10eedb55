//! More lookups than a link, or a host's ports, can carry.

use tidegate_sim::scenario::MOST_OPEN;

use super::{Home, NOTHING_ARRIVES, QUIET};

#[test]
fn a_flood_that_nobody_answers_takes_the_ports_that_there_are_and_fails() {
    let lookups = "per_second = 20_000\ntimeout = \"2 s\"\nattempts = 1";
    let home = Home { seconds: 6, rate: "1 Gbit/s", link: NOTHING_ARRIVES, lookups, others: "" };
    let (rows, summary) = home.run("fifo", 1);
    let source = &summary.traffic[0];
    // Those that found no port asked nobody, and are no quicker than those that waited.
    let asked = rows.packets.len() as u64;
    let without = rows.flows.iter().filter(|row| row.timeouts == 0 && row.end.is_none()).count();
    assert!(asked < source.started && asked <= 3 * u64::from(MOST_OPEN), "{asked}");
    assert!(without as u64 >= source.started - asked);
    assert_eq!((source.completed, source.lookups.times.largest()), (0, Some(2.0)));
    assert!((source.lookups.times.mean().unwrap() - 2.0).abs() < 1e-9);
    // What is open at the end has no time; nothing else lacks one.
    let open = source.started - source.lookups.times.count();
    assert!(open <= u64::from(MOST_OPEN), "{open}");
}

#[test]
fn answers_above_the_links_rate_are_lost_and_asked_for_again() {
    let lookups = "per_second = 300\nanswer = \"1260 B\"\nstop = \"20 s\"";
    let (rows, summary) = Home { seconds: 40, lookups, ..QUIET }.run("fifo", 1);
    let source = &summary.traffic[0];
    // 99 answers a second fit.
    assert!(source.lookups.failed > 0 && source.lookups.asked_again > 0);
    let most = 40 * 99 + 1;
    assert!((1_900..most).contains(&source.completed), "{}", source.completed);
    assert_eq!(source.lookups.times.count(), source.started);
    assert!(rows.flows.iter().any(|row| row.lost > 0));
}
