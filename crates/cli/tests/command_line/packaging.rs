//! What the Debian package installs besides the program: examples, which the tutorial walks
//! through, and the unit of systemd.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Bench, json};

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn examples() -> Vec<PathBuf> {
    let all = fs::read_dir(packaging("examples")).unwrap();
    let mut all: Vec<_> = all.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn every_example_is_correct_and_listens_on_this_machine_only() {
    let bench = Bench::new("packaging-examples");
    assert!(examples().len() >= 2);
    for example in examples() {
        let plan = bench.good(&["gateway", "check", &example.display().to_string(), "--json"]);
        let plan = json(&plan);
        let listens = plan["listen"].as_array().unwrap().iter().chain([&plan["admin"]]);
        for address in listens {
            assert!(address.as_str().unwrap().starts_with("127.0.0.1:"), "{plan}");
        }
    }
}

/// The fenced blocks of a page in this language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn what_the_tutorial_shows_of_files_stands_in_them_and_its_changes_are_correct() {
    let bench = Bench::new("packaging-tutorial");
    let page = read(&packaging("../docs/tutorial-gateway.md"));
    let shown = blocks(&page, "toml");
    assert!(!shown.is_empty());
    for block in shown {
        let is_known = examples().iter().any(|example| read(example).contains(block));
        assert!(is_known, "no example has:\n{block}");
    }
    // What its commands make of the file: the package installs the first, and `cp` the others.
    bench.write("gateway.toml", &read(&packaging("examples/household.toml")));
    let (mut copied, mut changed) = (0, 0);
    for line in blocks(&page, "sh").iter().flat_map(|block| block.lines()) {
        let words: Vec<_> = line.split(' ').collect();
        if let ["cp", example, "/etc/tidegate/gateway.toml"] = words[..] {
            let name = example.strip_prefix("/usr/share/doc/tidegate/").expect(line);
            bench.write("gateway.toml", &read(&packaging(name)));
            copied += 1;
        } else if let Some((_, change)) = line.split_once("sed --in-place '") {
            let before = bench.bytes("gateway.toml");
            let change = change.split('\'').next().unwrap();
            let edit = ["--in-place", change, "gateway.toml"];
            let edited = Command::new("sed").args(edit).current_dir(&bench.0).status();
            assert!(edited.unwrap().success(), "{line}");
            assert_ne!(before, bench.bytes("gateway.toml"), "{line}");
            changed += 1;
        }
        bench.good(&["gateway", "check", "gateway.toml"]);
    }
    assert!(copied >= 1 && changed >= 3, "{copied} {changed}");
}

/// The output of `systemd-analyze`; `None` where there is none, which is said.
fn analyze(bench: &Bench, arguments: &[&str]) -> Option<(bool, String)> {
    let ran = Command::new("systemd-analyze").args(arguments).current_dir(&bench.0).output();
    let Ok(output) = ran else {
        // Past the harness, which hides what a test that passes prints.
        writeln!(io::stderr(), "SKIP the unit of systemd: there is no systemd-analyze")
            .expect("standard error is open");
        return None;
    };
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// Holds a unit of systemd, without and with a drop-in, to these exposures as
/// `systemd-analyze security` of systemd 252 sums them up; the pages have the exact figures.
fn exposes_little(bench: &Bench, unit: &str, most: &str, with: Option<(&str, &str)>) {
    let installed = |text: &str| text.replace("/usr/bin/tidegate", env!("CARGO_BIN_EXE_tidegate"));
    let text = read(&packaging("systemd").join(unit));
    // It has to be there, and is not yet installed.
    bench.write(unit, &installed(&text));
    for (drop_in, most) in [("", most)].into_iter().chain(with) {
        if !drop_in.is_empty() {
            fs::create_dir_all(bench.0.join(format!("{unit}.d"))).unwrap();
            let text = read(&packaging("systemd").join(drop_in));
            bench.write(&format!("{unit}.d/{drop_in}"), &installed(&text));
        }
        let path = format!("./{unit}");
        let Some((works, said)) = analyze(bench, &["verify", "--man=no", &path]) else { return };
        // It also complains about other units of the machine.
        let about_it: Vec<_> = said.lines().filter(|line| line.contains("tidegate")).collect();
        assert!(works && about_it.is_empty(), "{said}");
        let threshold = format!("--threshold={most}");
        let arguments = ["security", "--offline=true", "--no-pager", &threshold, &path];
        let Some((works, said)) = analyze(bench, &arguments) else { return };
        assert!(works, "{said}");
    }
}

#[test]
fn the_units_are_correct_and_expose_little_with_and_without_more_rights() {
    let bench = Bench::new("packaging-unit");
    exposes_little(&bench, "tidegate-gateway.service", "13", Some(("intercept.conf", "18")));
    exposes_little(&bench, "tidegate-link@.service", "20", Some(("net-admin.conf", "22")));
    exposes_little(&bench, "tidegate-qdisc@.service", "50", None);
}

#[test]
fn the_example_of_a_link_is_understood() {
    let bench = Bench::new("packaging-link");
    let path = packaging("systemd/link.conf");
    let plan = "link plan $INSIDE $OUTSIDE --down $DOWN --up $UP --fail $FAIL $OPTIONS --json";
    let program = env!("CARGO_BIN_EXE_tidegate");
    let script = format!(". {}; {program} {plan}", path.display());
    let output = Command::new("sh").args(["-c", &script]).current_dir(&bench.0).output().unwrap();
    let plan = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!((&plan["inside"], &plan["down"]["rate_bps"]), (&"lan0".into(), &47_000_000.into()));
}

#[test]
fn the_example_of_a_queue_of_the_kernel_is_understood() {
    let bench = Bench::new("packaging-qdisc");
    let path = packaging("systemd/qdisc.conf");
    let program = env!("CARGO_BIN_EXE_tidegate");
    let add = "qdisc add lo $RATES $OPTIONS --dry-run --json";
    let script = format!(". {}; {program} {add}", path.display());
    let output = Command::new("sh").args(["-c", &script]).current_dir(&bench.0).output().unwrap();
    let plan = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(plan["plan"][1]["note"]["rate_bps"], 9_000_000);
}
