//! The life of a tunnel: every transition by a worked example.

mod steady;

use std::num::NonZeroU32;

use tidegate_core::request::{
    Action, ClassId, OriginId, Piece, Proxy, ProxyConfig, Reading, Refusal, STEADY_SECONDS,
    TunnelConfig, TunnelId, TunnelPhase, UserId, Verdict, catalogue,
};
use tidegate_core::{Bytes, Rate, Span, Time};

use TunnelPhase::{Active, Exempt, Idle, Long, Pending, Waiting};

const ONE_PLACE: &[(&str, &str)] = &[("window", "fixed"), ("start", "1"), ("long_from", "6 kB")];
const REQUEST: Piece = Piece::Data(Bytes(400));
const NOT_NOW: Reading = Reading::UpTo(Bytes::ZERO);

/// A proxy with one place on a link of 1 MB/s, and the time.
struct Desk {
    proxy: Proxy,
    now: Time,
    config: TunnelConfig,
}

impl Desk {
    fn new() -> Desk {
        Desk::with(ONE_PLACE)
    }

    fn with(given: &[(&str, &str)]) -> Desk {
        Desk::of("msf", given)
    }

    fn of(name: &str, given: &[(&str, &str)]) -> Desk {
        let entry = catalogue::find(name).expect("it is in the catalogue");
        let weights = [NonZeroU32::MIN; 2];
        let scheduler = entry.build(given, Rate(8_000_000), &weights, 1).expect("within range");
        let config = ProxyConfig::default();
        let of_tunnels = config.tunnels;
        Desk {
            proxy: Proxy::new(Time::ZERO, scheduler, config),
            now: Time::ZERO,
            config: of_tunnels,
        }
    }

    fn open(&mut self) -> TunnelId {
        self.proxy.open(self.now, ClassId(0), UserId(1)).expect("there is such a class")
    }

    /// One with the only place.
    fn active(&mut self) -> TunnelId {
        let tunnel = self.open();
        assert_eq!(self.send(tunnel, REQUEST), Verdict::Hold);
        assert_eq!(self.actions(), [Action::Pass { tunnel }]);
        assert_eq!(self.phase(tunnel), Active);
        tunnel
    }

    /// One whose request is held, as another has the place.
    fn pending(&mut self) -> TunnelId {
        let tunnel = self.open();
        assert_eq!(self.send(tunnel, REQUEST), Verdict::Hold);
        assert_eq!(self.actions(), []);
        assert_eq!(self.phase(tunnel), Pending);
        tunnel
    }

    fn send(&mut self, tunnel: TunnelId, piece: Piece) -> Verdict {
        self.proxy.send(self.now, tunnel, piece).expect("there is room to wait")
    }

    fn read(&mut self, tunnel: TunnelId, size: u64) -> Reading {
        self.proxy.tunnel_read(self.now, tunnel, Bytes(size))
    }

    fn phase(&self, tunnel: TunnelId) -> TunnelPhase {
        self.proxy.tunnel(tunnel).expect("it is open")
    }

    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.proxy.next_action(self.now)).collect()
    }

    /// Time passes, with all that is due in it.
    fn wait(&mut self, span: Span) -> Vec<Action> {
        let until = self.now + span;
        let mut actions = Vec::new();
        while let Some(at) = self.proxy.next_timeout(self.now).filter(|at| *at <= until) {
            self.now = at;
            actions.extend(self.actions());
        }
        self.now = until;
        actions
    }

    fn wait_for_quiet(&mut self) -> Vec<Action> {
        self.wait(self.config.quiet)
    }
}

#[test]
fn uplink_data_after_quiet_wait_as_a_request_and_downlink_quiet_ends_the_response() {
    let mut desk = Desk::new();
    let first = desk.open();
    assert_eq!(desk.phase(first), Idle);
    assert_eq!(desk.proxy.next_timeout(desk.now), None);
    let first = {
        desk.proxy.close(first);
        desk.active()
    };
    let second = desk.pending();
    assert_eq!(desk.read(first, 4_000), Reading::Freely);
    assert_eq!(desk.wait(desk.config.quiet - Span(1)), []);
    assert_eq!((desk.phase(first), desk.phase(second)), (Active, Pending));
    assert_eq!(desk.wait(Span(1)), [Action::Pass { tunnel: second }]);
    assert_eq!((desk.phase(first), desk.phase(second)), (Idle, Active));
    assert_eq!(desk.proxy.held(), 1);
}

