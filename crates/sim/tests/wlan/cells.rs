//! Traffic through an 802.11 cell of a scenario file: what stations and the access
//! point get of the medium, and what TCP makes of it.
//!
//! At 65 Mbit/s of 802.11n, the longest aggregate has 28 packets of 1 500 bytes: 43
//! 230 bytes are 1 331 symbols, 5 360 us with the preamble, and another packet
//! would make it longer than 5 484 us. With SIFS, the block acknowledgement (32 us)
//! and AIFS (43 us), that is 5 451 us.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::AtomicBool;

use tidegate_core::{Bytes, registry};
use tidegate_sim::metrics::{Discard, FlowRecord, Recorder, RunSummary};
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};
use tidegate_sim::simulation;

/// A cell with these lines under `[wifi]`.
fn cell(wifi: &str, traffic: &str) -> Scenario {
    let text = format!(
        "title = \"cell\"\nduration = \"20 s\"\nseeds = [1]\n\
         disciplines = [\"fifo\"]\n[wifi]\n{wifi}\n[tcp]\nprofile = \"papers\"\n{traffic}"
    );
    file::parse("cell.toml", &text, &Folder(".".into())).unwrap_or_else(|error| panic!("{error}"))
}

fn run_with(scenario: &Scenario, discipline: &str, seed: u64) -> RunSummary {
    let choice =
        DisciplineChoice::with_defaults(registry::find(discipline).expect("it is registered"));
    simulation::run(scenario, &choice, seed, &mut Discard, &AtomicBool::new(false))
}

fn run(scenario: &Scenario) -> RunSummary {
    run_with(scenario, "fifo", 1)
}

/// A source of transfers without an end.
fn transfers(name: &str, from: &str, to: &str, count: u32) -> String {
    format!(
        "[[traffic.transfers]]\nname = \"{name}\"\nfrom = {from}\nto = {to}\n\
         count = {count}\nsizes = \"endless\"\n"
    )
}

/// A source of datagrams of 1 500 bytes.
fn datagrams(from: &str, to: &str, mbits: u32) -> String {
    format!(
        "[[traffic.cbr]]\nname = \"{from}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
         rate = \"{mbits} Mbit/s\"\npacket = \"1500 B\"\n"
    )
}

/// What reached the receivers of a source, in Mbit/s over the 20 s.
fn goodput(run: &RunSummary, traffic: usize) -> f64 {
    run.traffic[traffic].delivered.0 as f64 * 8.0 / 20.0 / 1e6
}

#[test]
fn one_sender_of_datagrams_fills_the_medium_to_the_last_slot() {
    // A frame of 1 500 bytes takes 248 us, SIFS and the acknowledgement 44, DIFS
    // 34, and the mean back-off 7.5 slots of 9 us: 393.5 us.
    let run = run(&cell("stations = 1", &datagrams("host1", "station1", 40)));
    let expected = 1_500.0 * 8.0 / 393.5;
    let measured = goodput(&run, 0);
    // Ten standard errors of the mean of 50 800 uniform draws from 0 to 15.
    let error = 10.0 * 4.61 * 9.0 / 50_800_f64.sqrt() / 393.5;
    assert!((measured / expected - 1.0).abs() < error, "{measured} against {expected}");
}

#[test]
fn a_slow_station_slows_down_the_others() {
    // Every station gets the medium about equally often, so each sends as many
    // packets as the slowest one, whatever its rate. The fast one is a little
    // ahead: when they collide, it has long known when the slow one notices, and
    // counts down from DIFS, the slow one from 79 us.
    let traffic = datagrams("station1", "host1", 40) + &datagrams("station2", "host2", 40);
    let shares = |rates: &str| {
        let run = run(&cell(&format!("stations = 2\nrates = {rates}"), &traffic));
        (goodput(&run, 0), goodput(&run, 1))
    };
    let (fast, slow) = shares("[\"54 Mbit/s\", \"6 Mbit/s\"]");
    assert!((1.0..1.15).contains(&(fast / slow)), "{fast}, {slow}");
    // Both exchanges and one back-off: 248 + 44 + 2 072 + 60 + 2 * 34 us and some slots.
    assert!((4.3..4.9).contains(&fast), "{fast}");
    let (one, other) = shares("[\"54 Mbit/s\"]");
    assert!((one / other - 1.0).abs() < 0.05 && one > 14.0, "{one}, {other}");
}

