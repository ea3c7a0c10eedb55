//! Segments leave at the controller's pacing rate.
//!
//! The rate is one segment per millisecond unless a test says otherwise, so that
//! a burst is two segments: a millisecond's worth is one, and two are the least.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate_core::{Bytes, Rate, Span, Time};
use tidegate_sim::tcp::congestion::{Entry, NEW_RENO};
use tidegate_sim::tcp::{Endpoint, Header, TcpConfig};

use crate::pair::controllers::fixed;
use crate::pair::{CLIENT, Pair, SERVER};

const MSS: u64 = 1_460;
/// One segment per millisecond.
const RATE: u64 = MSS * 8 * 1_000;
const MILLISECOND: u64 = 1_000_000;

fn config(congestion: &'static Entry) -> TcpConfig {
    TcpConfig { congestion, receive_window: Bytes(1 << 30), ..TcpConfig::papers() }
}

fn pair(config: &TcpConfig) -> Pair {
    let mut pair = Pair::new(config.clone(), config.clone());
    pair.traced = false;
    pair
}

/// When the client has sent which segments with payload, until `end`.
fn departures(pair: &mut Pair, end: Time) -> Vec<(Time, Header)> {
    let mut sent = Vec::new();
    pair.observe = true;
    pair.poll(CLIENT);
    pair.poll(SERVER);
    loop {
        let segments = pair.observed_sent.drain(..);
        let data = segments.filter(|(from, header)| *from == CLIENT && header.payload > 0);
        sent.extend(data.map(|(_, header)| (pair.now, header)));
        pair.observed_arrived.clear();
        if !pair.step(end) {
            return sent;
        }
    }
}

/// How many leave at the same time, and at which microsecond.
fn bursts(sent: &[(Time, Header)]) -> Vec<(u64, usize)> {
    let same = sent.chunk_by(|one, other| one.0 == other.0);
    same.map(|burst| (burst[0].0.0 / 1_000, burst.len())).collect()
}

/// The most that `sent` is ahead of the rate at any time, in bytes.
fn most_ahead(sent: &[(Time, Header)], rate: Rate) -> u64 {
    let mut paid_at = Time::ZERO;
    let ahead = sent.iter().map(|(at, header)| {
        paid_at = paid_at.max(*at) + rate.transmission(Bytes(u64::from(header.payload)));
        rate.volume(paid_at.since(*at)).0
    });
    ahead.max().unwrap_or(0)
}

/// The first ten segments leave at once when the handshake is done, at 100 ms. The
/// rate pays for the burst of two that makes them ten, and from then on two leave
/// every two milliseconds.
#[test]
fn a_burst_leaves_at_a_time() {
    let mut pair = pair(&config(fixed::<1_000, RATE>())).upload(40 * MSS);
    let sent = departures(&mut pair, Time(1_000 * MILLISECOND));
    let mut expected = vec![(100_000, 10)];
    expected.extend((1..16).map(|pair| (100_000 + 2_000 * pair, 2)));
    assert_eq!(bursts(&sent), expected);
    assert_eq!(pair.ends[SERVER].delivered(), 40 * MSS);
    assert_eq!(pair.ends[CLIENT].statistics().retransmissions, 0);
}

/// What leaves when 400 segments are written at 1 500 ms, after 20 and a pause.
fn after_a_pause(congestion: &'static Entry) -> Vec<(u64, usize)> {
    let mut pair = pair(&config(congestion)).upload(20 * MSS);
    departures(&mut pair, Time(1_000 * MILLISECOND));
    pair.now = Time(1_500 * MILLISECOND);
    pair.ends[CLIENT].write(400 * MSS);
    let sent = departures(&mut pair, Time(3_000 * MILLISECOND));
    assert_eq!(pair.ends[SERVER].delivered(), 420 * MSS);
    bursts(&sent)
}

/// A pause earns half a burst: the second one leaves after one millisecond instead of
/// two. The others follow at the rate, whatever acknowledgements do.
#[test]
fn a_pause_earns_half_a_burst() {
    let mut expected = vec![(1_500_000, 2)];
    expected.extend((0..199).map(|pair| (1_501_000 + 2_000 * pair, 2)));
    assert_eq!(after_a_pause(fixed::<1_000, RATE>()), expected);
}

