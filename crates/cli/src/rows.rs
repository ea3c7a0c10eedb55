//! The tables of rows: one row for each flow, for each sample of a link, and
//! for each sample of a followed flow. Names of columns contain the unit; times
//! are exact to the nanosecond.

use std::fs::File;
use std::io::{self, BufWriter};

use csv::{Writer, WriterBuilder};
use tidegate_core::{LossReason, Span, Time};
use tidegate_sim::metrics::{FlowRecord, LinkSample, ProgressSample, RecordedFlow, Recorder};
use tidegate_study::experiment::Job;

use crate::folder::ResultFolder;
use crate::progress::Progress;

/// A table of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Flows,
    Links,
    Progress,
    /// Flows of a capture; only replays have them.
    Recorded,
}

impl Table {
    /// Those of a scenario, and of one that sends the packets of a capture.
    pub(crate) const OF_SCENARIOS: &[Table] = &[Table::Flows, Table::Links, Table::Progress];
    pub(crate) const OF_RECORDINGS: &[Table] =
        &[Table::Flows, Table::Links, Table::Progress, Table::Recorded];

    /// The name of its file.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Table::Flows => "flows.csv",
            Table::Links => "links.csv",
            Table::Progress => "progress.csv",
            Table::Recorded => "recorded.csv",
        }
    }

    /// The names of its columns after the first, which names the contender.
    pub(crate) fn columns(self) -> Vec<&'static str> {
        let losses = LossReason::ALL.map(LossReason::column);
        match self {
            Table::Flows => vec![
                "seed",
                "traffic",
                "flow",
                "size_bytes",
                "start_s",
                "response_s",
                "end_s",
                "delivered_bytes",
                "lost_packets",
                "late_packets",
                "retransmissions",
                "timeouts",
                "longest_stall_s",
                "unloaded_s",
                "congestion",
            ],
            Table::Links => [
                &["seed", "link", "time_s", "queue_packets", "queue_bytes", "flows_tracked"][..],
                &["offered_packets", "delivered_packets", "delivered_bytes"],
                &losses,
                &["marked_packets"],
            ]
            .concat(),
            Table::Recorded => vec![
                "seed",
                "traffic",
                "flow",
                "protocol",
                "source",
                "source_port",
                "destination",
                "destination_port",
                "host",
                "start_s",
                "size_bytes",
                "packets",
                "lost_packets",
                "delay_mean_s",
                "delay_max_s",
            ],
            Table::Progress => {
                vec![
                    "seed",
                    "traffic",
                    "flow",
                    "time_s",
                    "delivered_bytes",
                    "arrived_bytes",
                    "congestion_window_bytes",
                ]
            }
        }
    }
}

/// What rows are about.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// The word for what is compared: a discipline or a way.
    pub(crate) contender: &'static str,
    /// The sources of traffic, in the order of their numbers.
    pub(crate) sources: Vec<String>,
    /// The links.
    pub(crate) links: Vec<String>,
}

/// Writes the rows of one run to files of its own.
pub(crate) struct RowWriter<'a> {
    names: Names,
    progress: &'a Progress,
    contender: &'a str,
    seed: String,
    flows: Writer<BufWriter<File>>,
    links: Writer<BufWriter<File>>,
    samples: Writer<BufWriter<File>>,
    /// From the first such row on.
    recorded: Option<Writer<BufWriter<File>>>,
    folder: &'a ResultFolder,
    run: usize,
    reached: Time,
    /// The first error; a recorder cannot return one.
    failure: Option<csv::Error>,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(
        folder: &'a ResultFolder,
        names: Names,
        progress: &'a Progress,
        job: &Job<'a>,
    ) -> io::Result<RowWriter<'a>> {
        let table = |table| {
            let file = folder.create_part(table, job.index)?;
            io::Result::Ok(WriterBuilder::new().has_headers(false).from_writer(file))
        };
        Ok(RowWriter {
            names,
            progress,
            contender: job.label,
            seed: job.seed.to_string(),
            flows: table(Table::Flows)?,
            links: table(Table::Links)?,
            samples: table(Table::Progress)?,
            recorded: None,
            folder,
            run: job.index,
            reached: Time::ZERO,
            failure: None,
        })
    }

    /// Writes what is still in memory; fails if any row was lost.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure.into());
        }
        self.flows.flush()?;
        self.links.flush()?;
        self.samples.flush()?;
        self.recorded.map_or(Ok(()), |mut table| table.flush())
    }

    fn note_recorded(&mut self, row: &FlowRecord, recorded: &RecordedFlow) -> csv::Result<()> {
        let key = recorded.key;
        let fields = [
            row.number.to_string(),
            key.protocol().to_string(),
            key.source().ip().to_string(),
            key.source().port().to_string(),
            key.destination().ip().to_string(),
            key.destination().port().to_string(),
            recorded.host.as_deref().unwrap_or_default().to_string(),
            time(row.start),
            row.size.map_or_else(String::new, |size| size.0.to_string()),
            recorded.packets.to_string(),
            row.lost.to_string(),
            maybe(recorded.delay_mean),
            maybe(recorded.delay_mean.map(|_| recorded.delay_max)),
        ];
        let table = match &mut self.recorded {
            Some(table) => table,
            none => {
                let file = self.folder.create_part(Table::Recorded, self.run)?;
                none.insert(WriterBuilder::new().has_headers(false).from_writer(file))
            }
        };
        let head = [self.contender, &self.seed, self.names.sources[row.traffic].as_str()];
        table.write_record(head.into_iter().chain(fields.iter().map(String::as_str)))
    }

    fn note(&mut self, result: csv::Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}

