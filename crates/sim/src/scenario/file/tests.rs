//! What is refused and with which words; what equals what.

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
    assert_eq!(scenario.disciplines[1].parameters(), [("threshold", "30 kB".to_string())]);
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