/// At twenty segments per millisecond a burst is a 1 024th of a second's worth, rounded
/// down to nineteen: 950 microseconds.
#[test]
fn a_burst_is_about_a_millisecond() {
    let mut expected = vec![(1_500_000, 19)];
    expected.extend((0..20).map(|burst| (1_500_475 + 950 * burst, 19)));
    expected.push((1_519_475, 1));
    assert_eq!(after_a_pause(fixed::<1_000, { 20 * RATE }>()), expected);
}

/// A window of six segments holds two bursts of three, however high the rate is.
#[test]
fn a_window_holds_two_bursts() {
    let mut pair = pair(&config(fixed::<6, { 20 * RATE }>())).upload(30 * MSS);
    let sent = departures(&mut pair, Time(1_000 * MILLISECOND));
    // The first nine are not paced. The burst of the tenth is, but then the window is
    // used, and half of the burst after a pause.
    assert_eq!(bursts(&sent)[..4], [(100_000, 6), (200_000, 6), (300_000, 3), (300_075, 3)]);
}

/// A window of 20 segments and a round trip of 100 ms, without a rate of the controller's
/// own. In slow start twice the window per round trip leaves, two in 5 ms; above half of the
/// threshold 1.2 times the window. At 200 ms the first acknowledgement makes the window
/// 21 and lets a burst go, half of which the pause has paid for, and with the tenth the
/// window is 30.
#[test]
fn a_window_sets_the_pace() {
    let sent = |threshold: Option<u64>| {
        let config = TcpConfig {
            pacing: true,
            initial_window: 20,
            initial_ssthresh: threshold.map(|segments| Bytes(segments * MSS)),
            delayed_ack: None,
            ..config(NEW_RENO)
        };
        let mut pair = pair(&config).upload(200 * MSS);
        let sent = departures(&mut pair, Time(210 * MILLISECOND));
        bursts(&sent)
    };
    let slow_start = [100_000, 105_000, 110_000, 115_000, 120_000, 125_000];
    let mut expected: Vec<_> = slow_start.map(|at| (at, 2)).into();
    expected[0].1 = 10;
    expected.extend([(200_000, 2), (202_380, 2)]);
    assert_eq!(sent(None)[..8], expected);
    assert_eq!(sent(Some(20))[..3], [(100_000, 10), (108_333, 2), (116_666, 2)]);
    assert_eq!(sent(Some(41))[..2], [(100_000, 10), (105_000, 2)]);
}

/// Thirty segments in a row are lost. What is sent again leaves at the rate too:
/// apart from the first retransmission, which waits for nothing, no more than two
/// bursts are ever ahead of it.
#[test]
fn retransmissions_are_paced() {
    let lost: Vec<u64> = (100..130).collect();
    for rack_tlp in [false, true] {
        let config = TcpConfig { sack: true, rack_tlp, ..config(fixed::<100, RATE>()) };
        let mut pair = pair(&config).upload(400 * MSS).losing(&lost);
        let sent = departures(&mut pair, Time(5_000 * MILLISECOND));
        assert_eq!(pair.ends[SERVER].delivered(), 400 * MSS, "RACK {rack_tlp}");
        assert_eq!(pair.ends[CLIENT].statistics().timeouts, 0, "RACK {rack_tlp}");
        let mut highest = 0;
        let repeated: Vec<_> = sent
            .iter()
            .filter(|(_, header)| {
                let again = header.sequence <= highest;
                highest = highest.max(header.sequence);
                again
            })
            .collect();
        assert_eq!(repeated.len(), 30, "RACK {rack_tlp}");
        let took = repeated[29].0.since(repeated[0].0);
        assert!(took >= Span::millis(26), "RACK {rack_tlp}: {took}");
        let ahead = most_ahead(&sent[10..], Rate(RATE));
        assert!(ahead <= 5 * MSS, "RACK {rack_tlp}: {ahead} bytes");
    }
}

