//! `tidegate scenarios`: the built-in scenarios, as a starting point.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_sim::scenario::file::{self, json_schema};

use crate::arguments::ScenariosArguments;
use crate::builtin::{self, SCENARIOS};
use crate::failure::Failure;
use crate::inputs::Input;
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
            print(&portable(scenario))
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

/// The scenario as it runs from any folder.
fn portable(builtin: &builtin::Builtin) -> String {
    let input = Input::of_builtin(builtin);
    let read = input.portable(|data| file::parse(builtin.name, builtin.text(), data));
    read.expect("a test reads every built-in scenario")
}

fn listed(builtin: &builtin::Builtin) -> Listed {
    let parsed = builtin.scenario();
    Listed {
        name: builtin.name,
        title: parsed.title,
        description: parsed.description,
        text: portable(builtin),
    }
}