#[test]
fn handshakes_and_small_records_pass_and_what_is_behind_a_held_request_is_held() {
    let mut desk = Desk::new();
    desk.active();
    let tunnel = desk.open();
    assert_eq!(desk.send(tunnel, Piece::Handshake(Bytes(517))), Verdict::Pass);
    assert_eq!(desk.send(tunnel, Piece::Data(Bytes(48))), Verdict::Pass);
    assert_eq!(desk.phase(tunnel), Idle);
    assert_eq!(desk.send(tunnel, Piece::Data(Bytes(49))), Verdict::Hold);
    for piece in [Piece::Handshake(Bytes(517)), Piece::Data(Bytes(10)), REQUEST] {
        assert_eq!(desk.send(tunnel, piece), Verdict::Hold);
    }
    assert_eq!(desk.proxy.waiting(), 1);
}

#[test]
fn what_is_sent_before_there_is_an_answer_passes() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    assert_eq!(desk.send(tunnel, REQUEST), Verdict::Pass);
    desk.read(tunnel, 2_000);
    assert_eq!(desk.send(tunnel, REQUEST), Verdict::Pass);
    // Quiet does not end what has not been answered.
    assert_eq!(desk.wait_for_quiet(), []);
    assert_eq!(desk.phase(tunnel), Active);
}

#[test]
fn after_an_answer_uplink_data_are_the_next_request_without_quiet() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    desk.read(tunnel, 2_001);
    // So are they after what a server sends unasked, for example its part of a handshake.
    let fresh = desk.open();
    assert_eq!(desk.send(fresh, Piece::Handshake(Bytes(517))), Verdict::Pass);
    desk.read(fresh, 300);
    assert_eq!(desk.phase(fresh), Active);
    for tunnel in [tunnel, fresh] {
        assert_eq!(desk.send(tunnel, Piece::Data(Bytes(48))), Verdict::Pass);
        assert_eq!(desk.send(tunnel, REQUEST), Verdict::Hold);
        assert_eq!(desk.phase(tunnel), Pending);
    }
    // Their responses are over by quiet, and then one of them has the only place.
    assert_eq!(desk.wait_for_quiet(), [Action::Pass { tunnel }]);
    assert_eq!((desk.phase(tunnel), desk.phase(fresh)), (Active, Pending));
}

#[test]
fn what_goes_both_ways_all_the_time_is_not_held() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    for _ in 0..100 {
        desk.read(tunnel, 4_800);
        assert_eq!(desk.send(tunnel, Piece::Data(Bytes(1_200))), Verdict::Pass);
        desk.wait(Span::millis(20));
    }
    desk.read(tunnel, 4_801);
    assert_eq!(desk.send(tunnel, Piece::Data(Bytes(1_200))), Verdict::Hold);
}

#[test]
fn what_is_asked_beside_an_answer_that_is_held_back_passes() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    assert_eq!(desk.read(tunnel, 20_000), NOT_NOW);
    desk.proxy.tunnel_came(desk.now, tunnel, Bytes(1));
    assert_eq!(desk.send(tunnel, REQUEST), Verdict::Pass);
    assert_eq!(desk.phase(tunnel), Long);
}

/// In a connection that many requests share, nobody sees to which of them a byte belongs.
#[test]
fn a_long_response_counts_from_where_something_was_asked_for_last() {
    let is_first = |asks: bool| {
        let mut desk = Desk::with(&[("long_from", "6 kB"), ("floor", "0.001")]);
        desk.now += Span::seconds(1);
        let [longer, shorter] = [desk.active(), desk.active()];
        for (tunnel, size) in [(longer, 100_000), (shorter, 20_000)] {
            assert_eq!(desk.read(tunnel, size), NOT_NOW);
            desk.proxy.tunnel_came(desk.now, tunnel, Bytes(20_000));
        }
        if asks {
            assert_eq!(desk.send(longer, REQUEST), Verdict::Pass);
        }
        loop {
            if let Some(Action::ReadTunnel { tunnel, .. }) = desk.wait(Span::millis(1)).first() {
                return *tunnel == longer;
            }
        }
    };
    assert!(!is_first(false));
    assert!(is_first(true));
}

