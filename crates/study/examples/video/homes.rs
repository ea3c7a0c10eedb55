//! Homes with two films, a call, pages and a download on links that are full.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use tidegate_sim::scenario::file::{self, Folder};
use tidegate_study::comparison::{Comparison, DisciplineResult, TrafficResult};
use tidegate_study::experiment::{self, Forget};
use tidegate_study::{Sample, measure::Measure, measure::Value};
use tidegate_twins::pages;

use super::{LINKS, Table};

/// The home that the program shows.
const EVENING: &str = "evening.toml";

/// A heading, and what stands in place of which line.
const HOMES: [(&str, &[(&str, &str)]); 3] = [
    ("A home of 20 and 5 Mbit/s", &[]),
    (
        "A home of 8 and 1 Mbit/s",
        &[
            ("down = \"20 Mbit/s\"\nup = \"5 Mbit/s\"", "down = \"8 Mbit/s\"\nup = \"1 Mbit/s\""),
            (
                "rate = \"1.5 Mbit/s\"\npacket = \"1100 B\"",
                "rate = \"500 kbit/s\"\npacket = \"800 B\"",
            ),
            (
                "rate = \"1.5 Mbit/s\"\npacket = \"1100 B\"",
                "rate = \"500 kbit/s\"\npacket = \"800 B\"",
            ),
            (
                "down_buffer = \"300 packets\"\nup_buffer = \"200 packets\"",
                "buffer = \"150 packets\"",
            ),
            ("load = \"2 Mbit/s\"", "load = \"1 Mbit/s\""),
            ("count = 1\n", "count = 8\n"),
        ],
    ),
    (
        "A home of 100 and 20 Mbit/s",
        &[
            (
                "down = \"20 Mbit/s\"\nup = \"5 Mbit/s\"",
                "down = \"100 Mbit/s\"\nup = \"20 Mbit/s\"",
            ),
            (
                "down_buffer = \"300 packets\"\nup_buffer = \"200 packets\"",
                "buffer = \"1000 packets\"",
            ),
            ("load = \"2 Mbit/s\"", "load = \"10 Mbit/s\""),
        ],
    ),
];

/// The disciplines of that file, and those that go in their place.
const DISCIPLINES: &str = "disciplines = [\"fifo\", \"dualpi2\", \"fq-codel\", \"cake\", \"las\", \
                           \"lars\", \"efd\", \"tide\"]";
const OURS: &str = "disciplines = [\"fifo\", \"pie\", \"dualpi2\", \"fq-codel\", \"cake\", \
                    \"las\", \"las-log\", \"lars\", \"run2c\", \"efd\", \"tide\"]";

/// A column of the table: its head, the source and the measure, a factor and digits after
/// the point.
type Column = (&'static str, &'static str, &'static str, f64, usize);

const COLUMNS: [Column; 7] = [
    ("films, Mbit/s", "films", "video_quality_bps", 1e-6, 2),
    ("stand still, %", "films", "video_stalled_ratio", 1e2, 1),
    ("changes a minute", "films", "video_switches_per_minute", 1.0, 1),
    ("call, R", "call, down", "call_rating", 1.0, 0),
    ("call, 95% within, ms", "call, down", "delay_p95_s", 1e3, 0),
    ("page, s", "web", "page_load_mean_s", 1.0, 2),
    ("download, Mbit/s", "download", "throughput_bps", 1e-6, 2),
];

fn cell(discipline: &DisciplineResult, (_, source, name, factor, decimals): &Column) -> String {
    let source = discipline.traffic.iter().find(|it| it.name == *source);
    let measure = Measure::named(TrafficResult::MEASURES, name);
    let sample = source.and_then(|source| match (measure.value)(source) {
        Value::Sample(sample) => sample.map(Sample::estimate),
        _ => None,
    });
    sample.map_or("-".into(), |it| it.text(*factor, *decimals))
}

pub(super) fn tables() -> Result<Vec<Table>, Box<dyn Error>> {
    let evening = std::fs::read_to_string(format!("{LINKS}/{EVENING}"))?;
    let mut tables = Vec::new();
    for (heading, changes) in HOMES {
        let mut text = evening.clone();
        for (from, to) in [(DISCIPLINES, OURS)].iter().chain(changes) {
            assert!(text.contains(from), "{EVENING} has no line {from:?}");
            text = text.replacen(from, to, 1);
        }
        let scenario = file::parse(EVENING, &text, &Folder(LINKS.into()))?;
        let threads = std::thread::available_parallelism()?.get();
        let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
        let comparison = Comparison::of(&scenario, &runs);
        let head = std::array::from_fn(|at| if at == 0 { "" } else { COLUMNS[at - 1].0 });
        let rows = comparison.disciplines.iter().map(|discipline| -> [String; 8] {
            std::array::from_fn(|at| match at {
                0 => format!("`{}`", discipline.label),
                _ => cell(discipline, &COLUMNS[at - 1]),
            })
        });
        tables.push((heading, pages::table(head, rows)));
    }
    Ok(tables)
}
