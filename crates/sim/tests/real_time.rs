//! Sources with deadlines: what is sent, what is late, and what a discipline cannot
//! change.

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use tidegate_core::{Bytes, Span, registry};
use tidegate_sim::metrics::{FlowRecord, PacketEvent, PacketRecord, Recorder, RunSummary};
use tidegate_sim::scenario::file::{self, DataFiles};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};
use tidegate_sim::simulation;

/// Every file that a scenario names holds this.
struct OneFile(String);

impl DataFiles for OneFile {
    fn open(&self, _name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.as_bytes()))
    }
}

/// Keeps the rows of flows, and of packets that come to a queue.
#[derive(Default)]
struct Rows {
    flows: Vec<FlowRecord>,
    arrived: Vec<PacketRecord>,
}

impl Recorder for Rows {
    fn flow(&mut self, row: &FlowRecord) {
        self.flows.push(row.clone());
    }
    fn takes_packets(&self) -> bool {
        true
    }
    fn packet(&mut self, row: &PacketRecord) {
        if row.event == PacketEvent::Arrived {
            self.arrived.push(*row);
        }
    }
}

fn scenario(text: &str, data: &str) -> Scenario {
    file::parse("test.toml", text, &OneFile(data.into())).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, discipline: &str, seed: u64) -> (Rows, RunSummary) {
    let entry = registry::find(discipline).expect("it is registered");
    let choice = DisciplineChoice::with_defaults(entry);
    let mut rows = Rows::default();
    let never = AtomicBool::new(false);
    let summary = simulation::run(scenario, &choice, seed, &mut rows, &never);
    (rows, summary)
}

/// A link on which 125 bytes take a millisecond, and another to get there.
fn link(duration: &str, buffer: &str) -> String {
    format!(
        "title = \"t\"\nduration = \"{duration}\"\nseeds = [1]\ndisciplines = [\"fifo\"]\n\
         [[link]]\nfrom = \"left\"\nto = \"right\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
         queue = \"tested\"\nbuffer = \"{buffer}\"\n"
    )
}

/// Ten packets of 125 bytes at each of these times. The n-th of them takes
/// n + 1 ms, so that the fourth is the last to be there in 5 ms.
fn tens(buffer: &str, at_s: &[&str]) -> Scenario {
    let text = link("10 s", buffer)
        + "[[traffic.frames]]\nname = \"tens\"\nfrom = \"left\"\nto = \"right\"\n\
           file = \"frames\"\ndeadline = \"5 ms\"\n";
    let rows: String = at_s.iter().map(|at| format!("{at},125\n").repeat(10)).collect();
    scenario(&text, &format!("start_s,size_bytes\n{rows}"))
}

#[test]
fn late_is_what_comes_after_the_deadline_or_never() {
    for (buffer, late, lost) in [("300 packets", 6, 0), ("4 packets", 6, 5), ("2 packets", 7, 7)] {
        let scenario = tens(buffer, &["0"]);
        let (rows, summary) = run(&scenario, "fifo", 1);
        let source = &summary.traffic[0];
        assert_eq!((source.due, source.late, source.datagrams_lost), (10, late, lost), "{buffer}");
        assert_eq!(source.late_ratio(), Some(late as f64 / 10.0));
        assert_eq!(source.delay.largest(), Some((11 - lost) as f64 / 1e3), "{buffer}");
        assert_eq!(rows.flows[0].late, Some(late as u32));
        assert_eq!(rows.flows[0].delivered, Bytes(125 * (10 - lost)));
    }
}

#[test]
fn what_is_due_after_the_end_is_not_counted_and_what_is_due_then_is() {
    let counts = |at_s: &[&str]| {
        let (_, summary) = run(&tens("300 packets", at_s), "fifo", 1);
        let source = &summary.traffic[0];
        (source.datagrams, source.due, source.late)
    };
    // The first ten at 1 s, and ten more as long after them as this.
    assert_eq!(counts(&["0", "9.995"]), (20, 20, 12));
    assert_eq!(counts(&["0", "9.996"]), (20, 10, 6));
}

