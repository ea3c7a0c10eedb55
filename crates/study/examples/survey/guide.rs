//! The tables of the guide that explains the survey, each below its heading.

use tidegate_twins::pages;

use super::DISCIPLINES;
use super::cases::{BBR, MIX, REAL, TODAY};
use super::figures::FIGURES;
use super::result::CaseResult;

/// A column: its head, the group and the beginning of the name of the case, and the
/// figure.
type Column = (&'static str, &'static str, &'static str, &'static str);

const BASE: [Column; 8] = [
    ("short transfers, mean", TODAY, "base", "short_mean_s"),
    ("95% below", TODAY, "base", "short_p95_s"),
    ("bulk, each", TODAY, "base", "bulk_goodput_bit_s"),
    ("longest stall", TODAY, "base", "bulk_stall_s"),
    ("call, 95% below", TODAY, "base", "call_delay_p95_s"),
    ("call lost", TODAY, "base", "call_loss"),
    ("stream lost", TODAY, "base", "stream_loss"),
    ("flows tracked", TODAY, "base", "flows_tracked"),
];
const MEASURED: [Column; 9] = [
    ("household: short", REAL, "household", "short_mean_s"),
    ("page", REAL, "household", "page_mean_s"),
    ("call delay", REAL, "household", "call_delay_p95_s"),
    ("office: short", REAL, "office", "short_mean_s"),
    ("page", REAL, "office", "page_mean_s"),
    ("call lost", REAL, "office", "call_loss"),
    ("cellular: short", REAL, "cellular", "short_mean_s"),
    ("call delay", REAL, "cellular", "call_delay_p95_s"),
    ("page load lost", REAL, "recorded", "stream_loss"),
];
/// Short transfers and calls by who sends.
const BY_SENDER: [Column; 8] = [
    ("short transfers: today", TODAY, "base", "short_mean_s"),
    ("mix", MIX, "base", "short_mean_s"),
    ("BBR", BBR, "base", "short_mean_s"),
    ("at 80% of load: today", TODAY, "load 80%", "short_mean_s"),
    ("mix", MIX, "load 80%", "short_mean_s"),
    ("BBR", BBR, "load 80%", "short_mean_s"),
    ("call, 95% below: today", TODAY, "base", "call_delay_p95_s"),
    ("BBR", BBR, "base", "call_delay_p95_s"),
];
/// Those of the table of measured traffic.
const FEWER: [&str; 9] =
    ["fifo", "efd", "las", "lars", "tide", "fq-codel", "fq-pie", "cake", "pie"];

/// `page` with the tables that follow from the results.
pub(crate) fn with_tables(page: &str, results: &[CaseResult]) -> String {
    let page = pages::with_table(page, "The base case", &table(&BASE, &DISCIPLINES, results));
    let page = pages::with_table(&page, "By sender", &table(&BY_SENDER, &DISCIPLINES, results));
    pages::with_table(&page, "Measured traffic", &table(&MEASURED, &FEWER, results))
}

fn table(columns: &[Column], disciplines: &[&str], results: &[CaseResult]) -> String {
    let heads: Vec<_> = columns.iter().map(|(head, ..)| *head).collect();
    let rule = " ---: |".repeat(heads.len());
    let mut text = format!("| | {} |\n| --- |{rule}\n", heads.join(" | "));
    for name in disciplines {
        let discipline = DISCIPLINES.iter().position(|listed| listed == name);
        let discipline = discipline.expect("the survey has every discipline of its guide");
        let cells: Vec<_> =
            columns.iter().map(|column| cell(column, discipline, results)).collect();
        text.push_str(&format!("| `{name}` | {} |\n", cells.join(" | ")));
    }
    text
}

/// A mean or median over seeds, to two digits or three.
fn cell((_, group, case, column): &Column, discipline: usize, results: &[CaseResult]) -> String {
    let of_case = |result: &&CaseResult| result.group == *group && result.name.starts_with(case);
    let result = results.iter().find(of_case);
    let result = result.expect("the survey has every case of its guide");
    let figure = FIGURES.iter().position(|figure| figure.column == *column);
    let figure = figure.expect("the survey has every figure of its guide");
    let Some(sample) = &result.values[discipline][figure] else { return "-".into() };
    let value = sample.estimate().value;
    match FIGURES[figure].unit {
        "ms" if value >= 1.0 => format!("{value:.1} s"),
        "ms" => format!("{:.0} ms", value * 1e3),
        "s" if value >= 10.0 => format!("{value:.0} s"),
        "s" => format!("{value:.1} s"),
        "%" if value >= 0.0995 => format!("{:.0}%", value * 1e2),
        "%" if value == 0.0 => "0".into(),
        "%" => format!("{:.1}%", value * 1e2),
        "Mbit/s" => format!("{:.2} Mbit/s", value / 1e6),
        _ => format!("{value:.0}"),
    }
}
