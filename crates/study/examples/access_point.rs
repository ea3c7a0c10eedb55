//! Measurements for access points: uploads against downloads, and one slow station
//! among fast ones, with and without aggregates and airtime fairness, under several
//! disciplines.
//!
//! ```text
//! cargo run --release -p tidegate-study --example access_point -- docs/access-point.md
//! ```
//!
//! writes the tables of that page, over ten seeds: means, or of ratios and of what 95%
//! are within medians with 95% intervals.

use std::error::Error;
use std::fs;
use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::Times;
use tidegate_sim::scenario::{Capacity, Scenario, file};
use tidegate_study::experiment::{self, Forget};
use tidegate_study::{Centre, Estimate};
use tidegate_twins::pages;

const LINKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/links");

/// In place of which line of a scenario another stands.
type Change = (&'static str, &'static str);

const DISCIPLINES: Change = (
    "disciplines = [\n    \"fifo\",\n    \"scfq\",\n    \"lars\",\n    \"las-ack\",\n    \
     \"run2c-ack\",\n    \"efd-ack\",\n    { name = \"efd\", label = \"befd\", threshold = \"30 \
     kB\" },\n",
    "disciplines = [\n    \"fifo\",\n    \"fq-codel\",\n    \"cake\",\n    \"las-ack\",\n    \
     \"efd-ack\",\n",
);
const OFDM: &str = "rates = [\"54 Mbit/s\"]";
const NO_CHANGE: Change = ("", "");
const ONE_QUEUE: Change = ("airtime_fairness = true\n", "");

/// A column of a table, of what it shows of a run.
struct Column {
    head: &'static str,
    centre: Centre,
    value: fn(&Scenario, &RunSummary) -> Option<f64>,
}

const fn column(
    head: &'static str,
    centre: Centre,
    value: fn(&Scenario, &RunSummary) -> Option<f64>,
) -> Column {
    Column { head, centre, value }
}

const UP: Column = column("up", Centre::Mean, |scenario, run| Some(mbits(scenario, run, 0)));
const DOWN: Column = column("down", Centre::Mean, |scenario, run| Some(mbits(scenario, run, 1)));
const RATIO: Column = column("up over down", Centre::Median, |scenario, run| {
    Some(mbits(scenario, run, 0) / mbits(scenario, run, 1))
});
const WAIT: Column = column("in the queue, ms", Centre::Mean, waited);
const CALL: Column = column("95% of a call's packets within, ms", Centre::Median, |_, run| {
    run.traffic[2].delay.quantile(0.95).map(|seconds| seconds * 1e3)
});
const FAST: Column =
    column("each fast one", Centre::Mean, |scenario, run| Some(mbits(scenario, run, 0) / 3.0));
const SLOW: Column =
    column("slow one", Centre::Mean, |scenario, run| Some(mbits(scenario, run, 1)));
const ALL: Column = column("all", Centre::Mean, |scenario, run| {
    Some(mbits(scenario, run, 0) + mbits(scenario, run, 1))
});

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: access_point PAGE")?;
    let page = fs::read_to_string(&path)?;

    let cell = |standard: Change| rows("wifi-54", &[DISCIPLINES, standard], &[UP, DOWN, WAIT]);
    let standards = [
        ("802.11a, 54 Mbit/s", cell(NO_CHANGE)?),
        ("802.11n, 65", cell((OFDM, "standard = \"802.11n\"\nrates = [\"MCS 7\"]"))?),
        ("802.11ac, 390", cell((OFDM, "standard = \"802.11ac\"\nrates = [\"MCS 9\"]"))?),
    ];
    let page = pages::with_table(&page, "What aggregates change", &table(&standards));

    let today = |change: Change| rows("wifi-ac", &[change], &[UP, DOWN, RATIO, WAIT, CALL]);
    let ahead = [("", today(NO_CHANGE)?)];
    let page = pages::with_table(&page, "One queue, today's TCP", &table(&ahead));
    let further = [("", today(("[tcp]", "staging = 512\n\n[tcp]"))?)];
    let page = pages::with_table(&page, "Before there were queues for stations", &table(&further));
    let each = [("", today(("[tcp]", "airtime_fairness = true\n\n[tcp]"))?)];
    let mut page = pages::with_table(&page, "What airtime fairness changes", &table(&each));

    const AC: &str = "standard = \"802.11ac\"\nrates = [\"MCS 9\", \"MCS 9\", \"MCS 9\", \"MCS \
                      0\", \"MCS 9\"]\nwidth = \"80 MHz\"";
    let a = "rates = [\"54 Mbit/s\", \"54 Mbit/s\", \"54 Mbit/s\", \"6 Mbit/s\", \"54 Mbit/s\"]";
    let n =
        "standard = \"802.11n\"\nrates = [\"MCS 7\", \"MCS 7\", \"MCS 7\", \"MCS 0\", \"MCS 7\"]";
    for (heading, queues) in
        [("One slow station, one queue", ONE_QUEUE), ("One slow station, by airtime", NO_CHANGE)]
    {
        let cell =
            |standard: Change| rows("wifi-slow", &[standard, queues], &[FAST, SLOW, ALL, CALL]);
        let standards = [
            ("802.11a, 54 and 6", cell((AC, a))?),
            ("802.11n, 65 and 6.5", cell((AC, n))?),
            ("802.11ac, 390 and 29", cell(NO_CHANGE)?),
        ];
        page = pages::with_table(&page, heading, &table(&standards));
    }
    fs::write(path, page)?;
    Ok(())
}

