//! Measurements of links: a result of Flent beside its link simulated.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use super::{Bench, json};

/// A result of `tcp_1up` over a link of 2 Mbit/s with a round trip of 20 ms, to which the
/// load adds up to 100 ms in a sawtooth; 15 s, with a ping and the queue of a router.
fn result() -> String {
    let mut pings = String::new();
    for n in 0..150_u32 {
        let at = f64::from(n) * 0.1;
        let load = if at < 3.0 { 0.0 } else { 60.0 + f64::from(n % 41) };
        let comma = if n > 0 { "," } else { "" };
        let _ = write!(pings, "{comma}{{\"t\":{},\"val\":{},\"seq\":{n}}}", 1e9 + at, 20.0 + load);
    }
    let mut upload = String::new();
    for n in 1..=12_u32 {
        let comma = if n > 1 { "," } else { "" };
        let at = 1e9 + 3.0 + f64::from(n);
        let _ = write!(upload, "{comma}{{\"t\":{at},\"dur\":1.0,\"val\":1.9}}");
    }
    format!(
        "{{\"metadata\":{{\"BATCH_NAME\":\"b\",\"FLENT_VERSION\":\"2.2.0\",\"HOST\":\"server\",\
         \"LENGTH\":12,\"LOCAL_HOST\":\"laptop\",\"NAME\":\"tcp_1up\",\
         \"SYSCTLS\":{{\"net.ipv4.tcp_congestion_control\":\"cubic\"}}}},\"version\":4,\
         \"x_values\":[],\"results\":{{}},\"raw_values\":{{\"Ping (ms) ICMP\":[{pings}],\
         \"TCP upload\":[{upload}]}}}}"
    )
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

#[test]
fn a_result_is_set_beside_its_link_simulated() {
    let bench = Bench::new("measured");
    fs::write(bench.0.join("up.flent.gz"), packed(result().as_bytes())).unwrap();
    let text = bench.good(&["measured", "up.flent.gz", "--out", "o"]);
    for part in [
        "tcp_1up on laptop towards server, 12 s of load",
        "Assumed:\n  - 1.968 Mbit/s down too",
        "a round trip of 20 ms without load, the median of 'Ping (ms) ICMP'",
        "a FIFO, since the file describes no shaped queue",
        "cubic as the congestion control",
        "  simulated, fifo",
        "  difference, %",
        "Grade of what load adds to 'Ping (ms) ICMP', each way: measured B",
        "instead of fifo.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let summary = json(&String::from_utf8(bench.bytes("o/summary.json")).unwrap());
    let rows = summary["beside"].as_array().unwrap();
    let row = |figure: &str| rows.iter().find(|row| row["figure"] == figure).unwrap();
    assert_eq!(row("idle")["measured"], 0.02);
    // The idle round trip is that of the file, and the link is as full as it was measured.
    for (figure, tolerance) in [("idle", 0.001), ("throughput", 0.02)] {
        let row = row(figure);
        let (measured, simulated) =
            (row["measured"].as_f64().unwrap(), row["simulated"].as_f64().unwrap());
        assert!((simulated / measured - 1.0).abs() < tolerance, "{row}");
    }
    assert!(String::from_utf8(bench.bytes("o/report.html")).unwrap().contains("table-measured"));
    // The scenario has it all: what was measured stays beside the results.
    bench.good(&["compare", "--from", "o/manifest.json", "--out", "again"]);
}

#[test]
fn the_scenario_can_be_printed_changed_and_run() {
    let bench = Bench::new("measured-print");
    bench.write("up.flent", &result());
    let given = ["--down", "20 Mbit/s", "--up", "2 Mbit/s", "--rtt", "30 ms", "--buffer", "50 ms"];
    let link = [&["measured", "up.flent"], &given[..], &["--discipline", "pie"]].concat();
    let scenario = bench.good(&[&link[..], &["--print"]].concat());
    for part in ["rate = \"2 Mbit/s\"", "buffer = \"50 ms\"", "{ name = \"pie\"", "[[measured]]"] {
        assert!(scenario.contains(part), "{part}: {scenario}");
    }
    assert!(scenario.contains("From the command line: 20 Mbit/s down; 2 Mbit/s up"), "{scenario}");
    bench.write("my.toml", &scenario);
    let text = bench.good(&["compare", "my.toml", "--disciplines", "cake", "--seeds", "1"]);
    assert!(text.contains("  simulated, cake"), "{text}");
}

#[test]
fn a_test_whose_load_is_not_known_is_reported_as_measured() {
    let bench = Bench::new("measured-alone");
    bench.write("flood.flent", &result().replace("tcp_1up", "udp_flood"));
    let text = bench.good(&["measured", "flood.flent"]);
    assert!(text.contains("Ping (ms) ICMP") && !text.contains("simulated,"), "{text}");
    assert!(text.contains("Not simulated: the load of 'udp_flood' is not known"), "{text}");
    let document = json(&bench.good(&["measured", "flood.flent", "--json"]));
    assert_eq!(document["measured"][0]["figure"], "idle");
    let refused = bench.refused(&["measured", "flood.flent", "--print"]);
    assert!(refused.contains("flood.flent: found a test that cannot be simulated"), "{refused}");
}

#[test]
fn other_files_are_refused_and_results_elsewhere_point_here() {
    let bench = Bench::new("measured-refused");
    fs::write(bench.0.join("up.flent.gz"), packed(result().as_bytes())).unwrap();
    let refused = bench.refused(&["compare", "up.flent.gz"]);
    assert!(refused.contains("expected a scenario; 'tidegate measured up.flent.gz'"), "{refused}");
    let refused = bench.refused(&["replay", "up.flent.gz", "--rate", "1 Mbit/s"]);
    assert!(refused.contains("expected a recording of traffic; 'tidegate measured"), "{refused}");
    bench.write("my.toml", "title = \"no measurement\"");
    let refused = bench.refused(&["measured", "my.toml"]);
    assert!(refused.contains("my.toml: header at byte 0: found 'title = "), "{refused}");
    let refused = bench.refused(&["measured", "missing.flent.gz"]);
    assert!(refused.contains("missing.flent.gz: cannot be read"), "{refused}");
    // A small file that unpacks to more than any result has.
    fs::write(bench.0.join("bomb.gz"), packed(&vec![b' '; (256 << 20) + 1])).unwrap();
    let refused = bench.refused(&["measured", "bomb.gz"]);
    assert!(refused.contains("found more than 256 MiB"), "{refused}");
}