/// At 1 bit/s a segment takes more than three hours. What waits for its departure
/// is neither overdue nor given up, and losses are repaired.
#[test]
fn a_tiny_rate_only_takes_long() {
    for entry in [fixed::<20, 1>(), fixed::<20, 0>(), fixed::<20, 8_000>()] {
        for (sack, rack_tlp) in [(false, false), (true, false), (true, true)] {
            let config = TcpConfig { sack, rack_tlp, ..config(entry) };
            let mut pair = pair(&config).transfer(16 * MSS).losing(&[3, 9, 12, 16, 17]);
            pair.run_until(Time(Span::seconds(10_000_000).0));
            let statistics = *pair.ends[CLIENT].statistics();
            assert!(pair.ends[CLIENT].is_closed(), "SACK {sack}, RACK {rack_tlp}: {statistics:?}");
            assert_eq!(pair.ends[SERVER].delivered(), 16 * MSS);
            assert!(statistics.retransmissions <= 10, "{statistics:?}");
        }
    }
}

/// When that connection has measured a round trip of 100 ms: bursts on a shorter path
/// are longer.
const OPEN: Time = Time(200 * MILLISECOND);

/// An endpoint with an open connection and more to send than a test needs. Its
/// retransmission timer does not matter, and its peer's window, which the SYN could
/// not tell, is wide.
fn sender() -> Endpoint {
    let config = TcpConfig {
        min_rto: Span::seconds(1_000),
        max_rto: Span::seconds(1_000),
        delayed_ack: None,
        ..config(fixed::<100_000, RATE>())
    };
    let config = Arc::new(config);
    let mut client = Endpoint::connect(config.clone(), 1);
    let mut server = Endpoint::listen(config, 2);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    client.poll(Time::ZERO, &mut up);
    server.on_segment(Time::ZERO, &up[0], false, &mut down);
    up.clear();
    client.write(MSS);
    client.on_segment(Time(100 * MILLISECOND), &down[0], false, &mut up);
    down.clear();
    for header in &up {
        server.on_segment(OPEN, header, false, &mut down);
    }
    client.on_segment(OPEN, &down[0], false, &mut up);
    client.write(100_000 * MSS);
    client
}

/// Bytes that leave in so many calls of the timer, each `late`, and the time from
/// the first of them to the last.
fn sent_when_late(late: Span, calls: u32) -> (u64, Span) {
    let mut client = sender();
    let mut out = Vec::new();
    client.poll(OPEN, &mut out);
    out.clear();
    let (mut first, mut now) = (None, OPEN);
    for _ in 0..calls {
        now = client.next_timer().expect("there is more to send") + late;
        first = first.or(Some(now));
        client.on_timer(now, &mut out);
    }
    let bytes = out.iter().map(|header| u64::from(header.payload)).sum();
    (bytes, now.since(first.expect("there were calls")))
}

/// A timer that is late by up to half a burst's time loses no rate. One that is late by
/// six milliseconds is credited one of them: a burst of two takes seven.
#[test]
fn a_late_timer_loses_no_rate_but_beyond_half_a_burst() {
    let burst = 2 * MSS;
    for tenths in 0..=10 {
        let late = Span::micros(100 * tenths);
        let (bytes, took) = sent_when_late(late, 1_000);
        let due = Rate(RATE).volume(took).0;
        assert!(bytes.abs_diff(due) <= 2 * burst, "{late}: {bytes} bytes, {due} due");
    }
    let (bytes, took) = sent_when_late(Span::millis(6), 1_000);
    let share = bytes as f64 / Rate(RATE).volume(took).0 as f64;
    assert!((share - 2.0 / 7.0).abs() < 0.01, "{share}");
}

proptest! {
    /// Calls between the departures change none of them.
    #[test]
    fn calls_in_between_change_nothing(between in prop::collection::vec(0_u64..300_000, 1..400)) {
        let mut out = Vec::new();
        let mut undisturbed = sender();
        undisturbed.poll(OPEN, &mut out);
        let mut other = sender();
        let mut others = Vec::new();
        other.poll(OPEN, &mut others);
        let mut now = OPEN;
        for span in between {
            now += Span(span);
            while undisturbed.next_timer().is_some_and(|at| at <= now) {
                let at = undisturbed.next_timer().expect("it is due");
                undisturbed.on_timer(at, &mut out);
                other.on_timer(at, &mut others);
                prop_assert_eq!(&out, &others);
            }
            other.on_timer(now, &mut others);
            other.poll(now, &mut others);
            prop_assert_eq!(&out, &others);
            prop_assert_eq!(undisturbed.next_timer(), other.next_timer());
        }
    }
}
