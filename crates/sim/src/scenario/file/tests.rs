//! Which files are refused, with which messages, and which files are equal.

use std::fmt::Write as _;

use super::*;

/// A scenario that is right, for tests to spoil one thing.
const RIGHT: &str = r#"title = "t"
duration = "10 s"
seeds = [1, 2]
disciplines = ["fifo", { name = "efd", threshold = "30 kB" }]
[[link]]
from = "left"
to = "right"
rate = "10 Mbit/s"
delay = "1 ms"
queue = "tested"
buffer = "300 packets"
[[traffic.transfers]]
name = "files"
from = "left"
to = "right"
load = "8 Mbit/s"
sizes.zipf = { exponent = 1.99345, least = 6, most = 6849, segment = "1460 B" }
"#;

fn parsed(text: &str) -> Result<Scenario, String> {
    parse("s.toml", text, &Folder("/nowhere".into())).map_err(|error| error.to_string())
}

#[test]
fn the_right_one_is_right() {
    let scenario = parsed(RIGHT).unwrap();
    assert_eq!(scenario.nodes, ["left", "right"]);
    assert_eq!(scenario.links.len(), 2);
    assert_eq!(scenario.seeds, [1, 2]);
    assert_eq!(scenario.disciplines[1].parameters()[0], ("threshold", "30 kB".to_string()));
}

/// Spoils [`RIGHT`] and compares what is said about it with what was reviewed.
#[track_caller]
fn check(name: &str, spoilings: &[(&str, &str)]) {
    let mut table = String::new();
    for (right, wrong) in spoilings {
        let spoilt = RIGHT.replacen(right, wrong, 1);
        assert_ne!(spoilt, RIGHT, "{right}");
        let error = parsed(&spoilt).expect_err(wrong);
        assert_eq!(error.lines().count(), 1, "{error}");
        writeln!(table, "{}\n  {error}", wrong.replace('\n', " ; ")).unwrap();
    }
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!(name, table);
    });
}

#[test]
fn mistakes_of_form() {
    check(
        "mistakes_of_form",
        &[
            ("title = \"t\"\n", ""),
            ("title = \"t\"", "title = \"\""),
            ("title = \"t\"", "title = 5"),
            ("duration", "durration"),
            ("duration", "colour"),
            ("[[link]]", "[[link]"),
            ("[[link]]", "[link]"),
            ("from = \"left\"", "from = \"left\"\nfrom = \"right\""),
            ("[[traffic.transfers]]", "[[traffic.transfer]]"),
            ("[[traffic.transfers]]\nname = \"files\"", "[[traffic.transfers]]"),
            ("sizes.zipf", "sizes.zift"),
            ("sizes.zipf", "sizes.exponential = \"1 kB\"\nsizes.zipf"),
            ("sizes.zipf = {", "sizes = { } # {"),
            ("sizes.zipf = {", "sizes = 5 # {"),
            ("rate = \"10 Mbit/s\"", "rate = { trac = \"x\" }"),
            ("delay = \"1 ms\"", "delay = { }"),
        ],
    );
}

