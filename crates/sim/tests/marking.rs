//! Codepoints in scenarios: each end of a source marks what it sends and nothing else,
//! and CAKE's tins then do what their thresholds say.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;

use tidegate_core::{Bytes, Dscp, Span, Time};
use tidegate_sim::metrics::{PacketEvent, PacketRecord, Recorder};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::simulation;

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

fn scenario(text: &str) -> Scenario {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/data");
    file::parse("test.toml", text, &Folder(data.into())).unwrap_or_else(|error| panic!("{error}"))
}

/// What happens to packets under the first discipline of a scenario.
fn packets(scenario: &Scenario) -> Vec<PacketRecord> {
    let mut packets = Packets::default();
    let never = AtomicBool::new(false);
    simulation::run(scenario, &scenario.disciplines[0], 1, &mut packets, &never);
    packets.0
}

const ACCESS: &str = r#"
    title = "one home"
    duration = "4 s"
    seeds = [1]
    disciplines = ["fifo"]
    [access]
    hosts = 1
    down = "10 Mbit/s"
    up = "10 Mbit/s"
    delay = "5 ms"
    servers = ["5 ms"]
"#;

/// The codepoints that come from the server and from the host, which are nodes of the
/// scenario, when `source` is its only traffic.
fn codepoints(source: &str) -> [BTreeSet<Dscp>; 2] {
    let scenario = scenario(&format!("{ACCESS}\n{source}"));
    let rows = packets(&scenario);
    ["server1", "host1"].map(|name| {
        let node = scenario.nodes.iter().position(|node| node == name).expect("it has them");
        let address = Ipv4Addr::new(10, 0, 0, node as u8);
        let its = rows.iter().filter(|row| row.packet.flow.source().ip() == address);
        its.map(|row| row.packet.dscp).collect()
    })
}

fn set(names: &[&str]) -> BTreeSet<Dscp> {
    names.iter().map(|name| Dscp::named(name).expect("it is one")).collect()
}

#[test]
fn each_end_marks_what_it_sends_whichever_opens_the_connection() {
    let common = r#"name = "it"
        from = "server1"
        to = "host1""#;
    let web = r#"between_sessions = "500 ms"
        pages = 2
        between_pages = "500 ms"
        objects = 5
        between_objects = "20 ms"
        sizes = "10 kB""#;
    for (kind, rest) in [
        ("transfers", "count = 3\nsizes = \"20 kB\"".to_string()),
        ("transfers", "count = 3\nsizes = \"20 kB\"\nrequest = \"400 B\"".to_string()),
        ("web", web.to_string()),
        ("quic", "count = 3\nsizes = \"20 kB\"".to_string()),
        ("quic", "count = 3\nsizes = \"20 kB\"\nrequest = \"400 B\"".to_string()),
        ("pages", "recorded = [\"pages.har\"]\nevery = \"1 s\"".to_string()),
    ] {
        let source = |marks: &str| format!("[[traffic.{kind}]]\n{common}\n{rest}\n{marks}\n");
        let [down, up] = codepoints(&source("dscp = \"AF41\"\nreply_dscp = \"CS1\""));
        assert_eq!((down, up), (set(&["AF41"]), set(&["CS1"])), "{kind}");
        let [down, up] = codepoints(&source("dscp = \"LE\""));
        assert_eq!((down, up), (set(&["LE"]), set(&["CS0"])), "{kind}");
        let [down, up] = codepoints(&source(""));
        assert_eq!((down, up), (set(&["CS0"]), set(&["CS0"])), "{kind}");
    }
    for (kind, rest) in [
        ("cbr", "rate = \"100 kbit/s\"\npacket = \"200 B\""),
        ("frames", "file = \"call-g711.csv\""),
        ("greedy", "curve = \"3 kB + 100 kbit/s\"\npacket = \"200 B\""),
    ] {
        let [down, up] = codepoints(&format!("[[traffic.{kind}]]\n{common}\n{rest}\ndscp = 46"));
        assert_eq!((down, up), (set(&["EF"]), set(&[])), "{kind}");
    }
}

/// The uplink of a home at 5 Mbit/s behind CAKE at 95% of that.
const UPLINK: &str = r#"
    title = "an uplink"
    duration = "60 s"
    warm_up = "10 s"
    seeds = [1]
    disciplines = [{ name = "cake", tins = "diffserv4", bandwidth = "4.75 Mbit/s" }]
    [[link]]
    name = "up"
    from = "home"
    to = "server"
    rate = "5 Mbit/s"
    delay = "10 ms"
    queue = "tested"
    buffer = "1000 packets"
"#;

/// A call beside eight uploads.
fn with_call(mark: &str) -> Scenario {
    scenario(&format!(
        r#"{UPLINK}
        [[traffic.cbr]]
        name = "call"
        from = "home"
        to = "server"
        rate = "1 Mbit/s"
        packet = "1000 B"
        {mark}
        [[traffic.transfers]]
        name = "uploads"
        from = "home"
        to = "server"
        count = 8
        sizes = "endless"
        "#
    ))
}

/// The longest that a packet of the call waits in the queue.
fn longest_wait(rows: &[PacketRecord]) -> Span {
    let calls =
        rows.iter().filter(|row| row.packet.size == Bytes(1_000) && row.event == PacketEvent::Sent);
    calls.map(|row| row.at.since(row.packet.arrived)).max().expect("the call is sent")
}

/// Below its tin's share, a quarter, a packet waits for the one that is being sent, and
/// for no other: 1 500 B at 4.75 Mbit/s take 2.53 ms. Beside eight transfers in a tin
/// with it, the call has a ninth of the link and needs a fifth.
#[test]
fn a_call_that_is_marked_ef_waits_for_one_packet() {
    let wait = |mark| longest_wait(&packets(&with_call(mark)));
    let marked = wait("dscp = \"EF\"");
    assert!(marked <= Span::micros(2_527), "{marked}");
    assert!(marked >= Span::micros(1_500), "no packet is in its way: {marked}");
    let unmarked = wait("");
    assert!(unmarked > Span::millis(20), "{unmarked}");
}

/// Two streams, each of more than the link carries: the bulk tin has its sixteenth of the
/// rate, to half a packet in a thousand.
#[test]
fn a_backup_that_is_marked_le_leaves_fifteen_sixteenths_to_others() {
    let share = |mark: &str| {
        let stream = |name: &str, mark: &str| {
            format!(
                r#"
                [[traffic.cbr]]
                name = "{name}"
                from = "home"
                to = "server"
                rate = "6 Mbit/s"
                packet = "1000 B"
                {mark}
                "#
            )
        };
        let mark = format!("dscp = \"{mark}\"");
        let scenario =
            scenario(&format!("{UPLINK}{}{}", stream("other", ""), stream("backup", &mark)));
        let after = Time(scenario.warm_up.0);
        let sent = packets(&scenario).into_iter().filter(|row| row.at >= after);
        let sent: Vec<_> = sent.filter(|row| row.event == PacketEvent::Sent).collect();
        // Ports of streams count up from 16 384.
        let of_backup = sent.iter().filter(|row| row.packet.flow.source().port() == 16_385);
        of_backup.count() as f64 / sent.len() as f64
    };
    for mark in ["LE", "CS1"] {
        assert!((share(mark) * 16.0 - 1.0).abs() < 0.0005 * 16.0, "{mark}: {}", share(mark));
    }
    // In one tin both are alike.
    assert!((share("CS0") - 0.5).abs() < 0.0005, "{}", share("CS0"));
}
