//! `tidegate curves`: promises, and what recorded flows send.

use std::path::Path;
use std::process::Command;

use super::{Bench, json, stderr};

/// A link that cannot keep what it promised: 2 kB are due when it has sent less.
const BROKEN_PROMISE: &str = "link = \"1 Mbit/s\"\n\
    [[real_time]]\nname = \"calls\"\nport = 5004\ncurve = \"2 kB + 80 kbit/s\"\n\
    deadline = \"20 ms\"\n";

#[test]
fn promises_that_can_be_kept_are_shown_with_what_they_leave() {
    let bench = Bench::new("curves");
    let arguments = ["curves", "papers-be", "--packet", "20 kB", "--out", "out"];
    let text = bench.good(&arguments);
    assert!(text.starts_with("Schedulable: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // Worked out independently from the paper's table.
    for figures in [
        &["5 ms", "4.614 kB", "4.614 kB"][..],
        &["100 ms", "39.214 kB", "39.214 kB"],
        &["1 s", "407.914 kB", "407.914 kB"],
        &["40 B", "1.261 ms"],
        &["1.536 kB", "2.458 ms"],
        &["20 kB", "19.169 ms"],
    ] {
        let row = |line: &str| {
            let squeezed = line.split_whitespace().collect::<Vec<_>>().join(" ");
            squeezed.starts_with(&figures.join(" "))
        };
        assert!(text.lines().any(row), "{figures:?}: {text}");
    }
    let printed = bench.good(&["curves", "papers-be", "--packet", "20 kB", "--json"]);
    assert_eq!(printed.as_bytes(), bench.bytes("out/curves.json"));
    let found = json(&printed);
    assert_eq!(found["schedulable"], true);
    assert_eq!(found["flows"][0]["burst_bytes"], 45_000);
    assert_eq!(found["best_effort_deadlines"][2]["packet_bytes"], 20_000);
    assert!(found["flows"][2]["slack_s"].as_f64().unwrap() < 0.005);
    // The page and its plots are well-formed, and the same whenever they are made.
    let names =
        ["curves.html", "plots/first-packets.svg", "plots/deadlines.svg", "plots/long-run.svg"];
    let first = names.map(|name| bench.bytes(&format!("out/{name}")));
    for (name, bytes) in names.iter().zip(&first) {
        let text = std::str::from_utf8(bytes).unwrap().replacen("<!DOCTYPE html>", "", 1);
        roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    bench.good(&arguments);
    assert_eq!(names.map(|name| bench.bytes(&format!("out/{name}"))), first);
}

#[test]
fn a_promise_that_cannot_be_kept_is_named_and_a_failure() {
    let bench = Bench::new("broken-promise");
    bench.write("calls.toml", BROKEN_PROMISE);
    let output = bench.run(&["curves", "calls.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.starts_with("tidegate: calls.toml: not schedulable: "), "{message}");
    assert!(message.contains("'calls'") && message.contains("20 ms"), "{message}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Not schedulable: ") && text.contains("80 kbit/s"), "{text}");
    let found = json(&String::from_utf8(bench.bytes("out/curves.json")).unwrap());
    assert_eq!(found["schedulable"], false);
    assert!(found["fault"].as_str().unwrap().contains("'calls'"));
    assert!(found.get("residual").is_none());
    // With what is missing it can be kept.
    bench.write("calls.toml", &BROKEN_PROMISE.replace("20 ms", "28 ms"));
    bench.good(&["curves", "calls.toml"]);
}

/// Runs the commands of a page's console blocks in a folder with what its first
/// TOML block says as `file`, and compares what they print.
#[cfg(unix)]
#[track_caller]
fn check_page(bench: &Bench, page: &str, file: &str) {
    let fenced = |language: &'static str| {
        let fence = format!("```{language}\n");
        page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect::<Vec<_>>()
    };
    bench.write(file, fenced("toml")[0]);
    let program = Path::new(env!("CARGO_BIN_EXE_tidegate")).parent().unwrap().to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [program].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).unwrap();
    let blocks = fenced("console");
    assert!(!blocks.is_empty());
    for block in blocks {
        let mut printed = String::new();
        for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).current_dir(&bench.0).env("PATH", &path);
            let output = shell.output().unwrap();
            let (text, errors) = (String::from_utf8_lossy(&output.stdout), stderr(&output));
            printed.push_str(&format!("$ {command}\n{text}{errors}"));
        }
        assert!(printed == block, "the page has to say\n\n```console\n{printed}```\n");
    }
}

#[cfg(unix)]
#[test]
fn the_guide_to_deadlines_shows_what_its_commands_print() {
    let bench = Bench::new("guide-deadlines");
    bench.write("call-g711.csv", tidegate_scenarios::text("data/call-g711.csv").unwrap());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deadlines.md");
    check_page(&bench, &std::fs::read_to_string(page).unwrap(), "calls.toml");
}

