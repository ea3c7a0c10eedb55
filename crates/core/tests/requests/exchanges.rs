//! The life of a request: every transition by a worked example.

use std::num::NonZeroU32;

use tidegate_core::request::{
    Action, ClassId, Ending, ExchangeId, OriginId, Pauses, Phase, Proxy, ProxyConfig, Reading,
    Refusal, UserId, catalogue,
};
use tidegate_core::{Bytes, Rate, Span, Time};

const PATIENCE: Span = Span::seconds(10);
const NOT_NOW: Reading = Reading::UpTo(Bytes::ZERO);
const ONE_PLACE: &[(&str, &str)] = &[("window", "fixed"), ("start", "1")];
/// A link of 1 MB/s, of which long responses have a tenth in any case.
const RATE: Rate = Rate(8_000_000);
const LONG: &[(&str, &str)] = &[
    ("window", "fixed"),
    ("start", "1"),
    ("long_from", "3 kB"),
    ("grant", "1 kB"),
    ("floor", "0.1"),
];

/// A proxy, and the time.
struct Desk {
    proxy: Proxy,
    now: Time,
}

impl Desk {
    fn new(scheduler: &str, given: &[(&str, &str)], config: ProxyConfig) -> Desk {
        let entry = catalogue::find(scheduler).expect("it is in the catalogue");
        let weights = [2, 1].map(|weight| NonZeroU32::new(weight).expect("not zero"));
        let scheduler = entry.build(given, RATE, &weights, 1).expect("within range");
        Desk { proxy: Proxy::new(Time::ZERO, scheduler, config), now: Time::ZERO }
    }

    fn patient(scheduler: &str, given: &[(&str, &str)]) -> Desk {
        let config = ProxyConfig { patience: Some(PATIENCE), ..ProxyConfig::default() };
        Desk::new(scheduler, given, config)
    }

    fn hear(&mut self, class: u32) -> ExchangeId {
        self.proxy.hear(ClassId(class), UserId(1)).expect("there is room to wait")
    }

    /// One that is released, and whose server is connected.
    fn connect(&mut self) -> ExchangeId {
        let exchange = self.hear(0);
        assert_eq!(self.actions(), [dial(exchange)]);
        self.proxy.connected(self.now, exchange);
        exchange
    }

    fn read(&mut self, exchange: ExchangeId, size: u64) -> Reading {
        self.proxy.read(self.now, exchange, Bytes(size), false)
    }

    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.proxy.next_action(self.now)).collect()
    }

    /// What is done at the next time at which something is.
    fn next(&mut self) -> (Span, Vec<Action>) {
        let before = self.now;
        let mut actions = Vec::new();
        while actions.is_empty() {
            let at = self.proxy.next_timeout(self.now).expect("something will be done");
            assert!(at > self.now, "all that is to be done at {at} is done");
            self.now = at;
            actions = self.actions();
        }
        (self.now.since(before), actions)
    }
}

fn dial(exchange: ExchangeId) -> Action {
    Action::Dial { exchange, reading: Reading::Freely }
}

fn end(exchange: ExchangeId, ending: Ending) -> Action {
    Action::End { exchange, ending }
}

fn grant(exchange: ExchangeId, size: u64) -> Action {
    Action::Read { exchange, size: Bytes(size) }
}

#[test]
fn a_request_waits_is_released_is_read_and_ends() {
    let mut desk = Desk::patient("paper", ONE_PLACE);
    let (first, second) = (desk.hear(0), desk.hear(0));
    assert_eq!(desk.proxy.phase(first), Some(Phase::Waiting));
    assert_eq!(desk.actions(), [dial(first)]);
    assert_eq!(desk.proxy.phase(first), Some(Phase::Dialling));
    assert_eq!(desk.proxy.phase(second), Some(Phase::Waiting));
    desk.proxy.connected(desk.now, first);
    assert_eq!(desk.proxy.phase(first), Some(Phase::Reading(Reading::Freely)));
    assert_eq!(desk.read(first, 50_000), Reading::Freely);
    assert_eq!(desk.actions(), []);
    desk.proxy.read(desk.now, first, Bytes(1), true);
    assert_eq!(desk.proxy.phase(first), None);
    assert_eq!(desk.actions(), [end(first, Ending::Completed), dial(second)]);
}

#[test]
fn the_first_bytes_connect() {
    let mut desk = Desk::patient("paper", ONE_PLACE);
    let exchange = desk.hear(0);
    desk.actions();
    assert_eq!(desk.read(exchange, 100), Reading::Freely);
    assert_eq!(desk.proxy.phase(exchange), Some(Phase::Reading(Reading::Freely)));
}

