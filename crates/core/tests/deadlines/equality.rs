//! Assignments that must give the same deadlines.

use proptest::prelude::*;
use tidegate_core::assignment::{Assignment, Bounded, Exact, SMALLEST_PACKET};
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::{Bytes, Time};

use crate::flows::{PAPER, Step, any_residual, residual, steps};

/// The deadlines of all packets; `each` sees the assignment after every packet.
fn deadlines(
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

/// The capacity as [`Bounded`] sees it: with a straight tail.
fn with_straight_tail(capacity: &Curve) -> Curve {
    let straight = capacity.line_below_from(capacity.tail());
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
        let within = capacity.value(capacity.tail()) / (PER_BYTE * i128::from(SMALLEST_PACKET.0));
        let mut most = 0;
        let by_bounded = deadlines(&mut bounded, &steps, |each| most = most.max(each.state()));
        let by_exact = deadlines(&mut Exact::new(capacity), &steps, |_| ());
        prop_assert_eq!(by_bounded, by_exact);
        prop_assert!(most as i128 <= within + 1, "{} points, {} fit", most, within);
    }
}

#[test]
fn the_whole_history_grows_and_the_bounded_one_does_not() {
    let residual = residual(PAPER);
    let mut exact = Exact::new(residual.effective().clone());
    let mut bounded = Bounded::new(residual.effective());
    let mut most = 0;
    for number in 0..5_000_u64 {
        // A packet of 1 536 B every 4 ms is 384 kB/s of the 400 kB/s that are left.
        let at = Time(number * 4_000_000);
        assert_eq!(exact.assign(at, Bytes(1_536)), bounded.assign(at, Bytes(1_536)));
        most = most.max(bounded.state());
    }
    assert_eq!(exact.state(), 5_000);
    assert!(most < 130, "{most} points");
}
