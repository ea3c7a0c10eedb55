//! The generated page about queues under load, `docs/kernel/loaded.md`, and its table in the
//! index.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::causes::cause;
use crate::cell::{Cell, loaded_cells};
use crate::kept::Kept;
use crate::loaded::{self, APART_S, FLOWS, FROM_S, Measure, Row, TO_S};
use crate::loaded_verdict::{self, Figure};
use crate::verdict::Verdict;

/// The page of all figures.
const FILE: &str = "loaded.md";

/// A cell with its figures, or why there are none.
type Outcome = (Cell, Result<Vec<Figure>, String>);

/// Simulates what was kept of loaded queues, writes their page into `folder`, and returns
/// their part of the index. `progress` hears the name of each cell.
pub(crate) fn write(kept: &Kept, folder: &Path, progress: &impl Fn(&str)) -> io::Result<String> {
    let outcomes: Vec<Outcome> = loaded_cells()
        .into_iter()
        .map(|cell| {
            progress(&loaded::name(&cell));
            (cell, outcome(&cell, &kept.loaded))
        })
        .collect();
    fs::write(folder.join(FILE), tables(&outcomes))?;
    Ok(index(&outcomes))
}

fn outcome(cell: &Cell, kernel: &[Row]) -> Result<Vec<Figure>, String> {
    let ours = loaded_verdict::ours(cell, kernel).map_err(|absent| absent.to_string())?;
    loaded_verdict::judge(kernel, &ours).ok_or_else(|| "not measured on the kernel yet".into())
}

/// What is asked, in a sentence.
fn about() -> String {
    format!(
        "On 10 Mbit/s and 40 ms, {FLOWS} endless flows with CUBIC, or with DCTCP where the name says \
         so, begin one after the other within {} s, at other times in each log, and a small datagram leaves ten times a second. From {FROM_S} to {TO_S} s it \
         counts how long these datagrams wait in the queue (a ping under load, less the path), how many are \
         lost, what the flows carry together, and Jain's index over them.",
        FLOWS as f64 * APART_S
    )
}

/// What is allowed, in a sentence.
fn tolerances() -> String {
    let each = Measure::ALL.into_iter().filter_map(|measure| {
        let allowance = measure.allowance()?;
        let (what, unit) = measure.name().rsplit_once(", ").unwrap_or((measure.name(), ""));
        let part = format!("{}%", (allowance.part * 100.0).round());
        let space = if unit.is_empty() { "" } else { " " };
        let least = format!("{}{space}{}", allowance.least, unit.replace('%', "percentage point"));
        Some(match (allowance.part > 0.0, allowance.least > 0.0) {
            (true, true) => format!("{what} within {part} or {least}"),
            (true, false) => format!("{what} within {part}"),
            _ => format!("{what} within {least}"),
        })
    });
    each.collect::<Vec<_>>().join(", ")
}

fn verdicts(figures: &[Figure]) -> impl Iterator<Item = Verdict> + '_ {
    figures.iter().filter_map(|figure| Some(figure.judged?.1))
}

/// How many figures of this verdict there are.
fn count(figures: &[Figure], verdict: Verdict) -> usize {
    verdicts(figures).filter(|each| *each == verdict).count()
}

fn index(outcomes: &[Outcome]) -> String {
    let all = || outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok());
    let sum = |verdict| all().map(|figures| count(figures, verdict)).sum::<usize>();
    let mut page = format!(
        "\n## Under load\n\n\
         {} Tolerances: {}; of an amount beside a percentage, the larger counts. At 10 Mbit/s a full packet takes 1.2 ms, and no queue takes \
         back what the link has begun. These are differences, paired log by log, with a 95% interval. \
         Of {} figures {} hold, {} are undecided and {} are out ([all of them]({FILE})).\n\n\
         | cell | logs | goodput, kernel | ours | mean wait, kernel | ours | p95, kernel | ours | hold, undecided, out | verdict | cause |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        about(),
        tolerances(),
        all().map(|figures| verdicts(figures).count()).sum::<usize>(),
        sum(Verdict::Holds),
        sum(Verdict::Undecided),
        sum(Verdict::Out),
    );
    for (cell, outcome) in outcomes {
        page += &line(cell, outcome);
    }
    page
}

/// A cell's line in the index.
fn line(cell: &Cell, outcome: &Result<Vec<Figure>, String>) -> String {
    let name = loaded::name(cell);
    let figures = match outcome {
        Ok(figures) => figures,
        Err(reason) => return format!("| `{name}` | | | | | | | | | not compared | {reason} |\n"),
    };
    let of = |measure: Measure| {
        figures.iter().find(|figure| figure.measure == measure).expect("all are compared")
    };
    let worst = verdicts(figures).max().unwrap_or(Verdict::Undecided);
    let cause = match worst {
        Verdict::Out => cause(&name).unwrap_or("not known yet"),
        _ => "",
    };
    let pair = |measure: Measure, unit: &str, decimals: usize| {
        let Figure { kernel, ours, .. } = of(measure);
        format!("{:.decimals$} {unit} | {:.decimals$}", kernel.value, ours.value)
    };
    format!(
        "| `{name}` | {} | {} | {} | {} | {}, {}, {} | {} | {cause} |\n",
        of(Measure::Goodput).kernel.runs,
        pair(Measure::Goodput, "Mbit/s", 2),
        pair(Measure::Mean, "ms", 1),
        pair(Measure::P95, "ms", 1),
        count(figures, Verdict::Holds),
        count(figures, Verdict::Undecided),
        count(figures, Verdict::Out),
        worst.name(),
    )
}

fn tables(outcomes: &[Outcome]) -> String {
    let mut page = format!(
        "# Queues under load: the kernel and the simulator\n\n{} Tolerances: {}; of an amount beside a \
         percentage, the larger counts. [How this came about](README.md).\n\n\
         Figures are means over logs; a difference is the mean of ours less the kernel's, log by log, \
         with its 95% interval.\n",
        about(),
        tolerances()
    );
    for (cell, outcome) in outcomes {
        let name = loaded::name(cell);
        let _ = write!(page, "\n## {name}\n\n");
        let figures = match outcome {
            Ok(figures) => figures,
            Err(reason) => {
                let _ = writeln!(page, "Not compared: {reason}.");
                continue;
            }
        };
        if let Some(cause) = cause(&name).filter(|_| count(figures, Verdict::Out) > 0) {
            let _ = write!(page, "{cause}\n\n");
        }
        page += "| figure | kernel | ours | difference | allowed | verdict |\n\
                 | --- | --- | --- | --- | --- | --- |\n";
        for figure in figures {
            let (allowed, verdict) = match figure.judged {
                Some((allowed, verdict)) => (format!("{allowed:.2}"), verdict.name()),
                None => (String::new(), "not judged"),
            };
            let _ = writeln!(
                page,
                "| {} | {:.2} | {:.2} | {} | {allowed} | {verdict} |",
                figure.measure.name(),
                figure.kernel.value,
                figure.ours.value,
                figure.difference.text(1.0, 2),
            );
        }
    }
    page
}
