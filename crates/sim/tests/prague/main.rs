//! Prague beside the congestion control of udp_prague, which the authors of Prague wrote for
//! applications over UDP (<https://github.com/L4STeam/udp_prague> at e8e3435, Apache 2.0).
//!
//! It was driven as `rates` below drives ours: packets of 1 400 bytes, paced at its rate within
//! its window, an acknowledgement for each, the same generator of numbers for the marks, and no
//! clock but that of the paths. `udp_prague.csv` has its rates, in Mbit/s from 30 to 150 s (marks
//! at random) and from 30 to 90 s (two senders and a step); only these figures are here.
//!
//! Two of its parts are not ours on purpose, for ours is the authors' Prague for Linux: a mark
//! that comes less than 25 ms after a reduction does not hold off the next one, and a sender
//! that has seen no mark for seven rounds or more grows faster.
//!
//! **Marks at random.** Every packet has a mark with the same chance, on a path that only
//! delays. The tolerance, set before the first run: 10% of the rate, in each of 42 cells.
//!
//! **What is out, and why.** All cells at 20 ms, where ours is 1.11 to 1.20 times as fast, and
//! those at 25 ms with the smallest windows. It is the mark that comes too early: Linux takes it
//! for the start of a round in which nothing more is to be given up. In a trial without that
//! rule, all cells with up to a tenth of marks were within 2.8%, and those up to 25 ms within
//! 0.6%. At 50 ms and half of all packets marked, ours is 10% slower; the window has two to
//! three packets.
//!
//! **Two senders and a step.** Two senders share 40 Mbit/s whose queue marks what has waited for
//! more than a millisecond. The tolerance: 25% of the ratio of their rates, set when the
//! ratios of our TCP were known. One pair of five is within it.
//!
//! Where one path is of 25 ms, it is the faster growth: without it (`MIN_STEP` of a million in
//! `prague_cc.cpp`) their ratios are 1.99 instead of 2.86, and 9.15 instead of 10.5, where ours are
//! 1.85 and 7.15. On paths of 5 ms it is not, and the early mark is not the cause either. Marks
//! come in runs there, whose length is decided by when single packets leave; that has not been
//! taken apart. Both are the further from Prague's rule, 2 and 4, the longer the longer path is.

use std::collections::VecDeque;

use tidegate_core::{Span, Time};
use tidegate_sim::tcp::congestion::{Ack, Controller, PRAGUE, Phase, Start};

const REFERENCE: &str = include_str!("udp_prague.csv");
/// Bytes of a packet.
const PACKET: u64 = 1_400;

/// The rows of the reference for one kind of queue, without its name.
fn rows(queue: &str) -> Vec<Vec<Option<f64>>> {
    let of = REFERENCE.lines().filter_map(|line| line.strip_prefix(queue)?.strip_prefix(','));
    of.map(|line| line.split(',').map(|cell| cell.parse().ok()).collect()).collect()
}

/// What all senders share.
#[derive(Clone, Copy)]
enum Path {
    /// It only delays, and marks so many of 10 000 packets.
    Marks(u32),
    /// A queue that takes so long for a packet, and marks what has waited for longer than
    /// [`STEP`].
    Step(Span),
}

const STEP: Span = Span::millis(1);

/// A sender, and what is on the way to it and back.
struct Flow {
    prague: Box<dyn Controller>,
    trip: Span,
    next: Time,
    sent: u64,
    acknowledged: u64,
    /// When acknowledgements come, the round trips that they measure, and whether they tell
    /// of a mark.
    back: VecDeque<(Time, Span, bool)>,
    smoothed: Span,
    counted: u64,
}

impl Flow {
    fn new(trip: Span, start: Time) -> Flow {
        let prague = (PRAGUE.start)(&Start {
            mss: PACKET,
            window: 10 * PACKET,
            threshold: u64::MAX,
            slow_start_limit: u64::MAX,
            slow_start: None,
            paced: true,
            now: start,
            round_trip: Some(trip),
            seed: 1,
            selective: true,
        });
        let (next, smoothed, back) = (start, trip, VecDeque::new());
        Flow { prague, trip, next, sent: 0, acknowledged: 0, back, smoothed, counted: 0 }
    }

    fn may_send(&self) -> bool {
        self.sent + PACKET <= self.acknowledged + self.prague.window()
    }

    fn hear(&mut self) {
        let (now, trip, is_marked) = self.back.pop_front().expect("one is due");
        self.acknowledged += PACKET;
        self.smoothed = Span((self.smoothed.0 * 7 + trip.0) / 8);
        let in_flight = self.sent - self.acknowledged;
        self.prague.on_ack(&Ack {
            now,
            acked: PACKET,
            delivered: PACKET,
            round_trip: Some(trip),
            latest_round_trip: Some(trip),
            smoothed_round_trip: Some(self.smoothed),
            in_flight,
            in_flight_before: in_flight + PACKET,
            lost: 0,
            marked: if is_marked { PACKET } else { 0 },
            departure: self.next.max(now),
            acknowledged: self.acknowledged,
            sent: self.sent,
            rate: None,
            window_limited: true,
            phase: Phase::Open,
        });
    }
}

