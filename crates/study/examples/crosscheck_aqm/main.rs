//! Our CoDel, FQ-CoDel and PIE compared with those of ns-3.37, on the same
//! transfers over the same dumbbell: for every figure, is the difference within
//! tolerance?
//!
//! ```text
//! cargo run --release -p tidegate-study --example crosscheck_aqm
//! cargo run --release -p tidegate-study --example crosscheck_aqm -- red --rfc
//! cargo run --release -p tidegate-study --example crosscheck_aqm -- packets codel packets.csv
//! cargo run --release -p tidegate-study --example crosscheck_aqm -- transfers fifo 8 1 flows.csv
//! cargo run --release -p tidegate-study --example crosscheck_aqm -- repairs repair_end
//! ```
//!
//! ns-3's figures are those of `benches/ns3/results`; `benches/ns3/README.md`
//! describes how they were made, and explains the differences. The second form takes
//! the disciplines that are named, and `--rfc` a TCP that imitates none of the
//! departures of ns-3's recovery. The third puts the packets that `dumbbell --packets`
//! has recorded through one discipline. The fourth compares, one by one, the transfers
//! that `dumbbell --flows` has recorded under a discipline, at a load and with a seed;
//! the last compares those of `run-repairs.sh`. Both accept the departures that TCP is
//! to imitate, separated by commas, or `none`.

mod figures;
mod one_by_one;
mod repairs;
mod replay;
mod transfers;
mod workload;

use std::error::Error;

use tidegate_core::Span;
use tidegate_sim::scenario::DisciplineChoice;

use figures::{Cell, Verdict};
use workload::{WORKLOADS, Workload};

/// RED as ns-3 has it, in the form of the paper.
macro_rules! red {
    () => {
        "red:form=paper:min=5 packets:max=15 packets:probability=0.1:weight=0.002:gentle=on:\
         guard=on:packet_time=1ms:ecn=on"
    };
}

/// Our discipline, as on the command line, and ns-3's name for it: ns-3 has the forms of
/// the RFCs and of the paper, and counts the header of the link. FIFO shows what
/// difference TCP makes.
const DISCIPLINES: [(&str, &str); 6] = [
    ("fifo", "fifo"),
    ("codel:form=rfc:mtu=1514B:ecn=on", "codel"),
    ("fq-codel:form=rfc:quantum=1514B:mtu=1514B:ecn=on", "fqcodel"),
    ("pie:form=rfc:ecn=on", "pie"),
    (concat!(red!(), ":wait=off"), "red"),
    (concat!(red!(), ":wait=on"), "red-wait"),
];

/// As long as `benches/ns3/run-aqm.sh` runs transfers without end.
const LONG_RUN: Span = Span::seconds(620);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["packets", discipline, file] => replay::replay(file, &discipline.parse()?),
        ["transfers", discipline, load, seed, file, departures @ ..] if departures.len() < 2 => {
            let (discipline, load, seed) = (discipline.parse()?, load.parse()?, seed.parse()?);
            one_by_one::compare(&discipline, load, seed, file, one(departures))
        }
        ["repairs", departures @ ..] if departures.len() < 2 => {
            repairs::compare(one(departures));
            Ok(())
        }
        [names @ .., "--rfc"] => compare_all(names, Some("")),
        names => compare_all(names, None),
    }
}

/// The departures that TCP is to imitate, if they are given.
fn one<'a>(departures: &[&'a str]) -> Option<&'a str> {
    departures.first().map(|words| if *words == "none" { "" } else { *words })
}

/// Prints a table for each workload: a line for each figure, a column for each
/// discipline that ns-3 calls by one of `names`, or for all of them.
fn compare_all(names: &[&str], departures: Option<&str>) -> Result<(), Box<dyn Error>> {
    if let Some(name) = names.iter().find(|name| DISCIPLINES.iter().all(|known| known.1 != **name))
    {
        return Err(format!("found '{name}', expected one of ns-3's queues, or a form").into());
    }
    let chosen = |queue| names.is_empty() || names.contains(queue);
    let mut verdicts = Vec::new();
    for workload in &WORKLOADS {
        let disciplines = DISCIPLINES.iter().filter(|(_, queue)| chosen(queue));
        let columns =
            disciplines.map(|(ours, queue)| (*queue, compare(workload, ours, queue, departures)));
        let measured = columns.filter_map(|(name, cells)| match cells {
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

fn compare(
    workload: &Workload,
    ours: &str,
    queue: &str,
    departures: Option<&str>,
) -> Result<Vec<Cell>, Box<dyn Error>> {
    let discipline: DisciplineChoice = ours.parse()?;
    let peer = figures::peer(workload, queue);
    let run = |seed| workload.run(&discipline, seed, LONG_RUN, departures);
    let ours: Vec<_> = peer.iter().map(|peer| run(peer.seed)).collect();
    Ok(figures::compare(&peer, &ours))
}

fn print(workload: &Workload, columns: &[(&str, Vec<Cell>)]) {
    if columns.is_empty() {
        return;
    }
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
