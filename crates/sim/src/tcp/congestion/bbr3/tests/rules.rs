//! Start, path, control and losses, worked by hand.

use super::super::full_pipe::FullPipe;
use super::super::losses::in_flight_at_loss;
use super::super::{Before, Loss, Sample, UNBOUNDED};
use super::*;

/// Section 5.6.2: 2.77 times ten segments per round trip, 80 000 bits in 0.1 s. Without a
/// round trip it is as much per millisecond, until one is known: 80 000 bits in 0.05 s
/// are 1.6 Mbit/s.
#[test]
fn the_first_rate_is_that_of_the_initial_window() {
    assert_eq!(rate(&Bbr::new(&start())), Rate(2_216_000));
    let mut bbr = Bbr::new(&Start { round_trip: None, ..start() });
    assert_eq!(rate(&bbr), Rate(221_600_000));
    bbr.on_ack(&Ack { smoothed_round_trip: Some(Span::millis(50)), ..ack(ms(50), 1) });
    assert_eq!(rate(&bbr), Rate(4_432_000));
}

/// A first measurement of 800 kbit/s: 2.77 * 0.99 of it, 2 193 840 bit/s, would be less
/// than the rate is, which only grows before the pipe has been full (section 5.6.2). One
/// of 1 600 kbit/s is more. The product is 10 000 bytes; twice that, and the 2 000 bytes
/// that have come in lumps, leave room for what has arrived: 12 000 bytes.
#[test]
fn startup_only_accelerates() {
    let mut bbr = Bbr::new(&start());
    bbr.on_ack(&Ack { rate: measured(800, 0, 2_000), ..ack(ms(100), 2) });
    assert_eq!((rate(&bbr), bbr.window()), (Rate(2_216_000), 12 * MSS));
    bbr.on_ack(&Ack { rate: measured(1_600, 0, 4_000), ..ack(ms(101), 2) });
    assert_eq!(rate(&bbr), Rate(4_387_680));
}

/// Section 5.3.1.2: growth by a quarter starts the count again, a sample that the
/// application limits or within a round trip does not count.
#[test]
fn three_round_trips_without_growth_fill_the_pipe() {
    let mut pipe = FullPipe::default();
    let mut see = |kbits: u64, app_limited: bool, started: bool| {
        let rate = measured(kbits, 0, 0).map(|rate| RateSample { app_limited, ..rate });
        pipe.check(&Sample::new(&Ack { rate, ..ack(ms(0), 1) }), started);
        (pipe.now, pipe.reached)
    };
    assert_eq!(see(1_000, false, true), (false, false));
    assert_eq!(see(1_240, false, true), (false, false));
    assert_eq!(see(1_240, false, true), (false, false));
    assert_eq!(see(1_250, false, true), (false, false));
    assert_eq!(see(1_250, true, true), (false, false));
    assert_eq!(see(1_250, false, false), (false, false));
    assert_eq!(see(1_560, false, true), (false, false));
    assert_eq!(see(1_560, false, true), (false, false));
    assert_eq!(see(1_560, false, true), (true, true));
    pipe.reset(Rate(0));
    assert_eq!((pipe.now, pipe.reached), (false, true));
}

/// Drain (section 5.3.2) halves the rate, 0.5 * 0.99 * 8 Mbit/s, until what is in flight
/// fits the product of 100 000 bytes, or until the fourth round trip.
#[test]
fn drain_ends_when_the_pipe_is_just_full_or_with_its_fourth_round_trip() {
    let draining = || {
        let mut bbr = settled();
        bbr.state = State::Startup;
        bbr.on_ack(&Ack { in_flight: 150 * MSS, ..steady(ms(10_001)) });
        assert_eq!((bbr.state, rate(&bbr)), (State::Drain, Rate(3_960_000)));
        bbr
    };
    let mut bbr = draining();
    bbr.on_ack(&Ack { in_flight: 101 * MSS, ..steady(ms(10_002)) });
    assert_eq!(bbr.state, State::Drain);
    // No room is kept as no bound is known, so it cruises with the next one.
    bbr.on_ack(&steady(ms(10_003)));
    assert_eq!(bbr.state, State::Cruise);

    let mut bbr = draining();
    for round in 1..=4 {
        assert_eq!(bbr.state, State::Drain);
        let delivered = 1_000_000 + round * 100_000;
        let rate = measured(8_000, delivered - 99_000, delivered);
        bbr.on_ack(&Ack { in_flight: 150 * MSS, rate, ..steady(ms(10_000 + 100 * round)) });
    }
    assert_eq!(bbr.state, State::Down);
}

