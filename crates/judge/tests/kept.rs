//! The simulator is held to what was measured of Linux: the short form of
//! `docs/kernel`, for cells in which both agree.
#![cfg(target_os = "linux")]

use std::path::Path;

use tidegate_judge::cell::{Cell, cells};
use tidegate_judge::figures::Row;
use tidegate_judge::kept::Kept;
use tidegate_judge::verdict::{self, Judged, Verdict};

/// A few cells with different queues and controllers.
const CELLS: [&str; 4] =
    ["fifo-10M40-90-reno", "fifo-10M40-60-cubic", "fq_codel-10M40-90-cubic", "sfq-10M40-90-cubic"];

fn kept() -> Kept {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/kernel"));
    Kept::open(root, "guest").expect("it is readable").expect("it is in the repository")
}

/// The cells of the list, as the kernel and the simulator have them.
fn measured(kept: &Kept) -> impl Iterator<Item = (Cell, Vec<Row>)> + '_ {
    cells().into_iter().filter(|cell| CELLS.contains(&cell.to_string().as_str())).map(|cell| {
        let ours = verdict::ours(&cell, &kept.rows).expect("the simulator has it");
        (cell, ours)
    })
}

/// The mean response times that are out, by size class.
fn out(judged: &Judged) -> Vec<(&'static str, f64)> {
    let out = judged.classes.iter().filter_map(|class| {
        let mean = &class.figures[0];
        let is_out = mean.verdict == Some(Verdict::Out);
        is_out.then(|| (class.name, mean.ours.value / mean.kernel.value))
    });
    out.collect()
}

#[test]
fn mean_response_times_are_those_of_linux() {
    let kept = kept();
    let mut count = 0;
    for (cell, ours) in measured(&kept) {
        let judged = verdict::judge(&cell, &kept.rows, &ours);
        assert!(judged.logs > 1 && judged.classes.len() == 5, "{cell}: {} logs", judged.logs);
        assert_eq!(out(&judged), [], "{cell}");
        count += 1;
    }
    assert_eq!(count, CELLS.len());
}

#[test]
fn a_simulator_that_is_a_third_slower_is_found_out() {
    let kept = kept();
    for (cell, mut ours) in measured(&kept) {
        for row in &mut ours {
            row.mean_ms *= 4.0 / 3.0;
        }
        let found = out(&verdict::judge(&cell, &kept.rows, &ours));
        assert!(!found.is_empty(), "{cell}");
    }
}
