//! Whether the simulator agrees with the kernel.
//!
//! Both see the same logs, so figures are compared log by log: of each class and
//! measure, the ratio of the simulator's to the kernel's, with a 95% interval over logs.
//! It holds when the whole interval lies within the tolerance, is out when all of it
//! lies outside, and undecided otherwise. A verdict is never given without an interval.

use tidegate_study::Estimate;

use crate::cell::{Cell, Question, Tolerance};
use crate::figures::{CLASSES, Row};
use crate::simulated::{self, Absent};
use crate::workload;

/// What became of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The interval lies within the tolerance.
    Holds,
    /// It crosses its end, or there are too few logs for one.
    Undecided,
    /// It lies outside.
    Out,
}

impl Verdict {
    /// As tables say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Undecided => "undecided",
            Verdict::Out => "**out**",
        }
    }

    /// Of ratios of ours to the kernel's, one for each log.
    #[must_use]
    pub fn of(ratio: Option<&Estimate>, tolerance: f64) -> Verdict {
        Verdict::between(ratio, 1.0 - tolerance, 1.0 + tolerance)
    }

    /// Of differences of ours from the kernel's, one for each log.
    #[must_use]
    pub fn of_difference(difference: Option<&Estimate>, allowed: f64) -> Verdict {
        Verdict::between(difference, -allowed, allowed)
    }

    fn between(estimate: Option<&Estimate>, least: f64, most: f64) -> Verdict {
        let Some((low, high)) = estimate.and_then(|estimate| estimate.interval) else {
            return Verdict::Undecided;
        };
        if low >= least && high <= most {
            Verdict::Holds
        } else if high < least || low > most {
            Verdict::Out
        } else {
            Verdict::Undecided
        }
    }
}

/// A figure of a size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The mean response time.
    Mean,
    /// The median.
    Median,
    /// The 95th percentile.
    P95,
}

impl Measure {
    /// Every measure, in the order of tables.
    pub const ALL: [Measure; 3] = [Measure::Mean, Measure::Median, Measure::P95];

    /// The figure in a row.
    #[must_use]
    pub fn of(self, row: &Row) -> f64 {
        match self {
            Measure::Mean => row.mean_ms,
            Measure::Median => row.median_ms,
            Measure::P95 => row.p95_ms,
        }
    }

    /// How far it may be off; `None` if it is not judged.
    #[must_use]
    pub fn tolerance(self, tolerance: Tolerance) -> Option<f64> {
        match self {
            Measure::Mean => Some(tolerance.mean),
            Measure::Median => tolerance.median,
            Measure::P95 => Some(tolerance.p95),
        }
    }
}

/// A measure of a class, in both worlds.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The kernel's, over logs, in milliseconds.
    pub kernel: Estimate,
    /// The same of the simulator.
    pub ours: Estimate,
    /// Of ours to the kernel's, over logs.
    pub ratio: Option<Estimate>,
    /// `None` if it is not judged.
    pub verdict: Option<Verdict>,
}

/// A size class of a cell.
#[derive(Clone, Debug)]
pub struct Class {
    /// What it is called.
    pub name: &'static str,
    /// Transfers that the kernel began, and those of them that were done.
    pub kernel_count: (usize, usize),
    /// The same of the simulator.
    pub ours_count: (usize, usize),
    /// In the order of [`Measure::ALL`].
    pub figures: Vec<Figure>,
}

/// A cell that both worlds have measured.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Which.
    pub cell: Cell,
    /// How many logs were compared.
    pub logs: usize,
    /// The size classes that both have, from the smallest.
    pub classes: Vec<Class>,
    /// The ratio of ours to the kernel's over all classes in each log, in the order of
    /// [`Measure::ALL`].
    pub ratios: [Vec<f64>; 3],
}

impl Judged {
    /// The verdicts of its figures.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> + '_ {
        self.classes.iter().flat_map(|class| class.figures.iter().filter_map(|each| each.verdict))
    }

    /// The worst of them.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdicts().max().unwrap_or(Verdict::Undecided)
    }
}

/// Runs the simulator on the logs of a cell that are among the `kernel`'s rows.
///
/// # Errors
/// When the simulator lacks the queue or the controller.
pub fn ours(cell: &Cell, kernel: &[Row]) -> Result<Vec<Row>, Absent> {
    let name = cell.to_string();
    let mut logs: Vec<u64> =
        kernel.iter().filter(|row| row.cell == name).map(|row| row.log).collect();
    logs.sort_unstable();
    logs.dedup();
    let mut rows = Vec::new();
    for log in logs {
        let transfers = workload::transfers(cell.link.rate, cell.load(), log);
        let responses = simulated::responses(cell, &transfers)?;
        rows.extend(crate::figures::condense(&name, log, &transfers, &responses));
    }
    Ok(rows)
}

/// Compares the rows of a cell.
#[must_use]
pub fn judge(cell: &Cell, kernel: &[Row], ours: &[Row]) -> Judged {
    let name = cell.to_string();
    let mut logs: Vec<u64> = ours.iter().map(|row| row.log).collect();
    logs.sort_unstable();
    logs.dedup();
    let classes = (0..CLASSES.len()).filter_map(|class| {
        let pairs: Vec<(&Row, &Row)> = logs
            .iter()
            .filter_map(|log| {
                let of_it = |row: &&Row| row.cell == name && row.log == *log && row.class == class;
                Some((kernel.iter().find(of_it)?, ours.iter().find(of_it)?))
            })
            .collect();
        (!pairs.is_empty()).then(|| classified(cell.question, class, &pairs))
    });
    let classes = classes.collect();
    let kernel: Vec<&Row> = kernel.iter().filter(|row| row.cell == name).collect();
    let ours: Vec<&Row> = ours.iter().filter(|row| row.cell == name).collect();
    let ratios = Measure::ALL.map(|measure| ratios(&kernel, &ours, measure));
    Judged { cell: *cell, logs: logs.len(), classes, ratios }
}

