//! `tidegate requests compare`: ways of sharing a gateway's link.

use std::fs;

use super::{Bench, json, stderr};

const SMALL: &str = r#"
title = "Two classes"
duration = "20 s"
warm_up = "2 s"
seeds = 2
ways = ["msf", "direct", { name = "htb", label = "htb, 90%", share = 0.9 }]
[failures]
reset = 0.1
[[class]]
name = "staff"
weight = 2
clients = 3
[[class]]
name = "guests"
clients = 2
log = "access.log"
"#;

const LOG: &str = "a - - [01/Jul/1995:00:00:03 -0400] \"GET /\" 200 6245\n\
                   b - - [01/Jul/1995:00:00:04 -0400] \"GET /\" 200 20045\n";

fn small(name: &str) -> Bench {
    let bench = Bench::new(name);
    bench.write("small.toml", SMALL);
    bench.write("access.log", LOG);
    bench
}

#[test]
fn a_comparison_of_ways_gives_the_same_bytes_with_any_number_of_threads() {
    let bench = small("gateway-bytes");
    let compare = ["requests", "compare", "small.toml", "--out"];
    let text = bench.good(&[&compare[..], &["one", "--threads", "1"]].concat());
    let printed = bench.good(&[&compare[..], &["many", "--threads", "4", "--json"]].concat());
    for name in ["flows.csv", "links.csv", "summary.csv", "summary.json", "report.html"] {
        let one = bench.bytes(&format!("one/{name}"));
        assert!(!one.is_empty() && one == bench.bytes(&format!("many/{name}")), "{name}");
    }
    assert_eq!(printed.as_bytes(), bench.bytes("many/summary.json"));
    // Last, where the report is; it is of these ways, and in JSON nothing else is said.
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with("6 runs in ") && last.ends_with(" s. Report: one/report.html"),
        "{last}"
    );
    let report = String::from_utf8(bench.bytes("one/report.html")).unwrap();
    for shown in [
        "against no gateway (‘direct’)",
        "‘htb, 90%’",
        "staff: weight 2, 3 clients",
        "2\u{a0}seeds",
    ] {
        assert!(report.contains(shown), "{shown}");
    }
    for plot in ["small-responses", "shares", "response-times"] {
        let [one, many] =
            ["one", "many"].map(|folder| bench.bytes(&format!("{folder}/plots/{plot}.svg")));
        assert!(one.starts_with(b"<?xml") && one == many, "{plot}");
    }
    // The table says what the JSON says.
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let found = json(&printed);
    let row = |way: usize, class: usize| -> Vec<String> {
        let line = text.lines().nth(3 + 2 * way + class).unwrap();
        line.split_whitespace().map(String::from).collect()
    };
    assert_eq!(row(0, 0)[..3], ["msf", "staff", "2"]);
    assert_eq!(row(1, 1)[..2], ["guests", "1"]);
    let share = found["ways"][1]["classes"][1]["share"]["value"].as_f64().unwrap();
    assert_eq!(row(1, 1)[2], format!("{:.1}%", share * 100.0));
    assert_eq!(found["ways"][2]["label"], "htb, 90%");
    // Conservation, and failures of the kind that was asked for.
    for way in found["ways"].as_array().unwrap() {
        let classes = way["classes"].as_array().unwrap();
        let sum = |name: &str| classes.iter().map(|c| c[name].as_u64().unwrap()).sum::<u64>();
        let ended = ["completed", "refused", "broken", "reset", "stalled", "abandoned"].map(sum);
        assert_eq!(sum("asked"), ended.iter().sum::<u64>() + sum("unfinished"));
        assert!(sum("completed") > 50 && sum("reset") > 0 && sum("stalled") == 0, "{way}");
    }
    // A row for each request that began after the warm-up.
    let flows = String::from_utf8(bench.bytes("one/flows.csv")).unwrap();
    assert!(flows.starts_with("way,seed,traffic,flow,"), "{}", &flows[..80]);
    let ways = found["ways"].as_array().unwrap();
    let asked = ways.iter().flat_map(|way| way["classes"].as_array().unwrap());
    let asked: u64 = asked.map(|class| class["asked"].as_u64().unwrap()).sum();
    assert_eq!(flows.lines().count() as u64, 1 + asked);
}

