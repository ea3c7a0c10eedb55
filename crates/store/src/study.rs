//! What a study compares, and the run at each place of its grid.
//!
//! A study is a value: it can be written down and sent to another process, which does the
//! same runs with it, to the byte. The scenarios of its points are read when it is made, so
//! that nothing is wrong in the middle of the night, and again when their runs begin, so
//! that a thousand of them are never in memory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tidegate_files::FileError;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::vary::{self, Setting, SettingError};
use tidegate_sim::scenario::file::{self, DataFiles, Folder, Overrides};
use tidegate_study::builtin::{self, SCENARIOS};
use tidegate_study::columns::{DISCIPLINE, Names};
use tidegate_study::data::{DataFile, Ledger};
use tidegate_study::experiment::Study as _;
use tidegate_study::manifest::Contender;
use tidegate_study::shipped::FolderAndShipped;
use tidegate_study::sweep::{self, Axis};

use crate::measures;
use crate::rows::{self, Kept, Rows};

/// What names of folders have as it is; the rest is percent-encoded, as readers expect.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// Results of one version are not those of another.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Linux takes no longer names of files.
const LONGEST_NAME: usize = 255;

/// A scenario as it was written, and where the files lie that it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What messages call it.
    pub name: String,
    /// The text of its file.
    pub text: String,
    /// Where files lie that it names.
    pub folder: PathBuf,
}

/// What is asked of a study.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The scenario.
    pub source: Source,
    /// The keys of it that vary; the last one fastest.
    pub over: Vec<Axis>,
    /// What stands in place of what the scenario says, at all points.
    pub overrides: Overrides,
    /// Which rows are kept of each run, beside its measures.
    pub kept: Kept,
}

/// A study that can be run: every point of it has been read.
#[derive(Clone, Debug)]
pub struct Study {
    definition: Definition,
    points: Vec<Vec<String>>,
}

/// Everything from which a study is made, as its manifest has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    /// The version of the program.
    pub(crate) tidegate: String,
    pub(crate) title: String,
    pub(crate) scenario: Source,
    /// The files that the scenario names.
    pub(crate) data: Vec<DataFile>,
    /// In place of that of the scenario.
    pub(crate) duration_ns: Option<u64>,
    pub(crate) over: Vec<Axis>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) disciplines: Vec<Contender>,
    pub(crate) flows: bool,
    pub(crate) links: bool,
}

/// Why there is no such study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The scenario makes no sense.
    #[error(transparent)]
    File(#[from] FileError),
    /// One of its points does not.
    #[error("over: {0}")]
    Over(#[from] SettingError),
    /// Two disciplines of one label, or a seed twice: nobody could tell their runs apart.
    #[error("{key}: found {found} twice, expected each once")]
    Twice {
        /// `disciplines` or `seeds`.
        key: &'static str,
        /// What is there twice.
        found: String,
    },
    /// Its runs are those of another version.
    #[error("found a study of version {0}, expected one of {VERSION}")]
    Version(String),
    /// The text is not that of a study.
    #[error("this is no study: {0}")]
    Text(#[from] serde_json::Error),
}

/// One run of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its place among all of them.
    pub index: usize,
    /// The point of the grid.
    pub point: usize,
    /// The place of its discipline.
    pub contender: usize,
    /// The seed of all its randomness.
    pub seed: u64,
}

/// A table of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The measures of each run.
    Runs,
    /// The flows of each run.
    Flows,
    /// The samples of links of each run.
    Links,
}

/// What a run adds to a table, as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its place in the folder of the study.
    pub path: String,
    /// Its content, which is Parquet.
    pub bytes: Vec<u8>,
}

/// The scenario at a point of the grid.
#[derive(Debug)]
pub struct Point {
    scenario: Scenario,
    names: Names,
}

impl Source {
    /// The scenario of this name that comes with Tidegate.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Source> {
        let found = builtin::find(SCENARIOS, name)?;
        let folder = PathBuf::from(".");
        Some(Source { name: name.into(), text: found.portable(), folder })
    }

    /// The file at `path`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> Result<Source, FileError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Source { name, text, folder: folder_of(path) }),
            Err(reason) => Err(FileError::Unreadable { file: name, reason }),
        }
    }

    /// A study of it alone: at one point, with its own disciplines and seeds.
    #[must_use]
    pub fn alone(self) -> Asked {
        let (over, overrides, kept) = (Vec::new(), Overrides::default(), Kept::default());
        Asked { source: self, over, overrides, kept }
    }

    /// The scenario itself, with some things other than its text says.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn scenario(&self, overrides: &Overrides) -> Result<Scenario, FileError> {
        file::parse_with(&self.name, &self.text, &self.files(), overrides)
    }

    fn files(&self) -> FolderAndShipped {
        FolderAndShipped(Folder(self.folder.clone()))
    }
}

