//! ProbeBW and ProbeRTT, worked by hand.

use super::super::UNBOUNDED;
use super::*;

/// Section 5.3.3.8: between two and three seconds, and 0 or 1 round trips, as drawn from
/// the seed. Over a thousand seeds the mean is 2.5 s to within four standard errors.
#[test]
fn waits_are_drawn_between_two_and_three_seconds() {
    let mut sum = 0;
    let mut ones = 0;
    for seed in 0..1_000 {
        let draw = || {
            let mut bbr = Bbr::new(&Start { seed, ..start() });
            bbr.start_down(ms(0));
            (bbr.cycle.wait, bbr.cycle.rounds_since_up)
        };
        let (wait, rounds) = draw();
        assert_eq!(draw(), (wait, rounds));
        assert!((Span::seconds(2)..Span::seconds(3)).contains(&wait) && rounds < 2);
        sum += wait.0 / 1_000_000;
        ones += rounds;
    }
    assert!((2_463..=2_537).contains(&(sum / 1_000)), "{sum}");
    assert!((437..=563).contains(&ones), "{ones}");
}

/// The next probe comes with the clock, or when a Reno flow would have grown by the
/// product: after 63 round trips for 100 segments, after ten for ten.
#[test]
fn probes_come_with_the_clock_or_with_renos_growth() {
    let rounds_until_probe = |window: u64| {
        let mut bbr = settled();
        bbr.cycle.rounds_since_up = 0;
        bbr.control.window = window * MSS;
        // Keeps the window where it is.
        bbr.path.in_flight_short = window * MSS;
        (1..100).find(|round| {
            let total = 1_000_000 + round * 1_000;
            let rate = measured(8_000, total - 1_000, total);
            bbr.on_ack(&Ack { rate, in_flight_before: 0, ..steady(ms(10_001)) });
            bbr.state == State::Refill
        })
    };
    assert_eq!(rounds_until_probe(200), Some(63));
    assert_eq!(rounds_until_probe(10), Some(10));
    let mut bbr = settled();
    let wait = bbr.cycle.wait;
    bbr.on_ack(&steady(ms(10_000) + wait));
    assert_eq!(bbr.state, State::Cruise);
    bbr.on_ack(&steady(ms(10_000) + wait + Span(1)));
    assert_eq!(bbr.state, State::Refill);
}

/// A cycle: a round trip to refill, three without growth to probe, down until what is in
/// flight fits the product, and on. The bandwidth of the cycle before the last is forgotten
/// a round trip after the probe (section 5.3.3.9).
#[test]
fn a_cycle_refills_probes_drains_and_cruises() {
    let mut bbr = settled();
    bbr.start_refill();
    let mut total = 1_000_000;
    let mut round = |bbr: &mut Bbr, in_flight: u64| {
        let prior = total;
        total += 100_000;
        let now = ms(10_000 + total / 10_000);
        let in_flight = in_flight * MSS;
        bbr.on_ack(&Ack { rate: measured(8_000, prior, total), in_flight, ..steady(now) });
        bbr.state
    };
    assert_eq!(round(&mut bbr, 100), State::Up);
    assert!(bbr.cycle.is_probe_sample);
    assert_eq!(round(&mut bbr, 125), State::Up);
    assert_eq!(round(&mut bbr, 150), State::Up);
    assert_eq!(round(&mut bbr, 175), State::Down);
    assert_eq!(bbr.path.max_bandwidth, Rate(8_000_000));
    assert_eq!(round(&mut bbr, 150), State::Down);
    assert!(!bbr.cycle.is_probe_sample);
    assert_eq!(round(&mut bbr, 101), State::Down);
    assert_eq!(round(&mut bbr, 100), State::Cruise);
}

/// Section 5.5.10.2: three of a hundred segments are lost while the flow probes. The third
/// one crosses 2%: 2 000 bytes had been lost before it, so none of it fits, and 99 000
/// bytes is the bound. Down keeps to it, cruising to 0.85 of it.
#[test]
fn a_probe_that_loses_two_per_cent_sets_the_bound() {
    let mut bbr = probing();
    bbr.on_segment_lost(&lost(0, 100, 1));
    bbr.on_segment_lost(&lost(1, 100, 2));
    assert_eq!((bbr.state, bbr.path.in_flight_long), (State::Up, UNBOUNDED));
    bbr.on_segment_lost(&lost(2, 100, 3));
    assert_eq!((bbr.state, bbr.path.in_flight_long), (State::Down, 99_000));
    // One answer per probe.
    bbr.on_segment_lost(&lost(3, 50, 4));
    assert_eq!(bbr.path.in_flight_long, 99_000);
    bbr.on_ack(&Ack { in_flight: 90 * MSS, ..steady(ms(10_150)) });
    assert_eq!((bbr.state, bbr.window()), (State::Down, 99_000));
    bbr.on_ack(&Ack { in_flight: 84 * MSS, ..steady(ms(10_160)) });
    assert_eq!((bbr.state, bbr.window()), (State::Cruise, 84_150));
}

