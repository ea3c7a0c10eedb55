//! The simulator as a whole: the same bits for the same seed, the same traffic for
//! every discipline, nothing made or lost unseen, and links as fast as they claim
//! to be.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use tidegate_core::{Bytes, FlowKey, Span, Time, registry};
use tidegate_sim::metrics::{FlowRecord, PacketEvent, PacketRecord, Recorder, RunSummary};
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::scenario::{Arrivals, Capacity, DisciplineChoice, Scenario, TrafficKind};
use tidegate_sim::simulation;
use tidegate_sim::trace::DeliveryTrace;

/// Keeps the rows of flows.
#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl Recorder for Flows {
    fn flow(&mut self, row: &FlowRecord) {
        self.0.push(row.clone());
    }
}

fn scenario(text: &str) -> Scenario {
    file::parse("test.toml", text, &Folder(".".into())).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, discipline: &str, seed: u64) -> (Vec<FlowRecord>, RunSummary) {
    let choice =
        DisciplineChoice::with_defaults(registry::find(discipline).expect("it is registered"));
    let mut flows = Flows::default();
    let never = AtomicBool::new(false);
    let summary = simulation::run(scenario, &choice, seed, &mut flows, &never);
    (flows.0, summary)
}

const BUSY: &str = r#"
    title = "busy"
    duration = "20 s"
    seeds = [1]
    disciplines = ["fifo"]
    dumbbell = { pairs = 3, rate = "4 Mbit/s", delay = "3 ms", buffer = "60 packets" }
    [[traffic.transfers]]
    name = "files"
    from = "senders"
    to = "receivers"
    load = "4 Mbit/s"
    sizes.lognormal = { log_mean = 9.4, log_deviation = 1.5 }
    [[traffic.cbr]]
    name = "call"
    from = "sender1"
    to = "receiver2"
    rate = "100 kbit/s"
    packet = "200 B"
"#;

#[test]
fn a_seed_gives_the_same_run_again_and_another_seed_another() {
    let scenario = scenario(BUSY);
    for entry in registry::DISCIPLINES {
        let (flows, summary) = run(&scenario, entry.name, 7);
        let (again, summary_again) = run(&scenario, entry.name, 7);
        assert_eq!(flows, again, "{}", entry.name);
        assert_eq!(summary.events, summary_again.events);
        assert_ne!(flows, run(&scenario, entry.name, 8).0, "{}", entry.name);
    }
}

#[test]
fn every_discipline_gets_the_same_arrivals() {
    let scenario = scenario(BUSY);
    let arrivals = |discipline| {
        let (mut flows, _) = run(&scenario, discipline, 3);
        flows.sort_by_key(|row| (row.traffic, row.number));
        flows.iter().map(|row| (row.number, row.size, row.start)).collect::<Vec<_>>()
    };
    let fifo = arrivals("fifo");
    assert!(fifo.len() > 50);
    for entry in registry::DISCIPLINES {
        assert_eq!(arrivals(entry.name), fifo, "{}", entry.name);
    }
}

#[test]
fn one_flow_fills_a_link_that_buffers_its_bandwidth_delay_product() {
    let text = r#"
        title = "one flow"
        duration = "60 s"
        warm_up = "10 s"
        seeds = [1]
        disciplines = ["fifo"]
        dumbbell = { pairs = 1, rate = "10 Mbit/s", delay = "10 ms", buffer = "55 packets" }
        [tcp]
        profile = "papers"
        receive_window = "1 MB"
        [[traffic.transfers]]
        name = "long"
        from = "senders"
        to = "receivers"
        count = 1
        sizes = "endless"
        [[traffic.transfers]]
        name = "none"
        from = "senders"
        to = "receivers"
        count = 1
        start = "59 s"
        sizes = "1 kB"
    "#;
    // 60 ms at 10 Mbit/s are 50 packets. The window halves now and then, and
    // with a full buffer behind it the link stays busy.
    let (_, summary) = run(&scenario(text), "fifo", 1);
    let link = summary.links.iter().flatten().next().unwrap();
    assert!(link.utilisation > 0.98, "{}", link.utilisation);
    assert!(
        link.counters.lost_as(tidegate_core::LossReason::Refused) > 0,
        "the window never reached the limit"
    );
}

