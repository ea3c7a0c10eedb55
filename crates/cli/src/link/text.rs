//! The state of a link for a terminal.

use std::fmt::Write as _;

use tidegate_core::{Bytes, Rate};
use tidegate_link::{Delay, QueueStatus, Status};

use super::state::State;

/// A line of a table with a value for each direction.
type Row = (&'static str, fn(&QueueStatus) -> String);

const ROWS: &[Row] = &[
    ("discipline", |queue| queue.discipline.clone()),
    ("rate", |queue| Rate(queue.rate_bps).to_string()),
    ("buffer", |queue| queue.buffer.clone()),
    ("framing", |queue| queue.framing.clone()),
    ("sends", |queue| {
        let sent = queue.last_second.sent_bps as f64;
        format!("{:.2} Mbit/s, {:.0}%", sent / 1e6, 100.0 * sent / queue.rate_bps.max(1) as f64)
    }),
    ("queued", |queue| {
        format!("{} packets, {}", queue.queued_packets, kilobytes(queue.queued_bytes))
    }),
    ("delay now, ms", |queue| delay(&queue.last_second.delay)),
    ("delay ever, ms", |queue| delay(&queue.delay)),
    ("sent packets", |queue| queue.counts.sent_packets.to_string()),
    ("marked packets", |queue| queue.counts.marked_packets.to_string()),
    ("lost packets", |queue| queue.counts.lost.all().to_string()),
    ("flows, most", |queue| format!("{}, {}", queue.flows, queue.flows_peak)),
];

/// The percentiles of a delay.
pub(crate) fn delay(delay: &Delay) -> String {
    match delay.count {
        0 => "-".into(),
        _ => format!("{:.1} {:.1} {:.1}", delay.p50_ms, delay.p95_ms, delay.p99_ms),
    }
}

pub(crate) fn kilobytes(bytes: u64) -> String {
    format!("{:.1} kB", bytes as f64 / 1e3)
}

/// Where a link stands.
pub(super) fn place(status: &Status) -> String {
    let outside = &status.outside;
    match &status.inside {
        Some(inside) => format!("frames between {inside} (inside) and {outside} (outside)"),
        None => format!("what passes {outside} of this router"),
    }
}

pub(super) fn text(state: &State) -> String {
    let State { name, status, .. } = state;
    let mut text = format!("{name}: {} for {:.0} s\n\n{:<16}", place(status), status.uptime_s, "");
    for queue in &status.queues {
        let _ = write!(text, " {:>26}", queue.direction.map_or("", |direction| direction.name()));
    }
    for (label, value) in ROWS {
        let _ = write!(text, "\n{label:<16}");
        for queue in &status.queues {
            let _ = write!(text, " {:>26}", value(queue));
        }
    }
    text.push_str("\n\nDelays: half, 95 of 100 and 99 of 100 packets waited at most so long.\n");
    for queue in &status.queues {
        of_a_queue(&mut text, queue);
    }
    text
}

/// What not every queue has.
fn of_a_queue(text: &mut String, queue: &QueueStatus) {
    let direction = queue.direction.map_or("", |direction| direction.name());
    let line = |text: &mut String, label: &str, value: String| {
        let _ = writeln!(text, "{:<16} {value}", format!("{direction} {label}"));
    };
    if !queue.parameters.is_empty() {
        let all = queue.parameters.iter().map(|(name, value)| format!("{name} {value}"));
        line(text, "parameters", all.collect::<Vec<_>>().join(", "));
    }
    if queue.levels.len() > 1 {
        for level in &queue.levels {
            let queued = format!("{} packets, {}", level.queued_packets, Bytes(level.queued_bytes));
            line(text, &level.name, format!("{queued} queued; delay {} ms", delay(&level.delay)));
        }
    }
    let lost = &queue.counts.lost;
    let reasons = [
        ("refused", lost.refused),
        ("pushed out", lost.pushed_out),
        ("early", lost.early),
        ("superseded", lost.superseded),
        ("excess", lost.excess),
    ];
    counted(reasons, |all| line(text, "lost", all));
    let failures = &queue.failures;
    let faults = [
        ("malformed", failures.malformed_frames),
        ("unreadable", failures.unreadable_frames),
        ("missed", failures.missed_frames),
        ("without memory", failures.no_memory_packets),
        ("unsent", failures.unsent_packets),
    ];
    counted(faults, |all| line(text, "failures", all));
    for flow in &queue.top_flows {
        line(text, "flow", format!("{} {:.2} Mbit/s", flow.flow, flow.rate_bps as f64 / 1e6));
    }
}

/// Tells those that are not zero.
fn counted<const N: usize>(counts: [(&str, u64); N], tell: impl FnOnce(String)) {
    let some: Vec<_> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !some.is_empty() {
        tell(some.join(", "));
    }
}

/// What it does, in a line.
pub(super) fn short(state: &State) -> String {
    let queues = state.status.queues.iter().map(|queue| {
        let direction = queue.direction.map_or("", |direction| direction.name());
        format!(
            "{direction} {} at {}, sends {:.2} Mbit/s",
            queue.discipline,
            Rate(queue.rate_bps),
            queue.last_second.sent_bps as f64 / 1e6
        )
    });
    queues.collect::<Vec<_>>().join("; ")
}

/// What it has done, when it is over: a line.
pub(super) fn last(state: &State) -> String {
    let queues = state.status.queues.iter().map(|queue| {
        let direction = queue.direction.map_or("", |direction| direction.name());
        format!(
            "{direction} {} packets sent, {} lost, {} marked",
            queue.counts.sent_packets,
            queue.counts.lost.all(),
            queue.counts.marked_packets
        )
    });
    let queues = queues.collect::<Vec<_>>().join("; ");
    format!("'{}' ran for {:.0} s: {queues}\n", state.name, state.status.uptime_s)
}