#[test]
fn what_a_recorded_flow_sent_is_a_curve_for_a_file_of_flows() {
    let bench = Bench::new("measured");
    bench.write("call.csv", "start_s,size_bytes\n7,100\n7.005,100\n7.02,100\n7.04,100\n");
    let found = json(&bench.good(&["curves", "measure", "call.csv", "--json"]));
    assert_eq!((&found[0]["flow"], &found[0]["packets"]), (&"call.csv".into(), &4.into()));
    assert_eq!(found[0]["horizon_s"], 0.04);
    let shown = found[0]["shown"].as_array().unwrap();
    // By hand: the two packets that are nearest, then the three.
    let measured: Vec<_> = shown.iter().map(|it| it["measured_bytes"].as_u64().unwrap()).collect();
    assert_eq!(measured, [100, 100, 200, 200, 300], "at 0, 1, 5, 10 and 20 ms");
    for it in shown {
        assert!(it["curve_bytes"].as_u64() >= it["measured_bytes"].as_u64(), "{it}");
    }
    // More terms come no further from it.
    let more = json(&bench.good(&["curves", "measure", "call.csv", "--json", "--terms", "4"]));
    for (few, many) in shown.iter().zip(more[0]["shown"].as_array().unwrap()) {
        assert!(many["curve_bytes"].as_u64() <= few["curve_bytes"].as_u64());
    }
    // As it is printed it can be promised.
    let text = bench.good(&["curves", "measure", "call.csv"]);
    let curve = text.lines().find(|line| line.trim().starts_with("curve = ")).unwrap();
    let flow = "name = \"call\"\nport = 5004\ndeadline = \"10 ms\"";
    bench.write("flows.toml", &format!("link = \"9 Mbit/s\"\n[[real_time]]\n{flow}\n{curve}\n"));
    assert!(bench.good(&["curves", "flows.toml"]).starts_with("Schedulable"));

    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/data/example.pcap");
    let capture = capture.to_str().unwrap();
    let all = bench.good(&["curves", "measure", capture]);
    assert!(all.contains(" tcp: ") && all.contains("more flows; see --flows"), "{all}");
    let found = json(&bench.good(&["curves", "measure", capture, "--json", "--flows", "1000"]));
    let sizes: Vec<_> =
        found.as_array().unwrap().iter().map(|flow| flow["size_bytes"].as_u64().unwrap()).collect();
    assert!(sizes.len() > 5 && sizes.is_sorted_by(|one, next| one >= next), "{sizes:?}");
    let both = json(&bench.good(&["curves", "measure", capture, "--json", "--port", "44147"]));
    let names: Vec<_> =
        both.as_array().unwrap().iter().map(|flow| flow["flow"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 2, "there and back");
    assert!(names.iter().all(|flow| flow.contains(":44147 ")), "{names:?}");
    let there = ["curves", "measure", capture, "--port", "44147", "--to", "10.0.0.6", "--json"];
    assert_eq!(json(&bench.good(&there)).as_array().unwrap().len(), 1);
    bench.write("one.csv", "start_s,size_bytes\n7,100\n");
    bench.write("text.txt", "hello\n");
    for (arguments, words) in [
        (&["missing.pcap"][..], "missing.pcap: cannot be read"),
        (&["text.txt"], "text.txt"),
        (&["one.csv"], "found no such flow with at least two packets"),
        (&[capture, "--port", "1"], "found no such flow"),
        (&["call.csv", "--port", "5004"], "are for captures"),
        (&["call.csv", "--terms", "0"], "0 is not in 1..=16"),
        (&["call.csv", "--horizon", "10"], "'10' is not a time"),
        (&["call.csv", "--horizon", "0 s"], "'0 s' for '--horizon <TIME>': expected a time above"),
        (&[], "<FILE>"),
    ] {
        let message = bench.refused(&[&["curves", "measure"], arguments].concat());
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
}

#[test]
fn a_file_of_flows_begins_with_a_built_in_one() {
    let bench = Bench::new("flows-file");
    assert!(bench.good(&["curves"]).contains("Examples:"));
    let text = bench.good(&["curves", "home-10mbit", "--print"]);
    assert!(text.starts_with("#:schema"), "{text}");
    bench.write("my.toml", &text);
    let (own, builtin) =
        (bench.good(&["curves", "my.toml"]), bench.good(&["curves", "home-10mbit"]));
    assert_eq!(own, builtin);
    let schema = json(&bench.good(&["curves", "--schema"]));
    assert_eq!(schema["properties"]["link"]["type"], "string");
    bench.write("wrong.toml", &text.replace("10 Mbit/s", "10 Mbyte/s"));
    bench.write("occupied", "a file, not a folder");
    for (arguments, words) in [
        (&["curves", "missing.toml"][..], "missing.toml: cannot be read: No such file"),
        (&["curves", "home-10mbits"], "built in: 'home-10mbit'"),
        (&["curves", "castle"], "built in: home-10mbit, calls, papers-be"),
        (&["curves", "wrong.toml"], "wrong.toml:9:8: link: found '10 Mbyte/s', expected a rate"),
        (&["curves", "my.toml", "--packet", "39 B"], "a packet from 40 B to 1 MiB"),
        (&["curves", "my.toml", "--packet", "big"], "'big' is not a size"),
        (&["curves", "my.toml", "--out", "occupied"], "occupied: cannot be written"),
        (&["curves", "my.toml", "--print", "--json"], "cannot be used with"),
        (&["curves", "my.toml", "--schema"], "cannot be used with"),
        (&["curves", "--print"], "FLOWS"),
    ] {
        let message = bench.refused(arguments);
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
}

#[test]
fn promises_for_a_faster_link_are_refused_where_they_were_written() {
    let bench = Bench::new("faster-link");
    bench.write("fast.toml", &BROKEN_PROMISE.replace("1 Mbit/s", "20 Mbit/s"));
    bench.write("log.csv", "start_s,size_bytes\n0,1000\n");
    let flows = "deadlines:flows=fast.toml";
    let message =
        bench.refused(&["replay", "log.csv", "--rate", "10Mbit/s", "--disciplines", flows]);
    let found = format!("tidegate: --disciplines: found '{flows}' with flows for 20 Mbit/s");
    assert!(message.starts_with(&found), "{message}");
    assert!(
        message.ends_with("expected flows for at most the 10 Mbit/s of that link"),
        "{message}"
    );
}