#[test]
fn noise_costs_time_and_hardly_a_packet() {
    let traffic = datagrams("station1", "host1", 5) + &datagrams("host1", "station1", 5);
    let clean = run(&cell("stations = 1", &traffic));
    let noisy = run(&cell("stations = 1\nframe_error = 0.2", &traffic));
    let delay = |run: &RunSummary, source: usize| run.traffic[source].delay.mean().unwrap();
    for source in 0..2 {
        assert_eq!(clean.traffic[source].datagrams_lost, 0);
        // 8 300 packets of which 0.2^7, one in 78 000, fails seven times.
        assert!(noisy.traffic[source].datagrams_lost <= 1);
        assert!(delay(&noisy, source) > delay(&clean, source) + 0.000_05);
    }
    // 0.9^7 are 48%.
    let hopeless =
        run(&cell("stations = 1\nframe_error = 0.9", &datagrams("station1", "host1", 1)));
    let lost = hopeless.traffic[0].datagrams_lost as f64 / hopeless.traffic[0].datagrams as f64;
    assert!((lost - 0.478).abs() < 0.05, "{lost}");
}

#[test]
fn a_lone_transfer_gets_what_is_left_of_27_mbits_with_back_off() {
    // The 27.3 Mbit/s of WLAN section III are a segment and an acknowledgement by
    // turns and no back-off: 248 + 44 + 34 + 32 + 44 + 34 = 436 us are 26.8 Mbit/s.
    // Here one acknowledgement is for two segments: 762 us and 30.7 Mbit/s without
    // back-off; with the mean one of 67.5 us before each of the three frames 964.5
    // us and 24.2 Mbit/s. Station and access point count down at once, which takes
    // less, and they collide, which takes more.
    for (from, to) in [("station1", "host1"), ("host1", "station1")] {
        let traffic = transfers("transfer", &format!("\"{from}\""), &format!("\"{to}\""), 1);
        let measured = goodput(&run(&cell("stations = 1", &traffic)), 0);
        println!("{from}: {measured:.2} Mbit/s");
        assert!((24.2..26.8).contains(&measured), "{measured}");
    }
}

/// Mean shares of 5 uploads and 5 downloads in Mbit/s.
fn shares(buffer: u32, discipline: &str) -> (f64, f64) {
    let traffic = transfers("uploads", "\"stations\"", "\"hosts\"", 5)
        + &transfers(
            "downloads",
            "\"hosts\"",
            "[\"station6\", \"station7\", \"station8\", \"station9\", \"station10\"]",
            5,
        );
    let scenario = cell(&format!("stations = 10\nbuffer = \"{buffer} packets\""), &traffic);
    let run = run_with(&scenario, discipline, 1);
    (goodput(&run, 0), goodput(&run, 1))
}

#[test]
fn fifo_starves_downloads_when_the_buffer_is_small() {
    let (up, down) = shares(30, "fifo");
    assert!(up > 20.0 * down, "{up} up, {down} down");
    let (up, down) = shares(300, "fifo");
    assert!(up < 1.5 * down, "{up} up, {down} down");
}

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/ns3");

