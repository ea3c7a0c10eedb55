//! Sweeps as people and scripts see them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::{json, small, stderr};

/// A map of four points, in the folder of this name.
fn map<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let keys = ["--over", "rate=2 Mbit/s,8 Mbit/s", "--over", "dumbbell.pairs=2,3"];
    [&["sweep", "small.toml"], &keys[..], &["--out", out], more].concat()
}

#[test]
fn a_sweep_writes_the_same_maps_with_any_number_of_threads() {
    let bench = small("sweep");
    let text = bench.good(&map("one", &["--threads", "1"]));
    assert!(text.contains("What to run over rate and dumbbell.pairs:"), "{text}");
    assert!(text.contains("16 runs in "), "{text}");
    let printed = bench.good(&map("many", &["--threads", "4", "--json"]));
    for name in ["sweep.csv", "sweep.json", "report.html"] {
        let one = bench.bytes(&format!("one/{name}"));
        assert!(!one.is_empty() && one == bench.bytes(&format!("many/{name}")), "{name}");
    }
    assert_eq!(printed.as_bytes(), bench.bytes("one/sweep.json"));
    let found = json(&printed);
    assert_eq!(found["points"].as_array().unwrap().len(), 4);
    assert_eq!(found["points"][1]["at"], serde_json::json!(["2 Mbit/s", "3"]));
    assert!(found["points"][3]["result"]["verdict"]["answer"].is_string());
    let manifest = json(&String::from_utf8(bench.bytes("one/manifest.json")).unwrap());
    let refused = bench.refused(&["compare", "--from", "one/manifest.json"]);
    assert!(refused.contains("found the manifest of a sweep"), "{refused}");
    assert_eq!(
        (&manifest["partial"], &manifest["over"][1]["key"]),
        (&serde_json::json!(false), &serde_json::json!("dumbbell.pairs"))
    );
    assert_eq!(fs::read_dir(bench.0.join("one/points")).unwrap().count(), 4);
    assert!(!bench.0.join("one/.parts").exists());
    // A row of each measure for each point and discipline.
    let csv = String::from_utf8(bench.bytes("one/sweep.csv")).unwrap();
    let calls = csv.lines().filter(|line| line.contains(",traffic,call,call_rating,"));
    assert_eq!(calls.count(), 4 * 2);
    assert!(csv.starts_with("rate,dumbbell.pairs,discipline,kind,name,metric,estimate,value,"));
    assert!(bench.bytes("one/plots/what-to-run.svg").starts_with(b"<?xml"));
}

#[test]
fn a_point_of_a_sweep_is_what_compare_finds_there() {
    let bench = small("sweep-point");
    bench.good(&map("map", &[]));
    let set = super::SMALL.replace("4 Mbit/s", "8 Mbit/s").replace("pairs = 2", "pairs = 3");
    bench.write("set.toml", &set);
    bench.good(&["compare", "set.toml", "--out", "alone"]);
    let alone = String::from_utf8(bench.bytes("alone/summary.csv")).unwrap();
    let swept = String::from_utf8(bench.bytes("map/sweep.csv")).unwrap();
    let of_point = swept.lines().filter_map(|line| line.strip_prefix("8 Mbit/s,3,"));
    assert!(of_point.eq(alone.lines().skip(1)));
    let verdict = |name: &str| json(&String::from_utf8(bench.bytes(name)).unwrap());
    assert_eq!(
        verdict("map/sweep.json")["points"][3]["result"]["verdict"],
        verdict("alone/summary.json")["verdict"]
    );
}

#[test]
fn a_chosen_measure_is_printed_and_one_key_gives_a_list() {
    let bench = small("sweep-measure");
    let arguments = ["sweep", "small.toml", "--over", "buffer=10 packets,100 ms", "--out", "o"];
    let text = bench.good(&[&arguments[..], &["--measure", "queue_packets"]].concat());
    assert!(text.contains("Packets queued, mean – Link ‘bottleneck’:"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("10 packets  ")), "{text}");
}

