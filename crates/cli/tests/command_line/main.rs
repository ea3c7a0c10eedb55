//! The program as people and scripts see it: exit codes, one-line errors,
//! results that can be made again.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod curves;
mod daemon;
mod gateway;
mod gateways;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod link_router;
mod lookups;
#[cfg(unix)]
mod measured;
mod packaging;
#[cfg(target_os = "linux")]
mod qdisc;
#[cfg(unix)]
mod recordings;
mod running;
mod serving;
mod sweeps;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder of its own for one test, removed at the end.
struct Bench(PathBuf);

impl Bench {
    fn new(name: &str) -> Bench {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Bench(path)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.current_dir(&self.0).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Runs what must succeed, and returns what it prints.
    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs what must be refused as wrong input, and returns the one line it says.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.starts_with("tidegate: "), "{message}");
        assert!(output.stdout.is_empty());
        message.trim_end().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Every file that a comparison promises to repeat to the byte.
const RESULTS: [&str; 6] =
    ["flows.csv", "links.csv", "progress.csv", "summary.csv", "summary.json", "report.html"];

const SMALL: &str = r#"
title = "Small"
duration = "3 s"
seeds = 2
disciplines = ["fifo", { name = "efd", label = "efd, \"10\"", threshold = "10 packets" }]
dumbbell = { pairs = 2, rate = "4 Mbit/s", buffer = "30 packets" }
[[traffic.transfers]]
name = "files"
from = "senders"
to = "receivers"
load = "3 Mbit/s"
sizes.file = "sizes.csv"
[[traffic.transfers]]
name = "long"
from = "sender1"
to = "receiver1"
count = 1
sizes = "endless"
follow = true
[[traffic.cbr]]
name = "call"
from = "sender2"
to = "receiver2"
rate = "64 kbit/s"
packet = "200 B"
"#;

const SIZES: &str = "size_bytes,cumulative_probability\n1000,0.0\n5000,0.5\n90000,1.0\n";

fn small(name: &str) -> Bench {
    let bench = Bench::new(name);
    bench.write("small.toml", SMALL);
    bench.write("sizes.csv", SIZES);
    bench
}

#[test]
fn a_comparison_gives_the_same_bytes_with_any_number_of_threads_and_from_its_manifest() {
    let bench = small("bytes");
    bench.good(&["compare", "small.toml", "--out", "one", "--threads", "1"]);
    bench.good(&["compare", "small.toml", "--out", "many", "--threads", "4"]);
    // The manifest brings along what it needs.
    fs::remove_file(bench.0.join("small.toml")).unwrap();
    fs::remove_file(bench.0.join("sizes.csv")).unwrap();
    let again = bench.run(&["compare", "--from", "one/manifest.json", "--out", "again"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(stderr(&again).contains("the same as before"), "{}", stderr(&again));
    for name in RESULTS {
        let one = bench.bytes(&format!("one/{name}"));
        assert!(!one.is_empty(), "{name}");
        for other in ["many", "again"] {
            assert!(one == bench.bytes(&format!("{other}/{name}")), "{other}/{name}");
        }
    }
    assert!(!bench.0.join("one/.parts").exists());
    let manifest = json(&String::from_utf8(bench.bytes("one/manifest.json")).unwrap());
    assert_eq!(manifest["partial"], false);
    assert_eq!(manifest["runs"].as_array().unwrap().len(), 4);
    assert_eq!(manifest["contenders"][1]["parameters"]["threshold"], "10 packets");
    assert_eq!(manifest["data"][0]["content"], SIZES);
}

#[test]
fn overrides_are_part_of_the_manifest() {
    let bench = small("overrides");
    let arguments = [
        "compare",
        "small.toml",
        "--out",
        "one",
        "--seeds",
        "1",
        "--duration",
        "2 s",
        "--disciplines",
        "las,run2c:threshold=12345 B",
    ];
    bench.good(&arguments);
    bench.good(&["compare", "--from", "one/manifest.json", "--out", "two"]);
    for name in RESULTS {
        assert!(bench.bytes(&format!("one/{name}")) == bench.bytes(&format!("two/{name}")));
    }
    let summary = json(&String::from_utf8(bench.bytes("two/summary.json")).unwrap());
    assert_eq!(summary["duration_s"], 2.0);
    assert_eq!(summary["disciplines"][1]["label"], "run2c:threshold=12345 B");
}

#[test]
fn results_that_changed_are_told() {
    let bench = small("changed");
    bench.good(&["compare", "small.toml", "--out", "one", "--seeds", "1"]);
    let text = String::from_utf8(bench.bytes("one/manifest.json")).unwrap();
    let mut manifest = json(&text);
    manifest["results"]["flows.csv"] = "0".repeat(64).into();
    bench.write("other.json", &manifest.to_string());
    let output = bench.run(&["compare", "--from", "other.json", "--out", "two"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not the same as before: flows.csv"), "{}", stderr(&output));
}

#[test]
fn the_table_fits_a_terminal_and_json_is_what_the_folder_has() {
    let bench = small("table");
    let table = bench.good(&["compare", "small.toml", "--out", "one"]);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    for word in ["discipline", "fifo", "efd, \"10\"", "goodput", "one/report.html"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let printed = bench.good(&["compare", "small.toml", "--out", "two", "--json"]);
    assert_eq!(printed.as_bytes(), bench.bytes("two/summary.json"));
    assert_eq!(json(&printed)["disciplines"][0]["label"], "fifo");
    // Labels with commas and quotes stay in their column.
    let mut flows = csv::Reader::from_reader(std::io::Cursor::new(bench.bytes("one/flows.csv")));
    assert!(flows.records().any(|row| &row.unwrap()[0] == "efd, \"10\""));
}

#[test]
fn a_home_link_needs_no_file_and_begins_with_an_answer() {
    let bench = Bench::new("home");
    let link = ["compare", "--down", "5Mbps", "--up", "1 mbit"];
    let runs = ["--seeds", "3", "--duration", "20 s", "--disciplines", "fifo,fq-codel"];
    let text = bench.good(&[&link[..], &runs, &["--out", "home"]].concat());
    assert!(text.contains("\nRun fq-codel instead of fifo.\n  + calls arrive within "), "{text}");
    assert!(text.contains("  tc class replace dev eth1 parent 1: classid 1:1 htb rate 950kbit\n"));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let summary = json(&String::from_utf8(bench.bytes("home/summary.json")).unwrap());
    let verdict = &summary["verdict"];
    assert_eq!((&verdict["answer"], &verdict["run"][0]), (&"run".into(), &"fq-codel".into()));
    assert_eq!(verdict["changes"][0]["effect"], "gain");
    assert!(verdict["latency"][0]["grade"].as_str() > verdict["latency"][1]["grade"].as_str());
    assert_eq!(summary["live_forms"][0]["label"], "fq-codel");
    let report = String::from_utf8(bench.bytes("home/report.html")).unwrap();
    assert!(report.contains("Run fq-codel instead of fifo.") && report.contains("download='4750'"));
    // What is printed is what is run.
    let printed = bench.good(&[&link[..], &["--print"]].concat());
    let manifest = json(&String::from_utf8(bench.bytes("home/manifest.json")).unwrap());
    assert_eq!(manifest["scenario"]["text"], printed.as_str());
}

#[test]
fn what_two_sources_carry_stands_side_by_side() {
    let bench = small("sources");
    let runs = ["--seeds", "1", "--duration", "5 s", "--disciplines", "fifo,las-ack"];
    let table = bench.good(&[&["compare", "wifi-54", "--out", "one"][..], &runs].concat());
    for word in ["throughput", "ratio", "Ratio: uploads over downloads."] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let summary = json(&String::from_utf8(bench.bytes("one/summary.json")).unwrap());
    let rows = String::from_utf8(bench.bytes("one/summary.csv")).unwrap();
    for discipline in summary["disciplines"].as_array().unwrap() {
        let rate = |source: usize| {
            discipline["traffic"][source]["throughput_bps"]["value"].as_f64().unwrap()
        };
        let ratio = discipline["ratios"][0]["throughput"]["value"].as_f64().unwrap();
        assert!((ratio / (rate(0) / rate(1)) - 1.0).abs() < 1e-9, "{ratio}");
        let label = discipline["label"].as_str().unwrap();
        // Of one run there is no interval.
        let metric = "uploads / downloads,throughput_ratio,median";
        let row = format!("{label},traffic ratio,{metric},{ratio},,,1\n");
        assert!(rows.contains(&row), "{row}: {rows}");
    }
    let report = String::from_utf8(bench.bytes("one/report.html")).unwrap();
    assert!(report.contains("‘uploads’ over ‘downloads’"));
    assert!(!report.contains("No transfer finished"));
}

#[test]
fn earlier_results_are_not_overwritten_unless_asked_for() {
    let bench = small("policy");
    bench.good(&["compare", "small.toml", "--seeds", "1"]);
    bench.good(&["compare", "small.toml", "--seeds", "1"]);
    assert!(bench.0.join("tidegate-small/report.html").exists());
    assert!(bench.0.join("tidegate-small-2/report.html").exists());
    let again = ["compare", "small.toml", "--seeds", "1", "--out", "tidegate-small"];
    assert!(bench.refused(&again).contains("contains earlier results"));
    bench.write("tidegate-small/notes.txt", "mine");
    bench.good(&[&again[..], &["--force"]].concat());
    assert_eq!(bench.bytes("tidegate-small/notes.txt"), b"mine");
}

#[test]
fn wrong_input_is_one_line_and_exit_code_2() {
    let bench = small("wrong");
    bench.write("broken.toml", "title = \n");
    bench.write("rate.toml", &SMALL.replace("4 Mbit/s", "0 Mbit/s"));
    bench.write("data.toml", &SMALL.replace("sizes.csv", "missing.csv"));
    bench.write("node.toml", &SMALL.replace("\"receiver2\"", "\"recever2\""));
    bench.write("count.toml", &SMALL.replace("count = 1", "count = 1000000"));
    for (file, dscp) in [("name.toml", "\"EX\""), ("number.toml", "64")] {
        let source = "[[traffic.transfers]]\n";
        bench.write(file, &SMALL.replacen(source, &format!("{source}dscp = {dscp}\n"), 1));
    }
    bench.write("latin.toml", "");
    fs::write(bench.0.join("latin.toml"), b"title = \"\xe4\"").unwrap();
    bench.write("text.txt", "hello\n");
    bench.write("occupied", "a file, not a folder");
    for (arguments, words) in [
        (&[][..], "a command is missing"),
        (&["fly"], "unrecognized subcommand 'fly'"),
        (&["compare", "--fast"], "unexpected argument '--fast'"),
        (&["compare", "--down", "5 Mbit/s"], "found --down alone, expected --up too"),
        (&["compare", "--down", "5 MB/s", "--up", "1 Mbps"], "'5 MB/s' is not a rate"),
        (&["compare", "--down", "5 Mbps", "--up", "1 Mbps", "--buffer", "0 ms"], "'0 ms' is not"),
        (&["compare", "small.toml", "--preset", "dsl"], "cannot be used with"),
        (&["compare", "missing.toml"], "missing.toml: cannot be read: No such file"),
        (&["compare", "househlod"], "built in: 'household'"),
        (&["compare", "."], "cannot be read"),
        (&["compare", "broken.toml"], "broken.toml:1:9: "),
        (&["compare", "latin.toml"], "latin.toml: found bytes that are not UTF-8"),
        (&["compare", "rate.toml"], "rate.toml:6:32: dumbbell.rate: found '0 Mbit/s'"),
        (&["compare", "data.toml"], "sizes.file: found 'missing.csv'"),
        (&["compare", "node.toml"], "unknown node 'recever2', expected 'receiver2'"),
        (&["compare", "count.toml"], "found 1000000 transfers at once, expected at most 28232"),
        (
            &["compare", "name.toml"],
            "dscp: found 'EX', expected a codepoint: CS0 to CS7, AF11 to AF43, EF, VA, LE, \
             or a number from 0 to 63",
        ),
        (&["compare", "number.toml"], "dscp: found 64, expected a codepoint"),
        (&["compare", "small.toml", "--disciplines", "fifi"], "expected 'fifo'"),
        (&["compare", "small.toml", "--disciplines", "fifo,fifo"], "found 'fifo' twice"),
        (&["compare", "small.toml", "--disciplines", "efd:treshold=1"], "no parameter 'treshold'"),
        (&["compare", "small.toml", "--disciplines", ""], "unknown discipline ''"),
        (&["compare", "small.toml", "--seeds", "0"], "0 is not in 1..=10000"),
        (&["compare", "small.toml", "--seeds", "1000000000000"], "is not in 1..=10000"),
        (&["compare", "small.toml", "--duration", "10"], "'10' is not a time"),
        (&["compare", "small.toml", "--duration", "0 s"], "duration: found '0 ns'"),
        (&["compare", "small.toml", "--threads", "0"], "--threads"),
        (&["compare", "small.toml", "--out", "occupied"], "occupied: cannot be written to"),
        (&["compare", "small.toml", "--out", "occupied/below"], "cannot be written to"),
        (&["compare", "small.toml", "--from", "x.json"], "cannot be used with"),
        (&["compare", "--from", "x.json"], "x.json: cannot be read"),
        (&["compare", "--from", "text.txt"], "text.txt: is not a manifest"),
        (&["replay", "missing.pcap", "--rate", "1 Mbit/s"], "missing.pcap: cannot be read"),
        (&["replay", "text.txt", "--rate", "1 Mbit/s"], "text.txt"),
        (&["replay", "small.toml"], "--rate"),
        (&["replay", "text.txt", "--rate", "0 Mbit/s"], "a rate above zero"),
        (&["replay", "text.txt", "--rate", "fast"], "'fast' is not a rate"),
        (&["reproduce", "EFD-99"], "found claim 'EFD-99', expected a paper (EFD"),
        (&["reproduce", "--quick", "--full"], "cannot be used with"),
        (&["reproduce", "--seeds", "7", "--full"], "cannot be used with"),
        (&["reproduce", "--seeds", "0"], "0 is not in 1..=10000"),
        (&["reproduce", "EFD-3", "--out", "occupied"], "occupied: cannot be written"),
        (&["disciplines", "efq"], "unknown discipline 'efq', expected 'efd'"),
        (&["requests", "papre"], "unknown request scheduler 'papre', expected 'paper'"),
        (&["scenarios", "castle"], "unknown scenario 'castle', expected one of household"),
        (&["sizes", "missing.har"], "missing.har"),
        (&["sizes", "text.txt"], "text.txt"),
        (&["completions", "tcsh"], "invalid value 'tcsh'"),
        (&["man", "occupied"], "occupied: cannot be written"),
    ] {
        let message = bench.refused(arguments);
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
    // What was refused left nothing behind.
    assert!(fs::read_dir(&bench.0).unwrap().all(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        !name.starts_with("tidegate-")
    }));
}

#[test]
fn every_list_is_there_as_text_and_as_json() {
    let bench = Bench::new("lists");
    assert!(bench.good(&["disciplines"]).contains("fifo"));
    assert!(bench.good(&["disciplines", "efd"]).contains("threshold = 20 packets"));
    let list = json(&bench.good(&["disciplines", "--json"]));
    assert!(list.as_array().unwrap().iter().any(|entry| entry["name"] == "efd"));
    let one = json(&bench.good(&["disciplines", "efd", "--json"]));
    assert_eq!(one["parameters"][0]["name"], "threshold");
    assert!(bench.good(&["requests"]).contains("'tidegate requests NAME'"));
    assert!(bench.good(&["requests", "msf"]).contains("long_from = 16 kB"));
    let list = json(&bench.good(&["requests", "--json"]));
    assert_eq!(list[0]["name"], "msf");
    assert!(bench.good(&["reproduce", "--list"]).contains("EFD-5"));
    let claims = json(&bench.good(&["reproduce", "EFD", "--list", "--json"]));
    assert!(claims.as_array().unwrap().iter().any(|claim| claim["id"] == "EFD-7"));
    assert!(bench.good(&["scenarios"]).contains("household"));
    assert!(bench.good(&["scenarios", "household"]).starts_with("#:schema"));
    assert_eq!(json(&bench.good(&["scenarios", "--json"]))[0]["name"], "household");
    assert_eq!(json(&bench.good(&["scenarios", "office", "--json"]))["name"], "office");
    assert_eq!(json(&bench.good(&["scenarios", "--schema"]))["type"], "object");
    bench.write("log.csv", "start_s,size_bytes\n0,1000\n1,2000\n");
    assert!(bench.good(&["sizes", "log.csv"]).contains("size_bytes,cumulative_probability"));
    assert_eq!(json(&bench.good(&["sizes", "log.csv", "--json"]))["files"][0]["sizes"], 2);
    assert!(bench.good(&["completions", "bash"]).contains("tidegate"));
    bench.good(&["man", "pages"]);
    assert!(bench.0.join("pages/tidegate-compare.1").exists());
    assert!(bench.good(&["--help"]).contains("Examples:"));
    assert!(bench.good(&["--version"]).starts_with("tidegate "));
}

#[test]
fn a_claim_is_measured_and_its_verdict_follows_from_its_checks() {
    let bench = Bench::new("claims");
    let arguments = ["reproduce", "EFD-1b", "--seeds", "2", "--json", "--out", "pages"];
    let printed = bench.good(&arguments);
    let findings = json(&printed);
    let checks = findings[0]["checks"].as_array().unwrap();
    let holding = checks.iter().filter(|check| check["outcome"] == "holds").count();
    let verdict = match holding {
        0 => "does-not-hold",
        all if all == checks.len() => "holds",
        _ => "holds-in-part",
    };
    assert_eq!(findings[0]["verdict"], verdict);
    let kept = json(&String::from_utf8(bench.bytes("pages/results.json")).unwrap());
    for field in ["id", "verdict", "text", "seeds", "scenarios"] {
        assert_eq!(kept[0][field], findings[0][field]);
    }
    assert_eq!(kept[0]["checks"].as_array().unwrap().len(), checks.len());
    assert_eq!(findings[0]["seeds"], serde_json::json!([1, 2]));
    let page = String::from_utf8(bench.bytes("pages/EFD.md")).unwrap();
    assert!(page.contains("tidegate reproduce EFD-1b --seeds 2\n"));
    for figure in findings[0]["figures"].as_array().unwrap() {
        let file = format!("{}.svg", figure["id"].as_str().unwrap());
        assert!(page.contains(&file));
        let svg = String::from_utf8(bench.bytes(&format!("pages/{file}"))).unwrap();
        roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    // Again, with another number of threads: the same to the byte.
    let index = bench.bytes("pages/README.md");
    let again = [&arguments[..], &["--threads", "1"]].concat();
    assert_eq!(bench.good(&again), printed);
    assert_eq!(bench.bytes("pages/README.md"), index);
}

#[test]
fn recorded_traffic_goes_through_disciplines() {
    let bench = Bench::new("replay");
    bench.write("log.csv", "start_s,size_bytes\n100,20000\n100.5,300000\n101,5000\n");
    let arguments = ["replay", "log.csv", "--rate", "2 Mbit/s", "--out", "log", "--json"];
    let summary = json(&bench.good(&arguments));
    assert_eq!(summary["disciplines"].as_array().unwrap().len(), 4);
    assert_eq!(summary["disciplines"][0]["all"]["completed"], 3);
    // More at once than a run has open: the table says so.
    bench.write("crowd.csv", &format!("start_s,size_bytes\n{}", "0,1000\n".repeat(28_242)));
    let arguments = ["replay", "crowd.csv", "--rate", "1 Mbit/s", "--disciplines", "fifo"];
    let table = bench.good(&[&arguments[..], &["--out", "crowd"]].concat());
    assert!(table.contains("because 28232 were open: 10."), "{table}");
    let report = String::from_utf8(bench.bytes("crowd/report.html")).unwrap();
    assert!(report.contains("Too many at once."));
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/data/example.pcap");
    let capture = capture.to_str().unwrap();
    let arguments =
        ["replay", capture, "--rate", "1 Mbit/s", "--disciplines", "fifo,las", "--out", "cap"];
    let table = bench.good(&arguments);
    assert!(table.contains("las"), "{table}");
    // A capture is not text: the manifest says where it is, and what it was.
    let manifest = json(&String::from_utf8(bench.bytes("cap/manifest.json")).unwrap());
    assert!(manifest["data"][0]["path"].is_string());
    for name in ["log", "cap"] {
        let from = format!("{name}/manifest.json");
        let again = format!("{name}-again");
        bench.good(&["compare", "--from", &from, "--out", &again]);
    }
    let mut altered = manifest.clone();
    altered["data"][0]["sha256"] = "0".into();
    bench.write("altered.json", &altered.to_string());
    let message = bench.refused(&["compare", "--from", "altered.json", "--out", "none"]);
    assert!(message.contains("is not the file that the manifest is about"), "{message}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_comparison_keeps_what_is_done_and_says_so() {
    let bench = small("interrupt");
    // Ten seeds of a long run: the first is done long before the last.
    let text = SMALL.replace("\"3 s\"", "\"120 s\"").replace("seeds = 2", "seeds = 1000");
    bench.write("long.toml", &text);
    let mut command = bench.command();
    command.args(["compare", "long.toml", "--out", "out", "--threads", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The second run has begun when its rows have a file.
    let second = bench.0.join("out/.parts/1000.flows.csv");
    let patience = Instant::now() + Duration::from_secs(60);
    while !second.exists() {
        assert!(Instant::now() < patience, "the second run never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The shell has `kill` built in; as a program it is not on every machine.
    let kill = format!("kill -INT {}", child.id());
    let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("marked as partial"), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("PARTIAL"));
    let manifest = json(&String::from_utf8(bench.bytes("out/manifest.json")).unwrap());
    assert_eq!(manifest["partial"], true);
    let done = manifest["runs"].as_array().unwrap();
    assert!(!done.is_empty() && done.len() < 2_000);
    assert_eq!(json(&String::from_utf8(bench.bytes("out/summary.json")).unwrap())["partial"], true);
    // The rows are those of the runs that are reported.
    let mut flows = csv::Reader::from_reader(std::io::Cursor::new(bench.bytes("out/flows.csv")));
    let rows = flows.records().map(|row| row.unwrap());
    let runs: std::collections::BTreeSet<_> =
        rows.map(|row| (row[0].to_string(), row[1].to_string())).collect();
    assert_eq!(runs.len(), done.len());
    assert!(bench.0.join("out/report.html").exists());
    assert!(!bench.0.join("out/.parts").exists());
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let bench = Bench::new("pipe");
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_tidegate");
    command.args(["-c", &format!("'{program}' scenarios --schema | head -n 1")]);
    let output = command.current_dir(&bench.0).output().unwrap();
    assert!(output.status.success());
    assert_eq!(stderr(&output), "");
}