/// Beta: of a small flight that loses, 0.7 of the target is left, 70 000 bytes. What the
/// application has limited says nothing about the path, but ends the probe.
#[test]
fn the_bound_falls_no_further_than_cubics() {
    let mut bbr = probing();
    bbr.on_segment_lost(&lost(0, 20, 1));
    assert_eq!((bbr.state, bbr.path.in_flight_long), (State::Down, 70_000));
    let mut bbr = probing();
    bbr.on_segment_lost(&LostSegment { app_limited: true, ..lost(0, 20, 1) });
    assert_eq!((bbr.state, bbr.path.in_flight_long), (State::Down, UNBOUNDED));
}

/// Section 5.3.3.6. After a probe that went too far, the next one stops when it reaches
/// the bound; if nothing is lost within a round trip, another one follows at once, and
/// does not stop there.
#[test]
fn a_probe_after_losses_is_careful() {
    let mut bbr = probing();
    bbr.cycle.last_probe_too_high = true;
    bbr.path.in_flight_long = 110_000;
    bbr.on_ack(&Ack { in_flight: 109 * MSS, ..steady(ms(10_110)) });
    assert_eq!(bbr.state, State::Up);
    bbr.on_ack(&Ack { in_flight: 110 * MSS, ..steady(ms(10_120)) });
    assert_eq!(bbr.state, State::Down);
    let rate = measured(8_000, 1_100_000, 1_200_000);
    bbr.on_ack(&Ack { rate, ..steady(ms(10_220)) });
    assert_eq!(bbr.state, State::Refill);
    let rate = measured(8_000, 1_200_000, 1_300_000);
    bbr.on_ack(&Ack { rate, in_flight: 110 * MSS, ..steady(ms(10_320)) });
    assert_eq!(bbr.state, State::Up);
    let rate = measured(8_000, 1_250_000, 1_301_000);
    bbr.on_ack(&Ack { rate, in_flight: 110 * MSS, ..steady(ms(10_330)) });
    assert_eq!(bbr.state, State::Up);
}

/// The same with a window of 100 segments, which is all that the bound allows.
fn probing_at_its_bound() -> Bbr {
    let mut bbr = settled();
    bbr.path.in_flight_long = 100_000;
    bbr.control.window = 100 * MSS;
    bbr.start_refill();
    bbr.on_ack(&next_round(ms(10_100)));
    assert_eq!((bbr.state, bbr.window()), (State::Up, 100_000));
    bbr
}

/// `ProbeInflightLongtermUpward`: with a window of 100 segments that is full, the bound
/// of as many grows by one for each 100 acknowledged in the first round trip of the probe,
/// for each 50 in the second, each 25 in the third, but for what the window has grown.
#[test]
fn the_bound_grows_by_one_two_four() {
    let mut bbr = probing_at_its_bound();
    let mut total = 1_001_000;
    let mut grown = |segments: u64, starts: bool| {
        let prior = if starts { total } else { 0 };
        let before = bbr.path.in_flight_long;
        total += segments * MSS;
        let in_flight_before = bbr.window();
        let rate = measured(8_000, prior, total);
        bbr.on_ack(&Ack { rate, in_flight_before, ..ack(ms(10_110), segments) });
        assert_eq!(bbr.state, State::Up);
        (bbr.path.in_flight_long - before) / MSS
    };
    assert_eq!([grown(99, false), grown(1, false)], [0, 1]);
    // The acknowledgement that ends the round trip counts by the old slope.
    // A segment for each 101 000 / 2 bytes, of which 1 000 have come.
    assert_eq!([grown(1, true), grown(49, false), grown(1, false)], [0, 0, 1]);
    // For each 103 000 / 4 from the second acknowledgement on, which leaves 1 000.
    assert_eq!([grown(50, false), grown(1, true)], [1, 0]);
    assert_eq!([grown(25, false), grown(26, false), grown(26, false)], [1, 1, 1]);
}

/// A bound that holds the probe back hides what the path has: the search for a plateau
/// starts again with each acknowledgement that finds the window at the bound. If nothing
/// held it back after the first round trip, the fourth would be the last.
#[test]
fn a_probe_at_its_bound_goes_on() {
    let last = |in_flight_before: u64| {
        let mut bbr = probing_at_its_bound();
        let mut total = 1_001_000;
        (1..7).find(|_| {
            let rate = measured(8_000, total, total + 1_000);
            total += 1_000;
            bbr.on_ack(&Ack { rate, in_flight_before, ..ack(ms(10_110), 1) });
            bbr.state != State::Up
        })
    };
    assert_eq!(last(100_000), None);
    assert_eq!(last(50_000), Some(4));
}

