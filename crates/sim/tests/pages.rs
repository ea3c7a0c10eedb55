//! Pages over connections that carry many responses: times worked out by hand on an
//! empty link, the six connections to a host, what frames do to small responses, and
//! that every object arrives once whatever happens.

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use tidegate_core::{Span, registry};
use tidegate_sim::metrics::{FlowRecord, PacketEvent, PacketRecord, Recorder, RunSummary};
use tidegate_sim::scenario::file::{self, DataFiles};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};
use tidegate_sim::simulation;

/// Every file that a scenario names is this archive.
struct Archive<'a>(&'a str);

impl DataFiles for Archive<'_> {
    fn open(&self, _name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.as_bytes()))
    }
}

/// The rows of objects, and the SYNs that have entered a queue.
#[derive(Default)]
struct Seen {
    rows: Vec<FlowRecord>,
    connections: usize,
}

impl Recorder for Seen {
    fn flow(&mut self, row: &FlowRecord) {
        self.rows.push(row.clone());
    }

    fn takes_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, row: &PacketRecord) {
        let opens = row.packet.tcp.is_some_and(|tcp| tcp.syn && tcp.acknowledgement.is_none());
        self.connections += usize::from(opens && row.event == PacketEvent::Sent);
    }
}

/// A request of an archive: when, from whom, of how many bytes, for how long in
/// milliseconds, and what else.
fn entry(at: u64, host: &str, number: u64, size: u64, took: u64, more: &str) -> String {
    format!(
        r#"{{"startedDateTime": "2016-01-24T14:41:{:02}.{:03}Z", "time": {took},
            "request": {{"url": "https://{host}/{number}", "headersSize": 400}},
            "response": {{"bodySize": {size}}}{more}}}"#,
        at / 1_000,
        at % 1_000
    )
}

