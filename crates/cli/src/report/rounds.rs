//! The report of `tidegate measure run`: what each queue did to the user's own link.
//!
//! Principles. Those of the report on disciplines, whose parts this report uses: the
//! answer first, then figures, then numbers, and at the end how they were obtained. What was
//! measured will not be the same again, so the report names what there was (program,
//! interface, server, kernel) in place of a promise. Pictures over time are of one round,
//! which is no evidence: they show what the figures sum up.

use std::io;
use std::path::Path;

use tidegate_study::comparison::Comparison;
use tidegate_study::verdict::Verdict;

use super::answer::Words;
use super::figures::{self, Figure};
use super::markup::{Element, element};
use super::number::{Quantity, short};
use super::plot::{Axis, Panel, PanelChart};
use super::tables::{Table, cell, column, row_name};
use super::{page, verdict};

/// When two round trips are this many times apart, a linear axis shows only one of them.
const LOG_FROM: f64 = 20.0;

/// What was measured, and what to know of it.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    pub(crate) comparison: &'a Comparison,
    pub(crate) verdict: &'a Verdict,
    pub(crate) said: &'a Words,
    /// The figures of each queue: what each is, and a row for each queue, its name apart.
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// How to read them.
    pub(crate) about: String,
    /// What to know of the server and of queues that were left out.
    pub(crate) notes: Vec<String>,
    /// The round that is drawn, with a run of each queue.
    pub(crate) round: u64,
    pub(crate) traces: Vec<Trace>,
    /// From when on the link is loaded, and what counts, in seconds.
    pub(crate) loaded_s: f64,
    pub(crate) counted_s: (f64, f64),
    /// What it was measured with.
    pub(crate) facts: Vec<(String, String)>,
    /// As it was typed.
    pub(crate) command: String,
}

/// A run over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// When each packet was sent, and the time until its answer, both in seconds.
    pub(crate) round_trips: Vec<(f64, f64)>,
    /// What long transfers carried down and up: seconds, and bit/s.
    pub(crate) rates: [Vec<(f64, f64)>; 2],
}

/// Writes `report.html` and `plots/*.svg` into `directory`.
pub(crate) fn write(directory: &Path, rounds: &Rounds<'_>) -> io::Result<()> {
    let figures = all_figures(rounds);
    super::write_page(directory, &html(rounds, &figures), &figures)
}

fn html(rounds: &Rounds<'_>, figures: &[Figure]) -> String {
    let Rounds { comparison, verdict, said, .. } = rounds;
    let runs = comparison.disciplines.iter().map(|it| it.runs).sum();
    let header = page::header(
        &comparison.title,
        "",
        [],
        page::notices(
            comparison.partial.then_some(runs),
            comparison.seeds.len(),
            comparison.disciplines.len(),
            "queues",
            false,
        ),
        &[
            ("verdict", "Verdict"),
            ("figures", "Figures"),
            ("main-figures", "Numbers"),
            ("reproduce", "How it was measured"),
        ],
    );
    let (verdict, mentions) = verdict::verdict(said, verdict, "round by round", &[], figures);
    let notes = rounds.notes.iter().map(|it| page::paragraph(it).class("ran"));
    let main = element("main")
        .child(verdict.children(notes))
        .child(page::all_figures(figures, &mentions))
        .child(page::main_table("Numbers", numbers(rounds).html()))
        .child(setup(rounds));
    page::document(&comparison.title, element("body").child(header).child(main))
}

/// The table that the terminal shows.
fn numbers(rounds: &Rounds<'_>) -> Table {
    let row = |(style, cells): (usize, &Vec<String>)| {
        let (name, cells) = cells.split_first().expect("the name of a queue comes first");
        std::iter::once(row_name(style, name)).chain(cells.iter().map(cell)).collect()
    };
    Table {
        id: "table-numbers",
        name: "Numbers of each queue",
        note: rounds.about.clone(),
        columns: std::iter::once(column("")).chain(rounds.headings.iter().map(column)).collect(),
        groups: vec![(String::new(), rounds.rows.iter().enumerate().map(row).collect())],
    }
}

fn setup(rounds: &Rounds<'_>) -> Element {
    page::section("reproduce", "How it was measured")
        .child(page::paragraph(
            "A link is never twice the same: another measurement gives other numbers, and the \
             intervals say by about how much. In the folder of this page there is a file of each \
             run, as Flent writes them, with all of its series.",
        ))
        .child(page::listing("Command", &rounds.command))
        .child(page::list(rounds.facts.iter().cloned()))
}

