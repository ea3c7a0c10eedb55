//! The machine's own kernel agrees with the simulator about a few seconds of transfers,
//! behind a queue of its own and behind the live link.
//!
//! The short form of `make kernel-native` and `make link-cells`. It judges medians: what is far from them takes
//! more transfers than a few seconds have. Tolerance, stated before the first look: the
//! median over transfers of the ratio of ours to the kernel's lies within 10% of one.
#![cfg(target_os = "linux")]

use std::io::{self, Write};

use tidegate_judge::cell::{Cell, cells, papers_cells};
use tidegate_judge::figures::quantile;
use tidegate_judge::host::BedError;
use tidegate_judge::native;
use tidegate_judge::workload::Transfer;
use tidegate_judge::{flow, simulated, workload};

/// How much of the log is sent, and how long it may take to end.
const SECONDS: f64 = 4.0;
const PATIENCE_S: f64 = 3.0;

#[test]
fn response_times_are_the_kernels_in_the_median() {
    for controller in ["reno", "cubic"] {
        assert_median(&cells(), &format!("fifo-10M40-60-{controller}"));
    }
}

#[test]
fn response_times_behind_the_live_link_are_the_simulators_in_the_median() {
    for name in ["link-efd-10M40-80-reno", "link-las-10M40-80-cubic"] {
        assert_median(&papers_cells(), name);
    }
}

/// The cell of this name is within the tolerance, if this machine can measure it.
fn assert_median(cells: &[Cell], name: &str) {
    let is_it = |cell: &&Cell| cell.to_string() == name;
    let cell = cells.iter().find(is_it).expect("it is in the list");
    let mut log: Vec<Transfer> = workload::transfers(cell.link.rate, cell.load(), 1);
    log.retain(|transfer| transfer.start_s < SECONDS);
    let measured = match native::measure(cell, &log, Some(SECONDS + PATIENCE_S), false) {
        Err(BedError::Missing(reason)) => {
            // Past the harness, which hides what a test that passes prints.
            writeln!(io::stderr(), "SKIP {cell} on this machine's kernel: {reason}")
                .expect("standard error is open");
            return;
        }
        measured => measured.unwrap_or_else(|error| panic!("{error}")),
    };
    let kernel = flow::responses(&measured.events, log.len());
    let ours = simulated::responses(cell, &log).expect("the simulator has this cell");
    let mut ratios: Vec<f64> =
        ours.iter().zip(&kernel).filter_map(|(a, b)| Some((*a)? / (*b)?)).collect();
    assert!(ratios.len() * 10 >= log.len() * 9, "{} of {} were done", ratios.len(), log.len());
    ratios.sort_by(f64::total_cmp);
    let median = quantile(&ratios, 0.5);
    println!("{cell}: the median ratio of {} transfers is {median:.3}", ratios.len());
    assert!((0.9..=1.1).contains(&median), "{cell}: {median:.3}");
}
