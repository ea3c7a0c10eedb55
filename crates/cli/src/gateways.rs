//! `tidegate requests compare`: ways of sharing a gateway's access link, and
//! what the users of each class notice under each.
//!
//! All ways see the same demand. A run gives a few numbers for each class; over the
//! seeds they become means with intervals ([`tidegate_study::requests`]).

mod describe;
pub(crate) mod standard;
mod text;

use std::io;
use std::path::Path;

use csv::Writer;
use tidegate_sim::scenario::file::gateway::{self, Comparison};
use tidegate_study::manifest::Manifest;
use tidegate_study::requests::{self, Class, Run, Summary};

use self::standard::Standard;
use crate::arguments::RequestsCompareArguments;
use crate::builtin::GATEWAYS;
use crate::comparing::{self, Compared, Extra};
use crate::failure::Failure;
use crate::inputs::Input;
use crate::output::print;
use crate::report::requests::Results;
use crate::rows::{Names, Table};
use crate::{report, summary_csv};

pub(crate) fn run(arguments: &RequestsCompareArguments) -> Result<(), Failure> {
    if arguments.schema {
        return print(&gateway::json_schema());
    }
    if let Some(path) = &arguments.from {
        let earlier = Manifest::read(path).map_err(Failure::Input)?;
        let input = Input::of_manifest(&earlier);
        return compare(&input, Some(earlier.seeds.clone()), Some(&earlier), arguments);
    }
    let input = Input::named(arguments.file.as_deref(), GATEWAYS)?;
    if arguments.print {
        return print(&input.text);
    }
    compare(&input, arguments.seeds.map(|seeds| (1..=seeds).collect()), None, arguments)
}

/// Compares the ways of `input`, with its own seeds or with these.
fn compare(
    input: &Input,
    seeds: Option<Vec<u64>>,
    earlier: Option<&Manifest>,
    arguments: &RequestsCompareArguments,
) -> Result<(), Failure> {
    let (mut comparison, data) =
        input.read(|data| gateway::parse(&input.name, &input.text, data))?;
    if let Some(seeds) = seeds {
        comparison.seeds = seeds;
    }
    comparing::compare(&comparison, input, data, earlier, &arguments.results)
}

/// The file with a row for each class of each run.
const RUNS: &str = "runs.csv";

impl Compared for Comparison {
    type Summary = Summary;

    const TABLES: &'static [Table] = &[Table::Flows, Table::Links];

    fn names(&self) -> Names {
        let (sources, links) = (self.setup.source_names(), self.setup.link_names());
        Names { contender: "way", sources, links }
    }

    fn sum_up(&self, input: &Input, runs: &[Run]) -> Summary {
        Summary::of(&input.name, self, runs)
    }

    fn is_partial(summary: &Summary) -> bool {
        summary.partial
    }

    fn csv(summary: &Summary) -> Vec<u8> {
        summary_csv::of_ways(summary)
    }

    fn text(summary: &Summary) -> String {
        text::of(summary)
    }

    fn report(&self, folder: &Path, summary: &Summary, manifest: &Manifest) -> io::Result<()> {
        let standard = Standard::of(&with_results(self, summary));
        let provenance = describe::provenance(&manifest.source.text, self);
        let results = Results { summary, standard: &standard, provenance: &provenance };
        report::requests::write(folder, results)
    }

    fn extra(&self, runs: &[Run]) -> Vec<Extra> {
        vec![(RUNS, runs_csv(self, runs))]
    }
}

/// `comparison` with the ways that have results: an interruption may leave some without.
fn with_results(comparison: &Comparison, summary: &Summary) -> Comparison {
    let mut left = comparison.clone();
    left.ways.retain(|way| summary.ways.iter().any(|it| it.label == way.label));
    left
}

/// Every run, a row for each class.
fn runs_csv(comparison: &Comparison, runs: &[Run]) -> Vec<u8> {
    const MEMORY: &str = "memory takes everything";
    let mut writer = Writer::from_writer(Vec::new());
    let names = Class::MEASURES.iter().map(|measure| measure.name);
    writer.write_record(["way", "seed", "class"].into_iter().chain(names)).expect(MEMORY);
    for run in runs {
        for class in requests::classes(comparison, run) {
            let head = [comparison.ways[run.way].label.clone(), run.seed.to_string()];
            let cells = Class::MEASURES.iter().map(|measure| {
                let value = (measure.value)(&class);
                let count = value.count().map(|count| count.to_string());
                let mean = value.mean().map(|estimate| estimate.mean.to_string());
                count.or(mean).unwrap_or_default()
            });
            let row = head.into_iter().chain([class.name.clone()]).chain(cells);
            writer.write_record(row).expect(MEMORY);
        }
    }
    writer.into_inner().expect(MEMORY)
}
