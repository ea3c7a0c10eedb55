//! The rules one by one, with numbers worked by hand.

use std::num::NonZeroU32;

use tidegate_core::request::{
    ClassId, Decision, LinkReport, Opening, Permit, Reading, Refusal, Request, SERVICE_SCALE,
    Scheduler, Ticket, UserId, catalogue,
};
use tidegate_core::{Bytes, Rate, Span, Time};

/// A scheduler, and the next request's number.
pub(super) struct Desk {
    pub(super) scheduler: Scheduler,
    pub(super) handles: u64,
    pub(super) now: Time,
}

impl Desk {
    pub(super) fn new(name: &str, given: &[(&str, &str)], weights: &[u32]) -> Desk {
        let entry = catalogue::find(name).expect("it is in the catalogue");
        let weights: Vec<_> =
            weights.iter().map(|w| NonZeroU32::new(*w).expect("not zero")).collect();
        let scheduler = entry.build(given, Rate(8_000_000), &weights, 1);
        Desk { scheduler: scheduler.expect("within range"), handles: 0, now: Time::ZERO }
    }

    pub(super) fn arrive(&mut self, class: u32, user: u64) -> Ticket {
        self.try_arrive(class, user).expect("there is room to wait")
    }

    /// One after the other, by class and user.
    pub(super) fn arrive_all(&mut self, requests: &[(u32, u64)]) {
        for (class, user) in requests {
            self.arrive(*class, *user);
        }
    }

    fn try_arrive(&mut self, class: u32, user: u64) -> Result<Ticket, Refusal> {
        let handle = self.handles;
        self.handles += 1;
        self.scheduler.arrive(Request { handle, class: ClassId(class), user: UserId(user) })
    }

    /// The next request that is released, by its number.
    fn release(&mut self) -> Option<(u64, Permit)> {
        match self.scheduler.next(self.now) {
            Some(Decision::Release { request, permit }) => Some((request.handle, permit)),
            Some(read) => panic!("{read:?}"),
            None => None,
        }
    }

    /// The next request that is released, which should be this one.
    pub(super) fn released(&mut self, expected: u64) -> Permit {
        let (handle, permit) = self.release().expect("a request waits, and a place is free");
        assert_eq!(handle, expected);
        permit
    }

    pub(super) fn receive(&mut self, permit: &Permit, size: u64) -> Reading {
        self.scheduler.received(self.now, permit, Bytes(size))
    }

    /// All of a response has come.
    fn complete(&mut self, mut permit: Permit) {
        permit.complete();
    }

    /// *SC* of a class in bytes.
    fn service(&mut self, class: u32) -> f64 {
        let state = self.scheduler.class(ClassId(class)).expect("there is such a class");
        state.service as f64 / SERVICE_SCALE as f64
    }
}

const FIXED_TWO: &[(&str, &str)] = &[("window", "fixed"), ("start", "2")];

#[test]
fn service_is_divided_by_the_weight_and_by_the_active_users() {
    for (shares, expected) in [("user", 1_000.0), ("class", 3_000.0)] {
        let given = [FIXED_TWO, &[("shares", shares)]].concat();
        let mut desk = Desk::new("paper", &given, &[4]);
        desk.arrive_all(&[(0, 1), (0, 2), (0, 2), (0, 3)]);
        let (first, second) = (desk.released(0), desk.released(1));
        desk.receive(&first, 12_000);
        assert_eq!(desk.service(0), expected);
        // User 1 has nothing left; two are active.
        drop(first);
        desk.receive(&second, 8_000);
        let more = if shares == "user" { 8_000.0 / 8.0 } else { 2_000.0 };
        assert_eq!(desk.service(0), expected + more);
    }
}

#[test]
fn the_least_service_is_first_and_of_equals_the_largest_weight_times_users() {
    let mut desk = Desk::new("paper", FIXED_TWO, &[1, 3, 2]);
    desk.arrive(0, 1);
    desk.arrive(1, 1);
    // Two users of weight 2 are more than one of weight 3.
    let [third, _] = [1, 2].map(|user| desk.arrive(2, user));
    let first = desk.released(2);
    assert_eq!(desk.scheduler.withdraw(third), None);
    desk.receive(&first, 4);
    // Class 2 has 1 byte of service, and 1 comes before 0 by its weight.
    let second = desk.released(1);
    desk.receive(&second, 30);
    drop(first);
    let _third = desk.released(0);
}

