//! Which files are refused, with which messages, and which files are equal.

use std::fmt::Write as _;
use std::io::{self, Read};

use tidegate_core::Buffer;
use tidegate_core::request::{ClassId, UserId};

use super::*;
use crate::requests::{Http, Kept};
use crate::scenario::Protocol;
use crate::scenario::{FrameOrder, QueueSpec};

/// Files as tests need them, by the end of their name.
struct Shelf;

impl DataFiles for Shelf {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let text: &[u8] = match name {
            "pages.csv" => b"objects,body_bytes,hosts\n4,90000,2\n",
            "empty.har" => br#"{"log":{"entries":[]}}"#,
            "page.har" => {
                br#"{"log":{"entries":[{"startedDateTime":"2016-01-24T14:41:45Z","request":
                {"url":"http://a/"},"response":{"bodySize":5000}}]}}"#
            }
            "access.log" => {
                b"a - - [01/Jul/1995:00:00:03 -0400] \"G\" 200 6245\n\
                  b - - [01/Jul/1995:00:00:04 -0400] \"G\" 200 45\n"
            }
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Box::new(text))
    }
}

/// A correct file, in which tests spoil one thing.
const RIGHT: &str = r#"title = "School"
duration = "200 s"
warm_up = "20 s"
seeds = [1, 7]
ways = ["fifo", { name = "msf", label = "large", long_from = "64 kB" }]
[link]
rate = "20 Mbit/s"
delay = "4 ms"
buffer = "300 packets"
uplink_rate = "5 Mbit/s"
uplink_queue = "fq-codel"
uplink_buffer = "50 kB"
client_rate = "50 Mbit/s"
client_delay = "3 ms"
[gateway]
receive_buffer = "32 kB"
patience = "30 s"
keep_alive = "20 s"
kept = 4
[http]
protocol = "http2"
order = "priority"
tls = 1
keep_alive = "50 s"
[objects]
sizes.exponential = "20 kB"
per_page = 3
request = "400 B"
[tcp]
initial_window = 4
[failures]
stall = 0.01
reset = 0.02
trickle = 0.03
trickle_rate = "16 kbit/s"
[[class]]
name = "office"
weight = 4
clients = 5
sizes = "9 kB"
request = "2 kB"
through = "tunnels"
loops = 2
pause = "3 s"
silent = [["50 s", "60 s"]]
[[class]]
name = "staff"
clients = 3
every = "20 s"
page_table = "pages.csv"
present = "100 s"
absent = "40 s"
[[class]]
name = "pupils"
log = "access.log"
speed = 2
[[class]]
name = "guests"
clients = 2
recorded = ["page.har"]
[[class]]
name = "broken"
part_of = "office"
clients = 1
failures = { stall = 1 }
client_rate = "64 kbit/s"
[[servers]]
count = 3
delay = ["5 ms", "10 ms"]
rate = ["2 Mbit/s", "4 Mbit/s"]
[[cbr]]
rate = "1 Mbit/s"
packet = "500 B"
off = "10 s"
on = "5 s"
"#;

fn parsed(text: &str) -> Result<Comparison, String> {
    parse("g.toml", text, &Shelf).map_err(|error| error.to_string())
}

