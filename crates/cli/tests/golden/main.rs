//! Golden runs: what the program printed and wrote, kept to the byte.
//!
//! A change that is meant to change no result leaves all of them as they are. Each
//! run is a file beside this one: its command, what it prints, and the SHA-256 of
//! each table that it writes. What it prints is kept as text so that a difference
//! can be read; the tables are too large for that.
//!
//! ```sh
//! make golden                                          # checks them
//! UPDATE_GOLDEN=1 cargo test -p tidegate --test golden # keeps what comes out now
//! ```
//!
//! A commit that updates a golden run says why its figures moved.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

/// What a run leaves behind.
enum Leaves {
    /// A folder of tables, of which these are kept.
    Tables(&'static [&'static str]),
    /// Figures on standard output, as JSON, of which the numbers are kept.
    Numbers,
}

/// Where a comparison puts its rows and figures. Its report repeats them in words
/// and plots, whose wording is no result.
const TABLES: &[&str] = &["flows.csv", "links.csv", "progress.csv", "summary.csv", "summary.json"];

/// The same of a comparison of gateways.
const TABLES_OF_GATEWAYS: &[&str] = &["flows.csv", "links.csv", "summary.csv", "summary.json"];

#[test]
fn a_household_and_an_office_are_as_they_were() {
    compare("household", &["household", "--seeds", "2", "--duration", "20 s"]);
    compare("office", &["office", "--seeds", "1", "--duration", "20 s"]);
}

#[test]
fn calls_with_deadlines_are_as_they_were() {
    compare("calls", &["calls", "--seeds", "1", "--duration", "20 s"]);
}

#[test]
fn a_wireless_cell_is_as_it_was() {
    compare("wifi-54", &["wifi-54", "--seeds", "1", "--duration", "20 s"]);
}

#[test]
fn a_map_of_a_dumbbell_is_as_it_was() {
    let over = ["--over", "rate=5 Mbit/s..50 Mbit/s:3", "--over", "rtt=6 ms,100 ms"];
    let usual = ["--disciplines", "fifo,fq-codel,efd", "--seeds", "2", "--duration", "70 s"];
    let arguments = [&["sweep", "dumbbell"], &over[..], &usual[..]].concat();
    check("sweep", &arguments, &Leaves::Tables(&["sweep.csv", "sweep.json"]));
}

#[test]
fn a_home_on_wi_fi_is_as_it_was() {
    let usual = ["--disciplines", "fifo,fq-codel,cake", "--seeds", "3", "--duration", "20 s"];
    let home = ["--preset", "dsl", "--wifi", "802.11n MCS 3", "--stations", "6"];
    compare("home-wifi", &[&home[..], &usual[..]].concat());
}

#[test]
fn a_claim_of_each_paper_is_as_it_was() {
    for claim in ["EFD-1b", "LAS-1", "BE-T1", "MSF-11", "WLAN-5"] {
        check(claim, &["reproduce", claim, "--quick", "--json"], &Leaves::Numbers);
    }
}

#[test]
fn gateways_are_as_they_were() {
    gateways("school", "school", &["--seeds", "1"]);
    gateways("saturated", "saturated.toml", &[]);
}

#[test]
fn rivals_at_each_of_their_settings_are_as_they_were() {
    gateways("rivals", "rivals", &[]);
}

#[test]
fn connections_that_stay_open_and_hidden_requests_are_as_they_were() {
    gateways("shared-connections", "shared-connections", &[]);
    gateways("hidden", "hidden", &[]);
}

#[test]
fn what_could_cost_msf_is_as_it_was() {
    for name in ["equal", "failing", "unfilled", "viewers"] {
        gateways(name, name, &[]);
    }
}

#[test]
fn gateways_of_all_loads_sizes_and_rates_are_as_they_were() {
    for name in ["unfilled-2-mbit", "unfilled-1-gbit", "lognormal", "pareto", "school-equal"] {
        gateways(name, name, &[]);
    }
    for (size, load) in [(15, 80), (15, 90), (28, 80), (100, 80), (100, 90), (500, 80), (500, 90)] {
        let name = format!("equal-{size}-kb-{load}");
        gateways(&name, &name, &[]);
    }
}

#[test]
fn users_beside_others_who_are_in_the_way_are_as_they_were() {
    for name in ["silent", "hostile", "hostile-full", "viewers-and-pupils", "downloads"] {
        gateways(name, name, &[]);
    }
}

