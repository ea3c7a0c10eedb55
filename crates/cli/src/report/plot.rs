//! Plots as SVG.
//!
//! They are written here because a plot has to take its colours from the page in
//! which it stands (light, dark, printed), without a script. A plot is a tree of
//! elements whose classes `plot.css` styles; the colours are variables of the page,
//! and a separate file contains their values.
//!
//! Nothing is expressed by colour alone: line `i` also has its own dash pattern and
//! marker, the same in every plot.

mod heat;
mod lines;
mod panels;
mod rows;
mod scale;

use super::markup::{Element, element};

pub(super) use heat::{Field, Fill, HeatChart, Legend, STEPS, Side};
pub(super) use lines::{Below, Key, Line, LineChart};
pub(super) use panels::{Panel, PanelChart, Reference};
pub(super) use rows::{Bar, Dot, Row, RowChart};
pub(super) use scale::Axis;

/// Width of every plot, in the units of its view box.
const WIDTH: f64 = 760.0;
/// Size of the text in plots; `plot.css` says the same.
const TEXT: f64 = 13.0;
/// Distance between two lines of text.
const LEADING: f64 = TEXT + 7.0;

const CSS: &str = include_str!("plot.css");

/// The colours: name, on a light background, on a dark one. The lines have Okabe
/// and Ito's hues, shifted until all eight keep a contrast of 3:1 with the
/// background and remain distinct from each other in the three kinds of colour
/// blindness. Those of maps are nine of the ten steps of cividis
/// (`Nunez 2018`), which rise in lightness alike for all kinds of sight; they are the same
/// on both backgrounds.
const COLOURS: [(&str, &str, &str); 23] = [
    ("--ground", "#ffffff", "#15191e"),
    ("--ink", "#1f2328", "#e8e9eb"),
    ("--quiet", "#57606a", "#a3abb5"),
    ("--rule", "#8b949e", "#6b747e"),
    ("--grid", "#e3e6ea", "#2c333b"),
    ("--grid-minor", "#f1f3f5", "#20262c"),
    ("--line-0", "#404040", "#e6e6e6"),
    ("--line-1", "#305398", "#6f98dd"),
    ("--line-2", "#c73827", "#ff6e10"),
    ("--line-3", "#3a8c7d", "#07b67e"),
    ("--line-4", "#a46bcc", "#ff98d2"),
    ("--line-5", "#ca7c2f", "#c6cb69"),
    ("--line-6", "#3389ff", "#00cfff"),
    ("--line-7", "#54165c", "#a3694f"),
    ("--heat-0", "#00224e", "#00224e"),
    ("--heat-1", "#123570", "#123570"),
    ("--heat-2", "#3b496c", "#3b496c"),
    ("--heat-3", "#575d6d", "#575d6d"),
    ("--heat-4", "#707173", "#707173"),
    ("--heat-5", "#8a8678", "#8a8678"),
    ("--heat-6", "#a59c74", "#a59c74"),
    ("--heat-7", "#c3b369", "#c3b369"),
    ("--heat-8", "#e1cc55", "#e1cc55"),
];

/// The number of colours; further lines have the same colours with other dashes and
/// markers.
pub(super) const STYLES: usize = 8;

/// On and off lengths of the dashes of each line; the first is solid.
const DASHES: [&str; STYLES] =
    ["", "8 3", "2.5 2.5", "9 3 2 3", "14 4", "5 2 1.5 2", "1.5 3", "12 3 2 3 2 3"];

/// A drawn plot.
#[derive(Clone, Debug)]
pub(super) struct Drawing {
    height: f64,
    content: Vec<Element>,
}

/// Declarations of the colours for a style sheet.
pub(super) fn colours(dark: bool) -> String {
    let line = |(name, light_value, dark_value): &(&str, &str, &str)| {
        format!("{name}: {};", if dark { dark_value } else { light_value })
    };
    COLOURS.iter().map(line).collect::<Vec<_>>().join(" ")
}