#[test]
fn mistakes_of_value() {
    check(
        "mistakes_of_value",
        &[
            ("duration = \"10 s\"", "duration = 10"),
            ("duration = \"10 s\"", "duration = \"10\""),
            ("duration = \"10 s\"", "duration = \"-10 s\""),
            ("duration = \"10 s\"", "duration = \"0 s\""),
            ("duration = \"10 s\"", "duration = \"100000 h\""),
            ("duration = \"10 s\"", "duration = \"10 s\"\nwarm_up = \"10 s\""),
            ("duration = \"10 s\"", "duration = \"10 s\"\nsample_every = \"1 ns\""),
            ("duration = \"10 s\"", "duration = \"10 s\"\nsize_classes = [\"2 kB\", \"1 kB\"]"),
            (
                "duration = \"10 s\"",
                "duration = \"10 s\"\nshort_flow = \"2 MB\"\nlong_flow = \"1 MB\"",
            ),
            ("seeds = [1, 2]", "seeds = []"),
            ("seeds = [1, 2]", "seeds = 0"),
            ("seeds = [1, 2]", "seeds = 1000000000000"),
            ("seeds = [1, 2]", "seeds = [1, -2]"),
            ("seeds = [1, 2]", "seeds = [7, 7]"),
            ("seeds = [1, 2]", "seeds = \"many\""),
            ("rate = \"10 Mbit/s\"", "rate = \"0 Mbit/s\""),
            ("rate = \"10 Mbit/s\"", "rate = \"10 Mbyte/s\""),
            ("rate = \"10 Mbit/s\"", "rate = { trace = \"missing\" }"),
            ("buffer = \"300 packets\"", "buffer = \"0 packets\""),
            ("buffer = \"300 packets\"", "buffer = \"1000000000000 packets\""),
            ("buffer = \"300 packets\"", "buffer = \"0 ms\""),
            (
                "rate = \"10 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"tested\"\nbuffer = \"300 packets\"",
                "queue = \"tested\"\nbuffer = \"100 ms\"",
            ),
            ("load = \"8 Mbit/s\"", "count = -3"),
            ("load = \"8 Mbit/s\"", "count = 1000000000000"),
            ("load = \"8 Mbit/s\"", "per_second = 0"),
            ("load = \"8 Mbit/s\"", "per_second = nan"),
            ("load = \"8 Mbit/s\"", "per_second = 1e9"),
            ("exponent = 1.99345", "exponent = -1"),
            ("least = 6", "least = 7000"),
            ("segment = \"1460 B\"", "segment = \"1 MB\""),
            ("load = \"8 Mbit/s\"", "load = \"8 Mbit/s\"\nstart = \"10 s\""),
            ("load = \"8 Mbit/s\"", "load = \"8 Mbit/s\"\nstart = \"5 s\"\nstop = \"5 s\""),
            ("[[link]]", "[tcp]\nprofile = \"tomorrow\"\n[[link]]"),
            ("[[link]]", "[tcp]\nmss = \"1 B\"\n[[link]]"),
            ("[[link]]", "[tcp]\nmin_rto = \"0 s\"\n[[link]]"),
            ("[[link]]", "[tcp]\nsack = false\nrack_tlp = true\n[[link]]"),
            ("[[link]]", "[tcp]\ninitial_window = 0\n[[link]]"),
        ],
    );
}

#[test]
fn mistakes_of_sense() {
    check(
        "mistakes_of_sense",
        &[
            ("[\"fifo\", { name = \"efd\", threshold = \"30 kB\" }]", "[]"),
            ("\"fifo\"", "\"fifi\""),
            ("\"fifo\"", "5"),
            ("name = \"efd\"", "label = \"x\""),
            ("threshold = \"30 kB\"", "treshold = \"30 kB\""),
            ("threshold = \"30 kB\"", "threshold = \"much\""),
            ("threshold = \"30 kB\"", "label = \"fifo\""),
            ("queue = \"tested\"", "queue = \"tessed\""),
            ("queue = \"tested\"", ""),
            ("queue = \"tested\"\nbuffer = \"300 packets\"", ""),
            ("queue = \"tested\"", "queue = \"tested\"\none_way = true"),
            (
                "queue = \"tested\"",
                "queue = \"tested\"\none_way = true\nback = { delay = \"1 s\" }",
            ),
            ("to = \"right\"", "to = \"left\""),
            ("[[link]]", "[[link]]\nfrom = \"right\"\nto = \"left\"\n[[link]]"),
            ("[[link]]", "[groups]\nleft = [\"right\"]\n[[link]]"),
            ("from = \"left\"\nto = \"right\"\nload", "from = \"lift\"\nto = \"right\"\nload"),
            ("from = \"left\"\nto = \"right\"\nload", "from = []\nto = \"right\"\nload"),
            ("to = \"right\"\nload", "to = \"left\"\nload"),
            (
                "[[traffic.transfers]]\nname = \"files\"\nfrom = \"left\"\nto = \"right\"",
                "[[link]]\nfrom = \"x\"\nto = \"y\"\n[[traffic.transfers]]\nname = \"files\"\nfrom = \"left\"\nto = \"y\"",
            ),
            ("load = \"8 Mbit/s\"\n", ""),
            ("load = \"8 Mbit/s\"", "load = \"8 Mbit/s\"\ncount = 3"),
            ("sizes.zipf = {", "sizes = \"endless\" # {"),
            ("load = \"8 Mbit/s\"\nsizes.zipf = {", "count = 1 # {"),
            ("sizes.zipf = {", "sizes.file = \"missing.csv\" # {"),
            ("load = \"8 Mbit/s\"\nsizes.zipf = {", "log = \"missing.csv\" # {"),
        ],
    );
}