/// Transfers from a log over a link of 2 Mbit/s.
fn logged(head: &str, log: Vec<(Time, Bytes)>) -> Scenario {
    let text = format!(
        r#"
        title = "log"
        disciplines = ["fifo"]
        dumbbell = {{ pairs = 1, rate = "2 Mbit/s", delay = "1 ms", buffer = "20 packets" }}
        {head}
        [[traffic.transfers]]
        name = "one"
        from = "senders"
        to = "receivers"
        count = 1
        sizes = "1460 B"
        "#
    );
    let mut scenario = scenario(&text);
    assert_eq!(scenario.part(), None, "what the file itself says is no recording");
    let TrafficKind::Transfers { arrivals, .. } = &mut scenario.traffic[0].kind else {
        unreachable!("it is written so")
    };
    *arrivals = Arrivals::Log(Arc::new(log));
    scenario
}

#[test]
fn a_transfer_of_no_bytes_ends_with_its_handshakes() {
    for profile in ["papers", "today"] {
        let head = format!("duration = \"2 s\"\ntcp.profile = \"{profile}\"");
        let log = vec![(Time(0), Bytes(0)), (Time(500_000_000), Bytes(1_460))];
        let (flows, _) = run(&logged(&head, log), "fifo", 1);
        assert_eq!(flows.len(), 2, "{profile}");
        assert!(flows.iter().all(|it| it.end.is_some()), "{profile}: {flows:?}");
        assert!(flows[0].response < flows[1].response, "{profile}: {flows:?}");
    }
}

#[test]
fn the_parts_of_a_recording_are_the_whole_and_other_scenarios_have_none() {
    let of_seeds = |seeds: u64| {
        let head = format!("duration = \"40 s\"\nwarm_up = \"10 s\"\nseeds = {seeds}");
        let entry = |number: u64| (Time(number * 100_000_000), Bytes(20_000 + number * 10));
        logged(&head, (0..390).map(entry).collect())
    };
    assert_eq!(of_seeds(3).part(), None, "seeds are better than parts");
    let scenario = of_seeds(1);
    assert_eq!(scenario.part(), Some(Span::seconds(3)));
    let (_, run) = run(&scenario, "fifo", 1);
    assert!(run.parts.iter().map(|it| it.seed).eq(1..=10));
    let completed: Vec<u64> = run.parts.iter().map(|it| it.all.completed).collect();
    assert_eq!(completed.iter().sum::<u64>(), run.all.completed);
    assert!(completed[..9].iter().all(|count| *count == 30), "{completed:?}");
    let total = |it: &RunSummary| it.all.response.mean().unwrap() * it.all.completed as f64;
    assert!((total(&run) - run.parts.iter().map(total).sum::<f64>()).abs() < 1e-9);
}

#[test]
fn a_lone_transfer_takes_what_arithmetic_says() {
    // One segment each way over three links: SYN, SYN-ACK, then the data with
    // its last bit. 40 and 1 500 bytes at 100, 10 and 100 Mbit/s, 1 ms each.
    let text = r#"
        title = "one segment"
        duration = "1 s"
        seeds = [1]
        disciplines = ["fifo"]
        dumbbell = { pairs = 1, rate = "10 Mbit/s", edge_rate = "100 Mbit/s", delay = "1 ms" }
        [tcp]
        profile = "papers"
        [[traffic.transfers]]
        name = "one"
        from = "senders"
        to = "receivers"
        count = 1
        sizes = "1460 B"
    "#;
    let small = 3_200 + 32_000 + 3_200;
    let full = 120_000 + 1_200_000 + 120_000;
    // The ACK of the handshake leaves just before the data and is in its way at
    // the bottleneck only: it has left each link before the data arrives there.
    let ack = 3_200;
    let expected = 3 * 3_000_000 + 2 * small + ack + full;
    let (flows, _) = run(&scenario(text), "fifo", 1);
    assert_eq!(flows[0].response, Some(Span(expected)));
    assert_eq!(flows[0].unloaded.map(|span| span > Span(expected)), Some(false));
    assert!(flows[0].end.is_some());
}

