//! Lookups of names in what `tidegate compare` prints and writes, and what is wrong with a
//! source of them.

use crate::{Bench, json};

/// Lookups beside an upload that fills the way to the resolver.
const NAMES: &str = r#"title = "names"
duration = "40 s"
warm_up = "5 s"
seeds = 6
disciplines = ["fifo", "fq-codel"]
dumbbell = { pairs = 2, rate = "4 Mbit/s", buffer = "200 packets" }
[[traffic.dns]]
name = "names"
from = "sender1"
to = "receiver1"
per_second = 4
stop = "30 s"
[[traffic.transfers]]
name = "upload"
from = "sender2"
to = "receiver2"
count = 1
sizes = "endless"
"#;

#[test]
fn lookups_are_in_the_tables_the_files_and_the_verdict() {
    let bench = Bench::new("lookups");
    bench.write("names.toml", NAMES);
    let text = bench.good(&["compare", "names.toml", "--out", "out"]);
    for words in [
        "Run fq-codel instead of fifo.",
        "lookups of ‘names’ finish",
        "lookups of names",
        "until the host gives up.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let summary = json(&String::from_utf8(bench.bytes("out/summary.json")).unwrap());
    let [fifo, fq_codel] = [0, 1].map(|place| {
        let source = &summary["disciplines"][place]["traffic"][0];
        assert_eq!(source["datagrams"], false);
        let failed = source["lookups"]["failed_ratio"]["value"].as_f64().unwrap();
        assert!(failed < 0.01 && (place == 0 || failed == 0.0), "{failed}");
        source["lookups"]["time"]["mean_s"]["value"].as_f64().unwrap()
    });
    // 6 ms there and back without a queue.
    assert!(fq_codel > 0.006 && fq_codel < 0.02 && fifo > 10.0 * fq_codel, "{fifo} {fq_codel}");
    let needs = summary["verdict"]["contests"].as_array().unwrap();
    assert!(needs.iter().any(|it| it["need"] == "lookups" && it["source"] == "names"));
    let rows = String::from_utf8(bench.bytes("out/summary.csv")).unwrap();
    for metric in ["mean_s", "median_s", "p95_s", "p99_s"] {
        assert!(rows.contains(&format!("fifo,traffic,names,lookup_{metric},")), "{metric}");
    }
    for metric in ["asked_again", "failed"] {
        assert!(rows.contains(&format!("fifo,traffic,names,lookups_{metric}_ratio,")), "{metric}");
    }
    // A lookup is a flow, and no short transfer.
    let flows = String::from_utf8(bench.bytes("out/flows.csv")).unwrap();
    assert!(flows.lines().filter(|row| row.contains(",names,")).count() > 1_000);
    assert_eq!(summary["disciplines"][0]["short"]["started"], 0);
    let report = String::from_utf8(bench.bytes("out/report.html")).unwrap();
    assert!(report.contains("table-lookups") && report.contains("Times of the lookups of ‘names’"));
}

#[test]
fn what_is_wrong_with_lookups_is_one_line_with_its_place() {
    let bench = Bench::new("wrong-lookups");
    let measured =
        "[[measured]]\nname = \"ping\"\nsources = [\"names\"]\ndelay = { mean = \"1 ms\" }\n";
    for (right, wrong, words) in [
        ("per_second = 4\n", "", ":7:1: traffic.dns.per_second: found nothing"),
        ("per_second = 4", "per_second = 0", ":11:14: traffic.dns.per_second: found"),
        ("per_second = 4", "per_second = 1e9", ":11:14: traffic.dns.per_second: found"),
        (
            "per_second = 4",
            "load = \"1 Mbit/s\"",
            "traffic.dns.load: found unknown 'load', expected one of name",
        ),
        (
            "per_second = 4",
            "per_second = 4\nanswer = \"1.3 kB\"",
            ":12:10: traffic.dns.answer: found '1.3 kB', expected from '67 B'",
        ),
        (
            "per_second = 4",
            "per_second = 4\nquery = \"90 B\"\nanswer = \"80 B\"",
            ":13:10: traffic.dns.answer: found '80 B', expected from '90 B'",
        ),
        ("per_second = 4", "per_second = 4\nanswer = \"endless\"", "found 'endless'"),
        (
            "per_second = 4",
            "per_second = 4\nquery = \"28 B\"",
            ":12:9: traffic.dns.query: found '28 B', expected from '45 B' to '299 B'",
        ),
        ("per_second = 4", "per_second = 4\ntimeout = \"31 s\"", ":12:11: traffic.dns.timeout"),
        ("per_second = 4", "per_second = 4\ntimeout = \"0 s\"", "expected from '1 ms' to '30 s'"),
        ("per_second = 4", "per_second = 4\nattempts = 6", ":12:12: traffic.dns.attempts"),
        ("to = \"receiver1\"", "to = \"sender1\"", "found 'sender1' at both ends"),
        ("\"receiver1\"", "\"resolver\"", "unknown node 'resolver'"),
        (
            "[[traffic.transfers]]",
            &format!("{measured}[[traffic.transfers]]"),
            "a source of datagrams",
        ),
    ] {
        assert!(NAMES.contains(right), "{right}");
        bench.write("wrong.toml", &NAMES.replacen(right, wrong, 1));
        let message = bench.refused(&["compare", "wrong.toml"]);
        assert!(message.contains("wrong.toml:") && message.contains(words), "{words}: {message}");
    }
}