/// The folder in which a file lies; one form of the present one, so that equal ones are equal.
#[must_use]
pub fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_path_buf()
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 3] = [Table::Runs, Table::Flows, Table::Links];

    /// Its name, which is that of its folder.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Runs => "runs",
            Table::Flows => "flows",
            Table::Links => "links",
        }
    }

    /// The columns in its files.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        match self {
            Table::Runs => measures::schema(),
            Table::Flows => rows::flows(),
            Table::Links => rows::links(),
        }
    }
}

impl Study {
    /// The study that is asked for, after a look at all its points.
    ///
    /// # Errors
    /// If the scenario makes no sense, or does not at one of the points.
    pub fn new(asked: Asked) -> Result<Study, StudyError> {
        let Asked { source, over, overrides, kept } = asked;
        let files = source.files();
        let ledger = Ledger::new(&files, Some(&source.folder));
        let base = file::parse_with(&source.name, &source.text, &ledger, &overrides)?;
        let points = sweep::points(&over)?;
        distinct(base.labels(), &base.seeds)?;
        let definition = Definition {
            tidegate: VERSION.into(),
            title: base.title.clone(),
            data: Vec::new(),
            duration_ns: overrides.duration.map(|it| it.0),
            disciplines: base.contenders(),
            seeds: base.seeds,
            over,
            flows: kept.flows,
            links: kept.links,
            // Whoever does the runs may be in another folder.
            scenario: Source {
                folder: std::path::absolute(&source.folder).unwrap_or(source.folder.clone()),
                ..source.clone()
            },
        };
        let mut study = Study { definition, points };
        study.note(ledger);
        for point in 0..study.points.len() {
            let ledger = Ledger::new(&files, Some(&source.folder));
            study.read_point(point, &ledger)?;
            study.check_names(point)?;
            study.note(ledger);
        }
        Ok(study)
    }

    /// Keeps what a ledger has seen, each file once.
    fn note(&mut self, ledger: Ledger<'_>) {
        for file in ledger.into_seen() {
            if !self.definition.data.contains(&file) {
                self.definition.data.push(file);
            }
        }
    }

    /// The study that [`Study::text`] has written.
    ///
    /// # Errors
    /// If the text is not that of a study, or of one of another version, whose runs this one
    /// would not repeat.
    pub fn parse(text: &str) -> Result<Study, StudyError> {
        let definition: Definition = serde_json::from_str(text)?;
        if definition.tidegate != VERSION {
            return Err(StudyError::Version(definition.tidegate));
        }
        Study::of(definition)
    }

    /// Everything that its runs need, as text; the contents of data files are not in it.
    ///
    /// # Panics
    /// Never: there is a text of every study.
    #[must_use]
    pub fn text(&self) -> String {
        let definition = Definition { data: Vec::new(), ..self.definition.clone() };
        serde_json::to_string(&definition).expect("every definition has a text")
    }

    pub(crate) fn of(definition: Definition) -> Result<Study, StudyError> {
        let points = sweep::points(&definition.over)?;
        Ok(Study { definition, points })
    }

