//! The simulator is held to what was measured of Linux and of the live link: the short
//! form of `docs/kernel` and `docs/link`, for cells in which both agree.
#![cfg(target_os = "linux")]

use std::path::Path;

use tidegate_judge::cell::{Cell, cells, loaded_cells, papers_cells};
use tidegate_judge::figures::Row;
use tidegate_judge::kept::Kept;
use tidegate_judge::promises::MOST_LATE;
use tidegate_judge::verdict::{self, Judged, Verdict};

/// A few cells with different queues and controllers.
const CELLS: [&str; 4] =
    ["fifo-10M40-90-reno", "fifo-10M40-60-cubic", "fq_codel-10M40-90-cubic", "sfq-10M40-90-cubic"];

/// The same on the live link.
const LINK_CELLS: [&str; 3] =
    ["link-efd-10M40-80-cubic", "link-las-10M40-80-reno", "link-fq-codel-10M40-80-cubic"];

/// What was measured of Linux, and on the live link.
fn kept() -> [Kept; 2] {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches"));
    [root.join("kernel/guest"), root.join("link")].map(|folder| {
        let (root, bed) = (folder.parent(), folder.file_name().and_then(|name| name.to_str()));
        let (root, bed) = (root.expect("it has one"), bed.expect("it has one"));
        Kept::open(root, bed).expect("it is readable").expect("it is in the repository")
    })
}

/// The cells of the list, as the kernel and the simulator have them.
fn measured(kept: &Kept) -> impl Iterator<Item = (Cell, Vec<Row>)> + '_ {
    let is_listed = |cell: &Cell| {
        let name = cell.to_string();
        CELLS.iter().chain(&LINK_CELLS).any(|listed| *listed == name)
    };
    let all = cells().into_iter().chain(papers_cells()).filter(is_listed);
    all.filter_map(|cell| {
        let ours = verdict::ours(&cell, &kept.rows).expect("the simulator has it");
        (!ours.is_empty()).then_some((cell, ours))
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
    let mut count = 0;
    for kept in kept() {
        for (cell, ours) in measured(&kept) {
            let judged = verdict::judge(&cell, &kept.rows, &ours);
            assert!(judged.logs > 1 && judged.classes.len() == 5, "{cell}: {} logs", judged.logs);
            assert_eq!(out(&judged), [], "{cell}");
            count += 1;
        }
    }
    assert_eq!(count, CELLS.len() + LINK_CELLS.len());
}

#[test]
fn a_simulator_that_is_a_third_slower_is_found_out() {
    for kept in kept() {
        for (cell, mut ours) in measured(&kept) {
            for row in &mut ours {
                row.mean_ms *= 4.0 / 3.0;
            }
            let found = out(&verdict::judge(&cell, &kept.rows, &ours));
            assert!(!found.is_empty(), "{cell}");
        }
    }
}

#[test]
fn promises_were_kept_on_the_live_link() {
    let [_, link] = kept();
    let of = |discipline: &'static str| {
        link.promises.iter().filter(move |outcome| outcome.discipline == discipline)
    };
    assert!(of("deadlines").count() >= 6);
    for outcome in of("deadlines") {
        assert!(outcome.late_share() <= MOST_LATE, "{outcome:?}");
    }
    assert!(of("fifo").all(|outcome| outcome.late_share() > 0.5));
}
