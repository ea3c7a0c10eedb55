//! Traces of aggregates worked by hand, in microseconds: 802.11n, one stream of 20
//! MHz at 65 Mbit/s.
//!
//! A packet of 1 500 bytes alone takes 228, one of 40 takes 48; in an aggregate,
//! two of 1 500 take 420 and three 608 ([`high_throughput`] has the sums). SIFS and
//! the acknowledgement of one frame take 16 + 28, of an aggregate 16 + 32; then
//! comes AIFS, 43. After a frame that was not acknowledged, the first slot begins
//! 45 + 43 = 88 after its end for its sender, and 103 after it for those for whom
//! it was spoilt. A slot is 9, and counts as it begins.

use std::collections::VecDeque;

use proptest::prelude::*;
use tidegate_core::{Bytes, Stream, Time};

use super::{ACCESS_POINT, LARGE, SMALL, draws, micros};
use crate::wlan::aggregation::{Aggregation, Aggregator, Fate, Pulled, WINDOW};
use crate::wlan::high_throughput::{Channel, Generation, Mcs};
use crate::wlan::{Cell, Counts, Outcome, Timing};

fn mcs() -> Mcs {
    let generation = Generation::Ht;
    let channel = Channel { generation, width: 20, streams: 1, short_guard: false };
    channel.mcs(7).expect("it is one of the eight")
}

fn aggregator(limits: Aggregation, receivers: &[usize], error: f64) -> Aggregator {
    let retry_limit = Timing::edca().retry_limit;
    Aggregator::new(limits, retry_limit, receivers.iter().map(|to| (*to, mcs(), error)))
}

const LIMITS: Aggregation = Aggregation { frames: 64, staging: 64 };

/// An access point, two stations, and their queues.
struct Bench {
    cell: Cell,
    aggregators: [Aggregator; 3],
    queues: [VecDeque<Pulled>; 3],
    offered: u64,
}

impl Bench {
    /// Noise spoils each frame with probability `error`.
    fn new(seed: u64, error: f64) -> Bench {
        let of = |receivers: &[usize]| aggregator(LIMITS, receivers, error);
        Bench {
            cell: Cell::new(Timing::edca(), 3, "cell", seed),
            aggregators: [of(&[1, 2]), of(&[ACCESS_POINT]), of(&[ACCESS_POINT])],
            queues: Default::default(),
            offered: 0,
        }
    }

    /// A packet comes to the queue of `sender`; packets are numbered from 1.
    fn offer(&mut self, at: u64, sender: usize, receiver: usize, size: u64) {
        self.offered += 1;
        let packet = Pulled { receiver, handle: self.offered, size: Bytes(size) };
        self.queues[sender].push_back(packet);
        self.cell.offer(micros(at), sender);
    }

    /// Lets those send whose turn is next; says when that is, and which packets
    /// are handed on and when.
    fn next(&mut self) -> (u64, Vec<(u64, u64)>) {
        let at = self.cell.next_access();
        let (queues, aggregators) = (&mut self.queues, &mut self.aggregators);
        let outcomes = self.cell.access(at, |sender| {
            let frame = aggregators[sender].next_in_turn(|| queues[sender].pop_front())?;
            Some((frame, aggregators[sender].has_more() || !queues[sender].is_empty()))
        });
        let mut handed_on = Vec::new();
        for outcome in outcomes {
            let Outcome::Aggregate { from, received, at, .. } = *outcome else {
                panic!("{outcome:?} of an aggregate")
            };
            self.aggregators[from].settle(received, |handle, fate| {
                assert_eq!(fate, Fate::Delivered);
                handed_on.push((at.0 / 1_000, handle));
            });
        }
        (at.0 / 1_000, handed_on)
    }
}

#[test]
fn an_aggregate_is_followed_by_a_block_acknowledgement_and_a_back_off() {
    assert_eq!(draws(1, 1, [15, 15]), [13, 3]);
    let mut bench = Bench::new(1, 0.0);
    bench.offer(100, 1, 0, LARGE);
    bench.offer(100, 1, 0, LARGE);
    // On the air from 100 to 520, acknowledged until 568.
    assert_eq!(bench.next(), (100, vec![(520, 1), (520, 2)]));
    assert_eq!(bench.cell.next_access(), Time::FAR_FUTURE);
    // Its slots count from 611. A frame alone has an ordinary acknowledgement:
    // 728 + 228 + 44 + 43 = 1 043.
    bench.offer(600, 1, 0, LARGE);
    assert_eq!(bench.next(), (611 + 13 * 9, vec![(956, 3)]));
    bench.offer(1_000, 1, 0, SMALL);
    assert_eq!(bench.next(), (1_043 + 3 * 9, vec![(1_118, 4)]));
}