#[test]
fn a_class_returns_at_the_least_service_of_the_active_ones_and_at_zero_when_none_is() {
    let mut desk = Desk::new("paper", &[("window", "fixed"), ("start", "3")], &[1, 1, 1]);
    desk.arrive_all(&[(0, 1), (1, 1)]);
    let (first, second) = (desk.released(0), desk.released(1));
    desk.receive(&first, 700);
    desk.receive(&second, 500);
    desk.arrive(2, 1);
    assert_eq!(desk.service(2), 500.0);
    // Class 0 leaves and is back: also what it had too much is forgotten.
    drop(first);
    desk.arrive(0, 1);
    assert_eq!(desk.service(0), 500.0);
    // Level with class 2, class 0 is listed first.
    let rest = [desk.released(3), desk.released(2)];
    drop((second, rest));
    assert_eq!([0, 1, 2].map(|class| desk.service(class)), [0.0; 3]);
    desk.arrive(1, 1);
    assert_eq!(desk.service(1), 0.0);
}

#[test]
fn unasked_bytes_count_for_the_class_that_they_belong_to_while_it_is_active() {
    let mut desk = Desk::new("paper", FIXED_TWO, &[2, 1]);
    desk.arrive(0, 1);
    let unasked = |desk: &mut Desk, whose: Option<(u32, u64)>| {
        let whose = whose.map(|(class, user)| (ClassId(class), UserId(user)));
        desk.scheduler.received_unasked(Time::ZERO, whose, Bytes(100));
    };
    // Of a user without a request, of an idle class, of nobody, of no such class.
    for whose in [Some((0, 9)), Some((1, 1)), None, Some((7, 1))] {
        unasked(&mut desk, whose);
    }
    assert_eq!([0, 1].map(|class| desk.service(class)), [50.0, 0.0]);
}

#[test]
fn the_window_opens_when_the_link_is_idle_and_freezes_while_requests_are_few() {
    // 8 Mbit/s for 5 s are 5 MB.
    let mut desk = Desk::new("paper", &[], &[1]);
    let report = |desk: &mut Desk, carried: u64| {
        desk.now += Span::seconds(5);
        let report = LinkReport { carried: Bytes(carried), queueing_delay: None };
        desk.scheduler.report(desk.now, report);
        desk.scheduler.window()
    };
    report(&mut desk, 0);
    for user in 0..5 {
        desk.arrive(0, user);
    }
    let mut permits = vec![desk.released(0)];
    assert!(desk.release().is_none());
    assert_eq!(report(&mut desk, 1_000), 2.0);
    permits.push(desk.released(1));
    assert!(desk.release().is_none());
    // 70%: 2 * 0.98 / 0.7 is 2.8, and two responses are fewer.
    assert!((report(&mut desk, 3_501_000) - 2.8).abs() < 1e-6);
    permits.push(desk.released(2));
    assert!(desk.release().is_none());
    drop(permits);
    // The rest goes at once, and an idle link widens nothing (MSF section 5.5).
    let _rest = [desk.released(3), desk.released(4)];
    assert!((report(&mut desk, 3_501_000) - 2.8).abs() < 1e-6);
    assert!((report(&mut desk, 8_501_000) - 2.8).abs() < 1e-6);
    desk.arrive(0, 9);
    let _one_more = desk.released(5);
    assert!((report(&mut desk, 13_501_000) - 2.8 * 0.98).abs() < 1e-6);
}

#[test]
fn a_small_request_waits_behind_another_users_backlog_in_the_paper_and_not_in_msf() {
    for (name, expected) in [("paper", 1), ("msf", 3)] {
        let mut desk = Desk::new(name, &[("window", "fixed")], &[1]);
        desk.arrive_all(&[(0, 1), (0, 1), (0, 1), (0, 2)]);
        let first = desk.released(0);
        desk.receive(&first, 5_000);
        drop(first);
        // User 1 has received 5 000 bytes, user 2 nothing.
        drop(desk.released(expected));
    }
}