#[test]
fn a_file_says_all_that_a_setup_has() {
    let Comparison { setup, ways, seeds, .. } = parsed(RIGHT).unwrap();
    let classes: Vec<_> = setup.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(classes, ["office", "staff", "pupils", "guests", "broken"]);
    assert_eq!(seeds, [1, 7]);
    let labels: Vec<_> = ways.iter().map(|way| way.label.as_str()).collect();
    assert_eq!(labels, ["fifo", "large"]);
    let times = (setup.duration, setup.warm_up, setup.patience);
    assert_eq!(times, (Span::seconds(200), Span::seconds(20), Some(Span::seconds(30))));
    assert_eq!((setup.rate, setup.delay), (Rate(20_000_000), Span::millis(4)));
    assert_eq!((setup.client_rate, setup.client_delay), (Rate(50_000_000), Span::millis(3)));
    assert_eq!((setup.server_window, setup.request), (Bytes(32_000), Bytes(400)));
    assert!(matches!(setup.sizes, SizeLaw::Exponential(Bytes(20_000))));
    assert_eq!((setup.objects, setup.tcp.initial_window), (3.0, 4));
    let http = Http {
        protocol: Protocol::Http2,
        order: FrameOrder::Priority,
        handshakes: 1,
        keep_alive: Span::seconds(50),
    };
    assert_eq!(setup.http, http);
    assert_eq!(setup.kept, Kept { idle: Span::seconds(20), most: 4 });
    let (discipline, buffer) = setup.uplink.queue.as_ref().expect("the uplink has a queue");
    assert_eq!((discipline.entry.name, *buffer), ("fq-codel", Buffer::bytes(Bytes(50_000))));
    assert_eq!(setup.uplink.rate, Some(Rate(5_000_000)));
    let failures =
        ServerFailures { stall: 0.01, reset: 0.02, trickle: 0.03, trickle_rate: Rate(16_000) };
    assert_eq!(setup.failures, failures);
    let clients: Vec<_> = setup.classes.iter().map(|c| (c.weight.get(), c.clients)).collect();
    assert_eq!(clients, [(4, 5), (1, 3), (1, 2), (1, 2), (4, 1)]);
    let [office, staff, pupils, guests, broken] = &setup.classes[..] else {
        panic!("five classes")
    };
    assert!(
        matches!(office.demand, Demand::Closed { loops: 2, pause } if pause == Span::seconds(3))
    );
    assert_eq!(office.silent, [(Time(50_000_000_000), Time(60_000_000_000))]);
    assert!(matches!(staff.demand, Demand::Open { every } if every == Span::seconds(20)));
    assert!(matches!(staff.pages, Pages::Outlined(_)));
    let presence = Presence { present: Span::seconds(100), absent: Span::seconds(40) };
    assert_eq!(staff.presence, Some(presence));
    assert!(matches!(&pupils.demand, Demand::Log(log) if log.period() == Span::seconds(1)));
    assert!(matches!(guests.demand, Demand::Closed { loops: 10, .. }));
    assert!(matches!(guests.pages, Pages::Recorded(_)));
    assert_eq!((office.request, office.through), (Some(Bytes(2_000)), Through::Tunnels));
    assert!(matches!(office.sizes, Some(SizeLaw::Constant(Bytes(9_000)))));
    assert_eq!((guests.request, guests.through), (None, Through::Requests));
    assert_eq!((guests.failures, guests.client_rate, guests.part_of), (None, None, None));
    let silent = ServerFailures { stall: 1.0, ..ServerFailures::NONE };
    assert_eq!((broken.failures, broken.client_rate), (Some(silent), Some(Rate(64_000))));
    assert_eq!(broken.part_of, Some(0));
    // One more user of the office, whose weight counts once.
    assert_eq!(setup.user(4, 0), (ClassId(0), UserId(5)));
    assert_eq!(setup.user(1, 2), (ClassId(1), UserId(2)));
    assert_eq!(setup.weights().map(NonZeroU32::get).collect::<Vec<_>>(), [4, 1, 1, 1]);
    assert_eq!((setup.servers.len(), setup.servers[0].count), (1, 3));
    assert_eq!(setup.passing[0].packet, Bytes(500));
}

