//! The documentation of request schedulers against their list: every name has a
//! page with the fixed headings, and tables say what the list says.

use std::path::{Path, PathBuf};

use tidegate_core::request::catalogue::{Entry, SCHEDULERS};

const HEADINGS: [&str; 5] =
    ["Description", "References", "Parameters", "Validation", "When to use"];

/// A page with `part` of it as it `should` be, which `make generated` writes.
fn agrees(name: &str, part: &str, should: &str) {
    let (path, page) = (path(name), page(name));
    assert!(!part.is_empty(), "{name} lacks what is to be replaced");
    if part != should && std::env::var_os("UPDATE_GENERATED").is_some() {
        let page = page.replace(part, should);
        return std::fs::write(&path, page).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(part, should, "{name} differs from the list: run `make generated`");
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/requests").join(name)
}

fn page(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A Markdown table with this head.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let head = [head, ["---"; N]].map(|cells| line(&cells.map(String::from)));
    head.into_iter().chain(rows.map(|cells| line(&cells))).collect::<Vec<_>>().join("\n")
}

fn parameters(entry: &Entry) -> String {
    let rows = entry.parameters.iter().map(|parameter| {
        let (name, default) = (format!("`{}`", parameter.name), format!("`{}`", parameter.default));
        [name, parameter.kind.expected(), default, parameter.help.into()]
    });
    table(["name", "value", "default", "meaning"], rows)
}

fn index() -> String {
    let rows = SCHEDULERS.iter().map(|Entry { name, summary, source, .. }| {
        [format!("[`{name}`]({name}.md)"), (*summary).into(), (*source).into()]
    });
    table(["name", "what it does", "source"], rows)
}

#[test]
fn every_scheduler_has_a_page_that_agrees_with_the_list() {
    for entry in SCHEDULERS {
        let name = entry.name;
        let page = page(&format!("{name}.md"));
        let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, HEADINGS, "headings of {name}.md");
        let found = page.split("\n## ").find_map(|part| part.strip_prefix("Parameters\n"));
        let found = found.expect("a section on parameters").trim();
        agrees(&format!("{name}.md"), found, &parameters(entry));
    }
}

#[test]
fn the_index_lists_the_list() {
    let page = page("README.md");
    let table = page.split("\n\n").find(|part| part.starts_with("| name | what it does |"));
    agrees("README.md", table.expect("a table of names").trim_end(), &index());
}

#[test]
fn names_are_unique_and_every_default_is_valid() {
    for (position, entry) in SCHEDULERS.iter().enumerate() {
        assert!(SCHEDULERS[..position].iter().all(|other| other.name != entry.name));
        entry.settings(&[]).unwrap_or_else(|error| panic!("{error}"));
    }
}