/// Mean shares in ns-3's runs with this buffer (`benches/ns3/wifi.md`).
fn shares_in_ns_3(buffer: u32) -> (f64, f64) {
    let text = std::fs::read_to_string(format!("{PEER}/results/wifi.jsonl")).unwrap();
    let runs: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |key: &str| {
        let cells = runs.iter().filter(|run| run["buffer"] == buffer && run["up"] == 5);
        let mbits: Vec<f64> = cells.map(|run| run[key].as_f64().unwrap()).collect();
        mbits.iter().sum::<f64>() / mbits.len() as f64
    };
    (of("up_mbits"), of("down_mbits"))
}

/// Ours for the same, with or without ns-3's rule for replies.
fn shares_as_in_ns_3(buffer: u32, immediate_replies: bool) -> (f64, f64) {
    let text = std::fs::read_to_string(format!("{PEER}/wifi.toml")).unwrap();
    let text = text
        .replace("30 packets", &format!("{buffer} packets"))
        .replace("replies = true", &format!("replies = {immediate_replies}"));
    let scenario = file::parse("wifi.toml", &text, &Folder(".".into())).unwrap();
    let runs: Vec<_> = (1..=5).map(|seed| run_with(&scenario, "fifo", seed)).collect();
    let of = |source: usize| {
        let bits = runs.iter().map(|run| run.traffic[source].delivered.0 as f64 * 8.0);
        bits.sum::<f64>() / runs.len() as f64 / scenario.duration.as_seconds() / 1e6
    };
    (of(0), of(1))
}

#[test]
fn a_cell_carries_what_it_does_in_ns_3() {
    for buffer in [30, 300] {
        let (peer, ours) = (shares_in_ns_3(buffer), shares_as_in_ns_3(buffer, true));
        println!("{buffer} packets: ns-3 {peer:?}, ours {ours:?}");
        let off = (ours.0 + ours.1) / (peer.0 + peer.1) - 1.0;
        assert!(off.abs() < 0.015, "{buffer}: {off}");
        // Seeds of ns-3 differ by 3% at 300 packets; at 30 next to nothing goes down.
        assert!((ours.0 / peer.0 - 1.0).abs() < 0.04, "{buffer}: {ours:?}, {peer:?}");
    }
    // Replies that have to back off cost what ns-3 does not pay.
    let (peer, standard) = (shares_in_ns_3(300), shares_as_in_ns_3(300, false));
    let off = (standard.0 + standard.1) / (peer.0 + peer.1) - 1.0;
    assert!((-0.06..-0.02).contains(&off), "{off}");
}

#[test]
fn every_discipline_can_serve_the_access_point() {
    for entry in registry::DISCIPLINES {
        let (up, down) = shares(30, entry.name);
        assert!((15.0..30.0).contains(&(up + down)), "{}: {up} up, {down} down", entry.name);
        let again = shares(30, entry.name);
        assert_eq!((up, down), again, "{}", entry.name);
    }
}

/// Lines for 802.11n at 65 Mbit/s.
const AGGREGATED: &str = "standard = \"802.11n\"\n";

#[test]
fn one_sender_of_datagrams_fills_aggregates_to_the_last_frame() {
    for (from, to) in [("host1", "station1"), ("station1", "host1")] {
        let wifi = format!("{AGGREGATED}stations = 1");
        let measured = goodput(&run(&cell(&wifi, &datagrams(from, to, 70))), 0);
        let expected = 28.0 * 1_500.0 * 8.0 / (5_451.0 + 7.5 * 9.0);
        // Ten standard errors of the mean of 3 600 draws from 0 to 15.
        let error = 10.0 * 4.61 * 9.0 / 3_600_f64.sqrt() / 5_518.5;
        assert!((measured / expected - 1.0).abs() < error, "{from}: {measured}, {expected}");
    }
}

