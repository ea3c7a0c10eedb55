//! Endpoints against formulas: the square-root law of Reno's throughput, and
//! the window of CUBIC over time.

use std::collections::BTreeSet;

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::tcp::congestion::CUBIC;
use tidegate_sim::tcp::{DelayedAck, TcpConfig};

use crate::pair::{CLIENT, Fate, Pair, SERVER};

const MSS: u64 = 1_460;

/// A receive window that never limits.
const UNLIMITED: Bytes = Bytes(1 << 30);

/// Segments per round trip in steady state, for a share of `loss` per million
/// of all data segments, and the share of losses that ended in a timeout.
fn window_in_equilibrium(config: TcpConfig, rtt: Span, loss: u64, seed: u64) -> (f64, f64) {
    let mut state = seed;
    let mut pair = Pair::new(config.clone(), config).upload(u64::MAX / 2).deciding(
        move |from, header, number| {
            // A multiplicative generator modulo 2^61 - 1.
            state = (u128::from(state) * 437_799_614_237_992_725 % ((1 << 61) - 1)) as u64;
            // Slow start ends by a loss, and is not counted.
            let random = state % 1_000_000 < loss;
            let lost = from == CLIENT && header.payload > 0 && (random || number == 60);
            if lost { Fate::Lose } else { Fate::Pass }
        },
    );
    pair.traced = false;
    pair.delay = rtt / 2;
    let warm_up = Time::ZERO + rtt * 200;
    pair.run_until(warm_up);
    let before = (pair.ends[SERVER].delivered(), *pair.ends[CLIENT].statistics());
    // About 700 losses give the mean an error of two or three per cent.
    let segments = 700_000_000 / loss;
    let enough = before.0 + segments * MSS;
    while pair.ends[SERVER].delivered() < enough {
        assert!(pair.step(Time::FAR_FUTURE));
    }
    let sent = *pair.ends[CLIENT].statistics();
    let rounds = pair.now.since(warm_up).as_seconds() / rtt.as_seconds();
    let timeouts = f64::from(sent.timeouts - before.1.timeouts);
    let recoveries = f64::from(sent.fast_recoveries - before.1.fast_recoveries);
    let delivered = (pair.ends[SERVER].delivered() - before.0) / MSS;
    (delivered as f64 / rounds, timeouts / (timeouts + recoveries))
}

/// Mathis et al. 1997: a window that grows by 1/b per round trip and is halved
/// by each loss carries sqrt(3 / (2 b p)) segments per round trip, if nothing
/// but that happens. The band at a loss of up to 0.5% is 0.87 to 1.05 of the law.
/// Above, recoveries and timeouts take their share of the short periods between
/// losses (a timeout of 1 s is 10 round trips of 100 ms), and the band starts at
/// 0.8 and 0.75. The law with the wrong `b` is off by 1.41, which is outside of
/// the band.
#[test]
fn reno_follows_the_square_root_law() {
    let delayed = Some(DelayedAck { segments: 2, timeout: Span::millis(40) });
    let mut report = String::new();
    let mut outside = 0;
    for (loss, least) in
        [(1_000, 0.87), (2_000, 0.87), (5_000, 0.87), (10_000, 0.8), (20_000, 0.75)]
    {
        for (rtt, sack) in [(100, true), (100, false), (300, true), (300, false)] {
            let [single, double] = [(1.0, None), (2.0, delayed)].map(|(b, delayed_ack)| {
                let limited_transmit = true;
                let papers = TcpConfig::papers();
                let receive_window = UNLIMITED;
                let config =
                    TcpConfig { sack, delayed_ack, limited_transmit, receive_window, ..papers };
                let (window, timeouts) =
                    window_in_equilibrium(config, Span::millis(rtt), loss, 7 + loss);
                assert!(timeouts < 0.2, "timeouts dominate: {timeouts}");
                let law = (1.5 / (b * loss as f64 / 1e6)).sqrt();
                let ratio = window / law;
                report += &format!(
                    "b {b}, loss {loss} ppm, {rtt} ms, SACK {sack}: {window:.1} segments, \
                     {ratio:.3} of the law, {timeouts:.3} timeouts\n"
                );
                outside += u32::from(!(least..1.05).contains(&ratio));
                window
            });
            let power = single / double;
            assert!((1.2..1.7).contains(&power), "b makes no difference: {power}");
        }
    }
    assert_eq!(outside, 0, "{report}");
}

