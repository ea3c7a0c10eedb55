//! `tidegate requests compare`: ways of sharing a gateway's access link, and
//! what the users of each class notice under each.
//!
//! All ways see the same demand. A run gives a few numbers for each class; over the
//! seeds they become means with intervals ([`tidegate_study::requests`]).

mod describe;
mod text;

use std::io;
use std::path::Path;

use tidegate_sim::scenario::file::gateway::{self, Comparison};
use tidegate_study::builtin::GATEWAYS;
use tidegate_study::columns::{Names, WAY};
use tidegate_study::manifest::Manifest;
use tidegate_study::requests::{Run, Standard, Summary};

use crate::arguments::RequestsCompareArguments;
use crate::comparing::{self, Compared};
use crate::failure::Failure;
use crate::inputs::Input;
use crate::output::print;
use crate::report::requests::Results;
use crate::rows::Table;
use crate::{report, summary_csv};

pub(crate) fn run(arguments: &RequestsCompareArguments) -> Result<(), Failure> {
    if arguments.schema {
        return print(&gateway::json_schema());
    }
    if let Some(path) = &arguments.from {
        let (input, earlier) = Input::of_manifest(path)?;
        return compare(&input, Some(earlier.seeds.clone()), Some(&earlier), arguments);
    }
    let input = Input::named(arguments.file.as_deref(), GATEWAYS)?;
    if arguments.print {
        return print(&input.portable(|data| gateway::parse(&input.name, &input.text, data))?);
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

impl Compared for Comparison {
    type Summary = Summary;

    fn tables(&self) -> &'static [Table] {
        &[Table::Flows, Table::Links]
    }

    fn names(&self) -> Names {
        let (sources, links) = (self.setup.source_names(), self.setup.link_names());
        Names { contender: WAY, sources, links }
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

    fn text(&self, summary: &Summary) -> String {
        text::of(summary)
    }

    fn report(&self, folder: &Path, summary: &Summary, manifest: &Manifest) -> io::Result<()> {
        let standard = Standard::of(&with_results(self, summary));
        let provenance = describe::provenance(&manifest.source.text, self);
        let results = Results { summary, standard: &standard, provenance: &provenance };
        report::requests::write(folder, results)
    }
}

/// `comparison` with the ways that have results: an interruption may leave some without.
fn with_results(comparison: &Comparison, summary: &Summary) -> Comparison {
    let mut left = comparison.clone();
    left.ways.retain(|way| summary.ways.iter().any(|it| it.label == way.label));
    left
}