/// Section 5.3.1.3. In one round trip of a recovery, of 100 segments in flight, six are
/// lost, no two of them neighbours: 6% and six ranges end Startup, and the bound is what
/// has been delivered in the round trip, 120 000 bytes, as that is more than the product.
/// Five ranges do not, nor do six segments of five hundred, nor losses outside of a fast
/// recovery.
#[test]
fn startup_ends_by_many_losses_in_six_ranges() {
    let ended = |ranges: u64, in_flight: u64, phase: Phase| {
        let mut bbr = settled();
        bbr.full_pipe = FullPipe::default();
        bbr.state = State::Startup;
        for range in 0..ranges {
            bbr.on_segment_lost(&lost(2 * range, in_flight, range + 1));
        }
        // Neighbours are one range.
        bbr.on_segment_lost(&lost(2 * ranges - 1, in_flight, ranges + 1));
        bbr.on_ack(&Ack { phase, ..steady(ms(10_050)) });
        assert_eq!(bbr.state, State::Startup);
        let rate = measured(9_600, 1_001_000, 1_101_000).map(|rate| RateSample {
            in_flight: in_flight * MSS,
            lost: 6 * MSS,
            ..rate
        });
        let in_flight = 150 * MSS;
        bbr.on_ack(&Ack { rate, phase, in_flight, ..steady(ms(10_150)) });
        (bbr.state, bbr.path.in_flight_long)
    };
    assert_eq!(ended(6, 100, Phase::Recovery), (State::Drain, 120_000));
    assert_eq!(ended(5, 100, Phase::Recovery).0, State::Startup);
    assert_eq!(ended(6, 500, Phase::Recovery).0, State::Startup);
    assert_eq!(ended(6, 100, Phase::Loss).0, State::Startup);
}

/// Without SACK the first loss of a recovery ends Startup.
#[test]
fn startup_ends_by_one_loss_without_sack() {
    let mut bbr = Bbr::new(&Start { selective: false, ..start() });
    bbr.on_segment_lost(&LostSegment { total_delivered: 0, ..lost(0, 10, 1) });
    bbr.on_ack(&Ack { phase: Phase::Recovery, in_flight: 9 * MSS, ..ack(ms(100), 1) });
    assert_eq!(bbr.state, State::Drain);
}

/// The table of section 5.6.1 for 8 Mbit/s and a product of 100 000 bytes; 1% less of
/// the rate (section 5.6.2), two segments more in the window while probing up (5.6.4.2).
/// The window grows by what arrives, so it is looked at after enough has.
#[test]
fn gains_are_those_of_the_table() {
    let expected = [
        (State::Drain, 3_960_000, 200_000),
        (State::Down, 7_128_000, 200_000),
        (State::Cruise, 7_920_000, 200_000),
        (State::Refill, 7_920_000, 200_000),
        (State::Up, 9_900_000, 227_000),
        (State::ProbeRtt, 7_920_000, 50_000),
    ];
    for (state, pace, window) in expected {
        let mut bbr = settled();
        bbr.state = state;
        let sample = Sample::new(&ack(ms(10_001), 1_000));
        bbr.update_control(&sample);
        assert_eq!((rate(&bbr).0, bbr.window()), (pace, window), "{state:?}");
    }
}

/// Section 5.6.4: at 80 kbit/s the product is one segment, and the window four. At
/// 160 Mbit/s and 1 ms it is 20 000 bytes, but a quantum is 1.25 * 0.99 * 160 kbit,
/// 24 750 bytes, and hosts need three: 74 250 bytes and two segments.
#[test]
fn small_products_leave_room_for_segments_and_quanta() {
    let window = |kbits: u64, round_trip: Span, state: State| {
        let mut bbr = settled();
        bbr.path = super::super::path::Path::new(&start());
        bbr.path.update_max_bandwidth(&Sample::new(&Ack {
            rate: measured(kbits, 0, 0),
            ..ack(ms(0), 1)
        }));
        bbr.path.bound_bandwidth();
        bbr.path.min_round_trip = Some(round_trip);
        bbr.state = state;
        bbr.update_control(&Sample::new(&ack(ms(10_001), 1_000)));
        bbr.window()
    };
    assert_eq!(window(80, Span::millis(100), State::ProbeRtt), 4 * MSS);
    // Three quanta of two segments.
    assert_eq!(window(80, Span::millis(100), State::Cruise), 6 * MSS);
    assert_eq!(window(160_000, Span::millis(1), State::Up), 76_250);
}

