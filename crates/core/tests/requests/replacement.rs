//! Another scheduler, or other classes, in the middle of everything, by worked examples.

use std::num::NonZeroU32;

use tidegate_core::request::{
    Action, ClassId, Ending, ExchangeId, Member, Phase, Piece, Proxy, ProxyConfig, Reading,
    Scheduler, TunnelPhase, UserId, Verdict, catalogue,
};
use tidegate_core::{Bytes, Rate, Span, Time};

const RATE: Rate = Rate(8_000_000);
const ONE_PLACE: &[(&str, &str)] =
    &[("window", "fixed"), ("start", "1"), ("long_from", "3 kB"), ("grant", "1 kB")];
const NOT_NOW: Reading = Reading::UpTo(Bytes::ZERO);

fn scheduler(name: &str, given: &[(&str, &str)], classes: usize) -> Scheduler {
    let entry = catalogue::find(name).expect("it is in the catalogue");
    entry.build(given, RATE, &vec![NonZeroU32::MIN; classes], 1).expect("within range")
}

/// A gateway of two classes with one place, and a time at which all has begun.
fn gateway() -> (Proxy, Time) {
    let proxy = Proxy::new(Time::ZERO, scheduler("msf", ONE_PLACE, 2), ProxyConfig::default());
    (proxy, Time::ZERO + Span::seconds(1))
}

fn hear(proxy: &mut Proxy, class: u32, user: u64) -> ExchangeId {
    proxy.hear(ClassId(class), UserId(user)).expect("there is room to wait")
}

fn actions(proxy: &mut Proxy, now: Time) -> Vec<Action> {
    std::iter::from_fn(|| proxy.next_action(now)).collect()
}

fn dial(exchange: ExchangeId) -> Action {
    Action::Dial { exchange, reading: Reading::Freely }
}

#[test]
fn requests_stay_in_line_in_their_order_and_places_with_their_responses() {
    let (mut proxy, now) = gateway();
    let first = hear(&mut proxy, 0, 1);
    assert_eq!(actions(&mut proxy, now), [dial(first)]);
    // In one line they leave as they came, whatever class they are of.
    let waiting: Vec<_> = [1, 0, 0, 1].map(|class| hear(&mut proxy, class, 7)).into();
    let one_line = scheduler("paper", &[("window", "fixed"), ("start", "1")], 1);
    proxy.replace(now, one_line, ProxyConfig::default(), |_| ClassId(0));
    assert_eq!((proxy.held(), proxy.outstanding(), proxy.waiting()), (1, 1, 4));
    assert_eq!(actions(&mut proxy, now), []);
    let mut last = first;
    for next in waiting {
        assert_eq!(proxy.read(now, last, Bytes(10), true), NOT_NOW);
        let ending = Ending::Completed;
        assert_eq!(actions(&mut proxy, now), [Action::End { exchange: last, ending }, dial(next)]);
        last = next;
    }
    proxy.left(now, last);
    assert_eq!((proxy.held(), proxy.outstanding(), proxy.waiting()), (0, 0, 0));
}

#[test]
fn a_long_response_waits_for_grants_of_the_new_scheduler_or_is_read_freely_without_any() {
    let (mut proxy, mut now) = gateway();
    let long = hear(&mut proxy, 0, 1);
    actions(&mut proxy, now);
    proxy.connected(now, long);
    assert_eq!(proxy.read(now, long, Bytes(10_000), false), NOT_NOW);
    proxy.came(now, long, Bytes(500), false);
    let classes = scheduler("msf", ONE_PLACE, 3);
    proxy.replace(now, classes, ProxyConfig::default(), |_| ClassId(2));
    assert_eq!((proxy.held(), proxy.outstanding()), (0, 1));
    assert_eq!(proxy.phase(long), Some(Phase::Reading(NOT_NOW)));
    // Nobody has to read for it to become hungry.
    let mut granted = Vec::new();
    while granted.is_empty() {
        now = proxy.next_timeout(now).expect("it is granted in time");
        granted = actions(&mut proxy, now);
    }
    assert_eq!(granted[0], Action::Read { exchange: long, size: Bytes(1_000) });
    let all = scheduler("fifo", &[], 1);
    proxy.replace(now, all, ProxyConfig::default(), |_| ClassId(0));
    assert_eq!(proxy.phase(long), Some(Phase::Reading(Reading::Freely)));
    assert_eq!(proxy.read(now, long, Bytes(500), true), NOT_NOW);
    let ending = Ending::Completed;
    assert_eq!(actions(&mut proxy, now), [Action::End { exchange: long, ending }]);
    assert_eq!(proxy.outstanding(), 0);
}

