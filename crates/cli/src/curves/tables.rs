//! The tables of `tidegate curves`, for the terminal and for the page.

use std::fmt::{Display, Write as _};

use tidegate_core::contract::Service;
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::{Bytes, Span};

use super::{Analysis, Left};

/// A table of texts; the first column is of names.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// How to read it.
    pub(crate) note: &'static str,
}

/// Between two columns.
const GAP: usize = 2;
/// Corners of E beyond which only deadlines and the last corner are shown.
const MOST_CORNERS: usize = 16;
/// Places in the long run, shown whatever the flows are.
const LONG_RUN: [Span; 2] = [Span::millis(100), Span::seconds(1)];

/// The numbers of largest packets that another flow sends at once.
const BURSTS: [u64; 3] = [1, 5, 20];

/// All tables of an analysis, in their order; those without rows are left out.
pub(crate) fn of(analysis: &Analysis) -> Vec<Table> {
    let mut tables = vec![real_time(analysis), best_effort(analysis)];
    if let Ok(left) = &analysis.outcome {
        tables.extend([
            residual(analysis, left),
            deadlines(left),
            approximations(left),
            admissible(analysis, left),
        ]);
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// The answer in a line.
pub(crate) fn verdict(analysis: &Analysis) -> String {
    let link = analysis.contracts.link;
    match &analysis.outcome {
        Ok(left) => {
            let rate = left.residual.effective().long_run_rate();
            format!(
                "Schedulable: the link's {link} are enough for every deadline, and leave {rate} \
                 to best-effort packets in the long run."
            )
        }
        Err(fault) => format!("Not schedulable: {fault}."),
    }
}

/// Everything, for the terminal.
pub(crate) fn text(analysis: &Analysis) -> String {
    let mut text = format!("{}\n", wrapped(&verdict(analysis)));
    for table in of(analysis) {
        let _ = writeln!(text, "\n{}", table.title);
        table.write(&mut text);
        if !table.note.is_empty() {
            let _ = writeln!(text, "{}", wrapped(table.note));
        }
    }
    text
}

fn texts<T: Display>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

fn real_time(analysis: &Analysis) -> Table {
    let residual = analysis.outcome.as_ref().ok().map(|left| &left.residual);
    let row = |flow: &tidegate_core::contract::Contract| {
        let Service::RealTime { envelope, deadline } = &flow.service else { return None };
        let shown = |span: Option<Span>| span.map_or("-".into(), |span| span.to_string());
        let (rate, burst) = match envelope.curve() {
            Ok(curve) => (curve.long_run_rate().to_string(), burst(&curve).to_string()),
            Err(_) => ("-".into(), "-".into()),
        };
        Some(vec![
            flow.name.clone(),
            flow.selector.to_string(),
            rate,
            burst,
            deadline.to_string(),
            shown(residual.and_then(|residual| residual.shortest_deadline(&flow.name))),
            shown(residual.and_then(|residual| residual.slack(&flow.name))),
        ])
    };
    Table {
        title: "Real-time flows",
        columns: texts(["flow", "packets", "rate", "burst", "deadline", "shortest", "slack"]),
        rows: analysis.contracts.flows.iter().filter_map(row).collect(),
        note: "Rate: the rate in the long run; burst: the most that exceeds it, over any time. \
               Shortest: the shortest deadline that could be promised while the others keep \
               theirs; slack: how much shorter that is.",
    }
}

fn best_effort(analysis: &Analysis) -> Table {
    let row = |flow: &tidegate_core::contract::Contract| {
        let Service::BestEffort { weight } = flow.service else { return None };
        Some(vec![flow.name.clone(), flow.selector.to_string(), weight.to_string()])
    };
    Table {
        title: "Best-effort flows",
        columns: texts(["flow", "packets", "weight"]),
        rows: analysis.contracts.flows.iter().filter_map(row).collect(),
        note: "They share by weight what real-time flows leave. Each 5-tuple of all other packets \
               is a flow of weight 1.",
    }
}

/// The lengths of time at which the curves are worth showing.
pub(crate) fn telling(analysis: &Analysis, left: &Left) -> Vec<Span> {
    let pieces = left.residual.effective().pieces();
    let last = pieces.len() - 1;
    let corners = pieces.iter().enumerate().filter(|(index, piece)| {
        piece.start > 0 && (pieces.len() <= MOST_CORNERS || *index == last)
    });
    let mut places: Vec<_> = corners.map(|(_, piece)| Span(piece.start)).collect();
    places.extend(analysis.contracts.real_time().map(|flow| flow.deadline));
    places.extend(LONG_RUN);
    places.sort_unstable();
    places.dedup();
    places
}

fn residual(analysis: &Analysis, left: &Left) -> Table {
    let row = |place: Span| {
        let value = |curve: &Curve| curve.bytes(place).to_string();
        let (capacity, effective) = (left.residual.capacity(), left.residual.effective());
        vec![place.to_string(), value(capacity), value(effective)]
    };
    Table {
        title: "What real-time flows leave",
        columns: texts(["within", "of the link (R)", "to best effort (E)"]),
        rows: telling(analysis, left).into_iter().map(row).collect(),
        note: "R: what the link can still send if real-time flows send all they may and a packet \
               of the largest size is in the way. E: the smallest value of R from there on, which \
               best-effort packets may ask for.",
    }
}

fn deadlines(left: &Left) -> Table {
    let row = |size: &Bytes| {
        let mut row = vec![size.to_string(), left.residual.earliest_deadline(*size).to_string()];
        row.extend(left.approximations.iter().map(|it| it.deadline(*size).to_string()));
        row
    };
    let mut columns = texts(["packet", "exact"]);
    columns.extend(left.approximations.iter().map(|it| it.scheme.to_string()));
    Table {
        title: "Deadlines of single best-effort packets",
        columns,
        rows: left.sizes.iter().map(row).collect(),
        note: "Such a packet is on the wire by then, whatever real-time flows do.",
    }
}

fn approximations(left: &Left) -> Table {
    let row = |it: &super::Approximation| vec![it.scheme.to_string(), it.parameters.clone()];
    Table {
        title: "Approximations of E",
        columns: texts(["scheme", "parameters"]),
        rows: left.approximations.iter().map(row).collect(),
        note: "Fitted to bursts of ten largest packets; none lies above E at a deadline that can \
               occur. The constant-state scheme relies on the same two segments.",
    }
}

fn admissible(analysis: &Analysis, left: &Left) -> Table {
    let mut deadlines: Vec<_> =
        analysis.contracts.real_time().map(|flow| flow.deadline).chain(LONG_RUN).collect();
    deadlines.sort_unstable();
    deadlines.dedup();
    let packet = left.residual.largest_packet();
    let bursts = BURSTS.map(|packets| packet * packets);
    let row = |deadline: Span| {
        let rate = |burst: Bytes| match left.residual.highest_rate(burst, deadline) {
            Some(rate) => rate.to_string(),
            None => "none".into(),
        };
        [deadline.to_string()].into_iter().chain(bursts.map(rate)).collect()
    };
    let mut columns = texts(["deadline"]);
    columns.extend(bursts.map(|burst| format!("{burst} at once")));
    Table {
        title: "Room for another flow with a deadline",
        columns,
        rows: deadlines.into_iter().map(row).collect(),
        note: "The highest rate of a token bucket that may send this much at once while all \
               deadlines are kept.",
    }
}

/// The most that a flow may send beyond its long-run rate, over any time.
pub(super) fn burst(curve: &Curve) -> Bytes {
    let straight = curve.line_above_from(curve.tail());
    let slope = straight.rise();
    let pieces = straight.pieces();
    let ends = pieces.iter().zip(&pieces[1..]).map(|(piece, next)| (next.start - 1, piece));
    let excess = pieces
        .iter()
        .map(|piece| (piece.start, piece))
        .chain(ends)
        .map(|(at, piece)| piece.at(at) - slope * i128::from(at))
        .max();
    let excess = excess.expect("a curve has a piece").max(0);
    Bytes(u64::try_from(-(-excess).div_euclid(PER_BYTE)).unwrap_or(u64::MAX))
}

impl Table {
    /// Appends heading and rows, numbers to the right.
    fn write(&self, text: &mut String) {
        let cells = |column: usize| {
            self.rows.iter().map(move |row| &row[column]).chain([&self.columns[column]])
        };
        let width = |column: usize| cells(column).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|column| width(column).unwrap_or(0)).collect();
        for row in [&self.columns].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if index == 0 { 0 } else { GAP };
                let _ = match is_words(&self.columns[index]) {
                    true => write!(line, "{:gap$}{cell:width$}", ""),
                    false => write!(line, "{:gap$}{cell:>width$}", ""),
                };
            }
            let _ = writeln!(text, "  {}", line.trim_end());
        }
    }
}

/// Whether a column is of words, which begin at the left.
pub(crate) fn is_words(column: &str) -> bool {
    matches!(column, "flow" | "packets" | "scheme" | "parameters")
}

/// `text` in lines that fit a terminal.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 98;
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > WIDTH {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word_length;
    }
    lines
}