/// Part of an answer comes, and is held back, while the next request is held already.
#[test]
fn what_has_come_before_a_release_is_paid_for_once() {
    let next_release = |told_again: bool| {
        let mut desk = Desk::with(&[("long_from", "6 kB")]);
        desk.now += Span::seconds(1);
        let tunnel = desk.active();
        desk.read(tunnel, 20_000);
        assert_eq!(desk.send(tunnel, REQUEST), Verdict::Hold);
        desk.proxy.tunnel_came(desk.now, tunnel, Bytes(200_000));
        while desk.phase(tunnel) == Pending {
            desk.wait(Span::millis(1));
        }
        if told_again {
            desk.proxy.tunnel_came(desk.now, tunnel, Bytes(200_000));
        }
        let other = desk.open();
        assert_eq!(desk.send(other, REQUEST), Verdict::Hold);
        while desk.phase(other) == Pending {
            desk.wait(Span::millis(1));
        }
        desk.now
    };
    assert_eq!(next_release(true), next_release(false));
}

#[test]
fn quiet_counts_on_top_of_a_round_trip() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    desk.proxy.tunnel_path(desk.now, tunnel, Span::millis(250));
    desk.read(tunnel, 1_000);
    // The next flight of its server takes a round trip to come.
    desk.wait(desk.config.quiet + Span::millis(250) - Span(1));
    assert_eq!(desk.phase(tunnel), Active);
    desk.wait(Span(1));
    assert_eq!(desk.phase(tunnel), Idle);
}

/// Of a response that is not over, as far as anybody knows, some has come, and nothing does
/// for a time: another has its place.
#[test]
fn a_response_seems_whole_when_what_is_on_its_way_would_have_come() {
    let round_trip = Span::millis(50);
    let wait_for = |size: u64, delay: Span| {
        let mut desk = Desk::with(&[ONE_PLACE, &[("long_from", "30 kB")]].concat());
        for excess in [Span::ZERO, delay] {
            desk.proxy.timed(OriginId(1), round_trip + excess);
            desk.proxy.report(desk.now, Bytes::ZERO);
        }
        let tunnel = desk.active();
        desk.proxy.tunnel_path(desk.now, tunnel, round_trip);
        let other = desk.pending();
        assert_eq!(desk.read(tunnel, size), Reading::Freely);
        let before = desk.now;
        while desk.wait(Span::millis(1)).is_empty() {}
        assert_eq!((desk.phase(tunnel), desk.phase(other)), (Active, Active));
        // It has not been over.
        assert_eq!(desk.read(tunnel, 1_000), Reading::Freely);
        assert_eq!(desk.proxy.held(), 2);
        desk.now.since(before)
    };
    // The first flight comes at once, and the next a round trip later.
    assert_eq!(wait_for(13_999, Span::ZERO), Span::millis(20));
    assert_eq!(wait_for(14_000, Span::ZERO), Span::millis(70));
    // The queue is on their way.
    assert_eq!(wait_for(13_999, Span::millis(30)), Span::millis(50));
    assert_eq!(wait_for(14_000, Span::millis(30)), Span::millis(100));
}

#[test]
fn what_is_held_back_of_a_response_that_seems_whole_takes_no_room() {
    let read_after = |unread: u64| {
        let mut desk = Desk::with(&[ONE_PLACE, &[("grant", "100 kB")]].concat());
        let tunnel = desk.active();
        desk.proxy.tunnel_path(desk.now, tunnel, Span::millis(50));
        assert_eq!(desk.read(tunnel, 6_000), NOT_NOW);
        desk.proxy.tunnel_came(desk.now, tunnel, Bytes(unread));
        let reading = Reading::UpTo(Bytes(100_000));
        let mut took = Span::ZERO;
        loop {
            took += Span::millis(1);
            match &desk.wait(Span::millis(1))[..] {
                [] => {}
                actions => {
                    assert_eq!(actions, [Action::ReadTunnel { tunnel, reading }]);
                    return took;
                }
            }
        }
    };
    // Its buffer holds 12 kB. Half of that may be all that its server was allowed to send, and
    // the 118 kB that are promised with a grant take 119.2 ms.
    assert_eq!(read_after(6_000), Span::millis(20));
    assert_eq!(read_after(6_001), Span::millis(120));
}