/// The style sheet of plots within a page that declares the colours.
pub(super) fn style_sheet() -> &'static str {
    CSS
}

/// The style sheet with values instead of variables, which few programs other than
/// browsers understand.
fn with_colours(dark: bool) -> String {
    COLOURS.iter().fold(CSS.to_string(), |css, (name, light_value, dark_value)| {
        css.replace(&format!("var({name})"), if dark { dark_value } else { light_value })
    })
}

impl Drawing {
    /// The plot as part of a page, with `id` as the stem of the ids in it.
    pub(super) fn inline(&self, id: &str, title: &str, description: &str) -> Element {
        self.svg(id, title, description, None)
    }

    /// The plot as a separate file, on a light background.
    pub(super) fn stand_alone(&self, id: &str, title: &str, description: &str) -> String {
        self.file(id, title, description, with_colours(false))
    }

    /// The plot as a separate file, dark if the reader's screen is.
    pub(super) fn for_both_grounds(&self, id: &str, title: &str, description: &str) -> String {
        let (light, dark) = (with_colours(false), with_colours(true));
        let style = format!("{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n");
        self.file(id, title, description, style)
    }

    fn file(&self, id: &str, title: &str, description: &str, style: String) -> String {
        let svg = self.svg(id, title, description, Some(style));
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{svg}")
    }

    fn svg(&self, id: &str, title: &str, description: &str, style: Option<String>) -> Element {
        let (width, height) = (px(WIDTH), px(self.height));
        let alone = style.is_some();
        let mut svg = element("svg")
            .class("plot")
            .with("viewBox", format!("0 0 {width} {height}"))
            .with("role", "img")
            .with("aria-labelledby", format!("{id}-title"))
            .with("aria-describedby", format!("{id}-desc"));
        if alone {
            svg = svg.with("xmlns", "http://www.w3.org/2000/svg");
            svg = svg.with("width", &width).with("height", &height);
        }
        let ground =
            || element("rect").class("ground").with("width", &width).with("height", &height);
        svg.child(element("title").with("id", format!("{id}-title")).text(title))
            .child(element("desc").with("id", format!("{id}-desc")).text(description))
            .children(style.map(|css| element("style").text(css)))
            .children(alone.then(ground))
            .children(self.content.iter().cloned())
    }
}

/// A coordinate: a tenth of a unit is finer than any screen shows.
fn px(value: f64) -> String {
    super::number::trimmed(&format!("{value:.1}"))
}

/// Text at a position; `class` says how it is aligned and set.
fn label(x: f64, y: f64, class: &str, text: &str) -> Element {
    element("text").class(class).with("x", px(x)).with("y", px(y)).text(text)
}

/// A straight line.
fn rule(class: &str, from: (f64, f64), to: (f64, f64)) -> Element {
    element("path")
        .class(class)
        .with("d", format!("M{} {}L{} {}", px(from.0), px(from.1), px(to.0), px(to.1)))
}

/// The path through `points`.
fn path(points: &[(f64, f64)]) -> String {
    let mut d = String::with_capacity(points.len() * 12);
    for (index, (x, y)) in points.iter().enumerate() {
        d.push(if index == 0 { 'M' } else { 'L' });
        d.push_str(&px(*x));
        d.push(' ');
        d.push_str(&px(*y));
    }
    d
}

/// `points` with each value held until the next.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(points.len() * 2);
    for &(x, y) in points {
        if let Some(&(_, before)) = out.last() {
            out.push((x, before));
        }
        out.push((x, y));
    }
    out
}