fn all_figures(rounds: &Rounds<'_>) -> Vec<Figure> {
    let mut figures = figures::of_rounds(rounds.comparison);
    let several = rounds.comparison.seeds.len() > 1;
    for figure in &mut figures {
        // The captions are of runs with seeds, and of tables that are not here.
        figure.caption = if figure.id == "delay-percentiles" {
            "Half of the packets arrive within the median, 95 and 99 of 100 within the \
             percentiles; further left is better. With several rounds, each is the median of \
             what the rounds say."
                .into()
        } else if figure.id == "throughput" {
            let bars = if several {
                " The bars are means over rounds, the whiskers their 95% confidence intervals."
            } else {
                ""
            };
            format!("What the long transfers of a direction carry together.{bars}")
        } else if figure.id.starts_with("delay-") {
            "The part of the packets that arrived within the time below, all rounds together; \
             lost packets are not counted. Further left is better."
                .into()
        } else {
            "The part of the short transfers that took no longer than the time below, all rounds \
             together. One that did not finish counts with the time for which it was waited. \
             Further left is better."
                .into()
        };
        figure.table = Some("table-numbers");
    }
    figures.push(round_trips(rounds));
    figures.extend([(0, "down"), (1, "up")].into_iter().filter_map(|(way, name)| {
        let any = rounds.traces.iter().any(|it| !it.rates[way].is_empty());
        any.then(|| carried(rounds, way, name))
    }));
    figures
}

/// Round trips over time.
fn round_trips(rounds: &Rounds<'_>) -> Figure {
    let values = || rounds.traces.iter().flat_map(|it| it.round_trips.iter().map(|it| it.1));
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0_f64, f64::max));
    let y = if most > least * LOG_FROM {
        Axis::log("Round trip", Quantity::Time, values())
    } else {
        Axis::linear("Round trip", Quantity::Time, most).rounded()
    };
    let chart = over_time(rounds, y, |trace| trace.round_trips.clone());
    Figure {
        id: "round-trips".into(),
        title: "Round trips over time".into(),
        caption: format!(
            "Each packet's time to the server and back, by when it was sent, in round {}. {}",
            rounds.round,
            phases(rounds)
        ),
        ..drawn(&chart, "No packet was answered.")
    }
}

/// What long transfers carry over time.
fn carried(rounds: &Rounds<'_>, way: usize, name: &str) -> Figure {
    let rates = rounds.traces.iter().flat_map(|it| it.rates[way].iter().map(|it| it.1));
    let y = Axis::linear("Payload", Quantity::Rate, rates.fold(0.0, f64::max)).rounded();
    let chart = over_time(rounds, y, |trace| trace.rates[way].clone());
    Figure {
        id: format!("carried-{name}"),
        title: format!("What long transfers carry {name}"),
        caption: format!(
            "The payload of all long transfers in this direction, in round {}. {}",
            rounds.round,
            phases(rounds)
        ),
        ..drawn(&chart, "Nothing was carried.")
    }
}

fn phases(rounds: &Rounds<'_>) -> String {
    let time = |seconds| short(Quantity::Time, seconds);
    format!(
        "The link is loaded from {} on; what counts is from {} to {}.",
        time(rounds.loaded_s),
        time(rounds.counted_s.0),
        time(rounds.counted_s.1)
    )
}

fn over_time(
    rounds: &Rounds<'_>,
    y: Axis,
    series: impl Fn(&Trace) -> Vec<(f64, f64)>,
) -> PanelChart {
    let panel = |(style, (queue, trace)): (usize, (_, &Trace))| {
        let queue: &tidegate_study::comparison::DisciplineResult = queue;
        let series = series(trace);
        let remark = series.is_empty().then(|| "not in this round".to_string());
        let series = vec![series];
        Panel { label: queue.label.clone(), style, series, band: Vec::new(), remark }
    };
    let queues = rounds.comparison.disciplines.iter().zip(&rounds.traces);
    PanelChart {
        x: Axis::linear("Time of the run", Quantity::Time, rounds.counted_s.1),
        y,
        panels: queues.enumerate().map(panel).collect(),
        stepped: false,
        filled: false,
        reference: None,
    }
}

/// A figure of panels; the rest of it is the caller's.
fn drawn(chart: &PanelChart, nothing: &str) -> Figure {
    let empty = chart.panels.iter().all(|panel| panel.series.iter().all(Vec::is_empty));
    Figure {
        id: String::new(),
        title: String::new(),
        caption: String::new(),
        description: chart.in_words(),
        table: Some("table-numbers"),
        plot: if empty { Err(nothing.into()) } else { Ok(chart.draw()) },
    }
}
