//! Traces worked out by hand, in microseconds.
//!
//! At 54 Mbit/s a packet of 1 500 bytes takes 248 and one of 40 bytes 32
//! ([`super::phy`] has the sums). SIFS and the acknowledgement take 16 + 28 =
//! 44 more, then DIFS 34: the first slot begins 78 after a frame that was
//! acknowledged. After one that was not it begins 45 + 34 = 79 after its end for
//! its sender, and 94 (EIFS) for whom it was spoilt. A slot is 9.
//!
//! Which slots the senders draw is first asserted, then used.

use std::collections::VecDeque;

use tidegate_core::{Bytes, Span, Stream, Time};

use super::{Cell, Counts, Frame, Outcome, Timing, phy::DataRate};

mod aggregates;

const ACCESS_POINT: usize = 0;
const SMALL: u64 = 40;
const LARGE: u64 = 1_500;

/// An access point, two stations, and their queues.
struct Bench {
    cell: Cell,
    queues: [VecDeque<Frame>; 3],
}

fn micros(time: u64) -> Time {
    Time::ZERO + Span::micros(time)
}

impl Bench {
    fn new(seed: u64) -> Bench {
        let cell = Cell::new(Timing::ofdm(), 3, "cell", seed);
        Bench { cell, queues: Default::default() }
    }

    /// A packet comes to the queue of `sender`; noise spoils each transmission
    /// of it with probability `error`.
    fn noisy(&mut self, at: u64, sender: usize, size: u64, error: f64) {
        let to = if sender == ACCESS_POINT { 1 } else { ACCESS_POINT };
        let frame = Frame::new(at, Bytes(size), DataRate::FASTEST, to, error);
        self.queues[sender].push_back(frame);
        self.cell.offer(micros(at), sender);
    }

    fn offer(&mut self, at: u64, sender: usize, size: u64) {
        self.noisy(at, sender, size, 0.0);
    }

    /// Lets those send whose turn is next; says when that is and who is heard of.
    fn next(&mut self) -> (u64, Vec<Outcome>) {
        let at = self.cell.next_access();
        let queues = &mut self.queues;
        let outcomes = self.cell.access(at, |sender| {
            let frame = queues[sender].pop_front()?;
            Some((frame, !queues[sender].is_empty()))
        });
        assert_eq!(at.0 % 1_000, 0);
        (at.0 / 1_000, outcomes.to_vec())
    }

    /// The time of the next access, at which `sender` alone sends, in vain or not.
    fn next_of(&mut self, sender: usize) -> u64 {
        let (at, outcomes) = self.next();
        match outcomes[..] {
            [Outcome::Delivered { from, .. }] => assert_eq!(from, sender),
            _ => panic!("at {at}: {outcomes:?}"),
        }
        at
    }
}

/// The first draws of a sender, from windows of these sizes.
fn draws<const N: usize>(seed: u64, sender: usize, windows: [usize; N]) -> [usize; N] {
    let mut stream = Stream::new(seed, &format!("cell, sender {sender}"));
    windows.map(|window| stream.index(window + 1))
}

fn delivered(from: usize, offered: u64, at: u64) -> Vec<Outcome> {
    let to = if from == ACCESS_POINT { 1 } else { ACCESS_POINT };
    vec![Outcome::Delivered { from, to, handle: offered, at: micros(at) }]
}

#[test]
fn an_idle_medium_is_accessed_at_once_and_every_frame_is_followed_by_a_back_off() {
    assert_eq!(draws(1, 1, [15, 15]), [13, 3]);
    let mut bench = Bench::new(1);
    bench.offer(100, 1, LARGE);
    // On the air from 100 to 348, acknowledged until 392.
    assert_eq!(bench.next(), (100, delivered(1, 100, 348)));
    assert_eq!(bench.cell.next_access(), Time::FAR_FUTURE);
    // Its slots count from 426 and end at 426 + 13 * 9 = 543.
    bench.offer(430, 1, SMALL);
    assert_eq!(bench.next(), (543, delivered(1, 430, 575)));
    // 543 + 32 + 78 + 3 * 9 = 680: that is over, and nobody else sends.
    bench.offer(680, 1, SMALL);
    assert_eq!(bench.next_of(1), 680);
}