/// The band of line `style` from lower to upper bounds (x, from, to), if it has any
/// width; `place` finds the position of a value pair.
fn band(
    style: usize,
    bounds: &[(f64, f64, f64)],
    place: impl Fn((f64, f64)) -> (f64, f64),
) -> Option<Element> {
    if bounds.len() < 2 {
        return None;
    }
    let mut corners: Vec<_> = bounds.iter().map(|(x, from, _)| place((*x, *from))).collect();
    corners.extend(bounds.iter().rev().map(|(x, _, to)| place((*x, *to))));
    let class = format!("band {}", colour(style));
    Some(element("path").class(class).with("d", path(&corners) + "Z"))
}

/// The class that gives line `style` its colour.
fn colour(style: usize) -> String {
    format!("c{}", style % STYLES)
}

/// A line in its style.
fn stroke(style: usize, points: &[(f64, f64)]) -> Element {
    let line = element("path").class(format!("line {}", colour(style))).with("d", path(points));
    match DASHES[turned(style)] {
        "" => line,
        dashes => line.with("stroke-dasharray", dashes),
    }
}

/// The dashes and the marker of line `style`: when colours repeat, these are
/// shifted by one, so that 64 lines are all different.
fn turned(style: usize) -> usize {
    (style + style / STYLES) % STYLES
}

/// The marker of line `style` at a position.
fn marker(style: usize, x: f64, y: f64) -> Element {
    shape(turned(style), &colour(style), x, y)
}

/// One of the markers in a colour. Closed ones are filled, crosses are drawn.
fn shape(kind: usize, colour: &str, x: f64, y: f64) -> Element {
    let of =
        |class: &str, d: String| element("path").class(format!("{class} {colour}")).with("d", d);
    let closed = |corners: &[(f64, f64)]| {
        let corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        of("marker", path(&corners) + "Z")
    };
    let crossed = |one: (f64, f64), other: (f64, f64)| {
        let through = |(dx, dy): (f64, f64)| path(&[(x - dx, y - dy), (x + dx, y + dy)]);
        of("marker-open", through(one) + &through(other))
    };
    match kind % STYLES {
        0 => element("circle")
            .class(format!("marker {colour}"))
            .with("cx", px(x))
            .with("cy", px(y))
            .with("r", 3.5),
        1 => closed(&[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)]),
        2 => closed(&[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)]),
        3 => closed(&[(0.0, -4.8), (4.2, 0.0), (0.0, 4.8), (-4.2, 0.0)]),
        4 => closed(&[(0.0, 4.4), (4.2, -3.2), (-4.2, -3.2)]),
        5 => crossed((3.4, 3.4), (3.4, -3.4)),
        6 => crossed((4.4, 0.0), (0.0, 4.4)),
        _ => closed(&[(-4.0, -2.0), (0.0, -4.8), (4.0, -2.0), (2.8, 3.6), (-2.8, 3.6)]),
    }
}

/// The length of the piece of line in a key.
const SAMPLE: f64 = 32.0;

/// A piece of line `style` with its marker, from a position to the right.
fn sample(style: usize, x: f64, y: f64) -> [Element; 2] {
    [stroke(style, &[(x, y), (x + SAMPLE, y)]), marker(style, x + SAMPLE / 2.0, y)]
}

/// A piece of line as it appears in keys, for use outside of plots.
pub(super) fn swatch(style: usize) -> Element {
    element("svg")
        .class("swatch")
        .with("viewBox", format!("0 0 {SAMPLE} 12"))
        .with("width", SAMPLE)
        .with("height", 12)
        .with("aria-hidden", "true")
        .children(sample(style, 0.0, 6.0))
}

/// The meaning of lines, in rows from the top, with the height of the key.
fn key(entries: &[(usize, &str)], left: f64) -> (Vec<Element>, f64) {
    let mut out = Vec::new();
    let (mut x, mut y) = (left, LEADING / 2.0);
    for (style, text) in entries {
        let text = cut(text);
        let width = SAMPLE + 6.0 + text_width(&text);
        if x > left && x + width > WIDTH {
            (x, y) = (left, y + LEADING);
        }
        out.extend(sample(*style, x, y));
        out.push(label(x + SAMPLE + 6.0, y + 4.5, "note", &text));
        x += width + 18.0;
    }
    (out, y + LEADING)
}