    pub(crate) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The title of the scenario.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.definition.title
    }

    /// The keys that vary, with their values.
    #[must_use]
    pub fn over(&self) -> &[Axis] {
        &self.definition.over
    }

    /// The disciplines at each point.
    #[must_use]
    pub fn disciplines(&self) -> &[Contender] {
        &self.definition.disciplines
    }

    /// The seeds; each discipline runs once with each at every point.
    #[must_use]
    pub fn seeds(&self) -> &[u64] {
        &self.definition.seeds
    }

    /// The tables that are kept.
    pub fn tables(&self) -> impl Iterator<Item = Table> + use<'_> {
        Table::ALL.into_iter().filter(|table| match table {
            Table::Runs => true,
            Table::Flows => self.definition.flows,
            Table::Links => self.definition.links,
        })
    }

    /// The number of runs.
    #[must_use]
    pub fn size(&self) -> usize {
        let Definition { seeds, disciplines, .. } = &self.definition;
        self.points.len() * seeds.len() * disciplines.len()
    }

    /// All runs: point by point, seed by seed, so that a study that stops half-way has all
    /// disciplines under the same seeds.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        (0..self.size()).filter_map(|index| self.run(index))
    }

    /// The run at this place among all of them.
    #[must_use]
    pub fn run(&self, index: usize) -> Option<Run> {
        let Definition { seeds, disciplines, .. } = &self.definition;
        let contender = index.checked_rem(disciplines.len())?;
        let rest = index / disciplines.len();
        let seed = seeds[rest.checked_rem(seeds.len())?];
        let point = rest / seeds.len();
        (point < self.points.len()).then_some(Run { index, point, contender, seed })
    }

    /// What tells a run apart from others, with its value; the seed is not among it.
    pub fn labels(&self, run: Run) -> impl Iterator<Item = (&str, &str)> {
        let values = &self.points[run.point];
        let at =
            std::iter::zip(&self.definition.over, values).map(|(axis, it)| (&*axis.key, &**it));
        let discipline = &*self.definition.disciplines[run.contender].label;
        at.chain([(DISCIPLINE, discipline)])
    }

    /// Where a run's part of `table` lies in the folder of the study.
    #[must_use]
    pub fn path(&self, table: Table, run: Run) -> String {
        let mut path = String::from(table.name());
        for (key, value) in self.labels(run) {
            path += &format!("/{}", partition(key, value));
        }
        format!("{path}/{}.parquet", run.seed)
    }

    /// The scenario at a point.
    ///
    /// # Errors
    /// If it can no longer be read.
    pub fn point(&self, point: usize) -> Result<Point, SettingError> {
        let scenario = self.read_point(point, &self.definition.scenario.files())?;
        let names = Names::of(&scenario);
        Ok(Point { scenario, names })
    }

    fn read_point(&self, point: usize, files: &dyn DataFiles) -> Result<Scenario, SettingError> {
        let Definition { scenario, duration_ns, over, seeds, disciplines, .. } = &self.definition;
        let settings = std::iter::zip(over, &self.points[point]);
        let settings =
            settings.map(|(axis, value)| Setting { key: axis.key.clone(), value: value.clone() });
        let chosen = disciplines.iter().map(|it| {
            it.discipline().map_err(|error| SettingError {
                key: it.label.clone(),
                found: error,
                expected: "a discipline of this version".into(),
            })
        });
        let overrides = Overrides {
            duration: duration_ns.map(Span),
            seeds: Some(seeds.clone()),
            disciplines: Some(chosen.collect::<Result<_, _>>()?),
        };
        let settings: Vec<_> = settings.collect();
        vary::parse(&scenario.name, &scenario.text, files, &overrides, &settings)
    }

    /// Whether there can be folders of the names that runs at this point need.
    fn check_names(&self, point: usize) -> Result<(), SettingError> {
        let first = point * self.definition.seeds.len() * self.definition.disciplines.len();
        for run in (first..).take(self.definition.disciplines.len()).filter_map(|it| self.run(it)) {
            for (key, value) in self.labels(run) {
                if partition(key, value).len() > LONGEST_NAME {
                    return Err(SettingError {
                        key: key.into(),
                        found: format!("'{value}'"),
                        expected: format!("a value that is a name of at most {LONGEST_NAME} bytes"),
                    });
                }
            }
        }
        Ok(())
    }

    /// Does `run` at its point, and returns its parts; `None` if it was stopped.
    ///
    /// # Panics
    /// If the simulator does.
    #[must_use]
    pub fn perform(&self, point: &Point, run: Run, stop: &AtomicBool) -> Option<Vec<Part>> {
        let Point { scenario, names } = point;
        let kept = Kept { flows: self.definition.flows, links: self.definition.links };
        let mut rows = Rows::new(names, kept);
        let summary = scenario.run(run.contender, run.seed, &mut rows, stop);
        if summary.reached.0 < scenario.duration.0 {
            return None;
        }
        let (flows, links) = rows.batches(run.seed);
        let part = |table| {
            let bytes = match table {
                Table::Runs => parquet(&measures::batch(scenario, &summary)),
                Table::Flows => parquet(&flows),
                Table::Links => parquet(&links),
            };
            Part { path: self.path(table, run), bytes: bytes.expect("memory takes everything") }
        };
        Some(self.tables().map(part).collect())
    }
}

/// Checks that results can be told apart.
///
/// # Errors
/// If two contenders have one label, or a seed is there twice.
pub fn distinct<'a>(
    labels: impl IntoIterator<Item = &'a str>,
    seeds: &[u64],
) -> Result<(), StudyError> {
    once("disciplines", labels.into_iter().map(|label| format!("'{label}'")))?;
    once("seeds", seeds.iter().map(u64::to_string))
}

fn once(key: &'static str, all: impl Iterator<Item = String>) -> Result<(), StudyError> {
    let mut seen = BTreeSet::new();
    for it in all {
        if let Some(found) = seen.replace(it) {
            return Err(StudyError::Twice { key, found });
        }
    }
    Ok(())
}

/// The name of the folder for all that has this value.
fn partition(key: &str, value: &str) -> String {
    format!("{}={}", utf8_percent_encode(key, PLAIN), utf8_percent_encode(value, PLAIN))
}

/// The batch as a file, which has no date in it: equal batches are equal files.
fn parquet(batch: &RecordBatch) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("tidegate {VERSION}"))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.into_inner()
}