#[test]
fn who_finds_the_medium_busy_backs_off_and_slots_that_are_cut_short_do_not_count() {
    assert_eq!((draws(1, 0, [15]), draws(1, 1, [15]), draws(1, 2, [15, 15])), ([6], [13], [6, 10]));
    let mut bench = Bench::new(1);
    bench.offer(100, 1, LARGE);
    bench.next_of(1);
    bench.offer(200, 1, LARGE);
    bench.offer(391, 2, LARGE);
    // All slots count from 426. The access point finds the medium idle for DIFS.
    bench.offer(445, ACCESS_POINT, SMALL);
    assert_eq!(bench.next_of(ACCESS_POINT), 445);
    // It has cut slots short: two had ended, of 13 and 6. Next from
    // 445 + 32 + 78 = 555: station 2 after 4 more.
    assert_eq!(bench.next_of(2), 555 + 4 * 9);
    // From 591 + 248 + 78 = 917: station 1 after 11 - 4 more.
    assert_eq!(bench.next_of(1), 917 + 7 * 9);
}

#[test]
fn a_reply_need_not_back_off_where_that_is_allowed() {
    for (immediate_replies, slots) in [(false, 13), (true, 0)] {
        let timing = Timing { immediate_replies, ..Timing::ofdm() };
        let mut bench = Bench { cell: Cell::new(timing, 3, "cell", 1), queues: Default::default() };
        bench.offer(100, ACCESS_POINT, LARGE);
        // Station 1 has it at 348 and acknowledges it from 364 to 392.
        bench.next_of(ACCESS_POINT);
        bench.offer(348, 1, SMALL);
        assert_eq!(bench.next_of(1), 426 + slots * 9);
    }
    // A moment later, or from somebody else, it is no reply.
    let timing = Timing { immediate_replies: true, ..Timing::ofdm() };
    for (at, station, slots) in [(349, 1, 13), (348, 2, 6)] {
        assert_eq!(draws(1, station, [15]), [slots as usize]);
        let mut bench = Bench { cell: Cell::new(timing, 3, "cell", 1), queues: Default::default() };
        bench.offer(100, ACCESS_POINT, LARGE);
        bench.next_of(ACCESS_POINT);
        bench.offer(at, station, SMALL);
        assert_eq!(bench.next_of(station), 426 + slots * 9);
    }
}

#[test]
fn two_in_one_slot_collide_and_the_others_wait_longer() {
    assert_eq!((draws(13, 0, [15]), draws(13, 1, [31]), draws(13, 2, [31])), ([5], [2], [2]));
    let mut bench = Bench::new(13);
    bench.offer(100, 1, LARGE);
    bench.offer(100, 2, SMALL);
    // Busy until 348. Slots count for station 1 from 348 + 79 = 427; for station
    // 2, which has known since 132 + 45 that its frame is lost, from 348 + 34 = 382;
    // for the access point from 348 + 94 = 442.
    assert_eq!(bench.next(), (100, vec![]));
    bench.offer(200, ACCESS_POINT, SMALL);
    assert_eq!(bench.next(), (382 + 2 * 9, delivered(2, 100, 432)));
    // For all from 432 + 78 = 510. Nobody else has counted a slot.
    assert_eq!(bench.next_of(1), 510 + 2 * 9);
    // From 528 + 248 + 78 = 854, 5 - 2 slots.
    assert_eq!(bench.next_of(ACCESS_POINT), 854 + 3 * 9);
    let counts = Counts { sent: 5, collided: 2, spoiled: 0, given_up: 0 };
    assert_eq!(bench.cell.counts(), counts);
}

