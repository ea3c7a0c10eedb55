//! Goodput over time is what a link has carried: payload counts when it reaches the
//! receiver, each byte once, whether or not something before it is missing.
//!
//! Of what arrives in a span of time behind a link, all packets but the first have
//! left it within that span. So the payload in it is at most that of the link's rate
//! for that long, in full packets, and one packet. Payload in order obeys no such
//! bound: the retransmission that fills a hole releases all that waited behind it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use tidegate_core::{Bytes, Span, Time, discipline::fifo};
use tidegate_sim::metrics::{FlowRecord, PacketEvent, PacketRecord, ProgressSample, Recorder};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::simulation;
use tidegate_sim::tcp::{Endpoint, Flags, Header, TcpConfig};

/// One download over a path that loses packets ahead of a link that loses none.
const LOSSY: &str = r#"
    title = "lossy"
    duration = "30 s"
    disciplines = ["fifo"]
    sample_every = "20 ms"
    [[link]]
    from = "a"
    to = "b"
    loss = 0.005
    back.loss = 0.0
    [[link]]
    from = "b"
    to = "c"
    rate = "20 Mbit/s"
    delay = "10.000123 ms"
    queue = "tested"
    buffer = "1000 packets"
    [[traffic.transfers]]
    name = "one"
    from = "a"
    to = "c"
    count = 1
    sizes = "endless"
    follow = true
"#;
/// Nanoseconds of a full packet, 1 500 bytes at 20 Mbit/s, and its payload.
const PACKET: u64 = 600_000;
const PAYLOAD: u64 = 1_448;
/// Of the second link.
const PROPAGATION: Span = Span(10_000_123);
const BIN: u64 = 20_000_000;

#[derive(Default)]
struct Rows {
    flow: Option<FlowRecord>,
    progress: Vec<ProgressSample>,
    /// When each packet with payload has arrived behind the link, its number there and
    /// its payload.
    arrivals: Vec<(Time, u32, u32)>,
    first: Option<u32>,
}

impl Recorder for Rows {
    fn flow(&mut self, row: &FlowRecord) {
        self.flow = Some(row.clone());
    }
    fn progress(&mut self, row: &ProgressSample) {
        self.progress.push(row.clone());
    }
    fn takes_packets(&self) -> bool {
        true
    }
    fn packet(&mut self, row: &PacketRecord) {
        let tcp = row.packet.tcp.expect("there is nothing else");
        let first = *self.first.get_or_insert(tcp.sequence);
        if row.event == PacketEvent::Sent && tcp.payload > 0 {
            let sent = row.at + Span(PACKET * row.packet.size.0 / 1_500);
            let offset = tcp.sequence.wrapping_sub(first);
            self.arrivals.push((sent + PROPAGATION, offset, tcp.payload));
        }
    }
}

fn rows() -> Rows {
    let scenario = file::parse("lossy.toml", LOSSY, &Folder(".".into()));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let fifo = DisciplineChoice::with_defaults(&fifo::ENTRY);
    let mut rows = Rows::default();
    let summary = simulation::run(&scenario, &fifo, 1, &mut rows, &AtomicBool::new(false));
    let link = summary.links.iter().flatten().next().expect("one has a queue");
    assert_eq!(link.counters.lost(), 0, "only the path before it loses packets");
    rows
}

/// The most of `counted` in one bin, in bytes.
fn most(rows: &Rows, counted: impl Fn(&ProgressSample) -> Bytes) -> u64 {
    let bins = rows.progress.windows(2).map(|pair| {
        assert_eq!(pair[1].at.since(pair[0].at), Span(BIN));
        (counted(&pair[1]) - counted(&pair[0])).0
    });
    bins.max().expect("there are bins")
}

#[test]
fn no_bin_has_more_goodput_than_the_link_carries_and_one_packet() {
    let rows = rows();
    let bound = BIN * PAYLOAD / PACKET + PAYLOAD;
    let arrived = most(&rows, |sample| sample.arrived);
    assert!(arrived <= bound, "{arrived} B of at most {bound}");
    // The link was full for a bin at least, so the bound is tight.
    assert!(arrived > bound - 2 * PAYLOAD, "{arrived} B of at most {bound}");
    // In order it would have been several times the rate of the link.
    let delivered = most(&rows, |sample| sample.delivered);
    assert!(delivered > 2 * bound, "{delivered} B of at most {bound}");
}

