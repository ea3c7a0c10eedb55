//! What several runs tell of a value, with an interval that holds.
//!
//! Runs with different seeds are independent, and there are few of them. Two
//! intervals suit that. A value that every run averages over much traffic is close
//! to normal: its mean has Student's interval. A maximum, a quantile or a ratio can
//! have so heavy a tail that no interval of its mean holds with ten runs, or that
//! it has no mean at all; for such values the median over the runs is estimated,
//! between two of the runs' values, whose ranks follow from coin tossing alone.
//! That interval holds for every distribution, and its price is more runs: it needs
//! six. `tests/coverage.rs` holds both to what they promise. The measure decides
//! between the two, where it is defined.
//!
//! Contenders are compared seed by seed, since they meet the same traffic under the
//! same seed: [`Sample::less`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is estimated: the middle of the values that runs give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Centre {
    /// The mean, with Student's interval: for values with light tails.
    Mean,
    /// The median, with the interval between two order statistics: for maxima,
    /// quantiles and whatever may have heavy tails.
    Median,
}

impl Centre {
    /// The fewest runs that give an interval.
    ///
    /// ```
    /// use tidegate_study::Centre;
    /// assert_eq!((Centre::Mean.least_runs(), Centre::Median.least_runs()), (2, 6));
    /// ```
    #[must_use]
    pub fn least_runs(self) -> usize {
        match self {
            Centre::Mean => 2,
            Centre::Median => (1..).find(|runs| rank(*runs) > 0).expect("2^-n falls to any bound"),
        }
    }

    /// Its name: `mean` or `median`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Centre::Mean => "mean",
            Centre::Median => "median",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Centre> {
        [Centre::Mean, Centre::Median].into_iter().find(|centre| centre.name() == name)
    }

    /// The estimate from `values`, one of each run; `None` if there is none.
    #[must_use]
    pub fn of(self, values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let mut values: Vec<f64> = values.into_iter().collect();
        let runs = values.len();
        if runs == 0 {
            return None;
        }
        let (value, interval) = match self {
            Centre::Mean => student(&values),
            Centre::Median => {
                values.sort_by(f64::total_cmp);
                order_statistics(&values)
            }
        };
        Some(Estimate { centre: self, value, interval, runs })
    }
}

/// The centre of a value over seeds, with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// What it estimates.
    pub centre: Centre,
    /// The mean or median of the runs that have a value.
    pub value: f64,
    /// The ends of the 95% interval; `None` with fewer than
    /// [`Centre::least_runs`].
    pub interval: Option<(f64, f64)>,
    /// The number of runs with a value.
    pub runs: usize,
}

impl Estimate {
    /// The mean of `values`, one of each run; `None` if there is none.
    ///
    /// ```
    /// use tidegate_study::Estimate;
    /// let estimate = Estimate::mean([9.0, 10.0, 11.0]).expect("three values");
    /// assert_eq!(estimate.value, 10.0);
    /// // 4.303 standard errors of 1 / sqrt(3) with two degrees of freedom.
    /// assert!((estimate.half_width().expect("more than one") - 2.484).abs() < 0.001);
    /// ```
    #[must_use]
    pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        Centre::Mean.of(values)
    }

    /// The median of `values`, one of each run; `None` if there is none.
    ///
    /// ```
    /// use tidegate_study::Estimate;
    /// let stalls = [3.1, 2.2, 41.0, 2.9, 3.0, 2.4];
    /// let estimate = Estimate::median(stalls).expect("six values");
    /// // All six on one side of the median: that happens once in 32 times.
    /// assert_eq!((estimate.value, estimate.interval), (2.95, Some((2.2, 41.0))));
    /// assert_eq!(Estimate::median(stalls[..5].to_vec()).expect("five").interval, None);
    /// ```
    #[must_use]
    pub fn median(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        Centre::Median.of(values)
    }

    /// The ends of the interval; both the value itself where there is none, so that
    /// a plot shows no width.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        self.interval.unwrap_or((self.value, self.value))
    }

    /// Half the width of a mean's interval, which is symmetric; `None` for a median.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        let (low, high) = self.interval.filter(|_| self.centre == Centre::Mean)?;
        Some((high - low) / 2.0)
    }

    /// The value and its interval, both times `factor`, for a terminal: a mean as
    /// `12.3 ±0.4`, a median as `12.3 (11.0-15.2)`.
    #[must_use]
    pub fn text(&self, factor: f64, decimals: usize) -> String {
        let value = self.value * factor;
        let Some((low, high)) = self.interval else { return format!("{value:.decimals$}") };
        let (low, high) = (low * factor, high * factor);
        match self.centre {
            Centre::Mean => format!("{value:.decimals$} ±{:.decimals$}", (high - low) / 2.0),
            Centre::Median => format!("{value:.decimals$} ({low:.decimals$}-{high:.decimals$})"),
        }
    }

    /// The same less a constant.
    #[must_use]
    pub fn shifted(self, less: f64) -> Estimate {
        let interval = self.interval.map(|(low, high)| (low - less, high - less));
        Estimate { value: self.value - less, interval, ..self }
    }
}

