//! Homes with two films, a call, pages, lookups and a download on links that are full, and a call
//! beside a download alone.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use tidegate_sim::scenario::file::{self, Folder};
use tidegate_study::comparison::{Comparison, DisciplineResult, TrafficResult};
use tidegate_study::experiment::{self, Forget};
use tidegate_study::{Sample, measure::Measure, measure::Value};

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

const COLUMNS: [Column; 10] = [
    ("films, Mbit/s", "films", "video_quality_bps", 1e-6, 2),
    ("stalled, %", "films", "video_stalled_ratio", 1e2, 1),
    ("changes a minute", "films", "video_switches_per_minute", 1.0, 1),
    ("call, Mbit/s", "call, down", "throughput_bps", 1e-6, 2),
    ("call, R", "call, down", "call_rating", 1.0, 0),
    ("call, 95% within, ms", "call, down", "delay_p95_s", 1e3, 0),
    ("page, s", "web", "page_load_mean_s", 1.0, 2),
    ("download, Mbit/s", "download", "throughput_bps", 1e-6, 2),
    ("lookup, ms", "names", "lookup_mean_s", 1e3, 0),
    ("asked again, %", "names", "lookups_asked_again_ratio", 1e2, 1),
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

/// A call on a link of 4 and 2 Mbit/s, beside a download from 30 s on.
const CALL: (&str, &str) = (
    "A call beside a download",
    r#"
    title = "A call beside a download"
    duration = "150 s"
    warm_up = "60 s"
    seeds = 10
    DISCIPLINES
    [access]
    hosts = 2
    down = "4 Mbit/s"
    up = "2 Mbit/s"
    delay = "8 ms"
    buffer = "100 packets"
    servers = ["15 ms"]
    [[traffic.call]]
    name = "call, down"
    from = "servers"
    to = "host1"
    [[traffic.transfers]]
    name = "download"
    from = "servers"
    to = "host2"
    count = 1
    sizes = "endless"
    request = "400 B"
    start = "30 s"
    follow = true
    "#,
);

/// EFD with a threshold that a call does not reach.
const WIDE_EFD: &str = "{ name = \"efd\", label = \"efd, 150 kB\", threshold = \"150 kB\" }";

/// Of those columns, what there is beside a download.
const CALL_COLUMNS: [Column; 4] = [COLUMNS[3], COLUMNS[4], COLUMNS[5], COLUMNS[7]];

pub(super) fn tables() -> Result<Vec<Table>, Box<dyn Error>> {
    let evening = std::fs::read_to_string(format!("{LINKS}/{EVENING}"))?;
    let ours = OURS.replace("\"efd\"", &format!("\"efd\", {WIDE_EFD}"));
    let call = CALL.1.replace("DISCIPLINES", &ours);
    let mut tables = vec![(CALL.0, measured(&call, &CALL_COLUMNS)?)];
    for (heading, changes) in HOMES {
        let mut text = evening.clone();
        for (from, to) in [(DISCIPLINES, OURS)].iter().chain(changes) {
            assert!(text.contains(from), "{EVENING} has no line {from:?}");
            text = text.replacen(from, to, 1);
        }
        tables.push((heading, measured(&text, &COLUMNS)?));
    }
    Ok(tables)
}

/// A row for each discipline of a scenario.
fn measured(text: &str, columns: &[Column]) -> Result<String, Box<dyn Error>> {
    let scenario = file::parse(EVENING, text, &Folder(LINKS.into()))?;
    let threads = std::thread::available_parallelism()?.get();
    let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
    let comparison = Comparison::of(&scenario, &runs);
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let heads = columns.iter().map(|column| column.0.to_owned());
    let mut table = line(std::iter::once(String::new()).chain(heads).collect());
    table += &line(vec!["---".into(); columns.len() + 1]);
    for discipline in &comparison.disciplines {
        let cells = columns.iter().map(|column| cell(discipline, column));
        table += &line(std::iter::once(format!("`{}`", discipline.label)).chain(cells).collect());
    }
    Ok(table.trim_end().into())
}