#[test]
fn a_user_who_comes_late_starts_where_the_others_are() {
    let mut desk = Desk::new("msf", &[("window", "fixed")], &[1]);
    desk.arrive_all(&[(0, 1), (0, 1), (0, 2), (0, 2), (0, 2)]);
    for (expected, size) in [(0, 300), (2, 100), (3, 100)] {
        let permit = desk.released(expected);
        desk.receive(&permit, size);
        desk.complete(permit);
    }
    // User 2 stands at 200 and was last served at 100, which is where user 3
    // starts: who had not been there before has saved nothing up.
    desk.arrive(0, 3);
    desk.arrive(0, 3);
    for (expected, size) in [(5, 150), (4, 150), (6, 100)] {
        let permit = desk.released(expected);
        desk.receive(&permit, size);
        desk.complete(permit);
    }
    drop(desk.released(1));
}

#[test]
fn drr_lets_a_class_receive_its_quantum_in_its_turn() {
    let mut desk = Desk::new("drr", &[("window", "fixed"), ("quantum", "1 kB")], &[2, 1]);
    desk.arrive_all(&[(0, 1), (0, 1), (0, 1), (0, 1), (1, 1), (1, 1)]);
    // Class 0 may receive 2 000 bytes in a turn: two requests, and the second
    // takes it to 2 600. Class 1 has its 1 000 after one. In the next round
    // class 0 has 1 400 left.
    for (expected, size) in [(0, 1_300), (1, 1_300), (4, 1_000), (2, 1_400), (5, 10), (3, 10)] {
        let permit = desk.released(expected);
        desk.receive(&permit, size);
    }
}

#[test]
fn fifo_releases_everything_as_it_comes() {
    let mut desk = Desk::new("fifo", &[], &[1, 9]);
    let mut permits = Vec::new();
    for (number, class) in [0, 1, 0, 1, 1].into_iter().enumerate() {
        desk.arrive(class, 1);
        permits.push(desk.released(number as u64));
    }
    let mut desk = Desk::new("fifo", &[("window", "fixed")], &[1, 9]);
    desk.arrive_all(&[(0, 1), (1, 1), (0, 1), (1, 1)]);
    for number in 0..4 {
        drop(desk.released(number));
    }
}

#[test]
fn a_long_response_leaves_the_window_and_is_read_as_there_is_room() {
    let given = [("window", "fixed"), ("long_from", "10 kB"), ("grant", "4 kB")];
    let mut desk = Desk::new("msf", &[&given[..], &[("floor", "0.001")]].concat(), &[1]);
    desk.arrive_all(&[(0, 1), (0, 1)]);
    let long = desk.released(0);
    assert_eq!(desk.receive(&long, 9_999), Reading::Freely);
    assert!(desk.release().is_none());
    assert_eq!(desk.receive(&long, 1), Reading::UpTo(Bytes(0)));
    let short = desk.released(1);
    // 99% of 8 Mbit/s are 0.99 bytes in a microsecond; 10 000 bytes have come and
    // as many are paid for before there is room for the 4 000.
    let room_at = Time(24_000_000_u64 * 100 / 99 + 1);
    assert_eq!(desk.scheduler.next_ready(Time::ZERO), Some(room_at));
    desk.now = Time(room_at.0 - 1);
    assert!(desk.scheduler.next(desk.now).is_none());
    desk.now = room_at;
    let read = desk.scheduler.next(desk.now);
    assert!(matches!(read, Some(Decision::Read { handle: 0, size: Bytes(4_000) })));
    assert_eq!(desk.receive(&long, 1_000), Reading::UpTo(Bytes(3_000)));
    // Its next grant comes no earlier than when half of this one is used.
    desk.now += Span::seconds(1);
    assert_eq!(desk.scheduler.next_ready(desk.now), None);
    assert_eq!(desk.receive(&long, 1_000), Reading::UpTo(Bytes(2_000)));
    let read = desk.scheduler.next(desk.now);
    assert!(matches!(read, Some(Decision::Read { handle: 0, size: Bytes(4_000) })));
    drop((long, short));
    assert_eq!((desk.scheduler.held(), desk.scheduler.outstanding()), (0, 0));
}