/// One value of each run that has one, and what they say together.
///
/// ```
/// use tidegate_study::{Centre, Sample};
/// let fifo = Sample::of(Centre::Mean, [(1, Some(20.0)), (2, Some(31.0)), (3, Some(40.0))]);
/// let efd = Sample::of(Centre::Mean, [(1, Some(10.0)), (2, Some(20.0)), (3, None)]);
/// let (fifo, efd) = (fifo.expect("three values"), efd.expect("two"));
/// let difference = efd.less(&fifo).expect("seeds 1 and 2 have both");
/// assert_eq!((difference.value, difference.runs), (-10.5, 2));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    #[serde(flatten)]
    estimate: Estimate,
    by_seed: BTreeMap<u64, f64>,
}

impl Sample {
    /// The values of runs by their seeds; `None` if no run has one. What is not
    /// finite is no value.
    #[must_use]
    pub fn of(
        centre: Centre,
        values: impl IntoIterator<Item = (u64, Option<f64>)>,
    ) -> Option<Sample> {
        let known = values.into_iter().filter_map(|(seed, value)| Some((seed, value?)));
        let by_seed: BTreeMap<_, _> = known.filter(|(_, value)| value.is_finite()).collect();
        let estimate = centre.of(by_seed.values().copied())?;
        Some(Sample { estimate, by_seed })
    }

    /// For each seed that all of `samples` have, the value that `choose` makes of theirs,
    /// for example the worst; estimated as the first of them.
    #[must_use]
    pub fn across(samples: &[&Sample], choose: fn(f64, f64) -> f64) -> Option<Sample> {
        let (first, others) = samples.split_first()?;
        let of_seed = |(seed, value): (&u64, &f64)| {
            let mut all = others.iter().map(|other| other.by_seed.get(seed).copied());
            (*seed, all.try_fold(*value, |chosen, value| Some(choose(chosen, value?))))
        };
        Sample::of(first.estimate.centre, first.by_seed.iter().map(of_seed))
    }

    /// What the runs say together.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// The values of the runs, with their seeds.
    pub fn by_seed(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.by_seed.iter().map(|(seed, value)| (*seed, *value))
    }

    /// The values less what `other` has under the same seed, over the seeds that have
    /// both. The traffic is the same under both, and what it does to both falls out.
    #[must_use]
    pub fn differences(&self, other: &Sample) -> Vec<f64> {
        let difference = |(seed, value): (&u64, &f64)| Some(value - other.by_seed.get(seed)?);
        self.by_seed.iter().filter_map(difference).collect()
    }

    /// What is estimated of the [differences](Sample::differences); `None` if there are
    /// none.
    #[must_use]
    pub fn less(&self, other: &Sample) -> Option<Estimate> {
        self.estimate.centre.of(self.differences(other))
    }
}

/// The mean and Student's interval.
fn student(values: &[f64]) -> (f64, Option<(f64, f64)>) {
    let (runs, count) = (values.len(), values.len() as f64);
    let mean = values.iter().sum::<f64>() / count;
    let interval = (runs > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let half = student_quantile(runs - 1) * (squares / (count - 1.0) / count).sqrt();
        (mean - half, mean + half)
    });
    (mean, interval)
}

/// The median of ascending values and the interval between two of them.
fn order_statistics(values: &[f64]) -> (f64, Option<(f64, f64)>) {
    let last = values.len() - 1;
    let median = f64::midpoint(values[last / 2], values[values.len() / 2]);
    let interval =
        rank(values.len()).checked_sub(1).map(|place| (values[place], values[last - place]));
    (median, interval)
}

/// How far from either end of so many ascending values the interval of the median
/// may begin: the largest r such that fewer than r of them lie below the median in
/// at most 2.5% of all cases, whatever their distribution. Each lies below with
/// probability 1/2, so the number that does is binomial. 0 if even the smallest
/// value is too often above the median.
fn rank(runs: usize) -> usize {
    const EACH_SIDE: f64 = 0.025;
    let count = runs as f64;
    // By logarithms, since 2^-n is below what an f64 holds from 1 075 runs on.
    let mut logarithm = -count * core::f64::consts::LN_2;
    let (mut below, mut rank) = (0.0, 0);
    loop {
        below += libm::exp(logarithm);
        if below > EACH_SIDE {
            return rank;
        }
        let chosen = rank as f64;
        logarithm += libm::log((count - chosen) / (chosen + 1.0));
        rank += 1;
    }
}

