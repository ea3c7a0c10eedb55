//! `tidegate compare`: runs a scenario under each discipline and seed, and
//! writes the results to the terminal and to a folder.

use std::io;
use std::path::Path;

use tidegate_core::Span;
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::file::{self, Overrides};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};
use tidegate_study::builtin::SCENARIOS;
use tidegate_study::columns::Names;
use tidegate_study::comparison::Comparison;
use tidegate_study::manifest::{Contender, Manifest};

use crate::answered::Answered;
use crate::arguments::{CompareArguments, ResultArguments, RunArguments};
use crate::comparing::{self, Compared};
use crate::failure::Failure;
use crate::inputs::Input;
use crate::live_form;
use crate::rows::Table;
use crate::{beside, calls, describe, home, output, parts, report, summary_csv, table};

/// What is said to those who name nothing.
const UNNAMED: &str = "\
This is the built-in household. For another link:
  tidegate compare --down '50 Mbit/s' --up '10 Mbit/s'   a home's link with these rates
  tidegate compare --preset dsl                          or cable, fibre, lte, satellite
  tidegate compare NAME, or a file                       'tidegate scenarios' lists what is built in
  tidegate replay FILE --rate '50 Mbit/s'                recorded traffic
";

pub(crate) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.from {
        let (input, earlier) = Input::of_manifest(path)?;
        return compare(&input, &overrides_of(&earlier)?, Some(&earlier), &arguments.results);
    }
    let input = match home::input(&arguments.link)? {
        Some(input) => input,
        None => Input::named(arguments.scenario.as_deref(), SCENARIOS)?,
    };
    if arguments.link.print {
        return output::print(&input.text);
    }
    if arguments.scenario.is_none() && input.stem == SCENARIOS[0].name {
        eprint!("{UNNAMED}");
    }
    compare(&input, &overrides(&arguments.runs)?, None, &arguments.results)
}

pub(crate) fn overrides(arguments: &RunArguments) -> Result<Overrides, Failure> {
    if let Some(choices) = &arguments.disciplines {
        distinct(choices)?;
    }
    Ok(Overrides {
        duration: arguments.duration,
        seeds: arguments.seeds.map(|count| (1..=count).collect()),
        disciplines: arguments.disciplines.clone(),
    })
}

/// The settings that differed from the scenario file when a manifest was written.
fn overrides_of(manifest: &Manifest) -> Result<Overrides, Failure> {
    let choices = manifest.contenders.iter().map(Contender::discipline);
    Ok(Overrides {
        duration: Some(Span(manifest.duration_ns)),
        seeds: Some(manifest.seeds.clone()),
        disciplines: Some(choices.collect::<Result<_, _>>().map_err(Failure::Input)?),
    })
}

/// Refuses two disciplines of one label: nobody could tell their results apart.
pub(crate) fn distinct(choices: &[DisciplineChoice]) -> Result<(), Failure> {
    for (index, choice) in choices.iter().enumerate() {
        if choices[..index].iter().any(|other| other.label == choice.label) {
            let label = &choice.label;
            return Err(Failure::Input(format!(
                "--disciplines: found '{label}' twice, expected each once, or :label=... on one"
            )));
        }
    }
    Ok(())
}

/// Runs the scenario of `input`. With an `earlier` manifest, it checks the results against that.
pub(crate) fn compare(
    input: &Input,
    overrides: &Overrides,
    earlier: Option<&Manifest>,
    arguments: &ResultArguments,
) -> Result<(), Failure> {
    let (scenario, data) =
        input.read(|data| file::parse_with(&input.name, &input.text, data, overrides))?;
    comparing::compare(&scenario, input, data, earlier, arguments)
}

impl Compared for Scenario {
    type Summary = Answered;

    fn tables(&self) -> &'static [Table] {
        if describe::is_recorded(self) { Table::OF_RECORDINGS } else { Table::OF_SCENARIOS }
    }

    fn names(&self) -> Names {
        Names::of(self)
    }

    fn sum_up(&self, _input: &Input, runs: &[RunSummary]) -> Answered {
        Answered::of(self, Comparison::of(self, runs))
    }

    fn is_partial(summary: &Answered) -> bool {
        summary.comparison.partial
    }

    fn csv(summary: &Answered) -> Vec<u8> {
        summary_csv::of(&summary.comparison)
    }

    fn calls(summary: &Answered) -> Option<Vec<u8>> {
        calls::csv(&summary.comparison)
    }

    fn text(&self, summary: &Answered) -> String {
        let width = output::width(table::WIDTH);
        let Answered { said, live_forms, comparison, .. } = summary;
        let mut text = table::title(comparison);
        if !comparison.beside.is_empty() {
            let first = comparison.disciplines.first().map(|it| it.label.as_str());
            text.push_str(&beside::table(&comparison.beside, first, width));
            text.push('\n');
        }
        text.push_str(&said.text(width));
        for form in live_form::simplest(live_forms) {
            text.push('\n');
            text.push_str(&form.text(width));
        }
        text.push('\n');
        text += &table::of(comparison, output::columns(table::WIDTH));
        if describe::is_recorded(self) {
            text.push('\n');
            let calls = calls::text(comparison);
            if !calls.is_empty() {
                text += &calls;
                text.push('\n');
            }
            text += &parts::table(comparison);
        }
        text
    }

    fn report(&self, folder: &Path, summary: &Answered, manifest: &Manifest) -> io::Result<()> {
        report::write(folder, summary, &describe::provenance(self, manifest))
    }
}
