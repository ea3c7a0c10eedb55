//! Promises on the live link: a call and a video beside downloads that want all of it.
//!
//! The streams declare what they send, and `tidegate curves` says by when the link can
//! have their packets on the wire whatever else it carries. The discipline `deadlines` has
//! to keep that; the others know nothing of it, and show what the promise is worth.
//!
//! A packet's delay here is the time from the sender to the receiver, less the path's, plus
//! the time that the packet takes at the link's rate: the live link hands a packet over at
//! the start of that time, and the promise is about its end. How late the bed itself is
//! counts against the link; so the link's own books stand beside it.
//!
//! What has to hold stands here, and stood here before anything was measured.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::prctl;
use serde::{Deserialize, Serialize};
use tidegate_core::contract::Contracts;
use tidegate_core::entry::Entry;
use tidegate_core::residual::Residual;
use tidegate_core::setting::Kind;
use tidegate_core::{Bytes, Rate, Span, registry};
use tidegate_sim::metrics::Recorder;
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file;
use tidegate_sim::simulation;

use crate::agent::{self, Order, now_us};
use crate::bed::{Bed, CLIENT, SENDER};
use crate::cell::{Cell, PAPERS_BUFFER, long_flow};
use crate::figures::quantile;
use crate::flow::ENDLESS;
use crate::host::{BedError, hurry};
use crate::link;
use crate::simulated::TIMER_TICK;
use crate::workload::{self, Transfer};

/// The share of a stream's packets that may be late under `deadlines`: the bed itself is
/// later than the slack of a promise about once in ten thousand packets.
pub const MOST_LATE: f64 = 0.001;

/// What is compared, by its name in the registry.
pub const DISCIPLINES: [&str; 4] = ["fifo", "fq-codel", "efd", "deadlines"];

/// What the streams have to themselves at first, and how long they are watched then.
const WARM_UP: Span = Span::seconds(5);
const WATCHED: Span = Span::seconds(30);
/// Downloads without end.
const DOWNLOADS: usize = 4;
/// A reader that hears nothing looks this often whether it is over.
const PATIENCE: Duration = Duration::from_millis(200);
/// IPv4 and UDP.
const HEADER_BYTES: usize = 28;

/// A stream of datagrams, and its promise.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// What it is called.
    pub name: &'static str,
    /// Where it goes, by which the link knows it.
    port: u16,
    /// By which the simulator knows it.
    class: u16,
    /// The size of an IP packet.
    pub packet: Bytes,
    /// Packets that are sent at once.
    pub at_once: u64,
    /// Between two such bursts.
    pub every: Span,
    /// What it declares: it keeps to that, with something to spare for a path that delays
    /// some packets more than others.
    pub envelope: &'static str,
    /// By when each packet is promised to be on the wire.
    pub deadline: Span,
}

/// A call as G.711 sends it, and a video of 2.98 Mbit/s.
pub const STREAMS: [Stream; 2] = [
    Stream {
        name: "call",
        port: 5004,
        class: 1,
        packet: Bytes(200),
        at_once: 1,
        every: Span::millis(20),
        envelope: "400 B + 96 kbit/s",
        deadline: Span::millis(5),
    },
    Stream {
        name: "video",
        port: 3478,
        class: 2,
        packet: Bytes(1240),
        at_once: 10,
        every: Span::micros(33_333),
        envelope: "14 kB + 3.2 Mbit/s",
        deadline: Span::millis(20),
    },
];

/// The promises, in one line of text; `selector` says which packets are a stream's.
fn contracts(rate: Rate, selector: impl Fn(&Stream) -> String) -> String {
    STREAMS.iter().fold(format!("link {rate:#}; packets to 1500 B"), |text, stream| {
        let Stream { name, envelope, deadline, .. } = stream;
        format!("{text}; {name} = {}: {envelope} within {deadline:#}", selector(stream))
    })
}

/// The link, and a controller for the downloads.
fn cell() -> Cell {
    long_flow("cubic")
}

/// What the promises leave of the link, and with that, how short they could be.
#[must_use]
pub fn residual() -> Residual {
    let text = contracts(cell().link.rate, |stream| format!("udp and port {}", stream.port));
    let contracts: Contracts = text.parse().expect("it was written by hand");
    Residual::new(&contracts).expect("the link can keep these promises")
}

/// A discipline with the promises, if it takes any.
fn choice(name: &str, selector: impl Fn(&Stream) -> String) -> DisciplineChoice {
    let entry: &'static Entry = registry::find(name).expect("it is in the registry");
    let flows = contracts(cell().link.rate, selector);
    let takes_them =
        entry.parameters.iter().any(|parameter| matches!(parameter.kind, Kind::Contracts));
    let given: &[_] = if takes_them { &[("flows", flows.as_str())] } else { &[] };
    let settings = entry.settings(given).expect("the promises are right");
    DisciplineChoice { settings, ..DisciplineChoice::with_defaults(entry) }
}