#[test]
fn the_warm_up_is_not_counted() {
    let mut scenario = tens("300 packets", &["0", "2", "4"]);
    scenario.warm_up = Span::seconds(1);
    let (rows, summary) = run(&scenario, "fifo", 1);
    assert_eq!((summary.traffic[0].due, summary.traffic[0].late), (20, 12));
    // A stream counts from the end of the warm-up on.
    assert_eq!((rows.flows[0].late, rows.flows[0].delivered), (Some(12), Bytes(2_500)));
}

#[test]
fn nobody_is_late_without_a_deadline() {
    let mut scenario = tens("4 packets", &["0"]);
    scenario.traffic[0].deadline = None;
    let (rows, summary) = run(&scenario, "fifo", 1);
    assert_eq!((summary.traffic[0].due, summary.traffic[0].late), (0, 0));
    assert_eq!((rows.flows[0].late, rows.flows[0].lost), (None, 5));
}

#[test]
fn of_a_run_that_was_cut_short_only_what_is_known_counts() {
    let text = link("1000 s", "300 packets").replace("\"1 ms\"", "\"105 ms\"")
        + "[[traffic.cbr]]\nname = \"call\"\nfrom = \"left\"\nto = \"right\"\n\
           rate = \"100 kbit/s\"\npacket = \"125 B\"\ndeadline = \"1 s\"\n";
    let scenario = scenario(&text, "");
    let choice = DisciplineChoice::with_defaults(registry::find("fifo").expect("it is registered"));
    let stop = AtomicBool::new(true);
    let summary = simulation::run(&scenario, &choice, 1, &mut Rows::default(), &stop);
    assert!(summary.reached.as_seconds() < 999.0, "it was to be cut short");
    let source = &summary.traffic[0];
    // One is sent every 10 ms and takes 106 ms.
    let on_the_way = source.datagrams - source.due;
    assert!((10..=11).contains(&on_the_way), "{on_the_way}");
    assert_eq!((source.due, source.late), (source.delay.count(), 0));
}

const MIXED: &str = r#"
    title = "mixed"
    duration = "20 s"
    seeds = [1]
    disciplines = ["fifo"]
    dumbbell = { pairs = 3, rate = "3 Mbit/s", delay = "3 ms", buffer = "60 packets" }
    [[traffic.transfers]]
    name = "files"
    from = "senders"
    to = "receivers"
    load = "2 Mbit/s"
    sizes.lognormal = { log_mean = 9.4, log_deviation = 1.5 }
    [[traffic.frames]]
    name = "video"
    from = "sender1"
    to = "receiver2"
    file = "frames"
    packet = "500 B"
    rate = "2 Mbit/s"
    repeat = true
    deadline = "30 ms"
    [[traffic.greedy]]
    name = "bursts"
    from = "sender2"
    to = "receiver1"
    curve = "1536 B + 2 Mbit/s, 15 kB + 800 kbit/s"
    packet.normal = { mean = "1700 B", deviation = "200 B" }
    burst.uniform = { least = "50 ms", most = "100 ms" }
    spacing.normal = { mean = "20 ms", deviation = "5 ms" }
    deadline = "30 ms"
"#;
const FRAMES: &str = "start_s,size_bytes\n0,5000\n0.04,900\n0.08,1200\n0.12,700\n";

