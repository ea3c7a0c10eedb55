//! Every scenario that is shipped or shown can run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use tidegate_core::residual::Residual;
use tidegate_core::{Span, Time};
use tidegate_sim::metrics::Discard;
use tidegate_sim::requests::run_way;
use tidegate_sim::scenario::file::{self, Folder, Overrides, flows, gateway};
use tidegate_sim::scenario::{Scenario, SizeLaw};
use tidegate_sim::simulation;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the files of flows and of gateways are, which are no scenarios.
const FLOWS: &str = "scenarios/flows";
const GATEWAYS: &str = "scenarios/gateways";
/// Gateways that are also run live.
const BED: &str = "scenarios/bed";

/// All TOML files below `folder`, without those of [`FLOWS`], [`GATEWAYS`] and [`BED`] when they
/// are deeper.
fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if ![FLOWS, GATEWAYS, BED].map(|folder| root().join(folder)).contains(&path) {
                found.extend(toml_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "toml")
            && path.file_name().is_some_and(|name| name != "Cargo.toml")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The size of a response in files where it is to have no end.
const ENDLESS: f64 = 1e9;

/// Long enough for traffic to begin.
const SHORT: Span = Span::seconds(6);

fn runs(scenario: &Scenario) {
    for discipline in &scenario.disciplines {
        let stop = AtomicBool::new(false);
        let seed = scenario.seeds[0];
        let run = simulation::run(scenario, discipline, seed, &mut Discard, &stop);
        assert_eq!(run.reached, Time::ZERO + scenario.duration);
        assert!(run.events > 0);
    }
}

#[test]
fn shipped_scenarios_run_and_name_their_schema() {
    let shipped = toml_files(&root().join("scenarios"));
    assert!(!shipped.is_empty());
    for path in shipped {
        let text = fs::read_to_string(&path).unwrap();
        let folder = path.parent().unwrap().to_path_buf();
        names_its_schema(&path, &text, "scenarios/schema.json");
        let name = path.display().to_string();
        let scenario = file::parse(&name, &text, &Folder(folder));
        let mut scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        scenario.duration = scenario.duration.min(scenario.warm_up + SHORT);
        runs(&scenario);
    }
}

fn names_its_schema(path: &Path, text: &str, schema: &str) {
    let named = text.lines().next().unwrap().strip_prefix("#:schema ").unwrap();
    let named = path.parent().unwrap().join(named).canonicalize().unwrap();
    assert_eq!(named, root().join(schema).canonicalize().unwrap());
    assert!(text.lines().nth(1).unwrap().starts_with("# "), "{}", path.display());
}

#[test]
fn shipped_flows_can_be_promised_and_name_their_schema() {
    let shipped = toml_files(&root().join(FLOWS));
    assert!(!shipped.is_empty());
    for path in shipped {
        let contracts = flows::read(&path).unwrap_or_else(|error| panic!("{error}"));
        Residual::new(&contracts).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        names_its_schema(&path, &fs::read_to_string(&path).unwrap(), "scenarios/flows/schema.json");
    }
}

/// A published schema is what the code describes; `make generated` writes it.
fn agrees(path: &str, schema: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&file, schema).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let published = fs::read_to_string(file).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(published == schema, "{path} is old: run `make generated`");
}

#[test]
fn the_schema_of_flows_is_up_to_date() {
    agrees("scenarios/flows/schema.json", &flows::json_schema());
}

#[test]
fn shipped_gateways_run_in_every_way_that_they_name_and_name_their_schema() {
    let shipped = [GATEWAYS, BED].map(|folder| toml_files(&root().join(folder)));
    assert!(shipped.iter().all(|files| !files.is_empty()));
    for path in shipped.into_iter().flatten() {
        let read = gateway::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let text = fs::read_to_string(&path).unwrap();
        names_its_schema(&path, &text, "scenarios/gateways/schema.json");
        let mut setup = read.setup;
        (setup.duration, setup.warm_up) = (Span::seconds(10), Span::ZERO);
        for way in &read.ways {
            let outcome = run_way(&setup, way, 1, &mut Discard, &AtomicBool::new(false));
            for (spec, class) in setup.classes.iter().zip(&outcome.classes) {
                let name = &spec.name;
                // What never ends, or has to fail, is at least asked for.
                let ends = spec.failures.is_none() && spec.client_rate.is_none();
                let ends = ends && spec.sizes.as_ref().and_then(SizeLaw::mean) != Some(ENDLESS);
                let count = if ends { class.completed } else { class.asked };
                assert!(count > 0, "{}: {}, {name}", path.display(), way.label);
            }
        }
    }
}