#[test]
fn folding_links_changes_nothing() {
    // Rates without a common divisor, so that no two packets tie.
    let text = r#"
        title = "fold"
        duration = "30 s"
        seeds = [1]
        disciplines = ["fifo"]
        [tcp]
        profile = "papers"
        [[link]]
        from = ["a", "b"]
        to = "left"
        rate = "98765431 bit/s"
        delay = "1.234567 ms"
        [[link]]
        from = "left"
        to = "right"
        rate = "3141592 bit/s"
        delay = "2.718281 ms"
        queue = "tested"
        buffer = "40 packets"
        [[link]]
        from = "right"
        to = "c"
        rate = "87654323 bit/s"
        delay = "1.618033 ms"
        [[link]]
        from = "spare"
        to = "right"
        delay = "1 ms"
        [[traffic.transfers]]
        name = "files"
        from = ["a", "b"]
        to = "c"
        load = "2.9 Mbit/s"
        sizes.exponential = "20 kB"
    "#;
    // A source that never starts still makes the last link one with two
    // feeders, which is then not folded into the one before.
    let unfolded = r#"
        [[traffic.cbr]]
        name = "silent"
        from = "spare"
        to = "c"
        start = "29.9999 s"
        stop = "29.99991 s"
        rate = "1 kbit/s"
        packet = "100 B"
    "#;
    let (folded, fast) = run(&scenario(text), "fifo", 5);
    let (flows, slow) = run(&scenario(&format!("{text}{unfolded}")), "fifo", 5);
    let of_files = |rows: Vec<FlowRecord>| -> Vec<FlowRecord> {
        rows.into_iter().filter(|row| row.traffic == 0).collect()
    };
    assert!(slow.events > fast.events, "nothing was folded");
    assert_eq!(of_files(folded), of_files(flows));
}

#[test]
fn a_trace_link_delivers_at_its_opportunities() {
    let text = r#"
        title = "trace"
        duration = "10 s"
        seeds = [1]
        disciplines = ["fifo"]
        [[link]]
        from = "a"
        to = "b"
        rate = "1 Mbit/s"
        queue = "tested"
        [[traffic.cbr]]
        name = "flood"
        from = "a"
        to = "b"
        rate = "20 Mbit/s"
        packet = "1504 B"
    "#;
    let mut scenario = scenario(text);
    let trace = DeliveryTrace::parse("trace", b"5\n10\n10\n20\n").unwrap();
    scenario.links[0].capacity = Capacity::Trace(trace.into());
    let (_, summary) = run(&scenario, "fifo", 1);
    let link = summary.links[0].as_ref().unwrap();
    // Four opportunities every 20 ms for 10 s, each of them one datagram.
    assert_eq!(link.counters.delivered, 2_000);
    assert!((link.utilisation - 1.0).abs() < 1e-9);
}

#[test]
fn flows_that_start_in_the_warm_up_are_not_reported() {
    let text = BUSY.replace("seeds = [1]", "seeds = [1]\nwarm_up = \"8 s\"");
    let (all, _) = run(&scenario(BUSY), "fifo", 1);
    let (rest, summary) = run(&scenario(&text), "fifo", 1);
    let late = all.iter().filter(|row| row.start >= Time(8_000_000_000)).count();
    // And the call, which has no end: it counts from then on.
    assert_eq!(rest.len(), late + 1);
    let started: u64 = summary.traffic.iter().map(|source| source.started).sum();
    assert_eq!(started, rest.len() as u64);
}