#[test]
fn a_response_that_goes_on_after_quiet_takes_its_place_back_past_the_window() {
    let mut desk = Desk::new();
    let first = desk.active();
    let second = desk.pending();
    desk.read(first, 4_000);
    assert_eq!(desk.wait_for_quiet(), [Action::Pass { tunnel: second }]);
    // It was the pause of a loss.
    assert_eq!(desk.read(first, 1_000), Reading::Freely);
    assert_eq!(desk.phase(first), Active);
    assert_eq!((desk.proxy.held(), desk.proxy.window()), (2, 1.0));
    // Nobody else is released until both are over.
    let third = desk.pending();
    desk.read(second, 100);
    assert_eq!(desk.wait_for_quiet(), [Action::Pass { tunnel: third }]);
    // It goes on from what it had received.
    assert_eq!(desk.read(first, 1_000), NOT_NOW);
    assert_eq!(desk.phase(first), Long);
}

#[test]
fn a_long_response_is_read_by_grants_and_is_not_over_while_it_is_held_back() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    let other = desk.pending();
    assert_eq!(desk.read(tunnel, 5_999), Reading::Freely);
    assert_eq!(desk.read(tunnel, 1), NOT_NOW);
    assert_eq!(desk.phase(tunnel), Long);
    assert_eq!(desk.proxy.held(), 0);
    assert_eq!(desk.actions(), [Action::Pass { tunnel: other }]);
    desk.proxy.tunnel_came(desk.now, tunnel, Bytes(500));
    // 6 kB have come and as many are paid for; the account gets 990 B/ms, and a grant
    // is 8 kB.
    assert_eq!(desk.wait(Span::millis(20)), []);
    let reading = Reading::UpTo(Bytes(8_000));
    assert_eq!(desk.wait(Span::millis(1)), [Action::ReadTunnel { tunnel, reading }]);
    assert_eq!(desk.read(tunnel, 500), Reading::UpTo(Bytes(7_500)));
    // It is over after quiet, and what comes then is heard of.
    let reading = Reading::Freely;
    assert_eq!(desk.wait_for_quiet(), [Action::ReadTunnel { tunnel, reading }]);
    assert_eq!(desk.phase(tunnel), Idle);
}

#[test]
fn a_response_is_not_over_while_it_may_not_be_read() {
    let given = [ONE_PLACE, &[("floor", "0.001"), ("grant", "100 kB")]].concat();
    let mut desk = Desk::with(&given);
    let tunnel = desk.active();
    assert_eq!(desk.read(tunnel, 100_000_000), NOT_NOW);
    desk.proxy.tunnel_came(desk.now, tunnel, Bytes(1));
    let mut carried = Bytes(100_000_000);
    for _ in 0..50 {
        carried += Bytes(1_000_000);
        desk.proxy.report(desk.now, carried);
        assert_eq!(desk.wait_for_quiet(), []);
        assert_eq!(desk.phase(tunnel), Long);
    }
}

#[test]
fn a_silent_server_loses_the_place_and_late_bytes_are_charged() {
    let mut desk = Desk::with(&[ONE_PLACE, &[("shares", "class")]].concat());
    let tunnel = desk.active();
    assert_eq!(desk.wait(desk.config.silence - Span(1)), []);
    assert_eq!(desk.phase(tunnel), Active);
    let other = desk.pending();
    assert_eq!(desk.wait(Span(1)), [Action::Pass { tunnel: other }]);
    assert_eq!(desk.phase(tunnel), Waiting);
    let service = |desk: &mut Desk| desk.proxy.class(ClassId(0)).expect("it exists").service;
    let before = service(&mut desk);
    assert_eq!(desk.read(tunnel, 100), Reading::Freely);
    assert!(service(&mut desk) > before);
    assert_eq!((desk.phase(tunnel), desk.proxy.held()), (Waiting, 1));
    // Heartbeats do not add up, and what is more at once is the response.
    for _ in 0..50 {
        desk.wait_for_quiet();
        desk.read(tunnel, 2_000);
        assert_eq!(desk.phase(tunnel), Waiting);
    }
    desk.read(tunnel, 1);
    assert_eq!(desk.phase(tunnel), Active);
}

#[test]
fn after_silence_uplink_data_are_a_request() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    desk.wait(desk.config.silence);
    assert_eq!(desk.phase(tunnel), Waiting);
    assert_eq!(desk.send(tunnel, REQUEST), Verdict::Hold);
    assert_eq!(desk.actions(), [Action::Pass { tunnel }]);
}

