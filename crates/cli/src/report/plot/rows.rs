//! One row for each discipline: bars, dots and intervals along a common axis,
//! with the number in words at the right.

use super::{
    Area, Axis, Drawing, LEADING, WIDTH, colour, cut, label, marker, path, px, rule, shape,
    text_width,
};
use crate::report::markup::{Element, element};

/// A piece of a bar.
#[derive(Clone, Debug)]
pub(in crate::report) struct Bar {
    pub(in crate::report) from: f64,
    pub(in crate::report) to: f64,
    /// Only outlined, to distinguish it from a filled one.
    pub(in crate::report) outlined: bool,
}

/// A value with its interval.
#[derive(Clone, Debug)]
pub(in crate::report) struct Dot {
    pub(in crate::report) at: f64,
    pub(in crate::report) interval: Option<(f64, f64)>,
    /// Which marker.
    pub(in crate::report) marker: usize,
}

/// One discipline.
#[derive(Clone, Debug)]
pub(in crate::report) struct Row {
    pub(in crate::report) label: String,
    pub(in crate::report) style: usize,
    pub(in crate::report) bars: Vec<Bar>,
    /// The interval of a bar's end.
    pub(in crate::report) whisker: Option<(f64, f64)>,
    pub(in crate::report) dots: Vec<Dot>,
    /// A value with which to compare the row, drawn across it.
    pub(in crate::report) mark: Option<f64>,
    /// The numbers, written at the right.
    pub(in crate::report) note: String,
}

/// Rows in groups (a link, a source), each group with its heading.
#[derive(Clone, Debug)]
pub(in crate::report) struct RowChart {
    pub(in crate::report) x: Axis,
    pub(in crate::report) groups: Vec<(String, Vec<Row>)>,
    /// What filled and outlined bars mean.
    pub(in crate::report) bar_key: Option<(&'static str, &'static str)>,
    /// What the markers of dots mean.
    pub(in crate::report) dot_key: Vec<&'static str>,
    /// What the mark across a row means.
    pub(in crate::report) mark_key: Option<&'static str>,
}

const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
/// Between two values of a row whose intervals would otherwise hide each other.
const APART: f64 = 10.0;

impl RowChart {
    pub(in crate::report) fn draw(&self) -> Drawing {
        let rows = || self.groups.iter().flat_map(|(_, rows)| rows);
        let widest = |text: &dyn Fn(&Row) -> String| {
            rows().map(|row| text_width(&text(row))).fold(0.0, f64::max)
        };
        let left = widest(&|row| cut(&row.label)) + 34.0;
        let room = widest(&|row| row.note.clone()) + 20.0;
        let (mut content, top) = self.key(left);
        let headings = self.groups.iter().filter(|(heading, _)| !heading.is_empty()).count();
        let row_height = self.row_height();
        let height = row_height * rows().count() as f64 + ROW * headings as f64 + 6.0;
        let area = Area { left, top, width: (WIDTH - left - room).max(120.0), height };
        content.extend(area.x_grid(&self.x, true));
        let mut y = area.top + 3.0;
        for (heading, rows) in &self.groups {
            if !heading.is_empty() {
                content.push(label(4.0, y + ROW * 0.68, "note strong", heading));
                y += ROW;
            }
            for row in rows {
                content.extend(self.row(&area, row, y + row_height / 2.0));
                y += row_height;
            }
        }
        content.push(area.frame());
        let middle = area.left + area.width / 2.0;
        content.push(label(middle, area.bottom() + 40.0, "title middle", &self.x.title()));
        Drawing { height: area.bottom() + 52.0, content }
    }

    /// The height of a row: with intervals, each of its values has a line of its own.
    fn row_height(&self) -> f64 {
        let rows = || self.groups.iter().flat_map(|(_, rows)| rows);
        let intervals = rows().flat_map(|row| &row.dots).any(|dot| dot.interval.is_some());
        let values = rows().map(|row| row.dots.len()).max().unwrap_or(0);
        if intervals && values > 1 { ROW + APART * (values - 1) as f64 } else { ROW }
    }

    /// The rows' notes, for readers who cannot see the plot.
    pub(in crate::report) fn in_words(&self) -> String {
        let group = |(heading, rows): &(String, Vec<Row>)| {
            let rows: Vec<_> =
                rows.iter().map(|row| format!("{}: {}", row.label, row.note)).collect();
            let before = if heading.is_empty() { String::new() } else { format!("{heading}: ") };
            format!("{before}{}.", rows.join("; "))
        };
        self.groups.iter().map(group).collect::<Vec<_>>().join(" ")
    }