/// What came of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The discipline.
    pub discipline: String,
    /// The number of the run.
    pub run: u64,
    /// The stream.
    pub stream: String,
    /// Packets sent after the warm-up.
    pub sent: usize,
    /// Those of them that arrived.
    pub arrived: usize,
    /// Those of them that were not on the wire by their deadline: lost ones among them.
    pub late: usize,
    /// Half of the packets that arrived were on the wire within this time.
    pub median_ms: f64,
    /// 99 of 100 were.
    pub p99_ms: f64,
    /// All were.
    pub max_ms: f64,
    /// The longest that the link had a packet with a promise in its queue, as it says
    /// itself; none if it knows of no promise.
    pub queued_max_ms: Option<f64>,
    /// How late the path was with its latest packet: the bed's own fault.
    pub bed_late_ms: f64,
    /// What the link carried beside the streams, with headers.
    pub rest_mbps: f64,
}

impl Outcome {
    /// The share of packets that were late.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.sent as f64
    }
}

/// The streams and the downloads through the live link.
///
/// # Errors
/// When the machine lacks something that this takes.
///
/// # Panics
/// When a thread of the bed does.
pub fn measure(discipline: &str, run: u64) -> Result<Vec<Outcome>, BedError> {
    let cell = cell();
    let choice = choice(discipline, |stream| format!("udp and port {}", stream.port));
    let limit = PAPERS_BUFFER.parse().expect("a number of packets");
    let queue = link::queue(choice, limit, cell.link.rate);
    let bed = Bed::with_link(&cell, queue)?;
    let over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = STREAMS
        .iter()
        .map(|stream| {
            let (port, over) = (stream.port, Arc::clone(&over));
            bed.client.run(move || read(port, over))
        })
        .collect::<io::Result<_>>()?;
    let name = format!("tidegate-downloads-{}-{run}-{discipline}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let downloads: Vec<Transfer> = downloads();
    workload::write(&downloads, std::fs::File::create(&path)?)?;
    let to = SocketAddrV4::new(CLIENT, 9000);
    let sunk = bed.client.begin(move || agent::sink(to, io::sink()));
    let writers: Vec<_> = STREAMS
        .iter()
        .map(|stream| bed.sender.run(move || write(stream)))
        .collect::<io::Result<_>>()?;
    let seconds = (WARM_UP + WATCHED).as_seconds();
    let log = path.clone();
    let sent = bed.sender.begin(move || {
        let order = Order {
            log: &log,
            to,
            from: SENDER,
            controller: cell.controller,
            seconds,
            watches: false,
        };
        agent::send(&order, io::sink())
    });
    let carried = || bed.status().expect("there is a link").queues[0].counts.sent_bytes;
    thread::sleep(Duration::from_nanos(WARM_UP.0));
    let before = carried();
    thread::sleep(Duration::from_nanos(WATCHED.0));
    let carried = carried() - before;
    let sent_at: Vec<Vec<i64>> =
        writers.into_iter().map(|writer: JoinHandle<_>| writer.join().expect("it sends")).collect();
    sent.recv().expect("the sender does not panic")?;
    sunk.recv().expect("the sink ends after the last probe")?;
    // Whatever still waits in a full queue has arrived by now.
    over.store(true, Ordering::Relaxed);
    std::fs::remove_file(&path)?;
    let bed_late_ms = rounded(f64::from(bed.late_us().into_iter().max().unwrap_or_default()) / 1e3);
    let levels = bed.status().expect("there is a link").queues[0].levels.clone();
    let queued_max_ms =
        levels.iter().find(|level| level.name == "real time").map(|level| level.delay.max_ms);
    let streams: u64 = STREAMS
        .iter()
        .zip(&sent_at)
        .map(|(stream, sent)| watched(sent).count() as u64 * stream.packet.0)
        .sum();
    let rest_mbps =
        rounded(carried.saturating_sub(streams) as f64 * 8.0 / WATCHED.as_seconds() / 1e6);
    let kept = STREAMS.iter().zip(sent_at).zip(readers).map(|((stream, sent), reader)| {
        let arrivals = reader.join().expect("it reads");
        let times = times(stream, &sent, &arrivals, &cell);
        let late = late(&times, stream);
        let sent = times.len();
        let mut times: Vec<f64> = times.into_iter().flatten().collect();
        times.sort_by(f64::total_cmp);
        let at = |part| if times.is_empty() { 0.0 } else { rounded(quantile(&times, part)) };
        Outcome {
            discipline: discipline.into(),
            run,
            stream: stream.name.into(),
            sent,
            arrived: times.len(),
            late,
            median_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: at(1.0),
            queued_max_ms: queued_max_ms.map(rounded),
            bed_late_ms,
            rest_mbps,
        }
    });
    Ok(kept.collect())
}

/// Downloads that begin one after another.
fn downloads() -> Vec<Transfer> {
    (0..DOWNLOADS).map(|number| Transfer { start_s: number as f64 * 0.1, ..ENDLESS }).collect()
}

/// The numbers of the packets that were sent after the warm-up.
fn watched(sent: &[i64]) -> impl Iterator<Item = usize> + '_ {
    let from = sent.first().copied().unwrap_or_default() + (WARM_UP.0 / 1000).cast_signed();
    (0..sent.len()).filter(move |number| sent[*number] >= from)
}

