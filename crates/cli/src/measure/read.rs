//! `tidegate measure read`: what results of Flent say, without a simulation beside them.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_sim::trace::Flent;
use tidegate_study::comparison::Beside;
use tidegate_study::comparison::beside::measured;
use tidegate_study::measured::Measurement;

use crate::arguments::MeasureReadArguments;
use crate::beside;
use crate::failure::Failure;
use crate::output::{self, print, print_json, wrapped};

/// Nothing is wider where there is no terminal.
const WIDTH: usize = 95;

/// What a file says.
#[derive(Serialize)]
struct Said {
    file: String,
    test: String,
    title: String,
    time: String,
    measured: Vec<Beside>,
    notes: Vec<String>,
}

pub(crate) fn read(arguments: &MeasureReadArguments) -> Result<(), Failure> {
    let mut all = Vec::new();
    for path in &arguments.files {
        let run = Flent::read(path).map_err(Failure::input)?;
        let measurement = Measurement::of(&run);
        let rows = measurement.observations.iter().flat_map(|observation| {
            let figures = measured(&observation.what).into_iter();
            figures.filter_map(|(figure, value)| {
                let name = observation.name.clone();
                Some(Beside { name, figure, measured: value?, simulated: None })
            })
        });
        all.push(Said {
            file: path.display().to_string(),
            measured: rows.collect(),
            test: run.test,
            title: run.title,
            time: run.time,
            notes: measurement.notes,
        });
    }
    if arguments.json {
        return print_json(&all);
    }
    let mut text = String::new();
    for (index, said) in all.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        let title = if said.title.is_empty() { &said.test } else { &said.title };
        let _ = writeln!(text, "{gap}{}: {title} ({}, {})\n", said.file, said.test, said.time);
        text += &beside::table(&said.measured, None, output::width(WIDTH));
        said.notes.iter().for_each(|it| text += &wrapped(it, ""));
    }
    print(&text)
}