#[test]
fn noise_takes_its_share_of_frames_and_tcp_sees_neither_loss_nor_disorder() {
    // A frame in four is sent again; of the 28 of an aggregate 21 are received. The
    // window of 64 frames is no limit: one that fails three times in a row holds up
    // less than three aggregates.
    let wifi = format!("{AGGREGATED}stations = 1\nframe_error = 0.25");
    let flood = run(&cell(&wifi, &datagrams("host1", "station1", 70)));
    let expected = 21.0 * 1_500.0 * 8.0 / (5_451.0 + 7.5 * 9.0);
    let measured = goodput(&flood, 0);
    assert!((measured / expected - 1.0).abs() < 0.02, "{measured}, {expected}");
    // One frame in 10 million fails seven times. Were packets handed on out of
    // order, every third duplicate acknowledgement would have one sent again.
    let wifi = format!("{AGGREGATED}stations = 1\nframe_error = 0.1");
    let traffic = transfers("download", "\"host1\"", "\"station1\"", 1);
    let mut flows = Flows::default();
    let fifo = DisciplineChoice::with_defaults(registry::find("fifo").unwrap());
    simulation::run(&cell(&wifi, &traffic), &fifo, 1, &mut flows, &AtomicBool::new(false));
    let [flow] = &flows.0[..] else { panic!("one transfer") };
    assert!(flow.delivered > Bytes(80_000_000), "{flow:?}");
    assert_eq!((flow.lost, flow.retransmissions), (0, 0));
}

/// Keeps the rows of flows.
#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl Recorder for Flows {
    fn flow(&mut self, row: &FlowRecord) {
        self.0.push(row.clone());
    }
}

#[test]
fn a_lone_transfer_gets_what_acknowledgements_leave_of_aggregates() {
    // 28 segments, and their 14 acknowledgements in one aggregate: 14 times 84
    // bytes less 2 are 1 174, 37 symbols, 184 us with the preamble, 275 with what
    // follows. Back-off takes 67.5 us before each, if neither runs down while the
    // other's does and nothing collides: the most. If both contended all the time,
    // each would send in a slot with probability 0.105 by Bianchi's model: 4.26 idle
    // slots and 0.0587 collisions for each success, a collision as long as the
    // longer aggregate and EIFS, 5 463 us: about the least, since the station may
    // also send acknowledgements for half an aggregate.
    let window = "receive_window = \"300 kB\"\n";
    for (from, to) in [("host1", "station1"), ("station1", "host1")] {
        let ends = (format!("\"{from}\""), format!("\"{to}\""));
        let traffic = window.to_owned() + &transfers("transfer", &ends.0, &ends.1, 1);
        let measured = goodput(&run(&cell(&format!("{AGGREGATED}stations = 1"), &traffic)), 0);
        let of = |each: f64| 28.0 * 1_460.0 * 8.0 / (5_451.0 + 275.0 + 2.0 * each);
        let (least, most) = (0.98 * of(4.26 * 9.0 + 0.0587 * 5_463.0), of(67.5));
        println!("{from}: {measured:.2} Mbit/s of {least:.2} to {most:.2}");
        assert!((least..most).contains(&measured), "{from}: {measured}");
    }
}

/// The rates of four stations, in Mbit/s, to which datagrams flow without end; the
/// last has a tenth of the others' rate.
fn one_slow_station(wifi: &str) -> Vec<f64> {
    let ends = (1..=4).map(|number| (format!("host{number}"), format!("station{number}")));
    let traffic: String = ends.map(|(host, station)| datagrams(&host, &station, 70)).collect();
    let scenario = cell(&format!("{wifi}stations = 4\nbuffer = \"100 packets\""), &traffic);
    // Takes in packets of all alike, where FIFO lets those in that come in time.
    let run = run_with(&scenario, "sfq", 1);
    (0..4).map(|source| goodput(&run, source)).collect()
}