#[test]
fn an_empty_response_completes() {
    let mut desk = Desk::patient("paper", ONE_PLACE);
    let exchange = desk.connect();
    desk.proxy.read(desk.now, exchange, Bytes::ZERO, true);
    assert_eq!(desk.actions(), [end(exchange, Ending::Completed)]);
}

/// Something that ends an exchange.
type Blow = fn(&mut Proxy, Time, ExchangeId);

#[test]
fn whatever_ends_an_exchange_ends_it_in_every_state_and_frees_its_place() {
    let blows: [(Blow, Ending); 3] = [
        (Proxy::left, Ending::Abandoned),
        (Proxy::broken, Ending::Broken),
        (Proxy::reset, Ending::Reset),
    ];
    for (blow, ending) in blows {
        for state in ["waiting", "dialling", "reading", "held back"] {
            let mut desk = Desk::patient("msf", LONG);
            let other = (state == "waiting").then(|| desk.hear(0));
            let exchange = desk.hear(0);
            desk.actions();
            if ["reading", "held back"].contains(&state) {
                desk.proxy.connected(desk.now, exchange);
            }
            if state == "held back" {
                assert_eq!(desk.read(exchange, 3_000), NOT_NOW);
            }
            let next = desk.hear(1);
            // A response that is not read any more has no place.
            let released = if state == "held back" { vec![dial(next)] } else { vec![] };
            assert_eq!(desk.actions(), released, "{state}");
            blow(&mut desk.proxy, desk.now, exchange);
            let freed = ["dialling", "reading"].contains(&state).then_some(dial(next));
            // No server can reset what was not sent to it.
            let ended = (state, ending) != ("waiting", Ending::Reset);
            let expected: Vec<_> =
                ended.then_some(end(exchange, ending)).into_iter().chain(freed).collect();
            assert_eq!(desk.actions(), expected, "{ending:?} while {state}");
            assert_eq!(desk.proxy.phase(exchange).is_some(), !ended);
            for last in [exchange, next].into_iter().chain(other) {
                desk.proxy.left(desk.now, last);
                desk.actions();
            }
            assert_eq!(
                (desk.proxy.held(), desk.proxy.outstanding(), desk.proxy.waiting()),
                (0, 0, 0)
            );
        }
    }
}

#[test]
fn nothing_happens_to_an_exchange_that_is_over() {
    let mut desk = Desk::patient("msf", LONG);
    let exchange = desk.connect();
    desk.proxy.left(desk.now, exchange);
    assert_eq!(desk.actions(), [end(exchange, Ending::Abandoned)]);
    let before = desk.proxy.class(ClassId(0));
    desk.proxy.connected(desk.now, exchange);
    desk.proxy.came(desk.now, exchange, Bytes(5), false);
    assert_eq!(desk.proxy.read(desk.now, exchange, Bytes(5_000), true), NOT_NOW);
    for blow in [Proxy::left as Blow, Proxy::broken, Proxy::reset] {
        blow(&mut desk.proxy, desk.now, exchange);
    }
    assert_eq!(desk.actions(), []);
    assert_eq!(desk.proxy.class(ClassId(0)), before);
    assert_eq!(desk.proxy.next_timeout(desk.now), None);
    assert_ne!(desk.hear(0), exchange, "a name is given once");
}

#[test]
fn what_comes_before_its_time_changes_nothing() {
    let mut desk = Desk::patient("paper", ONE_PLACE);
    let (_, waiting) = (desk.connect(), desk.hear(0));
    desk.proxy.connected(desk.now, waiting);
    desk.proxy.came(desk.now, waiting, Bytes(100), false);
    assert_eq!(desk.proxy.read(desk.now, waiting, Bytes(100), true), NOT_NOW);
    desk.proxy.reset(desk.now, waiting);
    assert_eq!(desk.proxy.phase(waiting), Some(Phase::Waiting));
    assert_eq!(desk.actions(), []);
}

#[test]
fn a_request_is_refused_or_becomes_an_exchange() {
    let mut desk = Desk::patient("paper", &[("window", "fixed"), ("waiting", "1")]);
    desk.hear(0);
    assert_eq!(desk.proxy.hear(ClassId(1), UserId(2)), Err(Refusal::Full { limit: 1 }));
    let class = ClassId(2);
    assert_eq!(desk.proxy.hear(class, UserId(2)), Err(Refusal::NoSuchClass { class }));
    assert_eq!(desk.actions().len(), 1);
}