/// Section 5.5.9 at 1 000 bytes per ms. The first 10 000 bytes begin an interval; 5 000
/// more within 2 ms, in which 2 000 are expected, make 13 000 in excess. At 40 ms all of
/// it was expected, and the next interval begins with 1 000. The excess is remembered for
/// ten round trips, in Startup for one.
#[test]
fn lumps_of_acknowledgements_widen_the_window() {
    let path = |full: bool| {
        let mut path = settled().path;
        let mut excess = |at: u64, segments: u64, round: u64| {
            let sample = Sample::new(&ack(ms(at), segments));
            path.update_aggregation(&sample, 200 * MSS, round, full);
            path.extra_acked
        };
        [
            excess(10_010, 10, 1),
            excess(10_012, 5, 1),
            excess(10_040, 1, 2),
            excess(10_041, 1, 10),
            excess(10_042, 1, 11),
        ]
    };
    assert_eq!(path(true), [10_000, 13_000, 13_000, 13_000, 1_000]);
    assert_eq!(path(false), [10_000, 13_000, 1_000, 1_000, 1_000]);
}

/// An excess of more than the window is none that the window could use.
#[test]
fn lumps_are_bounded_by_the_window() {
    let mut path = settled().path;
    path.update_aggregation(&Sample::new(&ack(ms(10_010), 500)), 20_000, 1, true);
    assert_eq!(path.extra_acked, 20_000);
}

/// Sections 5.5.4 to 5.5.6: the greatest sample of this cycle and of the last one; one
/// that the application limits counts only if it is greater than that.
#[test]
fn the_bandwidth_is_the_greatest_of_two_cycles() {
    let mut path = super::super::path::Path::new(&start());
    let mut see = |kbits: u64, app_limited: bool, advance: bool| {
        let rate = measured(kbits, 0, 0).map(|rate| RateSample { app_limited, ..rate });
        path.update_max_bandwidth(&Sample::new(&Ack { rate, ..ack(ms(0), 1) }));
        if advance {
            path.advance_max_bandwidth();
        }
        path.max_bandwidth.0 / 1_000
    };
    assert_eq!(see(8_000, false, false), 8_000);
    assert_eq!(see(6_000, false, true), 8_000);
    assert_eq!(see(5_000, false, false), 8_000);
    assert_eq!(see(9_000, true, false), 9_000);
    assert_eq!(see(7_000, true, true), 9_000);
    assert_eq!(see(4_000, true, true), 9_000);
    assert_eq!(see(4_000, false, true), 9_000);
    assert_eq!(see(3_000, false, false), 4_000);
}

/// Section 5.5.10.2: 1 000 bytes of 100 000 in flight are lost after 1 500 were. Losses
/// cross 2% at (99 000 - 50 * 1 500) / 49 = 489 bytes of this segment; if 2 000 had been
/// lost, they would have before it.
#[test]
fn the_threshold_is_crossed_within_a_segment() {
    let segment = LostSegment { lost: 2_500, ..lost(0, 100, 0) };
    assert_eq!(in_flight_at_loss(&segment), 99_489);
    assert_eq!(in_flight_at_loss(&LostSegment { lost: 3_000, ..segment }), 99_000);
}

/// Section 5.5.10.3. A loss while cruising, and a round trip that delivers 6 Mbit/s and
/// 75 000 bytes: the rate falls to that, which is more than 0.7 * 8 Mbit/s; the bound to
/// 0.7 * 200 000 bytes, which is more than 75 000. A second one that delivers 3 Mbit/s
/// and 37 500 bytes: 0.7 of each. A third one without a loss leaves them.
#[test]
fn losses_while_cruising_slow_down_to_what_arrives() {
    let mut bbr = settled();
    let round = |bbr: &mut Bbr, kbits: u64, loss: bool| {
        let from = bbr.rounds.delivered;
        if loss {
            bbr.on_segment_lost(&LostSegment { total_delivered: from, ..lost(0, 100, 9) });
        }
        // A round trip of acknowledgements, the last of which ends it.
        let before = measured(kbits, from - 1, from + 99_000);
        bbr.on_ack(&Ack { rate: before, ..steady(ms(10_100)) });
        let last = measured(kbits, from, from + 100_000);
        bbr.on_ack(&Ack { rate: last, ..steady(ms(10_101)) });
        (bbr.path.bandwidth.0 / 1_000, bbr.path.in_flight_short)
    };
    // What the round before has delivered is forgotten first.
    assert_eq!(round(&mut bbr, 8_000, false), (8_000, UNBOUNDED));
    bbr.losses.reset();
    assert_eq!(round(&mut bbr, 6_000, true), (6_000, 140_000));
    assert_eq!((rate(&bbr), bbr.window()), (Rate(5_940_000), 140_000));
    bbr.losses.reset();
    assert_eq!(round(&mut bbr, 3_000, true), (4_200, 98_000));
    assert_eq!(round(&mut bbr, 3_000, false), (4_200, 98_000));
    bbr.start_refill();
    bbr.path.bound_bandwidth();
    assert_eq!((bbr.path.bandwidth, bbr.path.in_flight_short), (Rate(8_000_000), UNBOUNDED));
}