fn archive(entries: &[String]) -> String {
    format!(r#"{{"log": {{"entries": [{}]}}}}"#, entries.join(","))
}

/// A byte takes 1 us and 10 ms, both ways. `what` describes the pages.
fn scenario(archive: &str, link: &str, what: &str) -> Scenario {
    let text = format!(
        r#"
        title = "pages"
        duration = "60 s"
        disciplines = ["fifo"]
        [[link]]
        name = "down"
        from = "server"
        to = "user"
        queue = "tested"
        {link}
        back = {{ name = "up", queue = "tested" }}
        [[traffic.pages]]
        name = "web"
        from = "server"
        to = "user"
        recorded = ["a.har"]
        {what}
        "#
    );
    file::parse("test.toml", &text, &Archive(archive)).unwrap_or_else(|error| panic!("{error}"))
}

const EMPTY: &str = "rate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"1000 packets\"";

fn run(scenario: &Scenario, discipline: &str, seed: u64) -> (Seen, RunSummary) {
    let entry = registry::find(discipline).expect("it is registered");
    let choice = DisciplineChoice::with_defaults(entry);
    let mut seen = Seen::default();
    let never = AtomicBool::new(false);
    let summary = simulation::run(scenario, &choice, seed, &mut seen, &never);
    (seen, summary)
}

/// TCP without options, and with room for all that a page has at once.
const PLAIN: &str = "tcp = { profile = \"papers\", initial_window = 10 }\npause = \"1 s\"";

/// The response times of the first objects in microseconds, in the order in which the
/// browser asked for them.
fn micros(scenario: &Scenario, count: usize) -> Vec<u64> {
    let mut rows = run(scenario, "fifo", 1).0.rows;
    rows.sort_by_key(|row| row.number);
    let response = |row: &FlowRecord| row.response.expect("it has arrived").0 / 1_000;
    rows[..count].iter().map(response).collect()
}

/// A document, and two objects that it names.
fn three() -> String {
    let by = r#", "_initiator": "https://a.org/0""#;
    archive(&[
        entry(0, "a.org", 0, 1_000, 50, ""),
        entry(50, "a.org", 1, 2_000, 50, by),
        entry(50, "a.org", 2, 3_000, 50, by),
    ])
}

#[test]
fn three_objects_over_one_connection_take_what_their_bits_and_the_light_take() {
    let scenario = scenario(&three(), EMPTY, PLAIN);
    // A segment has 40 bytes before the payload, of which there are up to 1 460.
    // The acknowledgement of the server's SYN goes ahead of data.
    let established = 2 * (40 + 10_000) + 40;
    // The ClientHello of 517 bytes, and 3 000 bytes of the server.
    let secured = established + (40 + 517 + 10_000) + (3 * 40 + 3_000 + 10_000);
    let document = secured + (40 + 400 + 10_000) + (40 + 1_000 + 10_000);
    // Both requests are one segment. The first object ends in the second segment, which
    // is full; the second in the fourth.
    let asked = 40 + 800 + 10_000;
    let (first, second) = (asked + 2 * 1_500 + 10_000, asked + 4 * 40 + 5_000 + 10_000);
    assert_eq!(micros(&scenario, 3), [document, first, second]);
    let (seen, summary) = run(&scenario, "fifo", 1);
    assert_eq!(seen.connections, 1, "all pages come over one connection");
    let pages = &summary.traffic[0];
    assert!(pages.pages > 20);
    assert_eq!(pages.page_loads.largest(), Some((document + second) as f64 / 1e6));
    // The second page finds the connection open, and its window at ten segments.
    let warm = micros(&scenario, 6);
    assert_eq!(warm[3..], [document - secured, first, second]);
}

#[test]
fn without_tls_a_round_trip_less_and_the_servers_time_on_top() {
    let times = r#", "timings": {"connect": 20, "ssl": 0, "wait": 50, "receive": 0}"#;
    let page = archive(&[entry(0, "a.org", 0, 1_000, 50, times)]);
    let scenario = scenario(&page, EMPTY, &format!("{PLAIN}\ntls = 0"));
    // The request travels behind the acknowledgement of the SYN. Of the 50 ms of waiting,
    // 20 ms are a round trip.
    let established = 2 * (40 + 10_000) + 40;
    let answered = established + (40 + 400 + 10_000) + 30_000 + (40 + 1_000 + 10_000);
    assert_eq!(micros(&scenario, 1), [answered]);
}

/// Seven objects of one host, all at once.
fn seven() -> String {
    let entries: Vec<_> = (0..7).map(|number| entry(0, "a.org", number, 1_000, 50, "")).collect();
    archive(&entries)
}

#[test]
fn the_seventh_object_of_a_host_waits_for_the_first_connection_that_is_free() {
    let scenario = scenario(&seven(), EMPTY, &format!("{PLAIN}\nprotocol = \"http1.1\""));
    let secured = 2 * (40 + 10_000) + 40 + (40 + 517 + 10_000) + (3 * 40 + 3_000 + 10_000);
    let exchange = (40 + 400 + 10_000) + (40 + 1_000 + 10_000);
    let times = micros(&scenario, 7);
    assert_eq!((times[0], times[6]), (secured + exchange, secured + 2 * exchange));
    assert!(times[1..6].iter().all(|time| (times[0]..times[6]).contains(time)), "{times:?}");
    assert_eq!(run(&scenario, "fifo", 1).0.connections, 6, "they stay open");
}

#[test]
fn with_a_connection_for_each_response_the_seventh_begins_all_over() {
    let scenario = scenario(&seven(), EMPTY, &format!("{PLAIN}\nprotocol = \"http1.0\""));
    let times = micros(&scenario, 7);
    // The SYN leaves ahead of the FIN of the connection that was before it.
    assert_eq!(times[6], times[0] + times[0]);
    let (seen, _) = run(&scenario, "fifo", 1);
    assert_eq!(seen.connections, seen.rows.len());
}

#[test]
fn a_connection_that_has_nothing_to_do_is_closed_after_the_keep_alive_time() {
    let connections = |keep_alive: &str| {
        let what = format!("pause = \"2 s\"\nkeep_alive = \"{keep_alive}\"");
        let (seen, summary) = run(&scenario(&three(), EMPTY, &what), "fifo", 3);
        (seen.connections, summary.traffic[0].page_loads.count() as usize)
    };
    let (all, pages) = connections("0 s");
    assert!(all >= pages && pages > 10, "{all} connections, {pages} pages");
    assert_eq!(connections("75 s").0, 1);
    let some = connections("2 s").0;
    assert!((2..pages).contains(&some), "{some} connections");
}

/// A large object, then a small one.
fn uneven(more: &str) -> String {
    archive(&[
        entry(0, "a.org", 0, 1_000, 50, ""),
        entry(50, "a.org", 1, 300_000, 50, r#", "_priority": "Low""#),
        entry(50, "a.org", 2, 5_000, 50, more),
    ])
}

#[test]
fn frames_in_turn_let_a_small_response_pass_a_large_one_and_order_of_request_does_not() {
    let small = |order: &str, more: &str| {
        let what = format!("pause = \"1 s\"\norder = \"{order}\"");
        micros(&scenario(&uneven(more), EMPTY, &what), 3)[2]
    };
    let (low, high) = (r#", "_priority": "Low""#, r#", "_priority": "High""#);
    // In turns, the small one waits for what TCP lets out with its request, and a frame.
    let in_turn = small("round-robin", low);
    assert!((50_000..100_000).contains(&in_turn), "{in_turn} us");
    // The large one alone takes 300 ms.
    let behind = small("priority", low);
    assert!(behind > 300_000, "{behind} us");
    assert!(small("priority", high) < 100_000);
}

#[test]
fn a_recorded_connection_carries_what_it_carried() {
    // Two hosts of one certificate share a connection; a third has its own version.
    let shared = |host: &str, number: u64| {
        let text = entry(0, host, number, 1_000, 50, r#", "connection": "7""#);
        text.replace(r#""bodySize""#, r#""httpVersion": "h2", "bodySize""#)
    };
    let page = archive(&[
        shared("a.org", 0),
        shared("b.org", 1),
        entry(0, "c.org", 2, 1_000, 50, ""),
        entry(0, "c.org", 3, 1_000, 50, ""),
    ]);
    let connections = |protocol: &str| {
        let what = format!("pause = \"1 s\"\nprotocol = \"{protocol}\"");
        run(&scenario(&page, EMPTY, &what), "fifo", 1).0.connections
    };
    // One for a and b; c has as many as objects at once.
    assert_eq!(connections("recorded"), 3);
    assert_eq!(connections("http2"), 2);
    assert_eq!(connections("http1.1"), 4);
}

const BUSY: &str = "rate = \"2 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"20 packets\"";

/// Objects of many sizes, of four hosts.
fn many() -> String {
    let object = |number: u64| {
        let (at, size) = (number * 37 % 400, 200 + number * number * 97);
        entry(at, ["a", "b", "c", "d"][(number % 4) as usize], number, size, 30 + number, "")
    };
    archive(&(0..25).map(object).collect::<Vec<_>>())
}

#[test]
fn every_object_arrives_once_and_whole_under_every_protocol_and_discipline() {
    let sizes: Vec<u64> = {
        let mut sizes: Vec<u64> = (0..25_u64).map(|n| 200 + n * n * 97).collect();
        sizes.sort_unstable();
        sizes
    };
    for protocol in ["http1.0", "http1.1", "http2", "recorded"] {
        // The last page has ended long before the run.
        let what = format!("protocol = \"{protocol}\"\nevery = \"4 s\"\nstop = \"30 s\"");
        let scenario = scenario(&many(), BUSY, &what);
        let mut lost = 0;
        for discipline in ["fifo", "las", "fq-codel"] {
            let (seen, summary) = run(&scenario, discipline, 2);
            let pages = summary.traffic[0].page_loads.count() as usize;
            assert!(pages > 2 && pages as u64 == summary.traffic[0].pages);
            assert_eq!(seen.rows.len(), pages * 25);
            assert!(seen.rows.iter().all(|row| row.size == Some(row.delivered)));
            let mut numbers: Vec<_> = seen.rows.iter().map(|row| row.number).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..pages as u64 * 25), "each once");
            let mut found: Vec<u64> = seen.rows.iter().map(|row| row.delivered.0).collect();
            found.sort_unstable();
            assert!(
                sizes.iter().all(|size| found.iter().filter(|it| *it == size).count() == pages)
            );
            lost += seen.rows.iter().map(|row| row.lost).sum::<u32>();
        }
        assert!(lost > 0, "{protocol}: repairs had nothing to do");
    }
}

#[test]
fn pages_begin_alike_under_every_discipline_and_a_seed_gives_the_same_run() {
    let scenario = scenario(&many(), BUSY, "every = \"2 s\"");
    let (seen, _) = run(&scenario, "fifo", 5);
    assert_eq!(seen.rows, run(&scenario, "fifo", 5).0.rows);
    assert_ne!(seen.rows, run(&scenario, "fifo", 6).0.rows);
    // The first object of a page is the smallest, and due when the page begins.
    let begins = |discipline: &str| {
        let rows = run(&scenario, discipline, 5).0.rows;
        let first = rows.iter().filter(|row| row.size.is_some_and(|size| size.0 == 200));
        let mut begins: Vec<_> = first.map(|row| row.start).collect();
        begins.sort_unstable();
        begins
    };
    assert!(begins("fifo").len() > 10);
    assert_eq!(begins("fifo"), begins("efd"));
}

#[test]
fn objects_of_connections_that_tcp_gives_up_are_reported_and_the_page_goes_on() {
    let link = format!("{EMPTY}\nloss = 0.6");
    let what = "pause = \"1 s\"\ntcp = { syn_retries = 0, linear_syn_timeouts = 0, data_retries = 1 }\nprotocol = \"http1.1\"";
    let scenario = scenario(&many(), &link, what);
    let (seen, summary) = run(&scenario, "fifo", 1);
    let (whole, broken): (Vec<&FlowRecord>, Vec<_>) =
        seen.rows.iter().partition(|row| row.end.is_some());
    assert!(whole.iter().all(|row| row.response.is_some() && row.size == Some(row.delivered)));
    assert!(broken.iter().all(|row| row.response.is_none()));
    assert!(broken.len() > 25 && summary.traffic[0].pages > 1, "{} broken", broken.len());
    assert!(summary.traffic[0].page_loads.count() < summary.traffic[0].pages);
}

#[test]
fn objects_that_the_end_cuts_off_are_reported() {
    let text = "every = \"1 s\"";
    let link = "rate = \"100 kbit/s\"\ndelay = \"20 ms\"\nbuffer = \"20 packets\"";
    let (seen, summary) = run(&scenario(&many(), link, text), "fifo", 1);
    let cut_off = seen.rows.iter().filter(|row| row.end.is_none());
    assert!(cut_off.clone().count() > 100);
    assert!(cut_off.clone().all(|row| row.size > Some(row.delivered)));
    assert!(cut_off.map(|row| row.longest_stall).max() > Some(Span::seconds(1)));
    assert!(summary.traffic[0].page_loads.count() < summary.traffic[0].pages);
}

#[test]
fn mistakes_are_one_line_with_their_place() {
    let table = "objects,body_bytes,hosts\n3,1000,2\n";
    let good = three();
    let error = |contents: &str, what: &str| {
        let text = format!(
            "title = \"t\"\nduration = \"9 s\"\ndisciplines = [\"fifo\"]\n[dumbbell]\n\
             [[traffic.pages]]\nname = \"web\"\nfrom = \"senders\"\nto = \"receivers\"\n{what}"
        );
        let error = file::parse("s.toml", &text, &Archive(contents)).expect_err(what).to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let recorded = "recorded = [\"a.har\"]\n";
    for (contents, what, expected) in [
        (
            "{}",
            "recorded = [\"a.har\"]\npause = \"1 s\"",
            "s.toml:9:13: traffic.pages.recorded: found 'a.har' (a.har:1: ",
        ),
        (
            "{\"log\": {\"entries\": []}}",
            "recorded = [\"a.har\"]\npause = \"1 s\"",
            "s.toml:9:12: traffic.pages.recorded: found archives without an object",
        ),
        (
            &good,
            "pause = \"1 s\"",
            "s.toml:5:1: traffic.pages: found neither of them, expected one of recorded, page_table",
        ),
        (
            &good,
            recorded,
            "s.toml:5:1: traffic.pages: found neither of them, expected one of load, every, pause",
        ),
        (
            &good,
            "recorded = [\"a.har\"]\npause = \"1 s\"\nevery = \"1 s\"",
            "found two of them, expected one of load, every, pause",
        ),
        (
            &good,
            "recorded = [\"a.har\"]\npage_table = \"t.csv\"\npause = \"1 s\"",
            "found two of them, expected one of recorded, page_table",
        ),
        (
            &good,
            "recorded = [\"a.har\"]\nsizes = \"3 B\"\npause = \"1 s\"",
            "found sizes, expected none, since recordings have the sizes",
        ),
        (
            &good,
            "recorded = [\"a.har\"]\nevery = \"0 s\"",
            "s.toml:10:9: traffic.pages.every: found '0 ns', expected at least '1 ms' between two pages of a user",
        ),
        (
            &good,
            "recorded = [\"a.har\"]\nload = \"900 Gbit/s\"",
            "expected at least '1 ms' between two pages of a user",
        ),
        (
            &good,
            "recorded = [\"a.har\"]\npause = \"1 s\"\nprotocol = \"http4\"",
            "s.toml:11:12: traffic.pages.protocol: found unknown 'http4', expected 'http2'",
        ),
        (
            &good,
            "recorded = [\"a.har\"]\npause = \"1 s\"\ntls = 3",
            "expected a whole number from 0 to 2",
        ),
        (
            table,
            "page_table = \"t.csv\"\npause = \"1 s\"",
            "expected how large the objects of a page_table are",
        ),
        (
            table,
            "page_table = \"t.csv\"\nsizes = \"endless\"\npause = \"1 s\"",
            "found 'endless', expected objects with an end",
        ),
        (
            table,
            "page_table = \"t.csv\"\nsizes = \"3 B\"\npause = \"1 s\"\nprotocol = \"recorded\"",
            "found 'recorded', expected a protocol, since a page_table records none",
        ),
    ] {
        let error = error(contents, what);
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn pages_of_a_table_bring_its_bytes() {
    let table = "objects,body_bytes,hosts\n8,40000,3\n";
    let text = "title = \"t\"\nduration = \"30 s\"\ndisciplines = [\"fifo\"]\n[dumbbell]\n\
        [[traffic.pages]]\nname = \"web\"\nfrom = \"senders\"\nto = \"receivers\"\n\
        page_table = \"t.csv\"\nsizes.exponential = \"3 kB\"\nevery = \"5 s\"\nstop = \"20 s\"";
    let scenario = file::parse("s.toml", text, &Archive(table)).expect("it is right");
    let (seen, summary) = run(&scenario, "fifo", 1);
    let pages = summary.traffic[0].page_loads.count();
    assert!(pages > 5 && seen.rows.len() as u64 == 8 * pages);
    let bytes: u64 = seen.rows.iter().map(|row| row.delivered.0).sum();
    // Sizes are whole bytes.
    assert!((40_000 * pages - 8 * pages..=40_000 * pages).contains(&bytes), "{bytes}");
}
