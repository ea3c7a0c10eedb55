//! `tidegate disciplines` and `tidegate requests`: the registry and the
//! catalogue of request schedulers, in words.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::registry::DISCIPLINES;
use tidegate_core::request::catalogue::SCHEDULERS;
use tidegate_core::setting;
use tidegate_sim::scenario::nearest;

use crate::arguments::{DisciplinesArguments, RequestsArguments};
use crate::failure::Failure;
use crate::output::{print, print_json};

/// A discipline or a request scheduler.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    parameters: Vec<Parameter>,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    help: &'static str,
    default: &'static str,
    values: String,
}

impl Parameter {
    fn all(parameters: &'static [setting::Parameter]) -> Vec<Parameter> {
        let parameter = |parameter: &'static setting::Parameter| Parameter {
            name: parameter.name,
            help: parameter.help,
            default: parameter.default,
            values: parameter.kind.expected(),
        };
        parameters.iter().map(parameter).collect()
    }
}

/// The word for the entries of a list, and the command that shows it.
struct Words {
    one: &'static str,
    command: &'static str,
}

pub(crate) fn disciplines(arguments: &DisciplinesArguments) -> Result<(), Failure> {
    let entries = DISCIPLINES.iter().map(|entry| Entry {
        name: entry.name,
        summary: entry.summary,
        source: entry.source,
        parameters: Parameter::all(entry.parameters),
    });
    let words = Words { one: "discipline", command: "disciplines" };
    show(&entries.collect::<Vec<_>>(), &words, arguments.name.as_deref(), arguments.json)
}

pub(crate) fn requests(arguments: &RequestsArguments) -> Result<(), Failure> {
    let entries = SCHEDULERS.iter().map(|entry| Entry {
        name: entry.name,
        summary: entry.summary,
        source: entry.source,
        parameters: Parameter::all(entry.parameters),
    });
    let words = Words { one: "request scheduler", command: "requests" };
    show(&entries.collect::<Vec<_>>(), &words, arguments.name.as_deref(), arguments.json)
}

/// Prints all entries, or the one called `name`.
fn show(all: &[Entry], words: &Words, name: Option<&str>, json: bool) -> Result<(), Failure> {
    let Some(name) = name else {
        return if json { print_json(&all) } else { print(&list(all, words)) };
    };
    let entry = all.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names = || all.iter().map(|entry| entry.name);
        let expected = match nearest(name, names()) {
            Some(near) => format!("'{near}'"),
            None => format!("one of {}", names().collect::<Vec<_>>().join(", ")),
        };
        Failure::Input(format!("found unknown {} '{name}', expected {expected}", words.one))
    })?;
    if json { print_json(entry) } else { print(&page(entry)) }
}

fn list(all: &[Entry], words: &Words) -> String {
    let width = all.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in all {
        let _ = writeln!(text, "{:width$}  {}", entry.name, entry.summary);
        let names: Vec<_> = entry
            .parameters
            .iter()
            .map(|parameter| format!("{} = {}", parameter.name, parameter.default))
            .collect();
        if !names.is_empty() {
            let _ = writeln!(text, "{:width$}    {}", "", names.join(", "));
        }
    }
    let _ = writeln!(text, "\n'tidegate {} NAME' explains one and its parameters.", words.command);
    text
}

fn page(entry: &Entry) -> String {
    let Entry { name, summary, source, parameters } = entry;
    let mut text = format!("{name}: {summary}\nSource: {source}\n");
    if parameters.is_empty() {
        text.push_str("\nNo parameters.\n");
    }
    for Parameter { name, help, default, values } in parameters {
        let _ = write!(text, "\n{name} = {default}\n    {help}\n    {values}\n");
    }
    text
}
