//! Studies: what lies in their folders, what is done again and what is not, and what happens
//! to the rest when a run fails.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use tidegate_store::{Asked, Folder, Source, Study, StudyError, Table, file, work};
use tidegate_study::comparison::Comparison;
use tidegate_study::experiment;
use tidegate_study::measure::Row;

const SCENARIO: &str = r#"
    title = "Two sizes"
    duration = "2 s"
    seeds = [7, 3]
    disciplines = ["fifo", "tide"]
    dumbbell = { rate = "5 Mbit/s" }
    [[traffic.transfers]]
    name = "files"
    from = "senders"
    to = "receivers"
    load = "4 Mbit/s"
    sizes = "20 kB"
"#;

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn source(text: &str, folder: &Path) -> Source {
    Source { name: "two.toml".into(), text: text.into(), folder: folder.into() }
}

fn asked(over: &[&str]) -> Asked {
    let mut asked = source(SCENARIO, Path::new(".")).alone();
    asked.over = over.iter().map(|text| text.parse().unwrap()).collect();
    asked
}

fn study(over: &[&str]) -> Study {
    Study::new(asked(over)).unwrap()
}

/// Runs what is missing, and returns how many runs that were.
fn sweep(study: &Study, folder: &Folder, threads: usize) -> usize {
    let missing = folder.missing(study).len();
    let done = AtomicUsize::new(0);
    let count = || {
        done.fetch_add(1, Ordering::Relaxed);
    };
    let failures = work::run(study, folder, threads, &AtomicBool::new(false), &count).unwrap();
    assert_eq!(failures, []);
    assert_eq!(done.into_inner(), study.size());
    assert!(folder.missing(study).is_empty());
    let unfinished = fs::read_dir(folder.path().join(".unfinished")).unwrap();
    assert_eq!(unfinished.count(), 0);
    missing
}

/// Every file of a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            let content = fs::read(&path).unwrap();
            all.insert(path, content);
        }
    }
    all
}

