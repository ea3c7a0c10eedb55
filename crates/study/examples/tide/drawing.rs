//! The figures of the page, as files for light and dark pages.

use tidegate_study::Estimate;

use crate::DISCIPLINES;
use crate::cases::{
    ATTACKS, CREDITS, CREDITS_LOAD, FAIR_TO_HOSTS, LOAD_PERCENTS, LOADS, load_name,
};
use crate::figures::FIGURES;
use crate::page::STATE;
use crate::result::CaseResult;
use crate::verdicts::{Count, Verdicts};

use super::number::Quantity;
use super::plot::{Axis, Bar, Below, Key, Line, LineChart, Row, RowChart};

const SHORT: &str = "short_p95_s";
const GOODPUT: &str = "bulk_goodput_bit_s";
const STALL: &str = "bulk_stall_s";
const ATTACKER: &str = "attacker_bit_s";

/// The attacks of the figure, and those who are attacked: the others are in the table.
const ATTACKS_SHOWN: [&str; 5] = [
    "12 Mbit/s in transfers of 29.2 kB",
    "7 Mbit/s in transfers of one packet",
    "9 Mbit/s without a pause",
    "30 kB every 30 ms",
    "100 flows of 3 kB/s",
];
const ATTACKED_SHOWN: [&str; 6] = ["tide", FAIR_TO_HOSTS, "efd", "lars", "fq-codel", "cake"];

/// The name of each file, and the figure. What was not run is not drawn.
pub(crate) fn all(results: &[CaseResult], verdicts: &Verdicts) -> Vec<(&'static str, String)> {
    vec![
        ("loads.svg", loads(results)),
        ("credit-goodput.svg", credits(results, GOODPUT, "Goodput of each bulk transfer")),
        ("credit-stall.svg", credits(results, STALL, "Longest stall of a bulk transfer")),
        ("attacks.svg", attacks(results)),
        ("balance.svg", balance(verdicts)),
    ]
}

/// What is estimated of a figure in a case.
fn estimate(
    results: &[CaseResult],
    (group, name): (&str, &str),
    contender: usize,
    column: &str,
) -> Option<Estimate> {
    let case = results.iter().find(|result| result.group == group && result.name == name)?;
    Some(case.values[contender][place(column)].as_ref()?.estimate())
}

fn place(column: &str) -> usize {
    let place = FIGURES.iter().position(|figure| figure.column == column);
    place.expect("what is drawn is a figure")
}

fn line(label: &str, style: usize, points: Vec<(f64, f64)>) -> Line {
    Line { label: label.into(), style, points, band: Vec::new() }
}

fn heights(lines: &[Line]) -> impl Iterator<Item = f64> + '_ {
    lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y))
}

/// Short transfers, and below bulk, by load.
fn loads(results: &[CaseResult]) -> String {
    let of = |contender: usize, column: &str| {
        let at = |percent: u32| {
            let estimate = estimate(results, (LOADS, &load_name(percent)), contender, column)?;
            Some((f64::from(percent) / 100.0, estimate.value))
        };
        // Most of the width of an interval is the traffic's, which all have in common; nine
        // of them hide each other.
        line(DISCIPLINES[contender], contender, LOAD_PERCENTS.into_iter().filter_map(at).collect())
    };
    let lines = |column: &str| -> Vec<Line> {
        (0..DISCIPLINES.len()).map(|contender| of(contender, column)).collect()
    };
    let (short, goodput) = (lines(SHORT), lines(GOODPUT));
    let last = LOAD_PERCENTS[LOAD_PERCENTS.len() - 1];
    let chart = LineChart {
        x: Axis::linear("Load of short transfers", Quantity::Share, f64::from(last) / 100.0),
        y: Axis::log("Short, 95% below", Quantity::Time, heights(&short)),
        lines: short,
        key: Key::Above,
        stepped: false,
        below: Some(Below {
            y: Axis::log("Bulk, goodput each", Quantity::Rate, heights(&goodput)),
            lines: goodput,
        }),
    };
    let title = "Short transfers and bulk by load";
    chart.draw().for_both_grounds("loads", title, &chart.in_words())
}

