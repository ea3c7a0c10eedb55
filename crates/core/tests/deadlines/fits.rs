//! Curves that are fitted below what is left.

use proptest::prelude::*;
use tidegate_core::assignment::{Line, SMALLEST_PACKET, Segments, Typical, fit};
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::{Bytes, Rate, Span};

use crate::flows::{PAPER, any_residual, any_typical, residual};

/// Whether `low` is nowhere above `high` from `from` on.
fn lies_below(low: &Curve, high: &Curve, from: u64) -> bool {
    let gap = high.minus(low).expect("one of them is straight in the end");
    gap.least_from_here_on().is_some_and(|least| least.value(from) >= 0)
}

fn wait(capacity: &Curve, bytes: u64) -> u64 {
    capacity.first_reaching(i128::from(bytes) * PER_BYTE).expect("a capacity rises for ever")
}

/// The sum of the deadlines of a burst's packets.
fn cost(capacity: &Curve, typical: Typical) -> u64 {
    let packet = typical.packet.max(SMALLEST_PACKET).0;
    let count = (typical.burst.0 / packet).max(1);
    (1..=count).map(|number| wait(capacity, number * packet)).sum()
}

/// The line of this slope that begins as early as it can.
fn earliest(capacity: &Curve, slope: Rate) -> Option<Line> {
    let below = |start: u64| lies_below(&Line { start: Span(start), slope }.curve(), capacity, 0);
    let (mut early, mut late) = (0, 1 << 40);
    if !below(late) {
        return None;
    }
    while late - early > 1 {
        let middle = early + (late - early) / 2;
        if below(middle) {
            late = middle;
        } else {
            early = middle;
        }
    }
    Some(Line { start: Span(late), slope })
}

/// A millionth more, for slopes in whole bits per second and waits in whole nanoseconds.
fn no_more_than(cost: u64, other: u64) -> bool {
    cost <= other + other / 1_000_000 + 100
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn fits_lie_below_and_touch_what_is_left(residual in any_residual(), typical in any_typical()) {
        let capacity = residual.effective();
        let earliest = wait(capacity, SMALLEST_PACKET.0);
        let below = |low: &Curve| {
            lies_below(low, capacity, earliest) && wait(low, SMALLEST_PACKET.0) >= earliest
        };
        let origin = fit::origin_line(capacity);
        prop_assert!(below(&Curve::rate(origin)));
        prop_assert!(!below(&Curve::rate(Rate(origin.0 + 1))));
        let line = fit::shifted_line(capacity, typical);
        prop_assert!(lies_below(&line.curve(), capacity, 0));
        let sooner = Line { start: Span(line.start.0 - 1), ..line };
        prop_assert!(!lies_below(&sooner.curve(), capacity, 0));
        prop_assert!(below(&fit::two_segments(capacity, typical).curve()));
    }

    #[test]
    fn no_other_fit_has_smaller_deadlines(
        residual in any_residual(),
        typical in any_typical(),
        parts in 1_u64..=1_000,
    ) {
        let capacity = residual.effective();
        let steepest = residual.certain_rate().0;
        let best = cost(&fit::shifted_line(capacity, typical).curve(), typical);
        let segments = fit::two_segments(capacity, typical);
        let best_segments = cost(&segments.curve(), typical);
        prop_assert!(no_more_than(best_segments, best));
        prop_assert!(no_more_than(best_segments, cost(&Curve::rate(segments.first), typical)));
        if let Some(other) = earliest(capacity, Rate((steepest * parts / 1_000).max(1))) {
            prop_assert!(no_more_than(best, cost(&other.curve(), typical)), "{other:?}");
            let first = Rate(segments.first.0 * (parts % 100 + 1) / 100);
            let other = Segments { first, second: other };
            prop_assert!(no_more_than(best_segments, cost(&other.curve(), typical)), "{other:?}");
        }
    }
}

/// `BE section 5` uses a line from 1.23 ms on of 360 kB/s, and does not say how
/// it was found.
#[test]
fn the_papers_flows_leave_room_for_the_papers_line() {
    let residual = residual(PAPER);
    for burst in [1_536, 15_360, 153_600] {
        let typical = Typical { packet: Bytes(1_536), burst: Bytes(burst) };
        let line = fit::shifted_line(residual.effective(), typical);
        assert_eq!((line.start.0 / 1_000, line.slope.0 / 8_000), (1_228, 360), "{burst} B");
    }
}

/// The price of a first segment through the origin: 40 B have their deadline
/// after 1.26 ms, and none is later in proportion.
#[test]
fn the_papers_flows_leave_little_room_for_a_line_through_the_origin() {
    let residual = residual(PAPER);
    let typical = Typical { packet: Bytes(1_536), burst: Bytes(15_360) };
    let first = fit::origin_line(residual.effective());
    assert_eq!(first.0 / 8, 40 * 1_000_000_000 / residual.earliest_deadline(Bytes(40)).0);
    let second = fit::shifted_line(residual.effective(), typical);
    let segments = fit::two_segments(residual.effective(), typical);
    assert_eq!(segments, Segments { first, second });
}
