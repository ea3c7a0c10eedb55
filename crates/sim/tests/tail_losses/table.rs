//! All patterns against times worked out by hand, laws, and the [twin](crate::twin).
//!
//! The path takes 20 ms either way for everything: R = 40 ms. The receiver
//! acknowledges each segment. The burst leaves at 0, so that what arrives does so at
//! R/2 and is known at R. By hand, from RFC 8985, RFC 9937 and RFC 6298:
//!
//! | lost | what happens | complete at |
//! | --- | --- | --- |
//! | nothing | | R/2 |
//! | one, three or more follow it | at R the third SACK makes the reordering window zero (section 6.2, step 4): sent again | R + R/2 |
//! | one, one or two follow it | the window is R/4 | 5R/4 + R/2 |
//! | the last | at R the probe timer starts for one segment, 2R + 200 ms; the timeout of R + 200 ms is sooner, and the probe goes then (section 7.2) | 2R + 200 ms + R/2 |
//! | the only one | the same from 0 on | R + 200 ms + R/2 |
//! | the last k, of more | at R the probe timer starts, 2R; the probe at 3R is the last segment; known at 4R, it shows that k - 1 are lost; see below | 4R + repair(k - 1) |
//! | all k | the same from 0 on | 3R + repair(k - 1) |
//!
//! A repair begins with one segment. Each that arrives lets one go for itself and one
//! because all goes well (RFC 9937): 1, 2, 4 in as many round trips. So repair(m)
//! is the least number r of round trips with 2^r - 1 >= m, less R/2. The threshold of
//! 0.7 of the window is never in the way.

use tidegate_core::{Span, Time};
use tidegate_sim::tcp::TcpConfig;

use crate::pair::{CLIENT, Fate, Pair, SERVER};
use crate::twin::predict;
use crate::{Case, MOST, Outcome, Path, simulate};

const PATH: Path = Path { one_way: Span::millis(20), payload: Span::ZERO };

/// A round trip, R.
const ROUND_TRIP: Span = Span::millis(40);

fn settings() -> TcpConfig {
    TcpConfig { delayed_ack: None, ..TcpConfig::today() }
}

fn every_case() -> impl Iterator<Item = Case> {
    Case::all(1..=MOST, true).chain(Case::all(1..=MOST, false))
}

/// Response time without the handshake: the sender's data leaves a round trip after
/// the SYN if it has opened, and half a one later if it has accepted.
fn after_handshake(case: Case, outcome: Outcome) -> Outcome {
    let handshake = if case.opens { ROUND_TRIP } else { ROUND_TRIP + ROUND_TRIP / 2 };
    Outcome { response: outcome.response - handshake, ..outcome }
}

/// The table above, for the patterns that it names.
fn by_hand(case: Case) -> Option<Span> {
    let quarters = |count: u64| ROUND_TRIP / 4 * count;
    let patience = Span::millis(200);
    let repair = |lost: u32| {
        let rounds = (0..).find(|rounds| (1 << rounds) > lost).expect("2^r grows");
        quarters(4 * rounds) - quarters(2)
    };
    let (n, lost) = (case.segments, case.lost.count_ones());
    let following = n - (u32::BITS - case.lost.leading_zeros());
    match (lost, following) {
        (0, _) => Some(quarters(2)),
        (1, 3..) => Some(quarters(6)),
        (1, 1..=2) => Some(quarters(7)),
        (1, 0) if n == 1 => Some(quarters(6) + patience),
        (1, 0) => Some(quarters(10) + patience),
        (k, 0) if k == n => Some(quarters(12) + repair(k - 1)),
        (k, 0) if case.loses_a_tail_only() => Some(quarters(16) + repair(k - 1)),
        _ => None,
    }
}

#[test]
fn patterns_worked_by_hand_take_what_the_table_says() {
    let mut checked = 0;
    for case in every_case() {
        let Some(expected) = by_hand(case) else { continue };
        let outcome = after_handshake(case, simulate(case, &settings(), PATH));
        assert_eq!(outcome.response, expected, "{case}");
        checked += 1;
    }
    // For each sender: 10 without loss, 55 with one, 45 with a longer tail.
    assert_eq!(checked, 2 * 110);
}

#[test]
fn every_pattern_goes_as_in_the_twin() {
    let config = settings();
    let mut cases = 0;
    for case in every_case() {
        let outcome = after_handshake(case, simulate(case, &config, PATH));
        assert_eq!(Some(outcome), predict(case, PATH.one_way, config.mss), "{case}");
        cases += 1;
    }
    assert_eq!(cases, 2 * 2_046);
}

/// No pattern needs a timeout, each segment lost is sent again once and no other
/// is, and there is a probe only when nothing arrives after the first loss.
fn keeps_the_laws(case: Case, outcome: Outcome) -> bool {
    let tail = case.loses_a_tail_only();
    outcome.timeouts == 0
        && outcome.retransmissions == u64::from(case.lost.count_ones())
        && outcome.probes == Some(u64::from(tail))
}

#[test]
fn no_pattern_needs_a_timeout_or_sends_in_vain() {
    // As they are by default too: acknowledgements of every other segment, and
    // payload that takes longer than a SYN.
    let slower = Path { payload: Span::millis(1), ..PATH };
    for (config, path) in [(settings(), PATH), (settings(), slower), (TcpConfig::today(), slower)] {
        for case in every_case() {
            let outcome = simulate(case, &config, path);
            assert!(keeps_the_laws(case, outcome), "{case}: {outcome:?}");
        }
    }
}

/// An application writes one segment and closes, and the segment is lost. It left after
/// the handshake, at R. A FIN of its own arrives, its report comes at 2R, and R/4 later
/// the segment is sent again, as Linux does it. A FIN in the segment is lost with it:
/// after R + 200 ms, the timeout of one segment.
#[test]
fn a_fin_apart_shows_the_loss_of_the_only_segment() {
    let quarter = ROUND_TRIP / 4;
    for (apart, expected) in [(true, quarter * 11), (false, quarter * 10 + Span::millis(200))] {
        let config = TcpConfig { separate_fin: apart, ..settings() };
        let mut lost = false;
        let mut pair = Pair::new(config.clone(), config).deciding(move |_, header, _| {
            let lose = header.payload > 0 && !std::mem::replace(&mut lost, header.payload > 0);
            if lose { Fate::Lose } else { Fate::Pass }
        });
        pair.traced = false;
        pair.delay = PATH.one_way;
        pair.ends[CLIENT].write(1_448);
        pair.ends[CLIENT].close();
        pair.poll(CLIENT);
        while pair.ends[SERVER].delivered() < 1_448 {
            assert!(pair.step(Time::FAR_FUTURE), "the segment never arrives");
        }
        assert_eq!(pair.now.since(Time::ZERO), expected, "apart: {apart}");
    }
}

/// The laws can fail: without probes every tail waits for the timeout.
#[test]
fn without_probes_every_tail_waits_for_a_timeout() {
    let config = TcpConfig { rack_tlp: false, ..settings() };
    for case in every_case().filter(|case| case.lost != 0) {
        let outcome = simulate(case, &config, PATH);
        if case.loses_a_tail_only() {
            assert!(outcome.timeouts > 0, "{case}: {outcome:?}");
            assert!(!keeps_the_laws(case, outcome), "{case}");
        }
    }
}