/// The ratio of ours to the kernel's in each log that both have: the geometric mean over
/// size classes.
fn ratios(kernel: &[&Row], ours: &[&Row], measure: Measure) -> Vec<f64> {
    let mut logs: Vec<u64> = ours.iter().map(|row| row.log).collect();
    logs.sort_unstable();
    logs.dedup();
    let ratios = logs.into_iter().filter_map(|log| {
        let classes = ours.iter().filter(|row| row.log == log).filter_map(|ours| {
            let kernel = kernel.iter().find(|row| row.log == log && row.class == ours.class)?;
            Some(libm::log(measure.of(ours) / measure.of(kernel)))
        });
        let (sum, count) = classes.fold((0.0, 0), |(sum, count), log| (sum + log, count + 1));
        (count > 0).then(|| libm::exp(sum / f64::from(count)))
    });
    ratios.collect()
}

/// Compares a class over logs.
fn classified(question: Question, class: usize, pairs: &[(&Row, &Row)]) -> Class {
    let count = |side: fn(&(&Row, &Row)) -> (usize, usize)| {
        pairs.iter().map(side).fold((0, 0), |sum, (begun, done)| (sum.0 + begun, sum.1 + done))
    };
    let figure = |measure: Measure| {
        let mean = |side: for<'a> fn(&'a (&'a Row, &'a Row)) -> &'a Row| {
            let values = pairs.iter().map(|pair| measure.of(side(pair)));
            Estimate::mean(values).expect("there is a pair")
        };
        let ratios = pairs.iter().map(|(kernel, ours)| measure.of(ours) / measure.of(kernel));
        let ratio = Estimate::mean(ratios);
        let verdict = measure
            .tolerance(question.tolerance())
            .map(|tolerance| Verdict::of(ratio.as_ref(), tolerance));
        Figure { kernel: mean(|pair| pair.0), ours: mean(|pair| pair.1), ratio, verdict }
    };
    Class {
        name: CLASSES[class].1,
        kernel_count: count(|(kernel, _)| (kernel.begun, kernel.done)),
        ours_count: count(|(_, ours)| (ours.begun, ours.done)),
        figures: Measure::ALL.into_iter().map(figure).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::cells;

    fn row(log: u64, mean_ms: f64) -> Row {
        let cell = cells()[0].to_string();
        Row { cell, log, class: 2, begun: 50, done: 49, mean_ms, median_ms: 5.0, p95_ms: 9.0 }
    }

    #[test]
    fn a_verdict_needs_the_whole_interval_on_one_side() {
        let verdict =
            |ratios: &[f64]| Verdict::of(Estimate::mean(ratios.iter().copied()).as_ref(), 0.1);
        assert_eq!(verdict(&[1.02, 0.99, 1.01, 1.0]), Verdict::Holds);
        assert_eq!(verdict(&[1.31, 1.29, 1.3, 1.28]), Verdict::Out);
        assert_eq!(verdict(&[0.71, 0.69, 0.7, 0.72]), Verdict::Out);
        // Inside on average, but one log is far off.
        assert_eq!(verdict(&[1.0, 1.0, 1.0, 1.4]), Verdict::Undecided);
        // One log has no interval, however well it agrees.
        assert_eq!(verdict(&[1.0]), Verdict::Undecided);
    }

    #[test]
    fn logs_are_compared_one_by_one() {
        // The logs differ tenfold, the worlds by 2% in each: paired, that is certain.
        let cell = cells()[0];
        let kernel: Vec<Row> =
            [100.0, 300.0, 1000.0].iter().zip(1..).map(|(ms, log)| row(log, *ms)).collect();
        let ours: Vec<Row> = kernel.iter().map(|at| row(at.log, at.mean_ms * 1.02)).collect();
        let judged = judge(&cell, &kernel, &ours);
        assert_eq!((judged.logs, judged.classes.len()), (3, 1));
        let class = &judged.classes[0];
        assert_eq!((class.name, class.kernel_count), ("10-30 kB", (150, 147)));
        assert_eq!(judged.verdict(), Verdict::Holds);
        // A log that only the kernel has does not count.
        assert_eq!(judge(&cell, &kernel, &ours[..1]).verdict(), Verdict::Undecided);
    }

    #[test]
    fn the_classes_of_a_log_are_one_number() {
        let of = |log, class, mean_ms| Row { class, ..row(log, mean_ms) };
        let kernel = [of(1, 0, 10.0), of(1, 1, 10.0), of(2, 0, 40.0)];
        // Twice and half as long is the same on average; the third log is ours only.
        let ours = [of(1, 0, 20.0), of(1, 1, 5.0), of(2, 0, 44.0), of(3, 0, 1.0)];
        let (kernel, ours): (Vec<&Row>, Vec<&Row>) =
            (kernel.iter().collect(), ours.iter().collect());
        let found = ratios(&kernel, &ours, Measure::Mean);
        assert_eq!(found.len(), 2);
        assert!((found[0] - 1.0).abs() < 1e-9 && (found[1] - 1.1).abs() < 1e-9, "{found:?}");
    }
}
