//! The simulated request gateway when servers fail and users leave: no place is
//! lost, every request ends once, and no response starves.
//!
//! Each run checks at its end that the scheduler has exactly the requests and
//! responses that there are, that the window is empty without them, and that
//! every request of every class ended in exactly one way.

use std::sync::Arc;

use tidegate_core::{Bytes, Rate, Span, Time};
use tidegate_sim::pages::{Pages, RecordedPages};
use tidegate_sim::requests::{Cbr, ClassOutcome, Demand, Outcome, Presence, ServerFailures, Setup};
use tidegate_sim::trace::{PageLoad, PageLoads, PageRequest};

use super::outcome;

/// Backlogged classes at servers that fail in every way, and users who leave.
fn rough() -> Setup {
    let mut setup = Setup {
        duration: Span::seconds(120),
        warm_up: Span::seconds(20),
        failures: ServerFailures {
            stall: 0.02,
            reset: 0.05,
            trickle: 0.05,
            ..ServerFailures::NONE
        },
        patience: Some(Span::seconds(10)),
        ..Setup::today()
    };
    for class in &mut setup.classes {
        class.presence = Some(Presence { present: Span::seconds(60), absent: Span::seconds(20) });
    }
    setup
}

/// Two classes fetch small objects, the third large ones, and after 20 s traffic of
/// no class takes all the link but what the floor needs.
fn flooded(setup: Setup) -> Setup {
    let mut setup = Setup { duration: Span::seconds(300), ..setup };
    for (number, class) in setup.classes.iter_mut().enumerate() {
        class.pages = pages_of(if number == 2 { 1_000_000 } else { 10_000 });
        class.demand = Demand::Closed { loops: 3, pause: Span::millis(100) };
    }
    setup.passing = vec![Cbr {
        rate: setup.rate * 98 / 100,
        packet: Bytes(1_000),
        off: Span::seconds(20),
        on: Span::seconds(1_000),
        whose: None,
    }];
    setup
}

/// Pages of one object of this size.
fn pages_of(size: u64) -> Pages {
    let request = PageRequest {
        at: Time::ZERO,
        took: Span::ZERO,
        host: "a.example".into(),
        size: Bytes(size),
        ..PageRequest::default()
    };
    let page = PageLoad { name: "page".into(), requests: vec![request], ..PageLoad::default() };
    let loads = PageLoads { pages: vec![page], unknown_sizes: 0 };
    Pages::Recorded(Arc::new(RecordedPages::new(&[loads]).expect("it has an object")))
}

fn sum(outcome: &Outcome, of: impl Fn(&ClassOutcome) -> u64) -> u64 {
    outcome.classes.iter().map(of).sum()
}

#[test]
fn no_place_is_lost_and_every_request_ends_once_whatever_fails() {
    for name in ["msf", "paper", "drr", "fifo", "pools", "direct", "htb"] {
        for seed in 1..=4 {
            let outcome = outcome(&rough(), name, &[], seed);
            let ended = [
                sum(&outcome, |class| class.completed),
                sum(&outcome, |class| class.failures.reset),
                sum(&outcome, |class| class.failures.stalled),
                sum(&outcome, |class| class.abandoned),
            ];
            // Each of them happened, so that the checks of the run had work to do.
            assert!(ended.iter().all(|count| *count > 5), "{name}, {seed}: {ended:?}");
        }
    }
}

#[test]
fn a_class_whose_servers_fail_fails_alone() {
    let mut setup = Setup { duration: Span::seconds(60), warm_up: Span::ZERO, ..Setup::today() };
    setup.classes[1].failures = Some(ServerFailures { reset: 1.0, ..ServerFailures::NONE });
    for name in ["msf", "fifo", "direct"] {
        let outcome = outcome(&setup, name, &[], 1);
        let [one, failing, other] = &outcome.classes[..] else { panic!("three classes") };
        assert!(failing.failures.reset > 5 && failing.completed == 0, "{name}");
        assert_eq!(one.failures.all() + other.failures.all(), 0, "{name}");
        assert!(one.completed > 5 && other.completed > 5, "{name}");
    }
}

#[test]
fn refused_requests_are_counted_as_such() {
    let outcome = outcome(&rough(), "paper", &[("waiting", "20")], 1);
    let refused = sum(&outcome, |class| class.failures.refused);
    assert!(refused > 50, "{refused}");
}