#[test]
fn the_schema_of_gateways_is_up_to_date() {
    agrees("scenarios/gateways/schema.json", &gateway::json_schema());
}

#[test]
fn the_schema_is_up_to_date() {
    agrees("scenarios/schema.json", &file::json_schema());
}

/// The TOML blocks of a page, with the line that each begins in.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim() == "```toml" {
            let block: Vec<_> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            blocks.push((number + 1, block.join("\n")));
        }
    }
    blocks
}

/// A whole scenario of a block that shows a part of one.
fn completed(block: &str) -> String {
    let lacks = |keys: &[&str]| !keys.iter().any(|key| block.contains(key));
    let mut text = String::new();
    for (key, line) in [
        ("title =", "title = \"Shown in part\""),
        ("duration =", "duration = \"6 s\""),
        ("disciplines =", "disciplines = [\"fifo\"]"),
    ] {
        if lacks(&[key]) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str(block);
    if lacks(&["[dumbbell]", "[access]", "[wifi]", "[[link]]"]) {
        text.push_str("\n[dumbbell]\n");
    }
    if lacks(&["[[traffic."]) {
        text.push_str(
            "\n[[traffic.transfers]]\nname = \"files\"\nfrom = \"senders\"\n\
             to = \"receivers\"\ncount = 1\nsizes = \"10 kB\"\n",
        );
    }
    text
}

#[test]
fn scenarios_in_the_documentation_run() {
    let page = fs::read_to_string(root().join("docs/scenarios.md")).unwrap();
    let blocks = blocks(&page);
    assert!(blocks.len() > 5);
    for (line, block) in blocks {
        // Files are named as they would be from a scenario in scenarios/links.
        let folder = Folder(root().join("scenarios/links"));
        let name = format!("docs/scenarios.md, block at line {line}");
        let overrides = Overrides { duration: Some(SHORT), ..Overrides::default() };
        let scenario = file::parse_with(&name, &completed(&block), &folder, &overrides);
        runs(&scenario.unwrap_or_else(|error| panic!("{error}")));
    }
}

#[test]
fn gateways_in_the_documentation_run_in_every_way_that_they_name() {
    let page = fs::read_to_string(root().join("docs/requests/README.md")).unwrap();
    let blocks = blocks(&page);
    assert!(!blocks.is_empty());
    for (line, block) in blocks {
        let name = format!("docs/requests/README.md, block at line {line}");
        let comparison = gateway::parse(&name, &block, &Folder(root().join("docs/requests")));
        let mut comparison = comparison.unwrap_or_else(|error| panic!("{error}"));
        (comparison.setup.duration, comparison.setup.warm_up) = (SHORT, Span::ZERO);
        for way in &comparison.ways {
            let stop = AtomicBool::new(false);
            let outcome = run_way(&comparison.setup, way, 1, &mut Discard, &stop);
            assert!(outcome.downlink.delivered > 0, "{name}: {}", way.label);
        }
    }
}

#[test]
fn every_key_of_the_schema_is_in_the_documentation() {
    described("docs/scenarios.md", &file::json_schema());
}

#[test]
fn flows_in_the_documentation_can_be_promised_and_every_key_is_there() {
    let page = fs::read_to_string(root().join("docs/deadlines.md")).unwrap();
    let blocks = blocks(&page);
    assert!(!blocks.is_empty());
    for (line, block) in blocks {
        let contracts = flows::parse(&format!("docs/deadlines.md, block at line {line}"), &block);
        let contracts = contracts.unwrap_or_else(|error| panic!("{error}"));
        Residual::new(&contracts).unwrap_or_else(|error| panic!("block at line {line}: {error}"));
    }
    described("docs/deadlines.md", &flows::json_schema());
}

/// Holds a page to say something of every key of a language.
#[track_caller]
fn described(page: &str, schema: &str) {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let mut tables = vec![&schema];
    tables.extend(schema["$defs"].as_object().unwrap().values());
    for table in tables {
        for key in table["properties"].as_object().into_iter().flat_map(|keys| keys.keys()) {
            let named =
                [format!("`{key}`"), format!("`[[{key}]]`"), format!("`[[traffic.{key}]]`")];
            assert!(named.iter().any(|name| text.contains(name)), "{page} lacks `{key}`");
        }
    }
}
