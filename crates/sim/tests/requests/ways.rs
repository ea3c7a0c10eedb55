//! The rivals of request schedulers: shares, what is lent, and that all see the
//! same demand.

use std::path::Path;
use std::sync::Arc;

use tidegate_core::setting::Parameter;
use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::requests::{Demand, Http, Outcome, RIVALS, Setup, Way, names};
use tidegate_sim::tcp::TcpConfig;

use super::{outcome, shares, within};

/// Today's set-up for a shorter time: every class always has requests waiting.
fn backlogged() -> Setup {
    Setup { duration: Span::seconds(300), warm_up: Span::seconds(60), ..Setup::today() }
}

/// The others have as many loops again, to be backlogged with its share as well.
fn without_class_1() -> Setup {
    let mut setup = backlogged();
    for class in &mut setup.classes {
        class.demand = Demand::Closed { loops: 20, pause: Span::seconds(5) };
    }
    setup.classes[0].silent.push((Time::ZERO, Time::FAR_FUTURE));
    setup
}

/// The share of the link that a shaper hands out.
fn shaped(setup: &Setup, outcome: &Outcome) -> f64 {
    let bytes = outcome.shaper.expect("it is one").delivered_bytes;
    bytes.0 as f64 / setup.rate.volume(outcome.measured).0 as f64
}

#[test]
fn every_way_that_is_listed_runs_and_the_same_seed_gives_the_same_run() {
    let setup = Setup { duration: Span::seconds(20), warm_up: Span::seconds(5), ..Setup::today() };
    for (name, _) in names() {
        let samples = |seed| outcome(&setup, &name, &[], seed).samples;
        let once = samples(1);
        assert!(once.last().is_some_and(|s| s.carried > Bytes(1_000_000)), "{name}");
        assert_eq!(once, samples(1), "{name}");
        assert_ne!(once, samples(2), "{name}");
    }
    assert!(Way::new("none", "none", &[]).expect("no settings").is_none());
    assert!(Way::new("htb", "htb", &[("share", "2")]).is_err());
    assert!(Way::new("", "shaped-drr", &[("target", "5 ms")]).is_err());
}

#[test]
fn htb_and_pools_share_by_weight_and_ways_without_classes_do_not() {
    let setup = Setup { http: Http::ONCE, ..backlogged() };
    // Leaves of 6 s of the share of weight one. Those of 1 000 packets hold 42 s of it, and
    // the classes' payload then comes to 4.6, 2.1 and 1.
    let short: &[(&str, &str)] = &[("queue", "150")];
    for (name, given) in [("htb", short), ("pools", &[])] {
        let [first, second] = shares(&setup, name, given);
        assert!(within(first, 4.0, 0.05) && within(second, 2.0, 0.05), "{name}: {first}, {second}");
    }
    for name in ["direct", "shaped-drr", "shaped-cake"] {
        let [first, second] = shares(&setup, name, &[]);
        assert!(within(first, 1.0, 0.15) && within(second, 1.0, 0.15), "{name}: {first}, {second}");
    }
}

#[test]
fn htb_lends_a_silent_classes_share_and_pools_do_not() {
    let setup = without_class_1();
    let htb = outcome(&setup, "htb", &[], 1);
    let used = shaped(&setup, &htb);
    assert!((0.94..=0.951).contains(&used), "{used}");
    let ratio = htb.throughput_bps(1) / htb.throughput_bps(2);
    assert!(within(ratio, 2.0, 0.05), "{ratio}");
    // In a few minutes more may come than is read, for each response may be 64 kB ahead.
    let longer = Setup { duration: Span::seconds(900), ..setup };
    let pools = outcome(&longer, "pools", &[], 1);
    // Three sevenths of 95%, and headers.
    assert!((0.41..0.45).contains(&pools.utilisation), "{}", pools.utilisation);
}