#[test]
fn a_silent_server_is_given_up_whether_it_is_connected_or_not() {
    let mut desk = Desk::patient("paper", ONE_PLACE);
    let dialled = desk.hear(0);
    desk.actions();
    assert_eq!(desk.next(), (PATIENCE, vec![end(dialled, Ending::Stalled)]));
    let connected = desk.hear(0);
    desk.actions();
    desk.now += Span::seconds(4);
    desk.proxy.connected(desk.now, connected);
    // A connection alone is no answer.
    assert_eq!(desk.next(), (Span::seconds(6), vec![end(connected, Ending::Stalled)]));
}

#[test]
fn a_trickle_is_not_silent() {
    let mut desk = Desk::patient("paper", ONE_PLACE);
    let exchange = desk.connect();
    for _ in 0..20 {
        desk.now += PATIENCE - Span(1);
        assert_eq!(desk.proxy.silence(desk.now, exchange), Some(PATIENCE - Span(1)));
        desk.read(exchange, 1);
        assert_eq!(desk.actions(), []);
    }
    assert_eq!(desk.next(), (PATIENCE, vec![end(exchange, Ending::Stalled)]));
}

#[test]
fn a_request_may_wait_for_ever() {
    let mut desk = Desk::patient("paper", ONE_PLACE);
    let (first, second) = (desk.connect(), desk.hear(0));
    assert_eq!(desk.proxy.silence(desk.now, second), None);
    assert_eq!(desk.next(), (PATIENCE, vec![end(first, Ending::Stalled), dial(second)]));
}

#[test]
fn a_long_response_is_read_by_grants() {
    let mut desk = Desk::patient("msf", LONG);
    let exchange = desk.connect();
    assert_eq!(desk.read(exchange, 2_999), Reading::Freely);
    assert_eq!(desk.read(exchange, 1), NOT_NOW);
    assert_eq!(desk.proxy.phase(exchange), Some(Phase::Reading(NOT_NOW)));
    // The account is 3 kB in debt. It pays 990 B/ms, and the floor 100: a kilobyte of
    // the floor's is there after 10 ms, of the room's after some 4.
    let (after, actions) = desk.next();
    assert_eq!(actions, [grant(exchange, 1_000)]);
    assert!((Span::millis(4)..Span::micros(4_100)).contains(&after), "{after}");
    assert_eq!(desk.proxy.phase(exchange), Some(Phase::Reading(Reading::UpTo(Bytes(1_000)))));
    assert_eq!(desk.read(exchange, 400), Reading::UpTo(Bytes(600)));
    // Half of it is read: it asks for the next.
    assert_eq!(desk.read(exchange, 100), Reading::UpTo(Bytes(500)));
    assert_eq!(desk.next().1, [grant(exchange, 1_000)]);
    assert_eq!(desk.proxy.phase(exchange), Some(Phase::Reading(Reading::UpTo(Bytes(1_500)))));
}

#[test]
fn the_server_is_not_to_blame_for_what_may_not_be_read() {
    // Of the floor, each of two hungry responses may read 10 kB every 20 s.
    let given = [
        ("window", "fixed"),
        ("start", "2"),
        ("long_from", "1 kB"),
        ("grant", "40 kB"),
        ("floor", "0.001"),
    ];
    let mut desk = Desk::patient("msf", &given);
    let (held_back, silent) = (desk.connect(), desk.connect());
    desk.now += Span::seconds(1);
    for exchange in [held_back, silent] {
        assert_eq!(desk.read(exchange, 200_000_000), NOT_NOW);
    }
    desk.actions();
    desk.proxy.came(desk.now, held_back, Bytes(1), false);
    // A flood takes all the room.
    let mut carried = Bytes(400_000_000);
    desk.proxy.report(desk.now, carried);
    let mut actions = Vec::new();
    while actions.is_empty() {
        desk.now += Span::millis(100);
        carried += Bytes(10_000_000);
        desk.proxy.report(desk.now, carried);
        actions = desk.actions();
        actions.retain(|action| !matches!(action, Action::Read { .. }));
    }
    assert_eq!(actions, [end(silent, Ending::Stalled)]);
    assert_eq!(desk.now, Time::ZERO + Span::seconds(1) + PATIENCE);
}