#[test]
fn an_upload_gives_its_place_back_and_is_not_held_until_it_pauses() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    assert_eq!(desk.send(tunnel, Piece::Data(Bytes(63_600))), Verdict::Pass);
    assert_eq!(desk.phase(tunnel), Active);
    let other = desk.pending();
    assert_eq!(desk.send(tunnel, Piece::Data(Bytes(100))), Verdict::Pass);
    assert_eq!(desk.phase(tunnel), Waiting);
    assert_eq!(desk.actions(), [Action::Pass { tunnel: other }]);
    for _ in 0..20 {
        desk.wait(desk.config.silence - Span(1));
        assert_eq!(desk.send(tunnel, Piece::Data(Bytes(14_000))), Verdict::Pass);
        // Window updates are no response.
        desk.read(tunnel, 35);
        assert_eq!(desk.phase(tunnel), Waiting);
    }
    desk.wait(desk.config.silence);
    assert_eq!(desk.send(tunnel, REQUEST), Verdict::Hold);
}

#[test]
fn what_turns_out_to_be_an_upload_while_it_is_held_takes_no_place() {
    let mut desk = Desk::new();
    let first = desk.active();
    let tunnel = desk.pending();
    assert_eq!(desk.send(tunnel, Piece::Data(Bytes(63_601))), Verdict::Hold);
    desk.read(first, 100);
    assert_eq!(desk.wait_for_quiet(), [Action::Pass { tunnel }]);
    assert_eq!((desk.phase(tunnel), desk.proxy.held()), (Waiting, 0));
    assert_eq!(desk.send(tunnel, Piece::Data(Bytes(14_000))), Verdict::Pass);
}

#[test]
fn a_request_is_let_go_out_of_order_when_it_was_held_for_the_longest_time() {
    // Of this scheduler no place is lost to slowness.
    let mut desk = Desk::of("paper", &ONE_PLACE[..2]);
    let first = desk.active();
    let second = desk.pending();
    // The first has its answer all the time.
    let mut actions = Vec::new();
    for _ in 0..79 {
        desk.read(first, 1);
        actions.extend(desk.wait(Span::millis(100)));
    }
    assert_eq!((actions, desk.proxy.overdue()), (vec![], 0));
    desk.read(first, 1);
    assert_eq!(desk.wait(Span::millis(100)), [Action::Pass { tunnel: second }]);
    assert_eq!((desk.phase(second), desk.proxy.overdue(), desk.proxy.held()), (Active, 1, 2));
    assert_eq!(desk.proxy.waiting(), 0);
}

#[test]
fn a_downlink_that_goes_on_has_a_place_while_a_request_of_its_own_is_held() {
    let mut desk = Desk::new();
    let first = desk.active();
    let second = desk.pending();
    desk.read(first, 1_000);
    assert_eq!(desk.wait_for_quiet(), [Action::Pass { tunnel: second }]);
    assert_eq!(desk.send(first, REQUEST), Verdict::Hold);
    desk.read(first, 1_000);
    assert_eq!((desk.phase(first), desk.proxy.held()), (Pending, 2));
    // When it is let go it has one place, not two.
    desk.proxy.close(second);
    assert_eq!(desk.wait_for_quiet(), [Action::Pass { tunnel: first }]);
    assert_eq!(desk.proxy.held(), 1);
}

#[test]
fn a_held_client_that_leaves_is_dropped_from_the_queue() {
    let mut desk = Desk::new();
    let first = desk.active();
    let second = desk.pending();
    desk.proxy.close(second);
    assert_eq!(desk.proxy.waiting(), 0);
    desk.proxy.close(first);
    assert_eq!((desk.proxy.held(), desk.proxy.outstanding()), (0, 0));
    assert_eq!(desk.actions(), []);
    assert_eq!(desk.proxy.next_timeout(desk.now), None);
    // What is said of it later changes nothing.
    for tunnel in [first, second] {
        desk.proxy.close(tunnel);
        desk.proxy.exempt(tunnel);
        desk.proxy.tunnel_came(desk.now, tunnel, Bytes(7));
        assert_eq!(desk.send(tunnel, REQUEST), Verdict::Hold);
        assert_eq!(desk.read(tunnel, 100), NOT_NOW);
        assert_eq!(desk.proxy.tunnel(tunnel), None);
    }
    assert_eq!(desk.actions(), []);
}