fn batches(folder: &Folder, study: &Study, table: Table) -> Vec<RecordBatch> {
    folder.read(study, table).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_last_key_varies_fastest_and_disciplines_meet_under_one_seed() {
    let study = study(&["rate=5 Mbit/s,9 Mbit/s", "dumbbell.pairs=1,2"]);
    assert_eq!(study.size(), 2 * 2 * 2 * 2);
    let paths: Vec<_> = study.runs().map(|run| study.path(Table::Runs, run)).collect();
    let at = |pairs, discipline, seed| {
        format!(
            "runs/rate=5%20Mbit%2Fs/dumbbell.pairs={pairs}/discipline={discipline}/{seed}.parquet"
        )
    };
    assert_eq!(paths[..3], [at(1, "fifo", 7), at(1, "tide", 7), at(1, "fifo", 3)]);
    assert_eq!(paths[4], at(2, "fifo", 7));
    assert!(study.runs().enumerate().all(|(index, run)| run.index == index));
    assert_eq!(study.run(16), None);
}

#[test]
fn what_is_there_is_not_run_again_and_a_larger_study_adds_to_it() {
    let scratch = Scratch::new("study-grows");
    let small = study(&["rate=5 Mbit/s"]);
    let folder = Folder::prepare(&scratch.0, &small).unwrap();
    assert_eq!(sweep(&small, &folder, 2), 4);
    let before = files(&scratch.0.join("runs"));
    assert_eq!(before.len(), 4);
    assert_eq!(sweep(&small, &folder, 2), 0);

    let mut more = asked(&["rate=9 Mbit/s,5 Mbit/s"]);
    more.overrides.seeds = Some(vec![3, 4]);
    more.overrides.disciplines = Some(vec!["tide".parse().unwrap(), "efd".parse().unwrap()]);
    let more = Study::new(more).unwrap();
    let folder = Folder::prepare(&scratch.0, &more).unwrap();
    // Of eight, that of 5 Mbit/s, Tide and seed 3 is there.
    assert_eq!(sweep(&more, &folder, 2), 7);
    let after = files(&scratch.0.join("runs"));
    assert!(before.iter().all(|(path, content)| after.get(path) == Some(content)));

    // The folder knows all of it, and a table of it has what there is.
    let (folder, all) = Folder::open(&scratch.0).unwrap();
    assert_eq!((all.seeds(), all.disciplines().len()), (&[7, 3, 4][..], 3));
    assert_eq!((all.size(), folder.missing(&all).len()), (18, 18 - 11));
    assert_eq!(batches(&folder, &all, Table::Runs).len(), 11);
    assert_eq!(batches(&folder, &more, Table::Runs).len(), 8);
}

#[test]
fn a_study_that_keeps_more_tables_runs_again() {
    let scratch = Scratch::new("study-tables");
    let mut asked = asked(&[]);
    let runs = Study::new(asked.clone()).unwrap();
    let folder = Folder::prepare(&scratch.0, &runs).unwrap();
    assert_eq!(sweep(&runs, &folder, 2), 4);
    let error = folder.read(&runs, Table::Flows).err().unwrap().to_string();
    assert!(error.ends_with("found no flows, expected a study that keeps flows"), "{error}");

    (asked.kept.flows, asked.kept.links) = (true, true);
    let all = Study::new(asked).unwrap();
    let folder = Folder::prepare(&scratch.0, &all).unwrap();
    assert_eq!(sweep(&all, &folder, 2), 4);
    for table in [Table::Flows, Table::Links] {
        let rows: usize = batches(&folder, &all, table).iter().map(RecordBatch::num_rows).sum();
        assert!(rows >= 4 * 20, "{table:?} has {rows} rows");
    }
}

#[test]
fn threads_and_processes_leave_no_trace() {
    let written = |threads| {
        let scratch = Scratch::new(&format!("study-{threads}-threads"));
        let mut asked = asked(&["rate=5 Mbit/s,9 Mbit/s"]);
        asked.kept.flows = true;
        let study = Study::new(asked).unwrap();
        let folder = Folder::prepare(&scratch.0, &study).unwrap();
        assert_eq!(sweep(&study, &folder, threads), 8);
        let relative = |(path, content): (PathBuf, _)| {
            (path.strip_prefix(&scratch.0).unwrap().to_path_buf(), content)
        };
        let written: BTreeMap<_, Vec<u8>> = files(&scratch.0).into_iter().map(relative).collect();
        (study, written)
    };
    let (study, one) = written(1);
    assert_eq!(one, written(3).1);

    // As another process does it, from the text of the study.
    let points = work::Points::new(Study::parse(&study.text()).unwrap(), 1);
    let run = study.run(5).unwrap();
    let parts = points.perform(run, &AtomicBool::new(false)).unwrap().unwrap();
    assert_eq!(parts.len(), 2);
    for part in parts {
        assert_eq!(one[Path::new(&part.path)], part.bytes);
    }
}

#[test]
fn the_rows_of_runs_are_what_a_comparison_says() {
    let scratch = Scratch::new("study-values");
    let study = study(&[]);
    let folder = Folder::prepare(&scratch.0, &study).unwrap();
    sweep(&study, &folder, 2);

    let scenario = source(SCENARIO, Path::new(".")).scenario(&Default::default()).unwrap();
    let never = AtomicBool::new(false);
    let Ok(runs) = experiment::run(&scenario, 2, &never, &experiment::Forget);
    let mut checked = 0;
    for batch in batches(&folder, &study, Table::Runs) {
        let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
        let seeds = batch.column_by_name("seed").unwrap().as_primitive::<UInt64Type>();
        let values = batch.column_by_name("value").unwrap().as_primitive::<Float64Type>();
        let is_it = |run: &&tidegate_sim::metrics::RunSummary| {
            run.seed == seeds.value(0) && run.discipline == text("discipline").value(0)
        };
        let run = runs.iter().find(is_it).unwrap();
        let comparison = Comparison::of(&scenario, std::slice::from_ref(run));
        let expected: Vec<Row> = comparison.disciplines[0].rows();
        assert_eq!(batch.num_rows(), expected.len());
        for (row, it) in expected.iter().enumerate() {
            let found = (text("kind"), text("name"), text("metric"));
            let found = (found.0.value(row), found.1.value(row), found.2.value(row));
            assert_eq!(found, (&*it.kind, &*it.name, &*it.metric));
            assert_eq!(values.value(row).to_bits(), it.value.to_bits());
            assert!(!values.is_null(row));
            checked += 1;
        }
    }
    assert!(checked > 100);
}

#[test]
fn a_folder_takes_no_runs_of_something_else() {
    let scratch = Scratch::new("study-other");
    let first = study(&["rate=5 Mbit/s"]);
    Folder::prepare(&scratch.0, &first).unwrap();
    let refused = |asked: Asked| {
        let study = Study::new(asked).unwrap();
        Folder::prepare(&scratch.0, &study).unwrap_err().to_string()
    };
    let mut other = asked(&["rate=5 Mbit/s"]);
    other.source.text = SCENARIO.replace("20 kB", "30 kB");
    assert!(refused(other).contains("found runs of another scenario"));
    let mut longer = asked(&["rate=5 Mbit/s"]);
    longer.overrides.duration = Some("3 s".parse().unwrap());
    assert!(refused(longer).contains("found runs of another duration"));
    let mut changed = asked(&["rate=5 Mbit/s"]);
    changed.overrides.disciplines = Some(vec!["tide:credit=15 kB:label=tide".parse().unwrap()]);
    assert!(refused(changed).contains("found runs of another 'tide'"));
    let fifty: Vec<_> = (1..=50).map(|rate| format!("{rate} Mbit/s")).collect();
    let rates = format!("rate={}", fifty.join(","));
    let twenty: Vec<_> = (1..=20).map(|pairs: u32| pairs.to_string()).collect();
    let pairs = format!("dumbbell.pairs={}", twenty.join(","));
    let many = Scratch::new("study-many");
    Folder::prepare(&many.0, &study(&[&pairs, &rates])).unwrap();
    let more = study(&["dumbbell.pairs=21", "rate=1 Mbit/s"]);
    let error = Folder::prepare(&many.0, &more).unwrap_err().to_string();
    assert!(error.contains("1050 points in all"), "{error}");
    assert_eq!(Folder::open(&many.0).unwrap().1.size(), 1000 * 4);

    assert!(refused(asked(&["rtt=5 ms"])).contains("found runs over rate"));
    assert!(refused(asked(&[])).contains("found runs over rate"));

    let text = first.text().replace(env!("CARGO_PKG_VERSION"), "0.0.1");
    let error = Study::parse(&text).unwrap_err().to_string();
    assert!(error.starts_with("found a study of version 0.0.1, expected one of "), "{error}");
    fs::write(scratch.0.join("manifest.json"), text).unwrap();
    assert!(refused(asked(&["rate=5 Mbit/s"])).contains("found runs of version 0.0.1"));

    fs::write(scratch.0.join("manifest.json"), "{}").unwrap();
    assert!(refused(asked(&["rate=5 Mbit/s"])).contains("is not of a study"));
    fs::rename(scratch.0.join("manifest.json"), scratch.0.join("letter.txt")).unwrap();
    assert!(refused(asked(&["rate=5 Mbit/s"])).contains("found other files"));
    let error = Folder::open(&scratch.0).unwrap_err().to_string();
    assert!(error.contains("expected the folder of a study"), "{error}");
}

#[test]
fn a_run_that_fails_takes_no_other_with_it() {
    let scratch = Scratch::new("study-fails");
    fs::create_dir_all(&scratch.0).unwrap();
    for name in ["small.csv", "large.csv"] {
        let text = "size_bytes,cumulative_probability\n100,0.5\n2000,1\n";
        fs::write(scratch.0.join(name), text).unwrap();
    }
    let text = SCENARIO.replace("sizes = \"20 kB\"", "sizes.file = \"small.csv\"");
    let mut asked = source(&text, &scratch.0).alone();
    asked.over = vec!["traffic.transfers.files.sizes.file=small.csv,large.csv".parse().unwrap()];
    let study = Study::new(asked).unwrap();
    let results = scratch.0.join("results");
    let folder = Folder::prepare(&results, &study).unwrap();

    // It goes away once the study has been checked.
    let kept = fs::read(scratch.0.join("large.csv")).unwrap();
    fs::remove_file(scratch.0.join("large.csv")).unwrap();
    let never = AtomicBool::new(false);
    let failures = work::run(&study, &folder, 2, &never, &|| ()).unwrap();
    let missing = folder.missing(&study);
    assert_eq!((study.size(), failures.len()), (8, 4));
    assert_eq!(failures.iter().map(|it| it.run).collect::<Vec<_>>(), missing);
    assert!(failures.iter().all(|it| it.message.contains("large.csv")), "{failures:?}");

    // Back again, only these are run.
    fs::write(scratch.0.join("large.csv"), kept).unwrap();
    assert_eq!(sweep(&study, &folder, 2), 4);

    // With another content it is another study.
    let text = "size_bytes,cumulative_probability\n100,0.5\n3000,1\n";
    fs::write(scratch.0.join("small.csv"), text).unwrap();
    let mut asked = source(&study_text(&study), &scratch.0).alone();
    asked.over = study.over().to_vec();
    let error = Folder::prepare(&results, &Study::new(asked).unwrap()).unwrap_err().to_string();
    assert!(error.contains("runs with another content of 'small.csv'"), "{error}");
}

/// The text of its scenario.
fn study_text(study: &Study) -> String {
    let text: serde_json::Value = serde_json::from_str(&study.text()).unwrap();
    text["scenario"]["text"].as_str().unwrap().into()
}

#[test]
fn nothing_runs_after_a_stop_and_what_was_cut_off_is_not_kept() {
    let scratch = Scratch::new("study-stops");
    let study = study(&["rate=5 Mbit/s,9 Mbit/s"]);
    let folder = Folder::prepare(&scratch.0, &study).unwrap();
    let stop = AtomicBool::new(false);
    let done = AtomicUsize::new(0);
    let count = || {
        done.fetch_add(1, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    };
    let failures = work::run(&study, &folder, 1, &stop, &count).unwrap();
    assert_eq!((failures, done.into_inner()), (vec![], 1));
    assert_eq!(folder.missing(&study).len(), 7);
    assert_eq!(sweep(&study, &folder, 2), 7);
}

#[test]
fn a_part_that_is_none_is_told_by_its_name() {
    let scratch = Scratch::new("study-broken");
    let study = study(&[]);
    let folder = Folder::prepare(&scratch.0, &study).unwrap();
    sweep(&study, &folder, 2);
    let path = scratch.0.join(study.path(Table::Runs, study.run(1).unwrap()));
    let whole = fs::read(&path).unwrap();
    for broken in [&b"none"[..], &whole[..whole.len() / 2], &[]] {
        fs::write(&path, broken).unwrap();
        let read: Result<Vec<_>, _> = folder.read(&study, Table::Runs).unwrap().collect();
        let error = read.unwrap_err().to_string();
        assert!(error.contains("discipline=tide/7.parquet: found "), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let refused = |asked: Asked| Study::new(asked).unwrap_err();
    let error = refused(asked(&["rate=5 Mbit/s,0 Mbit/s"]));
    assert!(matches!(error, StudyError::Over(_)), "{error}");
    assert!(error.to_string().starts_with("over: rate: found '0 Mbit/s'"), "{error}");
    let error = refused(asked(&["rate=1 Mbit/s", "rate=2 Mbit/s"])).to_string();
    assert!(error.contains("the same key twice"), "{error}");

    let mut twice = asked(&[]);
    twice.overrides.seeds = Some(vec![1, 2, 1]);
    assert_eq!(refused(twice).to_string(), "seeds: found 1 twice, expected each once");
    let mut twice = asked(&[]);
    twice.overrides.disciplines = Some(vec!["efd".parse().unwrap(), "efd".parse().unwrap()]);
    assert_eq!(refused(twice).to_string(), "disciplines: found 'efd' twice, expected each once");

    let long = format!("title={}", "x".repeat(300));
    let error = refused(asked(&[&long])).to_string();
    assert!(error.contains("a name of at most 255 bytes"), "{error}");
    let mut wrong = asked(&[]);
    wrong.source.text = SCENARIO.replace("fifo", "fiffo");
    let error = refused(wrong).to_string();
    assert!(error.starts_with("two.toml:5:"), "{error}");
}

#[test]
fn errors_in_the_file_of_a_study_say_where() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (text, expected) in [
        ("over = []", "scenario: found nothing, expected a value"),
        ("scenario = 1", "s.toml:1:12: scenario: found 1, expected"),
        ("scenario = 'houshold'", "s.toml:1:12: scenario: found 'houshold' ("),
        ("scenario = 'household'\nsead = 1", "s.toml:2:1: sead: found unknown 'sead'"),
        ("scenario = 'household'\nseeds = 0", "s.toml:2:9: seeds: found 0"),
        ("scenario = 'household'\nduration = '9 q'", "s.toml:2:12: duration: found '9 q'"),
        ("scenario = 'household'\nover = ['rate']", "s.toml:2:9: over: found 'rate', expected KEY"),
        ("scenario = 'household'\ndisciplines = []", "found no disciplines"),
        ("scenario = 'household'\ndisciplines = ['tidee']", "2:16: disciplines: found unknown"),
        ("scenario =", "s.toml:1:"),
    ] {
        let error = file::parse("s.toml", text, folder).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert!(file::is_study("scenario = 'household'"));
    assert!(!file::is_study(SCENARIO) && !file::is_study("scenario ="));
}