#[test]
fn another_rate_pays_from_its_change_on() {
    let given = [("window", "fixed"), ("long_from", "10 kB"), ("grant", "4 kB")];
    let mut desk = Desk::new("msf", &[&given[..], &[("floor", "0.001")]].concat(), &[1]);
    desk.arrive_all(&[(0, 1), (0, 1)]);
    let long = desk.released(0);
    desk.receive(&long, 10_000);
    let _short = desk.released(1);
    // At 8 Mbit/s the 24 000 bytes that are missing would take 24.2 ms: 10 000 of them are
    // there when the link becomes a fourth of what it was.
    desk.scheduler.set_rate(Time(1_000_000_000 / 99), Rate(2_000_000));
    let room_at = Time(1_000_000_000 / 99 + 56_000_000 * 100 / 99 + 1);
    let ready = desk.scheduler.next_ready(desk.now).expect("there will be room");
    assert!(ready.0.abs_diff(room_at.0) <= 4, "{ready} instead of {room_at}");
}

#[test]
fn another_weight_counts_from_its_change_on() {
    let mut desk = Desk::new("paper", FIXED_TWO, &[1, 1]);
    desk.arrive_all(&[(0, 1), (1, 1)]);
    let (first, second) = (desk.released(0), desk.released(1));
    desk.receive(&first, 4_000);
    desk.scheduler.set_weight(ClassId(0), NonZeroU32::new(4).expect("not zero"));
    desk.scheduler.set_weight(ClassId(7), NonZeroU32::MAX);
    desk.receive(&first, 4_000);
    desk.receive(&second, 4_000);
    assert_eq!((desk.service(0), desk.service(1)), (5_000.0, 4_000.0));
}

#[test]
fn silent_users_take_nothing_from_others_and_give_nothing_to_their_class() {
    // Two users download, one of weight 4 and one of weight 1. Of the latter class, many
    // more hold a response that brings nothing.
    for silent in [0, 4, 19] {
        let given = [("floor", "0.001"), ("long_from", "1 kB")];
        let mut desk = Desk::new("msf", &given, &[4, 1]);
        desk.now = Time::ZERO + Span::seconds(1);
        let mut permits = Vec::new();
        for user in 0..silent {
            desk.arrive(1, 100 + user);
            permits.push(desk.released(user));
        }
        desk.arrive_all(&[(0, 1), (1, 1)]);
        let both = [desk.released(silent), desk.released(silent + 1)];
        let mut received = [0, 0];
        both.iter().for_each(|permit| {
            desk.receive(permit, 1_000);
        });
        // By then the user of weight 1, whose response is smaller, is a lead ahead, and stays so.
        let mut settles = Some(Time::ZERO + Span::seconds(12));
        while desk.now < Time::ZERO + Span::seconds(32) {
            if settles.take_if(|settles| desk.now >= *settles).is_some() {
                received = [0, 0];
            }
            desk.now = desk.scheduler.next_ready(desk.now).expect("both are hungry").max(desk.now);
            while let Some(decision) = desk.scheduler.next(desk.now) {
                let Decision::Read { handle, size } = decision else { panic!("nobody waits") };
                let of = (handle - silent) as usize;
                received[of] += size.0;
                desk.receive(&both[of], size.0);
            }
        }
        let ratio = received[0] as f64 / received[1] as f64;
        assert!((3.9..4.1).contains(&ratio), "{silent} silent users: {received:?}");
        // 99% of 1 MB/s.
        assert!(received[0] + received[1] > 19_500_000, "{received:?}");
    }
}