/// Short transfers against another figure: `tide` with all credits, and the others.
fn credits(results: &[CaseResult], column: &str, name: &str) -> String {
    let case = load_name(CREDITS_LOAD);
    let point = |group: &str, contender: usize| {
        let value = |column| Some(estimate(results, (group, &case), contender, column)?.value);
        Some((value(column)?, value(SHORT)?))
    };
    let many = results.iter().find(|it| it.group == CREDITS).map_or(0, |it| it.values.len());
    let ours = (0..many).filter_map(|credit| point(CREDITS, credit)).collect();
    let mut lines = vec![line("tide, 0 to 300 kB", 0, ours)];
    for (contender, name) in DISCIPLINES.iter().enumerate().skip(1) {
        let points = point(LOADS, contender).into_iter().collect();
        lines.push(line(name, contender, points));
    }
    let most = lines.iter().flat_map(|line| line.points.iter().map(|it| it.0)).fold(0.0, f64::max);
    let x = match column {
        GOODPUT => Axis::linear(name, Quantity::Rate, most).rounded(),
        _ => {
            let values = lines.iter().flat_map(|line| line.points.iter().map(|it| it.0));
            Axis::log(name, Quantity::Time, values)
        }
    };
    let chart = LineChart {
        x,
        y: Axis::log("Short transfers, 95% below", Quantity::Time, heights(&lines)),
        lines,
        key: Key::Above,
        stepped: false,
        below: None,
    };
    let title = format!("Short transfers against bulk at a load of {CREDITS_LOAD}%");
    chart.draw().for_both_grounds(column, &title, &chart.in_words())
}

/// What attackers get.
fn attacks(results: &[CaseResult]) -> String {
    let row = |attack: &str, name: &str| {
        // Fair to hosts, which comes last, is in the colour of the first.
        let mut names = DISCIPLINES.iter().chain([&FAIR_TO_HOSTS]);
        let contender = names.position(|it| *it == name)?;
        let got = estimate(results, (ATTACKS, attack), contender, ATTACKER)?;
        let lost = estimate(results, (ATTACKS, attack), contender, "call_loss")?;
        Some(Row {
            label: name.into(),
            style: contender % DISCIPLINES.len(),
            bars: vec![Bar { from: 0.0, to: got.value, outlined: name == FAIR_TO_HOSTS }],
            whisker: got.interval,
            dots: Vec::new(),
            mark: None,
            note: format!(
                "{}, call loses {}",
                FIGURES[place(ATTACKER)].text(got.value),
                FIGURES[place("call_loss")].text(lost.value)
            ),
        })
    };
    let group = |attack: &&str| {
        let rows = ATTACKED_SHOWN.iter().filter_map(|name| row(attack, name)).collect();
        ((*attack).to_owned(), rows)
    };
    let groups: Vec<(String, Vec<Row>)> = ATTACKS_SHOWN.iter().map(group).collect();
    let most = groups.iter().flat_map(|(_, rows)| rows).flat_map(|row| &row.bars);
    let most = most.map(|bar| bar.to).fold(0.0, f64::max);
    let chart = RowChart {
        x: Axis::linear("Payload of the attacker that arrives", Quantity::Rate, most).rounded(),
        groups,
        bar_key: None,
        dot_key: Vec::new(),
        mark_key: None,
    };
    let title = "What attackers get of 10 Mbit/s";
    chart.draw().for_both_grounds("attacks", title, &chart.in_words())
}

/// The share of comparisons in which `tide` is better, and in which it is worse.
fn balance(verdicts: &Verdicts) -> String {
    let row = |label: &str, style: usize, count: Count| {
        let part = |number: usize| number as f64 / count.all().max(1) as f64;
        Row {
            label: label.into(),
            style,
            bars: vec![
                Bar { from: 0.0, to: part(count.better), outlined: false },
                Bar { from: 1.0 - part(count.worse), to: 1.0, outlined: true },
            ],
            whisker: None,
            dots: Vec::new(),
            mark: None,
            note: format!("{} / {} / {}", count.better, count.ties, count.worse),
        }
    };
    let figure =
        |index: usize| row(FIGURES[index].label, 0, verdicts.count(|it| it.figure == index));
    let rival = |rival: usize| {
        let count = verdicts.count(|it| it.rival == rival && FIGURES[it.figure].column != STATE);
        row(DISCIPLINES[rival], rival, count)
    };
    let chart = RowChart {
        x: Axis::linear("Comparisons", Quantity::Share, 1.0),
        groups: vec![
            ("Each figure, all rivals".into(), (0..FIGURES.len()).map(figure).collect()),
            (
                "Each rival, all figures but flows tracked".into(),
                (1..DISCIPLINES.len()).map(rival).collect(),
            ),
        ],
        bar_key: Some(("tide is better", "tide is worse")),
        dot_key: Vec::new(),
        mark_key: None,
    };
    let title = "How often tide is better, and how often worse";
    chart.draw().for_both_grounds("balance", title, &chart.in_words())
}
