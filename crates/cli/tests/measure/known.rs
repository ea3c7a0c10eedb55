//! Queues that are known: their sizes are found, the shorter one is named, and two that are
//! alike are not told apart.
//!
//! The two long tests are the experiment that `benches/runs` keeps. What is said of a queue is
//! held to what the queue itself says: while a measurement runs, the backlog of every queue on
//! the way is read twenty times a second, and divided by its rate it is the time that a packet
//! waits there.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::bed::{Bed, Provider, SERVER, TIDEGATE, stderr};

const DEEP: Provider = Provider { down_bps: 20_000_000, up_bps: 10_000_000, buffer_ms: 300 };
/// So many flows fill a queue of 300 ms within seconds, where the round trip is next to nothing.
const MANY: &str = "--flows=8";
/// 95% of the provider's rates.
const RATES: [&str; 4] = ["--down", "19 Mbit/s", "--up", "9.5 Mbit/s"];

#[test]
fn queues_are_measured_in_turn_and_their_files_can_be_read() {
    let Some(bed) = Bed::new("measure-turns", &DEEP) else { return };
    let before = bed.left();
    let out = bed.folder.join("out");
    let words = ["--queues", "now,short=fifo:30ms", "--rounds", "1", "--seconds", "6", MANY];
    let results = bed.measured(&[&words[..], &RATES, &["--out", out.to_str().unwrap()]].concat());
    let latency = |place: usize| results["verdict"]["latency"][place]["added_s"].as_f64().unwrap();
    let (deep, short) = (latency(0), latency(1));
    assert!((0.05..0.35).contains(&deep) && (0.002..0.05).contains(&short), "{deep} {short}");
    assert_eq!(results["verdict"]["answer"], "too-few-runs", "one round decides nothing");
    assert_eq!(results["verdict"]["baseline"], "now");
    for queue in results["queues"].as_array().unwrap() {
        let run = &queue["runs"][0];
        let (down, up) = (run["download_bps"].as_f64(), run["upload_bps"].as_f64());
        assert!((10e6..20e6).contains(&down.unwrap()), "{queue}");
        assert!((4e6..10e6).contains(&up.unwrap()), "{queue}");
    }
    let summary: Value =
        serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary, results);
    let file = out.join("round-001-1-now.flent.gz");
    let read = bed.measure(&["read", "--json", file.to_str().unwrap()]).output().unwrap();
    let read: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(read[0]["title"], "round 1, now");
    let names: Vec<_> =
        read[0]["measured"].as_array().unwrap().iter().map(|it| it["name"].as_str()).collect();
    for name in ["Ping (ms) UDP BE", "VoIP", "all 8 downloads", "all 8 uploads"] {
        assert!(names.contains(&Some(name)), "{name}: {names:?}");
    }
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    for part in
        ["id=\"figure-round-trips\"", "id=\"figure-carried-up\"", "--queues now,short=fifo:30ms"]
    {
        assert!(report.contains(part), "{part}");
    }
    assert!(out.join("plots/round-trips.svg").exists());
    fs::remove_dir_all(out).unwrap();
    assert_eq!(bed.left(), before, "everything is as it was");
}

/// Of queues that this kernel lacks it is said that they are left out; on one that has all
/// of them (`make kernel-qdisc`), each is measured, and ours in the kernel.
#[test]
fn every_queue_that_this_kernel_has_is_measured() {
    let Some(bed) = Bed::new("measure-queues", &DEEP) else { return };
    let before = bed.left();
    // Where `ip` has made a new `/sys`, what keeps queues of the kernel is not mounted.
    let words = ["measure", "run", SERVER, "--json", "--queues", "now,fq-codel,cake,efd"];
    let more = ["--rounds", "1", "--seconds", "6", "--flows", "8"];
    let script = "mount -t bpf bpf /sys/fs/bpf; exec \"$@\"";
    let all = [&["-c", script, "sh", TIDEGATE], &words[..], &more, &RATES].concat();
    let output = bed.program("client", "sh", &all).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let queues = results["queues"].as_array().unwrap();
    let left_out = results["left_out"].as_array().unwrap();
    assert_eq!(queues.len() + left_out.len(), 4, "{left_out:?}");
    // All but the provider's own keep delays short. Beside the kernel, packets also wait until
    // a busy machine runs the program, so that one is held to the provider's of the same run.
    let added = |place: usize| results["verdict"]["latency"][place]["added_s"].as_f64().unwrap();
    for (place, queue) in queues.iter().enumerate().skip(1) {
        let beside = queue["form"] == "tidegate link, beside the kernel";
        let most = if beside { added(0) / 2.0 } else { 0.06 };
        assert!(added(place) < most, "{} and {queue}", added(0));
    }
    if tidegate_qdisc::missing().is_none() {
        assert!(left_out.is_empty(), "{left_out:?}");
        assert_eq!(queues[3]["form"], "tidegate qdisc, in the kernel");
    }
    assert_eq!(bed.left(), before, "everything is as it was");
}

