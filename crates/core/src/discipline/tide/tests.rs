use std::collections::BTreeMap;

use super::*;
use crate::discipline::trial::Trial;
use crate::packet::{Ecn, FlowKey};
use crate::random::Stream;

fn tide(credit: u64, packets: u32) -> Trial<Tide> {
    Trial::new(Tide::new(Bytes(credit), Buffer::packets(packets).into(), 1))
}

#[test]
fn a_flow_that_begins_goes_first_until_its_credit_is_used_up() {
    let mut trial = tide(3_000, 100);
    trial.arrive_all([('a', 1_500); 10]);
    // `a` begins at -3000; from 0 on it pays, and virtual time is 1500 at its fourth.
    assert_eq!([(); 4].map(|()| trial.send()), [0, 1, 2, 3].map(Some));
    trial.arrive_all([('b', 1_500); 4]);
    // `b` begins at -1500 and pays from 1500 on. At 3000, `a` has waited for longer.
    assert_eq!(trial.drain(), [10, 11, 12, 4, 13, 5, 6, 7, 8, 9]);
}

#[test]
fn among_flows_in_credit_the_one_that_has_had_and_waits_with_least_goes_first() {
    let mut trial = tide(9_000, 100);
    trial.arrive_all([('a', 1_500); 4]);
    assert_eq!([(); 2].map(|()| trial.send()), [0, 1].map(Some));
    trial.arrive_all([('b', 1_500); 3]);
    // `a` has had 3000 and 3000 wait; of `b`, 4500 wait. `c` has as much as `a`, but later.
    trial.arrive_all([('c', 1_500); 4]);
    assert_eq!(trial.drain(), [4, 5, 6, 2, 3, 7, 8, 9, 10]);
}

/// What waits beyond an initial window does not put a flow back: it would not know what to
/// wait for if others came without end.
#[test]
fn no_more_than_a_window_of_what_waits_counts() {
    let mut trial = tide(60_000, 100);
    trial.arrive_all([('a', 1_514); 30]);
    // As much as `a` counts for, but later; and a little less.
    trial.arrive_all([('b', 1_514); 10]);
    trial.arrive_all([('c', 1_514); 9]);
    let order = trial.drain();
    assert_eq!(order[..9], [40, 41, 42, 43, 44, 45, 46, 47, 48]);
    // Its first packet moves `a` on by more than a slot.
    assert_eq!(order[9..20], [0, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39]);
}

#[test]
fn without_credit_shares_are_of_equal_bytes() {
    let mut trial = tide(0, 100);
    trial.arrive_all([('a', 1_500); 2]);
    trial.arrive_all([('b', 500); 6]);
    assert_eq!(trial.drain(), [0, 2, 3, 4, 1, 5, 6, 7]);
}

/// Two flows send four packets each, from -3000 on, the last two as payers; then `b` pauses
/// while `a` goes on. `b` is at 3000, which is 4500 after where a flow begins.
fn paused() -> Trial<Tide> {
    let mut trial = tide(3_000, 100);
    trial.arrive_all([('a', 1_500); 10]);
    trial.arrive_all([('b', 1_500); 4]);
    assert_eq!([(); 8].map(|()| trial.send()), [0, 1, 10, 11, 2, 12, 3, 13].map(Some));
    assert_eq!(trial.discipline.flows_tracked(), 2);
    trial
}

#[test]
fn a_flow_that_pauses_is_remembered() {
    let mut trial = paused();
    trial.arrive('b', 1_500);
    assert_eq!([(); 2].map(|()| trial.send()), [4, 14].map(Some));
}

/// It is let off a byte in 2^18 ns; when nothing is left, it is new.
#[test]
fn a_flow_that_pauses_for_long_is_new() {
    let begins = Mark::START.before(Bytes(1_500));
    for (bytes, tag) in [(0, begins.after(Bytes(4_500))), (4_499, begins.after(Bytes(1)))]
        .into_iter()
        .chain([(4_500, begins), (u64::MAX >> 18, begins)])
    {
        let mut trial = paused();
        trial.now = Time(bytes << 18);
        trial.arrive('b', 1_500);
        let Tide { flows, idle, .. } = &mut trial.discipline;
        assert_eq!((flows.len(), idle.len()), (2, 0));
        let queue = 1;
        assert_eq!(trial.discipline.flow(queue).tag, tag, "{bytes}");
    }
}

