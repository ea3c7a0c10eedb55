//! `tidegate disciplines`: the registry, in words.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::registry::{DISCIPLINES, Entry};
use tidegate_sim::scenario::nearest;

use crate::arguments::DisciplinesArguments;
use crate::failure::Failure;
use crate::output::{print, print_json};

#[derive(Serialize)]
struct Discipline {
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

impl From<&'static Entry> for Discipline {
    fn from(entry: &'static Entry) -> Discipline {
        let parameters = entry.parameters.iter().map(|parameter| Parameter {
            name: parameter.name,
            help: parameter.help,
            default: parameter.default,
            values: parameter.kind.expected(),
        });
        Discipline {
            name: entry.name,
            summary: entry.summary,
            source: entry.source,
            parameters: parameters.collect(),
        }
    }
}

pub(crate) fn run(arguments: &DisciplinesArguments) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        let all: Vec<_> = DISCIPLINES.iter().map(Discipline::from).collect();
        return if arguments.json { print_json(&all) } else { print(&list(&all)) };
    };
    let entry = DISCIPLINES.iter().find(|entry| entry.name == *name).ok_or_else(|| {
        let names = || DISCIPLINES.iter().map(|entry| entry.name);
        let expected = match nearest(name, names()) {
            Some(near) => format!("'{near}'"),
            None => format!("one of {}", names().collect::<Vec<_>>().join(", ")),
        };
        Failure::Input(format!("found unknown discipline '{name}', expected {expected}"))
    })?;
    let discipline = Discipline::from(entry);
    if arguments.json { print_json(&discipline) } else { print(&page(&discipline)) }
}

fn list(all: &[Discipline]) -> String {
    let width = all.iter().map(|discipline| discipline.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for discipline in all {
        let _ = writeln!(text, "{:width$}  {}", discipline.name, discipline.summary);
        let names: Vec<_> = discipline
            .parameters
            .iter()
            .map(|parameter| format!("{} = {}", parameter.name, parameter.default))
            .collect();
        if !names.is_empty() {
            let _ = writeln!(text, "{:width$}    {}", "", names.join(", "));
        }
    }
    text.push_str("\n'tidegate disciplines NAME' explains one and its parameters.\n");
    text
}

fn page(discipline: &Discipline) -> String {
    let Discipline { name, summary, source, parameters } = discipline;
    let mut text = format!("{name}: {summary}\nSource: {source}\n");
    if parameters.is_empty() {
        text.push_str("\nNo parameters.\n");
    }
    for Parameter { name, help, default, values } in parameters {
        let _ = write!(text, "\n{name} = {default}\n    {help}\n    {values}\n");
    }
    text
}