/// The delays of the packets that were sent after the warm-up, in ms; `None` of one that
/// was lost.
fn times(stream: &Stream, sent: &[i64], arrivals: &[(u64, i64)], cell: &Cell) -> Vec<Option<f64>> {
    let mut arrived = vec![None; sent.len()];
    for (number, at) in arrivals {
        if let Some(place) = arrived.get_mut(*number as usize) {
            *place = Some(*at);
        }
    }
    let own = cell.link.rate.transmission(stream.packet);
    let besides = (own.0 as f64 - cell.link.delay.0 as f64) / 1e6;
    let time = |number: usize| Some((arrived[number]? - sent[number]) as f64 / 1e3 + besides);
    watched(sent).map(time).collect()
}

/// How many of them were late, or lost.
fn late(times: &[Option<f64>], stream: &Stream) -> usize {
    let deadline_ms = stream.deadline.as_seconds() * 1e3;
    times.iter().filter(|time| time.is_none_or(|time| time > deadline_ms)).count()
}

/// Reads the datagrams that come to `port`, on a thread of this host, until it is over:
/// their numbers, and when they came.
fn read(port: u16, over: Arc<AtomicBool>) -> io::Result<JoinHandle<Vec<(u64, i64)>>> {
    let socket = UdpSocket::bind((CLIENT, port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(thread::spawn(move || {
        hurry();
        let mut arrivals = Vec::new();
        let mut datagram = [0; 1500];
        while !over.load(Ordering::Relaxed) {
            if let Ok(length) = socket.recv(&mut datagram)
                && let Some(number) = datagram[..length].first_chunk()
            {
                arrivals.push((u64::from_be_bytes(*number), now_us()));
            }
        }
        arrivals
    }))
}

/// Sends a stream on a thread of this host, and returns when each packet left.
fn write(stream: &'static Stream) -> io::Result<JoinHandle<Vec<i64>>> {
    let socket = UdpSocket::bind((SENDER, 0))?;
    socket.connect((CLIENT, stream.port))?;
    Ok(thread::spawn(move || {
        hurry();
        // Timers of this thread are then exact; it works without.
        let _ = prctl::set_timerslack(1);
        let mut left = Vec::new();
        let mut datagram = vec![0; stream.packet.0 as usize - HEADER_BYTES];
        let begun = now_us();
        let every = stream.every.0 / 1000;
        let count = (WARM_UP + WATCHED).0 / 1000 / every;
        for burst in 0..count {
            let due = begun + (burst * every).cast_signed();
            thread::sleep(Duration::from_micros((due - now_us()).max(0) as u64));
            for _ in 0..stream.at_once {
                datagram[..8].copy_from_slice(&(left.len() as u64).to_be_bytes());
                left.push(now_us());
                // A datagram that the host refuses is as good as lost.
                let _ = socket.send(&datagram);
            }
        }
        left
    }))
}

/// With three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// What the simulator says of a stream under a discipline.
#[derive(Clone, Copy, Debug)]
pub struct Predicted {
    /// The share of packets that are late, or lost.
    pub late_share: f64,
    /// The longest time to the wire.
    pub max_ms: f64,
}

/// The same streams and downloads in the simulator, in the order of [`STREAMS`].
///
/// # Panics
/// When the scenario is wrong, which a test excludes.
#[must_use]
pub fn predicted(discipline: &str) -> Vec<Predicted> {
    /// Nothing but the summary is wanted.
    struct Nothing;
    impl Recorder for Nothing {}

    let cell = cell();
    let delay = cell.link.delay;
    let mut text = format!(
        r#"title = "promises"
duration = "{} s"
warm_up = "{} s"
seeds = [1]
disciplines = ["fifo"]

[tcp]
profile = "today"
congestion = "{}"
timer_tick = "{TIMER_TICK}"

[[link]]
name = "access"
from = "provider"
to = "client"
rate = "{:#}"
queue = "tested"
buffer = "{PAPERS_BUFFER}"
back = {{ name = "up", rate = "1 Gbit/s", queue = "unbounded" }}

[[link]]
from = "server"
to = "provider"
delay = "{delay:#}"

[[traffic.transfers]]
name = "downloads"
from = "server"
to = "client"
log = "downloads.csv"
"#,
        (WARM_UP + WATCHED).as_seconds(),
        WARM_UP.as_seconds(),
        cell.ours().expect("the simulator has it"),
        cell.link.rate,
    );
    for stream in &STREAMS {
        let Stream { name, packet, at_once, every, class, deadline, .. } = *stream;
        let deadline = deadline + delay;
        // A burst is a frame whose packets are sent at once.
        let burst = at_once * (packet.0 - RTP_HEADERS.0);
        text += &format!(
            r#"
[[traffic.frames]]
name = "{name}"
from = "server"
to = "client"
file = "{burst} {}"
packet = "{packet:#}"
repeat = true
class = {class}
deadline = "{deadline:#}"
"#,
            every.as_seconds()
        );
    }
    let scenario = file::parse("promises", &text, &Files).expect("it was written by hand");
    let choice = choice(discipline, |stream| format!("class {}", stream.class));
    let run = simulation::run(&scenario, &choice, 1, &mut Nothing, &AtomicBool::new(false));
    let delay_ms = delay.as_seconds() * 1e3;
    let one = |stream: &Stream| {
        let summary = &run.traffic[usize::from(stream.class)];
        Predicted {
            late_share: summary.late_ratio().unwrap_or_default(),
            max_ms: summary.delay.largest().unwrap_or_default() * 1e3 - delay_ms,
        }
    };
    STREAMS.iter().map(one).collect()
}

/// What a packet of a frame has of headers in the simulator.
const RTP_HEADERS: Bytes = Bytes(40);

/// The files that the scenario names: the downloads, and for each stream two bursts, named
/// by their size and the time between them.
struct Files;

impl file::DataFiles for Files {
    fn open(&self, name: &str) -> io::Result<Box<dyn io::Read + '_>> {
        let bytes = match name.split_once(' ') {
            Some((size, every)) => {
                format!("start_s,size_bytes\n0,{size}\n{every},{size}\n").into_bytes()
            }
            None => {
                let mut bytes = Vec::new();
                workload::write(&downloads(), &mut bytes)?;
                bytes
            }
        };
        Ok(Box::new(io::Cursor::new(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_can_keep_the_promises_and_the_streams_keep_to_their_envelopes() {
        let residual = residual();
        for stream in &STREAMS {
            let shortest = residual.shortest_deadline(stream.name).expect("it is promised");
            assert!(shortest < stream.deadline, "{}: {shortest}", stream.name);
            let declared: tidegate_core::contract::Envelope =
                stream.envelope.parse().expect("it was written by hand");
            let burst = stream.packet * stream.at_once;
            let rate = burst.0 as f64 * 8.0 / stream.every.as_seconds();
            let curve = declared.curve().expect("it is short");
            assert!(curve.long_run_rate().0 as f64 > rate, "{}", stream.name);
        }
    }

    #[test]
    fn the_simulator_keeps_the_promises_and_a_fifo_does_not() {
        for (stream, predicted) in STREAMS.iter().zip(predicted("deadlines")) {
            assert!(predicted.late_share == 0.0, "{}: {predicted:?}", stream.name);
            assert!(predicted.max_ms <= stream.deadline.as_seconds() * 1e3, "{predicted:?}");
        }
        assert!(predicted("fifo")[0].late_share > 0.9);
    }

    #[test]
    fn a_lost_packet_is_late_and_the_warm_up_does_not_count() {
        let stream = &STREAMS[0];
        let sent = [0, 4_000_000, 5_000_000, 5_020_000, 5_040_000];
        // Within 20 ms of path: on time, lost, and 6 ms late.
        let arrivals = [(1, 4_900_000), (2, 5_021_000), (4, 5_071_000)];
        let times = times(stream, &sent, &arrivals, &cell());
        // 200 B take 0.16 ms.
        let expected = [Some(1.16), None, Some(11.16)];
        for (time, expected) in times.iter().zip(expected) {
            match (time, expected) {
                (Some(time), Some(expected)) => assert!((time - expected).abs() < 1e-9),
                (time, expected) => assert_eq!(*time, expected),
            }
        }
        assert_eq!((times.len(), late(&times, stream)), (3, 2));
    }
}
