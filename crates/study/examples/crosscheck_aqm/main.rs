//! Our CoDel, FQ-CoDel and PIE compared with those of ns-3.37, on the same
//! transfers over the same dumbbell: for every figure, is the difference within
//! tolerance?
//!
//! ```text
//! cargo run --release -p tidegate-study --example crosscheck_aqm
//! cargo run --release -p tidegate-study --example crosscheck_aqm -- codel packets.csv
//! ```
//!
//! ns-3's figures are those of `benches/ns3/results`; `benches/ns3/README.md`
//! describes how they were made, and explains the differences. The second form puts
//! the packets that `dumbbell --packets` has recorded through one discipline.

mod figures;
mod replay;
mod transfers;
mod workload;

use std::error::Error;

use tidegate_core::Span;
use tidegate_sim::scenario::DisciplineChoice;

use figures::{Cell, Verdict};
use workload::{WORKLOADS, Workload};

/// Our name and ns-3's. FIFO shows what difference TCP makes.
const DISCIPLINES: [(&str, &str); 4] =
    [("fifo", "fifo"), ("codel", "codel"), ("fq-codel", "fqcodel"), ("pie", "pie")];

/// As long as `benches/ns3/run-aqm.sh` runs transfers without end.
const LONG_RUN: Span = Span::seconds(620);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => compare_all(),
        [discipline, file] => replay::replay(file, &discipline.parse()?),
        _ => Err("usage: crosscheck_aqm [DISCIPLINE FILE]".into()),
    }
}

/// Prints a table for each workload: a line for each figure, a column for each
/// discipline.
fn compare_all() -> Result<(), Box<dyn Error>> {
    let mut verdicts = Vec::new();
    for workload in &WORKLOADS {
        let columns = DISCIPLINES.map(|(name, queue)| (name, compare(workload, name, queue)));
        let measured = columns.into_iter().filter_map(|(name, cells)| match cells {
            Ok(cells) if cells.is_empty() => None,
            Ok(cells) => Some(Ok((name, cells))),
            Err(error) => Some(Err(error)),
        });
        let columns: Vec<(&str, Vec<Cell>)> = measured.collect::<Result<_, _>>()?;
        print(workload, &columns);
        verdicts.extend(columns.iter().flat_map(|(_, cells)| cells.iter().map(Cell::verdict)));
    }
    let count = |verdict| verdicts.iter().filter(|found| **found == verdict).count();
    println!(
        "\n{} cells: {} in, {} undecided, {} out",
        verdicts.len(),
        count(Verdict::Inside),
        count(Verdict::Undecided),
        count(Verdict::Outside)
    );
    Ok(())
}

fn compare(workload: &Workload, name: &str, queue: &str) -> Result<Vec<Cell>, Box<dyn Error>> {
    let discipline = DisciplineChoice::new(name, None, &[])?;
    let peer = figures::peer(workload, queue);
    let ours: Vec<_> =
        peer.iter().map(|run| workload.run(&discipline, run.seed, LONG_RUN)).collect();
    Ok(figures::compare(&peer, &ours))
}

fn print(workload: &Workload, columns: &[(&str, Vec<Cell>)]) {
    println!("\n{}: ns-3, ours (difference and its 95% interval)\n", workload.name);
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    println!("| | {} |", names.join(" | "));
    println!("|{}", " --- |".repeat(columns.len() + 1));
    let mut lines: Vec<&str> = Vec::new();
    for cell in columns.iter().flat_map(|(_, cells)| cells) {
        if !lines.contains(&cell.name.as_str()) {
            lines.push(&cell.name);
        }
    }
    for line in lines {
        let cells = columns.iter().map(|(_, cells)| {
            let cell = cells.iter().find(|cell| cell.name == line);
            cell.map(Cell::to_string).unwrap_or_default()
        });
        println!("| {line} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}