#[test]
fn mistakes_of_measurements() {
    const END: &str = "segment = \"1460 B\" }\n";
    let wrong = [
        "name = \"ping\"",
        "name = \"ping\"\nround_trip = { idle = \"10 ms\" }\ndelay = { idle = \"10 ms\" }",
        "name = \"ping\"\nround_trip = { idle = 10 }",
        "name = \"ping\"\nround_trip = { loss = 1.5 }",
        "name = \"ping\"\nsources = [\"file\"]\nthroughput = { mean = \"1 Mbit/s\" }",
        "name = \"ping\"\nsources = [\"files\"]\nround_trip = { idle = \"10 ms\" }",
        "name = \"page\"\nsources = [\"files\"]\ntime = { mean = \"1 s\" }",
        "name = \"router\"\nqueue = { link = \"middle\" }",
    ];
    let wrong = wrong.map(|keys| format!("{END}[[measured]]\n{keys}\n"));
    let spread = format!("{END}spread = \"1 s\"\n");
    let all = wrong.iter().map(String::as_str).chain([spread.as_str()]);
    check("mistakes_of_measurements", &all.map(|wrong| (END, wrong)).collect::<Vec<_>>());
}

#[test]
fn transfers_that_are_spread_begin_within_that_time_and_seeds_differ() {
    use tidegate_core::Time;

    use crate::traffic;

    let spread =
        RIGHT.replace("load = \"8 Mbit/s\"", "count = 20\nspread = \"100 ms\"\nstart = \"1 s\"");
    let scenario = parsed(&spread).unwrap();
    let starts = |seed| {
        let mut source = traffic::source(&scenario.traffic[0], seed, 0);
        let mut next = source.first();
        let mut starts = Vec::new();
        let mut opened = Vec::new();
        while let Some(at) = next {
            starts.push(at);
            next = source.wake(at, &mut opened);
        }
        assert_eq!(opened.len(), 20);
        starts
    };
    let one = starts(1);
    assert!(one.is_sorted() && one.len() == 20);
    let within = Time(1_000_000_000)..Time(1_100_000_000);
    assert!(one.iter().all(|at| within.contains(at)), "{one:?}");
    assert_eq!(one, starts(1));
    assert_ne!(one, starts(2));
}