/// The seeds of measurements: so many, from the first.
fn seeds() -> std::ops::Range<usize> {
    let of = |name: &str| std::env::var(name).ok().map(|it| it.parse::<usize>().unwrap());
    let first = of("TIDEGATE_MEASURE_FIRST").unwrap_or(1);
    first..first + of("TIDEGATE_MEASURE_RUNS").unwrap_or(10)
}

/// The backlog of a queue over time: seconds since 1970 and bytes.
type Backlog = Vec<(f64, f64)>;

#[expect(clippy::disallowed_methods, reason = "files say when they were measured")]
fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Where queues stand, down and up, with the rates of what empties them.
struct Places {
    devices: [(&'static str, String); 2],
    rates: [f64; 2],
}

/// Runs a measurement, and reads the backlogs of queues meanwhile.
fn watched(bed: &Bed, words: &[&str], all: &[Places]) -> (Value, Vec<[Backlog; 2]>) {
    let out = bed.folder.join("out");
    let _ = fs::remove_dir_all(&out);
    let words = [&["run", super::bed::SERVER, "--json"], words, &["--out", out.to_str().unwrap()]];
    let mut child =
        bed.measure(&words.concat()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut seen: Vec<[Backlog; 2]> = all.iter().map(|_| Default::default()).collect();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let since = Instant::now();
        for (places, seen) in all.iter().zip(&mut seen) {
            for ((host, device), seen) in places.devices.iter().zip(seen) {
                let shown =
                    bed.on(host, "tc", &format!("-json -statistics qdisc show dev {device}"));
                let shown: Value =
                    serde_json::from_str(&shown.unwrap_or_default()).unwrap_or_default();
                if let Some(bytes) = shown[0]["backlog"].as_f64() {
                    seen.push((now_s(), bytes));
                }
            }
        }
        sleep(Duration::from_millis(50).saturating_sub(since.elapsed()));
    };
    assert!(status.success(), "{status}");
    let results = serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap();
    (results, seen)
}

/// When the runs of a queue counted, in seconds since 1970, from the raw values of its files.
fn windows(bed: &Bed, label: &str) -> Vec<(f64, f64)> {
    let mut windows = Vec::new();
    for file in fs::read_dir(bed.folder.join("out")).unwrap().flatten() {
        let path = file.path();
        if !path.to_str().unwrap().ends_with(&format!("-{label}.flent.gz")) {
            continue;
        }
        let mut text = String::new();
        let packed = flate2::read::GzDecoder::new(fs::File::open(&path).unwrap());
        std::io::read_to_string(packed).unwrap().clone_into(&mut text);
        let document: Value = serde_json::from_str(&text).unwrap();
        let begun = document["raw_values"]["Ping (ms) UDP BE"][0]["t"].as_f64().unwrap();
        let load = document["metadata"]["LENGTH"].as_f64().unwrap();
        let end = begun + document["metadata"]["TOTAL_LENGTH"].as_f64().unwrap();
        windows.push((end - load * 2.0 / 3.0, end));
    }
    windows
}

/// The mean wait at the queues of both directions, averaged over them, in seconds.
fn waited(seen: &[Backlog; 2], rates: [f64; 2], windows: &[(f64, f64)]) -> f64 {
    let mean = |seen: &Backlog, rate: f64| {
        let within = |at: f64| windows.iter().any(|(begin, end)| (*begin..*end).contains(&at));
        let inside: Vec<f64> = seen.iter().filter(|it| within(it.0)).map(|it| it.1).collect();
        // A device that is not there holds nothing.
        if inside.is_empty() {
            return 0.0;
        }
        assert!(inside.len() > 50, "{} looks at a queue", inside.len());
        inside.iter().sum::<f64>() / inside.len() as f64 * 8.0 / rate
    };
    f64::midpoint(mean(&seen[0], rates[0]), mean(&seen[1], rates[1]))
}

/// A provider with a queue of 300 ms each way, and one of 30 ms in front of 95% of the rates.
#[test]
#[ignore = "takes a quarter of an hour: the experiment of benches/runs"]
fn a_shorter_queue_is_named_with_what_it_gains() {
    let repeats = seeds().len();
    let Some(bed) = Bed::new("measure-known", &DEEP) else { return };
    let index = bed.on("client", "cat", "/sys/class/net/wan0/ifindex").unwrap();
    let incoming = format!("tgmeasure{}", index.trim());
    let providers = Places {
        devices: [("provider", "home0".into()), ("provider", "net0".into())],
        rates: [DEEP.down_bps as f64, DEEP.up_bps as f64],
    };
    let ours =
        Places { devices: [("client", incoming), ("client", "wan0".into())], rates: [19e6, 9.5e6] };
    let places = [providers, ours];
    let mut right = 0;
    for number in seeds() {
        let seed = number.to_string();
        let words = ["--queues", "now,short=fifo:30ms", "--rounds", "4", "--seconds", "9", MANY];
        let (results, seen) =
            watched(&bed, &[&words[..], &RATES, &["--seed", &seed]].concat(), &places);
        let verdict = &results["verdict"];
        let added = |place: usize| verdict["latency"][place]["added_s"].as_f64().unwrap();
        // A packet may wait at both places, and in front of a lower rate it does so at first.
        let truth = ["now", "short"].map(|label| {
            let windows = windows(&bed, label);
            let waits = std::iter::zip(&seen, &places);
            waits.map(|(seen, places)| waited(seen, places.rates, &windows)).sum::<f64>()
        });
        let told = [added(0), added(1)];
        let gain = (told[0] - told[1], truth[0] - truth[1]);
        let is_right = verdict["answer"] == "run"
            && verdict["run"] == serde_json::json!(["short"])
            && (gain.0 / gain.1 - 1.0).abs() < 0.1;
        right += usize::from(is_right);
        println!(
            "{number}: {} {}; added {:.1} and {:.1} ms, in queues {:.1} and {:.1} ms; gain {:.1} \
             of {:.1} ms{}",
            verdict["answer"],
            verdict["run"],
            told[0] * 1e3,
            told[1] * 1e3,
            truth[0] * 1e3,
            truth[1] * 1e3,
            gain.0 * 1e3,
            gain.1 * 1e3,
            if is_right { "" } else { " WRONG" },
        );
    }
    println!("right: {right} of {repeats}");
    assert_eq!(right, repeats);
}

/// The same queue twice, under two names.
#[test]
#[ignore = "takes half an hour: the experiment of benches/runs"]
fn equal_queues_are_not_told_apart() {
    let repeats = seeds().len();
    let Some(bed) = Bed::new("measure-equal", &DEEP) else { return };
    let mut alike = 0;
    for number in seeds() {
        let seed = number.to_string();
        // Rounds, seconds and flows are those that a user gets.
        let words = ["--queues", "a=fifo:150ms,b=fifo:150ms"];
        let results = bed.measured(&[&words[..], &RATES, &["--seed", &seed]].concat());
        let (verdict, said) = (&results["verdict"], &results["said"]["headline"]);
        alike += usize::from(verdict["answer"] == "alike");
        let rounds = results["seeds"].as_array().unwrap().len();
        println!(
            "{number}: {} {} after {rounds} rounds: {said}",
            verdict["answer"], verdict["run"]
        );
        for change in verdict["changes"].as_array().unwrap() {
            println!("    {change}");
        }
    }
    println!("no difference: {alike} of {repeats}");
    assert!(alike * 10 >= repeats * 9, "{alike} of {repeats}");
}
