//! What a sender tells a controller that samples delivery rates.

use proptest::prelude::*;
use tidegate_core::{Bytes, Rate, Span, Time};
use tidegate_sim::tcp::congestion::{Ack, Entry, NEW_RENO, Phase, RateSample};
use tidegate_sim::tcp::{DelayedAck, TcpConfig};

use crate::pair::controllers::{Heard, sampling, take_log};
use crate::pair::{CLIENT, Pair, SERVER};

const MSS: u64 = 1_460;
const MILLISECOND: u64 = 1_000_000;

fn config(congestion: &'static Entry) -> TcpConfig {
    TcpConfig {
        congestion,
        sack: true,
        rack_tlp: true,
        delayed_ack: None,
        receive_window: Bytes(1 << 20),
        ..TcpConfig::papers()
    }
}

/// The server's own controller must not write into the log.
fn ends(client: TcpConfig) -> Pair {
    let server = TcpConfig { congestion: NEW_RENO, ..client.clone() };
    let mut pair = Pair::new(client, server);
    pair.traced = false;
    pair
}

fn acks(log: &[Heard]) -> impl Iterator<Item = Ack> {
    log.iter().filter_map(|heard| if let Heard::Ack(ack) = heard { Some(*ack) } else { None })
}

fn rates(log: &[Heard]) -> Vec<RateSample> {
    acks(log).filter_map(|ack| ack.rate).collect()
}

/// Ten segments leave at once, at 100 ms, and are acknowledged one by one at 200 ms:
/// by then one, two, ... ten have arrived in a round trip. They follow the handshake,
/// which is a gap.
#[test]
fn a_burst_arrives_in_a_round_trip() {
    let mut pair = ends(config(sampling::<10>())).upload(10 * MSS);
    take_log();
    pair.run();
    let log = take_log();
    assert!(matches!(log[0], Heard::Restart(Time(100_000_000))));
    let expected = |number: u64| RateSample {
        delivered: number * MSS,
        interval: Span::millis(100),
        total_delivered: number * MSS,
        prior_delivered: 0,
        in_flight: number * MSS,
        lost: 0,
        app_limited: true,
    };
    assert_eq!(rates(&log), (1..=10).map(expected).collect::<Vec<_>>());
    for (ack, left) in acks(&log).zip((0..10).rev()) {
        assert_eq!((ack.in_flight, ack.in_flight_before), (left * MSS, (left + 1) * MSS));
        assert_eq!(ack.latest_round_trip, Some(Span::millis(100)));
    }
}

/// Four rounds of 10 segments through an empty path, one round per 100 ms. A segment of
/// the second round notes how many had arrived when it left, number k of it k. When it
/// arrives, 10 more have, in 100 ms. Only the first round follows a gap.
#[test]
fn a_window_per_round_trip_is_the_rate() {
    let mut pair = ends(config(sampling::<10>())).upload(40 * MSS);
    take_log();
    pair.run();
    let log = take_log();
    for (index, rate) in rates(&log).iter().enumerate() {
        let number = index as u64 + 1;
        assert_eq!(rate.delivered, number.min(10) * MSS);
        assert_eq!(rate.prior_delivered, number.saturating_sub(10) * MSS);
        assert_eq!((rate.interval, rate.app_limited), (Span::millis(100), number <= 10));
    }
    assert_eq!(rates(&log).len(), 40);
    assert_eq!(log.iter().filter(|heard| matches!(heard, Heard::Restart(_))).count(), 1);
}

/// Ten segments are written, 20 more when all has been acknowledged, and at once
/// another ten, when the window is full and there is more to send. Only the second
/// write finds a gap.
#[test]
fn a_gap_is_what_the_application_leaves() {
    let mut pair = ends(config(sampling::<10>())).upload(0);
    pair.run_until(Time(150 * MILLISECOND));
    pair.ends[CLIENT].write(10 * MSS);
    pair.poll(CLIENT);
    pair.run_until(Time(260 * MILLISECOND));
    take_log();
    // All is acknowledged: a gap and a restart.
    pair.ends[CLIENT].write(20 * MSS);
    pair.poll(CLIENT);
    // The window is full and there is more: none.
    pair.ends[CLIENT].write(10 * MSS);
    pair.run();
    let log = take_log();
    assert!(matches!(log[0], Heard::Restart(_)));
    let limited: Vec<_> = rates(&log).iter().map(|rate| rate.app_limited).collect();
    // The first byte after the gap that is acknowledged ends it. The ten segments that
    // have left until then follow it.
    let expected: Vec<_> = (0..30).map(|number| number < 10).collect();
    assert_eq!(limited, expected);
}

