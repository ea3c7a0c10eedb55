//! The page of `tidegate curves`: the answer, the tables, and what is left to
//! best-effort packets as plots.

use std::fs;
use std::io;
use std::path::Path;

use tidegate_core::Span;
use tidegate_core::curve::{Curve, PER_BYTE};

use super::markup::{Element, element};
use super::number::Quantity;
use super::page;
use super::plot::{Axis, Drawing, Key, Line, LineChart};
use crate::curves::tables::{self, Table, is_words};
use crate::curves::{Analysis, Left};

/// The first plot reaches this many times as far as the deadline of a largest packet,
const PACKETS: u64 = 4;
/// the second this many times as far as the longest deadline, if E has corners up to there,
const DEADLINES: u64 = 4;
/// and the third this many times as far as the second, and beyond the last corner.
const LONG_RUN: u64 = 10;
/// A line with more points than a screen has columns shows nothing more.
const MOST_POINTS: usize = 2_000;

/// A plot with its title and caption.
struct Figure {
    id: &'static str,
    title: String,
    caption: &'static str,
    drawing: Drawing,
}

/// Writes `curves.html` and `plots/*.svg` into `directory`.
pub(crate) fn write(directory: &Path, analysis: &Analysis) -> io::Result<()> {
    let left = analysis.outcome.as_ref().ok();
    let figures = left.map_or_else(Vec::new, |left| figures(analysis, left));
    let plots = directory.join("plots");
    fs::create_dir_all(&plots)?;
    for figure in &figures {
        let svg = figure.drawing.for_both_grounds(figure.id, &figure.title, figure.caption);
        fs::write(plots.join(format!("{}.svg", figure.id)), svg)?;
    }
    fs::write(directory.join("curves.html"), html(analysis, &figures))
}

fn html(analysis: &Analysis, figures: &[Figure]) -> String {
    let title = format!("{}: promises and what they leave", analysis.name);
    let header = element("header").child(element("h1").text(&title));
    let verdict =
        page::finding("verdict", "Verdict", element("span").text(tables::verdict(analysis)));
    let draw = |figure: &Figure| {
        let plot = figure.drawing.inline(figure.id, &figure.title, figure.caption);
        element("figure")
            .child(element("h3").text(&figure.title))
            .child(page::scrolling(&figure.title, plot))
            .child(element("figcaption").text(figure.caption))
    };
    let plots = (!figures.is_empty()).then(|| {
        page::section("figures", "What best-effort packets may ask for")
            .children(figures.iter().map(draw))
    });
    let reproduction = page::section("reproduce", "How to reproduce")
        .child(element("p").text(format!(
            "tidegate {} wrote this page for the following flows. This one line can be the \
             parameter of a discipline, just as a file can:",
            env!("CARGO_PKG_VERSION")
        )))
        .child(page::listing("Flows", &analysis.contracts.to_string()));
    let main = element("main")
        .child(verdict)
        .children(tables::of(analysis).iter().map(table))
        .children(plots)
        .child(reproduction);
    page::document(&title, element("body").child(header).child(main))
}

fn table(table: &Table) -> Element {
    let row = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&table.columns).enumerate().map(|(index, (cell, column))| {
            let name = if index == 0 { "th" } else { "td" };
            let it = element(name).text(cell);
            let it = if index == 0 { it.with("scope", "row") } else { it };
            if is_words(column) { it.class("words") } else { it }
        });
        element("tr").children(cells)
    };
    let heading = |(index, column): (usize, &String)| {
        let it = element("th").with("scope", "col").text(column);
        if index == 0 || is_words(column) { it.class("words") } else { it }
    };
    let headings = table.columns.iter().enumerate().map(heading);
    let head = element("thead").child(element("tr").children(headings));
    let body = element("tbody").children(table.rows.iter().map(row));
    let id: String = table.title.to_lowercase().replace(' ', "-");
    page::section(&id, table.title)
        .child(page::scrolling(
            table.title,
            element("table").with("aria-label", table.title).child(head).child(body),
        ))
        .child(element("p").class("note").text(table.note))
}

fn figures(analysis: &Analysis, left: &Left) -> Vec<Figure> {
    let residual = &left.residual;
    let corner = residual.effective().pieces().last().map_or(0, |piece| piece.start);
    let beyond = Span(corner + corner / 4);
    let first = residual.earliest_deadline(residual.largest_packet()) * PACKETS;
    let deadline = analysis.contracts.real_time().map(|flow| flow.deadline * DEADLINES).max();
    let near = deadline.map_or(beyond, |deadline| beyond.min(deadline)).max(first * 2);
    let far = (near * LONG_RUN).max(beyond);
    vec![
        Figure {
            id: "first-packets",
            title: format!("For the first packets, up to {first}"),
            caption: "A packet's deadline is where the curve reaches its size: a lower curve \
                      gives later deadlines. The two-segment curve follows the line at first, \
                      then a shifted one.",
            drawing: chart(left, first),
        },
        Figure {
            id: "deadlines",
            title: format!("While deadlines of real-time flows pass, up to {near}"),
            caption: "The bursts of real-time flows are due here; there is room between them.",
            drawing: chart(left, near),
        },
        Figure {
            id: "long-run",
            title: format!("In the long run, up to {far}"),
            caption: "After its last corner, E is a straight line or repeats itself.",
            drawing: chart(left, far),
        },
    ]
}

fn chart(left: &Left, until: Span) -> Drawing {
    let approximations = left.approximations.iter().map(|it| (it.scheme.to_string(), &it.curve));
    let curves: Vec<(String, &Curve)> = [("E, exact".to_string(), left.residual.effective())]
        .into_iter()
        .chain(approximations)
        .collect();
    let lines: Vec<Line> = curves
        .into_iter()
        .enumerate()
        .map(|(style, (label, curve))| Line {
            label,
            style,
            points: points(curve, until),
            band: Vec::new(),
        })
        .collect();
    let most = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
    LineChart {
        x: Axis::linear("Length of time", Quantity::Time, until.as_seconds()),
        y: Axis::linear("Best-effort traffic", Quantity::Size, most).rounded(),
        lines,
        key: Key::Above,
        below: None,
        stepped: false,
    }
    .draw()
}

/// The curve up to `until`, in seconds and bytes.
fn points(curve: &Curve, until: Span) -> Vec<(f64, f64)> {
    let point = |at: u64, value: i128| (Span(at).as_seconds(), value as f64 / PER_BYTE as f64);
    let mut points = Vec::new();
    let mut pieces = curve.pieces_between(0, until.0).peekable();
    while let Some(piece) = pieces.next() {
        let end = pieces.peek().map_or(until.0, |next| next.start);
        points.push(point(piece.start, piece.value));
        // A jump is a line straight up.
        let next = pieces.peek().map(|next| next.value);
        if next != Some(piece.at(end)) {
            points.push(point(end, piece.at(end)));
        }
    }
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    points.into_iter().step_by(every).collect()
}