#[test]
fn an_exempt_tunnel_is_never_held_and_charged() {
    for state in [Idle, Pending, Active, Long, Waiting] {
        let mut desk = Desk::new();
        let other = if state == Pending { Some(desk.active()) } else { None };
        let tunnel = match state {
            Idle => desk.open(),
            Pending => desk.pending(),
            _ => desk.active(),
        };
        match state {
            Long => assert_eq!(desk.read(tunnel, 6_000), NOT_NOW),
            Waiting => assert_eq!(desk.wait(desk.config.silence), []),
            _ => {}
        }
        assert_eq!(desk.phase(tunnel), state);
        desk.proxy.exempt(tunnel);
        let expected: &[Action] = match state {
            Pending => &[Action::Pass { tunnel }],
            Long => &[Action::ReadTunnel { tunnel, reading: Reading::Freely }],
            _ => &[],
        };
        assert_eq!(desk.actions(), expected);
        assert_eq!((desk.phase(tunnel), desk.proxy.waiting()), (Exempt, 0));
        assert_eq!(desk.send(tunnel, REQUEST), Verdict::Pass);
        assert_eq!(desk.read(tunnel, 1_000_000), Reading::Freely);
        assert_eq!(desk.phase(tunnel), Exempt);
        assert_eq!(desk.proxy.held(), u32::from(other.is_some()));
    }
}

#[test]
fn the_buffer_follows_what_is_read_in_a_round_trip() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    // Of an unknown path nothing is known.
    desk.read(tunnel, 4_000);
    assert_eq!(desk.proxy.tunnel_buffer(tunnel), None);
    desk.proxy.tunnel_path(desk.now, tunnel, Span::millis(50));
    desk.read(tunnel, 10_000);
    assert_eq!(desk.proxy.tunnel_buffer(tunnel), Some(Bytes(20_000)));
    desk.wait(Span::millis(50));
    desk.read(tunnel, 25_000);
    assert_eq!(desk.proxy.tunnel_buffer(tunnel), Some(Bytes(50_000)));
    desk.proxy.close(tunnel);
    assert_eq!(desk.proxy.tunnel_buffer(tunnel), None);

    // Where nothing is held back, the kernel knows better.
    let mut desk = Desk::of("paper", &[]);
    let tunnel = desk.active();
    desk.proxy.tunnel_path(desk.now, tunnel, Span::millis(50));
    desk.read(tunnel, 10_000);
    assert_eq!(desk.proxy.tunnel_buffer(tunnel), None);
}

#[test]
fn a_request_that_may_not_wait_is_not_taken() {
    let given = [ONE_PLACE, &[("waiting", "1")]].concat();
    let mut desk = Desk::with(&given);
    desk.active();
    desk.pending();
    let third = desk.open();
    let refusal = desk.proxy.send(desk.now, third, REQUEST);
    assert_eq!(refusal, Err(Refusal::Full { limit: 1 }));
    assert_eq!(desk.phase(third), Idle);
    let class = ClassId(2);
    let refusal = desk.proxy.open(desk.now, class, UserId(1));
    assert_eq!(refusal, Err(Refusal::NoSuchClass { class }));
}

#[test]
fn a_thousand_idle_tunnels_leave_the_window_alone() {
    let mut desk = Desk::new();
    for _ in 0..1_000 {
        let tunnel = desk.open();
        desk.send(tunnel, Piece::Handshake(Bytes(517)));
        desk.read(tunnel, 4_000);
    }
    desk.wait_for_quiet();
    assert_eq!((desk.proxy.held(), desk.proxy.outstanding()), (0, 0));
    assert_eq!(desk.proxy.next_timeout(desk.now), None);
    desk.active();
}

#[test]
fn tunnels_and_exchanges_wait_in_one_line() {
    let mut desk = Desk::new();
    let tunnel = desk.active();
    let exchange = desk.proxy.hear(ClassId(1), UserId(1)).expect("there is room to wait");
    let held = desk.pending();
    desk.read(tunnel, 1_000);
    // Class 1 has received nothing.
    let reading = Reading::Freely;
    assert_eq!(desk.wait_for_quiet(), [Action::Dial { exchange, reading }]);
    desk.proxy.left(desk.now, exchange);
    assert_eq!(desk.actions()[1..], [Action::Pass { tunnel: held }]);
}
