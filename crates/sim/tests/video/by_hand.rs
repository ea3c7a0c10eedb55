//! What players choose and viewers see, worked out by hand.

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::video::{Next, Player, Rule};

use super::three_qualities;

const MS: fn(u64) -> Time = |millis| Time(millis * 1_000_000);

fn player(rule: Rule) -> Player {
    Player::new(three_qualities(), Span::seconds(10), rule)
}

/// 1 Mbit/s for 2 s are 250 kB. It asks at 1 s, has the first segment at 1.5 s and the second
/// one at 4 s: the first has played since 3.5 s.
#[test]
fn it_plays_from_the_first_segment_on_and_stands_still_when_it_has_none() {
    let mut player = player(Rule::Rate);
    assert_eq!(player.next(MS(1_000)), Next::Ask(Bytes(250_000)));
    player.came(MS(1_500), Span::millis(100), Span::millis(400));
    // 5 Mbit/s lately, and nine tenths of that carry the best quality.
    assert_eq!(player.next(MS(1_500)), Next::Ask(Bytes(1_000_000)));
    player.came(MS(4_000), Span::millis(100), Span::millis(2_400));
    let seen = player.viewing(MS(5_000));
    assert_eq!(seen.startup, Some(Span::millis(500)));
    assert_eq!((seen.played, seen.stalled), (Span::millis(3_000), Span::millis(500)));
    assert_eq!((seen.stalls, seen.switches), (1, 1));
    // Two seconds of 1 Mbit/s and one of 4.
    assert_eq!(seen.mean_rate().map(|rate| rate.0), Some(2_000_000));
    assert!((seen.stalled_ratio().unwrap() - 0.5 / 3.5).abs() < 1e-12);
    assert_eq!(seen.switches_per_minute(), Some(20.0));
}

/// However often somebody looks, a stall is one.
#[test]
fn looking_changes_nothing() {
    let (mut once, mut often) = (player(Rule::Bola), player(Rule::Bola));
    for player in [&mut once, &mut often] {
        player.next(MS(0));
        player.came(MS(1_000), Span::millis(100), Span::millis(900));
    }
    for time in 1..90 {
        often.viewing(MS(time * 100));
    }
    assert_eq!(often.viewing(MS(9_000)), once.viewing(MS(9_000)));
    assert_eq!(once.viewing(MS(9_000)).stalled, Span::millis(6_000));
    assert_eq!(once.viewing(MS(9_000)).stalls, 1);
}

/// With 10 s of buffer and segments of 2 s, it asks for the sixth when the first is over.
#[test]
fn it_asks_when_there_is_room_for_a_segment() {
    let mut player = player(Rule::Rate);
    for _ in 0..5 {
        assert!(matches!(player.next(MS(0)), Next::Ask(_)));
        player.came(MS(0), Span::ZERO, Span::ZERO);
    }
    assert_eq!(player.next(MS(500)), Next::Wait(Span::millis(1_500)));
    assert!(matches!(player.next(MS(2_000)), Next::Ask(_)));
}

/// Utilities are 0, ln 2 and ln 4. Near the start BOLA counts on three segments, 6 s:
/// `V` is `4 / (ln 4 + 5) = 0.626`, and it leaves the lowest quality for the next where
/// `(V 5 - Q) / 1 = (V (ln 2 + 5) - Q) / 2`, at `Q = V (5 - ln 2) = 2.70 s`; the next
/// one for the best at `V (5 + ln 2 - ln 2) = 3.13 s`.
#[test]
fn bola_goes_up_with_the_buffer_and_no_further_than_a_step_beyond_the_network() {
    let chosen = |level_ms: u64, rate_ms: u64| {
        let mut player = player(Rule::Bola);
        // Three segments came at once, the last one so fast; the rest has played.
        for _ in 0..3 {
            player.next(MS(0));
            player.came(MS(0), Span::ZERO, Span::millis(rate_ms));
        }
        player.next(MS(6_000 - level_ms));
        player.quality()
    };
    // 250 kB in 50 ms are 40 Mbit/s: the network allows everything.
    assert_eq!([2_600, 2_800, 3_000, 3_200].map(|level| chosen(level, 50)), [0, 1, 1, 2]);
    // 250 kB in 1.6 s are 1.25 Mbit/s, which carry the lowest: one step beyond it.
    assert_eq!([2_600, 2_800, 3_200].map(|level| chosen(level, 1_600)), [0, 1, 1]);
}

#[test]
fn who_never_sees_a_picture_has_waited_all_the_time() {
    let mut player = player(Rule::Bola);
    player.next(MS(1_000));
    let seen = player.viewing(MS(9_000));
    assert_eq!((seen.startup, seen.mean_rate()), (None, None));
    assert_eq!(seen.stalled_ratio(), Some(1.0));
    player.forget(MS(9_000));
    assert_eq!(player.viewing(MS(9_000)).stalled_ratio(), None);
}
