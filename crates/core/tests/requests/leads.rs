//! Leads: how far users may differ from their shares for a while.

use tidegate_core::request::{Decision, Opening, Reading};
use tidegate_core::{Bytes, Span, Time};

use super::examples::Desk;

#[test]
fn requests_come_before_long_responses_unless_their_user_is_far_ahead() {
    let given = [("long_from", "1 kB"), ("grant", "1 kB"), ("floor", "0.001")];
    // Users of weights 1 and 2. The first has received 1 kB and wants to read on; the
    // second has a request waiting.
    let next_after = |of_second: u64| {
        let mut desk = Desk::new("msf", &given, &[1, 2]);
        desk.arrive_all(&[(0, 1), (1, 1)]);
        desk.now = Time::ZERO + Span::millis(100);
        let (first, second) = (desk.released(0), desk.released(1));
        assert_eq!(desk.receive(&first, 1_000), Reading::UpTo(Bytes(0)));
        assert_eq!(desk.receive(&second, of_second), Reading::UpTo(Bytes(0)));
        desk.arrive(1, 1);
        // By then the burst is forgotten, and the floor has nothing yet.
        desk.now += Span::millis(500);
        let next = desk.scheduler.next(desk.now);
        drop((first, second));
        next
    };
    // The link carries 500 kB in a lead, and that for its weight the second user is ahead.
    let next = next_after(1_002_000);
    assert!(matches!(&next, Some(Decision::Release { request, .. }) if request.handle == 2));
    // And now by a byte more.
    let next = next_after(1_002_001);
    assert!(matches!(next, Some(Decision::Read { handle: 0, size: Bytes(1_000) })), "{next:?}");
}

/// What a response to class 1 receives more in two seconds than one to class 0, which had the
/// link alone for such a time but for a slow server's response to class `slow`: the former
/// `arrives` or, if it does not, its server sends at last what was asked for at the beginning.
fn head_start(shares: &str, slow: u32, arrives: bool, alone: Span) -> u64 {
    let given = [("long_from", "1 kB"), ("grant", "1 kB"), ("floor", "0.001"), ("shares", shares)];
    let mut desk = Desk::new("msf", &given, &[1, 1, 1]);
    desk.now = Time::ZERO + Span::millis(100);
    desk.arrive_all(&[(0, 1), (slow, 1), (1, 1)][..if arrives { 2 } else { 3 }]);
    let mut permits: Vec<_> = (0..desk.handles).map(|handle| desk.released(handle)).collect();
    permits.iter().for_each(|permit| {
        desk.receive(permit, 1_000);
    });
    let begin = desk.now + alone;
    let end = begin + Span::seconds(2);
    let mut received = [0, 0, 0];
    let (mut slow_sends, mut begins) = (desk.now, Some(begin));
    while desk.now < end {
        if desk.now >= slow_sends {
            desk.receive(&permits[1], 1_000);
            slow_sends += Span::seconds(1);
        }
        if begins.take_if(|begin| desk.now >= *begin).is_some() {
            received = [0, 0, 0];
            match permits.get(2) {
                Some(late) => _ = desk.receive(late, 1_000),
                None => _ = desk.arrive(1, 1),
            }
        }
        while let Some(decision) = desk.scheduler.next(desk.now) {
            let (of, size) = match decision {
                Decision::Read { handle, size } => (handle as usize, size.0),
                Decision::Release { permit, .. } => {
                    permits.push(permit);
                    (2, 1_000)
                }
            };
            // The slow one has it later, and the late one too.
            if of == 0 || of == 2 && begins.is_none() {
                received[of] += size;
                desk.receive(&permits[of], size);
            }
        }
        let ready = desk.scheduler.next_ready(desk.now).expect("somebody downloads");
        desk.now = ready.min(slow_sends).min(begins.unwrap_or(end));
    }
    received[2] - received[0]
}