#[test]
fn a_slot_counts_as_it_begins() {
    assert_eq!((draws(1, 0, [15]), draws(1, 1, [15]), draws(1, 2, [15])), ([6], [13], [6]));
    let mut bench = Bench::new(1, 0.0);
    bench.offer(100, 1, 0, LARGE);
    bench.next();
    bench.offer(200, 1, 0, LARGE);
    bench.offer(371, 2, 0, LARGE);
    // All slots count from 100 + 228 + 44 + 43 = 415. The access point finds the
    // medium idle for AIFS.
    bench.offer(434, ACCESS_POINT, 0, SMALL);
    assert_eq!(bench.next().0, 434);
    // It cuts the third slot short, which has counted: of 13 and 6 are left 10 and
    // 3. Next from 434 + 48 + 44 + 43 = 569; station 1 counts four before 868.
    assert_eq!(bench.next(), (569 + 3 * 9, vec![(824, 3)]));
    assert_eq!(bench.next().0, 824 + 44 + 43 + (10 - 4) * 9);
}

#[test]
fn what_noise_spoils_is_sent_again_and_the_receiver_keeps_the_order() {
    let mut stream = Stream::new(9, "cell, sender 1");
    let first = [0; 3].map(|_| stream.uniform() < 0.5);
    let (slots, second) = (stream.index(16), [0; 2].map(|_| stream.uniform() < 0.5));
    assert_eq!((first, slots, second), ([false, true, false], 7, [false, false]));
    let mut bench = Bench::new(9, 0.5);
    for _ in 0..3 {
        bench.offer(100, 1, 0, LARGE);
    }
    // Until 708. The second frame is spoilt, the third waits for it.
    assert_eq!(bench.next(), (100, vec![(708, 1)]));
    bench.offer(710, 1, 0, LARGE);
    // From 708 + 48 + 43 = 799 seven slots to 862; the second and the fourth frame,
    // until 1 282. Who was acknowledged draws from the smallest window.
    assert_eq!(bench.next(), (799 + 7 * 9, vec![(1_282, 2), (1_282, 3), (1_282, 4)]));
    let counts = Counts { sent: 2, collided: 0, spoiled: 1, given_up: 0 };
    assert_eq!(bench.cell.counts(), counts);
}

#[test]
fn a_collision_loses_the_whole_aggregate_and_doubles_the_window() {
    assert_eq!((draws(13, 1, [31]), draws(13, 2, [31])), ([2], [2]));
    let mut bench = Bench::new(13, 0.0);
    bench.offer(100, 1, 0, LARGE);
    bench.offer(100, 1, 0, LARGE);
    bench.offer(100, 2, 0, LARGE);
    // Busy until 520. Slots count for station 1 from 520 + 88 = 608, for station 2,
    // which has known since 328 + 45, from 520 + 43 = 563.
    assert_eq!(bench.next(), (100, vec![]));
    assert_eq!(bench.next(), (563 + 2 * 9, vec![(809, 3)]));
    // Station 1 has counted no slot: from 809 + 44 + 43 = 896.
    bench.offer(850, 1, 0, LARGE);
    assert_eq!(bench.next(), (896 + 2 * 9, vec![(1_522, 1), (1_522, 2), (1_522, 4)]));
    let counts = Counts { sent: 4, collided: 2, spoiled: 0, given_up: 0 };
    assert_eq!(bench.cell.counts(), counts);
}