#[test]
fn an_empty_queue_has_forgotten_everything() {
    let mut trial = paused();
    trial.drain();
    assert_eq!(trial.send(), None);
    assert_eq!(trial.discipline.flows_tracked(), 0);
    // The same flows, and the same order as at first, though `b` has had less.
    trial.arrive_all([('a', 1_500); 2]);
    trial.arrive_all([('b', 1_500); 2]);
    assert_eq!(trial.drain(), [14, 15, 16, 17]);
}

#[test]
fn after_eight_credits_a_payer_gets_one() {
    let course = |tide: Tide| {
        let mut trial = Trial::new(tide);
        trial.arrive_all([('a', 1_500); 6]);
        // At -1500 on credit, at 0 as a payer.
        assert_eq!([(); 2].map(|()| trial.send()), [0, 1].map(Some));
        trial.arrive_all(('b'..='u').map(|flow| (flow, 1_500)));
        trial.drain()
    };
    let tide = || Tide::new(Bytes(1_500), Buffer::packets(100).into(), 1);
    let expected: Vec<u64> =
        (6..14).chain([2]).chain(14..22).chain([3]).chain(22..26).chain([4, 5]).collect();
    assert_eq!(course(tide()), expected);
    // Without a toll it waits for all of them.
    assert_eq!(course(tide().without_toll()), (6..26).chain(2..6).collect::<Vec<u64>>());
}

#[test]
fn a_full_buffer_takes_the_head_of_what_would_be_sent_last() {
    let mut trial = tide(3_000, 6);
    trial.arrive_all([('a', 1_500); 3]);
    trial.arrive_all([('b', 500); 3]);
    // The tail of `a` is at 1500, that of `b` at -1500.
    trial.arrive('c', 40);
    assert_eq!(trial.lost(), [(0, LossReason::PushedOut)]);
    // A second packet of `b` does not help `a`, of which two are left.
    trial.arrive('d', 40);
    assert_eq!(trial.lost(), [(1, LossReason::PushedOut)]);
    // Then `b` is the only one that has two.
    trial.arrive('e', 40);
    trial.arrive('f', 40);
    assert_eq!(trial.lost(), [(3, LossReason::PushedOut), (4, LossReason::PushedOut)]);
    // All have one.
    trial.arrive('g', 40);
    assert_eq!(trial.lost(), [(10, LossReason::Refused)]);
    // `b` has had nothing either, but came to less than a slot last; `a` has most.
    assert_eq!(trial.drain(), [6, 7, 8, 9, 5, 2]);
}

#[test]
fn where_the_fattest_loses_a_lone_packet_gives_way_to_a_smaller_one() {
    let place = Place::from(Buffer::packets(3));
    let mut trial = Trial::new(Tide::new(Bytes(3_000), place, 1).with_losses_of_the_fattest());
    trial.arrive_all([('a', 1_500), ('b', 100), ('b', 100)]);
    // All that `a` has are 1500 bytes, which is more than the two packets of `b`.
    trial.arrive('c', 40);
    assert_eq!(trial.lost(), [(0, LossReason::PushedOut)]);
    trial.arrive('d', 40);
    assert_eq!(trial.lost(), [(1, LossReason::PushedOut)]);
    assert_eq!(trial.drain(), [2, 3, 4]);
}

/// 5 and 100 ms, for payers with more than ten packets.
#[test]
fn payers_go_through_codel_and_flows_in_credit_do_not() {
    let run = |credit: u64, packets: usize, ecn: Ecn| {
        let mut trial = tide(credit, 1_000);
        for _ in 0..packets {
            trial.arrive_as('a', 1_500, ecn);
        }
        trial.now = Time::ZERO + Span::millis(5);
        let first = trial.send();
        trial.now += Span::millis(100);
        let second = trial.send();
        (first, second, trial.losses().len(), trial.marked())
    };
    // 11 packets that are left are 16.5 kB, 10 are 15 kB.
    assert_eq!(run(0, 13, Ecn::NotEct), (Some(0), Some(2), 1, 0));
    assert_eq!(run(0, 12, Ecn::NotEct), (Some(0), Some(1), 0, 0));
    assert_eq!(run(3_000, 13, Ecn::NotEct), (Some(0), Some(1), 0, 0));
    assert_eq!(run(0, 13, Ecn::Ect0), (Some(0), Some(1), 0, 1));
}

