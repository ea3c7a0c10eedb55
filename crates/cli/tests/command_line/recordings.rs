//! Recordings as people have them: cut, compressed, from pipes, from other tools.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use super::{Bench, json, stderr};

fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/data/example.pcap")
}

fn summary(bench: &Bench, folder: &str) -> serde_json::Value {
    json(&String::from_utf8(bench.bytes(&format!("{folder}/summary.json"))).unwrap())
}

/// Runs it with a file as standard input.
fn with_input(bench: &Bench, input: &str, arguments: &[&str]) -> Output {
    let file = File::open(bench.0.join(input)).unwrap();
    bench.command().args(arguments).stdin(file).output().unwrap()
}

#[test]
fn a_capture_that_breaks_off_is_replayed_and_the_results_say_so() {
    let bench = Bench::new("cut-capture");
    let whole = fs::read(capture()).unwrap();
    fs::write(bench.0.join("cut.pcap"), &whole[..whole.len() - 7]).unwrap();
    let rate = ["--rate", "2 Mbit/s"];
    let text = bench.good(&[&["replay", "cut.pcap", "--out", "o"], &rate[..]].concat());
    for part in ["found from the capture", "the file breaks off within packet", "have reacted"] {
        assert!(text.replace('\n', " ").contains(part), "{part}: {text}");
    }
    let description = summary(&bench, "o")["description"].as_str().unwrap().to_string();
    assert!(description.contains("breaks off"), "{description}");
    // Each part of the capture in each direction, and each flow with its addresses.
    let recorded = String::from_utf8(bench.bytes("o/recorded.csv")).unwrap();
    assert!(recorded.starts_with("discipline,seed,traffic,flow,protocol,source,"));
    assert!(recorded.lines().count() > 10);
    let parts = summary(&bench, "o")["disciplines"][0]["traffic"].as_array().unwrap().len();
    assert!(parts >= 2, "{parts}");
    let json_alone = bench.good(&[&["replay", "cut.pcap", "--json"], &rate[..]].concat());
    assert!(json(&json_alone)["disciplines"].is_array());
}

#[test]
fn the_transfers_of_a_capture_react_and_prefixes_say_who_is_local() {
    let bench = Bench::new("as-transfers");
    let path = capture();
    let path = path.to_str().unwrap();
    let replay = ["replay", path, "--rate", "2 Mbit/s", "--as-transfers"];
    let text = bench
        .good(&[&replay[..], &["--out", "o", "--local", "10.0.0.0/8,192.168.0.0/16"]].concat());
    assert!(text.contains("--local") && text.contains("simulated with TCP"), "{text}");
    let sources = &summary(&bench, "o")["disciplines"][0]["traffic"];
    assert_eq!(sources[0]["name"], "downloads");
    assert_eq!(sources[0]["datagrams"], false);
    let refused = bench.refused(&[&replay[..], &["--local", "10.0.0.0/8x"]].concat());
    assert!(refused.contains("a prefix such as 192.168.0.0/16"), "{refused}");
    let nobody = bench.refused(&[&replay[..], &["--local", "203.0.113.0/24"]].concat());
    assert!(nobody.contains("found no packet that crosses the link"), "{nobody}");
}