#[test]
fn an_access_point_collects_packets_of_a_station_and_serves_stations_in_turn() {
    assert_eq!(draws(1, 0, [15, 15]), [6, 1]);
    let mut bench = Bench::new(1, 0.0);
    for receiver in [0, 1, 0, 1] {
        bench.offer(100, ACCESS_POINT, receiver, LARGE);
    }
    assert_eq!(bench.next(), (100, vec![(520, 1), (520, 3)]));
    bench.offer(600, ACCESS_POINT, 0, LARGE);
    assert_eq!(bench.next(), (611 + 6 * 9, vec![(1_085, 2), (1_085, 4)]));
    // 1 085 + 48 + 43 = 1 176.
    assert_eq!(bench.next(), (1_176 + 9, vec![(1_413, 5)]));
}

#[test]
fn a_frame_that_fails_seven_times_is_given_up_and_lets_those_behind_pass() {
    let mut packets = VecDeque::from([1, 2, 3]);
    let mut sender = aggregator(LIMITS, &[ACCESS_POINT], 0.0);
    let mut reports = Vec::new();
    for attempt in 1..=7 {
        let frame = sender.next_for(0, || Some((packets.pop_front()?, Bytes(LARGE))));
        let frames = frame.map(|frame| frame.frames());
        assert_eq!(frames, Some(if attempt == 1 { 3 } else { 1 }));
        assert!(reports.is_empty() && sender.has_left(0));
        // The first one is spoilt again and again.
        sender.settle(0b110, |handle, fate| reports.push((handle, fate)));
    }
    assert_eq!(reports, [(1, Fate::GivenUp), (2, Fate::Delivered), (3, Fate::Delivered)]);
    assert!(!sender.has_left(0) && !sender.has_more());
    assert!(sender.next_for(0, || None).is_none());
}

/// What a receiver still lacks and what it has, without any of the sender's
/// structures: how often each packet has been sent, and whether it has arrived.
#[derive(Default)]
struct Twin {
    packets: Vec<(u64, u32, bool)>,
    reported: usize,
}

impl Twin {
    /// `received` tells which of the `frames` oldest in the window that it lacks
    /// have come. Returns what it hands on or learns is given up.
    fn hear(&mut self, frames: u32, received: u64) -> Vec<(u64, Fate)> {
        let window = self.packets[self.reported..].iter_mut().take(WINDOW as usize);
        let lacking = window.filter(|(_, failures, has)| !has && *failures < 7);
        for (bit, packet) in lacking.take(frames as usize).enumerate() {
            packet.2 = received >> bit & 1 == 1;
            packet.1 += u32::from(!packet.2);
        }
        let known = self.packets[self.reported..].iter();
        let fates = known.map_while(|(handle, failures, has)| match (has, failures) {
            (true, _) => Some((*handle, Fate::Delivered)),
            (false, 7) => Some((*handle, Fate::GivenUp)),
            _ => None,
        });
        let fates: Vec<_> = fates.collect();
        self.reported += fates.len();
        fates
    }
}

proptest! {
    #[test]
    fn packets_keep_their_order_and_none_is_made_or_lost(
        packets in prop::collection::vec((0_usize..3, 40_u64..1_500), 1..400),
        limits in (1_u32..=64, 1_u32..200),
        masks in prop::collection::vec(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)], 1..40),
    ) {
        let (frames, staging) = limits;
        let mut sender = aggregator(Aggregation { frames, staging }, &[1, 2, 3], 0.0);
        let mut twins = [Twin::default(), Twin::default(), Twin::default()];
        let mut queue: VecDeque<_> = (0..).zip(&packets).collect();
        let mut reported = 0;
        let masks = masks.into_iter().cycle().take(2_000).chain(std::iter::repeat(u64::MAX));
        for mask in masks {
            let frame = sender.next_in_turn(|| {
                let (handle, (receiver, size)) = queue.pop_front()?;
                twins[*receiver].packets.push((handle, 0, false));
                Some(Pulled { receiver: *receiver, handle, size: Bytes(*size) })
            });
            let Some(frame) = frame else { break };
            let kept: usize = twins.iter().map(|twin| twin.packets.len() - twin.reported).sum();
            prop_assert!(frame.frames() <= frames && kept <= staging as usize);
            let received = mask & (u64::MAX >> (64 - frame.frames()));
            let mut fates = Vec::new();
            sender.settle(received, |handle, fate| fates.push((handle, fate)));
            reported += fates.len();
            prop_assert_eq!(fates, twins[frame.to - 1].hear(frame.frames(), received));
        }
        prop_assert_eq!(reported, packets.len());
    }
}
