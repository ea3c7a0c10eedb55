//! Response times of transfers by their size.
//!
//! The bands of a few disciplines can be told apart in one plot, those of many turn to
//! mud. So the plot of many has lines only, and a second figure gives each discipline a
//! plot of its own, with its band and the line with which the others are compared.

use tidegate_study::Estimate;
use tidegate_study::comparison::{Comparison, DisciplineResult};

use super::{Figure, not_drawn};
use crate::report::number::Quantity;
use crate::report::plot::{Axis, Key, Line, LineChart, Panel, PanelChart, Reference};

/// More bands in one plot hide each other.
const MOST_BANDS: usize = 3;

/// The means by size, and if there are many disciplines, their intervals apart.
pub(super) fn response_by_size(comparison: &Comparison) -> Vec<Figure> {
    let lines: Vec<Line> = comparison.disciplines.iter().enumerate().map(line).collect();
    let all = || lines.iter().flat_map(|line| &line.points);
    let sizes = all().map(|(size, _)| *size);
    // An interval may reach far below zero or above everything; the axis
    // follows the means and lets the bands end at its edge.
    let most = all().map(|(_, mean)| *mean).fold(0.0, f64::max);
    let highs = lines.iter().flat_map(|line| &line.band).map(|(_, _, to)| to.min(most * 2.0));
    let times = all().map(|(_, mean)| *mean).chain(highs);
    let x = Axis::log("Size of the transfer", Quantity::Size, sizes);
    let y = Axis::log("Mean response time", Quantity::Time, times);
    let has_bands = lines.iter().any(|line| line.band.iter().any(|(_, from, to)| from < to));
    let apart = has_bands && lines.len() > MOST_BANDS;
    let intervals = apart.then(|| panels(&lines, &x, &y));
    let bands = match (has_bands, apart) {
        (false, _) => "",
        (true, false) => {
            " The bands are 95% confidence intervals of the mean over seeds; where two bands \
             overlap, the order is not certain."
        }
        (true, true) => " The next figure has the intervals.",
    };
    let caption = format!(
        "Mean response time of finished transfers by their size; both axes are logarithmic. \
         Lower is better.{bands} Transfers that were not finished are not in it; the table by \
         size class counts them.{}",
        not_drawn(&lines)
    );
    let empty = lines.iter().all(|line| line.points.is_empty());
    let bare = |line: Line| Line { band: Vec::new(), ..line };
    let lines = if apart { lines.into_iter().map(bare).collect() } else { lines };
    let chart = LineChart { x, y, key: Key::AtEnds, stepped: false, lines, below: None };
    let means = Figure {
        id: "response-by-size".into(),
        title: "Response time by size".into(),
        caption,
        description: chart.in_words(),
        table: Some("table-sizes"),
        plot: if empty { Err("No transfer finished.".into()) } else { Ok(chart.draw()) },
    };
    [means].into_iter().chain(intervals).collect()
}

fn line((style, discipline): (usize, &DisciplineResult)) -> Line {
    let points = || {
        let bins = discipline.response_by_size.iter();
        // The middle of a bin, as the logarithmic axis sees it.
        bins.map(|bin| ((bin.from_bytes * bin.to_bytes).sqrt(), &bin.mean_s))
            .filter(|(size, mean)| *size > 0.0 && mean.value > 0.0 && mean.value.is_finite())
    };
    let band = |(size, mean): (f64, &Estimate)| {
        let (from, to) = mean.ends();
        (size, from, to)
    };
    Line {
        label: discipline.label.clone(),
        style,
        points: points().map(|(size, mean)| (size, mean.value)).collect(),
        band: points().map(band).collect(),
    }
}

/// Each line with its band in a plot of its own, and the first line in all of them.
fn panels(lines: &[Line], x: &Axis, y: &Axis) -> Figure {
    let baseline = &lines[0];
    let panel = |line: &Line| Panel {
        label: line.label.clone(),
        style: line.style,
        series: vec![line.points.clone()],
        band: line.band.clone(),
        remark: line.points.is_empty().then(|| "no transfer finished".into()),
    };
    let chart = PanelChart {
        x: x.clone(),
        y: y.clone(),
        panels: lines.iter().map(panel).collect(),
        stepped: false,
        filled: false,
        reference: Some(Reference {
            label: format!("{}, to compare with", baseline.label),
            points: baseline.points.clone(),
            stepped: false,
        }),
    };
    Figure {
        id: "response-intervals".into(),
        title: "Response time by size, with intervals".into(),
        caption: format!(
            "The same means, one plot for each, with the 95% confidence intervals of the mean over \
             seeds as bands, and in all plots the line of {}. Where that lies within a band, the \
             order is not certain.",
            baseline.label
        ),
        description: format!("The lines of the figure before, beside that of {}.", baseline.label),
        table: Some("table-sizes"),
        plot: Ok(chart.draw()),
    }
}
