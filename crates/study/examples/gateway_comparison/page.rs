//! The tables of the page that draws the conclusions, each below its heading.

use tidegate_sim::requests::Outcome;
use tidegate_study::Centre;
use tidegate_twins::pages;

use super::{Runs, WAYS, variants};

/// Places of the settings in the list of all.
const NINETY_PERCENT: usize = 3;
const SATURATED: usize = 5;
const FAST: [usize; 3] = [7, 8, 9];

/// What a column shows of a run, and what is estimated of it over the seeds.
type Figure<'a> = (Centre, Box<dyn Fn(&Outcome) -> Option<f64> + 'a>);

/// A column: its head, the setting, the figure, and its decimals if they are fixed.
type Column<'a> = (&'a str, usize, Figure<'a>, Option<usize>);

/// `page` with the tables that follow from the outcomes, by setting of the link.
pub(crate) fn with_tables(page: &str, outcomes: &[Runs]) -> String {
    let slow = best(&outcomes[SATURATED]);
    let loads = ["50%", "70%", "80%", "90%", "95%", "saturated", "saturated, the paper's TCP"];
    let small = loads.into_iter().enumerate();
    let small = small.map(|(at, head)| -> Column<'_> { (head, at, small_median(None), None) });

    let mut saturated = vec![
        ("class 1", SATURATED, throughput(0), Some(0)),
        ("2", SATURATED, throughput(1), Some(0)),
        ("3 kbit/s", SATURATED, throughput(2), Some(0)),
        ("used %", SATURATED, mean(|run| Some(run.utilisation * 100.0)), Some(1)),
        ("lost %", SATURATED, mean(lost), Some(1)),
    ];
    saturated.extend(by_class(["small median, s: class 1", "2", "3"], SATURATED, |class| {
        small_median(Some(class))
    }));
    saturated
        .extend(by_class(["p95, s: class 1", "2", "3"], SATURATED, |class| quantile(class, 0.95)));

    let response = |class: Option<usize>| {
        mean(move |run| match class {
            Some(class) => run.classes[class].response.mean(),
            None => run.all(|class| &class.response).mean(),
        })
    };
    let mut loaded = vec![("mean, s: all", NINETY_PERCENT, response(None), None)];
    loaded.extend(by_class(["class 1", "2", "3"], NINETY_PERCENT, |class| response(Some(class))));
    for (heads, fraction) in
        [(["p95, s: class 1", "2", "3"], 0.95), (["p99, s: class 1", "2", "3"], 0.99)]
    {
        loaded.extend(by_class(heads, NINETY_PERCENT, |class| quantile(class, fraction)));
    }

    let mut fast: Vec<Column<'_>> = Vec::new();
    for (at, head) in FAST.into_iter().zip(["small median, s: 80%", "90%", "saturated"]) {
        fast.push((head, at, small_median(None), None));
    }
    for (at, head) in FAST.into_iter().zip(["mean, s: 80%", "90%", "saturated"]) {
        fast.push((head, at, response(None), None));
    }
    for (class, head) in ["saturated: class 1", "2", "3 kbit/s"].into_iter().enumerate() {
        fast.push((head, FAST[2], throughput(class), Some(0)));
    }
    fast.push(("lost %", FAST[2], mean(lost), Some(1)));

    let mut rivals: Vec<Column<'_>> = vec![
        ("small median, s: 90%", NINETY_PERCENT, small_median(None), None),
        ("saturated", SATURATED, small_median(None), None),
        ("class 1", SATURATED, throughput(0), Some(0)),
        ("2", SATURATED, throughput(1), Some(0)),
        ("3 kbit/s", SATURATED, throughput(2), Some(0)),
        ("used %", SATURATED, mean(|run| Some(run.utilisation * 100.0)), Some(1)),
        ("lost %", SATURATED, mean(lost), Some(1)),
    ];
    rivals.push(("10 Mbit/s: small median, s", FAST[2], small_median(None), None));
    let several = variants().filter(|(way, _)| WAYS[*way].settings.len() > 1);

    let of_best = |columns: &[Column<'_>], best: &[usize]| {
        table(columns, outcomes, best.iter().copied().enumerate())
    };
    let page =
        pages::with_table(page, "Small responses", &of_best(&small.collect::<Vec<_>>(), &slow));
    let page = pages::with_table(&page, "The rivals' settings", &table(&rivals, outcomes, several));
    let page = pages::with_table(&page, "Saturated, by class", &of_best(&saturated, &slow));
    let page = pages::with_table(&page, "At 90% of load, by class", &of_best(&loaded, &slow));
    pages::with_table(&page, "At 10 Mbit/s", &of_best(&fast, &best(&outcomes[FAST[2]])))
}