#[test]
fn what_is_left_out_is_as_today_but_for_patience() {
    let least = "title = \"T\"\n[[class]]\nname = \"all\"\nclients = 4\n";
    let Comparison { setup, ways, seeds, .. } = parsed(least).unwrap();
    let today = Setup::today();
    let of = |setup: &Setup| {
        let rest = Setup { classes: Vec::new(), patience: None, ..setup.clone() };
        format!("{rest:?}")
    };
    assert_eq!(of(&setup), of(&today));
    assert_eq!(setup.patience, Some(Span::seconds(60)));
    assert_eq!((ways.len(), seeds.len()), (5, 5));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let mut table = String::new();
    for (right, wrong) in [
        ("title = \"School\"\n", ""),
        ("title = \"School\"", "title = \" \""),
        ("duration = \"200 s\"", "duration = \"0 s\""),
        ("warm_up = \"20 s\"", "warm_up = \"200 s\""),
        ("seeds = [1, 7]", "seeds = [1, 1]"),
        ("ways = [\"fifo\", ", "ways = [\"fiof\", "),
        ("ways = [\"fifo\", ", "ways = [5, "),
        ("ways = [\"fifo\", ", "ways = [{ share = 1 }, "),
        ("label = \"large\"", "label = \"fifo\""),
        ("long_from = \"64 kB\"", "long_form = \"64 kB\""),
        ("long_from = \"64 kB\"", "long_from = \"0 B\""),
        ("[link]", "[lnik]"),
        ("rate = \"20 Mbit/s\"", "rate = \"20\""),
        ("rate = \"20 Mbit/s\"", "rate = \"20 bit/s\""),
        ("receive_buffer = \"32 kB\"", "receive_buffer = \"1 kB\""),
        ("patience = \"30 s\"", "patience = \"1 ms\""),
        ("kept = 4", "kept = -1"),
        ("uplink_rate = \"5 Mbit/s\"", "uplink_rate = \"5\""),
        ("uplink_queue = \"fq-codel\"", "uplink_queue = \"fq-coddle\""),
        ("uplink_buffer = \"50 kB\"\n", ""),
        ("protocol = \"http2\"", "protocol = \"http3\""),
        ("protocol = \"http2\"", "protocol = \"recorded\""),
        ("tls = 1", "tls = 3"),
        ("sizes.exponential = \"20 kB\"", "sizes = \"endless\""),
        ("sizes.exponential = \"20 kB\"", "sizes.file = \"nowhere.csv\""),
        ("per_page = 3", "per_page = 0.5"),
        ("stall = 0.01", "stall = 1.1"),
        ("stall = 0.01", "stall = 0.99"),
        ("name = \"staff\"", "name = \"office\""),
        ("name = \"office\"", "name = \"a\\nb\""),
        ("weight = 4", "weight = 0"),
        ("sizes = \"9 kB\"", "sizes = \"endless\""),
        ("log = \"access.log\"", "log = \"access.log\"\nsizes = \"9 kB\""),
        ("through = \"tunnels\"", "through = \"walls\""),
        ("request = \"2 kB\"", "request = \"2 GB\""),
        ("clients = 5\n", ""),
        ("clients = 5", "clients = 99999"),
        ("pause = \"3 s\"", "every = \"3 s\""),
        ("pause = \"3 s\"", "speed = 3"),
        ("silent = [[\"50 s\", \"60 s\"]]", "silent = [[\"60 s\", \"50 s\"]]"),
        ("silent = [[\"50 s\", \"60 s\"]]", "silent = [[\"60 s\"]]"),
        ("page_table = \"pages.csv\"", "page_table = \"access.log\""),
        ("page_table = \"pages.csv\"", "page_table = \"pages.csv\"\nrecorded = [\"page.har\"]"),
        ("absent = \"40 s\"\n", ""),
        ("log = \"access.log\"", "log = \"page.har\""),
        ("log = \"access.log\"", "log = \"access.log\"\npage_table = \"pages.csv\""),
        ("recorded = [\"page.har\"]", "recorded = [\"empty.har\"]"),
        ("part_of = \"office\"", "part_of = \"nobody\""),
        ("part_of = \"office\"", "part_of = \"broken\""),
        ("part_of = \"office\"", "part_of = \"office\"\nweight = 2"),
        ("[[servers]]", "[[class]]\nname = \"more\"\nclients = 1\n[[servers]]"),
        ("{ stall = 1 }", "{ stall = 1, reset = 1 }"),
        ("client_rate = \"64 kbit/s\"", "client_rate = \"64 bit/s\""),
        ("delay = [\"5 ms\", \"10 ms\"]", "delay = [\"5 ms\", \"4 ms\"]"),
        ("packet = \"500 B\"", "packet = \"5 B\""),
    ] {
        let spoilt = RIGHT.replacen(right, wrong, 1);
        assert_ne!(spoilt, RIGHT, "{right}");
        let error = parsed(&spoilt).expect_err(wrong);
        assert_eq!(error.lines().count(), 1, "{error}");
        let shown = if wrong.is_empty() { format!("without {right}") } else { wrong.into() };
        let shown: String = shown.trim_end().replace('\n', " ; ").chars().take(60).collect();
        writeln!(table, "{shown}\n  {error}").unwrap();
    }
    let error = parsed("title = \"T\"").expect_err("it has no class");
    writeln!(table, "no class\n  {error}").unwrap();
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("mistakes", table);
    });
}

/// A small file, for tests to add one thing.
const SMALL: &str = r#"title = "T"
ways = ["fifo", "direct"]
[link]
rate = "20 Mbit/s"
[wifi]
rates = ["24 Mbit/s"]
[[class]]
name = "all"
clients = 8
"#;

/// [`SMALL`] with one piece of text in place of another.
fn changed(right: &str, wrong: &str) -> Result<Comparison, String> {
    let text = SMALL.replacen(right, wrong, 1);
    assert_ne!(text, SMALL, "{right}");
    parsed(&text)
}