/// What came out: the heads of columns, and for each discipline its cells.
struct Rows {
    heads: Vec<&'static str>,
    cells: Vec<(String, Vec<Option<Estimate>>)>,
}

/// The cells of several runs side by side, a line for each discipline. The first
/// column of a group has its name.
fn table(groups: &[(&str, Rows)]) -> String {
    let heads = groups.iter().flat_map(|(group, rows)| {
        rows.heads.iter().enumerate().map(move |(index, head)| match (index, *group) {
            (0, group) if !group.is_empty() => format!("{group}: {head}"),
            _ => (*head).to_owned(),
        })
    });
    let heads: Vec<String> = heads.collect();
    let mut text =
        format!("| | {} |\n| --- |{}\n", heads.join(" | "), " ---: |".repeat(heads.len()));
    for (index, (discipline, _)) in groups[0].1.cells.iter().enumerate() {
        let cells = groups.iter().flat_map(|(_, rows)| &rows.cells[index].1);
        let cells = cells.map(|cell| cell.as_ref().map_or("-".into(), |it| shown(it, groups)));
        text += &format!("| `{discipline}` | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// An estimate to three digits. Beside other groups there is no room for the interval
/// of a median, and the intervals of means are small.
fn shown(estimate: &Estimate, groups: &[(&str, Rows)]) -> String {
    let decimals = match estimate.value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    match estimate.centre {
        Centre::Median if groups.len() == 1 => estimate.text(1.0, decimals),
        _ => format!("{:.decimals$}", estimate.value),
    }
}

/// Runs a scenario with changes.
fn rows(scenario: &str, changes: &[Change], columns: &[Column]) -> Result<Rows, Box<dyn Error>> {
    let path = format!("{LINKS}/{scenario}.toml");
    let mut text = fs::read_to_string(&path)?;
    for (old, new) in changes {
        if !text.contains(old) {
            return Err(format!("{path} has no '{old}'").into());
        }
        text = text.replacen(old, new, 1);
    }
    eprintln!("{scenario} {changes:?}");
    let scenario = file::parse(&path, &text, &file::Folder(LINKS.into()))?;
    let threads = std::thread::available_parallelism()?.get();
    let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
    let cells = scenario.disciplines.iter().map(|discipline| {
        let cells = columns.iter().map(|column| {
            let of_runs = runs.iter().filter(|run| run.discipline == discipline.label);
            let values = of_runs.filter_map(|run| (column.value)(&scenario, run));
            column.centre.of(values)
        });
        (discipline.label.clone(), cells.collect())
    });
    Ok(Rows { heads: columns.iter().map(|column| column.head).collect(), cells: cells.collect() })
}

fn mbits(scenario: &Scenario, run: &RunSummary, source: usize) -> f64 {
    let measured = scenario.duration.as_seconds() - scenario.warm_up.as_seconds();
    run.traffic[source].delivered.0 as f64 * 8.0 / measured / 1e6
}

/// Mean time of a packet in the queues of the access point, in ms.
fn waited(scenario: &Scenario, run: &RunSummary) -> Option<f64> {
    let mut all = Times::default();
    for (spec, link) in scenario.links.iter().zip(&run.links) {
        if let (Capacity::Downlink(_), Some(link)) = (&spec.capacity, link) {
            all.merge(&link.delay);
        }
    }
    all.mean().map(|seconds| seconds * 1e3)
}