/// For each way, the settings under which small responses are soonest in these runs.
fn best(runs: &Runs) -> Vec<usize> {
    let (centre, small) = small_median(None);
    let median = |runs: &Vec<Outcome>| {
        let estimate = centre.of(runs.iter().filter_map(&small));
        estimate.map_or(f64::INFINITY, |estimate| estimate.value)
    };
    let best = |variants: &Vec<Vec<Outcome>>| {
        let medians: Vec<f64> = variants.iter().map(median).collect();
        (0..medians.len()).min_by(|one, other| medians[*one].total_cmp(&medians[*other]))
    };
    runs.iter().map(|variants| best(variants).expect("a way has settings")).collect()
}

fn by_class<'a>(
    heads: [&'a str; 3],
    setting: usize,
    figure: impl Fn(usize) -> Figure<'a>,
) -> impl Iterator<Item = Column<'a>> {
    heads.into_iter().enumerate().map(move |(class, head)| (head, setting, figure(class), None))
}

fn mean(of: impl Fn(&Outcome) -> Option<f64> + 'static) -> Figure<'static> {
    (Centre::Mean, Box::new(of))
}

fn median(of: impl Fn(&Outcome) -> Option<f64> + 'static) -> Figure<'static> {
    (Centre::Median, Box::new(of))
}

fn small_median(class: Option<usize>) -> Figure<'static> {
    median(move |run| match class {
        Some(class) => run.classes[class].small.quantile(0.5),
        None => run.all(|class| &class.small).quantile(0.5),
    })
}

fn quantile(class: usize, fraction: f64) -> Figure<'static> {
    median(move |run| run.classes[class].response.quantile(fraction))
}

fn throughput(class: usize) -> Figure<'static> {
    mean(move |run| Some(run.throughput_bps(class) / 1e3))
}

fn lost(run: &Outcome) -> Option<f64> {
    Some(run.downlink.lost() as f64 * 100.0 / run.downlink.offered.max(1) as f64)
}

/// A row for each of these variants of ways.
fn table(
    columns: &[Column<'_>],
    outcomes: &[Runs],
    rows: impl Iterator<Item = (usize, usize)>,
) -> String {
    let heads: Vec<_> = columns.iter().map(|(head, ..)| *head).collect();
    let mut text =
        format!("|  | {} |\n| --- |{}\n", heads.join(" | "), " ---: |".repeat(heads.len()));
    for (way, variant) in rows {
        let label = WAYS[way].label(variant);
        let cell = |(_, setting, (centre, figure), places): &Column<'_>| {
            let runs = &outcomes[*setting][way][variant];
            let estimate = centre.of(runs.iter().filter_map(figure));
            estimate.map_or("-".into(), |estimate| number(estimate.value, *places))
        };
        let cells: Vec<_> = columns.iter().map(cell).collect();
        text.push_str(&format!("| {label} | {} |\n", cells.join(" | ")));
    }
    text
}

/// Two or three digits, unless the decimals are fixed.
fn number(value: f64, places: Option<usize>) -> String {
    let places = places.unwrap_or(match value {
        value if value >= 20.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    });
    format!("{value:.places$}")
}