/// Losses of what was not sent to probe leave the bound alone, and more in flight without
/// losses raises it.
#[test]
fn what_was_tolerated_raises_the_bound() {
    let mut bbr = settled();
    bbr.on_segment_lost(&lost(0, 20, 9));
    assert_eq!(bbr.path.in_flight_long, UNBOUNDED);
    bbr.path.in_flight_long = 100_000;
    let sample = |in_flight, lost| {
        measured(8_000, 900_000, 1_001_000).map(|rate| RateSample { in_flight, lost, ..rate })
    };
    bbr.on_ack(&Ack { rate: sample(120_000, 2_401), ..steady(ms(10_001)) });
    assert_eq!(bbr.path.in_flight_long, 100_000);
    bbr.on_ack(&Ack { rate: sample(120_000, 2_400), ..steady(ms(10_002)) });
    assert_eq!(bbr.path.in_flight_long, 120_000);
}

/// Section 5.3.4: the least round trip is 100 ms at 10 s. Longer ones leave it for five
/// seconds; then half of the product, 50 000 bytes, is let into the network, for 200 ms
/// and a round trip from when no more is in flight. The window comes back, and the flow
/// cruises. The round trip of the path is forgotten after ten seconds.
#[test]
fn probe_rtt_halves_what_is_in_flight_for_200_ms() {
    let mut bbr = settled();
    bbr.cycle.rounds_since_up = 0;
    let mut see = |at: u64, in_flight: u64, prior: u64| {
        bbr.cycle.rounds_since_up = 0;
        let rate = measured(8_000, prior, prior + 100_000);
        let latest_round_trip = Some(Span::millis(110));
        let in_flight = in_flight * MSS;
        bbr.on_ack(&Ack { rate, latest_round_trip, in_flight, ..steady(ms(at)) });
        let least = bbr.path.min_round_trip.map(|it| it.0 / 1_000_000);
        (bbr.state == State::ProbeRtt, bbr.window() / MSS, least)
    };
    let product = Some(100);
    // Probes for bandwidth come every two to three seconds; this one is left out.
    assert_eq!(see(12_000, 100, 950_000), (false, 200, product));
    assert_eq!(see(15_001, 100, 950_000), (true, 50, product));
    assert_eq!(see(15_050, 60, 950_000), (true, 50, product));
    assert_eq!(see(15_100, 50, 1_000_000), (true, 50, product));
    // A round trip is over, 200 ms are not.
    assert_eq!(see(15_250, 50, 1_110_000), (true, 50, product));
    assert_eq!(see(15_300, 50, 1_210_000), (true, 50, product));
    assert_eq!(see(15_301, 50, 1_210_000), (false, 200, product));
    assert_eq!(see(20_001, 100, 1_300_000), (false, 200, Some(110)));
}

/// A flow that has never filled the pipe goes back to Startup; the silence of the
/// application saves ProbeRTT; a shorter round trip counts at once.
#[test]
fn probe_rtt_in_startup_and_after_a_silence() {
    let mut bbr = Bbr::new(&start());
    bbr.on_ack(&ack(ms(5_001), 1));
    assert_eq!(bbr.state, State::ProbeRtt);
    assert!(bbr.holds_back());
    bbr.on_ack(&Ack { rate: measured(800, 10_000, 20_000), ..ack(ms(5_300), 1) });
    assert_eq!(bbr.state, State::Startup);

    let mut bbr = settled();
    bbr.on_restart(ms(16_000));
    let latest_round_trip = Some(Span::millis(90));
    bbr.on_ack(&Ack { latest_round_trip, ..steady(ms(16_100)) });
    assert_ne!(bbr.state, State::ProbeRtt);
    assert_eq!(bbr.path.min_round_trip, latest_round_trip);
}

/// Section 5.4.1: after a silence a cycling flow paces at the bandwidth, whatever the
/// phase, and keeps its window.
#[test]
fn a_restart_paces_at_the_bandwidth() {
    let mut bbr = settled();
    bbr.state = State::Up;
    bbr.set_pacing_rate(125);
    bbr.on_idle(10 * MSS);
    bbr.on_restart(ms(12_000));
    assert_eq!((rate(&bbr), bbr.window()), (Rate(7_920_000), 200 * MSS));
    // ProbeRTT that was over when the application fell silent ends with the restart.
    let mut bbr = settled();
    bbr.on_ack(&Ack { in_flight: 50 * MSS, ..steady(ms(15_001)) });
    assert_eq!(bbr.state, State::ProbeRtt);
    bbr.on_restart(ms(15_201));
    assert_eq!(bbr.state, State::ProbeRtt);
    bbr.on_restart(ms(15_202));
    assert_eq!((bbr.state, bbr.window()), (State::Cruise, 200 * MSS));
}