#[test]
fn what_has_no_end_counts_from_the_end_of_the_warm_up() {
    let text = r#"
        title = "endless"
        duration = "20 s"
        warm_up = "10 s"
        seeds = [1]
        disciplines = ["efd"]
        dumbbell = { pairs = 2, rate = "8 Mbit/s", buffer = "100 packets" }
        [[traffic.transfers]]
        name = "backup"
        from = "sender1"
        to = "receiver1"
        count = 1
        sizes = "endless"
        [[traffic.cbr]]
        name = "call"
        from = "sender2"
        to = "receiver2"
        rate = "80 kbit/s"
        packet = "200 B"
    "#;
    let (flows, summary) = run(&scenario(text), "efd", 1);
    assert_eq!(flows.len(), 2);
    // Ten seconds at 8 Mbit/s less the headers and the call; 500 datagrams.
    let [backup, call] = &summary.traffic[..] else { panic!("two sources") };
    assert!((9_000_000..9_800_000).contains(&backup.delivered.0), "{}", backup.delivered);
    assert!((99_000..=100_200).contains(&call.delivered.0), "{}", call.delivered);
    assert_eq!((backup.long_goodputs.len(), call.long_goodputs.len()), (1, 0));
    assert!((9.0e6 * 0.8..8.0e6).contains(&backup.long_goodputs[0]));
}

#[test]
fn a_stopped_run_says_how_far_it_came() {
    let scenario = scenario(&BUSY.replace("20 s", "1000 s"));
    let choice = DisciplineChoice::with_defaults(registry::find("fifo").unwrap());
    let mut flows = Flows::default();
    let summary = simulation::run(&scenario, &choice, 1, &mut flows, &AtomicBool::new(true));
    assert!(summary.reached > Time::ZERO && summary.reached < Time(scenario.duration.0));
    assert!(!flows.0.is_empty());
}

