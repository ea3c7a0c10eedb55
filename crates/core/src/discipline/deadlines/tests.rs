//! Examples of `deadlines`, worked by hand.

use super::*;
use crate::assignment::Bounded;
use crate::discipline::trial::Trial;

/// A byte takes a microsecond. Beside a largest packet that is in the way
/// and what calls may send there is room for 18 kB of best effort in 20 ms:
/// the deadline of w bytes is 1 ms + w us after they came.
const FLOWS: &str = "link 8 Mbit/s; packets to 1000 B; \
    calls = class 1: 1000 B + 2 Mbit/s within 20 ms; \
    web = class 2: weight 2; mail = class 3: weight 1";

const CALLS: u16 = 1;
const WEB: u16 = 2;
const MAIL: u16 = 3;
const OTHER: u16 = 0;

fn trial(excess: Excess, packets: u32) -> Trial<Deadlines> {
    let contracts: Contracts = FLOWS.parse().unwrap();
    let bounded = Bounded::new(Residual::new(&contracts).unwrap().effective());
    let buffer = Buffer::packets(packets);
    Trial::new(Deadlines::new(Arc::new(contracts), Box::new(bounded), excess, buffer, 1))
}

fn arrive(trial: &mut Trial<Deadlines>, class: u16, flow: char, sizes: &[u64]) {
    trial.class = class;
    trial.arrive_all(sizes.iter().map(|size| (flow, *size)));
}

/// Packets of real time and of best effort.
fn queued(trial: &Trial<Deadlines>) -> [u32; 2] {
    [0, 1].map(|level| trial.discipline.levels()[level].backlog.packets)
}

#[test]
fn the_earlier_deadline_goes_first_and_real_time_when_they_are_equal() {
    for (later, order) in [(17_999_999, [1, 0]), (18_000_000, [0, 1]), (18_000_001, [0, 1])] {
        let mut trial = trial(Excess::Demote, 10);
        arrive(&mut trial, CALLS, 'a', &[1_000]);
        trial.now += Span(later);
        arrive(&mut trial, OTHER, 'b', &[1_000]);
        assert_eq!(trial.drain(), order, "{later} ns later");
    }
}

#[test]
fn best_effort_takes_what_the_promise_leaves_and_no_more() {
    let mut trial = trial(Excess::Demote, 30);
    arrive(&mut trial, CALLS, 'a', &[1_000]);
    arrive(&mut trial, OTHER, 'b', &[1_000; 20]);
    // With a largest packet before them, 18 packets and the call take 20 ms.
    assert_eq!(trial.drain(), (1..=18).chain([0, 19, 20]).collect::<Vec<_>>());
}

#[test]
fn the_past_binds_until_the_queue_is_empty_and_no_longer() {
    let mut trial = trial(Excess::Demote, 30);
    arrive(&mut trial, OTHER, 'b', &[1_000; 19]);
    assert!((0..18).all(|number| trial.send() == Some(number)));
    // With the 18 before it the last one is due at 21.3 ms, the call at 20 ms.
    arrive(&mut trial, CALLS, 'a', &[500]);
    assert_eq!(trial.drain(), [19, 18]);
    // Now one is due 2 ms after it came.
    arrive(&mut trial, CALLS, 'a', &[500]);
    arrive(&mut trial, OTHER, 'b', &[1_000]);
    assert_eq!(trial.drain(), [21, 20]);
}

#[test]
fn best_effort_is_shared_by_weight() {
    let mut trial = trial(Excess::Demote, 20);
    // Tags 500, which is the time from then on, 1000, 1500, 2000, 2500.
    arrive(&mut trial, WEB, 'a', &[1_000; 5]);
    // Tags 1500, 2500: behind those with the same.
    arrive(&mut trial, MAIL, 'b', &[1_000; 2]);
    assert_eq!(trial.drain(), [0, 1, 2, 5, 3, 4, 6]);
}

#[test]
fn a_contract_has_one_share_and_without_one_every_5_tuple_has() {
    // Tags 1000, 2000, 3000, or 2000 again; and 2000.
    for (class, order) in [(MAIL, [0, 1, 3, 2]), (OTHER, [0, 1, 2, 3])] {
        let mut trial = trial(Excess::Demote, 10);
        trial.class = class;
        trial.arrive_all(['a', 'b', 'c'].map(|flow| (flow, 1_000)));
        arrive(&mut trial, OTHER, 'd', &[1_000]);
        assert_eq!(trial.drain(), order);
    }
}

#[test]
fn excess_goes_on_as_best_effort_behind_its_5_tuple() {
    let mut trial = trial(Excess::Demote, 20);
    arrive(&mut trial, CALLS, 'a', &[600, 600, 500]);
    assert_eq!(queued(&trial), [1, 2]);
    // Another call may use the 400 B that are left, and the excess of the first
    // is nothing to it.
    arrive(&mut trial, CALLS, 'b', &[400]);
    assert_eq!(queued(&trial), [2, 2]);
    // The second could go at once, but for the first, which is due at 20 ms.
    assert_eq!(trial.drain(), [0, 3, 1, 2]);
    assert_eq!(trial.lost(), []);
}

