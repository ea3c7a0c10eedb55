//! What many undecided cells say together.
//!
//! Close to the capacity a cell of a few logs decides little: which packets are lost
//! moves its figures by more than the tolerance. A simulator that errs to one side would
//! do so in every cell, though. So the ratios of all size classes in a log are one
//! number, their geometric mean, because classes of one log share its losses; and the
//! logs of all cells with the same sender or queue are one sample, with an interval.

use std::fmt::Write as _;

use tidegate_study::Estimate;

use crate::cell::{Cell, Question, Shaper};
use crate::verdict::{Measure, Verdict};

/// The sender or the queue that a cell asks about.
fn subject(cell: &Cell) -> String {
    match cell.question {
        Question::Senders => cell.controller.into(),
        Question::Queues | Question::Programs => cell.queue.name.into(),
        Question::Papers if cell.queue.shaper == Shaper::Bucket => {
            format!("{} under tbf", cell.queue.name)
        }
        Question::Papers => cell.queue.name.into(),
    }
}

/// A table of all that a question asks about; of each cell, the ratios of its logs for
/// each of [`Measure::ALL`].
pub(crate) fn table(question: Question, cells: &[(Cell, [Vec<f64>; 3])]) -> String {
    let (ours, judge) = match question {
        Question::Senders | Question::Queues => ("ours", "the kernel's"),
        Question::Programs => ("the simulator's", "the kernel's"),
        Question::Papers => ("the simulator's", "the live one"),
    };
    let mut page = format!(
        "\nAll size classes and loads together, where a fault to one side would add up: the \
         ratio of {ours} to {judge}, over all logs.\n\n\
         | | logs | mean | median | p95 |\n| --- | --- | --- | --- | --- |\n",
    );
    for name in subjects(cells) {
        let of_it = || cells.iter().filter(|(cell, _)| subject(cell) == name);
        let estimate = |measure: usize| {
            Estimate::mean(of_it().flat_map(|(_, ratios)| ratios[measure].iter().copied()))
        };
        let logs = estimate(0).map_or(0, |estimate| estimate.runs);
        let _ = write!(page, "| `{name}` | {logs} |");
        for (number, measure) in Measure::ALL.into_iter().enumerate() {
            let estimate = estimate(number);
            let text = estimate.as_ref().map_or(String::new(), |ratio| ratio.text(1.0, 2));
            let verdict = measure
                .tolerance(question.tolerance())
                .map_or("", |tolerance| Verdict::of(estimate.as_ref(), tolerance).name());
            let _ = write!(page, " {text} {verdict} |");
        }
        page.push('\n');
    }
    page
}

/// Each sender or queue once, in the order of the cells.
fn subjects(cells: &[(Cell, [Vec<f64>; 3])]) -> Vec<String> {
    let mut seen = Vec::new();
    for (cell, _) in cells {
        if !seen.contains(&subject(cell)) {
            seen.push(subject(cell));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::cells;

    #[test]
    fn a_fault_to_one_side_shows_where_no_cell_decides() {
        // Logs differ by a tenth either way; all are a fifth too long.
        let logs = [0.9, 1.1, 0.88, 1.12].map(|noise| noise * 1.2).to_vec();
        let cells: Vec<(Cell, [Vec<f64>; 3])> = cells()
            .into_iter()
            .filter(|cell| cell.question == Question::Senders)
            .map(|cell| (cell, [logs.clone(), logs.clone(), logs.clone()]))
            .collect();
        assert_eq!(Verdict::of(Estimate::mean(logs).as_ref(), 0.1), Verdict::Undecided);
        let page = table(Question::Senders, &cells);
        let reno =
            page.lines().find(|line| line.starts_with("| `reno`")).expect("reno is a sender");
        assert!(reno.starts_with("| `reno` | 24 | 1.20 ±0.06 **out** |"), "{reno}");
    }
}
