//! Several lines over the same two axes.

use super::{
    Area, Axis, Drawing, LEADING, WIDTH, band, colour, cut, key, label, marker, rule, steps,
    stroke, text_width,
};
use crate::report::markup::{Element, element};

/// Where the lines are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Key {
    /// At their ends, for lines that end apart.
    AtEnds,
    /// Above the plot, for lines that end together.
    Above,
}

/// One line.
#[derive(Clone, Debug)]
pub(in crate::report) struct Line {
    pub(in crate::report) label: String,
    pub(in crate::report) style: usize,
    pub(in crate::report) points: Vec<(f64, f64)>,
    /// Lower and upper bound around a point: (x, from, to).
    pub(in crate::report) band: Vec<(f64, f64, f64)>,
}

/// Lines over two axes.
#[derive(Clone, Debug)]
pub(in crate::report) struct LineChart {
    pub(in crate::report) x: Axis,
    pub(in crate::report) y: Axis,
    pub(in crate::report) lines: Vec<Line>,
    pub(in crate::report) key: Key,
    /// Hold each value until the next, as a distribution does.
    pub(in crate::report) stepped: bool,
    /// A second plot under the first.
    pub(in crate::report) below: Option<Below>,
}

/// The same lines with other values, over the same horizontal axis.
#[derive(Clone, Debug)]
pub(in crate::report) struct Below {
    pub(in crate::report) y: Axis,
    pub(in crate::report) lines: Vec<Line>,
}

/// The height of a single plot, and of each of two.
const HEIGHT: f64 = 340.0;
const HALF: f64 = 220.0;
/// Between two plots.
const BETWEEN: f64 = 22.0;
/// Up to this number of points, each has its marker.
const ALL_MARKED: usize = 40;
/// Otherwise markers are this far apart along the line.
const BETWEEN_MARKERS: f64 = 110.0;

impl LineChart {
    pub(in crate::report) fn draw(&self) -> Drawing {
        let drawn: Vec<&Line> = self.lines.iter().filter(|line| !line.points.is_empty()).collect();
        let left = 74.0;
        let entries: Vec<_> = drawn.iter().map(|line| (line.style, line.label.as_str())).collect();
        let (mut content, top) = match self.key {
            Key::Above => key(&entries, left),
            Key::AtEnds => (Vec::new(), 10.0),
        };
        let room = match self.key {
            Key::Above => 24.0,
            Key::AtEnds => {
                let widths = drawn.iter().map(|line| text_width(&cut(&line.label)));
                widths.fold(0.0, f64::max) + 36.0
            }
        };
        let height = if self.below.is_some() { HALF } else { HEIGHT };
        let area = Area { left, top, width: WIDTH - left - room, height };
        content.extend(area.x_grid(&self.x, self.below.is_none()));
        content.extend(self.plot(&area, &self.y, &drawn));
        if self.key == Key::AtEnds {
            content.extend(self.names(&area, &drawn));
        }
        let mut lowest = area;
        if let Some(below) = &self.below {
            lowest.top = area.bottom() + BETWEEN;
            let drawn: Vec<_> = below.lines.iter().filter(|it| !it.points.is_empty()).collect();
            content.extend(lowest.x_grid(&self.x, true));
            content.extend(self.plot(&lowest, &below.y, &drawn));
        }
        content.push(lowest.x_title(&self.x));
        Drawing { height: lowest.bottom() + 52.0, content }
    }

    /// Where each line begins, is in its middle and ends, for readers who cannot see the plot.
    pub(in crate::report) fn in_words(&self) -> String {
        let at =
            |(x, y): &(f64, f64)| format!("{} at {}", self.y.in_words(*y), self.x.in_words(*x));
        let line = |line: &Line| {
            let [first, .., last] = &line.points[..] else {
                let only: Vec<_> = line.points.iter().map(at).collect();
                return format!("{}: {}", line.label, only.join(""));
            };
            let middle = &line.points[line.points.len() / 2];
            format!("{}: {}, {}, {}", line.label, at(first), at(middle), at(last))
        };
        let drawn = self.lines.iter().filter(|line| !line.points.is_empty());
        drawn.map(line).collect::<Vec<_>>().join("; ") + "."
    }

