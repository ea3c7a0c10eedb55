//! Single transfers of which ns-3 lost chosen packets (`benches/ns3/run-repairs.sh`),
//! in our dumbbell with the same packets lost at the same place. Nothing differs but
//! how TCP repairs the losses.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use tidegate_core::discipline::fifo::Fifo;
use tidegate_core::entry::{Drops, Entry, Place};
use tidegate_core::setting::{Kind, Parameter, Settings};
use tidegate_core::{Backlog, Buffer, Discipline, LossReason, Losses, Packet, Span, Time};
use tidegate_sim::metrics::{FlowRecord, Recorder};
use tidegate_sim::scenario::{DisciplineChoice, QueueSpec};
use tidegate_sim::simulation;

use super::one_by_one::Pair;
use super::transfers::Transfer;
use super::workload;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/ns3/results/repairs.csv");

/// A line of the file.
#[derive(Deserialize)]
struct Row {
    segments: u32,
    /// Numbers of the packets that were lost behind the bottleneck, counted from 1, the
    /// SYN.
    lost: String,
    /// When the last byte arrived.
    complete_s: f64,
}

/// ns-3's transfers.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut reader = csv::Reader::from_path(FILE).expect("ns-3's results are kept");
    reader.deserialize().collect::<Result<_, _>>().expect("lines of run-repairs.sh")
});

/// The line of the file whose packets are lost.
const ROW: Parameter = Parameter {
    name: "row",
    help: "the line whose packets are lost",
    kind: Kind::Count { least: 0, most: u32::MAX },
    default: "0",
};

/// A FIFO queue that loses chosen packets.
static LOSING: Entry = Entry {
    name: "losing",
    summary: "loses chosen packets",
    source: "benches/ns3/probe.cc",
    linux: None,
    drops: Drops::Early,
    parameters: &[ROW],
    fixed: &[ROW],
    build: |settings, Place { buffer, .. }, _| {
        let row = &ROWS[settings.count(ROW.name) as usize];
        let numbers = row.lost.split(' ').map(|number| number.parse().expect("a number"));
        Box::new(Losing { lost: numbers.collect(), arrived: 0, queue: Fifo::new(buffer) })
    },
};

#[derive(Debug)]
struct Losing {
    lost: BTreeSet<u64>,
    arrived: u64,
    queue: Fifo,
}

impl Discipline for Losing {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.arrived += 1;
        if self.lost.contains(&self.arrived) {
            return losses.push(packet, LossReason::Early);
        }
        self.queue.enqueue(now, packet, losses);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.queue.dequeue(now, losses)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        self.queue.reconfigure(now, settings, place);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}

/// The response time of a run's only transfer.
struct Response(Option<f64>);

impl Recorder for Response {
    fn flow(&mut self, row: &FlowRecord) {
        self.0 = row.response.map(Span::as_seconds);
    }
}

/// All of ns-3's transfers, and ours; `departures` as in [`workload::dumbbell`].
pub(crate) fn pairs(departures: Option<&str>) -> Vec<Pair> {
    let fifo = DisciplineChoice::new("fifo", None, &[]).expect("it is registered");
    let pair = |(number, row): (usize, &Row)| {
        let mut scenario = workload::dumbbell(departures);
        // The longest of ns-3's took eleven seconds.
        scenario.duration = Span::seconds(400);
        let only = Transfer { start: Time::ZERO, from: 0, to: 0, size: row.segments };
        workload::replay(&mut scenario, &[only]);
        let node = |name| scenario.nodes.iter().position(|node| node == name);
        let ends = [node("right"), node("receiver1")];
        let is_last = |link: &&mut tidegate_sim::scenario::LinkSpec| {
            [link.from, link.to].map(|node| Some(usize::from(node.0))) == ends
        };
        let last = scenario.links.iter_mut().find(is_last).expect("a link to the receiver");
        let settings = LOSING.settings(&[(ROW.name, &number.to_string())]).expect("a line");
        let losing = DisciplineChoice { label: LOSING.name.into(), entry: &LOSING, settings };
        last.queue = QueueSpec::Fixed(losing, Buffer::packets(1_000));
        let mut ours = Response(None);
        simulation::run(&scenario, &fifo, 1, &mut ours, &AtomicBool::new(false));
        Pair { size: row.segments, seconds: [Some(row.complete_s), ours.0] }
    };
    ROWS.iter().enumerate().map(pair).collect()
}

/// Prints how many are alike, and the others.
pub(crate) fn compare(departures: Option<&str>) {
    let pairs = pairs(departures);
    let (alike, others): (Vec<_>, Vec<_>) =
        std::iter::zip(&pairs, ROWS.iter()).partition(|(pair, _)| pair.is_alike());
    println!("{} of {} alike", alike.len(), pairs.len());
    for (pair, row) in others {
        let [peer, ours] = pair.seconds.map(Option::unwrap_or_default);
        println!("{} segments without {}: ns-3 {peer:.6} s, ours {ours:.6} s", pair.size, row.lost);
    }
}