#[test]
fn nobody_starts_further_behind_than_a_lead_however_slow_somebody_is() {
    // The slow response is to somebody else, or to who comes.
    for (slow, arrives) in [(2, true), (1, true), (1, false)] {
        // After seconds, who comes is behind by the 500 kB that the link carries in a lead.
        // Among users of one group, who has received less then gets ahead by another.
        for (shares, lead) in [("user", 1_000_000), ("class", 500_000)] {
            // In 150 ms the link carries less, and who comes is no further behind than whoever
            // has the least.
            for (alone, expected, within) in
                [(50, 148_500, 15_000), (5_000, lead, 3_000), (50_000, lead, 3_000)]
            {
                let ahead = head_start(shares, slow, arrives, Span::millis(alone));
                let of = format!("{shares}, {slow}, {arrives}, {alone} ms: {ahead}");
                assert!(ahead.abs_diff(expected) < within, "{of}");
            }
        }
    }
}

/// Responses of two users of weights 4 and 1 want to be read on, within a lead of each other.
#[test]
fn what_a_response_has_received_counts_over_the_root_of_a_weight() {
    let given = [("long_from", "1 kB"), ("grant", "1 kB"), ("floor", "0.001")];
    for (heavy, light, first, why) in [
        (140_000, 120_000, 0, "70 and 120 kB are the same power of two, and 35 kB less than 120"),
        (200_000, 60_000, 1, "100 kB are more powers of two than 60, though 50 kB are less"),
        (270_000, 130_000, 1, "135 kB are more powers of two than 130"),
    ] {
        let mut desk = Desk::new("msf", &given, &[4, 1]);
        desk.arrive_all(&[(0, 1), (1, 1)]);
        desk.now = Time::ZERO + Span::millis(100);
        let both = [desk.released(0), desk.released(1)];
        for (permit, received) in both.iter().zip([heavy, light]) {
            desk.receive(permit, received);
        }
        // By then the burst is forgotten, and the floor has nothing yet.
        desk.now += Span::millis(700);
        let next = desk.scheduler.next(desk.now);
        let is_first =
            |next: &Decision| matches!(next, Decision::Read { handle, .. } if *handle == first);
        assert!(next.as_ref().is_some_and(is_first), "{why}: {next:?}");
    }
}

/// One user reads something long, and all that its server may send is on its way; another, whose
/// requests have brought more by over a lead, has one waiting that is expected to bring 99 kB.
#[test]
fn a_request_goes_before_who_is_behind_if_there_is_room_for_it_beside_them() {
    let given = [("long_from", "100 kB"), ("grant", "20 kB"), ("floor", "0.001")];
    let wait_with = |ahead: u64, pace: u64| {
        let opening = Opening { ahead: Bytes(ahead), pace: Bytes(pace) };
        let mut desk = Desk::new("msf", &given, &[1]);
        desk.arrive(0, 1);
        desk.now = Time::ZERO + Span::millis(100);
        let behind = desk.released(0);
        desk.receive(&behind, 100_000);
        desk.scheduler.opened(desk.now, &behind, opening);
        for handle in 1..=8 {
            desk.now += Span::millis(150);
            while let Some(Decision::Read { .. }) = desk.scheduler.next(desk.now) {}
            desk.arrive(0, 2);
            let mut permit = desk.released(handle);
            desk.receive(&permit, 99_000);
            permit.complete();
        }
        desk.now += Span::seconds(1);
        while let Some(Decision::Read { .. }) = desk.scheduler.next(desk.now) {}
        desk.now += Span::millis(200);
        desk.scheduler.opened(desk.now, &behind, opening);
        desk.scheduler.received_unasked(desk.now, None, Bytes(300_000));
        desk.arrive(0, 2);
        assert!(desk.scheduler.next(desk.now).is_none());
        let ready = desk.scheduler.next_ready(desk.now).expect("there will be room");
        ready.since(desk.now)
    };
    // 990 kB come in in a second. A grant is enough if nothing is set aside.
    let least = wait_with(30_000, 0);
    assert_eq!(wait_with(90_000, 9_900) - least, Span::millis(10));
    // What it brings beyond 79.2 and 39.6 kB that servers may send meanwhile is no more than a
    // grant, and 59.4 kB.
    assert_eq!(wait_with(79_200, 9_900) - least, Span::millis(10));
    assert_eq!(wait_with(39_600, 9_900) - least, Span(49_797_980));
}
