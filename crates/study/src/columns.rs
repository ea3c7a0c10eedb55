//! The columns of tables of rows, as entries: one row for each flow, for each sample of a
//! link, and for each sample of a followed flow.
//!
//! From these lists come the CSV files of a comparison and the tables that Python gets. Before
//! these columns, each table has one that names the contender, and `seed`. A name contains
//! the unit; times are exact to the nanosecond.

use std::borrow::Cow;

use tidegate_core::{LossReason, Span, Time};
use tidegate_sim::metrics::{FlowRecord, LinkSample, ProgressSample, RecordedFlow};
use tidegate_sim::scenario::Scenario;

/// The name of the column that says under which discipline a run was done.
pub const DISCIPLINE: &str = "discipline";
/// And of that which names the way of sharing a gateway's link.
pub const WAY: &str = "way";
/// The name of the column between that of the contender and those below.
pub const SEED: &str = "seed";

/// What rows are about.
#[derive(Clone, Debug)]
pub struct Names {
    /// The word for what is compared: a discipline or a way.
    pub contender: &'static str,
    /// The sources of traffic, in the order of their numbers.
    pub sources: Vec<String>,
    /// The links.
    pub links: Vec<String>,
}

impl Names {
    /// Of the disciplines that are compared in a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Names {
        Names {
            contender: DISCIPLINE,
            sources: scenario.traffic.iter().map(|source| source.name.clone()).collect(),
            links: scenario.links.iter().map(|link| link.name.clone()).collect(),
        }
    }
}

/// A column of a table of `R`s.
#[derive(Debug)]
pub struct Column<R: 'static> {
    /// Its name, with the unit.
    pub name: &'static str,
    /// What it holds.
    pub value: Value<R>,
}

/// What a column holds, and where that is found in a row; a row may have none.
#[derive(Debug)]
pub enum Value<R: 'static> {
    /// A word.
    Text(for<'a> fn(&'a R, &'a Names) -> Option<Cow<'a, str>>),
    /// A whole number.
    Count(fn(&R) -> Option<u64>),
    /// A time in seconds.
    Seconds(fn(&R) -> Option<Span>),
}

const fn text<R>(
    name: &'static str,
    value: for<'a> fn(&'a R, &'a Names) -> Option<Cow<'a, str>>,
) -> Column<R> {
    Column { name, value: Value::Text(value) }
}

const fn count<R>(name: &'static str, value: fn(&R) -> Option<u64>) -> Column<R> {
    Column { name, value: Value::Count(value) }
}

const fn seconds<R>(name: &'static str, value: fn(&R) -> Option<Span>) -> Column<R> {
    Column { name, value: Value::Seconds(value) }
}

/// Flows: one row for each that has ended, or was still going at the end of the run.
pub const FLOWS: &[Column<FlowRecord>] = &[
    text("traffic", source_of_flow),
    count("flow", |row| Some(row.number)),
    count("size_bytes", |row| row.size.map(|size| size.0)),
    seconds("start_s", |row| since_start(row.start)),
    seconds("response_s", |row| row.response),
    seconds("end_s", |row| row.end.and_then(since_start)),
    count("delivered_bytes", |row| Some(row.delivered.0)),
    count("lost_packets", |row| Some(row.lost.into())),
    count("late_packets", |row| row.late.map(u64::from)),
    count("retransmissions", |row| Some(row.retransmissions.into())),
    count("timeouts", |row| Some(row.timeouts.into())),
    seconds("longest_stall_s", |row| Some(row.longest_stall)),
    seconds("unloaded_s", |row| row.unloaded),
    text("congestion", |row, _| row.congestion.map(Cow::Borrowed)),
];

/// Links with a queue, every so often; counts are since the start of the run.
pub const LINKS: &[Column<LinkSample>] = &[
    text("link", |row, names| Some(Cow::Borrowed(&names.links[row.link]))),
    seconds("time_s", |row| since_start(row.at)),
    count("queue_packets", |row| Some(row.backlog.packets.into())),
    count("queue_bytes", |row| Some(row.backlog.bytes.0)),
    count("flows_tracked", |row| Some(row.flows_tracked as u64)),
    count("offered_packets", |row| Some(row.counters.offered)),
    count("delivered_packets", |row| Some(row.counters.delivered)),
    count("delivered_bytes", |row| Some(row.counters.delivered_bytes.0)),
    lost::<0>(),
    lost::<1>(),
    lost::<2>(),
    lost::<3>(),
    lost::<4>(),
    count("marked_packets", |row| Some(row.counters.marked)),
];

/// Followed flows, at the same times.
pub const PROGRESS: &[Column<ProgressSample>] = &[
    text("traffic", |row, names| Some(Cow::Borrowed(&names.sources[row.traffic]))),
    count("flow", |row| Some(row.number)),
    seconds("time_s", |row| since_start(row.at)),
    count("delivered_bytes", |row| Some(row.delivered.0)),
    count("arrived_bytes", |row| Some(row.arrived.0)),
    count("congestion_window_bytes", |row| Some(row.congestion_window.0)),
];

/// Flows of a capture, for rows with [`FlowRecord::recorded`].
pub const RECORDED: &[Column<FlowRecord>] = &[
    text("traffic", source_of_flow),
    count("flow", |row| Some(row.number)),
    text("protocol", |row, _| Some(recorded(row)?.key.protocol().to_string().into())),
    text("source", |row, _| Some(recorded(row)?.key.source().ip().to_string().into())),
    count("source_port", |row| Some(recorded(row)?.key.source().port().into())),
    text("destination", |row, _| Some(recorded(row)?.key.destination().ip().to_string().into())),
    count("destination_port", |row| Some(recorded(row)?.key.destination().port().into())),
    text("host", |row, _| recorded(row)?.host.as_deref().map(Cow::Borrowed)),
    seconds("start_s", |row| since_start(row.start)),
    count("size_bytes", |row| row.size.map(|size| size.0)),
    count("packets", |row| Some(recorded(row)?.packets)),
    count("lost_packets", |row| Some(row.lost.into())),
    seconds("delay_mean_s", |row| recorded(row)?.delay_mean),
    seconds("delay_max_s", |row| {
        let flow = recorded(row)?;
        flow.delay_mean.map(|_| flow.delay_max)
    }),
];

fn source_of_flow<'a>(row: &'a FlowRecord, names: &'a Names) -> Option<Cow<'a, str>> {
    Some(Cow::Borrowed(&names.sources[row.traffic]))
}

fn recorded(row: &FlowRecord) -> Option<&RecordedFlow> {
    row.recorded.as_ref()
}

fn since_start(time: Time) -> Option<Span> {
    Some(time.since(Time::ZERO))
}

/// The losses for the reason at this place among all of them.
const fn lost<const PLACE: usize>() -> Column<LinkSample> {
    count(LossReason::ALL[PLACE].column(), |row| Some(row.counters.lost_as(LossReason::ALL[PLACE])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_a_column_for_each_reason_of_a_loss() {
        let lost = LINKS.iter().map(|column| column.name);
        let lost: Vec<_> =
            lost.filter(|name| LossReason::ALL.iter().any(|it| it.column() == *name)).collect();
        assert_eq!(lost, LossReason::ALL.map(LossReason::column));
    }
}