/// The width of `text` in plots, slightly overestimated: the font on the reader's
/// screen is unknown.
fn text_width(text: &str) -> f64 {
    let of = |character: char| match character {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '\u{202f}' => 0.32,
        'f' | 't' | 'r' | ' ' | '\u{a0}' | '(' | ')' | '-' | '/' => 0.41,
        'm' | 'w' | 'M' | 'W' | '%' => 0.95,
        'A'..='Z' => 0.72,
        _ => 0.63,
    };
    text.chars().map(of).sum::<f64>() * TEXT
}

/// Labels longer than this are cut in plots; tables have them in full.
const LONGEST_LABEL: usize = 26;

fn cut(label: &str) -> String {
    if label.chars().count() <= LONGEST_LABEL {
        return label.into();
    }
    let kept: String = label.chars().take(LONGEST_LABEL - 1).collect();
    format!("{}…", kept.trim_end())
}

/// Where a plot's lines are drawn, within the view box.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// The position of a value pair; values beyond an axis lie on its end.
    fn place(&self, x: &Axis, y: &Axis, point: (f64, f64)) -> (f64, f64) {
        (self.left + x.place(point.0) * self.width, self.bottom() - y.place(point.1) * self.height)
    }

    /// Vertical grid lines, and the numbers below when `labelled`.
    fn x_grid(&self, axis: &Axis, labelled: bool) -> Vec<Element> {
        let x = |value: f64| self.left + axis.place(value) * self.width;
        let line =
            |class: &str, value: f64| rule(class, (x(value), self.top), (x(value), self.bottom()));
        let ticks = axis.ticks(2.0 + self.width / 80.0);
        let mut out: Vec<_> = ticks.minor.iter().map(|value| line("grid-minor", *value)).collect();
        out.extend(ticks.major.iter().map(|(value, _)| line("grid", *value)));
        if labelled {
            let text = |(value, text): &(f64, String)| {
                label(x(*value), self.bottom() + 18.0, "tick middle", text)
            };
            out.extend(ticks.major.iter().map(text));
        }
        out
    }

    /// Horizontal grid lines, and the numbers at the left when `labelled`.
    fn y_grid(&self, axis: &Axis, labelled: bool) -> Vec<Element> {
        let y = |value: f64| self.bottom() - axis.place(value) * self.height;
        let line =
            |class: &str, value: f64| rule(class, (self.left, y(value)), (self.right(), y(value)));
        let ticks = axis.ticks(2.0 + self.height / 50.0);
        let mut out: Vec<_> = ticks.minor.iter().map(|value| line("grid-minor", *value)).collect();
        out.extend(ticks.major.iter().map(|(value, _)| line("grid", *value)));
        if labelled {
            let text = |(value, text): &(f64, String)| {
                label(self.left - 8.0, y(*value) + 4.5, "tick end", text)
            };
            out.extend(ticks.major.iter().map(text));
        }
        out
    }

    /// The two axes themselves, over the grid.
    fn frame(&self) -> Element {
        let corners =
            [(self.left, self.top), (self.left, self.bottom()), (self.right(), self.bottom())];
        element("path").class("axis").with("d", path(&corners))
    }

    /// Title of the horizontal axis, below.
    fn x_title(&self, x: &Axis) -> Element {
        label(self.left + self.width / 2.0, self.bottom() + 40.0, "title middle", &x.title())
    }

    /// Title of the vertical axis, along the left edge.
    fn y_title(&self, y: &Axis) -> Element {
        let (middle, left) = (self.top + self.height / 2.0, 14.0);
        label(left, middle, "title middle", &y.title())
            .with("transform", format!("rotate(-90 {} {})", px(left), px(middle)))
    }
}