/// Mbit/s of senders with these round trips between two times. All but the first begin late.
fn rates(path: Path, trips: &[Span], late: Span, warm_up: Time, end: Time) -> Vec<f64> {
    let start = |place| if place == 0 { Time::ZERO } else { Time::ZERO + late };
    let mut flows: Vec<Flow> =
        trips.iter().enumerate().map(|(place, trip)| Flow::new(*trip, start(place))).collect();
    let (mut free, mut now, mut number) = (Time::ZERO, Time::ZERO, 1_u32);
    loop {
        // What comes first: a packet that leaves, or an acknowledgement that comes in.
        let due = flows.iter().enumerate().flat_map(|(place, flow)| {
            let back = flow.back.front().map(|(at, ..)| (*at, false, place));
            let next = flow.may_send().then_some((flow.next.max(now), true, place));
            back.into_iter().chain(next)
        });
        let (at, sends, place) = due.min().expect("something is always due");
        now = at;
        if now >= end {
            break;
        }
        let flow = &mut flows[place];
        if !sends {
            flow.hear();
            continue;
        }
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (left, is_marked) = match path {
            Path::Marks(of_10000) => (now, (number >> 8) % 10_000 < of_10000),
            Path::Step(length) => {
                let begun = free.max(now);
                free = begun + length;
                (free, begun.since(now) > STEP)
            }
        };
        if left >= warm_up && left < end {
            flow.counted += PACKET;
        }
        let back = left + flow.trip;
        flow.back.push_back((back, back.since(now), is_marked));
        flow.sent += PACKET;
        let pace = flow.prague.pacing_rate().expect("Prague always paces");
        let gap = Span(PACKET * 8 * 1_000_000_000 / pace.0);
        flow.next = flow.next.max(Time(now.0.saturating_sub(1_000_000))) + gap;
    }
    let seconds = end.since(warm_up).as_seconds();
    flows.iter().map(|flow| flow.counted as f64 * 8.0 / seconds / 1e6).collect()
}

const fn seconds(count: u64) -> Time {
    Time(count * 1_000_000_000)
}

#[test]
fn marks_at_random_allow_the_rate_that_they_allow_the_authors_code() {
    let cells = rows("none");
    assert_eq!(cells.len(), 42);
    let mut out = Vec::new();
    for cell in &cells {
        let [trip_ms, marked, theirs] = [0, 2, 4].map(|column| cell[column].expect("a number"));
        let trip = Span::millis(trip_ms as u64);
        let path = Path::Marks(marked as u32);
        let ours = rates(path, &[trip], Span::ZERO, seconds(30), seconds(150))[0];
        let ratio = ours / theirs;
        println!("{trip_ms} ms, {marked}: {ours:.2} / {theirs:.2} Mbit/s = {ratio:.3}");
        assert!((0.85..1.25).contains(&ratio), "{trip_ms} ms, {marked}: {ours} {theirs}");
        if !(0.9..1.1).contains(&ratio) {
            out.push((trip_ms, marked));
        }
    }
    let tiny = [(25.0, 2_000.0), (25.0, 5_000.0), (50.0, 5_000.0)];
    let expected = [50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0].map(|it| (20.0, it));
    let (early, others): (Vec<_>, Vec<_>) = out.into_iter().partition(|(trip, _)| *trip == 20.0);
    assert_eq!(early, expected);
    assert_eq!(others, tiny);
}

#[test]
fn two_senders_share_a_step_as_the_authors_do() {
    // 1 400 bytes at 40 Mbit/s.
    const LENGTH: Span = Span(280_000);
    let cells = rows("step");
    assert_eq!(cells.len(), 25);
    let mut out = Vec::new();
    for pair in cells.chunks(5) {
        let of = |cell: &Vec<Option<f64>>| {
            let [one, other, late, first, second] =
                [0, 1, 3, 4, 5].map(|column| cell[column].expect("a number"));
            let [one, other, late] = [one, other, late].map(|it| Span::millis(it as u64));
            let path = Path::Step(LENGTH);
            let ours = rates(path, &[one, other], late, seconds(30), seconds(90));
            ((first / second).ln(), (ours[0] / ours[1]).ln())
        };
        let logs: Vec<(f64, f64)> = pair.iter().map(of).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| (logs.iter().map(of).sum::<f64>() / 5.0).exp();
        let (theirs, ours) = (mean(|it| it.0), mean(|it| it.1));
        let trips = [0, 1].map(|column| pair[0][column].expect("a number"));
        println!("{trips:?}: {ours:.2} / {theirs:.2} = {:.3}", ours / theirs);
        assert!((1.0 / 1.6..1.6).contains(&(ours / theirs)), "{trips:?}: {ours} {theirs}");
        if !(0.75..1.25).contains(&(ours / theirs)) {
            out.push(trips);
        }
    }
    assert_eq!(out, [[5.0, 10.0], [5.0, 25.0], [25.0, 50.0], [25.0, 100.0]]);
}
