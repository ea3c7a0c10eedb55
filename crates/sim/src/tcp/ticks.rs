//! When timers fire on a host that counts time in ticks.
//!
//! A kernel does not look after thousands of timers to the nanosecond. Linux (7.3,
//! `kernel/time/timer.c`) sorts them into a wheel of 64 slots for each of several levels: a
//! slot is a tick on the first level and eight times as long on each further one. A timer
//! never fires early, so it fires at the end of the slot that it falls into: with 250 ticks
//! a second, one of 300 ms fires at a multiple of 32 ms of the host's clock, one of 3 s at
//! a multiple of 256 ms, and one of 20 s at a multiple of 2 048 ms.
//!
//! That delays a timeout by an eighth at most, but it also brings the timeouts of all
//! connections of a host together, and their retransmissions come to a full queue at
//! the same moment. The more often a timeout has backed off, the more others share its
//! moment. Tail loss probes, the reordering window and delayed acknowledgements, which are
//! shorter, are mostly a tick late. Pacing has a timer of its own, to the nanosecond.

use tidegate_core::{Span, Time};

/// A timer that is less than this many ticks ahead has the first level.
const FIRST_LEVEL: u64 = 63;
/// Each level reaches eight times as far as the one before, with slots as much longer.
const LEVEL_SHIFT: u32 = 3;

/// When a timer fires that is set at `now` for a time of `span`; with a `tick` of zero, to
/// the nanosecond.
#[inline]
pub(super) fn fires(tick: Span, now: Time, span: Span) -> Time {
    if tick == Span::ZERO { now + span } else { end_of_slot(tick, now, span) }
}

/// Out of line, so that timers without ticks have no more than a test.
#[inline(never)]
fn end_of_slot(tick: Span, now: Time, span: Span) -> Time {
    let ahead = span.0.div_ceil(tick.0);
    let mut shift = 0;
    while ahead >> shift >= FIRST_LEVEL {
        shift += LEVEL_SHIFT;
    }
    let slot = ((now.0 / tick.0 + ahead) >> shift) + 1;
    Time((slot << shift).saturating_mul(tick.0))
}

/// A span in whole ticks, rounded up.
pub(super) fn whole(tick: Span, span: Span) -> Span {
    if tick == Span::ZERO { span } else { Span(span.0.next_multiple_of(tick.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fires_at(now: u64, span: u64) -> u64 {
        fires(Span::millis(4), Time(now * 1_000_000), Span::millis(span)).0 / 1_000_000
    }

    /// Ticks of 4 ms. 62 of them are of the first level, 63 to 503 of the second, whose
    /// slots are 32 ms, and 504 to 4 031 of the third, whose slots are 256 ms.
    #[test]
    fn a_timer_fires_at_the_end_of_its_slot() {
        // In tick 25, ten ticks ahead: at the end of tick 35.
        assert_eq!(fires_at(101, 40), 144);
        assert_eq!(fires_at(101, 38), 144);
        assert_eq!(fires_at(100, 248), 352);
        // Tick 25 + 63 = 88 begins the slot 11 of eight ticks, which ends at tick 96.
        assert_eq!(fires_at(100, 252), 384);
        assert_eq!(fires_at(100, 2_012), 2_112 / 32 * 32 + 32);
        assert_eq!(fires_at(100, 2_016), 2_116 / 256 * 256 + 256);
        assert_eq!(fires_at(100, 16_124), 16_224 / 256 * 256 + 256);
        assert_eq!(fires_at(100, 16_128), 16_228 / 2_048 * 2_048 + 2_048);
        assert_eq!(fires(Span::ZERO, Time(7), Span(5)), Time(12));
    }

    /// Timeouts of 1.05 to 1.2 s that begin at any time of 100 ms fire at few moments.
    #[test]
    fn timeouts_of_a_host_come_together() {
        let moments: std::collections::BTreeSet<u64> =
            (0..100).map(|number| fires_at(number, 1_050 + number * 37 % 150)).collect();
        assert!(moments.len() <= 9, "{moments:?}");
        assert!(moments.iter().all(|moment| moment % 32 == 0));
    }

    #[test]
    fn no_timer_is_early_or_late_by_more_than_an_eighth() {
        for span in 1..3_000 {
            let (now, span) = (span * 7, span * 13);
            let took = fires_at(now, span) - now;
            assert!(took >= span && took <= span + span / 7 + 8, "{span} ms took {took}");
        }
    }
}
