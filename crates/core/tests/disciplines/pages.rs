//! The documentation of disciplines against the registry: every registered name
//! has a page with the fixed headings, and tables say what the registry says.

use std::path::{Path, PathBuf};

use tidegate_core::entry::Entry;
use tidegate_core::registry::DISCIPLINES;

const HEADINGS: [&str; 6] =
    ["Description", "References", "Parameters", "Example", "Validation", "When to use"];

/// A page with `part` of it as it `should` be, which `make generated` writes.
fn agrees(name: &str, part: &str, should: &str) {
    let (path, page) = (path(name), page(name));
    assert!(!part.is_empty(), "{name} lacks what is to be replaced");
    if part != should && std::env::var_os("UPDATE_GENERATED").is_some() {
        let page = page.replace(part, should);
        return std::fs::write(&path, page).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(part, should, "{name} differs from the registry: run `make generated`");
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/disciplines").join(name)
}

fn page(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.split_once(&format!("\n## {heading}\n")).map(|(_, rest)| rest);
    let rest = start.unwrap_or_else(|| panic!("no heading '## {heading}'"));
    rest.split("\n## ").next().unwrap_or(rest).trim()
}

/// A Markdown table; its first row is the head.
fn table<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut lines: Vec<_> =
        rows.into_iter().map(|cells| format!("| {} |", cells.join(" | "))).collect();
    lines.insert(1, format!("| {} |", ["---"; N].join(" | ")));
    lines.join("\n")
}

fn parameters(entry: &Entry) -> String {
    if entry.parameters.is_empty() {
        return "None but the buffer.".into();
    }
    let head = ["name", "value", "default", "while running", "meaning"].map(String::from);
    let rows = entry.parameters.iter().map(|parameter| {
        let (name, default) = (parameter.name, parameter.default);
        let (name, default) = (format!("`{name}`"), format!("`{default}`"));
        let running = if entry.can_change(parameter.name) { "can be set" } else { "fixed" };
        [name, parameter.kind.expected(), default, running.into(), parameter.help.into()]
    });
    table([head].into_iter().chain(rows))
}

fn index() -> String {
    let head = ["name", "what it does", "source"].map(String::from);
    let rows = DISCIPLINES.iter().map(|Entry { name, summary, source, .. }| {
        [format!("[`{name}`]({name}.md)"), (*summary).into(), (*source).into()]
    });
    table([head].into_iter().chain(rows))
}

#[test]
fn every_discipline_has_a_page_that_agrees_with_the_registry() {
    for entry in DISCIPLINES {
        let name = entry.name;
        let page = page(&format!("{name}.md"));
        let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, HEADINGS, "headings of {name}.md");
        agrees(&format!("{name}.md"), section(&page, "Parameters"), &parameters(entry));
        let example = section(&page, "Example");
        assert!(example.contains("tidegate compare --disciplines"), "command in {name}.md");
        assert!(example.contains(&format!("\"{name}\"")), "scenario snippet in {name}.md");
    }
}

#[test]
fn the_index_lists_the_registry() {
    let page = page("README.md");
    let table = page.split("\n\n").find(|part| part.starts_with("| name |"));
    agrees("README.md", table.expect("a table of names").trim_end(), &index());
}
