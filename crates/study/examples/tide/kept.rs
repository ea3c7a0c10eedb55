//! `evidence.csv`: every figure of every run, with what the runs say together.
//!
//! It has a row for each case, discipline and figure. Pages and figures are made from what
//! stands in it, so that they can be made again without a run.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use tidegate_study::Sample;

use super::cases::Case;
use super::figures::{FIGURES, Figure};
use super::result::{COLUMNS, CaseResult, estimated, number};

/// Group, case, discipline and column.
type Key = [String; 4];

/// What is kept, by what it is of.
#[derive(Default)]
pub(crate) struct Kept(BTreeMap<Key, Sample>);

impl Kept {
    /// What the file at `path` has; nothing if there is none.
    pub(crate) fn read(path: &Path) -> Result<Kept, Box<dyn Error>> {
        let mut kept = Kept::default();
        if !path.exists() {
            return Ok(kept);
        }
        for row in csv::Reader::from_path(path)?.records() {
            let row = row?;
            let cell = |place: usize| row.get(place).ok_or("a row is too short");
            let key = [cell(0)?, cell(1)?, cell(2)?, cell(3)?].map(String::from);
            let figure = FIGURES.iter().find(|figure| figure.column == key[3]);
            let figure = figure.ok_or_else(|| format!("no figure is called {}", key[3]))?;
            let mut values = Vec::new();
            for pair in cell(9)?.split(' ') {
                let (seed, value) = pair.split_once(':').ok_or("a value has no seed")?;
                values.push((seed.parse()?, Some(value.parse()?)));
            }
            kept.0.extend(Sample::of(figure.centre, values).map(|sample| (key, sample)));
        }
        Ok(kept)
    }

    /// Writes what is kept of `cases`, in their order.
    pub(crate) fn write(&self, path: &Path, cases: &[Case]) -> Result<(), Box<dyn Error>> {
        let mut writer = csv::Writer::from_path(path)?;
        writer.write_record(COLUMNS.into_iter().chain(["by_seed"]))?;
        for case in cases {
            for name in &case.disciplines {
                for figure in &FIGURES {
                    let key = key(case, name, figure);
                    let Some(sample) = self.0.get(&key) else { continue };
                    let cells = estimated(sample).into_iter().chain([by_seed(sample)]);
                    writer.write_record(key.into_iter().chain(cells))?;
                }
            }
        }
        Ok(writer.flush()?)
    }

    /// Keeps the values of a figure in the place of those before, as they will be read.
    pub(crate) fn keep(&mut self, case: &Case, name: &str, figure: &Figure, of: Option<&Sample>) {
        let key = key(case, name, figure);
        let values = of.into_iter().flat_map(Sample::by_seed);
        let written = values.map(|(seed, value)| (seed, number(value).parse().ok()));
        match Sample::of(figure.centre, written) {
            Some(sample) => self.0.insert(key, sample),
            None => self.0.remove(&key),
        };
    }

    /// What is kept of a case; `None` if it was not run.
    pub(crate) fn result(&self, case: &Case) -> Option<CaseResult> {
        let of = |name: &String| {
            FIGURES.iter().map(|figure| self.0.get(&key(case, name, figure)).cloned()).collect()
        };
        let values: Vec<Vec<Option<Sample>>> = case.disciplines.iter().map(of).collect();
        let known = values.iter().flatten().any(Option::is_some);
        known.then(|| CaseResult { name: case.name.clone(), group: case.group, values })
    }
}

fn key(case: &Case, discipline: &str, figure: &Figure) -> Key {
    [case.group, &case.name, discipline, figure.column].map(String::from)
}

/// Each seed with its value.
fn by_seed(sample: &Sample) -> String {
    let pairs = sample.by_seed().map(|(seed, value)| format!("{seed}:{}", number(value)));
    pairs.collect::<Vec<_>>().join(" ")
}
