//! The simulator is held to what was measured of Linux and of the live link: the short
//! form of `docs/kernel` and `docs/link`, for cells in which both agree.
#![cfg(target_os = "linux")]

use std::path::Path;

use tidegate_judge::cell::{Cell, cells, loaded_cells, papers_cells};
use tidegate_judge::figures::Row;
use tidegate_judge::kept::Kept;
use tidegate_judge::promises::MOST_LATE;
use tidegate_judge::verdict::{self, Judged, Verdict};
use tidegate_judge::{loaded, loaded_verdict};

/// A few cells with different queues and controllers.
const CELLS: [&str; 4] =
    ["fifo-10M40-90-reno", "fifo-10M40-60-cubic", "fq_codel-10M40-90-cubic", "sfq-10M40-90-cubic"];

/// The same on the live link.
const LINK_CELLS: [&str; 3] =
    ["link-efd-10M40-80-cubic", "link-las-10M40-80-reno", "link-fq-codel-10M40-80-cubic"];

/// Queues under load.
const LOADED_CELLS: [&str; 2] = ["loaded-fq_codel", "loaded-cake"];

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

/// The figures of loaded queues that are out.
fn loaded_out(kernel: &Kept, ours: &[loaded::Row]) -> Vec<loaded::Measure> {
    let figures = loaded_verdict::judge(&kernel.loaded, ours).expect("both have these logs");
    let is_out = |figure: &&loaded_verdict::Figure| {
        figure.judged.is_some_and(|(_, verdict)| verdict == Verdict::Out)
    };
    figures.iter().filter(is_out).map(|figure| figure.measure).collect()
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
fn probes_wait_under_load_as_long_as_in_linux() {
    let [kernel, _] = kept();
    let mut count = 0;
    for cell in loaded_cells() {
        let name = loaded::name(&cell);
        if !LOADED_CELLS.contains(&name.as_str()) {
            continue;
        }
        let mut ours = loaded_verdict::ours(&cell, &kernel.loaded).expect("the simulator has it");
        assert!(ours.len() > 1, "{name}: {} logs", ours.len());
        assert_eq!(loaded_out(&kernel, &ours), [], "{name}");
        // As long as a packet more takes the link, and a fifth less.
        for row in &mut ours {
            row.mean_ms += 1.2;
            row.goodput_mbps *= 0.8;
        }
        let faults = [loaded::Measure::Goodput, loaded::Measure::Mean];
        assert_eq!(loaded_out(&kernel, &ours), faults, "{name}");
        count += 1;
    }
    assert_eq!(count, LOADED_CELLS.len());
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
