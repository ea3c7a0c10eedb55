//! Laws of the algebra of curves.

use proptest::prelude::*;
use tidegate_core::curve::Curve;

use crate::model::{DENSE, any_curve, climbing_curve, positive_curve, same};

proptest! {
    #[test]
    fn sum_and_minimum_are_a_semiring(a in any_curve(), b in any_curve(), c in any_curve()) {
        let (a, b, c) = (a.curve(), b.curve(), c.curve());
        let plus = |x: &Curve, y: &Curve| x.plus(y).unwrap();
        let least = |x: &Curve, y: &Curve| x.minimum(y).unwrap();
        same(&plus(&a, &b), &plus(&b, &a))?;
        same(&plus(&plus(&a, &b), &c), &plus(&a, &plus(&b, &c)))?;
        same(&plus(&a, &Curve::zero()), &a)?;
        same(&least(&a, &b), &least(&b, &a))?;
        same(&least(&least(&a, &b), &c), &least(&a, &least(&b, &c)))?;
        same(&least(&a, &a), &a)?;
        same(&plus(&a, &least(&b, &c)), &least(&plus(&a, &b), &plus(&a, &c)))?;
        same(&plus(&a, &b).minus(&b).unwrap(), &a)?;
        same(&least(&a, &a.maximum(&b).unwrap()), &a)?;
    }

    #[test]
    fn convolution_is_commutative_associative_and_distributive(
        a in any_curve(), b in any_curve(), c in any_curve(),
    ) {
        let (a, b, c) = (a.curve(), b.curve(), c.curve());
        let fold = |x: &Curve, y: &Curve| x.convolution(y).unwrap();
        let least = |x: &Curve, y: &Curve| x.minimum(y).unwrap();
        same(&fold(&a, &b), &fold(&b, &a))?;
        same(&fold(&fold(&a, &b), &c), &fold(&a, &fold(&b, &c)))?;
        same(&fold(&a, &least(&b, &c)), &least(&fold(&a, &b), &fold(&a, &c)))?;
        let raised = a.plus(&Curve::line(7, 0)).unwrap();
        same(&fold(&raised, &b), &fold(&a, &b).plus(&Curve::line(7, 0)).unwrap())?;
    }

    /// `a (/) b <= c` exactly when `a <= c * b` (Le Boudec 2001).
    #[test]
    fn deconvolution_is_dual_to_convolution(a in any_curve(), b in any_curve()) {
        let (a, b) = (a.curve(), b.curve());
        if let Some(behind) = a.deconvolution(&b).unwrap() {
            let above = behind.convolution(&b).unwrap();
            prop_assert!((0..DENSE).all(|at| a.value(at) <= above.value(at)));
            let lower = behind.minus(&Curve::line(1, 0)).unwrap().convolution(&b).unwrap();
            prop_assert!((0..8_000).any(|at| a.value(at) > lower.value(at)));
        }
        let back = a.convolution(&b).unwrap().deconvolution(&b).unwrap();
        if let Some(back) = back {
            prop_assert!((0..DENSE).all(|at| back.value(at) <= a.value(at)));
        }
    }

    #[test]
    fn backlog_and_delay_are_those_of_the_deconvolution(
        a in positive_curve(), b in positive_curve(),
    ) {
        let (a, b) = (a.curve(), b.curve());
        let behind = a.deconvolution(&b).unwrap();
        let backlog = a.vertical_deviation(&b).unwrap();
        prop_assert_eq!(backlog, behind.map(|behind| behind.value(0)));
        if let Some(delay) = a.horizontal_deviation(&b).unwrap() {
            let late = |by: u64| (0..8_000).any(|at| a.value(at) > b.value(at + by));
            prop_assert!(!late(delay));
            prop_assert!(delay == 0 || late(delay - 1));
        }
    }

    /// `f(t) >= v` exactly when `t >= first_reaching(v)`.
    #[test]
    fn first_reaching_is_a_galois_connection(f in climbing_curve(), value in -40..200_i128) {
        let f = f.curve();
        let first = f.first_reaching(value);
        for at in 0..DENSE {
            prop_assert_eq!(f.value(at) >= value, first.is_some_and(|first| at >= first));
        }
    }

    #[test]
    fn delays_add_up_and_pass_through(
        a in positive_curve(), b in positive_curve(), one in 0..30_u64, other in 0..30_u64,
    ) {
        let (a, b) = (a.curve(), b.curve());
        same(&a.delayed(one).delayed(other), &a.delayed(one + other))?;
        let sum = a.plus(&b).unwrap();
        same(&sum.delayed(one), &a.delayed(one).plus(&b.delayed(one)).unwrap())?;
    }

    #[test]
    fn closures_are_idempotent_monotone_and_on_their_side(a in any_curve(), b in any_curve()) {
        let (a, b) = (a.curve(), b.curve());
        let up = a.greatest_so_far();
        same(&up.greatest_so_far(), &up)?;
        prop_assert!((0..DENSE).all(|at| up.value(at) >= a.value(at)));
        same(&a.maximum(&b).unwrap().greatest_so_far(), &up.maximum(&b.greatest_so_far()).unwrap())?;
        if let (Some(down), Some(others)) = (a.least_from_here_on(), b.least_from_here_on()) {
            same(&down.least_from_here_on().unwrap(), &down)?;
            prop_assert!((0..DENSE).all(|at| down.value(at) <= a.value(at)));
            let both = a.minimum(&b).unwrap().least_from_here_on().unwrap();
            same(&both, &down.minimum(&others).unwrap())?;
            same(&down.greatest_so_far(), &down)?;
        }
    }

    /// Of two lines, and so of all concave curves through the origin, the
    /// convolution is the minimum.
    #[test]
    fn concave_curves_through_the_origin_convolve_to_their_minimum(
        slopes in (0..20_i128, 0..20_i128, 0..20_i128, 0..20_i128),
        turns in (1..30_i128, 1..30_i128),
    ) {
        let bent = |p: i128, q: i128, turn: i128| {
            let (steep, flat) = (p.max(q), p.min(q));
            Curve::line(0, steep).minimum(&Curve::line((steep - flat) * turn, flat)).unwrap()
        };
        let (a, b) = (bent(slopes.0, slopes.1, turns.0), bent(slopes.2, slopes.3, turns.1));
        same(&a.convolution(&b).unwrap(), &a.minimum(&b).unwrap())?;
    }
}