#[test]
fn wrong_keys_and_values_are_refused_before_anything_runs() {
    let bench = small("sweep-refused");
    for (arguments, words) in [
        (&["small.toml", "--over", "dumbbell.rat=1"][..], "expected 'rate'"),
        (
            &["small.toml", "--over", "raet=1"],
            "--over: raet: found unknown 'raet', expected 'rate'",
        ),
        (
            &["small.toml", "--over", "rate=1 Mbit/s,0 Mbit/s"],
            "--over: rate: found '0 Mbit/s', expected a rate from 1 bit/s",
        ),
        (&["small.toml", "--over", "rate=1 Mbit/s..2 s:3"], "two rates, times, sizes or numbers"),
        (
            &["small.toml", "--over", "load=1", "--over", "rtt=9 ms", "--over", "seeds=1"],
            "found 3 keys, expected one or two",
        ),
        (&["small.toml", "--over", "load=1", "--over", "load=2"], "the same key twice"),
        (&["small.toml", "--over", "load=1", "--measure", "cal_rating"], "expected 'call_rating'"),
        (&["small.toml", "--over", "seeds=1,2"], "which --seeds names"),
        (&["smal.toml", "--over", "load=1"], "smal.toml: cannot be read"),
        (&["small.toml"], "--over is missing, expected a key of the scenario"),
        (&["small.toml", "--down", "1 Mbit/s", "--over", "load=1"], "cannot be used with"),
    ] {
        let message = bench.refused(&[&["sweep"], arguments].concat());
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
    assert!(!bench.0.join("tidegate-sweep-small").exists());
    // Results are replaced only on request.
    bench.good(&["sweep", "small.toml", "--over", "load=1", "--out", "o"]);
    let again = bench.refused(&["sweep", "small.toml", "--over", "load=1", "--out", "o"]);
    assert!(again.contains("contains earlier results"), "{again}");
}

#[test]
fn an_interrupted_sweep_keeps_its_points_and_continues() {
    let bench = small("sweep-interrupted");
    let arguments = [
        "sweep",
        "small.toml",
        "--over",
        "load=1..1.5:6",
        "--duration",
        "40 s",
        "--seeds",
        "2",
        "--threads",
        "1",
        "--out",
        "o",
    ];
    let mut command = bench.command();
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let points = bench.0.join("o/points");
    let finished = || {
        fs::read_dir(&points).is_ok_and(|mut files| {
            files.any(|file| file.unwrap().path().extension().is_some_and(|it| it == "json"))
        })
    };
    while !finished() && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(2));
    }
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("of 6 points are measured; the same command with --out o"));
    let report = String::from_utf8(bench.bytes("o/report.html")).unwrap();
    assert!(report.contains("Incomplete. ") && report.contains("missing"));
    let kept = fs::read_dir(&points).unwrap().count();
    assert!((1..6).contains(&kept), "{kept}");
    bench.good(&arguments);
    let mut whole: Vec<_> = arguments.to_vec();
    *whole.last_mut().unwrap() = "whole";
    bench.good(&whole);
    for name in ["sweep.csv", "sweep.json", "report.html"] {
        assert!(
            bench.bytes(&format!("o/{name}")) == bench.bytes(&format!("whole/{name}")),
            "{name}"
        );
    }
}

#[test]
fn the_help_and_the_page_have_the_same_short_names() {
    let help = small("sweep-help").good(&["sweep", "--help"]);
    let names = help.lines().skip_while(|line| !line.contains("These names stand")).skip(1);
    let names: Vec<_> = names
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  ").map(|(name, _)| name.trim()))
        .collect();
    assert!(names.len() > 3, "{help}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sweep.md");
    let page = fs::read_to_string(page).unwrap();
    for name in names {
        assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
    }
}

const STUDY: &str = r#"
scenario = "small.toml"
over = ["rate=2 Mbit/s,8 Mbit/s", "dumbbell.pairs=2..3:2"]
seeds = 2
flows = true
"#;

#[test]
fn a_study_keeps_each_run_and_does_none_again() {
    let bench = small("study");
    bench.write("study.toml", STUDY);
    let text = bench.good(&["sweep", "study.toml", "--out", "o"]);
    assert!(text.contains("16 runs in "), "{text}");
    assert!(text.ends_with("Tables: o/runs, o/flows\n"), "{text}");
    let part = "o/flows/rate=8%20Mbit%2Fs/dumbbell.pairs=3/discipline=efd%2C%20%2210%22/2.parquet";
    let before = bench.bytes(part);
    assert!(before.starts_with(b"PAR1") && before.ends_with(b"PAR1"));

    let more = bench.good(&["sweep", "study.toml", "--seeds", "3", "--out", "o", "--json"]);
    let found = json(&more);
    assert_eq!((&found["runs"], &found["missing"]), (&24.into(), &0.into()));
    assert_eq!(found["failures"], serde_json::json!([]));
    assert_eq!(found["over"][1]["values"], serde_json::json!(["2", "3"]));
    assert_eq!(bench.bytes(part), before);
    let text = bench.good(&["sweep", "study.toml", "--out", "o"]);
    assert!(text.contains("0 runs in ") && text.contains("(16 were there before)"), "{text}");

    // The folder of another study is left alone.
    bench.write("study.toml", &STUDY.replace("small.toml", "household"));
    let refused = bench.refused(&["sweep", "study.toml", "--out", "o"]);
    assert!(refused.contains("o: found runs of another scenario, expected another"), "{refused}");
}

#[test]
fn the_file_of_a_study_takes_no_options_of_a_map() {
    let bench = small("study-refused");
    bench.write("study.toml", STUDY);
    for (options, words) in [
        (&["--over", "rtt=5 ms"][..], "--over does not go with a study: the file says what varies"),
        (&["--measure", "queue_packets"], "--measure does not go with a study"),
        (&["--force", "--out", "o"], "--force does not go with a study"),
        (&["--disciplines", "fifo,fifo"], "found 'fifo' twice"),
    ] {
        let refused = bench.refused(&[&["sweep", "study.toml"], options].concat());
        assert!(refused.contains(words), "{refused}");
    }
    bench.write("study.toml", &STUDY.replace("8 Mbit/s", "0 Mbit/s"));
    let refused = bench.refused(&["sweep", "study.toml"]);
    assert!(refused.contains("over: rate: found '0 Mbit/s'"), "{refused}");
    bench.write("study.toml", &STUDY.replace("seeds", "sedes"));
    let refused = bench.refused(&["sweep", "study.toml"]);
    assert!(refused.contains("study.toml:4:1: sedes: found unknown 'sedes'"), "{refused}");
    assert!(bench.refused(&["sweep", "small.toml"]).contains("--over is missing, expected a key"));
}
