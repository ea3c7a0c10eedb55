//! `tidegate scenarios`: the built-in scenarios, as a starting point.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_sim::scenario::file::json_schema;
use tidegate_study::builtin::{self, Builtin, SCENARIOS};

use crate::arguments::ScenariosArguments;
use crate::failure::Failure;
use crate::output::{print, print_json};

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    title: String,
    description: String,
    text: String,
}

pub(crate) fn run(arguments: &ScenariosArguments) -> Result<(), Failure> {
    if arguments.schema {
        return print(&json_schema());
    }
    if let Some(name) = &arguments.name {
        let scenario = builtin::find(SCENARIOS, name).ok_or_else(|| {
            let expected = builtin::expected(name, SCENARIOS);
            Failure::Input(format!("found unknown scenario '{name}', expected {expected}"))
        })?;
        return if arguments.json {
            print_json(&listed(scenario))
        } else {
            print(&scenario.portable())
        };
    }
    let all: Vec<_> = SCENARIOS.iter().map(listed).collect();
    if arguments.json {
        return print_json(&all);
    }
    let width = all.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for scenario in &all {
        let _ = writeln!(text, "{:width$}  {}", scenario.name, scenario.title);
    }
    text.push_str("\n'tidegate scenarios NAME > my.toml' prints one to start from.\n");
    print(&text)
}

fn listed(builtin: &Builtin) -> Listed {
    let parsed = builtin.scenario();
    Listed {
        name: builtin.name,
        title: parsed.title,
        description: parsed.description,
        text: builtin.portable(),
    }
}
