//! What real-time flows leave, and what is said when it is too little.

use tidegate_core::residual::Residual;
use tidegate_core::{Bytes, Span};

use crate::flows::{PAPER, contracts, residual};

#[test]
fn the_papers_flows_leave_what_was_computed_independently() {
    let residual = residual(PAPER);
    for (millis, bytes) in
        [(5, 4_614), (20, 20_214), (30, 28_178), (100, 39_214), (1_000, 407_914)]
    {
        assert_eq!(residual.effective().bytes(Span::millis(millis)), Bytes(bytes), "{millis} ms");
    }
    for (bytes, micros) in [(40, 1_261), (1_536, 2_458), (20_000, 19_169), (40_000, 102_246)] {
        let deadline = residual.earliest_deadline(Bytes(bytes));
        assert_eq!((deadline.0 + 500) / 1_000, micros, "{bytes} B");
    }
}

#[test]
fn a_deadline_that_is_too_short_is_named() {
    let text = "link 10 Mbit/s; packets to 1500 B; \
        voice = class 1: 100 B every 20 ms within 5 ms; \
        video = class 2: 30 kB every 33 ms within 20 ms";
    let error = Residual::new(&contracts(text)).unwrap_err().to_string();
    assert!(error.contains("'video', 20 ms"), "{error}");
}