#[test]
fn what_has_arrived_is_what_has_left_the_link_each_byte_once() {
    let rows = rows();
    let mut seen: BTreeMap<u32, u32> = BTreeMap::new();
    let mut arrivals = rows.arrivals.iter().peekable();
    let (mut bytes, mut twice, mut waited) = (0, 0, 0);
    for sample in &rows.progress {
        while let Some((_, offset, payload)) = arrivals.next_if(|(at, ..)| *at <= sample.at) {
            match seen.insert(*offset, *payload) {
                None => bytes += u64::from(*payload),
                Some(before) => {
                    assert_eq!(before, *payload, "segments are sent again as they were");
                    twice += 1;
                }
            }
        }
        assert_eq!(sample.arrived, Bytes(bytes), "{}", sample.at.since(Time::ZERO));
        waited += u64::from(sample.arrived > sample.delivered);
    }
    assert!(waited > 100, "something has waited for a repair at {waited} samples");
    // All that arrived is delivered or waits: in order is what has no gap before it.
    let in_order =
        seen.iter().try_fold(
            1,
            |next, (offset, payload)| {
                if *offset == next { Ok(next + payload) } else { Err(next) }
            },
        );
    let in_order = u64::from(in_order.unwrap_or_else(|gap| gap)) - 1;
    let last = rows.progress.last().expect("there are samples");
    let flow = rows.flow.as_ref().expect("one flow was cut off");
    assert_eq!((last.delivered.0, flow.delivered.0), (in_order, in_order));
    assert_eq!(last.at, Time(30_000_000_000));
    println!("{bytes} B arrived, {} of them wait, {twice} packets came twice", bytes - in_order);
}

/// The receiver of a stream, after the handshake.
fn receiver() -> Endpoint {
    let mut end = Endpoint::listen(TcpConfig::today().into(), 1_000);
    let syn = Header { sequence: 0, window: 65_535, flags: Flags::SYN, ..Header::default() };
    let ack =
        Header { sequence: 1, acknowledgement: 1_001, flags: Flags::ACK, window: 65_535, ..syn };
    let mut out = Vec::new();
    for header in [syn, ack] {
        end.on_segment(Time::ZERO, &header, false, &mut out);
    }
    assert!(end.is_established());
    end
}

/// Bytes of the stream that segments are taken from.
const LENGTH: usize = 60;

/// What an endpoint says has arrived, and has been delivered, after each of these
/// segments, and what a bitmap of the stream says.
fn counted(segments: &[(usize, usize)]) -> (Vec<[u64; 2]>, Vec<[u64; 2]>) {
    let (mut end, mut bitmap, mut out) = (receiver(), [false; LENGTH], Vec::new());
    let step = |(start, length): &(usize, usize)| {
        let stop = (start + length).min(LENGTH);
        let header = Header {
            sequence: 1 + *start as u32,
            acknowledgement: 1_001,
            payload: (stop - start) as u32,
            // The FIN goes with the last byte.
            flags: if stop == LENGTH { Flags::ACK | Flags::FIN } else { Flags::ACK },
            window: 65_535,
            ..Header::default()
        };
        end.on_segment(Time::ZERO, &header, false, &mut out);
        bitmap[*start..stop].fill(true);
        let arrived = bitmap.iter().filter(|there| **there).count() as u64;
        let in_order = bitmap.iter().take_while(|there| **there).count() as u64;
        ([end.arrived(), end.delivered()], [arrived, in_order])
    };
    segments.iter().map(step).unzip()
}

#[test]
fn a_segment_that_covers_what_waits_and_touches_more_delivers_all_of_it() {
    let (told, right) = counted(&[(2, 1), (4, 2), (0, 4)]);
    assert_eq!(right, [[1, 0], [3, 0], [6, 6]]);
    assert_eq!(told, right);
}

proptest! {
    #[test]
    fn an_endpoint_counts_each_byte_when_it_first_comes(
        segments in prop::collection::vec((0..LENGTH, 1_usize..15), 1..60),
    ) {
        let (told, right) = counted(&segments);
        prop_assert_eq!(told, right);
    }
}
