//! The documentation of request schedulers against their list: every name has a
//! page with the fixed headings, and tables say what the list says.

use std::path::Path;

use tidegate_core::request::catalogue::{Entry, SCHEDULERS};

const HEADINGS: [&str; 5] =
    ["Description", "References", "Parameters", "Validation", "When to use"];

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/requests").join(name);
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
        let expected = parameters(entry);
        let found = page.split("\n## ").find_map(|part| part.strip_prefix("Parameters\n"));
        let found = found.map(str::trim);
        assert_eq!(found, Some(&expected[..]), "parameters in {name}.md should be\n\n{expected}\n");
    }
}

#[test]
fn the_index_lists_the_list() {
    let (page, expected) = (page("README.md"), index());
    assert!(page.contains(&expected), "docs/requests/README.md should hold\n\n{expected}\n");
}

#[test]
fn names_are_unique_and_every_default_is_valid() {
    for (position, entry) in SCHEDULERS.iter().enumerate() {
        assert!(SCHEDULERS[..position].iter().all(|other| other.name != entry.name));
        entry.settings(&[]).unwrap_or_else(|error| panic!("{error}"));
    }
}
