//! Connections of a gateway's users that stay open: what they save, for how long, and
//! that nothing is lost with them.

use tidegate_core::{Bytes, Rate, Span};
use tidegate_sim::requests::{Demand, Http, Kept, Outcome, ServerFailures, ServerGroup, Setup};
use tidegate_sim::scenario::{Protocol, SizeLaw};

use super::outcome;

/// One user, who asks one server for a segment at a time, 2 ms + 1 ms + 47 ms away, on
/// links whose transmission times are next to nothing.
fn quiet(http: Http, pause: Span) -> Setup {
    let fast = Rate(10_000_000_000);
    let mut setup = Setup {
        rate: fast,
        client_rate: fast,
        servers: vec![ServerGroup {
            count: 1,
            delay: (Span::millis(47), Span::millis(47)),
            rate: (fast, fast),
        }],
        sizes: SizeLaw::Constant(Bytes(1_000)),
        http,
        duration: Span::seconds(400),
        warm_up: Span::seconds(20),
        ..Setup::today()
    };
    setup.classes.truncate(1);
    setup.classes[0].clients = 1;
    setup.classes[0].demand = Demand::Closed { loops: 1, pause };
    setup
}

/// The least and the largest time of a response, in milliseconds.
fn extremes(setup: &Setup, name: &str) -> [f64; 2] {
    let all = outcome(setup, name, &[], 1).all(|class| &class.response);
    assert!(all.quantile(0.5).is_some());
    [0.0, 1.0].map(|of| all.quantile(of).expect("something was answered") * 1e3)
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 0.5
}

/// A round trip to the server takes 100 ms, and 4 ms to the gateway.
#[test]
fn a_kept_connection_saves_the_round_trip_of_its_handshake() {
    let second = Span::seconds(1);
    let once = Http::ONCE;
    let today = Http::TODAY;
    let http2 = Http { protocol: Protocol::Http2, ..today };
    // A handshake and a request from end to end; the same on both sides of a gateway.
    for name in ["direct", "fifo"] {
        let found = extremes(&quiet(once, second), name);
        assert!(near(found[0], 200.0) && near(found[1], 200.0), "{name}: {found:?}");
        for http in [today, http2] {
            let found = extremes(&quiet(http, second), name);
            assert!(near(found[0], 100.0) && near(found[1], 100.0), "{name}: {found:?}");
        }
    }
    // With TLS a connection costs a round trip more, but only the first response pays.
    let tls = Http { handshakes: 1, ..once };
    assert!(near(extremes(&quiet(tls, second), "direct")[0], 300.0));
    let tls = Http { handshakes: 1, ..today };
    assert!(near(extremes(&quiet(tls, second), "direct")[0], 100.0));
}

/// Pauses of 5 s on average: most are longer than 100 ms, and none than 60 s.
#[test]
fn connections_close_when_they_have_had_nothing_to_do_for_long_enough() {
    let brief = Http { keep_alive: Span::millis(100), ..Http::TODAY };
    let pause = Span::seconds(5);
    let mut setup = quiet(brief, pause);
    assert!(near(extremes(&setup, "direct")[1], 200.0));
    // The gateway has the connection to the server still, and the client none to it.
    assert!(near(extremes(&setup, "fifo")[1], 104.0), "{:?}", extremes(&setup, "fifo"));
    setup.kept = Kept { idle: Span::millis(100), ..Kept::TODAY };
    assert!(near(extremes(&setup, "fifo")[1], 200.0));
    // The gateway keeps none at all, and the client its own.
    setup = Setup { kept: Kept { most: 0, ..Kept::TODAY }, ..quiet(Http::TODAY, pause) };
    let found = extremes(&setup, "fifo");
    assert!(near(found[0], 196.0) && near(found[1], 196.0), "{found:?}");
    assert!(near(extremes(&quiet(Http::TODAY, pause), "fifo")[1], 100.0));
}

/// Ten loops of one user ask one slow server at once: over HTTP/1.1 six at a time, over
/// HTTP/2 all of them, over one connection.
#[test]
fn a_browser_has_six_connections_to_a_server_or_one_that_all_share() {
    let mut setup = quiet(Http::TODAY, Span::millis(1));
    setup.classes[0].demand = Demand::Closed { loops: 10, pause: Span::millis(1) };
    setup.duration = Span::seconds(60);
    // By Little's law: ten loops, of which six are in a round trip of 100 ms.
    let rate = |setup: &Setup| outcome(setup, "direct", &[], 1).classes[0].completed as f64 / 40.0;
    let six = rate(&setup);
    assert!((56.0..=60.5).contains(&six), "{six}");
    setup.http.protocol = Protocol::Http2;
    let all = rate(&setup);
    assert!((94.0..=100.5).contains(&all), "{all}");
    setup.http = Http::ONCE;
    let once = rate(&setup);
    assert!((46.0..=50.5).contains(&once), "{once}");
}

/// Open demand for 68% of 2 Mbit/s, of lognormal sizes.
fn loaded(http: Http) -> Setup {
    let mut setup = Setup { http, duration: Span::seconds(500), ..Setup::today() };
    for class in &mut setup.classes {
        class.demand = Demand::Open { every: Span::millis(2_030) };
    }
    setup
}

#[test]
fn below_saturation_connections_that_stay_open_bring_small_responses_sooner() {
    for name in ["direct", "fifo", "msf"] {
        let small = |http: Http| -> f64 {
            let runs = (1..=3).map(|seed| outcome(&loaded(http), name, &[], seed));
            let median = |run: Outcome| run.all(|class| &class.small).quantile(0.5);
            runs.filter_map(median).sum::<f64>() / 3.0
        };
        let http2 = Http { protocol: Protocol::Http2, ..Http::TODAY };
        let [once, kept, shared] = [Http::ONCE, Http::TODAY, http2].map(small);
        assert!(kept < 0.8 * once && shared < 0.8 * once, "{name}: {once} {kept} {shared}");
    }
}

/// Whoever fails, leaves or is refused, each request ends once and each place comes back,
/// which a run asserts; and failures are of the kinds that were asked for.
#[test]
fn nothing_is_lost_with_a_connection_that_many_share() {
    let failures =
        ServerFailures { stall: 0.02, reset: 0.05, trickle: 0.02, trickle_rate: Rate(80_000) };
    for protocol in [Protocol::Http10, Protocol::Http11, Protocol::Http2] {
        let http = Http { protocol, handshakes: 1, ..Http::TODAY };
        for name in ["msf", "paper", "fifo", "pools", "direct", "htb"] {
            let mut setup = Setup {
                http,
                failures,
                patience: Some(Span::seconds(20)),
                duration: Span::seconds(200),
                warm_up: Span::ZERO,
                ..Setup::today()
            };
            setup.classes[1].presence = Some(tidegate_sim::requests::Presence {
                present: Span::seconds(20),
                absent: Span::seconds(10),
            });
            let outcome = outcome(&setup, name, &[], 1);
            let sum = |of: fn(&tidegate_sim::requests::ClassOutcome) -> u64| -> u64 {
                outcome.classes.iter().map(of).sum()
            };
            assert!(sum(|it| it.completed) > 300, "{protocol:?} {name}");
            assert!(sum(|it| it.failures.reset) > 5, "{protocol:?} {name}");
            assert!(sum(|it| it.failures.stalled) > 0, "{protocol:?} {name}");
            assert!(sum(|it| it.abandoned) > 5, "{protocol:?} {name}");
            assert_eq!(sum(|it| it.failures.broken), 0, "{protocol:?} {name}");
        }
    }
}
