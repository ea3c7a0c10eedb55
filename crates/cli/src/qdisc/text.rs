//! The state of queues in the kernel, for a terminal.

use std::fmt::Write as _;

use tidegate_core::{Bytes, Rate};

use super::State;
use crate::link::{delay, kilobytes};

/// A line of a table with a value for each queue.
type Row = (&'static str, fn(&State) -> String);

const ROWS: &[Row] = &[
    ("device", |state| state.device.clone()),
    ("qdisc", |state| state.qdisc.clone()),
    ("discipline", |state| state.status.discipline.clone()),
    ("rate", |state| Rate(state.status.rate_bps).to_string()),
    ("buffer", |state| state.status.buffer.clone()),
    ("framing", |state| state.status.framing.clone()),
    ("queued", |state| {
        let status = &state.status;
        format!("{} packets, {}", status.queued_packets, kilobytes(status.queued_bytes))
    }),
    ("delay, ms", |state| delay(&state.status.delay)),
    ("sent", |state| {
        let counts = &state.status.counts;
        format!("{} packets, {}", counts.sent_packets, Bytes(counts.sent_bytes))
    }),
    ("lost packets", |state| state.status.counts.lost.all().to_string()),
    ("flows, most", |state| format!("{}, {}", state.status.flows, state.status.flows_peak)),
];

/// A table for each interface.
pub(super) fn text(states: &[State]) -> String {
    let tables = states.chunk_by(|a, b| a.interface == b.interface);
    let mut text = tables.map(table).collect::<Vec<_>>().join("\n");
    text.push_str("\nDelays: half, 95 of 100 and 99 of 100 packets waited at most so long.\n");
    text
}

fn table(states: &[State]) -> String {
    let mut text = format!("{:<16}", states[0].interface);
    for state in states {
        let direction = state.status.direction.map_or("", |direction| direction.name());
        let _ = write!(text, " {direction:>26}");
    }
    for (label, value) in ROWS {
        let _ = write!(text, "\n{label:<16}");
        for state in states {
            let _ = write!(text, " {:>26}", value(state));
        }
    }
    text.push_str("\n\n");
    states.iter().for_each(|state| more(&mut text, state));
    text
}

/// What not every queue has.
fn more(text: &mut String, state: &State) {
    let status = &state.status;
    let direction = status.direction.map_or("", |direction| direction.name());
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{:<16} {value}", format!("{direction} {label}"));
    };
    if !status.parameters.is_empty() {
        let all = status.parameters.iter().map(|(name, value)| format!("{name} {value}"));
        line("parameters", all.collect::<Vec<_>>().join(", "));
    }
    for level in &status.levels {
        let queued = format!("{} packets, {}", level.queued_packets, Bytes(level.queued_bytes));
        let joined = level.enqueued_packets;
        let waited = delay(&level.delay);
        line(&level.name, format!("{joined} packets ever, {queued} queued; delay {waited} ms"));
    }
    let counted = [
        ("refused", status.counts.lost.refused),
        ("pushed out", status.counts.lost.pushed_out),
        ("dropped early", status.counts.lost.early),
        ("gone with the queue", state.cleared_packets),
        ("without memory", status.failures.no_memory_packets),
        ("malformed", status.failures.malformed_frames),
        ("not IP", status.counts.other_frames),
        ("super-packets", state.super_packets),
        ("times too many flows", state.crowded),
    ];
    let counted: Vec<_> = counted
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !counted.is_empty() {
        line("counted", counted.join(", "));
    }
    if state.super_packets > 0 {
        line(
            "note",
            "super-packets leave in one piece and delay others; 'ethtool -K INTERFACE gro off' at \
             the interface where they come in helps"
                .into(),
        );
    }
}
