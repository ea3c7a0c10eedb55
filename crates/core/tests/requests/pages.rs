//! The documentation of request schedulers against their list: every name has a
//! page with the fixed headings, and tables say what the list says.

use tidegate_core::request::catalogue::{Entry, SCHEDULERS};
use tidegate_twins::pages::{Pages, headings, section, table};

const HEADINGS: [&str; 5] =
    ["Description", "References", "Parameters", "Validation", "When to use"];

fn pages() -> Pages {
    Pages::of("requests")
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
        let page = pages().read(&format!("{name}.md"));
        assert_eq!(headings(&page), HEADINGS, "headings of {name}.md");
        pages().hold(&format!("{name}.md"), section(&page, "Parameters"), &parameters(entry));
    }
}

#[test]
fn the_index_lists_the_list() {
    let page = pages().read("README.md");
    let table = page.split("\n\n").find(|part| part.starts_with("| name | what it does |"));
    pages().hold("README.md", table.expect("a table of names").trim_end(), &index());
}

#[test]
fn names_are_unique_and_every_default_is_valid() {
    for (position, entry) in SCHEDULERS.iter().enumerate() {
        assert!(SCHEDULERS[..position].iter().all(|other| other.name != entry.name));
        entry.settings(&[]).unwrap_or_else(|error| panic!("{error}"));
    }
}