#[test]
fn mistakes_of_datagrams() {
    /// In place of the transfers of [`RIGHT`].
    const TRANSFERS: &str = "[[traffic.transfers]]\nname = \"files\"\nfrom = \"left\"\n\
        to = \"right\"\nload = \"8 Mbit/s\"\nsizes.zipf = { exponent = 1.99345, least = 6, most = 6849, segment = \"1460 B\" }\n";
    let source = |kind: &str, keys: &str| {
        format!("[[traffic.{kind}]]\nname = \"a\"\nfrom = \"left\"\nto = \"right\"\n{keys}\n")
    };
    let greedy = |keys: &str| source("greedy", keys);
    let curve = "curve = \"300 B + 1 Mbit/s\"";
    let wrong = [
        source("cbr", "rate = \"1 Mbit/s\"\npacket = \"200 B\"\ndeadline = \"0 s\""),
        source("frames", ""),
        source("frames", "file = \"missing.csv\""),
        source("frames", "file = \"missing.csv\"\npacket = \"40 B\""),
        greedy("packet = \"200 B\""),
        greedy("curve = \"300 B\"\npacket = \"200 B\""),
        greedy("curve = \"20 B + 1 Mbit/s\"\npacket = \"20 B\""),
        greedy(&format!("{curve}\npacket = \"301 B\"")),
        greedy(&format!("{curve}\npacket = 5")),
        greedy(&format!("{curve}\npacket.uniform = {{ least = \"40 B\" }}")),
        greedy(&format!(
            "{curve}\npacket.normal = {{ mean = \"200 B\", deviation = \"9 B\", most = \"301 B\" }}"
        )),
        greedy(&format!("{curve}\npacket = \"200 B\"\nburst = \"1 s\"")),
        greedy(&format!("{curve}\npacket = \"200 B\"\nspacing = \"1 s\"")),
        greedy(&format!("{curve}\npacket = \"200 B\"\nburst = \"0 s\"\nspacing = \"1 s\"")),
        greedy(&format!("{curve}\npacket = \"200 B\"\nburst = {{ }}\nspacing = \"1 s\"")),
        greedy(&format!("{curve}\npacket = \"200 B\"\nburst = \"1 ns\"\nspacing = \"1 ns\"")),
        greedy(&format!(
            "{curve}\npacket = \"200 B\"\nburst = \"1 s\"\n\
             spacing.uniform = {{ least = \"2 s\", most = \"1 s\" }}"
        )),
    ];
    let spoilings: Vec<_> = wrong.iter().map(|wrong| (TRANSFERS, wrong.as_str())).collect();
    check("mistakes_of_datagrams", &spoilings);
}

