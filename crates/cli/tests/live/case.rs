//! A short case of the live bed: a full link with the gateway, and with nothing.
//!
//! Bounds are wide enough for a busy machine, and narrow enough for what the gateway is
//! for: between what is found with it and without it lie some of them.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tidegate_core::Span;
use tidegate_judge::host::BedError;
use tidegate_judge::live::figures::{self, Figure};
use tidegate_judge::live::{self, Entrance, Found, LiveWay, WAYS};
use tidegate_sim::requests::Setup;

const TIDEGATE: &str = env!("CARGO_BIN_EXE_tidegate");

fn way(name: &str) -> &'static LiveWay {
    WAYS.iter().find(|way| way.name == name).expect("it is in the list")
}

/// What is found live; `None` if this machine has no such networks, which is said.
fn measure(setup: &Arc<Setup>, way: &LiveWay, entrance: Entrance) -> Option<Found> {
    match live::measure(setup, way, 1, entrance, Path::new(TIDEGATE)) {
        Ok(found) => Some(found),
        Err(BedError::Missing(reason)) => {
            // Past the harness, which hides what a test that passes prints.
            writeln!(io::stderr(), "SKIP {} in the live bed: {reason}", way.name)
                .expect("standard error is open");
            None
        }
        Err(error) => panic!("{}: {error}", way.name),
    }
}

/// All figures of a run beside its prediction.
fn figures(setup: &Setup, way: &LiveWay, found: Found) -> impl Fn(&str) -> Figure + use<> {
    let predicted = way.counterpart().map(|counterpart| live::predict(setup, &counterpart, 1));
    let (live, predicted) = ([(1, found)], predicted.map(|it| (1, it)));
    let all: Vec<Figure> = figures::measures(setup, way)
        .iter()
        .map(|measure| measure.figure(&live, predicted.as_slice()))
        .collect();
    move |name| all.iter().find(|it| it.measure == name).expect("it is measured").clone()
}

/// The figures without the gateway and with it, found at the same time.
fn with_and_without(setup: &Arc<Setup>) -> Option<[impl Fn(&str) -> Figure + use<>; 2]> {
    let ways = [way("none"), way("msf")];
    let found = thread::scope(|scope| {
        let begin = |way| scope.spawn(move || measure(setup, way, Entrance::Proxy));
        ways.map(begin).map(|run| run.join().expect("it does not panic"))
    });
    let [Some(none), Some(msf)] = found else { return None };
    Some([figures(setup, ways[0], none), figures(setup, ways[1], msf)])
}

fn value(figure: &Figure) -> f64 {
    figure.live.as_ref().unwrap_or_else(|| panic!("no {}", figure.measure)).estimate().value
}

#[test]
fn a_full_link_is_shared_by_weights_with_the_gateway_and_not_without() {
    let mut setup = live::case("saturated-10").expect("it is shipped").setup;
    (setup.duration, setup.warm_up) = (Span::seconds(24), Span::seconds(6));
    let Some([none, msf]) = with_and_without(&Arc::new(setup)) else { return };
    for (figures, of) in [(&none as &dyn Fn(&str) -> Figure, "none"), (&msf, "msf")] {
        let used = value(&figures("link_used_percent"));
        assert!((90.0..=101.0).contains(&used), "{of} uses {used}%");
        assert_eq!(value(&figures("failed")), 0.0, "{of}");
        for class in ["four", "two", "one"] {
            let rate = figures(&format!("throughput_kbps.{class}"));
            let ratio = rate.ratio.expect("both have a rate");
            assert!((0.6..=1.6).contains(&ratio), "{of}: {ratio} of what is predicted: {rate:?}");
        }
        // Whether small responses are faster with the gateway takes more than its first
        // seconds to show, in the simulator too.
        let small = figures("small_median_s");
        let ratio = small.ratio.expect("both have small responses");
        assert!((0.4..=2.5).contains(&ratio), "{of}: {ratio} of what is predicted: {small:?}");
    }
    assert!(value(&msf("jain")) > 0.95, "{:?}", msf("jain"));
    assert!(value(&none("jain")) < 0.9, "{:?}", none("jain"));
}

/// A receive buffer that stays at what the first offer allows, 24 kB in a round trip of 200 ms,
/// would leave nine tenths of this link unused. Without a gateway, hundreds of packets are lost
/// as the download begins, in the warm-up, and a few of more than eight thousand later.
#[test]
fn one_response_from_afar_fills_the_link() {
    let mut setup = live::case("far-10").expect("it is shipped").setup;
    (setup.duration, setup.warm_up) = (Span::seconds(18), Span::seconds(8));
    let Some([none, msf]) = with_and_without(&Arc::new(setup)) else { return };
    let used = value(&msf("link_used_percent"));
    assert!((70.0..=101.0).contains(&used), "it uses {used}%");
    let lost = value(&none("dropped_percent"));
    assert!(lost < 0.5, "{lost}% are lost after the warm-up");
}

#[test]
fn every_shipped_case_is_one_that_the_bed_can_be() {
    assert!(live::cases().count() > 0);
    for name in live::cases() {
        live::case(name).unwrap_or_else(|error| panic!("{error}"));
    }
    let error = live::case("saturated").expect_err("there is none");
    assert!(error.starts_with("'saturated' is no file and no case, expected one of "), "{error}");
}