#[test]
fn every_discipline_gets_the_same_datagrams_and_all_are_accounted_for() {
    let scenario = scenario(MIXED, FRAMES);
    let mut first = None;
    for entry in registry::DISCIPLINES {
        let (rows, summary) = run(&scenario, entry.name, 5);
        let streams = &summary.traffic[1..];
        for (source, stream) in streams.iter().enumerate() {
            let row = rows.flows.iter().find(|row| row.traffic == source + 1).expect("one flow");
            assert_eq!(row.late, Some(stream.late as u32), "{}", entry.name);
            assert!(stream.late <= stream.due && stream.due <= stream.datagrams);
            // A lost one is late, unless it would have been due after the end.
            let due_later = stream.datagrams - stream.due;
            assert!(stream.late + due_later >= stream.datagrams_lost, "{}", entry.name);
            // On the way at the end: a full buffer, and what is on the links.
            let known = stream.delay.count() + stream.datagrams_lost;
            assert!((0..75).contains(&(stream.datagrams - known)), "{}", entry.name);
        }
        // The links of the edges have no discipline, so that its queue shows
        // when each datagram was sent.
        let mut sent: Vec<_> = rows
            .arrived
            .iter()
            .filter(|row| row.packet.flow.protocol() == tidegate_core::FlowKey::UDP)
            .map(|row| (row.packet.flow, row.packet.size))
            .collect();
        sent.sort_by_key(|(flow, _)| *flow);
        let sent_of = (streams[0].datagrams, streams[1].datagrams, sent);
        assert!(sent_of.0 > 1_500 && sent_of.1 > 900, "{} {}", sent_of.0, sent_of.1);
        assert!(*first.get_or_insert_with(|| sent_of.clone()) == sent_of, "{}", entry.name);
    }
}

#[test]
fn a_seed_gives_the_same_bursts_again_and_another_seed_others() {
    let scenario = scenario(MIXED, FRAMES);
    let times = |seed| {
        let (rows, _) = run(&scenario, "fifo", seed);
        let greedy = rows.arrived.iter().filter(|row| row.packet.flow.source().port() == 16_386);
        greedy.map(|row| (row.at, row.packet.size)).collect::<Vec<_>>()
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}

/// A video of 2.5 Mbit/s with a promise on 10 Mbit/s. It pauses for 100 ms once and then
/// sends at once what it held back.
const PAUSE: &str = r#"
    title = "a pause"
    duration = "62 s"
    seeds = [1]
    dumbbell = { pairs = 5, rate = "10 Mbit/s", delay = "10 ms", buffer = "300 packets" }
    [[traffic.frames]]
    name = "video"
    from = "sender1"
    to = "receiver1"
    file = "frames"
    class = 1
    deadline = "80 ms"
"#;
const DOWNLOADS: &str = r#"
    [[traffic.transfers]]
    name = "downloads"
    from = ["sender2", "sender3", "sender4", "sender5"]
    to = ["receiver2", "receiver3", "receiver4", "receiver5"]
    count = 4
    sizes = "endless"
"#;
const PROMISE: &str = "link 10 Mbit/s; video = class 1: 4 kB + 2.5 Mbit/s within 40 ms";

/// How many of 15 000 packets are late or lost with FIFO and with excess demoted or
/// dropped.
fn late_after_a_pause(beside: &str) -> [u64; 3] {
    // A packet of 1250 B every 4 ms.
    let frames: String = (0..15_000)
        .map(|number| if (5_000..5_025).contains(&number) { 5_025 } else { number })
        .map(|due| format!("{}.{:03},1250\n", due * 4 / 1_000, due * 4 % 1_000))
        .collect();
    let choices = ["demote", "drop"].map(|excess| {
        let flows = format!("flows = \"{PROMISE}\"");
        format!("{{ name = \"deadlines\", label = \"{excess}\", {flows}, excess = \"{excess}\" }}")
    });
    let disciplines = format!("disciplines = [\"fifo\", {}]\n", choices.join(", "));
    let text = disciplines + PAUSE + beside;
    let pause = scenario(&text, &format!("start_s,size_bytes\n{frames}"));
    let never = AtomicBool::new(false);
    [0, 1, 2].map(|choice| {
        let discipline = &pause.disciplines[choice];
        let summary = simulation::run(&pause, discipline, 1, &mut Rows::default(), &never);
        assert_eq!(summary.traffic[0].due, 15_000);
        summary.traffic[0].late
    })
}

#[test]
fn a_video_that_pauses_and_catches_up_is_late_by_what_exceeds_its_burst_at_most() {
    // Of 26 packets at once the curve allows three.
    let [fifo, demote, drop] = late_after_a_pause(DOWNLOADS);
    assert!(fifo > 10_000, "the downloads fill the link: {fifo}");
    // Two of the excess are sent before a packet that came later has to be.
    assert_eq!((demote, drop), (21, 23));
    // Alone on the link, all are.
    assert_eq!(late_after_a_pause(""), [0, 0, 23]);
}