/// Section 5.6.4.4: a timeout leaves one segment more than is in flight. The next
/// acknowledgement brings the least window back, and the end of the recovery the window.
#[test]
fn a_timeout_lasts_until_the_losses_are_repaired() {
    let mut bbr = settled();
    bbr.on_segment_lost(&lost(0, 100, 1));
    bbr.on_loss(&Loss { window: 200 * MSS, flight: 0 });
    bbr.on_timeout(2 * MSS);
    assert_eq!(bbr.window(), 3 * MSS);
    bbr.on_ack(&Ack { phase: Phase::Loss, ..steady(ms(10_400)) });
    assert_eq!(bbr.window(), 4 * MSS);
    bbr.on_recovered(0);
    assert_eq!(bbr.window(), 200 * MSS);
}

/// Section 5.5.11: a probe is taken up again where losses have ended it, Startup too, and
/// the bounds are what they were.
#[test]
fn a_spurious_recovery_is_undone() {
    let mut bbr = probing();
    bbr.path.in_flight_long = 150_000;
    bbr.control.window = 150 * MSS;
    for segment in 0..3 {
        bbr.on_segment_lost(&lost(segment, 100, segment + 1));
    }
    bbr.on_loss(&Loss { window: 150 * MSS, flight: 0 });
    assert_eq!((bbr.state, bbr.path.in_flight_long), (State::Down, 99_000));
    bbr.on_ack(&Ack { phase: Phase::Recovery, ..steady(ms(10_200)) });
    assert_eq!(bbr.window(), 99 * MSS);
    bbr.on_spurious_recovery(&Before { window: 0, threshold: 0 });
    assert_eq!((bbr.state, bbr.path.in_flight_long), (State::Refill, 150_000));
    assert_eq!(bbr.window(), 150 * MSS);
    // The recovery is over: the next one gives back what is there when it begins.
    bbr.path.in_flight_long = 120_000;
    bbr.control.window = 100 * MSS;
    bbr.on_segment_lost(&lost(10, 100, 1));
    bbr.on_loss(&Loss { window: 100 * MSS, flight: 0 });
    bbr.on_spurious_recovery(&Before { window: 0, threshold: 0 });
    assert_eq!((bbr.path.in_flight_long, bbr.window()), (120_000, 100 * MSS));

    let mut bbr = Bbr::new(&Start { selective: false, ..start() });
    bbr.on_segment_lost(&LostSegment { total_delivered: 0, ..lost(0, 10, 1) });
    bbr.on_ack(&Ack { phase: Phase::Recovery, in_flight: 9 * MSS, ..ack(ms(100), 1) });
    assert_eq!(bbr.state, State::Drain);
    bbr.on_spurious_recovery(&Before { window: 0, threshold: 0 });
    assert_eq!((bbr.state, bbr.full_pipe.reached), (State::Startup, false));
}

/// A mark is one loss per round trip: it ends Startup and a probe, and at other times
/// slows down to what arrives.
#[test]
fn a_mark_counts_as_a_loss_without_sack() {
    let mark = Loss { window: 200 * MSS, flight: 120 * MSS };
    let mut bbr = Bbr::new(&start());
    bbr.on_ecn(&mark);
    bbr.on_ack(&Ack { in_flight: 20 * MSS, ..ack(ms(100), 1) });
    assert_eq!(bbr.state, State::Drain);

    let mut bbr = probing();
    bbr.on_ecn(&mark);
    assert_eq!((bbr.state, bbr.path.in_flight_long), (State::Down, 120_000));

    let mut bbr = settled();
    bbr.on_ecn(&mark);
    assert_eq!(bbr.path.in_flight_long, UNBOUNDED);
    bbr.on_ack(&Ack { rate: measured(6_000, 1_000_000, 1_100_000), ..steady(ms(10_100)) });
    assert_eq!(bbr.path.bandwidth, Rate(6_000_000));
}
