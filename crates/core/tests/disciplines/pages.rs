//! The documentation of disciplines against the registry: every registered name
//! has a page with the fixed headings, and tables say what the registry says.

use tidegate_core::entry::Entry;
use tidegate_core::registry::DISCIPLINES;
use tidegate_twins::pages::{Pages, headings, section, table};

const HEADINGS: [&str; 6] =
    ["Description", "References", "Parameters", "Example", "Validation", "When to use"];

fn pages() -> Pages {
    Pages::of("disciplines")
}

fn parameters(entry: &Entry) -> String {
    if entry.parameters.is_empty() {
        return "None but the buffer.".into();
    }
    let head = ["name", "value", "default", "while running", "meaning"];
    let rows = entry.parameters.iter().map(|parameter| {
        let (name, default) = (parameter.name, parameter.default);
        let (name, default) = (format!("`{name}`"), format!("`{default}`"));
        let running = if entry.can_change(parameter.name) { "can be set" } else { "fixed" };
        [name, parameter.kind.expected(), default, running.into(), parameter.help.into()]
    });
    table(head, rows)
}

fn index() -> String {
    let head = ["name", "what it does", "source"];
    let rows = DISCIPLINES.iter().map(|Entry { name, summary, source, .. }| {
        [format!("[`{name}`]({name}.md)"), (*summary).into(), (*source).into()]
    });
    table(head, rows)
}

#[test]
fn every_discipline_has_a_page_that_agrees_with_the_registry() {
    for entry in DISCIPLINES {
        let name = entry.name;
        let page = pages().read(&format!("{name}.md"));
        assert_eq!(headings(&page), HEADINGS, "headings of {name}.md");
        pages().hold(&format!("{name}.md"), section(&page, "Parameters"), &parameters(entry));
        let example = section(&page, "Example");
        assert!(example.contains("tidegate compare --disciplines"), "command in {name}.md");
        assert!(example.contains(&format!("\"{name}\"")), "scenario snippet in {name}.md");
    }
}

#[test]
fn the_index_lists_the_registry() {
    let page = pages().read("README.md");
    let table = page.split("\n\n").find(|part| part.starts_with("| name |"));
    pages().hold("README.md", table.expect("a table of names").trim_end(), &index());
}