#[test]
fn the_largest_drawn_packet_is_one_that_the_curve_lets_pass() {
    use crate::scenario::{PacketLaw, TrafficKind};

    let largest = |keys: &str| {
        let text = format!(
            "{RIGHT}[[traffic.greedy]]\nname = \"a\"\nfrom = \"left\"\nto = \"right\"\n{keys}\n"
        );
        match parsed(&text).unwrap().traffic.remove(1).kind {
            TrafficKind::Greedy { profile, .. } => match profile.packet {
                PacketLaw::Normal { least, most, .. } => (least.0, most.0),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    let law = "packet.normal = { mean = \"300 B\", deviation = \"50 B\" }";
    let of = |curve: &str| largest(&format!("curve = \"{curve}\"\n{law}"));
    assert_eq!(of("2000 B + 1 Mbit/s"), (40, 1_536));
    assert_eq!(of("45 kB + 400 kbit/s, 700 B + 1.2 Mbit/s"), (40, 700));
    assert_eq!(of("30 B every 1 ms"), (30, 30));
}

fn whole(topology: &str, from: &str, to: &str) -> Scenario {
    let text = format!(
        "title = \"t\"\nduration = \"10 s\"\ndisciplines = [\"fifo\"]\n{topology}\n\
         [[traffic.transfers]]\nname = \"files\"\nfrom = {from}\nto = {to}\ncount = 1\n\
         sizes = \"1 MB\"\n"
    );
    parsed(&text).unwrap()
}

#[test]
fn the_dumbbell_is_what_somebody_would_write_out() {
    let built = whole(
        "[dumbbell]\npairs = 2\nrate = \"5 Mbit/s\"\nbuffer = \"30 kB\"",
        "\"senders\"",
        "\"receivers\"",
    );
    let edge = "rate = \"100 Mbit/s\"\ndelay = \"1 ms\"";
    let written = whole(
        &format!(
            "[[link]]\nfrom = \"sender1\"\nto = \"left\"\n{edge}\n\
             [[link]]\nfrom = \"sender2\"\nto = \"left\"\n{edge}\n\
             [[link]]\nname = \"bottleneck\"\nfrom = \"left\"\nto = \"right\"\n\
             rate = \"5 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"tested\"\nbuffer = \"30 kB\"\n\
             [[link]]\nfrom = \"right\"\nto = [\"receiver1\", \"receiver2\"]\n{edge}\n"
        ),
        "[\"sender1\", \"sender2\"]",
        "[\"receiver1\", \"receiver2\"]",
    );
    assert_eq!(format!("{built:#?}"), format!("{written:#?}"));
}

#[test]
fn the_access_link_is_what_somebody_would_write_out() {
    let built = whole(
        "[access]\nhosts = 2\ndown = \"20 Mbit/s\"\nup = \"5 Mbit/s\"\n\
         up_buffer = \"50 packets\"\nservers = [\"3 ms\", \"40 ms\"]",
        "\"servers\"",
        "\"hosts\"",
    );
    let written = whole(
        "[groups]\nhosts = [\"host1\", \"host2\"]\n\
         [[link]]\nfrom = \"hosts\"\nto = \"router\"\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
         [[link]]\nname = \"down\"\nfrom = \"isp\"\nto = \"router\"\nrate = \"20 Mbit/s\"\n\
         delay = \"5 ms\"\nqueue = \"tested\"\nbuffer = \"300 packets\"\n\
         back = { name = \"up\", rate = \"5 Mbit/s\", queue = \"tested\", \
         buffer = \"50 packets\" }\n\
         [[link]]\nfrom = \"isp\"\nto = \"server1\"\ndelay = \"3 ms\"\n\
         [[link]]\nfrom = \"isp\"\nto = \"server2\"\ndelay = \"40 ms\"\n",
        "[\"server1\", \"server2\"]",
        "\"hosts\"",
    );
    assert_eq!(format!("{built:#?}"), format!("{written:#?}"));
}

#[test]
fn a_buffer_in_time_is_what_the_link_behind_it_sends() {
    for (topology, written) in [
        (
            "[access]\nhosts = 1\ndown = \"20 Mbps\"\nup = \"5 mbit\"\n\
             buffer = \"100 ms\"\nup_buffer = \"200 ms\"",
            "[access]\nhosts = 1\ndown = \"20 Mbit/s\"\nup = \"5 Mbit/s\"\n\
             buffer = \"250 kB\"\nup_buffer = \"125 kB\"",
        ),
        (
            "[access]\nhosts = 1\ndown = \"1 Gbps\"\nup = \"1 gbit\"\nbuffer = \"1 ms\"",
            "[access]\nhosts = 1\ndown = \"1 Gbit/s\"\nup = \"1 Gbit/s\"\nbuffer = \"125 kB\"",
        ),
        (
            "[wifi]\nstations = 2\nhosts = 1\nbuffer = \"10 ms\"\n[groups]\nservers = [\"host1\"]",
            "[wifi]\nstations = 2\nhosts = 1\nbuffer = \"67500 B\"\n[groups]\nservers = [\"host1\"]",
        ),
    ] {
        let to = if topology.contains("wifi") { "\"stations\"" } else { "\"hosts\"" };
        let [one, other] = [topology, written].map(|it| whole(it, "\"servers\"", to));
        assert_eq!(format!("{one:#?}"), format!("{other:#?}"), "{topology}");
    }
}

#[test]
fn tcp_settings_go_over_the_profile() {
    use crate::scenario::TrafficKind;
    use crate::tcp::congestion::{CUBIC, SlowStart};
    use crate::tcp::{DelayedAck, Ns3, TcpConfig};

    let text = RIGHT.replacen(
        "[[link]]",
        r#"[tcp]
profile = "papers"
mss = "1000 B"
mss_option = true
initial_window = 3
initial_ssthresh = "64 kB"
slow_start_limit = 4
slow_start = "hystart++"
lost_syns = 2
linear_syn_timeouts = 3
quick_acks = true
rttvar_per_round = true
timer_tick = "4 ms"
separate_fin = true
receive_window = "43 kB"
initial_rto = "2 s"
min_rto = "500 ms"
max_rto = "60 s"
clock_granularity = "10 ms"
delayed_ack_segments = 3
delayed_ack_timeout = "100 ms"
limited_transmit = true
sack = true
rack_tlp = true
undo = true
congestion = "cubic"
pacing = true
ecn = true
timestamps_option = true
ns3 = ["recovery_point", "repair_end"]
syn_retries = 1
data_retries = 2
[[link]]"#,
        1,
    );
    let expected = TcpConfig {
        mss: 1_000,
        mss_option: true,
        initial_window: 3,
        initial_ssthresh: Some(Bytes(64_000)),
        slow_start_limit: 4,
        slow_start: Some(SlowStart::HyStartPlusPlus),
        lost_syns: 2,
        linear_syn_timeouts: 3,
        quick_acks: true,
        rttvar_per_round: true,
        timer_tick: Span::millis(4),
        separate_fin: true,
        receive_window: Bytes(43_000),
        initial_rto: Span::seconds(2),
        min_rto: Span::millis(500),
        max_rto: Span::seconds(60),
        clock_granularity: Span::millis(10),
        delayed_ack: Some(DelayedAck { segments: 3, timeout: Span::millis(100) }),
        limited_transmit: true,
        sack: true,
        rack_tlp: true,
        undo: true,
        congestion: CUBIC,
        pacing: true,
        ecn: true,
        timestamps_option: true,
        ns3: Ns3 { recovery_window: false, recovery_point: true, repair_end: true },
        syn_retries: 1,
        data_retries: 2,
        ..TcpConfig::papers()
    };
    let tcp_of = |text: &str| match &parsed(text).unwrap().traffic[0].kind {
        TrafficKind::Transfers { transfer, .. } => (*transfer.tcp).clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(tcp_of(&text), expected);
    // A source changes what it names, or starts from another profile.
    let own = text.replacen("load =", "tcp = { initial_window = 7 }\nload =", 1);
    assert_eq!(tcp_of(&own), TcpConfig { initial_window: 7, ..expected });
    let own = text.replacen("load =", "tcp = { profile = \"today\" }\nload =", 1);
    assert_eq!(tcp_of(&own), TcpConfig::today());
    let own = text.replacen("load =", "tcp = { delayed_ack_segments = 1 }\nload =", 1);
    assert_eq!(tcp_of(&own).delayed_ack, None);
}

#[test]
fn overrides_replace_what_the_file_says_and_are_checked_as_well() {
    let with = |overrides: &Overrides| {
        parse_with("s.toml", RIGHT, &Folder("/nowhere".into()), overrides)
            .map_err(|error| error.to_string())
    };
    let longer = Overrides {
        duration: Some(Span::seconds(20)),
        seeds: Some(vec![9]),
        disciplines: Some(vec!["las".parse().unwrap()]),
    };
    let scenario = with(&longer).unwrap();
    assert_eq!((scenario.duration, scenario.seeds.as_slice()), (Span::seconds(20), &[9][..]));
    assert_eq!(scenario.disciplines[0].label, "las");
    // What goes on until the end goes on until the new one.
    assert_eq!(scenario.traffic[0].stop.as_seconds(), 20.0);
    let none = Overrides { duration: Some(Span::ZERO), ..Overrides::default() };
    assert!(with(&none).unwrap_err().starts_with("s.toml:2:12: duration: found '0 ns'"));
}

#[test]
fn sources_keep_the_order_of_the_file() {
    let text = format!(
        "{RIGHT}[[traffic.cbr]]\nname = \"call\"\nfrom = \"left\"\nto = \"right\"\n\
         rate = \"64 kbit/s\"\npacket = \"200 B\"\n\
         [[traffic.transfers]]\nname = \"more\"\nfrom = \"left\"\nto = \"right\"\n\
         per_second = 0.5\nsizes.exponential = \"30 kB\"\n"
    );
    let scenario = parsed(&text).unwrap();
    let names: Vec<_> = scenario.traffic.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["files", "call", "more"]);
}

#[test]
fn an_unknown_discipline_without_a_near_name_lists_all() {
    let error = parsed(&RIGHT.replacen("\"fifo\"", "\"nonesuch\"", 1)).unwrap_err();
    let all: Vec<_> = tidegate_core::registry::DISCIPLINES.iter().map(|entry| entry.name).collect();
    assert!(error.ends_with(&format!("expected one of {}", all.join(", "))), "{error}");
}

#[test]
fn mistakes_of_a_wireless_cell() {
    let error = |cell: &str| {
        let text = RIGHT.replacen("[[link]]", &format!("{cell}\n[[link]]"), 1);
        parsed(&text).expect_err(cell)
    };
    for (cell, said) in [
        (
            "[wifi]\nstations = 2\nrates = [\"11 Mbit/s\"]",
            "7:10: wifi.rates: found '11 Mbit/s', expected a data rate of 802.11a: '6 Mbit/s', 9, \
             12, 18, 24, 36, 48 or 54",
        ),
        (
            "[wifi]\nstations = 2\nrates = [\"MCS 7\"]",
            "7:10: wifi.rates: found 'MCS 7', expected a data rate of 802.11a: '6 Mbit/s', 9, 12, \
             18, 24, 36, 48 or 54",
        ),
        (
            "[wifi]\nstations = 2\nrates = [\"MCS 10\"]",
            "7:10: wifi.rates: found 'MCS 10', expected a data rate of 802.11, as '54 Mbit/s', or \
             with 802.11n and ac 'MCS 0' to 'MCS 9'",
        ),
        (
            "[wifi]\nstations = 2\nstreams = 2",
            "7:11: wifi.streams: found 'streams' with 802.11a, expected it with standard = \
             '802.11n' or '802.11ac' only",
        ),
        (
            "[wifi]\nstations = 2\nstandard = \"802.11n\"\nwidth = \"80 MHz\"",
            "8:9: wifi.width: found '80 MHz', expected '20 MHz' or '40 MHz' with 802.11n",
        ),
        (
            "[wifi]\nstations = 2\nstandard = \"802.11n\"\nrates = [\"54 Mbit/s\"]",
            "8:10: wifi.rates: found '54 Mbit/s', expected a rate of this channel: MCS 0, 6.5 \
             Mbit/s; MCS 1, 13 Mbit/s; MCS 2, 19.5 Mbit/s; MCS 3, 26 Mbit/s; MCS 4, 39 Mbit/s; MCS \
             5, 52 Mbit/s; MCS 6, 58.5 Mbit/s; MCS 7, 65 Mbit/s",
        ),
        (
            "[wifi]\nstations = 2\nstandard = \"802.11n\"\nguard_interval = \"1 us\"",
            "8:18: wifi.guard_interval: found '1 us', expected '800 ns' or '400 ns'",
        ),
        (
            "[wifi]\nstations = 2\nstandard = \"802.11b\"",
            "7:12: wifi.standard: found unknown '802.11b', expected '802.11a'",
        ),
        (
            "[wifi]\nstations = 2\nrates = []",
            "7:9: wifi.rates: found an empty list, expected at least one data rate",
        ),
        (
            "[wifi]\nstations = 2\nframe_error = 1.0",
            "7:15: wifi.frame_error: found 1, expected a share of packets from 0 to below 1, as 0.01",
        ),
        (
            "[access]\nhosts = 1\ndown = \"1 Mbit/s\"\nup = \"1 Mbit/s\"\n[wifi]\nstations = 2",
            "9:1: wifi: found [wifi] beside [access], expected one of them, since both have hosts \
             and a router",
        ),
    ] {
        assert_eq!(error(cell), format!("s.toml:{said}"));
    }
}
