//! The simulator's side: a cell and a log as a scenario.

use std::io::{self, Cursor, Read};
use std::sync::atomic::AtomicBool;

use tidegate_core::{FlowKey, Span};
use tidegate_sim::metrics::{FlowRecord, PacketEvent, PacketRecord, ProgressSample, Recorder};
use tidegate_sim::scenario::file::{self, DataFiles};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};
use tidegate_sim::simulation;

use crate::cell::Cell;
use crate::flow::{Flow, WARM_UP_S};
use crate::loaded::{self, Seen};
use crate::shaped;
use crate::workload::{self, SEGMENT_BYTES, Transfer};

/// The kernel's tick (`CONFIG_HZ=250`): all senders are on one host.
pub(crate) const TIMER_TICK: &str = "4 ms";

/// Why the simulator has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    /// It has no such controller.
    #[error("there is no controller '{0}' in the simulator")]
    Controller(&'static str),
    /// It has no such queue, or none with these settings.
    #[error("there is no queue '{queue}' in the simulator: {reason}")]
    Queue {
        /// As `--disciplines` says it.
        queue: &'static str,
        /// What it says to that.
        reason: String,
    },
}

/// The log that a scenario names.
struct Log(Vec<u8>);

impl DataFiles for Log {
    fn open(&self, _name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Cursor::new(&self.0)))
    }
}

/// The scenario of a cell, and its queue.
fn scenario(
    cell: &Cell,
    log: &[Transfer],
    seconds: f64,
    follow: bool,
    probes_from_s: f64,
) -> Result<(Scenario, DisciplineChoice), Absent> {
    let controller = cell.ours().ok_or(Absent::Controller(cell.controller))?;
    let queue = cell.queue.ours;
    let absent = |reason: String| Absent::Queue { queue, reason };
    let words = queue.replace("RATE", &format!("{} bit/s", cell.link.rate.0));
    let choice: DisciplineChoice = words.parse().map_err(|error| absent(format!("{error}")))?;
    let fifo = format!("{} B", cell.link.buffer_bytes);
    let buffer = cell.queue.buffer.unwrap_or(&fifo);
    let delay_us = cell.link.delay.0 / 1000;
    // The probes of the kernel's sender: 64 bytes and two headers, ten a second.
    let text = format!(
        r#"title = "{cell}"
duration = "{seconds} s"
sample_every = "100 ms"
seeds = [1]
disciplines = ["fifo"]

[tcp]
profile = "today"
congestion = "{controller}"
timer_tick = "{TIMER_TICK}"

[[link]]
name = "access"
from = "provider"
to = "client"
queue = "tested"
buffer = "{buffer}"
back = {{ name = "up", rate = "1 Gbit/s", queue = "unbounded" }}

[[link]]
from = "server"
to = "provider"
delay = "{delay_us} us"

[[traffic.transfers]]
name = "transfers"
from = "server"
to = "client"
log = "log.csv"
follow = {follow}

[[traffic.cbr]]
name = "probes"
from = "server"
to = "client"
start = "{probes_from_s} s"
rate = "7360 bit/s"
packet = "92 B"
"#,
    );
    let mut bytes = Vec::new();
    workload::write(log, &mut bytes).expect("memory does not fail");
    let scenario = file::parse(&cell.to_string(), &text, &Log(bytes))
        .map_err(|error| absent(format!("{error}")))?;
    Ok((scenario, shaped::choice(choice, cell.link.rate, cell.queue.shaper)))
}

/// Takes what is compared.
#[derive(Default)]
struct Taken {
    responses: Vec<Option<f64>>,
    progress: Vec<ProgressSample>,
}

impl Recorder for Taken {
    fn flow(&mut self, row: &FlowRecord) {
        if row.traffic == 0 {
            let number = row.number as usize;
            if self.responses.len() <= number {
                self.responses.resize(number + 1, None);
            }
            self.responses[number] = row.response.map(Span::as_seconds);
        }
    }

    fn progress(&mut self, row: &ProgressSample) {
        self.progress.push(row.clone());
    }
}

/// The response times of a log's transfers, in seconds; `None` for one that was not
/// done by the end.
///
/// # Errors
/// When the simulator lacks the queue or the controller.
pub fn responses(cell: &Cell, log: &[Transfer]) -> Result<Vec<Option<f64>>, Absent> {
    let last = log.last().map_or(0.0, |transfer| transfer.start_s);
    let seconds = last + cell.question.patience_s();
    let (scenario, queue) = scenario(cell, log, seconds, false, 0.0)?;
    let mut taken = Taken::default();
    simulation::run(&scenario, &queue, 1, &mut taken, &AtomicBool::new(false));
    taken.responses.resize(log.len(), None);
    Ok(taken.responses)
}

/// One flow that does not end within `seconds`.
///
/// # Errors
/// When the simulator lacks the controller.
pub fn flow(cell: &Cell, seconds: f64) -> Result<Flow, Absent> {
    let log = [crate::flow::ENDLESS];
    let (scenario, queue) = scenario(cell, &log, seconds, true, WARM_UP_S)?;
    let mut taken = Taken::default();
    let run = simulation::run(&scenario, &queue, 1, &mut taken, &AtomicBool::new(false));
    let path = taken.progress.iter().map(|sample| crate::flow::Moment {
        at_s: sample.at.as_seconds(),
        window: sample.congestion_window.0 as f64 / SEGMENT_BYTES,
        round_trip_ms: sample.smoothed_rtt.map_or(0.0, |span| span.as_seconds() * 1e3),
        pacing_mbps: sample.pacing_rate.map(|rate| rate.0 as f64 / 1e6),
        arrived_bytes: sample.arrived.0,
    });
    let delays = &run.traffic[1].delay;
    let queueing =
        |seconds: Option<f64>| (seconds.unwrap_or_default() - cell.link.delay.as_seconds()) * 1e3;
    Ok(Flow::new(
        path.collect(),
        queueing(delays.mean()),
        [0.05, 0.5, 0.95].map(|part| queueing(delays.quantile(part))),
    ))
}

/// Takes what is compared of a loaded queue.
#[derive(Default)]
struct Load {
    seen: Seen,
    /// From the sender to the queue.
    delay: Span,
}

impl Recorder for Load {
    fn progress(&mut self, row: &ProgressSample) {
        // In order, because that is what the kernel's receiver can read.
        self.seen.read(row.number as usize, row.at.as_seconds(), row.delivered.0);
    }

    fn takes_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, row: &PacketRecord) {
        if row.packet.flow.protocol() != FlowKey::UDP {
            return;
        }
        let arrived = row.packet.arrived;
        let sent_s = arrived.as_seconds() - self.delay.as_seconds();
        match row.event {
            PacketEvent::Arrived => self.seen.sent(sent_s),
            PacketEvent::Sent => {
                self.seen.waited(sent_s, row.at.since(arrived).as_seconds() * 1e3);
            }
            PacketEvent::Lost(_) => {}
        }
    }
}

/// What a queue does under the long flows of the log of this number.
///
/// # Errors
/// When the simulator lacks the queue or the controller.
pub fn loaded(cell: &Cell, number: u64) -> Result<loaded::Row, Absent> {
    let log = loaded::log(number);
    let (scenario, queue) = scenario(cell, &log, loaded::SECONDS, true, 0.0)?;
    let mut load = Load { delay: cell.link.delay, ..Load::default() };
    simulation::run(&scenario, &queue, number, &mut load, &AtomicBool::new(false));
    Ok(load.seen.row(cell, number))
}
