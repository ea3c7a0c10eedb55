//! A home on a link that is full: pages, a call, a download and a backup, whose senders are
//! those of today, or of low-latency traffic in part or all.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::file;
use tidegate_study::experiment::{self, Forget};
use tidegate_study::{Centre, Sample};

use super::{Table, table};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/links");

/// The household that the program shows, with ten seeds.
const HOUSEHOLD: &str = "household.toml";

/// Its disciplines, and those that go in their place.
const DISCIPLINES: &str = "disciplines = [\"fifo\", \"fq-codel\", \"cake\", \"scfq\", \"las\", \
                           \"lars\", \"run2c\", \"efd\"]";
const OURS: &str = r#"disciplines = [
    "fifo", "pie", "dualpi2", "fq-codel",
    { name = "fq-codel", label = "fq-codel, step", ce_threshold = "1 ms", ce_threshold_selector = "ect1" },
    "cake", { name = "cake", label = "cake, step", ce_threshold = "1 ms" },
    "las", "lars", "efd", "tide",
]"#;

/// Who sends what: a heading, and what stands in place of which line.
const SENDERS: [(&str, &[(&str, &str)]); 3] = [
    ("A home with today's senders", &[]),
    (
        "The same with a download by Prague",
        &[("name = \"download\"\n", "name = \"download\"\ntcp = { congestion = \"prague\" }\n")],
    ),
    (
        "The same with Prague everywhere",
        &[
            ("tcp = { profile = \"mix\" }", ""),
            ("[access]", "[tcp]\nprofile = \"l4s\"\n\n[access]"),
        ],
    ),
];

/// A column of the table: its head, and what it shows of a run.
type Column = (&'static str, fn(&RunSummary) -> Option<f64>);

const COLUMNS: [Column; 6] = [
    ("objects of up to 30 kB, ms", |run| Some(run.traffic[0].short.mean()? * 1e3)),
    ("pages, s", |run| run.traffic[0].page_loads.mean()),
    ("call, 95% within, ms", |run| Some(run.traffic[1].delay.quantile(0.95)? * 1e3)),
    ("call lost, %", |run| {
        let call = &run.traffic[1];
        Some(call.datagrams_lost as f64 / call.datagrams.max(1) as f64 * 100.0)
    }),
    ("download, Mbit/s", |run| Some(run.traffic[3].long_goodputs.first()? / 1e6)),
    ("backup, Mbit/s", |run| Some(run.traffic[4].long_goodputs.first()? / 1e6)),
];

/// Three digits of the mean.
fn decimals(sample: &Sample) -> usize {
    match sample.estimate().value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    }
}

pub(super) fn tables() -> Result<Vec<Table>, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("{FOLDER}/{HOUSEHOLD}"))?;
    let mut tables = Vec::new();
    for (heading, changes) in SENDERS {
        let mut text = text.clone();
        for (from, to) in [(DISCIPLINES, OURS)].iter().chain(changes) {
            assert!(text.contains(from), "{HOUSEHOLD} has no line {from:?}");
            text = text.replacen(from, to, 1);
        }
        let scenario = file::parse(HOUSEHOLD, &text, &file::Folder(FOLDER.into()))?;
        let threads = std::thread::available_parallelism()?.get();
        let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
        let rows: Vec<Vec<String>> = scenario
            .disciplines
            .iter()
            .map(|choice| {
                let own = || runs.iter().filter(|run| run.discipline == choice.label);
                let cell = |(_, of): &Column| {
                    let sample = Sample::of(Centre::Mean, own().map(|run| (run.seed, of(run))));
                    sample.map_or("-".into(), |it| it.estimate().text(1.0, decimals(&it)))
                };
                std::iter::once(format!("`{}`", choice.label))
                    .chain(COLUMNS.iter().map(cell))
                    .collect()
            })
            .collect();
        let heads: Vec<&str> = std::iter::once("").chain(COLUMNS.map(|(head, _)| head)).collect();
        tables.push((heading, table(&heads, &rows)));
    }
    Ok(tables)
}
