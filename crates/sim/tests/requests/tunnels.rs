//! What a gateway carries without seeing requests: tunnels, uploads and WebSockets.

use tidegate_core::{Bytes, Span};
use tidegate_sim::requests::{Demand, Http, Setup, Through};
use tidegate_sim::scenario::{Protocol, SizeLaw};

use super::outcome;

/// Everything is asked for through tunnels.
fn hidden(protocol: Protocol) -> Setup {
    let mut setup = Setup {
        http: Http { protocol, ..Http::TODAY },
        duration: Span::seconds(400),
        warm_up: Span::seconds(80),
        ..Setup::today()
    };
    for class in &mut setup.classes {
        class.through = Through::Tunnels;
        class.demand = Demand::Closed { loops: 20, pause: Span::seconds(5) };
    }
    setup
}

/// What the first two classes have received for each byte of the third.
fn ratios(setup: &Setup, name: &str) -> [f64; 2] {
    let mut received = [0.0; 3];
    for seed in 1..=2 {
        let outcome = outcome(setup, name, &[], seed);
        for (sum, class) in received.iter_mut().zip(&outcome.classes) {
            *sum += class.received.0 as f64;
        }
    }
    [received[0] / received[2], received[1] / received[2]]
}

#[test]
fn shares_hold_in_tunnels_and_without_a_scheduler_they_do_not() {
    // All ask at once at the start. What is held for as long as anything may be is
    // released out of order, and that is paid back until the warm-up ends.
    let mut setup = hidden(Protocol::Http11);
    (setup.duration, setup.warm_up) = (Span::seconds(700), Span::seconds(300));
    let [four, two] = ratios(&setup, "msf");
    assert!((3.6..=4.4).contains(&four) && (1.8..=2.2).contains(&two), "{four} {two}");
    let [four, two] = ratios(&setup, "fifo");
    assert!(four < 1.3 && two < 1.3, "{four} {two}");
}

/// If requests were held while an answer to another is held back, and that were paid for
/// twice, 7% would be idle.
#[test]
fn a_tunnel_that_many_share_leaves_nothing_of_a_full_link_idle() {
    let mut setup = hidden(Protocol::Http2);
    for class in &mut setup.classes {
        class.demand = Demand::Closed { loops: 20, pause: Span::ZERO };
    }
    let outcome = outcome(&setup, "msf", &[], 1);
    assert!(outcome.utilisation > 0.98, "{}", outcome.utilisation);
}

/// Everything that is asked for arrives through the tunnel, over any kind of connection.
#[test]
fn tunnels_bring_what_is_asked_for_and_end_with_their_connections() {
    for protocol in [Protocol::Http10, Protocol::Http11, Protocol::Http2] {
        let mut setup = hidden(protocol);
        for class in &mut setup.classes {
            class.demand = Demand::Open { every: Span::seconds(5) };
        }
        for name in ["msf", "fifo", "direct"] {
            let outcome = outcome(&setup, name, &[], 1);
            for class in &outcome.classes {
                let ended = class.completed as f64 / class.asked as f64;
                assert!(class.asked > 200 && ended > 0.97, "{protocol:?} {name}: {ended}");
                assert_eq!(class.failures.all(), 0, "{protocol:?} {name}: {:?}", class.failures);
            }
        }
    }
}

/// Two classes: one sends 400 kB again and again, the other fetches small objects; the
/// gateway lets one response out at a time.
fn with_uploads(through: Through) -> Setup {
    let mut setup = Setup {
        sizes: SizeLaw::Constant(Bytes(2_000)),
        duration: Span::seconds(200),
        warm_up: Span::seconds(20),
        ..Setup::today()
    };
    setup.classes.truncate(2);
    setup.classes[0].request = Some(Bytes(400_000));
    setup.classes[0].through = through;
    setup.classes[0].demand = Demand::Closed { loops: 1, pause: Span::seconds(1) };
    for class in &mut setup.classes {
        class.clients = 2;
    }
    setup.classes[1].demand = Demand::Closed { loops: 1, pause: Span::seconds(1) };
    setup
}

#[test]
fn an_upload_through_a_tunnel_gives_its_place_back_and_one_that_is_a_request_keeps_it() {
    let one_at_a_time = [("window", "fixed"), ("start", "1")];
    let small = |through: Through| {
        let outcome = outcome(&with_uploads(through), "paper", &one_at_a_time, 1);
        assert!(outcome.classes[0].completed > 15, "{through:?}: {:?}", outcome.classes[0]);
        outcome.classes[1].waiting.mean().expect("requests were released")
    };
    let (tunnel, request) = (small(Through::Tunnels), small(Through::Requests));
    assert!(tunnel < 0.5 * request, "{tunnel} {request}");
}

/// Two messages a second of each user of the last class, beside two classes that saturate
/// the link.
fn with_messages(through: Through) -> Setup {
    let mut setup =
        Setup { duration: Span::seconds(300), warm_up: Span::seconds(60), ..Setup::today() };
    let last = &mut setup.classes[2];
    last.demand = Demand::Open { every: Span::millis(500) };
    last.sizes = Some(SizeLaw::Constant(Bytes(200)));
    last.request = Some(Bytes(150));
    last.through = through;
    setup
}

#[test]
fn messages_of_a_websocket_are_not_held_as_requests_and_are_charged() {
    // A scheduler without a read gate lets requests wait for seconds.
    let median = |through: Through| {
        let outcome = outcome(&with_messages(through), "paper", &[], 1);
        let class = &outcome.classes[2];
        assert!(class.completed as f64 > 0.98 * class.asked as f64, "{through:?}");
        // 200 bytes, twice a second, of four users.
        let rate = outcome.throughput_bps(2);
        assert!((rate / 12_800.0 - 1.0).abs() < 0.1, "{through:?}: {rate}");
        class.response.quantile(0.95).expect("messages are answered")
    };
    let (socket, requests) = (median(Through::WebSocket), median(Through::Requests));
    assert!(socket < 0.6, "{socket}");
    assert!(requests > 1.5 * socket, "{socket} {requests}");
}