#[test]
fn pauses_are_the_longest_time_without_a_grant_and_the_most_long_responses() {
    let mut desk = Desk::patient("msf", LONG);
    let first = desk.connect();
    desk.read(first, 3_000);
    desk.actions();
    let second = desk.connect();
    desk.read(second, 3_000);
    assert_eq!(desk.actions(), []);
    assert_eq!(desk.proxy.pauses(desk.now), Pauses { ungranted: Span::ZERO, long: 2 });
    // It lasts until a grant comes, or the response is over.
    let (waited, actions) = desk.next();
    assert_eq!(actions, [grant(first, 1_000)]);
    desk.now += Span::micros(1);
    let longest = waited + Span::micros(1);
    assert_eq!(desk.proxy.pauses(desk.now), Pauses { ungranted: longest, long: 2 });
    desk.proxy.left(desk.now, second);
    desk.now += Span::seconds(1);
    assert_eq!(desk.proxy.pauses(desk.now).ungranted, longest);
}

#[test]
fn what_handshakes_take_beyond_the_least_is_the_delay_signal() {
    let baselines = [(OriginId(1), Span::millis(20)), (OriginId(2), Span::millis(300))];
    // The lower one of two delays counts.
    let waits = [149, 51, 49].map(|excess| {
        let mut desk = Desk::patient("msf", &[("delay_limit", "50 ms"), ("floor", "0.001")]);
        desk.now += Span::seconds(1);
        for _ in 0..100 {
            desk.hear(0);
        }
        baselines.iter().for_each(|(origin, round_trip)| desk.proxy.timed(*origin, *round_trip));
        desk.proxy.report(desk.now, Bytes::ZERO);
        assert!(!desk.actions().is_empty());
        desk.proxy.timed(OriginId(1), Span::millis(20 + excess));
        desk.proxy.timed(OriginId(2), Span::millis(600));
        desk.proxy.report(desk.now, Bytes::ZERO);
        desk.proxy.next_timeout(desk.now).expect("some wait").since(desk.now).0 as f64
    });
    // Time pays 0.99 of the link in, less the excess as a share of 64 times the limit.
    for (wait, excess) in [(waits[0], 99.0), (waits[1], 1.0)] {
        let expected = 0.99 / (0.99 - excess / 3_200.0);
        assert!((wait / waits[2] - expected).abs() < 1e-6, "{waits:?}");
    }
}

/// Buckets of 1 000 and 500 bytes a second, half full.
fn pooled() -> Desk {
    let pools = vec![Rate(8_000), Rate(4_000)];
    Desk::new("fifo", &[], ProxyConfig { pools, ..ProxyConfig::default() })
}

#[test]
fn a_pool_gives_what_it_has_and_then_the_response_waits_in_line() {
    let mut desk = pooled();
    let [first, second, other] = [0, 0, 1].map(|class| desk.hear(class));
    let held = |exchange| Action::Dial { exchange, reading: NOT_NOW };
    assert_eq!(desk.actions(), [held(first), held(second), held(other)]);
    desk.proxy.came(desk.now, first, Bytes(300), false);
    assert_eq!(desk.actions(), [grant(first, 300)]);
    assert_eq!(desk.read(first, 300), NOT_NOW);
    // 200 are left of it, and 250 in the other class's bucket.
    for (exchange, left) in [(second, 200), (other, 250)] {
        desk.proxy.came(desk.now, exchange, Bytes(700), false);
        assert_eq!(desk.actions(), [grant(exchange, left)]);
        assert_eq!(desk.read(exchange, left), NOT_NOW);
    }
    desk.proxy.came(desk.now, first, Bytes(900), false);
    assert_eq!(desk.actions(), []);
    // Who found the bucket empty first is first, and has 500 to read; then 500 are left.
    let (after, actions) = desk.next();
    assert_eq!(after, Span::seconds(1));
    assert_eq!(actions, [grant(second, 500), grant(first, 500), grant(other, 450)]);
}

#[test]
fn a_pool_serves_each_response_in_line_once_and_none_that_is_over() {
    let mut desk = pooled();
    let [first, second] = [0, 0].map(|class| desk.hear(class));
    desk.actions();
    for exchange in [first, second, first] {
        desk.proxy.came(desk.now, exchange, Bytes(600), false);
        // Told twice, what is granted already is not granted again.
        desk.proxy.came(desk.now, exchange, Bytes(600), false);
    }
    assert_eq!(desk.actions(), [grant(first, 500)]);
    desk.read(first, 500);
    desk.proxy.left(desk.now, second);
    desk.actions();
    assert_eq!(desk.next(), (Span::seconds(1), vec![grant(first, 100)]));
    // What a second leaves is lost, and seconds that nobody saw bring nothing more.
    desk.read(first, 100);
    desk.now += Span::millis(5_500);
    desk.proxy.came(desk.now, first, Bytes(5_000), false);
    assert_eq!(desk.actions(), [grant(first, 900), grant(first, 1_000)]);
    assert_eq!(desk.next().0, Span::millis(500));
}