#[test]
fn who_comes_while_a_gap_runs_sends_at_its_end_unless_somebody_else_was_first() {
    let collision_then_access_point = |seed| {
        let mut bench = Bench::new(seed);
        bench.offer(100, 1, LARGE);
        bench.offer(100, 2, SMALL);
        bench.next();
        // Idle since 348, but EIFS ends at 442.
        bench.offer(390, ACCESS_POINT, SMALL);
        bench
    };
    assert_eq!((draws(12, 1, [31]), draws(12, 2, [31])), ([9], [23]));
    let mut bench = collision_then_access_point(12);
    assert_eq!(bench.next_of(ACCESS_POINT), 442);
    // From 442 + 32 + 78 = 552. Station 1 has counted one slot since 427, station
    // 2 six since 382.
    assert_eq!(bench.next_of(1), 552 + 8 * 9);

    // Station 2 sends at 382 + 2 * 9 = 400, so the access point has to back off:
    // 5 slots from 400 + 32 + 78 = 510, two of which pass before station 1 sends.
    let mut bench = collision_then_access_point(13);
    assert_eq!((bench.next_of(2), bench.next_of(1)), (400, 510 + 2 * 9));
    assert_eq!(bench.next_of(ACCESS_POINT), 528 + 248 + 78 + (5 - 2) * 9);
}

#[test]
fn a_frame_is_sent_seven_times_with_windows_that_double() {
    let mut stream = Stream::new(8, "cell, sender 1");
    let drawn = [31, 63, 127, 255, 511, 1_023, 15].map(|window| {
        // Noise draws from the same stream.
        stream.uniform();
        stream.index(window + 1)
    });
    assert_eq!(drawn, [26, 25, 48, 193, 298, 942, 10]);
    let mut bench = Bench::new(8);
    bench.noisy(100, 1, LARGE, 1.0);
    bench.offer(101, 1, SMALL);
    // Each time 248 + 79 = 327 and the slots.
    let mut at = 100;
    for slots in [26, 25, 48, 193, 298, 942] {
        assert_eq!(bench.next(), (at, vec![]));
        at += 327 + slots * 9;
    }
    assert_eq!(at, 15_850);
    assert_eq!(bench.next(), (15_850, vec![Outcome::GivenUp { from: 1, handle: 100 }]));
    // The next frame begins with the smallest window.
    assert_eq!(bench.next_of(1), 15_850 + 327 + 10 * 9);
    let counts = Counts { sent: 8, collided: 0, spoiled: 7, given_up: 1 };
    assert_eq!(bench.cell.counts(), counts);
}

#[test]
fn the_window_stops_growing_at_its_largest() {
    let timing = Timing { retry_limit: 20, ..Timing::ofdm() };
    let mut bench = Bench { cell: Cell::new(timing, 3, "cell", 8), queues: Default::default() };
    bench.noisy(100, 1, LARGE, 1.0);
    let mut before = bench.next().0;
    for _ in 1..20 {
        let at = bench.next().0;
        assert!(at - before <= 327 + 1_023 * 9);
        before = at;
    }
}

#[test]
fn noise_is_the_receivers_own_and_the_others_keep_the_announced_time() {
    let mut stream = Stream::new(1, "cell, sender 1");
    stream.uniform();
    assert_eq!((draws(1, 0, [15]), stream.index(32), draws(1, 2, [15])), ([6], 7, [6]));
    let mut bench = Bench::new(1);
    bench.noisy(100, 1, LARGE, 1.0);
    assert_eq!(bench.next(), (100, vec![]));
    bench.offer(200, ACCESS_POINT, SMALL);
    bench.offer(200, 2, SMALL);
    // Until 348. Slots count for station 2 from 348 + 78 = 426, for station 1
    // from 427, for the access point, the receiver, from 442.
    assert_eq!(bench.next_of(2), 426 + 6 * 9);
    // Of its 7 slots station 1 has counted 5 to 480, of its 6 the access point 4:
    // both have two left, from 480 + 32 + 78 = 590.
    assert_eq!(bench.next(), (590 + 2 * 9, vec![]));
    assert_eq!(bench.cell.counts().collided, 2);
}

#[test]
fn a_sender_whose_queue_has_nothing_after_all_leaves_the_medium_to_the_others() {
    let mut bench = Bench::new(1);
    bench.cell.offer(micros(50), 1);
    assert_eq!(bench.next(), (50, vec![]));
    assert_eq!(bench.cell.counts().sent, 0);
    assert_eq!(bench.cell.next_access(), Time::FAR_FUTURE);
    bench.offer(60, 1, SMALL);
    assert_eq!(bench.next_of(1), 60);
}
