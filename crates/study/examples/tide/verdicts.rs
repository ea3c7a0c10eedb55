//! `tide` against each rival, case by case and figure by figure.
//!
//! A comparison is of runs with the same seed. `tide` is better, or worse, where Student's
//! test of these differences is a discovery among all comparisons of the figure
//! ([`discoveries`]), and the mean difference is more than what matters. All else is a tie.

use tidegate_study::discoveries::{discoveries, p_value};
use tidegate_study::measure::Better;
use tidegate_study::{Estimate, Sample};

use super::DISCIPLINES;
use super::cases::CREDITS;
use super::figures::FIGURES;
use super::result::CaseResult;

/// The part of all differences found that may be none, in the mean.
pub(crate) const FALSE_PART: f64 = 0.05;

/// How `tide` fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Better,
    Tie,
    Worse,
}

/// One comparison.
pub(crate) struct Comparison {
    /// The place of the case among the results.
    pub(crate) case: usize,
    pub(crate) figure: usize,
    /// The place of the rival among the disciplines.
    pub(crate) rival: usize,
    /// Means over the seeds that both have.
    pub(crate) ours: f64,
    pub(crate) theirs: f64,
    /// Ours less theirs, seed by seed.
    pub(crate) difference: Estimate,
    /// Whether the difference is a discovery, whether it matters or not.
    pub(crate) real: bool,
    pub(crate) verdict: Verdict,
}

impl Comparison {
    /// By how much ours is worse, as a part of theirs; infinite where theirs is zero.
    pub(crate) fn worse_by(&self) -> f64 {
        let sign = if FIGURES[self.figure].better == Better::More { -1.0 } else { 1.0 };
        sign * self.difference.value / self.theirs
    }
}

/// All comparisons.
pub(crate) struct Verdicts(Vec<Comparison>);

/// How many comparisons came out how.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) better: usize,
    pub(crate) ties: usize,
    pub(crate) worse: usize,
}

impl Count {
    pub(crate) fn all(self) -> usize {
        self.better + self.ties + self.worse
    }
}

impl Verdicts {
    /// Of every case that has the rivals.
    pub(crate) fn of(results: &[CaseResult]) -> Verdicts {
        let mut all = Vec::new();
        for figure in 0..FIGURES.len() {
            all.extend(of_figure(results, figure));
        }
        Verdicts(all)
    }

    /// Those of a figure.
    pub(crate) fn figure(&self, figure: usize) -> impl Iterator<Item = &Comparison> {
        self.0.iter().filter(move |it| it.figure == figure)
    }

    /// How those came out that `chosen` chooses.
    pub(crate) fn count(&self, chosen: impl Fn(&Comparison) -> bool) -> Count {
        let mut count = Count::default();
        for comparison in self.0.iter().filter(|it| chosen(it)) {
            match comparison.verdict {
                Verdict::Better => count.better += 1,
                Verdict::Tie => count.ties += 1,
                Verdict::Worse => count.worse += 1,
            }
        }
        count
    }
}

fn of_figure(results: &[CaseResult], figure: usize) -> Vec<Comparison> {
    let (mut comparisons, mut p_values) = (Vec::new(), Vec::new());
    for (case, result) in results.iter().enumerate().filter(|(_, it)| it.group != CREDITS) {
        let sample = |discipline: usize| result.values[discipline][figure].as_ref();
        for rival in 1..DISCIPLINES.len() {
            let (Some(ours), Some(theirs)) = (sample(0), sample(rival)) else { continue };
            let differences = ours.differences(theirs);
            let Some(difference) = Estimate::mean(differences.iter().copied()) else { continue };
            let theirs = mean(theirs, ours);
            p_values.push(p_value(&differences).unwrap_or(1.0));
            comparisons.push(Comparison {
                case,
                figure,
                rival,
                ours: theirs + difference.value,
                theirs,
                difference,
                real: false,
                verdict: Verdict::Tie,
            });
        }
    }
    for (comparison, real) in comparisons.iter_mut().zip(discoveries(&p_values, FALSE_PART)) {
        comparison.real = real;
        let matters = comparison.difference.value.abs() > FIGURES[figure].matters;
        if real && matters {
            let less = comparison.difference.value < 0.0;
            let wanted = FIGURES[figure].better == Better::Less;
            comparison.verdict = if less == wanted { Verdict::Better } else { Verdict::Worse };
        }
    }
    comparisons
}

/// The mean over the seeds that `other` has too.
fn mean(sample: &Sample, other: &Sample) -> f64 {
    let seeds: Vec<u64> = other.by_seed().map(|(seed, _)| seed).collect();
    let common = sample.by_seed().filter(|(seed, _)| seeds.contains(seed));
    Estimate::mean(common.map(|(_, value)| value)).map_or(f64::NAN, |it| it.value)
}