impl Recorder for RowWriter<'_> {
    fn flow(&mut self, row: &FlowRecord) {
        let fields = [
            row.number.to_string(),
            row.size.map_or_else(String::new, |size| size.0.to_string()),
            time(row.start),
            maybe(row.response),
            row.end.map_or_else(String::new, time),
            row.delivered.0.to_string(),
            row.lost.to_string(),
            row.late.map_or_else(String::new, |late| late.to_string()),
            row.retransmissions.to_string(),
            row.timeouts.to_string(),
            seconds(row.longest_stall),
            maybe(row.unloaded),
            row.congestion.unwrap_or_default().to_string(),
        ];
        let source = self.names.sources[row.traffic].as_str();
        let head = [self.contender, &self.seed, source];
        let result =
            self.flows.write_record(head.into_iter().chain(fields.iter().map(String::as_str)));
        self.note(result);
        if let Some(recorded) = &row.recorded {
            let result = self.note_recorded(row, recorded);
            self.note(result);
        }
    }

    fn link(&mut self, row: &LinkSample) {
        let before = [
            time(row.at),
            row.backlog.packets.to_string(),
            row.backlog.bytes.0.to_string(),
            row.flows_tracked.to_string(),
            row.counters.offered.to_string(),
            row.counters.delivered.to_string(),
            row.counters.delivered_bytes.0.to_string(),
        ];
        let losses = LossReason::ALL.map(|reason| row.counters.lost_as(reason).to_string());
        let marked = row.counters.marked.to_string();
        let fields = before.iter().chain(&losses).chain([&marked]);
        let link = self.names.links[row.link].as_str();
        let head = [self.contender, &self.seed, link];
        let result = self.links.write_record(head.into_iter().chain(fields.map(String::as_str)));
        self.note(result);
    }

    fn progress(&mut self, row: &ProgressSample) {
        let fields = [
            row.number.to_string(),
            time(row.at),
            row.delivered.0.to_string(),
            row.arrived.0.to_string(),
            row.congestion_window.0.to_string(),
        ];
        let source = self.names.sources[row.traffic].as_str();
        let head = [self.contender, &self.seed, source];
        let result =
            self.samples.write_record(head.into_iter().chain(fields.iter().map(String::as_str)));
        self.note(result);
    }

    fn reached(&mut self, now: Time) {
        self.progress.advance(now.since(self.reached));
        self.reached = now;
    }
}

/// Seconds with nine decimals, exact.
fn seconds(span: Span) -> String {
    let nanos = tidegate_core::units::NANOS_PER_SECOND;
    format!("{}.{:09}", span.0 / nanos, span.0 % nanos)
}

fn time(time: Time) -> String {
    seconds(time.since(Time::ZERO))
}

fn maybe(span: Option<Span>) -> String {
    span.map_or_else(String::new, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(seconds(Span(1)), "0.000000001");
        assert_eq!(seconds(Span(61_500_000_000)), "61.500000000");
    }
}