#[test]
fn tunnels_go_on_and_what_is_held_of_them_stays_held() {
    let (mut proxy, now) = gateway();
    let [active, pending, idle] = [0, 1, 1].map(|class| {
        proxy.open(now, ClassId(class), UserId(class.into())).expect("there is such a class")
    });
    let request = Piece::Data(Bytes(400));
    assert_eq!(proxy.send(now, active, request), Ok(Verdict::Hold));
    assert_eq!(actions(&mut proxy, now), [Action::Pass { tunnel: active }]);
    assert_eq!(proxy.send(now, pending, request), Ok(Verdict::Hold));
    assert_eq!(proxy.tunnel_read(now, active, Bytes(10_000)), NOT_NOW);
    let told = actions(&mut proxy, now);
    assert!(told.contains(&Action::Pass { tunnel: pending }), "{told:?}");
    assert_eq!(proxy.send(now, idle, request), Ok(Verdict::Hold));
    let phases = |proxy: &Proxy| [active, pending, idle].map(|it| proxy.tunnel(it));
    let before = phases(&proxy);
    let expected = [TunnelPhase::Long, TunnelPhase::Active, TunnelPhase::Pending];
    assert_eq!(before, expected.map(Some));

    let classes = scheduler("msf", ONE_PLACE, 3);
    let config = ProxyConfig::default();
    proxy.replace(now, classes, config.clone(), |member| match member {
        Member::Tunnel(tunnel) if tunnel == active => ClassId(2),
        _ => ClassId(0),
    });
    assert_eq!(phases(&proxy), before);
    assert_eq!((proxy.held(), proxy.outstanding(), proxy.waiting()), (1, 2, 1));
    let told = actions(&mut proxy, now);
    assert!(told.contains(&Action::ReadTunnel { tunnel: active, reading: NOT_NOW }), "{told:?}");
    // It has waited since before, and is not held for longer than that permits.
    let until = now + config.tunnels.max_hold;
    let mut passed = None;
    while let Some(at) = proxy.next_timeout(now).filter(|at| *at <= until) {
        if actions(&mut proxy, at).contains(&Action::Pass { tunnel: idle }) {
            passed = Some(at);
            break;
        }
    }
    assert!(passed.is_some_and(|at| at <= until), "{passed:?}");
    [active, pending, idle].into_iter().for_each(|tunnel| proxy.close(tunnel));
    assert_eq!((proxy.held(), proxy.outstanding(), proxy.waiting()), (0, 0, 0));
}

#[test]
fn what_has_no_class_or_no_room_is_over_and_leaves_nothing() {
    let (mut proxy, now) = gateway();
    let read = hear(&mut proxy, 0, 1);
    actions(&mut proxy, now);
    let [kept, refused] = [2, 2].map(|user| hear(&mut proxy, 0, user));
    let tunnel = proxy.open(now, ClassId(1), UserId(3)).expect("there is such a class");
    let narrow = scheduler("msf", &[&[("waiting_per_user", "1")], ONE_PLACE].concat(), 1);
    proxy.replace(now, narrow, ProxyConfig::default(), |member| match member {
        Member::Exchange(exchange) if exchange == read => ClassId(1),
        _ => ClassId(0),
    });
    let ending = Ending::Broken;
    let told = actions(&mut proxy, now);
    for exchange in [read, refused] {
        assert!(told.contains(&Action::End { exchange, ending }), "{told:?}");
    }
    assert!(told.contains(&dial(kept)), "{told:?}");
    assert_eq!(proxy.tunnel(tunnel), Some(TunnelPhase::Idle));
    assert_eq!((proxy.held(), proxy.outstanding(), proxy.waiting()), (1, 1, 0));
}

#[test]
fn patience_is_that_of_the_new_settings() {
    let config =
        |seconds| ProxyConfig { patience: Some(Span::seconds(seconds)), ..ProxyConfig::default() };
    let now = Time::ZERO;
    let mut proxy = Proxy::new(now, scheduler("msf", ONE_PLACE, 1), config(60));
    let silent = hear(&mut proxy, 0, 1);
    actions(&mut proxy, now);
    proxy.replace(now, scheduler("msf", ONE_PLACE, 1), config(5), |_| ClassId(0));
    actions(&mut proxy, now);
    let until = now + Span::seconds(5);
    assert_eq!(actions(&mut proxy, now + Span::millis(4_999)), []);
    let ending = Ending::Stalled;
    assert_eq!(actions(&mut proxy, until), [Action::End { exchange: silent, ending }]);
}
