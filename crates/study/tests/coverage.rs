//! Whether 95% intervals have the value that they are about in 95% of all cases, on
//! distributions whose mean and median are known, and that the interval of a mean
//! fails where one of a median is asked for.
//!
//! Each share is of [`TRIALS`] independent cases, so one that is 95% comes out within
//! four standard errors of 0.15 points each: 94.4 to 95.6%.

use tidegate_core::random::Stream;
use tidegate_study::measure::Better;
use tidegate_study::{Centre, Estimate, Sample, ranking};

const TRIALS: usize = 20_000;

/// Four standard errors of a share of [`TRIALS`].
fn tolerance(share: f64) -> f64 {
    4.0 * (share * (1.0 - share) / TRIALS as f64).sqrt()
}

/// A distribution with known centres.
struct Law {
    name: &'static str,
    draw: fn(&mut Stream) -> f64,
    mean: f64,
    median: f64,
}

/// The exponent of both Pareto laws: the variance is infinite, as that of what a
/// queue does to heavy-tailed transfers may be.
const TAIL: f64 = 1.5;
/// Each run's value is the largest of so many.
const OF: f64 = 100.0;

/// At least one with this probability of being exceeded.
fn pareto(exceeding: f64) -> f64 {
    libm::pow(exceeding, -1.0 / TAIL)
}

fn laws() -> [Law; 4] {
    let gamma = libm::lgamma;
    let half = libm::pow(0.5, 1.0 / OF);
    [
        Law { name: "normal", draw: Stream::normal, mean: 0.0, median: 0.0 },
        Law {
            name: "exponential",
            draw: Stream::exponential,
            mean: 1.0,
            median: core::f64::consts::LN_2,
        },
        Law {
            name: "Pareto 1.5",
            draw: |stream| pareto(1.0 - stream.uniform()),
            mean: TAIL / (TAIL - 1.0),
            median: pareto(0.5),
        },
        Law {
            name: "largest of 100 Pareto 1.5",
            // The largest of n uniform numbers is the nth root of one.
            draw: |stream| pareto(1.0 - libm::pow(stream.uniform(), 1.0 / OF)),
            // n B(n, 1 - 1/a), by the density of a maximum.
            mean: libm::exp(
                gamma(OF + 1.0) + gamma(1.0 - 1.0 / TAIL) - gamma(OF + 1.0 - 1.0 / TAIL),
            ),
            median: pareto(1.0 - half),
        },
    ]
}

/// The share of the cases of so many runs whose interval has the true value in it.
fn coverage(law: &Law, centre: Centre, runs: usize) -> f64 {
    let mut stream = Stream::new(1, law.name);
    let truth = match centre {
        Centre::Mean => law.mean,
        Centre::Median => law.median,
    };
    let covers = |estimate: Estimate| {
        let (low, high) = estimate.interval.expect("there are enough runs");
        low <= truth && truth <= high
    };
    let mut case = || centre.of((0..runs).map(|_| (law.draw)(&mut stream)));
    let covered = (0..TRIALS).filter(|_| case().is_some_and(covers)).count();
    covered as f64 / TRIALS as f64
}

/// Exact, and the same for every law: 1 less twice the probability that fewer values
/// than the rank of the interval's ends lie on one side.
#[test]
fn medians_are_covered_as_binomial_sums_say_whatever_the_law() {
    for law in laws() {
        for (runs, exact) in [(6, 0.968_75), (10, 0.978_516), (30, 0.957_226)] {
            let share = coverage(&law, Centre::Median, runs);
            let off = (share - exact).abs();
            assert!(off < tolerance(exact), "{}, {runs} runs: {share}", law.name);
        }
    }
}

#[test]
fn means_of_normal_values_are_covered() {
    let [normal, ..] = laws();
    for runs in [2, 3, 6, 10, 30] {
        let share = coverage(&normal, Centre::Mean, runs);
        assert!((share - 0.95).abs() < tolerance(0.95), "{runs} runs: {share}");
    }
}

/// Without this the tests above would pass for any interval that is wide.
#[test]
fn means_of_heavy_tails_are_not_covered() {
    let [_, exponential, pareto, maxima] = laws();
    for (law, least, most) in
        [(exponential, 0.89, 0.91), (pareto, 0.60, 0.75), (maxima, 0.60, 0.75)]
    {
        let share = coverage(&law, Centre::Mean, 10);
        assert!((least..most).contains(&share), "{}: {share}", law.name);
    }
}

/// Two contenders that are alike apart from chance, over what both met in common.
#[test]
fn equals_are_told_apart_in_at_most_one_case_of_twenty() {
    let [normal, .., maxima] = laws();
    for (law, centre) in [(&normal, Centre::Mean), (&maxima, Centre::Median)] {
        let mut stream = Stream::new(2, law.name);
        let apart = (0..TRIALS).filter(|_| {
            let mut contenders = [Vec::new(), Vec::new()];
            for seed in 0..10 {
                let common = (maxima.draw)(&mut stream);
                for values in &mut contenders {
                    values.push((seed, Some(common + (law.draw)(&mut stream))));
                }
            }
            let [one, other] = contenders.map(|values| Sample::of(centre, values));
            let best = ranking::best(&[one.as_ref(), other.as_ref()], Better::Less, 0.0);
            best != [true, true]
        });
        let share = apart.count() as f64 / TRIALS as f64;
        assert!(share < 0.05 + tolerance(0.05), "{}: {share}", law.name);
        // Not because nothing is ever told apart.
        assert!(share > 0.015, "{}: {share}", law.name);
    }
}
