//! Maps over two keys: a field of cells for each discipline, coloured by their value, or
//! one field that says what to run.
//!
//! Every cell has its number or letter as text, so that colour only helps the eye; a cell
//! that was not measured has a dashed border and no colour. All fields of a map share one
//! scale, which the legend shows.

use super::{Drawing, LEADING, WIDTH, label, marker, px, text_width};
use crate::report::markup::{Element, element};

/// Colours of a scale, from the smallest value to the largest.
pub(in crate::report) const STEPS: usize = 9;
/// Colours below this one are dark, and have white text.
const DARK: usize = 5;
const CELL_HEIGHT: f64 = 26.0;
/// A cell is no narrower where there is room.
const LEAST_WIDTH: f64 = 46.0;
const MOST_WIDTH: f64 = 120.0;
const BETWEEN: f64 = 28.0;

/// A key with its values.
#[derive(Clone, Debug)]
pub(in crate::report) struct Side {
    pub(in crate::report) title: String,
    pub(in crate::report) values: Vec<String>,
}

/// What is in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::report) enum Fill {
    /// A step of the scale.
    Step(usize),
    /// The colour of a discipline.
    Discipline(usize),
    /// No colour.
    Plain,
}

/// The cells of one discipline, or of the verdict.
#[derive(Clone, Debug)]
pub(in crate::report) struct Field {
    /// The discipline's place and label.
    pub(in crate::report) of: Option<(usize, String)>,
    /// Row by row from the top; `None` where nothing was measured.
    pub(in crate::report) cells: Vec<Option<(Fill, String)>>,
}

/// What the colours mean.
#[derive(Clone, Debug)]
pub(in crate::report) enum Legend {
    /// What the scale measures, and its ends.
    Scale { title: String, low: String, high: String },
    /// What each letter means.
    Letters(Vec<(Fill, String, String)>),
}

/// A map.
#[derive(Clone, Debug)]
pub(in crate::report) struct HeatChart {
    /// Across.
    pub(in crate::report) x: Side,
    /// Down; one unnamed value for a map over one key.
    pub(in crate::report) y: Side,
    pub(in crate::report) fields: Vec<Field>,
    pub(in crate::report) legend: Legend,
}

/// Where the cells of a field are.
struct Grid {
    left: f64,
    top: f64,
    cell: f64,
}

impl HeatChart {
    pub(in crate::report) fn draw(&self) -> Drawing {
        let columns = self.x.values.len() as f64;
        let widest = |texts: &mut dyn Iterator<Item = &String>| {
            texts.map(|text| text_width(text)).fold(0.0, f64::max)
        };
        let beside = widest(&mut self.y.values.iter()) + 14.0;
        let margin = beside + if self.y.title.is_empty() { 0.0 } else { LEADING };
        let cells = self.fields.iter().flat_map(|field| field.cells.iter().flatten());
        let text = widest(&mut cells.map(|(_, text)| text)) + 10.0;
        let wanted = text.max(widest(&mut self.x.values.iter()) + 12.0);
        let wanted = wanted.clamp(LEAST_WIDTH, MOST_WIDTH);
        let cell = wanted.min((WIDTH - margin - 4.0) / columns);
        let width = margin + cell * columns + BETWEEN;
        let abreast = ((WIDTH + BETWEEN) / width).floor().max(1.0) as usize;
        let (mut content, mut top) = self.legend();
        let rows = self.y.values.len() as f64;
        for line in self.fields.chunks(abreast) {
            let named = line.iter().any(|field| field.of.is_some());
            let heading = if named { LEADING + 4.0 } else { 0.0 };
            for (index, field) in line.iter().enumerate() {
                let left = margin + width * index as f64;
                let grid = Grid { left, top: top + heading, cell };
                content.extend(self.field(field, &grid, text <= cell));
                content.extend(self.sides(&grid, beside));
            }
            top += heading + rows * CELL_HEIGHT + 2.0 * LEADING + 18.0;
        }
        Drawing { height: top, content }
    }