#[test]
fn a_place_that_brings_nothing_is_free_after_three_seconds() {
    let mut desk = Desk::new("msf", &[("window", "fixed")], &[1]);
    desk.arrive_all(&[(0, 1), (0, 2), (0, 3)]);
    let silent = desk.released(0);
    desk.now = Time::ZERO + Span::seconds(3);
    assert_eq!(desk.scheduler.next_ready(Time(desk.now.0 - 1)), Some(desk.now));
    let slow = desk.released(1);
    desk.now += Span::seconds(2);
    assert_eq!(desk.receive(&slow, 100), Reading::Freely);
    assert!(desk.release().is_none());
    desk.now += Span::seconds(1);
    let _third = desk.released(2);
    // What is late is read by grants.
    assert_eq!(desk.receive(&slow, 100), Reading::UpTo(Bytes(0)));
    assert_eq!(desk.receive(&silent, 100), Reading::UpTo(Bytes(0)));
    drop((silent, slow));
    assert_eq!((desk.scheduler.held(), desk.scheduler.outstanding()), (1, 1));
}

#[test]
fn nobody_saves_up_by_asking_for_what_never_comes_or_by_a_pause() {
    let mut desk = Desk::new("msf", &[("window", "fixed"), ("long_from", "10 kB")], &[1]);
    // User 1 asks again and again for what is empty; user 2 receives.
    for round in 0..100 {
        desk.arrive_all(&[(0, 1), (0, 2)]);
        let first = desk.released(2 * round);
        desk.complete(first);
        let second = desk.released(2 * round + 1);
        desk.receive(&second, 9_000);
        desk.complete(second);
    }
    // They are level, but for one response.
    desk.arrive_all(&[(0, 1), (0, 1), (0, 1), (0, 2)]);
    for (handle, size) in [(200, 9_000), (201, 9_000), (203, 0)] {
        let permit = desk.released(handle);
        desk.receive(&permit, size);
        desk.complete(permit);
    }
}

#[test]
fn who_breaks_a_response_off_pays_for_what_may_be_on_its_way() {
    let mut desk = Desk::new("msf", &[("window", "fixed"), ("long_from", "10 kB")], &[1]);
    desk.arrive_all(&[(0, 1), (0, 2), (0, 2), (0, 2), (0, 1)]);
    // User 1 has had 1 000 of 10 000 bytes, and pays for all.
    let broken = desk.released(0);
    desk.receive(&broken, 1_000);
    drop(broken);
    // So user 2, who receives 4 000 each time, is served thrice.
    for handle in [1, 2, 3, 4] {
        let permit = desk.released(handle);
        desk.receive(&permit, 4_000);
        desk.complete(permit);
    }
}

/// What a user is charged at the release of each of some requests whose responses have these
/// sizes, and at that of one more.
fn paid(sizes: &[u64]) -> Vec<f64> {
    let given = [("window", "fixed"), ("long_from", "10 kB"), ("shares", "class")];
    let mut desk = Desk::new("msf", &given, &[1]);
    desk.arrive_all(&vec![(0, 1); sizes.len() + 2]);
    let mut paid = Vec::new();
    let mut before = 0.0;
    for (handle, size) in (0..).zip(sizes.iter().copied().chain([1])) {
        let permit = desk.released(handle);
        paid.push(desk.service(0) - before);
        desk.receive(&permit, size);
        desk.complete(permit);
        before = desk.service(0);
    }
    paid
}

#[test]
fn a_request_is_paid_for_by_what_its_users_responses_have_brought() {
    // Of a new user nothing is known, and a response is not long before 10 kB. Then come the
    // first size, and an eighth of each that follows.
    assert_eq!(paid(&[4_000, 9_600, 800]), [10_000.0, 4_000.0, 4_700.0, 4_212.0]);
    // The least is an eighth of what can be long.
    assert_eq!(paid(&[8, 8]), [10_000.0, 1_250.0, 1_250.0]);
    // Of what is long it is what came before that.
    assert_eq!(paid(&[50_000, 2_000]), [10_000.0, 10_000.0, 9_000.0]);
    // Nothing is no size.
    assert_eq!(paid(&[0, 3_000, 0]), [10_000.0, 10_000.0, 3_000.0, 3_000.0]);
}