#[test]
fn gateways_beside_a_cell_marks_and_flow_queues_are_as_they_were() {
    for name in ["gateway-wifi", "gateway-ecn", "gateway-fq-codel"] {
        gateways(name, &format!("{name}.toml"), &[]);
    }
}

/// Each is a file of `scenarios/situations` and one here, and `docs/situations.md` says
/// whether somebody who knows such links would agree.
const SITUATIONS: [&str; 15] = [
    "home",
    "gamer",
    "dsl-uplink",
    "lte",
    "satellite",
    "office",
    "school",
    "cafe-wifi",
    "video",
    "server",
    "call",
    "idle",
    "evening-dsl",
    "evening-cable",
    "evening-fibre",
];

#[test]
fn verdicts_on_situations_are_as_they_were() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/situations.md");
    let page = fs::read_to_string(page).unwrap();
    for name in SITUATIONS {
        let file = format!("../../../../scenarios/situations/{name}.toml");
        check(&format!("situation-{name}"), &["compare", &file], &Leaves::Tables(&[]));
        let text = fs::read_to_string(kept(&format!("situation-{name}.txt"))).unwrap();
        let headline = text.lines().nth(4).unwrap();
        assert!(page.contains(headline), "docs/situations.md lacks '{headline}' for {name}");
    }
}

fn compare(name: &str, arguments: &[&str]) {
    check(name, &[&["compare"], arguments].concat(), &Leaves::Tables(TABLES));
}

fn gateways(name: &str, file: &str, arguments: &[&str]) {
    let arguments = [&["requests", "compare", file], arguments].concat();
    check(name, &arguments, &Leaves::Tables(TABLES_OF_GATEWAYS));
}

/// The kept file of this name.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Runs the program, and holds what comes out against the file that is kept.
fn check(name: &str, arguments: &[&str], leaves: &Leaves) {
    let now = run(name, arguments, leaves);
    let path = kept(&format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(&path, now).unwrap();
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    let differs = before.lines().zip(now.lines()).find(|(before, now)| before != now);
    assert!(
        before == now,
        "{name} is not as it was; the first line that differs: {differs:?}.\n\
         If it should differ, keep what comes out now with UPDATE_GOLDEN=1 and say why.\n{now}"
    );
}

fn run(name: &str, arguments: &[&str], leaves: &Leaves) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("golden-{name}"));
    let _ = fs::remove_dir_all(&folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    // Results name the file as it was given: it is beside this one, wherever that is.
    command.current_dir(kept("")).args(arguments).stdin(Stdio::null());
    if let Leaves::Tables(_) = leaves {
        command.arg("--out").arg(&folder);
    }
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let shown: Vec<_> = arguments.iter().map(|argument| in_words(argument)).collect();
    let mut text = format!("$ tidegate {}\n\n", shown.join(" "));
    match leaves {
        Leaves::Tables(tables) => {
            // The last line says how long it took, and where it is.
            let is_result = |line: &&str| !line.contains(" Report: ");
            printed.lines().filter(is_result).for_each(|line| writeln!(text, "{line}").unwrap());
            for table in *tables {
                let content = fs::read(folder.join(table)).unwrap();
                writeln!(text, "{}  {table}", digest(&content)).unwrap();
            }
            fs::remove_dir_all(&folder).unwrap();
        }
        Leaves::Numbers => {
            let mut numbers = String::new();
            collect(&serde_json::from_str(&printed).unwrap(), &mut numbers);
            let count = numbers.lines().count();
            writeln!(text, "{}  {count} numbers", digest(numbers.as_bytes())).unwrap();
        }
    }
    text
}

/// An argument as it would be typed.
fn in_words(argument: &str) -> String {
    if argument.contains(' ') { format!("'{argument}'") } else { argument.into() }
}

fn digest(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The numbers of a document, one a line.
fn collect(value: &serde_json::Value, numbers: &mut String) {
    match value {
        serde_json::Value::Number(number) => writeln!(numbers, "{number}").unwrap(),
        serde_json::Value::Array(values) => values.iter().for_each(|v| collect(v, numbers)),
        serde_json::Value::Object(members) => members.values().for_each(|v| collect(v, numbers)),
        _ => {}
    }
}