/// Window in segments at each acknowledgement after the first loss's recovery,
/// with the time since it began to grow again; and the window before the loss.
fn cubic_windows(rtt: Span, initial: u64, until: Span) -> (f64, Vec<(f64, f64)>) {
    let config = TcpConfig {
        sack: true,
        congestion: CUBIC,
        initial_ssthresh: Some(Bytes(initial * MSS)),
        initial_window: initial as u32,
        delayed_ack: None,
        receive_window: UNLIMITED,
        ..TcpConfig::papers()
    };
    let mut pair = Pair::new(config.clone(), config).upload(u64::MAX / 2).losing(&[initial * 4]);
    pair.traced = false;
    pair.delay = rtt / 2;
    let mut before = 0.0;
    let mut start = None;
    let mut windows = Vec::new();
    let segments = |bytes: u64| bytes as f64 / MSS as f64;
    pair.poll(CLIENT);
    pair.poll(SERVER);
    while start.is_none_or(|start| pair.now.since(start) < until) {
        let old = pair.ends[CLIENT].congestion_window();
        assert!(pair.step(Time::FAR_FUTURE));
        let client = &pair.ends[CLIENT];
        let window = client.congestion_window();
        match start {
            None if window < old => before = segments(old),
            None if before > 0.0 && window > old => start = Some(pair.now),
            _ => {}
        }
        if let Some(start) = start {
            windows.push((pair.now.since(start).as_seconds(), segments(window)));
        }
    }
    (before, windows)
}

/// RFC 9438 equations 1 and 2: at a round trip of 400 ms the curve is above
/// Reno's line from the start, and the window follows the curve to within a round
/// trip and a segment, the unit in which it grows: it aims at W(t + RTT), and what is
/// acknowledged was sent a round trip ago.
#[test]
fn cubic_follows_its_curve() {
    let (before, windows) = cubic_windows(Span::millis(400), 200, Span::seconds(20));
    // The flight at the loss is the window, give or take the segments that
    // the pipe held back.
    let first = windows[0].1;
    assert!((first / before - 0.7).abs() < 0.02, "{first} after {before}");
    let k = ((before - first) / 0.4).cbrt();
    let curve = |t: f64| 0.4 * (t - k).powi(3) + before;
    for (t, window) in windows.iter().filter(|(t, _)| *t > 0.4) {
        let band = curve(t - 0.4) * 0.995 - 1.0..curve(t + 0.4) * 1.005 + 1.0;
        assert!(band.contains(window), "{window} at {t} s is outside of {band:?}");
    }
    let (_, last) = windows.last().expect("there are acknowledgements");
    assert!(*last > 5.0 * before, "the curve has not been climbed: {last}");
}

/// At 10 ms Reno's line is above the curve for the first seconds. It rises by 8/15
/// segment per round trip in Linux. The line and the window rise by whole segments, and the
/// window looks at the line when it has grown or 1/32 s is over, with the fourth round
/// trip: it is up to two segments and four times 8/15 behind. What was delivered before
/// counts by the window of that moment, which is larger by one of 30 or so.
#[test]
fn cubic_is_friendly_to_reno() {
    let rtt = 0.01;
    let (_, windows) = cubic_windows(Span::millis(10), 40, Span::seconds(1));
    let first = windows[0].1;
    for (t, window) in &windows {
        let line = first + t / rtt * 8.0 / 15.0;
        let band = line - 4.2 - (line - first) / 30.0..=line + 1.0;
        assert!(band.contains(window), "{window} at {t} s is outside of {band:?}");
    }
}

/// Losses go on and on, as they do at a queue that has been too long for a while:
/// every fiftieth segment is lost the first time. A recovery then takes two round
/// trips, and at its end most of what is not acknowledged has arrived beyond
/// the next hole. Each recovery leaves 0.7 of what the one before it left, or a
/// little more if the window has grown between the two.
#[test]
fn every_recovery_in_a_row_shrinks_the_window() {
    let config = TcpConfig {
        initial_window: 1_000,
        initial_ssthresh: Some(Bytes(1_000 * 1_448)),
        receive_window: UNLIMITED,
        ..TcpConfig::today()
    };
    let mut segments = 0_u32;
    let mut sent_before = BTreeSet::new();
    let mut pair =
        Pair::new(config.clone(), config).upload(u64::MAX / 2).deciding(move |from, header, _| {
            let first = from == CLIENT && header.payload > 0 && sent_before.insert(header.sequence);
            segments += u32::from(first);
            if first && segments.is_multiple_of(50) { Fate::Lose } else { Fate::Pass }
        });
    pair.traced = false;
    pair.poll(CLIENT);
    pair.poll(SERVER);
    let mut left = 1_000.0;
    for recovery in 1..=8 {
        while pair.ends[CLIENT].statistics().fast_recoveries < recovery {
            assert!(pair.step(Time::FAR_FUTURE));
        }
        let before = left;
        left = pair.ends[CLIENT].slow_start_threshold() as f64 / 1_448.0;
        let ratio = left / before;
        assert!((0.69..0.75).contains(&ratio), "recovery {recovery} leaves {left} of {before}");
    }
}