#[test]
fn turns_by_airtime_end_the_anomaly() {
    let slow = "rates = [\"MCS 7\", \"MCS 7\", \"MCS 7\", \"MCS 0\"]\n";
    let shared = one_slow_station(&format!("{AGGREGATED}{slow}"));
    let fair = one_slow_station(&format!("{AGGREGATED}{slow}airtime_fairness = true\n"));
    println!("{shared:.2?}, {fair:.2?}");
    // One queue gives all the same number of packets. The slow station's are sent two
    // by two, and what waits for it fills what is taken ahead, so that those of the
    // others are soon as short: 578.5 us each, the slow one's 3 840 + 84 + 43 + 67.5.
    let all = 2.0 * 1_500.0 * 8.0 / (3.0 * 578.5 + 4_034.5);
    assert!(shared.iter().all(|rate| (rate / all - 1.0).abs() < 0.05), "{shared:?}, {all}");
    // By airtime the fast ones get a quarter of the time each, without back-off and
    // AIFS, which nobody is charged for: 5 408 of 28 frames, 3 924 of two.
    let turn = 1.0 / (3.0 * 5_518.5 / 5_408.0 + 4_034.5 / 3_924.0);
    let of_fast = 28.0 * 1_500.0 * 8.0 / 5_408.0 * turn;
    let of_slow = 2.0 * 1_500.0 * 8.0 / 3_924.0 * turn;
    for (station, rate) in fair.iter().enumerate() {
        let expected = if station == 3 { of_slow } else { of_fast };
        assert!((rate / expected - 1.0).abs() < 0.03, "{station}: {fair:?}, {expected}");
    }
}

#[test]
fn airtime_is_what_a_link_uses_of_the_medium() {
    // 393.5 us for each packet, of which 292 are the exchange itself.
    let run = run(&cell("stations = 1", &datagrams("host1", "station1", 40)));
    let used = |index: usize| run.links[index].as_ref().unwrap().utilisation;
    assert!((used(0) / (292.0 / 393.5) - 1.0).abs() < 0.005, "{}", used(0));
    assert_eq!(used(1), 0.0);
    // Nobody waits to send but for back-off.
    let medium = |index: usize| run.links[index].as_ref().unwrap().medium_use.unwrap();
    assert!((0.999..=1.001).contains(&medium(0)), "{}", medium(0));
    assert_eq!(medium(0), medium(1));
}

/// An exchange of 292 us every 12 ms, which begins at once, since the medium has been idle
/// for long.
#[test]
fn a_medium_that_nobody_wants_is_idle() {
    let run = run(&cell("stations = 1", &datagrams("host1", "station1", 1)));
    let medium = run.links[0].as_ref().unwrap().medium_use.unwrap();
    assert!((medium / (0.292 / 12.0) - 1.0).abs() < 0.005, "{medium}");
}

#[test]
fn every_discipline_can_serve_a_cell_with_aggregates() {
    let traffic = transfers("uploads", "[\"station1\", \"station2\"]", "\"hosts\"", 2)
        + &transfers("downloads", "\"hosts\"", "[\"station3\", \"station4\"]", 2);
    for entry in registry::DISCIPLINES {
        for fairness in [false, true] {
            let wifi = format!(
                "{AGGREGATED}stations = 4\nbuffer = \"50 packets\"\nframe_error = 0.1\n\
                 airtime_fairness = {fairness}"
            );
            let scenario = cell(&wifi, &traffic);
            let rates = |run: RunSummary| (goodput(&run, 0), goodput(&run, 1));
            let (up, down) = rates(run_with(&scenario, entry.name, 1));
            println!("{}, fairness {fairness}: {up:.2} up, {down:.2} down", entry.name);
            assert!((25.0..60.0).contains(&(up + down)), "{}: {up}, {down}", entry.name);
            assert_eq!((up, down), rates(run_with(&scenario, entry.name, 1)), "{}", entry.name);
        }
    }
}

#[test]
fn stations_reach_each_other_through_the_access_point() {
    let run = run(&cell("stations = 2", &datagrams("station1", "station2", 5)));
    let source = &run.traffic[0];
    assert_eq!((source.datagrams_lost, source.datagrams), (0, 8_334));
    // Each packet is sent twice.
    assert!(source.delay.mean().unwrap() > 2.0 * 248e-6);
}