#[test]
fn logs_of_other_tools_are_replayed_from_files_and_from_standard_input() {
    let bench = Bench::new("logs");
    let squid =
        "1500000002.500     90 192.0.2.7 TCP_MISS/200 6245 GET http://e/ - HIER_DIRECT/- -\n";
    bench.write("squid.log", squid);
    bench.write(
        "conn.log",
        "#fields\tts\torig_bytes\tresp_bytes\tconn_state\n1.5\t300\t90000\tSF\n2.5\t70000\t9\tSF\n",
    );
    bench.write("flows.csv", "start_s,size_bytes\n0,0\n0.5,1000\n");
    bench.write("absurd.csv", "start_s,size_bytes\n0,0\n0.5,1000000000001\n");
    let rate = ["--rate", "5 Mbit/s", "--disciplines", "fifo"];
    for (input, expected) in [
        ("squid.log", "From an HTTP log: one download of 6.245 kB, no uploads."),
        (
            "conn.log",
            "From a connection log: one download of 90 kB, one upload of 70 kB. Left out: 309 B",
        ),
        ("flows.csv", "From a flow log: 2 downloads of 1 kB together"),
    ] {
        let folder = format!("of-{input}");
        let arguments = [&["replay", input, "--out", &folder], &rate[..]].concat();
        let text = bench.good(&arguments).replace('\n', " ");
        assert!(text.contains(expected), "{text}");
        let folder = format!("piped-{input}");
        let output =
            with_input(&bench, input, &[&["replay", "-", "--out", &folder], &rate[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    // A transfer of no bytes ends.
    assert_eq!(summary(&bench, "of-flows.csv")["disciplines"][0]["traffic"][0]["completed"], 2);
    let absurd = bench.refused(&[&["replay", "absurd.csv"], &rate[..]].concat());
    assert!(
        absurd.contains("absurd.csv:3: found '1000000000001', expected whole bytes"),
        "{absurd}"
    );
}

#[test]
fn the_mean_of_sizes_is_that_of_the_whole_sample_however_few_the_points() {
    let bench = Bench::new("sizes-mean");
    let sizes: Vec<u64> = (1..=100).map(|number| number * number * 100).collect();
    let rows: String = sizes.iter().map(|size| format!("0,{size}\n")).collect();
    bench.write("flows.csv", &format!("start_s,size_bytes\n{rows}"));
    let found = json(&bench.good(&["sizes", "flows.csv", "--points", "2", "--json"]));
    let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
    assert_eq!(found["mean_bytes"].as_f64(), Some(mean));
    assert!(found["points"].as_array().unwrap().len() < 10);
    let text = bench.good(&["sizes", "flows.csv", "--points", "2"]);
    assert!(text.contains(&format!("mean {mean:.0} bytes")), "{text}");
}

#[test]
fn what_never_ends_is_refused() {
    let bench = Bench::new("endless");
    for arguments in
        [&["sizes", "/dev/zero"][..], &["replay", "/dev/zero", "--rate", "1 Mbit/s"][..]]
    {
        let refused = bench.refused(arguments);
        assert!(refused.contains("found more than 1 GiB"), "{refused}");
    }
    bench.write(
        "zero.toml",
        "title = \"z\"\nduration = \"1 s\"\ndisciplines = [\"fifo\"]\n\
        dumbbell = {}\n[[traffic.transfers]]\nname = \"z\"\nfrom = \"senders\"\n\
        to = \"receivers\"\nlog = \"/dev/zero\"\n",
    );
    let refused = bench.refused(&["compare", "zero.toml"]);
    assert!(refused.contains("not a regular file"), "{refused}");
}

#[test]
fn paths_need_not_be_utf_8() {
    let bench = Bench::new("paths");
    let name = OsStr::from_bytes(b"caf\xe9");
    let folder = bench.0.join(name);
    fs::create_dir(&folder).unwrap();
    fs::copy(capture(), folder.join(OsStr::from_bytes(b"a\xfe.pcap"))).unwrap();
    let mut command = bench.command();
    command.arg("replay").arg(Path::new(name).join(OsStr::from_bytes(b"a\xfe.pcap")));
    command.args(["--rate", "5 Mbit/s", "--by", "nothing", "--out", "o"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_recording_in_place_of_a_scenario_points_to_replay() {
    let bench = Bench::new("misplaced");
    let path = capture();
    let refused = bench.refused(&["compare", path.to_str().unwrap()]);
    assert!(refused.contains("expected a scenario; 'tidegate replay"), "{refused}");
}

#[test]
fn what_was_meant_is_named() {
    let bench = Bench::new("meant");
    let message = bench.refused(&["scenarios", "houshold"]);
    assert!(message.ends_with("expected 'household'"), "{message}");
    let message = bench.refused(&["compare", "houshold"]);
    assert!(message.ends_with("built in: 'household'"), "{message}");
    let message = bench.refused(&["comapre"]);
    assert!(message.contains("expected 'compare'"), "{message}");
    let message = bench.refused(&["compare", "--sedes", "2"]);
    assert!(message.contains("expected '--seeds'"), "{message}");
}

#[test]
fn a_second_interrupt_leaves_no_parts_behind() {
    let bench = Bench::new("interrupts");
    let mut child = bench
        .command()
        .args(["compare", "office", "--seeds", "40", "--out", "o"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let parts = bench.0.join("o/.parts");
    while !parts.exists() && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(5));
    }
    // The shell has `kill` built in; as a program it is not on every machine.
    let kill = format!("kill -INT {}", child.id());
    let interrupt = || Command::new("sh").args(["-c", &kill]).status().unwrap();
    interrupt();
    thread::sleep(Duration::from_millis(1));
    interrupt();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!parts.exists());
}

#[test]
fn the_doctor_says_what_works_and_what_helps() {
    let bench = Bench::new("doctor");
    let text = bench.good(&["doctor"]);
    assert!(text.contains("What works here:") && text.contains("yes  simulation"), "{text}");
    let found = json(&bench.good(&["doctor", "--json"]));
    for form in found["forms"].as_array().unwrap() {
        let missing = form["missing"].as_array().unwrap();
        assert_eq!(form["works"], missing.is_empty(), "{form}");
    }
}

/// A capture of which each frame keeps 54 bytes: for so many seconds a call of G.711 in RTP
/// from a user, 50 packets a second of which one is missing, and beside it a steady stream of
/// datagrams to the user that are none of RTP; and if asked for, an upload of 560 kbit/s.
fn call(seconds: u16, with_upload: bool) -> Vec<u8> {
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 54, 1] {
        capture.extend(word.to_le_bytes());
    }
    let mut frame = |at_us: u32, ends: [[u8; 4]; 2], protocol: u8, length: u16, behind: &[u8]| {
        for word in [at_us / 1_000_000, at_us % 1_000_000, 54, 14 + u32::from(length)] {
            capture.extend(word.to_le_bytes());
        }
        let mut bytes = vec![2; 12];
        let [high, low] = length.to_be_bytes();
        bytes.extend([8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0]);
        ends.iter().for_each(|end| bytes.extend(end));
        bytes.extend(behind);
        assert_eq!(bytes.len(), 54);
        capture.extend(bytes);
    };
    let (user, other) = ([192, 168, 1, 2], [198, 51, 100, 7]);
    let udp = [0x13, 0x88, 0x17, 0x70, 0, 180, 0, 0];
    for number in (0..seconds * 50).filter(|number| *number != 100) {
        let at_us = u32::from(number) * 20_000;
        let mut rtp = vec![0x80, 8];
        rtp.extend(number.to_be_bytes());
        rtp.extend([0, 0, 0, 0, 1, 2, 3, 4]);
        frame(at_us, [user, other], 17, 200, &[&udp[..], &rtp].concat());
        frame(at_us + 5_000, [other, user], 17, 200, &[&udp[..], &[0xdc; 12]].concat());
        if with_upload {
            let sequence = (u32::from(number) * 1_400).to_be_bytes();
            let ports = [0x9c, 0x40, 1, 0xbb];
            let rest = [0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0];
            frame(at_us + 7_000, [user, other], 6, 1_440, &[&ports[..], &sequence, &rest].concat());
        }
    }
    capture
}

#[test]
fn a_recording_has_a_verdict_over_its_parts_and_its_calls_stay_beside_tcp() {
    let bench = Bench::new("verdict-of-a-recording");
    fs::write(bench.0.join("call.pcap"), call(60, true)).unwrap();
    let replay = ["replay", "call.pcap", "--rate", "500 kbit/s", "--delay", "20 ms"];
    let disciplines = ["--disciplines", "fifo,fq-codel,efd", "--out", "o"];
    let text = bench.good(&[&replay[..], &disciplines, &["--as-transfers"]].concat());
    for part in ["one upload of", "Calls are sent as they were", "Run fq-codel instead of fifo"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let summary = summary(&bench, "o");
    assert_eq!(summary["verdict"]["parts"], 10);
    let names = summary["disciplines"][0]["traffic"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let report = String::from_utf8(bench.bytes("o/report.html")).unwrap();
    assert!(report.contains("One recording. ") && report.contains("10 equal parts"));
    // The file of the scenario says 'seeds = 1'; nothing else speaks of what there is not.
    let (before, file) = report.split_once("<summary>Scenario file</summary>").unwrap();
    let (_, behind) = file.split_once("</pre>").unwrap();
    for part in [before, behind] {
        let place = part.find("seed").map(|at| &part[at.saturating_sub(80)..]);
        assert_eq!(place.map(|it| it.chars().take(120).collect::<String>()), None);
    }
    let still = ["compare", "--from", "o/manifest.json", "--out", "again"];
    assert!(bench.good(&still).contains("Run fq-codel instead of fifo"));
}

#[test]
fn calls_of_a_capture_are_rated_under_each_discipline() {
    let bench = Bench::new("calls-in-a-capture");
    fs::write(bench.0.join("call.pcap"), call(8, false)).unwrap();
    let text = bench.good(&[
        "replay",
        "call.pcap",
        "--rate",
        "1 Mbit/s",
        "--delay",
        "40 ms",
        "--out",
        "o",
    ]);
    for part in [
        "up: RTP, payload type 8 (G.711 A-law), 1 missing in the capture; 399 packets, 80 kbit/s",
        "down: UDP at a steady rate, 399 packets, 80 kbit/s",
        "R is the E-model's rating",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let disciplines = &summary(&bench, "o")["disciplines"];
    for discipline in disciplines.as_array().unwrap() {
        let traffic = discipline["traffic"].as_array().unwrap();
        let up = traffic.iter().find(|it| it["name"].as_str().unwrap().ends_with(" up")).unwrap();
        assert_eq!(up["recorded_call"]["rtp"][0]["source"], 0x0102_0304);
        // 40 ms, 1.6 ms on the wire and 20 ms until a packet is full.
        let rating = up["call_rating"].to_string();
        assert!(rating.contains("91."), "{rating}");
    }
    assert!(String::from_utf8(bench.bytes("o/report.html")).unwrap().contains("table-calls"));
    let calls = String::from_utf8(bench.bytes("o/calls.csv")).unwrap();
    assert_eq!(calls.lines().count(), 1 + 2 * 4, "{calls}");
    assert!(calls.contains(" up,rtp,8,G.711 A-law,399,1,"), "{calls}");
    bench.good(&["compare", "--from", "o/manifest.json", "--out", "again"]);
}
