//! What holds for every congestion controller of the list, and what a controller
//! hears.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::tcp::TcpConfig;
use tidegate_sim::tcp::congestion::{
    Ack, CONTROLLERS, Controller, Loss, NEW_RENO, Phase, SlowStart, Start,
};

use crate::pair::controllers::{Heard, paced_reno, take_log};
use crate::pair::{CLIENT, Fate, Pair, SERVER};

const MSS: u64 = 1_460;

/// The table of docs/scenarios.md is the list.
#[test]
fn the_documentation_lists_every_controller() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let page = fs::read_to_string(page).unwrap();
    let mut table = String::from("| `congestion` | what it does | source |\n| --- | --- | --- |\n");
    for entry in CONTROLLERS {
        table += &format!("| `{}` | {} | {} |\n", entry.name, entry.summary, entry.source);
    }
    assert!(page.contains(&format!("\n{table}\n")), "docs/scenarios.md lacks\n{table}");
}

#[test]
fn names_are_unique_and_as_in_files() {
    let mut names: Vec<_> = CONTROLLERS.iter().map(|entry| entry.name).collect();
    for name in &names {
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        assert!(plain && !name.is_empty(), "{name}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CONTROLLERS.len());
}

/// Something that a controller hears.
#[derive(Clone, Copy, Debug)]
enum Event {
    Ack { segments: u64, delivered: u64, limited: bool, phase: u8 },
    Loss { ecn: bool },
    Timeout,
    Idle,
    Recovered,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => (0_u64..20, 0_u64..20, any::<bool>(), 0_u8..3).prop_map(
            |(segments, delivered, limited, phase)| Event::Ack { segments, delivered, limited, phase }
        ),
        2 => any::<bool>().prop_map(|ecn| Event::Loss { ecn }),
        1 => Just(Event::Timeout),
        1 => Just(Event::Idle),
        1 => Just(Event::Recovered),
    ]
}

fn tell(controller: &mut dyn Controller, now: Time, event: Event, start: &Start) {
    let loss = Loss { window: controller.window(), flight: controller.window() / 2 };
    match event {
        Event::Ack { segments, delivered, limited, phase } => controller.on_ack(&Ack {
            now,
            acked: segments * MSS,
            delivered: delivered * MSS,
            round_trip: limited.then_some(Span::millis(30)),
            latest_round_trip: limited.then_some(Span::millis(30)),
            smoothed_round_trip: Some(Span::millis(40)),
            in_flight: controller.window(),
            in_flight_before: controller.window(),
            lost: 0,
            marked: if limited { 0 } else { delivered * MSS / 2 },
            departure: now,
            acknowledged: 0,
            sent: 0,
            rate: None,
            window_limited: limited,
            phase: [Phase::Open, Phase::Recovery, Phase::Loss][usize::from(phase)],
        }),
        Event::Loss { ecn: false } => controller.on_loss(&loss),
        Event::Loss { ecn: true } => controller.on_ecn(&loss),
        Event::Timeout => controller.on_timeout(0),
        Event::Idle => controller.on_idle(start.window),
        Event::Recovered => controller.on_recovered(controller.threshold().min(1 << 30)),
    }
}

proptest! {
    /// A controller starts with the window that it is given, never falls below a
    /// segment, where nothing could be sent any more, and gives equal answers to
    /// equal events.
    #[test]
    fn every_controller_keeps_a_segment_and_is_deterministic(
        events in prop::collection::vec((event(), 0_u64..100_000_000), 0..200),
        segments in 1_u64..20,
        threshold in prop::option::of(2_u64..100),
        paced in any::<bool>(),
        slow_start in prop::option::of(prop::sample::select(vec![
            SlowStart::Classic, SlowStart::HyStart, SlowStart::HyStartPlusPlus,
        ])),
    ) {
        let start = Start {
            mss: MSS,
            window: segments * MSS,
            threshold: threshold.map_or(u64::MAX, |segments| segments * MSS),
            slow_start_limit: 2 * MSS,
            slow_start,
            paced,
            now: Time::ZERO,
            round_trip: Some(Span::millis(25)),
            seed: 7,
            selective: true,
        };
        for entry in CONTROLLERS {
            let mut one = (entry.start)(&start);
            let mut other = (entry.start)(&start);
            prop_assert_eq!(one.window(), start.window, "{}", entry.name);
            let mut now = Time::ZERO;
            for (event, span) in &events {
                now += Span(*span);
                tell(&mut *one, now, *event, &start);
                tell(&mut *other, now, *event, &start);
                prop_assert!(one.window() >= MSS, "{}: {:?}", entry.name, event);
                prop_assert_eq!(
                    (one.window(), one.threshold(), one.pacing_rate()),
                    (other.window(), other.threshold(), other.pacing_rate()),
                    "{}", entry.name
                );
            }
        }
    }
}

/// The client's config; the server's own controller must not write into the log.
fn ends(client: TcpConfig) -> Pair {
    let server = TcpConfig { congestion: NEW_RENO, ..client.clone() };
    let mut pair = Pair::new(client, server);
    pair.traced = false;
    pair
}

fn acks(log: &[Heard]) -> Vec<Ack> {
    let ack = |heard: &Heard| if let Heard::Ack(ack) = heard { Some(*ack) } else { None };
    log.iter().filter_map(ack).collect()
}

fn listening(sack: bool, rack_tlp: bool) -> TcpConfig {
    TcpConfig {
        congestion: paced_reno::<0>(),
        sack,
        rack_tlp,
        initial_window: 10,
        delayed_ack: None,
        receive_window: Bytes(1 << 20),
        ..TcpConfig::papers()
    }
}

/// Ten segments at once over 50 ms either way. Each acknowledgement is of one
/// segment and measures the round trip. The first nine free places for which there
/// is no data, so the window holds nothing back.
#[test]
fn an_acknowledgement_tells_what_has_arrived() {
    let mut pair = ends(listening(true, true)).upload(10 * MSS);
    take_log();
    pair.run();
    let log = acks(&take_log());
    assert_eq!(log.len(), 10);
    for (ack, left) in log.iter().zip((0..10).rev()) {
        assert_eq!((ack.now, ack.phase), (Time(200_000_000), Phase::Open));
        assert_eq!((ack.acked, ack.delivered, ack.in_flight), (MSS, MSS, left * MSS));
        assert_eq!(ack.round_trip, Some(Span::millis(100)));
        assert_eq!(ack.smoothed_round_trip, Some(Span::millis(100)));
        assert!(!ack.window_limited);
    }
}

/// Segment 3 of 12 is lost. Acknowledgement 2 opens the window to 11 and lets the
/// last segments go, so that the next one finds the window unused. With SACK each acknowledgement reports the segment that
/// has arrived; the third beyond the hole tells of the loss and is the first in
/// recovery. The retransmission is acknowledged with all that had been reported.
#[test]
fn a_recovery_is_told_in_order() {
    let mut pair = ends(listening(true, false)).upload(12 * MSS).losing(&[3]);
    take_log();
    pair.run();
    let log = take_log();
    let heard: Vec<_> = log
        .iter()
        .map(|heard| match heard {
            Heard::Ack(ack) => {
                format!("{:?} {}/{}", ack.phase, ack.acked / MSS, ack.delivered / MSS)
            }
            Heard::Loss(loss) => format!("loss {}/{}", loss.flight / MSS, loss.window / MSS),
            Heard::Recovered(window) => format!("recovered {}", window / MSS),
            other => format!("{other:?}"),
        })
        .collect();
    let expected = [
        "Open 1/1",
        "Open 1/1",
        "Open 0/1",
        "Open 0/1",
        "Recovery 0/1",
        "loss 10/11",
        "Recovery 0/1",
        "Recovery 0/1",
        "Recovery 0/1",
        "Recovery 0/1",
        "Recovery 0/1",
        "Recovery 0/1",
        "Recovery 10/1",
        "recovered 5",
    ];
    assert_eq!(heard, expected);
}

/// What pacing holds back, the window would have: the sender counts as limited by
/// the window as long as it has data to fill it (RFC 9002 section 7.8), and the
/// window goes on growing.
#[test]
fn pacing_does_not_stop_the_window() {
    let limited = |bytes: u64| {
        let config = TcpConfig { congestion: paced_reno::<1_168_000>(), ..listening(true, true) };
        let mut pair = ends(config).upload(bytes);
        take_log();
        pair.run_until(Time(1_000_000_000));
        let log = acks(&take_log());
        assert!(log.len() > 10);
        (log.iter().filter(|ack| ack.window_limited).count(), log.len())
    };
    let (limits, all) = limited(10_000 * MSS);
    assert_eq!(limits, all);
    // Fifteen segments do not fill the window once it has grown.
    let (limits, all) = limited(15 * MSS);
    assert!(limits < all, "{limits} of {all}");
}

proptest! {
    /// Over a connection `acked` and `delivered` both add up to what was written,
    /// and each reduction is told once.
    #[test]
    fn what_is_told_adds_up(
        (sack, rack_tlp) in prop::sample::select(vec![(false, false), (true, false), (true, true)]),
        lost in prop::collection::btree_set(1_u64..150, 0..30),
        segments in 1_u64..100,
        tail in 0_u64..MSS,
    ) {
        let written = segments * MSS + tail;
        let lost: Vec<_> = lost.into_iter().collect();
        let mut pair = ends(listening(sack, rack_tlp)).upload(written).losing(&lost);
        take_log();
        pair.run();
        let log = take_log();
        let sums = acks(&log).iter().fold((0, 0), |(acked, delivered), ack| {
            (acked + ack.acked, delivered + ack.delivered)
        });
        prop_assert_eq!(pair.ends[SERVER].delivered(), written);
        prop_assert_eq!(sums, (written, written));
        let statistics = pair.ends[CLIENT].statistics();
        let count = |wanted: fn(&Heard) -> bool| log.iter().filter(|heard| wanted(heard)).count();
        let timeouts = count(|heard| matches!(heard, Heard::Timeout));
        prop_assert_eq!(timeouts as u32, statistics.timeouts);
        let losses = count(|heard| matches!(heard, Heard::Loss(_))) as u32;
        let most = statistics.fast_recoveries + statistics.timeouts + statistics.tail_loss_probes;
        prop_assert!(losses >= statistics.fast_recoveries && losses <= most);
        prop_assert_eq!(count(|heard| matches!(heard, Heard::Ecn | Heard::Idle)), 0);
    }

    /// A controller without a rate is served as if there were no pacing: the trace
    /// is that of the controller that it wraps.
    #[test]
    fn no_rate_is_no_pacing(
        (sack, rack_tlp) in prop::sample::select(vec![(false, false), (true, false), (true, true)]),
        lost in prop::collection::vec(1_u64..60, 0..10),
    ) {
        let trace = |congestion| {
            let config = TcpConfig { congestion, ..listening(sack, rack_tlp) };
            let mut pair = ends(config).transfer(40 * MSS).losing(&lost);
            pair.traced = true;
            pair.run();
            pair.trace
        };
        prop_assert_eq!(trace(paced_reno::<0>()), trace(NEW_RENO));
    }
}

/// A mark reaches the controller as a mark, once per window of data.
#[test]
fn marks_are_told_as_marks() {
    let config = TcpConfig { ecn: true, ..listening(false, false) };
    let mut pair = ends(config).upload(40 * MSS).deciding(|from, _, number| {
        if from == CLIENT && (3..=5).contains(&number) { Fate::Mark } else { Fate::Pass }
    });
    take_log();
    pair.run();
    let log = take_log();
    assert_eq!(log.iter().filter(|heard| matches!(heard, Heard::Ecn)).count(), 1);
    assert_eq!(log.iter().filter(|heard| matches!(heard, Heard::Loss(_))).count(), 0);
}