    fn field(&self, field: &Field, grid: &Grid, with_text: bool) -> Vec<Element> {
        let mut out = Vec::new();
        if let Some((style, name)) = &field.of {
            let y = grid.top - 13.0;
            out.push(marker(*style, grid.left + 6.0, y));
            out.push(label(grid.left + 18.0, y + 4.5, "note strong", name));
        }
        for (index, cell) in field.cells.iter().enumerate() {
            let (row, column) = (index / self.x.values.len(), index % self.x.values.len());
            let x = grid.left + column as f64 * grid.cell;
            let y = grid.top + row as f64 * CELL_HEIGHT;
            let nothing = (String::from("–"), "missing".to_string(), "tick");
            let (text, class, ink) = match cell {
                None => nothing,
                Some((fill, text)) => (text.clone(), class_of(fill), ink_of(fill)),
            };
            out.push(block(&class, x, y, grid.cell));
            if with_text || cell.is_none() {
                let (x, y) = (x + grid.cell / 2.0, y + CELL_HEIGHT / 2.0 + 4.5);
                out.push(label(x, y, &format!("{ink} middle"), &text));
            }
        }
        out
    }

    /// The values of the keys beside a field, and the keys.
    fn sides(&self, grid: &Grid, beside: f64) -> Vec<Element> {
        let bottom = grid.top + CELL_HEIGHT * self.y.values.len() as f64;
        let longest = self.x.values.iter().map(|text| text_width(text)).fold(0.0, f64::max);
        // Values that have no room side by side: every second one, or every third.
        let every = ((longest + 8.0) / grid.cell).ceil().max(1.0) as usize;
        let mut out = Vec::new();
        for (index, value) in self.x.values.iter().enumerate().step_by(every) {
            let x = grid.left + (index as f64 + 0.5) * grid.cell;
            out.push(label(x, bottom + 17.0, "tick middle", value));
        }
        for (index, value) in self.y.values.iter().enumerate() {
            let y = grid.top + (index as f64 + 0.5) * CELL_HEIGHT + 4.5;
            out.push(label(grid.left - 8.0, y, "tick end", value));
        }
        let middle = grid.left + grid.cell * self.x.values.len() as f64 / 2.0;
        out.push(label(middle, bottom + 37.0, "title middle", &self.x.title));
        if !self.y.title.is_empty() {
            let (x, y) = (grid.left - beside - 4.0, f64::midpoint(grid.top, bottom));
            let title = label(x, y, "title middle", &self.y.title);
            out.push(title.with("transform", format!("rotate(-90 {} {})", px(x), px(y))));
        }
        out
    }

    fn legend(&self) -> (Vec<Element>, f64) {
        let mut out = Vec::new();
        match &self.legend {
            Legend::Scale { title, low, high } => {
                const STEP: f64 = 22.0;
                out.push(label(4.0, 16.0, "title", title));
                let mut x = text_width(title) + 20.0;
                out.push(label(x, 16.0, "tick", low));
                x += text_width(low) + 8.0;
                for step in 0..STEPS {
                    let class = class_of(&Fill::Step(step));
                    out.push(block(&class, x, 0.0, STEP).with("transform", "translate(0 2)"));
                    x += STEP;
                }
                out.push(label(x + 8.0, 16.0, "tick", high));
                (out, CELL_HEIGHT + 14.0)
            }
            Legend::Letters(entries) => {
                let mut y = 0.0;
                for (fill, letter, text) in entries {
                    out.push(block(&class_of(fill), 4.0, y, 34.0));
                    out.push(label(21.0, y + 17.5, "middle", letter));
                    let lines = wrapped(text, WIDTH - 52.0);
                    for (index, line) in lines.iter().enumerate() {
                        let y = y + 17.5 + LEADING * index as f64;
                        out.push(label(48.0, y, "note", line));
                    }
                    y += CELL_HEIGHT + 4.0 + LEADING * (lines.len() - 1) as f64;
                }
                (out, y + 12.0)
            }
        }
    }
}

/// `text` in lines of at most `width`.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if text_width(line) + text_width(" ") + text_width(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.into());
        }
    }
    lines
}

fn class_of(fill: &Fill) -> String {
    match fill {
        Fill::Step(step) => format!("cell h{}", (*step).min(STEPS - 1)),
        Fill::Discipline(style) => format!("tinted {}", super::colour(*style)),
        Fill::Plain => "plain".into(),
    }
}

fn ink_of(fill: &Fill) -> &'static str {
    match fill {
        Fill::Step(step) if *step < DARK => "on-dark",
        Fill::Step(_) => "on-light",
        Fill::Discipline(_) | Fill::Plain => "note",
    }
}

fn block(class: &str, x: f64, y: f64, width: f64) -> Element {
    element("rect")
        .class(class)
        .with("x", px(x))
        .with("y", px(y))
        .with("width", px(width))
        .with("height", px(CELL_HEIGHT))
}