/// The results of the busy scenario, as one number. A change means that results
/// change for everybody: it needs a reason in the commit, and a line in the
/// change log.
#[test]
fn results_are_the_same_on_every_machine() {
    let golden = [
        ("fifo", 0x93e3_036c_a255_f0b0_u64),
        ("las", 0x3b39_66da_34b5_a962),
        ("efd", 0x8547_897c_db01_95e2),
    ];
    for (discipline, expected) in golden {
        let (flows, _) = run(&scenario(BUSY), discipline, 1);
        let hash = fnv1a(format!("{flows:?}").as_bytes());
        assert_eq!(hash, expected, "{discipline}: {hash:#x}");
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is sent over whatever is accounted for: the run itself checks
    /// that each queue and the network as a whole lose nothing unseen.
    #[test]
    fn every_packet_is_accounted_for(
        seed in 0_u64..1_000,
        discipline in prop::sample::select(registry::DISCIPLINES.iter().map(|e| e.name).collect::<Vec<_>>()),
        kilobits in 50_u64..20_000,
        delay_micros in 0_u64..100_000,
        buffer in prop_oneof!["[1-9] packets", "[1-9][0-9] packets", "[2-9][0-9] kB"],
        profile in prop_oneof![Just("papers"), Just("today")],
        per_second in 1_u64..30,
        size in 1_u64..100_000,
    ) {
        let text = format!(
            r#"
            title = "any"
            duration = "3 s"
            seeds = [1]
            disciplines = ["fifo"]
            dumbbell = {{ pairs = 2, rate = "{kilobits} kbit/s", delay = "{delay_micros} us", buffer = "{buffer}" }}
            [tcp]
            profile = "{profile}"
            [[traffic.transfers]]
            name = "files"
            from = "senders"
            to = "receivers"
            per_second = {per_second}
            sizes.exponential = "{size} B"
            [[traffic.transfers]]
            name = "downloads"
            from = "receivers"
            to = "senders"
            request = "300 B"
            count = 2
            sizes = "endless"
            "#
        );
        let (flows, summary) = run(&scenario(&text), discipline, seed);
        for row in &flows {
            prop_assert!(row.size.is_none_or(|size| row.delivered <= size));
            prop_assert!(row.end.is_none() || row.size == Some(row.delivered));
            prop_assert!(row.response.is_none() || row.delivered > Bytes::ZERO);
        }
        for link in summary.links.iter().flatten() {
            prop_assert!(link.utilisation <= 1.01, "{}", link.utilisation);
        }
    }
}

/// Keeps what happens to packets at queues.
#[derive(Default)]
struct Packets(Vec<PacketRecord>);

impl Recorder for Packets {
    fn takes_packets(&self) -> bool {
        true
    }
    fn packet(&mut self, row: &PacketRecord) {
        self.0.push(*row);
    }
}

fn packets(scenario: &Scenario, discipline: &str) -> (Vec<PacketRecord>, RunSummary) {
    let choice =
        DisciplineChoice::with_defaults(registry::find(discipline).expect("it is registered"));
    let mut packets = Packets::default();
    let summary = simulation::run(scenario, &choice, 1, &mut packets, &AtomicBool::new(false));
    (packets.0, summary)
}

#[test]
fn every_packet_at_a_queue_is_told_of_and_carries_its_class() {
    let classed = BUSY.replace("packet = \"200 B\"", "packet = \"200 B\"\nclass = 3");
    let (rows, summary) = packets(&scenario(&classed), "las");
    let counters = summary.links.iter().flatten().next().expect("one link is tested").counters;
    let count = |event: fn(&PacketEvent) -> bool| {
        rows.iter().filter(|row| event(&row.event)).count() as u64
    };
    assert_eq!(count(|event| *event == PacketEvent::Arrived), counters.offered);
    assert_eq!(count(|event| *event == PacketEvent::Sent), counters.delivered);
    assert_eq!(count(|event| matches!(event, PacketEvent::Lost(_))), counters.lost());
    assert!(counters.lost() > 0);
    let of_calls = |row: &&PacketRecord| row.packet.flow.protocol() == FlowKey::UDP;
    assert!(rows.iter().filter(of_calls).all(|row| row.packet.class == 3));
    assert!(rows.iter().filter(|row| !of_calls(row)).all(|row| row.packet.class == 0));
}

#[test]
fn a_link_loses_its_share_and_the_same_packets_under_every_discipline() {
    const SHARE: f64 = 0.03;
    let lossy = scenario(&format!(
        r#"
        title = "lossy"
        duration = "200 s"
        disciplines = ["fifo"]
        [[link]]
        from = "a"
        to = "b"
        rate = "10 Mbit/s"
        queue = "tested"
        [[link]]
        from = "b"
        to = "c"
        delay = "5 ms"
        loss = {SHARE}
        back.loss = 0.0
        [[traffic.cbr]]
        name = "one"
        from = "a"
        to = "c"
        rate = "3 Mbit/s"
        packet = "700 B"
        [[traffic.cbr]]
        name = "other"
        from = "a"
        to = "c"
        rate = "4 Mbit/s"
        packet = "1200 B"
        "#
    ));
    let losses = |discipline| {
        let traffic = run(&lossy, discipline, 1).1.traffic;
        traffic.iter().map(|source| (source.datagrams, source.datagrams_lost)).collect::<Vec<_>>()
    };
    let lost = losses("fifo");
    for (sent, lost) in &lost {
        let (sent, lost) = (*sent as f64, *lost as f64);
        // Five standard deviations.
        let error = 5.0 * (SHARE * (1.0 - SHARE) / sent).sqrt();
        assert!((lost / sent - SHARE).abs() < error, "{lost} of {sent}");
    }
    assert_eq!(lost, losses("las"));
    assert_eq!(lost, losses("scfq"));
}