/// Segment 3 is lost, and the acknowledgement of the sixth shows it. It had left with
/// three in the network, itself included, and in the wake of the handshake.
#[test]
fn a_lost_segment_is_told_before_the_acknowledgement_that_shows_it() {
    let mut pair = ends(config(sampling::<10>())).upload(20 * MSS).losing(&[3]);
    take_log();
    pair.run();
    let log = take_log();
    let at = log.iter().position(|heard| matches!(heard, Heard::Lost(_))).expect("one is lost");
    let Heard::Lost(segment) = log[at] else { unreachable!() };
    assert_eq!((segment.bytes, segment.in_flight, segment.lost), (MSS, 3 * MSS, MSS));
    assert!(segment.app_limited);
    let Heard::Ack(ack) = log[at + 1] else { panic!("{:?}", log[at + 1]) };
    assert_eq!((ack.lost, ack.phase), (MSS, Phase::Recovery));
    assert_eq!(acks(&log).map(|ack| ack.lost).sum::<u64>(), MSS);
    assert!(matches!(log[at + 2], Heard::Loss(_)));
    // The end is told first, and the acknowledgement that ends it is in no recovery.
    let end = log.iter().position(|heard| matches!(heard, Heard::Recovered(_))).unwrap();
    let Heard::Ack(ack) = log[end + 1] else { panic!("{:?}", log[end + 1]) };
    assert_eq!(ack.phase, Phase::Open);
}

fn path() -> impl Strategy<Value = (bool, bool, Vec<u64>, u64, u64)> {
    (
        prop::sample::select(vec![(false, false), (true, false), (true, true)]),
        prop::collection::btree_set(1_u64..200, 0..30),
        1_u64..150,
        0_u64..MSS,
    )
        .prop_map(|((sack, rack), lost, segments, tail)| {
            (sack, rack, lost.into_iter().collect(), segments, tail)
        })
}

proptest! {
    /// Losses are told one by one, and those that an acknowledgement shows add up to
    /// what it says. Samples count what has arrived as acknowledgements do, and nothing
    /// is found lost that is not sent again.
    #[test]
    fn losses_and_deliveries_add_up((sack, rack_tlp, lost, segments, tail) in path()) {
        let written = segments * MSS + tail;
        let config = TcpConfig { sack, rack_tlp, ..config(sampling::<20>()) };
        let mut pair = ends(config).upload(written).losing(&lost);
        take_log();
        pair.run();
        prop_assert_eq!(pair.ends[SERVER].delivered(), written);
        let (mut shown, mut untold, mut delivered) = (0, 0, 0);
        for heard in take_log() {
            match heard {
                Heard::Lost(segment) => {
                    prop_assert!(segment.bytes > 0 && segment.bytes <= MSS);
                    prop_assert!(segment.lost >= segment.bytes);
                    prop_assert!(segment.in_flight >= segment.bytes);
                    untold += segment.bytes;
                    shown += segment.bytes;
                }
                Heard::Ack(ack) => {
                    prop_assert!(ack.lost <= untold, "{} of {}", ack.lost, untold);
                    untold = 0;
                    delivered += ack.delivered;
                    if let Some(rate) = ack.rate {
                        prop_assert_eq!(rate.total_delivered, delivered);
                        prop_assert_eq!(rate.prior_delivered + rate.delivered, delivered);
                        prop_assert!(rate.interval >= Span::millis(100));
                    }
                }
                _ => {}
            }
        }
        prop_assert_eq!(delivered, written);
        let repaired = pair.ends[CLIENT].statistics().retransmissions;
        prop_assert!(shown <= repaired * MSS);
    }

    /// No sample says that a bottleneck carries more than it does, whatever bursts of
    /// data or of acknowledgements come: 8 Mbit/s are a kilobyte per millisecond.
    #[test]
    fn no_sample_exceeds_the_bottleneck(
        lost in prop::collection::btree_set(1_u64..300, 0..20),
        delayed in any::<bool>(),
        steps in prop::collection::vec((1_u64..40, 0_u64..300), 1..10),
    ) {
        let delayed_ack = delayed.then_some(DelayedAck { segments: 2, timeout: Span::millis(40) });
        let config = TcpConfig { delayed_ack, ..config(sampling::<30>()) };
        let lost: Vec<_> = lost.into_iter().collect();
        let mut pair = ends(config).upload(0).losing(&lost);
        pair.bottleneck = Some(Rate(8_000_000));
        take_log();
        for (segments, pause) in steps {
            pair.ends[CLIENT].write(segments * MSS);
            pair.poll(CLIENT);
            let until = pair.now + Span::millis(pause);
            pair.run_until(until);
        }
        pair.run();
        for rate in rates(&take_log()) {
            // What had arrived before the interval may be reported late in it.
            let carried = rate.interval.0 / 1_000;
            let held_back = if delayed { MSS } else { 0 };
            prop_assert!(rate.delivered <= carried + MSS + held_back, "{rate:?}");
        }
    }
}