/// The 97.5% quantile of Student's distribution.
fn student_quantile(degrees_of_freedom: usize) -> f64 {
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
        assert_eq!(Estimate::mean([5.0]).unwrap().interval, None);
        assert_eq!(Estimate::mean([]), None);
        assert_eq!(Estimate::median([]), None);
    }

    /// Whole numbers instead of logarithms, for as many runs as they hold.
    #[test]
    fn ranks_are_those_of_exact_binomial_sums() {
        for runs in 1..=60_usize {
            let (mut term, mut below, mut rank_of) = (1_u128, 0_u128, 0);
            // 2.5% of 2^runs, times 40.
            while {
                below += term;
                below * 40 <= 1 << runs
            } {
                term = term * (runs - rank_of) as u128 / (rank_of as u128 + 1);
                rank_of += 1;
            }
            assert_eq!(rank(runs), rank_of, "{runs}");
        }
        // The usual tables of the sign test.
        assert_eq!([5, 6, 8, 9, 10, 20, 30].map(rank), [0, 1, 1, 2, 2, 6, 10]);
        // Half of all less 1.96 standard deviations.
        assert_eq!(rank(10_000), 4_902);
    }

    #[test]
    fn no_value_can_move_a_median_without_bound() {
        let mut values: Vec<f64> = (1..=10).map(f64::from).collect();
        values[9] = 1e9;
        let estimate = Estimate::median(values).unwrap();
        assert_eq!((estimate.value, estimate.interval), (5.5, Some((2.0, 9.0))));
    }

    #[test]
    fn what_both_have_in_common_falls_out_of_a_difference() {
        let load = [10.0, 200.0, 30.0, 4_000.0, 50.0, 60.0];
        let by_seed = |more: f64| (1..).zip(load.map(|value| Some(value + more)));
        for centre in [Centre::Mean, Centre::Median] {
            let one = Sample::of(centre, by_seed(0.0)).unwrap();
            let other = Sample::of(centre, by_seed(3.0)).unwrap();
            assert_eq!(other.less(&one).unwrap().interval, Some((3.0, 3.0)));
            let (low, high) = one.estimate().interval.unwrap();
            assert!(low < other.estimate().value && other.estimate().value < high);
        }
    }

    #[test]
    fn seeds_without_a_partner_are_left_out_of_a_difference() {
        let sample = |values: &[(u64, f64)]| {
            Sample::of(Centre::Mean, values.iter().map(|(seed, it)| (*seed, Some(*it)))).unwrap()
        };
        let (one, other) = (sample(&[(1, 5.0), (2, 9.0)]), sample(&[(2, 7.0), (3, 0.0)]));
        let difference = one.less(&other).unwrap();
        assert_eq!((difference.value, difference.runs, difference.interval), (2.0, 1, None));
        assert_eq!(one.less(&sample(&[(4, 1.0)])), None);
        assert_eq!(Sample::of(Centre::Mean, [(1, None), (2, Some(f64::NAN))]), None);
    }

    #[test]
    fn the_worst_of_several_is_taken_seed_by_seed() {
        let sample = |values: &[(u64, f64)]| {
            Sample::of(Centre::Mean, values.iter().map(|(seed, it)| (*seed, Some(*it)))).unwrap()
        };
        let (one, other) = (sample(&[(1, 5.0), (2, 1.0), (3, 9.0)]), sample(&[(1, 2.0), (2, 4.0)]));
        let worst = Sample::across(&[&one, &other], f64::min).unwrap();
        assert_eq!(worst, sample(&[(1, 2.0), (2, 1.0)]));
        assert_eq!(Sample::across(&[&one], f64::min), Some(one));
        assert_eq!(Sample::across(&[], f64::min), None);
    }

    #[test]
    fn a_sample_survives_being_written() {
        let sample = Sample::of(Centre::Median, (1..=7).map(|it| (it, Some(it as f64)))).unwrap();
        let text = serde_json::to_string(&sample).unwrap();
        assert!(text.starts_with(
            r#"{"centre":"median","value":4.0,"interval":[1.0,7.0],"runs":7,"by_seed":{"1":1.0,"#
        ), "{text}");
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
    }
}