/// Of nine seeds, the mean median of small responses, and how many times as much the first class
/// has received as the last. Hosts have the ticks of Linux's, by which SYNs are answered twice or
/// once: responses of which half is lost depend on that.
fn small_median_and_ratio(name: &str, given: &[(&str, &str)]) -> (f64, f64) {
    const SEEDS: u64 = 9;
    let mut setup = backlogged();
    let tcp = TcpConfig { timer_tick: Span::millis(4), ..TcpConfig::clone(&setup.tcp) };
    setup.tcp = Arc::new(tcp);
    let runs: Vec<_> = (1..=SEEDS).map(|seed| outcome(&setup, name, given, seed)).collect();
    let small: f64 =
        runs.iter().filter_map(|run| run.all(|class| &class.small).quantile(0.5)).sum::<f64>();
    let received = |class: usize| runs.iter().map(|it| it.classes[class].received.0).sum::<u64>();
    (small / SEEDS as f64, received(0) as f64 / received(2) as f64)
}

/// By 30 and 7%: 2.34, 1.63 and 1.52 s.
#[test]
fn shorter_leaves_of_htb_bring_small_responses_sooner_and_keep_less_of_the_shares() {
    let leaves =
        ["1000", "61", "25"].map(|queue| small_median_and_ratio("htb", &[("queue", queue)]));
    let [long, middle, short] = leaves;
    assert!(long.0 > 1.35 * middle.0 && middle.0 > 1.05 * short.0, "{leaves:?}");
    assert!(within(long.1, 4.3, 0.12) && long.1 > middle.1, "{leaves:?}");
    assert!(middle.1 > 1.15 * short.1 && short.1 > 1.5, "{leaves:?}");
}

#[test]
fn a_shaper_takes_the_queue_from_the_provider_and_hands_on_what_it_gets() {
    let setup = backlogged();
    let direct = outcome(&setup, "direct", &[], 1);
    assert!(direct.shaper.is_none());
    let of_all = |outcome: &Outcome| {
        let queue = outcome.queueing.mean().expect("packets were sent");
        (queue, outcome.downlink.lost() as f64 / outcome.downlink.offered as f64)
    };
    let (queue, lost) = of_all(&direct);
    for name in ["htb", "shaped-drr"] {
        let outcome = outcome(&setup, name, &[], 1);
        let shaper = outcome.shaper.expect("it is one");
        // What is on the wire at the start and at the end.
        let (offered, carried) = (shaper.offered, outcome.downlink.delivered);
        assert!(offered.abs_diff(carried) <= 2, "{name}: {offered} of {carried} packets");
        let used = shaped(&setup, &outcome);
        assert!((0.94..=0.951).contains(&used), "{name}: {used}");
        let (shorter, fewer) = of_all(&outcome);
        assert!(shorter < 0.75 * queue, "{name}: {shorter} s, {queue} s without");
        assert!(fewer < 0.5 * lost, "{name}: {fewer} lost, {lost} without");
    }
}

#[test]
fn all_ways_see_the_same_demand() {
    let mut setup = backlogged();
    for class in &mut setup.classes {
        class.demand = Demand::Open { every: Span::seconds(8) };
    }
    let completed = |name| -> (u64, u64) {
        let outcome = outcome(&setup, name, &[], 1);
        let failed: u64 = outcome.classes.iter().map(|class| class.failures.all()).sum();
        assert_eq!(failed, 0, "{name}");
        let classes = outcome.classes.iter();
        classes.fold((0, 0), |(n, b), class| (n + class.completed, b + class.received.0))
    };
    let (count, bytes) = completed("fifo");
    assert!(count > 300);
    for name in ["direct", "htb", "shaped-cake", "pools"] {
        let (other_count, other_bytes) = completed(name);
        // The last few are cut off by the end, some at the start by the warm-up.
        assert!(count.abs_diff(other_count) <= 6, "{name}: {other_count}, {count}");
        assert!(within(other_bytes as f64, bytes as f64, 0.02), "{name}: {other_bytes}, {bytes}");
    }
}

#[test]
fn the_page_says_what_the_list_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/requests/comparison.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    for rival in RIVALS {
        let row = format!("| `{}` | {} | {} |", rival.name, rival.summary, rival.source);
        assert!(page.contains(&row), "it lacks\n{row}");
        for Parameter { name, kind, default, help } in rival.parameters {
            let row = format!("| `{name}` | {} | `{default}` | {help} |", kind.expected());
            assert!(page.contains(&row), "it lacks\n{row}");
        }
    }
}
