//! What holds whatever happens.

use proptest::prelude::*;

use super::super::{Before, LEAST_SEGMENTS, Loss, UNBOUNDED};
use super::*;

/// Something that the controller hears, in segments and milliseconds.
#[derive(Clone, Debug)]
enum Event {
    Ack { delivered: u64, in_flight: u64, round_trip: u64, sample: Option<Measured>, phase: u8 },
    Lost { segment: u64, in_flight: u64, lost: u64, app_limited: bool },
    Loss,
    Mark,
    Timeout { in_flight: u64 },
    Recovered,
    Spurious,
    Restart,
}

/// The segment left `ago` segments' deliveries ago.
#[derive(Clone, Debug)]
struct Measured {
    interval: u64,
    ago: u64,
    in_flight: u64,
    lost: u64,
    app_limited: bool,
}

fn sample() -> impl Strategy<Value = Measured> {
    (1_u64..1_000, 0_u64..300, 0_u64..300, 0_u64..20, any::<bool>()).prop_map(
        |(interval, ago, in_flight, lost, app_limited)| Measured {
            interval,
            ago,
            in_flight,
            lost,
            app_limited,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let ack = (0_u64..50, 0_u64..300, 1_u64..500, prop::option::of(sample()), 0_u8..3);
    let lost = (0_u64..100, 1_u64..300, 1_u64..30, any::<bool>());
    prop_oneof![
        20 => ack.prop_map(|(delivered, in_flight, round_trip, sample, phase)| {
            Event::Ack { delivered, in_flight, round_trip, sample, phase }
        }),
        4 => lost.prop_map(|(segment, in_flight, lost, app_limited)| {
            Event::Lost { segment, in_flight, lost, app_limited }
        }),
        1 => Just(Event::Loss),
        1 => Just(Event::Mark),
        1 => (0_u64..10).prop_map(|in_flight| Event::Timeout { in_flight }),
        1 => Just(Event::Recovered),
        1 => Just(Event::Spurious),
        1 => Just(Event::Restart),
    ]
}

fn tell(bbr: &mut Bbr, now: Time, event: &Event) {
    let loss = Loss { window: bbr.window(), flight: bbr.window() };
    match event {
        Event::Ack { delivered, in_flight, round_trip, sample, phase } => {
            let total = bbr.rounds.delivered + delivered * MSS;
            let rate = sample.as_ref().map(|sample| {
                let prior_delivered = total.saturating_sub(sample.ago * MSS);
                RateSample {
                    delivered: total - prior_delivered,
                    interval: Span::millis(sample.interval),
                    total_delivered: total,
                    prior_delivered,
                    in_flight: sample.in_flight * MSS,
                    lost: sample.lost * MSS,
                    app_limited: sample.app_limited,
                }
            });
            bbr.on_ack(&Ack {
                rate,
                latest_round_trip: Some(Span::millis(*round_trip)),
                in_flight: in_flight * MSS,
                in_flight_before: (in_flight + delivered) * MSS,
                phase: [Phase::Open, Phase::Recovery, Phase::Loss][usize::from(*phase)],
                ..ack(now, *delivered)
            });
        }
        Event::Lost { segment, in_flight, lost: count, app_limited } => {
            let total_delivered = bbr.rounds.delivered;
            let app_limited = *app_limited;
            let lost = lost(*segment, *in_flight, *count);
            bbr.on_segment_lost(&LostSegment { total_delivered, app_limited, ..lost });
        }
        Event::Loss => bbr.on_loss(&loss),
        Event::Mark => bbr.on_ecn(&loss),
        Event::Timeout { in_flight } => bbr.on_timeout(in_flight * MSS),
        Event::Recovered => bbr.on_recovered(0),
        Event::Spurious => bbr.on_spurious_recovery(&Before { window: 0, threshold: 0 }),
        Event::Restart => bbr.on_restart(now),
    }
}

proptest! {
    /// After an acknowledgement the window is at least four segments and at most what the
    /// state's row of section 5.6.1 allows; once the pipe has been full, at most what the
    /// path needs by the model. The rate never is more than the bandwidth times the gain,
    /// once that is the rule, and never nothing. A timeout leaves a segment more than is
    /// in flight. Equal events give equal answers.
    #[test]
    fn the_window_keeps_to_its_bounds(
        events in prop::collection::vec((event(), 0_u64..400), 1..300),
        selective in any::<bool>(),
        round_trip in prop::option::of(1_u64..300),
        seed in any::<u32>(),
    ) {
        let round_trip = round_trip.map(Span::millis);
        let start = Start { selective, round_trip, seed, ..start() };
        let mut bbr = Bbr::new(&start);
        let mut other = Bbr::new(&start);
        let mut now = Time::ZERO;
        for (event, wait) in &events {
            now += Span::millis(*wait);
            tell(&mut bbr, now, event);
            tell(&mut other, now, event);
            prop_assert_eq!(format!("{bbr:?}"), format!("{other:?}"));
            let window = bbr.window();
            prop_assert!(rate(&bbr) > Rate(0));
            prop_assert!(bbr.path.bandwidth <= bbr.path.max_bandwidth);
            match event {
                Event::Ack { .. } => {
                    prop_assert!(window >= LEAST_SEGMENTS * MSS);
                    let least = LEAST_SEGMENTS * MSS;
                    prop_assert!(window <= bbr.path.in_flight_short.max(least));
                    if bbr.state.is_cycling() || bbr.state == State::ProbeRtt {
                        prop_assert!(window <= bbr.path.in_flight_long.max(least));
                    }
                    let long = bbr.path.in_flight_long;
                    if matches!(bbr.state, State::Cruise | State::ProbeRtt) && long < UNBOUNDED {
                        // At least 15% of the bound are free.
                        prop_assert!(window == least || window <= long - long * 15 / 100);
                    }
                    if bbr.full_pipe.reached && bbr.path.bandwidth > Rate(0) {
                        let gain = bbr.state.pacing_gain();
                        let most = bbr.path.bandwidth.0 * gain / 100 * 99 / 100 + 1;
                        prop_assert!(rate(&bbr).0 <= most);
                    }
                }
                Event::Timeout { in_flight } => prop_assert_eq!(window, (in_flight + 1) * MSS),
                _ => {}
            }
        }
    }
}