    fn key(&self, left: f64) -> (Vec<Element>, f64) {
        let y = LEADING / 2.0;
        let mut out = Vec::new();
        let mut x = left;
        let mut entry = |sample: &dyn Fn(f64) -> Element, text: &str| {
            out.push(sample(x));
            out.push(label(x + 22.0, y + 4.5, "note", text));
            x += 22.0 + text_width(text) + 22.0;
        };
        if let Some((filled, outlined)) = self.bar_key {
            entry(&|x| block("bar ink", x, y - 5.0, 15.0, 10.0), filled);
            entry(&|x| block("bar-open ink", x, y - 5.0, 15.0, 10.0), outlined);
        }
        for (kind, text) in self.dot_key.iter().enumerate() {
            entry(&|x| shape(kind, "ink", x + 8.0, y), text);
        }
        if let Some(text) = self.mark_key {
            entry(&|x| mark(x + 12.0, (y - 8.0, y + 8.0)), text);
        }
        let height = if out.is_empty() { 8.0 } else { LEADING + 4.0 };
        (out, height)
    }

    fn row(&self, area: &Area, row: &Row, y: f64) -> Vec<Element> {
        let x = |value: f64| area.left + self.x.place(value) * area.width;
        let mut out = vec![
            marker(row.style, area.left - 14.0, y),
            label(area.left - 26.0, y + 4.5, "note end", &cut(&row.label)),
            label(area.right() + 12.0, y + 4.5, "note", &row.note),
        ];
        let class = |kind: &str| format!("{kind} {}", colour(row.style));
        for bar in row.bars.iter().filter(|bar| x(bar.to) > x(bar.from)) {
            let kind = if bar.outlined { "bar-open" } else { "bar" };
            let width = x(bar.to) - x(bar.from);
            out.push(block(&class(kind), x(bar.from), y - BAR / 2.0, width, BAR));
        }
        let ends = (y - ROW / 2.0, y + ROW / 2.0);
        out.extend(row.mark.map(|at| mark(x(at), ends)));
        let whisker = |(from, to): (f64, f64), y: f64| {
            let (from, to) = (x(from), x(to));
            (to - from > 0.5).then(|| whisker(from, to, y))
        };
        out.extend(row.whisker.and_then(|interval| whisker(interval, y)));
        let spread = if self.row_height() > ROW { APART } else { 0.0 };
        let middle = (row.dots.len().saturating_sub(1)) as f64 / 2.0;
        let heights = (0..row.dots.len()).map(|place| y + (place as f64 - middle) * spread);
        let places: Vec<_> =
            row.dots.iter().zip(heights).map(|(dot, y)| (x(dot.at), y, dot)).collect();
        if places.len() > 1 {
            let line: Vec<_> = places.iter().map(|(x, y, _)| (*x, *y)).collect();
            out.push(element("path").class(class("thin")).with("d", path(&line)));
        }
        let intervals = places.iter().filter_map(|(_, y, dot)| Some((dot.interval?, *y)));
        out.extend(intervals.filter_map(|(interval, y)| whisker(interval, y)));
        // The marker says which value it is, the colour whose; no interval hides
        // it.
        let dot = |(x, y, dot): &(f64, f64, &Dot)| shape(dot.marker, &colour(row.style), *x, *y);
        out.extend(places.iter().map(dot));
        out
    }
}

/// An interval, with a border in the background colour: it lies on bars of any colour.
fn whisker(from: f64, to: f64, y: f64) -> Element {
    let ends = |at: f64| path(&[(at, y - 4.0), (at, y + 4.0)]);
    let d = path(&[(from, y), (to, y)]) + &ends(from) + &ends(to);
    let line = |class: &str| element("path").class(class).with("d", &d);
    element("g").child(line("halo")).child(line("whisker"))
}

/// A mark, with a border in the background colour: it may cross a bar of its own
/// colour.
fn mark(x: f64, (from, to): (f64, f64)) -> Element {
    let line = rule("line ink", (x, from), (x, to));
    element("g").child(block("ground", x - 2.0, from, 4.0, to - from)).child(line)
}

fn block(class: &str, x: f64, y: f64, width: f64, height: f64) -> Element {
    element("rect")
        .class(class)
        .with("x", px(x))
        .with("y", px(y))
        .with("width", px(width))
        .with("height", px(height))
}