#[test]
fn a_manifest_repeats_a_comparison_of_ways() {
    let bench = small("gateway-manifest");
    bench.good(&["requests", "compare", "small.toml", "--seeds", "1", "--out", "one"]);
    // It brings along what the comparison needs.
    fs::remove_file(bench.0.join("access.log")).unwrap();
    fs::remove_file(bench.0.join("small.toml")).unwrap();
    let again = ["requests", "compare", "--from", "one/manifest.json", "--out", "two"];
    let output = bench.run(&again);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("All 5 results are the same as before, byte for byte."));
    assert_eq!(bench.bytes("one/report.html"), bench.bytes("two/report.html"));
    let text = String::from_utf8(bench.bytes("one/manifest.json")).unwrap();
    let mut manifest = json(&text);
    assert_eq!(manifest["data"][0]["content"], LOG);
    let htb = &manifest["contenders"][2];
    assert_eq!((&htb["label"], &htb["name"]), (&"htb, 90%".into(), &"htb".into()));
    let settings = serde_json::json!({ "share": "0.9", "leaf": "fifo", "queue": "1000" });
    assert_eq!(htb["parameters"], settings);
    manifest["results"]["flows.csv"] = "0".repeat(64).into();
    bench.write("other.json", &manifest.to_string());
    let output =
        bench.run(&["requests", "compare", "--from", "other.json", "--out", "two", "--force"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not the same as before: flows.csv"), "{}", stderr(&output));
    // Nothing but results is left, and they are not replaced unasked.
    assert!(!bench.0.join("two/.parts").exists());
    assert!(bench.refused(&again).starts_with("tidegate: two: contains earlier results;"));
}

#[test]
fn a_built_in_gateway_is_printed_to_start_from_and_has_a_schema() {
    let bench = Bench::new("gateway-print");
    let text = bench.good(&["requests", "compare", "school", "--print"]);
    assert!(text.starts_with("#:schema schema.json\n# "));
    assert_eq!(text, bench.good(&["requests", "compare", "--print"]));
    let schema = json(&bench.good(&["requests", "compare", "--schema"]));
    assert_eq!(schema["title"], "Tidegate gateway");
}

#[test]
fn wrong_gateways_are_refused_in_a_line() {
    let bench = small("gateway-refused");
    let wrong = SMALL.replace("clients = 3", "clients = 0");
    bench.write("wrong.toml", &wrong);
    let place =
        "wrong.toml:12:11: class.clients: found 0, expected a whole number from 1 to 100000";
    bench.write("occupied", "");
    for (arguments, words) in [
        (&["requests", "compare", "wrong.toml"][..], place),
        (&["requests", "compare", "schol"], "schol: cannot be read: "),
        (&["requests", "compare", "schol"], "built in: 'school'"),
        (&["requests", "compare", "small.toml", "--seeds", "0"], "--seeds"),
        (&["requests", "compare", "--from", "manifest.json"], "manifest.json: cannot be read"),
        (&["requests", "compare", "small.toml", "--out", "."], ".: contains other files;"),
        (&["requests", "compare", "--from", "small.toml", "--out", "new"], "is not a manifest"),
        (
            &["requests", "compare", "small.toml", "--out", "occupied"],
            "occupied: cannot be written",
        ),
        (&["requests", "msf", "compare"], "compare"),
    ] {
        let message = bench.refused(arguments);
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
    fs::remove_file(bench.0.join("access.log")).unwrap();
    let message = bench.refused(&["requests", "compare", "small.toml"]);
    assert!(message.contains("class.log: found 'access.log'"), "{message}");
}

/// A few requests on a fast link: the terminal, JSON and the report say that shares are
/// not tested. The same on a slow link tests them.
#[test]
fn shares_on_an_idle_link_are_not_tested_and_on_a_full_one_they_are() {
    let bench = Bench::new("gateway-idle");
    let document = |rate: &str| {
        format!(
            "title = \"Two\"\nduration = \"60 s\"\nseeds = 2\nways = [\"msf\", \"direct\"]\n\
             link.rate = \"{rate}\"\n\
             [[class]]\nname = \"staff\"\nweight = 4\nclients = 2\n\
             [[class]]\nname = \"guests\"\nclients = 4\n"
        )
    };
    bench.write("idle.toml", &document("100 Mbit/s"));
    bench.write("full.toml", &document("500 kbit/s"));
    let compare = |file: &str, out: &str, json: &[&str]| {
        bench.good(&[&["requests", "compare", file, "--out", out], json].concat())
    };
    let text = compare("idle.toml", "idle", &[]);
    let said = "shares not tested, since the link was never full: msf, direct";
    assert!(text.lines().any(|line| line == said), "{text}");
    let report = String::from_utf8(bench.bytes("idle/report.html")).unwrap();
    assert!(report.contains("Shares are not tested: the link was never full."));
    assert!(!report.contains("classes do not receive"));
    let found = json(&compare("idle.toml", "again", &["--json"]));
    for way in found["ways"].as_array().unwrap() {
        assert_eq!(way["full"]["value"].as_f64(), Some(0.0));
        assert_eq!(way["shares_tested"].as_bool(), Some(false));
    }

    assert!(!compare("full.toml", "full", &[]).contains("shares not tested"));
    let found = json(&compare("full.toml", "full-again", &["--json"]));
    for way in found["ways"].as_array().unwrap() {
        assert!(way["full"]["value"].as_f64() > Some(0.9), "{way}");
        assert_eq!(way["shares_tested"].as_bool(), Some(true));
    }
}