#[test]
fn a_cell_a_discipline_and_ecn_become_those_of_the_setup() {
    let setup = changed("[wifi]\n", "queue = { name = \"codel\", target = \"9 ms\" }\n[tcp]\necn = true\n[wifi]\nqueue = \"sfq\"\nairtime_fairness = true\n")
        .unwrap()
        .setup;
    let settings: Vec<_> = setup.provider.parameters();
    assert_eq!(setup.provider.entry.name, "codel");
    assert!(settings.contains(&("target", "9 ms".into())), "{settings:?}");
    assert!(setup.tcp.ecn);
    let cell = setup.wifi.expect("it is given");
    assert!(cell.airtime_fairness);
    assert!(matches!(&cell.downlink, QueueSpec::Fixed(choice, _) if choice.entry.name == "sfq"));
}

#[test]
fn what_a_cell_around_a_gateway_cannot_be_is_told_with_its_place() {
    for (right, wrong, expected) in [
        (
            "rates =",
            "stations = 8\nrates =",
            "g.toml:6:12: wifi.stations: found stations, expected none, since every client is a \
             station",
        ),
        (
            "rates =",
            "hosts = 8\nrates =",
            "g.toml:5:1: wifi: found 'hosts' of a cell, expected [link] and [[servers]] for what \
             is behind the gateway",
        ),
        (
            "rates =",
            "router_rate = \"1 Gbit/s\"\nrates =",
            "g.toml:5:1: wifi: found 'router_rate' of a cell, expected [link] and [[servers]] for \
             what is behind the gateway",
        ),
        (
            "[wifi]",
            "client_rate = \"5 Mbit/s\"\n[wifi]",
            "g.toml:6:1: wifi: found [wifi], expected no client_rate and client_delay beside it",
        ),
        (
            "clients = 8",
            "clients = 8\nclient_rate = \"5 Mbit/s\"",
            "g.toml:5:1: wifi: found [wifi], expected no client_rate and client_delay beside it",
        ),
        (
            "[wifi]",
            "client_delay = \"5 ms\"\n[wifi]",
            "g.toml:6:1: wifi: found [wifi], expected no client_rate and client_delay beside it",
        ),
        (
            "clients = 8",
            "clients = 201",
            "g.toml:5:1: wifi: found 201 clients, expected at most 200 in a cell",
        ),
        (
            "rates =",
            "queue = \"fifoo\"\nrates =",
            "g.toml:6:9: wifi.queue: found unknown discipline 'fifoo', expected 'fifo'",
        ),
    ] {
        assert_eq!(changed(right, wrong).expect_err(wrong), expected);
    }
    assert!(changed("clients = 8", "clients = 200").is_ok());
}

#[test]
fn an_unknown_discipline_or_way_is_told_with_the_nearest_name() {
    for (right, wrong, expected) in [
        (
            "[wifi]",
            "queue = \"fq-codle\"\n[wifi]",
            "g.toml:5:9: link.queue: found unknown discipline 'fq-codle', expected 'fq-codel'",
        ),
        (
            "[wifi]",
            "queue = { name = \"codel\", target = \"0 s\" }\n[wifi]",
            "g.toml:5:36: link.queue.target: found '0 s', expected a time from '1 ns' to '60 s'",
        ),
        (
            "\"direct\"",
            "\"dirct\"",
            "g.toml:2:17: ways: found unknown way 'dirct', expected 'direct'",
        ),
        (
            "\"direct\"",
            "\"shaped-las-ak\"",
            "g.toml:2:17: ways: found unknown way 'shaped-las-ak', expected 'shaped-las-ack'",
        ),
        (
            "\"direct\"",
            "{ name = \"Direct\", label = \"direct\" }",
            "g.toml:2:26: ways.name: found unknown way 'Direct', expected 'direct'",
        ),
    ] {
        assert_eq!(changed(right, wrong).expect_err(wrong), expected);
    }
}

#[test]
fn more_hosts_than_a_network_takes_are_refused() {
    let wired = SMALL.replacen("[wifi]\nrates = [\"24 Mbit/s\"]\n", "", 1);
    // Beside twelve servers.
    assert!(parsed(&wired.replace("clients = 8", "clients = 4988")).is_ok());
    let error = parsed(&wired.replace("clients = 8", "clients = 4989")).expect_err("too many");
    assert_eq!(error, "g.toml:1:1: found 5001 clients and servers, expected at most 5000");
}
