//! Assignments that must give the same deadlines.

use proptest::prelude::*;
use tidegate_core::assignment::{
    Assignment, Bounded, ConstantState, Exact, OriginLine, SMALLEST_PACKET, ShiftedLine,
    TwoSegments, fit,
};
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::{Bytes, Rate, Span, Time};

use crate::flows::{PAPER, Step, any_residual, any_typical, residual, steps};

/// The deadlines of all packets; `each` sees the assignment after every packet.
fn watched(
    assignment: &mut dyn Assignment,
    steps: &[Step],
    mut each: impl FnMut(&dyn Assignment),
) -> Vec<Time> {
    let mut now = 0;
    let mut deadlines = Vec::new();
    for step in steps {
        match *step {
            Step::Packet(gap, size) => {
                now += gap;
                deadlines.push(assignment.assign(Time(now), Bytes(size)));
                each(assignment);
            }
            Step::Idle => assignment.reset(),
        }
    }
    deadlines
}

fn deadlines(mut assignment: impl Assignment, steps: &[Step]) -> Vec<Time> {
    watched(&mut assignment, steps, |_| ())
}

/// The capacity as [`Bounded`] sees it: with a straight tail after one period.
fn with_straight_tail(capacity: &Curve) -> Curve {
    let straight = capacity.line_below_from(capacity.tail() + capacity.period());
    straight.least_from_here_on().expect("a capacity does not fall")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_bounded_history_gives_the_deadlines_of_the_whole_one(
        residual in any_residual(),
        steps in steps(120),
    ) {
        let capacity = with_straight_tail(residual.effective());
        let mut bounded = Bounded::new(residual.effective());
        let within = capacity.value(capacity.tail()).max(0) / (PER_BYTE * i128::from(SMALLEST_PACKET.0));
        let mut most = 0;
        let by_bounded = watched(&mut bounded, &steps, |each| most = most.max(each.state()));
        prop_assert_eq!(by_bounded, deadlines(Exact::new(capacity), &steps));
        prop_assert!(most as i128 <= within + 1, "{} points, {} fit", most, within);
    }

    #[test]
    fn lines_and_segments_give_the_earliest_deadlines_within_their_curves(
        residual in any_residual(),
        typical in any_typical(),
        steps in steps(120),
    ) {
        let line = fit::shifted_line(residual.effective(), typical);
        let by_line = deadlines(ShiftedLine::new(line), &steps);
        prop_assert_eq!(by_line, deadlines(Exact::new(line.curve()), &steps));
        let segments = fit::two_segments(residual.effective(), typical);
        let by_segments = deadlines(TwoSegments::new(segments), &steps);
        prop_assert_eq!(&by_segments, &deadlines(Exact::new(segments.curve()), &steps));
        let constant = deadlines(ConstantState::new(segments), &steps);
        prop_assert!(constant.iter().zip(&by_segments).all(|(safe, least)| safe >= least));
    }

    #[test]
    fn a_line_through_the_origin_is_the_total_bandwidth_server(
        share in 1_u64..10_000_000,
        steps in steps(120),
    ) {
        // Spuri 1996, in whole parts of a nanosecond.
        let (mut now, mut last) = (0_u128, 0_u128);
        let mut server = Vec::new();
        for step in &steps {
            match *step {
                Step::Packet(gap, size) => {
                    now += u128::from(gap);
                    let bits = 8_000_000_000 * u128::from(size.max(SMALLEST_PACKET.0));
                    last = last.max(now * u128::from(share)) + bits;
                    let due = last.div_ceil(u128::from(share));
                    server.push(Time(u64::try_from(due).expect("within years")));
                }
                Step::Idle => last = 0,
            }
        }
        let line = Curve::rate(Rate(share));
        prop_assert_eq!(&deadlines(OriginLine::new(Rate(share)), &steps), &server);
        prop_assert_eq!(&deadlines(Exact::new(line.clone()), &steps), &server);
        prop_assert_eq!(&deadlines(Bounded::new(&line), &steps), &server);
    }
}

#[test]
fn the_whole_history_grows_and_the_bounded_one_does_not() {
    let residual = residual(PAPER);
    let mut exact = Exact::new(residual.effective().clone());
    let mut bounded = Bounded::new(residual.effective());
    // The papers' curves end in one line, from 463 ms on.
    assert_eq!(residual.effective().tail() / 1_000_000, 463);
    let within = residual.effective().bytes(Span(residual.effective().tail())).0 / 1_536;
    let mut most = 0;
    for number in 0..5_000_u64 {
        // A packet of 1 536 B every 4 ms is 384 kB/s of the 450 kB/s that are left.
        let at = Time(number * 4_000_000);
        assert_eq!(exact.assign(at, Bytes(1_536)), bounded.assign(at, Bytes(1_536)));
        most = most.max(bounded.state());
    }
    assert_eq!(exact.state(), 5_000);
    assert!(most as u64 <= within + 1, "{most} points, {within} fit");
}
