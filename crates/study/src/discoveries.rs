//! Which of many differences are real.
//!
//! Whoever compares at 95% a thousand times finds fifty differences where there is none.
//! Here the share of false ones among those that are found is bounded instead: by the
//! rule of `Benjamini 1995`, from the p-value of each comparison. The rule holds for
//! comparisons that are independent, or that rise and fall together, as those do in which
//! the same contender is one side.

use core::f64::consts::FRAC_2_PI;

/// How often Student's test would find a mean that is at least as far from zero in
/// `differences` that are normal around zero; `None` for fewer than two.
///
/// ```
/// use tidegate_study::discoveries::p_value;
///
/// // The mean is 10 and its standard error the root of 1/3: t is 17.32 with two degrees
/// // of freedom.
/// let p = p_value(&[9.0, 10.0, 11.0]).expect("three differences");
/// assert!((p - 0.003317).abs() < 1e-6);
/// ```
#[must_use]
pub fn p_value(differences: &[f64]) -> Option<f64> {
    let count = differences.len() as f64;
    if differences.len() < 2 {
        return None;
    }
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|value| (value - mean) * (value - mean)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    Some(match (mean == 0.0, error == 0.0) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => beyond(mean.abs() / error, differences.len() - 1),
    })
}

/// The probability that Student's variable with so many degrees of freedom is farther
/// from zero than `t`: for whole degrees a finite sum of sines and cosines.
fn beyond(t: f64, degrees: usize) -> f64 {
    let angle = libm::atan(t / (degrees as f64).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let even = degrees.is_multiple_of(2);
    // Terms in cos^0, cos^2, .. for even degrees, and cos^1, cos^3, .. for odd ones, each
    // made from the one before.
    let (mut term, mut sum) = (if even { 1.0 } else { cosine }, 0.0);
    let mut power = if even { 0 } else { 1 };
    while power + 2 <= degrees {
        sum += term;
        power += 2;
        term *= cosine * cosine * (power as f64 - 1.0) / power as f64;
    }
    let within = if even { sine * sum } else { FRAC_2_PI * (angle + sine * sum) };
    (1.0 - within).clamp(0.0, 1.0)
}

/// Which of the comparisons with these p-values are discoveries, if at most the part
/// `false_part` of all discoveries may be false in the mean. With the p-values in
/// ascending order, those up to the last one that is at most its place times
/// `false_part` over their number.
#[must_use]
pub fn discoveries(p_values: &[f64], false_part: f64) -> Vec<bool> {
    let mut ascending = p_values.to_vec();
    ascending.sort_by(f64::total_cmp);
    let step = false_part / ascending.len().max(1) as f64;
    let places = (1..).zip(&ascending);
    let last = places.filter(|(place, p)| **p <= f64::from(*place) * step).last();
    p_values.iter().map(|p| last.is_some_and(|(_, bound)| p <= bound)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_tables_are_met() {
        for (t, degrees, p) in [
            (12.706, 1, 0.05),
            (4.303, 2, 0.05),
            (3.182, 3, 0.05),
            (2.776, 4, 0.05),
            (2.571, 5, 0.05),
            (4.032, 5, 0.01),
            (2.262, 9, 0.05),
            (2.228, 10, 0.05),
            (2.042, 30, 0.05),
        ] {
            assert!((beyond(t, degrees) - p).abs() < 2e-4 * p / 0.05, "{t} {degrees}");
        }
    }

    #[test]
    fn what_never_differs_is_no_discovery_and_what_always_does_alike_is_one() {
        assert_eq!(p_value(&[0.0; 5]), Some(1.0));
        assert_eq!(p_value(&[2.0; 5]), Some(0.0));
        assert_eq!(p_value(&[-1.0, 1.0]), Some(1.0));
        assert_eq!(p_value(&[1.0]), None);
    }

    /// The example of `Benjamini 1995 section 3`: four of fifteen, one more than
    /// Bonferroni's rule gives.
    #[test]
    fn the_worked_example_of_the_rule_has_four_discoveries() {
        let p_values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let found = discoveries(&p_values, 0.05);
        assert_eq!(found.iter().filter(|it| **it).count(), 4);
        assert!(found[..4].iter().all(|it| *it));
        // Their order does not matter, and a value above its own bound is taken along by a
        // later one that is below.
        assert_eq!(discoveries(&[0.9, 0.04, 0.03], 0.05), [false, false, false]);
        assert_eq!(discoveries(&[0.03, 0.04, 0.03], 0.05), [true, true, true]);
        assert_eq!(discoveries(&[], 0.05), [] as [bool; 0]);
    }
}
