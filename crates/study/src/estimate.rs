//! Means with confidence intervals over independent runs.

use serde::{Deserialize, Serialize};

/// A mean over seeds with its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean of the runs that have a value.
    pub mean: f64,
    /// Half the width of the interval; `None` with fewer than two runs.
    pub half_width: Option<f64>,
    /// The number of runs with a value.
    pub runs: usize,
}

impl Estimate {
    /// The mean of `values`, one from each run; `None` if there is none. The
    /// interval is Student's, since there are few runs.
    ///
    /// ```
    /// use tidegate_study::Estimate;
    /// let estimate = Estimate::of([9.0, 10.0, 11.0]).expect("three values");
    /// assert_eq!(estimate.mean, 10.0);
    /// // 4.303 standard errors of 1 / sqrt(3) with two degrees of freedom.
    /// assert!((estimate.half_width.expect("more than one") - 2.484).abs() < 0.001);
    /// ```
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let values: Vec<f64> = values.into_iter().collect();
        let runs = values.len();
        if runs == 0 {
            return None;
        }
        let count = runs as f64;
        let mean = values.iter().sum::<f64>() / count;
        let half_width = (runs > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            let standard_error = (squares / (count - 1.0) / count).sqrt();
            student_quantile(runs - 1) * standard_error
        });
        Some(Estimate { mean, half_width, runs })
    }

    /// The interval's ends; both the mean when there is only one run.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        let half = self.half_width.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }
}

/// The 97.5% quantile of Student's distribution.
#[must_use]
pub fn student_quantile(degrees_of_freedom: usize) -> f64 {
    // From the usual tables; a list is exact to what anyone prints and, unlike
    // a special function, the same on every machine.
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    // Beyond the table the first term of the expansion in 1/n is within 0.001.
    let beyond = || 1.960 + 2.374 / degrees_of_freedom as f64;
    TABLE.get(degrees_of_freedom.wrapping_sub(1)).copied().unwrap_or_else(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_falls_smoothly_past_the_table() {
        assert!((student_quantile(31) - 2.0395).abs() < 0.003);
        assert!((student_quantile(1_000_000) - 1.960).abs() < 0.001);
    }

    #[test]
    fn one_run_has_no_interval_and_none_no_estimate() {
        assert_eq!(Estimate::of([5.0]).unwrap().half_width, None);
        assert_eq!(Estimate::of([]), None);
    }
}
