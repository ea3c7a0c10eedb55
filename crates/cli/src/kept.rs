//! Results on disk, read again: the folders that comparisons have written.
//!
//! A folder holds results if it has a manifest, which a comparison writes last. What is
//! read is bounded, and only from plain files directly in the folder or in its plots: the
//! folder may come from somebody else. Results that an older program wrote show what
//! they have.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;
use tidegate_study::manifest::{self, Manifest};

use crate::folder::{CSV, JSON, SWEEP};
use crate::report;

/// The folder of figures in each folder of results.
pub(crate) const PLOTS: &str = "plots";
/// A file of results that is larger than this is not read.
const LARGEST: u64 = 64 << 20;
/// Entries of a folder beyond these are not looked at.
const MOST_ENTRIES: usize = 10_000;
/// The bytes of a figure in which its words are looked for.
const MOST_WORDS: u64 = 16 << 10;

/// The results of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The name of their folder, which is no path.
    pub(crate) name: String,
    /// What was compared.
    pub(crate) title: String,
    /// The labels of the contenders.
    pub(crate) contenders: Vec<String>,
    /// How many seeds each had.
    pub(crate) seeds: usize,
    /// The time of each run, s.
    pub(crate) duration_s: f64,
    /// Whether runs are missing.
    pub(crate) partial: bool,
    /// What to run.
    pub(crate) headline: Option<String>,
    /// The latency under load.
    pub(crate) grade: Option<String>,
    /// When they were written.
    pub(crate) made: SystemTime,
    path: PathBuf,
    files: BTreeSet<String>,
}

/// The head of `summary.json`, or of a sweep's `sweep.json`.
#[derive(Deserialize)]
struct Head {
    title: String,
    said: Option<Said>,
    /// The keys of a sweep.
    #[serde(default)]
    axes: Vec<Axis>,
}

#[derive(Deserialize)]
struct Axis {
    key: String,
}

#[derive(Deserialize)]
struct Said {
    headline: String,
    grade: Option<String>,
}

/// A value of `summary.csv`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Number {
    /// The contender.
    #[serde(alias = "discipline", alias = "way")]
    pub(crate) contender: String,
    /// What it is about: a size class, a source of traffic, a link.
    pub(crate) kind: String,
    /// Which one.
    pub(crate) name: String,
    /// The measure.
    pub(crate) metric: String,
    /// How its runs were summed up, such as `mean`.
    pub(crate) estimate: String,
    /// In the unit that the metric's name ends with.
    pub(crate) value: f64,
    /// The ends of its 95% interval, if it has one.
    pub(crate) low_95: Option<f64>,
    pub(crate) high_95: Option<f64>,
}

/// All results directly in `folder`, or those that it is itself, the newest first.
///
/// Those that are as `earlier` has them are not read again.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn all(folder: &Path, earlier: Vec<Kept>) -> io::Result<Vec<Kept>> {
    let mut earlier: HashMap<_, _> = earlier.into_iter().map(|it| (it.path.clone(), it)).collect();
    let mut found: Vec<_> = Kept::read(folder, &mut earlier).into_iter().collect();
    for entry in fs::read_dir(folder)?.take(MOST_ENTRIES) {
        found.extend(entry.ok().and_then(|it| Kept::read(&it.path(), &mut earlier)));
    }
    found.sort_by(|one, other| other.made.cmp(&one.made).then_with(|| one.name.cmp(&other.name)));
    Ok(found)
}

impl Kept {
    /// The results in the folder at `path`, if there are any.
    fn read(path: &Path, earlier: &mut HashMap<PathBuf, Kept>) -> Option<Kept> {
        let path = path.canonicalize().ok()?;
        let written = plain(&path.join(manifest::NAME))?.metadata().ok()?.modified().ok()?;
        if let Some(same) = earlier.remove(&path).filter(|it| it.made == written) {
            return Some(same);
        }
        let manifest: Manifest = serde_json::from_str(&text(&path.join(manifest::NAME))?).ok()?;
        let head: Head =
            serde_json::from_str(&[JSON, SWEEP].iter().find_map(|name| text(&path.join(name)))?)
                .ok()?;
        let own = [manifest::NAME, report::NAME].map(String::from);
        let said = head.said;
        let keys: Vec<_> = head.axes.into_iter().map(|axis| axis.key).collect();
        let map = || format!("A map over {}", keys.join(" and "));
        Some(Kept {
            name: path.file_name()?.to_str()?.into(),
            title: head.title,
            contenders: manifest.contenders.iter().map(|it| it.label.clone()).collect(),
            seeds: manifest.seeds.len(),
            duration_s: manifest.duration_ns as f64 / 1e9,
            partial: manifest.partial,
            grade: said.as_ref().and_then(|it| it.grade.clone()),
            headline: said.map(|it| it.headline).or_else(|| (!keys.is_empty()).then(map)),
            made: written,
            files: manifest.results.into_keys().chain(own).collect(),
            path,
        })
    }

    /// Opens one of its files: a result that the manifest names, or a figure.
    pub(crate) fn open(&self, name: &str) -> Option<File> {
        match name.split_once('/') {
            None => self.files.contains(name).then(|| plain(&self.path.join(name)))?,
            Some((PLOTS, figure)) => {
                let known = self.figures().contains(figure.strip_suffix(".svg")?);
                known.then(|| plain(&self.path.join(PLOTS).join(figure)))?
            }
            Some(_) => None,
        }
    }

    /// The names of its figures, which are SVG files.
    pub(crate) fn figures(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path.join(PLOTS)).into_iter().flatten();
        let stem = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".svg").filter(|it| !it.starts_with('.')).map(String::from)
        };
        entries.take(MOST_ENTRIES).filter_map(stem).collect()
    }

    /// The title of a figure, and what it says to readers who cannot see it.
    pub(crate) fn figure_in_words(&self, figure: &str) -> Option<[String; 2]> {
        let file = self.open(&format!("{PLOTS}/{figure}.svg"))?;
        // They are its first elements; what is cut in a character behind is of no interest.
        let mut bytes = Vec::new();
        file.take(MOST_WORDS).read_to_end(&mut bytes).ok()?;
        let head = String::from_utf8_lossy(&bytes);
        let text = |element: &str| {
            let (_, text) = head.split_once(&format!("<{element}"))?.1.split_once('>')?;
            let (text, _) = text.split_once(&format!("</{element}>"))?;
            Some(text.replace("&lt;", "<").replace("&amp;", "&"))
        };
        Some([text("title")?, text("desc").unwrap_or_default()])
    }

    /// Its numbers, in the order of the file.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        let text = text(&self.path.join(CSV)).unwrap_or_default();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        reader.deserialize().filter_map(Result::ok).collect()
    }
}

/// The file at `path`, unless it is a link to elsewhere or no file.
fn plain(path: &Path) -> Option<File> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    File::open(path).ok()
}

/// The text of a plain file of bounded size.
fn text(path: &Path) -> Option<String> {
    let mut file = plain(path)?;
    let fits = file.metadata().ok()?.len() <= LARGEST;
    let mut text = String::new();
    (fits && file.read_to_string(&mut text).is_ok()).then_some(text)
}
