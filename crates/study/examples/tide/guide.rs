//! The tables of the page that explains the evidence, each below its heading.

use tidegate_twins::pages;

use super::DISCIPLINES;
use super::cases::{ATTACKS, CHANCE, CREDIT_BYTES, CREDITS, FAIR_TO_HOSTS, LOADS, load_name};
use super::figures::FIGURES;
use super::page;
use super::result::CaseResult;
use super::verdicts::Verdicts;

/// The loads of the table, in percent: not full, full, and too much.
const SHOWN_LOADS: [u32; 3] = [50, 80, 120];
/// A figure and the head of its column.
type Column = (&'static str, &'static str);
/// A place among the disciplines of a case, and the name of what has it.
type Contender = (usize, String);

const OF_LOADS: [Column; 6] = [
    ("short_mean_s", "short, mean"),
    ("short_p95_s", "95% below"),
    ("bulk_goodput_bit_s", "bulk, each"),
    ("bulk_stall_s", "longest stall"),
    ("call_delay_p95_s", "call, 95% below"),
    ("call_loss", "call lost"),
];
const OF_CHANCE: [Column; 4] = [
    ("short_mean_s", "short, mean"),
    ("short_p95_s", "95% below"),
    ("bulk_goodput_bit_s", "bulk, each"),
    ("bulk_stall_s", "longest stall"),
];
const OF_ATTACKS: [Column; 7] = [
    ("attacker_bit_s", "attacker"),
    ("bulk_goodput_bit_s", "bulk, each"),
    ("short_p95_s", "short, 95% below"),
    ("call_delay_p95_s", "call, 95% below"),
    ("call_loss", "call lost"),
    ("stream_loss", "stream lost"),
    ("flows_tracked", "flows tracked"),
];

/// `page` with the tables that follow from the results.
pub(crate) fn with_tables(page: &str, results: &[CaseResult], verdicts: &Verdicts) -> String {
    let loads = SHOWN_LOADS.map(load_name);
    let loads: Vec<&CaseResult> =
        of_group(results, LOADS).filter(|result| loads.contains(&result.name)).collect();
    let credits: Vec<&CaseResult> = of_group(results, CREDITS).collect();
    let attacks: Vec<&CaseResult> = of_group(results, ATTACKS).collect();
    let name = |(place, name): (usize, &str)| (place, format!("`{name}`"));
    let nine: Vec<Contender> = DISCIPLINES.into_iter().enumerate().map(name).collect();
    let fair_to_hosts = name((DISCIPLINES.len(), FAIR_TO_HOSTS));
    let tides = [nine[0].clone(), fair_to_hosts.clone()];
    let ten = [&tides[..], &nine[1..]].concat();
    let size = |(place, bytes): (usize, u32)| (place, format!("{} kB", f64::from(bytes) / 1e3));
    let sizes: Vec<Contender> = CREDIT_BYTES.into_iter().enumerate().map(size).collect();
    let page = pages::with_table(page, "Better, tied, worse", &page::balance(verdicts));
    let page = pages::with_table(&page, "Loads", &table(&OF_LOADS, &nine, &loads));
    let chance: Vec<&CaseResult> = of_group(results, CHANCE).collect();
    let page = pages::with_table(&page, "Links by chance", &ratios(&chance));
    let page = pages::with_table(&page, "The credit", &table(&OF_LOADS, &sizes, &credits));
    let page = pages::with_table(&page, "Attacks", &table(&OF_ATTACKS, &ten, &attacks));
    pages::with_table(&page, "Hosts", &table(&OF_LOADS, &tides, &loads))
}

fn of_group<'a>(
    results: &'a [CaseResult],
    group: &'static str,
) -> impl Iterator<Item = &'a CaseResult> {
    results.iter().filter(move |result| result.group == group)
}

/// A row for each case and contender; the case stands in the first of its rows.
fn table(columns: &[Column], contenders: &[Contender], results: &[&CaseResult]) -> String {
    let heads: Vec<_> = columns.iter().map(|(_, head)| *head).collect();
    let mut text = format!("| | | {} |\n", heads.join(" | "));
    text += &format!("| --- | --- |{}\n", " ---: |".repeat(heads.len()));
    for result in results {
        for (row, (place, contender)) in contenders.iter().enumerate() {
            let case = if row == 0 { &result.name } else { "" };
            let cells: Vec<_> =
                columns.iter().map(|(column, _)| cell(result, *place, column)).collect();
            text += &format!("| {case} | {contender} | {} |\n", cells.join(" | "));
        }
    }
    text
}

/// What each rival has over what `tide` has: the median over the cases, and between which
/// the middle half of them lies.
fn ratios(results: &[&CaseResult]) -> String {
    let heads: Vec<_> = OF_CHANCE.iter().map(|(_, head)| *head).collect();
    let mut text = format!("| | {} |\n", heads.join(" | "));
    text += &format!("| --- |{}\n", " ---: |".repeat(heads.len()));
    for (rival, name) in DISCIPLINES.iter().enumerate().skip(1) {
        let cells: Vec<_> =
            OF_CHANCE.iter().map(|(column, _)| ratio(results, rival, column)).collect();
        text += &format!("| `{name}` | {} |\n", cells.join(" | "));
    }
    text
}

fn ratio(results: &[&CaseResult], rival: usize, column: &str) -> String {
    let figure = place(column);
    let of = |result: &&CaseResult| {
        let value =
            |contender: usize| Some(result.values[contender][figure].as_ref()?.estimate().value);
        Some(value(rival)? / value(0).filter(|ours| *ours > 0.0)?)
    };
    let mut ratios: Vec<f64> = results.iter().filter_map(of).collect();
    ratios.sort_by(f64::total_cmp);
    let Some(last) = ratios.len().checked_sub(1) else { return "-".into() };
    let [low, median, high] = [last / 4, last / 2, last - last / 4].map(|place| ratios[place]);
    format!("{median:.2} ({low:.2} to {high:.2})")
}

fn place(column: &str) -> usize {
    let place = FIGURES.iter().position(|figure| figure.column == column);
    place.expect("the guide shows figures that exist")
}

/// A mean or median over seeds.
fn cell(result: &CaseResult, contender: usize, column: &str) -> String {
    let place = place(column);
    let sample = result.values[contender][place].as_ref();
    sample.map_or("-".into(), |sample| FIGURES[place].text(sample.estimate().value))
}
