//! Whether the simulator agrees with the kernel about loaded queues.
//!
//! Both see the same flows in each log. Of each figure the differences of ours from the
//! kernel's, one for each log, have a 95% interval, and the rule is that of
//! [`verdict`](crate::verdict). Ratios would not do: what is lost may be nothing, and a
//! wait less than a packet's time.

use tidegate_study::Estimate;

use crate::cell::Cell;
use crate::loaded::{self, Measure, Row};
use crate::simulated::{self, Absent};
use crate::verdict::Verdict;

/// A measure in both worlds.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Which.
    pub measure: Measure,
    /// The kernel's, over logs.
    pub kernel: Estimate,
    /// The same of the simulator.
    pub ours: Estimate,
    /// Of ours less the kernel's, over logs.
    pub difference: Estimate,
    /// How much of a difference is allowed, and whether it holds; `None` if it is not judged.
    pub judged: Option<(f64, Verdict)>,
}

/// Runs the simulator on the logs of a cell that are among the `kernel`'s rows.
///
/// # Errors
/// When the simulator lacks the queue or the controller.
pub fn ours(cell: &Cell, kernel: &[Row]) -> Result<Vec<Row>, Absent> {
    let name = loaded::name(cell);
    let logs = kernel.iter().filter(|row| row.cell == name).map(|row| row.log);
    logs.map(|log| simulated::loaded(cell, log)).collect()
}

/// Compares the rows of a cell, log by log; `None` if there is no log that both have.
#[must_use]
pub fn judge(kernel: &[Row], ours: &[Row]) -> Option<Vec<Figure>> {
    let pairs: Vec<(&Row, &Row)> = ours
        .iter()
        .filter_map(|ours| {
            let same = |row: &&Row| row.cell == ours.cell && row.log == ours.log;
            Some((kernel.iter().find(same)?, ours))
        })
        .collect();
    let figure = |measure: Measure| {
        let estimate = |of: &dyn Fn(&(&Row, &Row)) -> f64| Estimate::mean(pairs.iter().map(of));
        let kernel = estimate(&|(kernel, _)| measure.of(kernel))?;
        let ours = estimate(&|(_, ours)| measure.of(ours))?;
        let difference = estimate(&|(kernel, ours)| measure.of(ours) - measure.of(kernel))?;
        let judged = measure.allowance().map(|allowance| {
            let allowed = allowance.of(kernel.value);
            (allowed, Verdict::of_difference(Some(&difference), allowed))
        });
        Some(Figure { measure, kernel, ours, difference, judged })
    };
    Measure::ALL.into_iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_more_on_average_is_found_out_and_half_a_packet_is_not() {
        let row = |log, mean_ms| Row {
            cell: "loaded-fq".into(),
            log,
            goodput_mbps: 9.6,
            fairness: 1.0,
            mean_ms,
            median_ms: 0.6,
            p95_ms: 1.1,
            p99_ms: 1.2,
            sent: 600,
            lost: 0,
        };
        let noise = [0.0, 0.05, -0.05, 0.02];
        let rows = |mean_ms: f64| -> Vec<Row> {
            noise.iter().zip(1..).map(|(noise, log)| row(log, mean_ms + noise)).collect()
        };
        let kernel: Vec<Row> = (1..=4).map(|log| row(log, 0.6)).collect();
        let verdict = |mean_ms| {
            let figures = judge(&kernel, &rows(mean_ms)).expect("they have the same logs");
            figures[2].judged.expect("the mean is judged").1
        };
        assert_eq!(verdict(1.8), Verdict::Out);
        assert_eq!(verdict(1.0), Verdict::Holds);
        assert!(judge(&kernel, &[]).is_none());
    }
}
