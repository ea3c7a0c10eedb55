//! Figures of the papers' claims, drawn.

use tidegate_papers::{Figure, Measure, Scale};

use super::number::Quantity;
use super::plot::{Axis, Key, Line, LineChart};

/// The figure as an SVG file for light and dark pages.
pub(crate) fn draw(figure: &Figure) -> String {
    let points = || figure.lines.iter().flat_map(|line| &line.points);
    let bands = || figure.lines.iter().flat_map(|line| &line.band);
    let highs = bands().map(|(_, _, to)| *to);
    let heights: Vec<f64> = points().map(|(_, y)| *y).chain(highs).collect();
    let line = |(style, line): (usize, &tidegate_papers::Line)| Line {
        label: line.label.clone(),
        style,
        points: line.points.clone(),
        band: line.band.clone(),
    };
    let chart = LineChart {
        x: axis(&figure.x, points().map(|(x, _)| *x).collect()),
        y: axis(&figure.y, heights),
        lines: figure.lines.iter().enumerate().map(line).collect(),
        key: Key::Above,
        below: None,
        stepped: figure.stepped,
    };
    let id = figure.id.to_lowercase();
    chart.draw().for_both_grounds(&id, &figure.title, &figure.caption)
}

fn axis(scale: &Scale, values: Vec<f64>) -> Axis {
    let quantity = match scale.measure {
        Measure::Time => Quantity::Time,
        Measure::Rate => Quantity::Rate,
        Measure::Size => Quantity::Size,
        Measure::Share => Quantity::Share,
        Measure::Count => Quantity::Plain,
    };
    if scale.logarithmic {
        Axis::log(scale.name, quantity, values)
    } else {
        Axis::linear(scale.name, quantity, values.into_iter().fold(0.0, f64::max)).rounded()
    }
}
