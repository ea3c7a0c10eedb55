//! What is undone: no recovery from a loss that was one.
//!
//! A path loses data at random and does nothing else to it. Unless something comes in twice,
//! or the timer runs out while something is still on its way, whatever was sent again had
//! been lost: no recovery, and no repair after a timeout, was needless.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidegate_core::random::Stream;
use tidegate_core::{Bytes, Rate, Span, Time};
use tidegate_sim::tcp::congestion::CONTROLLERS;
use tidegate_sim::tcp::{Statistics, TcpConfig};

use crate::pair::{CLIENT, Fate, Pair, SERVER};

/// What came of an upload.
struct Outcome {
    counted: Statistics,
    /// Whether something was taken for lost that was not.
    needless: bool,
}

/// 2 MB at 10 Mbit/s over a path that takes `delay` one way, and loses `lost` of a thousand
/// segments with data and delays `late` of a thousand by 60 ms.
fn upload(config: &TcpConfig, delay: Span, (lost, late): (usize, usize), seed: u64) -> Outcome {
    let config = TcpConfig { receive_window: Bytes(1 << 22), ..config.clone() };
    let mut draws = Stream::new(seed, "fates");
    let mut pair =
        Pair::new(config.clone(), config).upload(2_000_000).deciding(move |from, header, _| {
            match draws.index(1_000) {
                _ if from != CLIENT || header.payload == 0 => Fate::Pass,
                draw if draw < lost => Fate::Lose,
                draw if draw < lost + late => Fate::Delay(Span::millis(60)),
                _ => Fate::Pass,
            }
        });
    pair.traced = false;
    pair.observe = true;
    pair.delay = delay;
    pair.bottleneck = Some(Rate(10_000_000));
    let mut needless = false;
    let mut timeouts = 0;
    pair.poll(CLIENT);
    loop {
        let in_transit = pair.in_transit();
        if !pair.step(Time::ZERO + Span::seconds(60)) {
            break;
        }
        let before = std::mem::replace(&mut timeouts, pair.ends[CLIENT].statistics().timeouts);
        needless |= timeouts > before && in_transit > 0;
    }
    let mut known = BTreeSet::new();
    needless |= pair
        .observed_arrived
        .iter()
        .filter(|(to, header)| *to == SERVER && header.payload > 0)
        .any(|(_, header)| !known.insert(header.sequence));
    Outcome { counted: *pair.ends[CLIENT].statistics(), needless }
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let controller = prop::sample::select(CONTROLLERS.iter().collect::<Vec<_>>());
    (controller, any::<[bool; 3]>()).prop_map(
        |(congestion, [rack_tlp, timestamps_option, pacing])| TcpConfig {
            congestion,
            rack_tlp,
            timestamps_option,
            pacing,
            ..TcpConfig::today()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_recovery_from_a_loss_is_undone(
        config in config(),
        lost in 0_usize..400,
        delay in 1_u64..200,
        seed in any::<u64>(),
    ) {
        let Outcome { counted, needless } = upload(&config, Span::millis(delay), (lost, 0), seed);
        prop_assume!(!needless);
        prop_assert_eq!(counted.undone_recoveries, 0, "{:?}", counted);
    }
}

/// At 1% and at 10% nothing is undone. A segment that is late by 60 ms begins a recovery,
/// which is undone, and makes few others be sent again.
#[test]
fn what_is_late_is_undone_and_what_is_lost_is_not() {
    for congestion in CONTROLLERS {
        let config = TcpConfig { congestion, ..TcpConfig::today() };
        for (lost, late) in [(10, 0), (100, 0), (0, 10)] {
            let (mut recoveries, mut undone) = (0, 0);
            for seed in 0..10 {
                let outcome = upload(&config, Span::millis(20), (lost, late), seed);
                let Outcome { counted, needless } = outcome;
                assert_eq!(needless, late > 0, "{congestion:?} {counted:?}");
                recoveries += counted.fast_recoveries;
                undone += counted.undone_recoveries;
                // 14 of 1 382 segments are late on average.
                assert!(late == 0 || counted.retransmissions < 40, "{congestion:?} {counted:?}");
            }
            let expected = if late > 0 { recoveries * 9 / 10..=recoveries } else { 0..=0 };
            assert!(recoveries > 50, "{congestion:?} {recoveries}");
            assert!(expected.contains(&undone), "{congestion:?} {undone} of {recoveries}");
        }
    }
}