#[test]
fn what_fails_is_the_same_under_every_scheduler() {
    let mut setup = rough();
    // Each client's n-th page has the same fate: with few requests all are made
    // in all runs.
    for class in &mut setup.classes {
        class.demand = Demand::Open { every: Span::seconds(20) };
        class.presence = None;
    }
    let resets = |name| {
        let outcome = outcome(&setup, name, &[], 1);
        sum(&outcome, |class| class.failures.reset)
    };
    let resets = ["msf", "paper", "fifo"].map(resets);
    assert!(resets[0] > 0 && resets.iter().all(|count| *count == resets[0]), "{resets:?}");
}

#[test]
fn a_stalled_servers_place_returns_when_patience_ends_and_not_before() {
    let outstanding = |patience| {
        let failures = ServerFailures { stall: 0.05, ..ServerFailures::NONE };
        let setup = Setup {
            failures,
            patience,
            duration: Span::seconds(200),
            warm_up: Span::ZERO,
            ..Setup::today()
        };
        let outcome = outcome(&setup, "paper", &[], 1);
        (sum(&outcome, |class| class.unfinished.outstanding), sum(&outcome, |c| c.failures.stalled))
    };
    let (patient, gave_up) = outstanding(None);
    assert_eq!(gave_up, 0);
    let (impatient, gave_up) = outstanding(Some(Span::seconds(10)));
    assert!(gave_up > 50, "{gave_up}");
    assert!(patient > 2 * impatient, "{patient} and {impatient} outstanding");
}

#[test]
fn patience_ends_no_response_that_only_the_gateway_holds_back() {
    let setup = flooded(Setup { patience: Some(Span::seconds(20)), ..Setup::today() });
    let outcome = outcome(&setup, "msf", &[("floor", "0.001")], 1);
    assert!(outcome.pauses.ungranted > Span::seconds(30), "{:?}", outcome.pauses);
    assert_eq!(sum(&outcome, |class| class.failures.stalled), 0);
}

#[test]
fn trickling_servers_do_not_block_the_others() {
    let utilisation = |trickle, name, given: &[(&str, &str)]| {
        let failures = ServerFailures { trickle, ..ServerFailures::NONE };
        let setup = Setup { failures, duration: Span::seconds(300), ..Setup::today() };
        outcome(&setup, name, given, 1).utilisation
    };
    let (sound, slow) = (utilisation(0.0, "msf", &[]), utilisation(0.2, "msf", &[]));
    assert!(sound > 0.95 && slow > 0.95, "{sound}, {slow}");
    // A window that cannot grow is full of them.
    let fixed = [("window", "fixed"), ("start", "8")];
    let (sound, slow) = (utilisation(0.0, "paper", &fixed), utilisation(0.2, "paper", &fixed));
    assert!(sound > 0.9 && slow < 0.7, "{sound}, {slow}");
}

/// What the page of `msf` promises: with so many long responses the longest that one waits
/// for something of the floor. A turn takes longer than 20 s if there are fewer in the middle
/// of it, who get more each.
fn bound(setup: &Setup, outcome: &Outcome, floor: f64) -> Span {
    let each = |bytes: f64| {
        let bits = 8.0 * bytes * outcome.pauses.long as f64;
        Span::from_seconds(bits / (floor * setup.rate.0 as f64))
    };
    each(8_000.0).min(Span::seconds(25).max(each(500.0)))
}

#[test]
fn no_long_response_waits_longer_for_a_grant_than_its_bound() {
    let longest = |setup: &Setup, floor: &str, seed| {
        let outcome = outcome(setup, "msf", &[("floor", floor)], seed);
        let bound = bound(setup, &outcome, 0.02);
        println!("floor {floor}, seed {seed}: {:?}, bound {bound}", outcome.pauses);
        outcome.pauses.ungranted.as_seconds() / bound.as_seconds()
    };
    let rough = Setup { patience: Some(Span::seconds(60)), ..rough() };
    let fast = Setup { rate: Rate(10_000_000), ..rough.clone() };
    for setup in [&rough, &flooded(rough.clone()), &flooded(fast), &flooded(Setup::today())] {
        let shares: Vec<f64> = (1..=4).map(|seed| longest(setup, "0.02", seed)).collect();
        assert!(shares.iter().all(|share| *share <= 1.0), "{shares:?}");
    }
    // The bound is in sight, and with a floor of nearly nothing it breaks.
    let setup = flooded(Setup::today());
    let (with, without) = (longest(&setup, "0.02", 1), longest(&setup, "0.001", 1));
    assert!(with > 0.5 && without > 1.0, "{with}, {without}");
}