/// At 100 kbit/s, a packet takes 121 ms: waits below one and a half of them are fine.
#[test]
fn codel_has_patience_in_front_of_a_slow_link() {
    let place = Place::from(Buffer::packets(100)).at_rate(crate::units::Rate(100_000));
    assert_eq!(codel(place).target, Span(1_514 * 80_000 * 3 / 2));
    assert_eq!(codel(Buffer::packets(100).into()).target, Span::millis(5));
}

#[test]
fn codel_has_patience_for_the_turns_of_a_radio() {
    let wire = Place::from(Buffer::packets(100));
    let radio = Place { medium: Medium::Radio, ..wire };
    assert_eq!(codel(radio).target, Span::millis(20));
    let slow = radio.at_rate(crate::units::Rate(100_000));
    assert_eq!(codel(slow).target, codel(wire.at_rate(crate::units::Rate(100_000))).target);
}

/// Random packets of many flows and all sizes, in and out: what becomes of each.
fn course(tide: Tide, steps: u32) -> Vec<u64> {
    let mut trial = Trial::new(tide);
    let mut random = Stream::new(7, "tide");
    let mut course = Vec::new();
    for _ in 0..steps {
        let drawn = random.bits();
        let size = if drawn.is_multiple_of(50) { u64::MAX } else { drawn >> 8 & 0x7ff };
        trial.now += Span(drawn >> 44);
        if drawn >> 32 & 1 == 0 {
            trial.arrive(char::from(b'a' + (drawn >> 33 & 15) as u8), size);
        } else {
            course.extend(trial.send());
        }
        course.extend(trial.lost().iter().map(|(handle, _)| handle));
    }
    course.extend(trial.drain());
    course
}

#[test]
fn tags_go_on_across_the_end_of_their_range() {
    for credit in [0, 1_000, 30_280, 300_000] {
        let tide = || Tide::new(Bytes(credit), Buffer::packets(40).into(), 1);
        let expected = course(tide(), 20_000);
        for before_the_end in [0, 1 << 12, 1 << 20, 1 << 26] {
            let virtual_time = Mark::at(u64::MAX - before_the_end).start_of_slot();
            let found = course(Tide { virtual_time, ..tide() }, 20_000);
            assert_eq!(found, expected, "{before_the_end}, {credit}");
        }
    }
}

/// The calendars go round in 4 MiB; all tags are within that, or the first would be taken
/// for the last.
#[test]
fn tags_are_within_a_round_of_the_calendars() {
    const { assert!(BEHIND.0 + FARTHEST.0 < SLOT.0 * (64 * 64 - 2)) }
}

/// A flow that comes back is never before where it was, unless it was let off something,
/// others took its entry, or nothing was queued in between.
#[test]
fn by_being_forgotten_no_flow_gains_anything() {
    let mut tide = Tide::new(Bytes(6_000), Buffer::packets(10_000).into(), 1);
    let (mut losses, mut random) = (Losses::new(), Stream::new(3, "tide"));
    let mut last = BTreeMap::<FlowKey, Mark>::new();
    let mut gains = Vec::new();
    for handle in 0..200_000 {
        let drawn = random.bits();
        // Flow 0 always has something.
        let port = if drawn % 3 == 0 { 0 } else { (drawn >> 8 & 0x3f) as u16 };
        let key = FlowKey::v4([10, 0, 0, 1], port, [10, 0, 0, 2], 443, FlowKey::UDP);
        let size = Bytes(1 + (drawn >> 20 & 0x3ff));
        if tide.backlog().packets < 5_000 {
            tide.enqueue(Time::ZERO, Packet::new(handle, key, size), &mut losses);
            let id = tide.flows.find(&key).expect("it has just come");
            let tag = tide.flow(id.slot()).tag;
            let before = last.insert(key, tag);
            gains.extend(before.map(|before| before.ahead_of(tag)));
        }
        if handle > 100 {
            let sent = tide.dequeue(Time::ZERO, &mut losses).expect("there is more than one");
            *last.get_mut(&sent.flow).expect("it came") = last[&sent.flow].after(sent.size);
        }
    }
    assert!(gains.len() > 50_000);
    assert_eq!(gains.into_iter().max(), Some(Bytes::ZERO));
}