#[test]
fn a_packet_that_keeps_to_its_curve_is_real_time_whatever_came_before() {
    let mut trial = trial(Excess::Demote, 50);
    // The excess is the head, and two packets behind it with the other flow's.
    arrive(&mut trial, CALLS, 'a', &[1_000; 4]);
    arrive(&mut trial, OTHER, 'b', &[900; 2]);
    assert_eq!(queued(&trial), [1, 5]);
    // 250 B are left 1 ms later.
    trial.now += Span::millis(1);
    arrive(&mut trial, CALLS, 'a', &[251, 250]);
    assert_eq!(queued(&trial), [2, 6]);
    // The excess waits for the first, which is due at 20 ms, and not for the last,
    // which is due at 21 and came after it.
    assert_eq!(trial.drain(), [0, 1, 4, 2, 5, 3, 6, 7]);
    assert_eq!(trial.lost(), []);
}

#[test]
fn excess_is_lost_when_a_real_time_packet_overtakes_it() {
    let mut trial = trial(Excess::Demote, 50);
    // Tags 1000 and, behind it, 2000.
    trial.arrive_all(('b'..='u').map(|flow| (flow, 1_000)));
    // Due at 20 ms; then excess with tags 2000 and 3000.
    arrive(&mut trial, CALLS, 'a', &[1_000; 3]);
    // Due at 21 ms; more excess behind it.
    trial.now += Span::millis(1);
    arrive(&mut trial, CALLS, 'a', &[250, 100]);
    assert_eq!(queued(&trial), [2, 23]);
    // 18 packets of best effort are due before 20 ms. With the next one, best effort
    // has 19 kB since 0 and is due at 21.3 ms.
    let order: Vec<u64> = (0..18).chain([20, 23, 18, 19, 24]).collect();
    assert_eq!(trial.drain(), order);
    assert_eq!(trial.lost(), [21, 22].map(|number| (number, LossReason::Excess)));
    assert_eq!(trial.discipline.flows_tracked(), 0);
}

#[test]
fn behind_a_packet_of_its_5_tuple_without_a_promise_none_is_kept() {
    let mut trial = trial(Excess::Demote, 20);
    arrive(&mut trial, OTHER, 'a', &[1_000]);
    arrive(&mut trial, CALLS, 'a', &[1_000; 2]);
    assert_eq!(queued(&trial), [0, 3]);
    assert_eq!(trial.send(), Some(0));
    // It is now, and was not used up.
    arrive(&mut trial, CALLS, 'a', &[1_000]);
    assert_eq!(queued(&trial), [1, 2]);
    assert_eq!(trial.drain(), [1, 2, 3]);
    assert_eq!(trial.lost(), []);
}

#[test]
fn excess_is_lost_where_it_is_to_be_and_uses_up_nothing() {
    let mut trial = trial(Excess::Drop, 20);
    arrive(&mut trial, CALLS, 'a', &[600, 401, 400, 1]);
    assert_eq!(trial.lost(), [(1, LossReason::Excess), (3, LossReason::Excess)]);
    assert_eq!(queued(&trial), [2, 0]);
    assert_eq!(trial.drain(), [0, 2]);
    // Behind best effort of its 5-tuple it is not held to the promise.
    arrive(&mut trial, OTHER, 'b', &[1_000]);
    arrive(&mut trial, CALLS, 'b', &[1_000]);
    assert_eq!(queued(&trial), [0, 2]);
    assert_eq!(trial.lost(), []);
}

#[test]
fn a_full_buffer_gives_up_best_effort_for_real_time_and_refuses_it() {
    let mut trial = trial(Excess::Demote, 3);
    // The head, tags 1400 and 1300.
    arrive(&mut trial, OTHER, 'a', &[900]);
    arrive(&mut trial, OTHER, 'b', &[500]);
    arrive(&mut trial, OTHER, 'c', &[400]);
    arrive(&mut trial, OTHER, 'd', &[100]);
    assert_eq!(trial.lost(), [(3, LossReason::Refused)]);
    arrive(&mut trial, CALLS, 'e', &[100]);
    assert_eq!(trial.lost(), [(1, LossReason::PushedOut)]);
    // The head is the last to go.
    arrive(&mut trial, CALLS, 'e', &[100; 2]);
    assert_eq!(trial.lost(), [(2, LossReason::PushedOut), (0, LossReason::PushedOut)]);
    assert_eq!(trial.discipline.flows_tracked(), 1);
    assert_eq!(trial.drain(), [4, 5, 6]);
}

#[test]
fn a_full_buffer_of_real_time_refuses_more_and_does_not_count_it() {
    let mut trial = trial(Excess::Drop, 2);
    arrive(&mut trial, CALLS, 'a', &[100, 100, 800]);
    assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
    assert_eq!(trial.send(), Some(0));
    arrive(&mut trial, CALLS, 'a', &[800]);
    assert_eq!(queued(&trial), [2, 0]);
}

#[test]
fn a_packet_larger_than_any_promised_is_lost_whatever_its_flow() {
    let mut trial = trial(Excess::Demote, 10);
    arrive(&mut trial, OTHER, 'a', &[1_001]);
    arrive(&mut trial, CALLS, 'b', &[1_001, 1_000]);
    assert_eq!(trial.lost(), [(0, LossReason::Excess), (1, LossReason::Excess)]);
    assert_eq!(queued(&trial), [1, 0]);
}

#[test]
fn without_deadlines_best_effort_waits_until_nothing_else_does() {
    let mut trial = trial(Excess::Demote, 10);
    trial.discipline.assignment = Box::new(WhenIdle);
    arrive(&mut trial, OTHER, 'a', &[1_000; 2]);
    arrive(&mut trial, CALLS, 'b', &[500; 2]);
    assert_eq!(trial.drain(), [2, 3, 0, 1]);
}