    /// The `lines` of one plot with its vertical axis.
    fn plot(&self, area: &Area, y: &Axis, lines: &[&Line]) -> Vec<Element> {
        let mut out = area.y_grid(y, true);
        out.extend(lines.iter().filter_map(|line| self.band(area, y, line)));
        // The first discipline is the one with which the others are compared: it
        // lies on top.
        out.extend(lines.iter().rev().map(|line| self.line(area, y, line)));
        out.push(area.frame());
        out.push(area.y_title(y));
        out
    }

    fn band(&self, area: &Area, y: &Axis, line: &Line) -> Option<Element> {
        band(line.style, &line.band, |point| area.place(&self.x, y, point))
    }

    fn line(&self, area: &Area, y: &Axis, line: &Line) -> Element {
        let places: Vec<_> =
            line.points.iter().map(|point| area.place(&self.x, y, *point)).collect();
        let places = if self.stepped { steps(&places) } else { places };
        let marked = if places.len() <= ALL_MARKED && !self.stepped {
            places.clone()
        } else {
            along(&places, line.style)
        };
        element("g")
            .child(stroke(line.style, &places))
            .children(marked.iter().map(|(x, y)| marker(line.style, *x, *y)))
    }

    /// The names at the right, moved apart, each led to by a thin line.
    fn names(&self, area: &Area, lines: &[&Line]) -> Vec<Element> {
        let end = |line: &Line| {
            let last = line.points.last().copied().unwrap_or_default();
            area.place(&self.x, &self.y, last)
        };
        let mut ends: Vec<_> = lines.iter().map(|line| (end(line), *line)).collect();
        ends.sort_by(|(one, _), (other, _)| one.1.total_cmp(&other.1));
        let wanted: Vec<f64> = ends.iter().map(|(place, _)| place.1).collect();
        let heights = apart(&wanted, area.top, area.bottom());
        let mut out = Vec::new();
        for (((x, y), line), height) in ends.into_iter().zip(heights) {
            let knee = area.right() + 4.0;
            let class = format!("leader {}", colour(line.style));
            out.push(rule(&class, (x + 6.0, y), (knee.max(x + 6.0), y)));
            out.push(rule(&class, (knee, y), (knee + 16.0, height)));
            out.push(marker(line.style, knee + 20.0, height));
            out.push(label(knee + 28.0, height + 4.5, "note", &cut(&line.label)));
        }
        out
    }
}

/// Heights as close to `wanted` (ascending) as possible when they have to be a line
/// of text apart, between `top` and `bottom`.
fn apart(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut heights = wanted.to_vec();
    let mut least = top;
    for height in &mut heights {
        *height = height.max(least);
        least = *height + LEADING;
    }
    let mut most = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - LEADING;
    }
    heights
}

/// Positions of markers, evenly spaced along a line. Each style begins at a
/// different point, so that lines that coincide still show all their markers.
fn along(places: &[(f64, f64)], style: usize) -> Vec<(f64, f64)> {
    let mut next = BETWEEN_MARKERS * (0.15 + 0.37 * style as f64).fract();
    let mut out = Vec::new();
    for pair in places.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0);
        while next <= length && length > 0.0 {
            let part = next / length;
            out.push((x0 + part * (x1 - x0), y0 + part * (y1 - y0)));
            next += BETWEEN_MARKERS;
        }
        next -= length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_their_distance() {
        let heights = apart(&[10.0, 12.0, 13.0, 200.0], 0.0, 210.0);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= LEADING - 1e-9), "{heights:?}");
        assert_eq!((heights[0], heights[3]), (10.0, 200.0));
        let crowded = apart(&[100.0, 100.0, 100.0], 0.0, 100.0);
        assert_eq!(crowded[2], 100.0);
        assert!(crowded[0] >= 0.0);
    }

    #[test]
    fn markers_lie_on_the_line() {
        let places = along(&[(0.0, 0.0), (500.0, 0.0)], 0);
        assert_eq!(places.len(), 5);
        assert!(places.iter().all(|(_, y)| *y == 0.0));
        assert!(along(&[(3.0, 3.0)], 1).is_empty());
    }
}