#[test]
fn a_request_of_who_breaks_off_is_paid_for_by_what_servers_could_send() {
    let given = [("window", "fixed"), ("long_from", "10 kB"), ("shares", "class")];
    let mut desk = Desk::new("msf", &given, &[1]);
    desk.arrive_all(&[(0, 1); 16]);
    for handle in 0..16 {
        let permit = desk.released(handle);
        desk.receive(&permit, 100_000);
        desk.complete(permit);
    }
    // All responses have 100 kB, and sizes are kept in quarters of octaves. Another user
    // breaks off before anything has come, then after 30 kB, when 20 kB more could come.
    desk.arrive_all(&[(0, 2); 4]);
    let mut paid = Vec::new();
    for (handle, received) in [(16, 0), (17, 30_000), (18, 0)] {
        let before = desk.service(0);
        let permit = desk.released(handle);
        paid.push(desk.service(0) - before);
        if received > 0 {
            desk.receive(&permit, received);
            let opening = Opening { ahead: Bytes(20_000), pace: Bytes::ZERO };
            desk.scheduler.opened(desk.now, &permit, opening);
        }
    }
    assert_eq!(paid, [7.0 * 16_384.0, 10_000.0, 15_000.0]);
}

#[test]
fn who_asks_servers_that_never_answer_is_promised_less_each_time() {
    let given = [("window", "fixed"), ("long_from", "10 kB"), ("shares", "class")];
    let mut desk = Desk::new("msf", &given, &[1]);
    desk.arrive_all(&[(0, 1); 5]);
    let (mut paid, mut silent) = (Vec::new(), Vec::new());
    let mut ask = |desk: &mut Desk, handle| {
        let before = desk.service(0);
        silent.push(desk.released(handle));
        paid.push(desk.service(0) - before);
    };
    ask(&mut desk, 0);
    for (handle, delay) in [(1, 0), (2, 374), (3, 376), (4, 374)] {
        // A place is free again after three seconds.
        desk.now += Span::seconds(3);
        let report = LinkReport { carried: Bytes::ZERO, queueing_delay: Some(Span::millis(delay)) };
        desk.scheduler.report(desk.now, report);
        ask(&mut desk, handle);
    }
    // The report comes after the time, so it counts for the next.
    assert_eq!(paid, [10_000.0, 8_750.0, 7_656.0, 6_699.0, 6_699.0]);
}

#[test]
fn a_class_makes_up_for_nothing_that_it_had_no_use_for() {
    let given = [("window", "fixed"), ("start", "2"), ("long_from", "200 kB"), ("shares", "class")];
    let mut desk = Desk::new("msf", &given, &[1, 1]);
    desk.arrive(0, 1);
    let lingering = desk.released(0);
    // Class 0 asks for nothing more, and its response brings nothing: what was promised
    // is lost. Class 1 starts there, and receives.
    desk.now = Time::ZERO + Span::seconds(3);
    desk.arrive(1, 1);
    let mut other = desk.released(1);
    for handle in 2..12 {
        desk.arrive(1, 1);
        desk.receive(&other, 100_000);
        desk.complete(other);
        other = desk.released(handle);
    }
    desk.arrive_all(&[(1, 1), (0, 1)]);
    // What is on its way is paid for, by what came before. When class 1 was served last it
    // stood at 1.2 MB, and there class 0 goes on.
    assert_eq!(desk.service(1), 1_300_000.0);
    assert_eq!(desk.service(0), 1_200_000.0);
    drop((lingering, other));
}

#[test]
fn too_many_requests_are_refused_and_leave_no_trace() {
    let limits = [("waiting", "3"), ("waiting_per_user", "2"), ("window", "fixed")];
    let mut desk = Desk::new("msf", &limits, &[1]);
    desk.arrive(0, 9);
    let _place = desk.released(0);
    desk.arrive(0, 1);
    let second = desk.arrive(0, 1);
    assert_eq!(desk.try_arrive(0, 1), Err(Refusal::UserFull { limit: 2 }));
    desk.arrive(0, 2);
    let full = desk.try_arrive(0, 3).unwrap_err();
    assert_eq!(full.to_string(), "3 requests wait already");
    let missing = desk.try_arrive(1, 3).unwrap_err();
    assert_eq!(missing.to_string(), "there is no class 1");
    let state = desk.scheduler.class(ClassId(0)).expect("there is such a class");
    assert_eq!(state.users, 3);
    assert!(desk.scheduler.withdraw(second).is_some());
    assert_eq!(desk.scheduler.withdraw(second), None);
    desk.arrive(0, 3);
}
