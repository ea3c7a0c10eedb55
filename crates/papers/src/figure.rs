//! What a plot shows, without how it is drawn.

use serde::Serialize;

use tidegate_study::Estimate;

/// Lines over two axes.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Name of its file, after the claim's id: `EFD-5-underload`.
    pub id: String,
    /// One line above it.
    pub title: String,
    /// What is seen, and how it was made.
    pub caption: String,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
    /// The lines.
    pub lines: Vec<Line>,
    /// Each value holds until the next, as in a distribution.
    pub stepped: bool,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub struct Scale {
    /// What is on it.
    pub name: &'static str,
    /// What it measures.
    pub measure: Measure,
    /// Whether equal ratios are equally far apart.
    pub logarithmic: bool,
}

impl Scale {
    pub(crate) const fn linear(name: &'static str, measure: Measure) -> Scale {
        Scale { name, measure, logarithmic: false }
    }

    pub(crate) const fn log(name: &'static str, measure: Measure) -> Scale {
        Scale { name, measure, logarithmic: true }
    }
}

/// What an axis measures; values are in the unit named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Seconds.
    Time,
    /// Bits a second.
    Rate,
    /// Bytes.
    Size,
    /// A part of one.
    Share,
    /// A number of something.
    Count,
}

/// One line of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// What it is of.
    pub label: String,
    /// The points, by ascending x.
    pub points: Vec<(f64, f64)>,
    /// The 95% interval around a point: x, from, to.
    pub band: Vec<(f64, f64, f64)>,
}

impl Line {
    /// The mean over seeds of the values at each place, with its interval, which ends
    /// at zero: for values that cannot be negative.
    pub(crate) fn over_seeds(
        label: impl Into<String>,
        places: impl IntoIterator<Item = (f64, Vec<f64>)>,
    ) -> Line {
        let (mut points, mut band) = (Vec::new(), Vec::new());
        for (at, values) in places {
            let Some(estimate) = Estimate::mean(values) else { continue };
            let (low, high) = estimate.ends();
            points.push((at, estimate.value));
            band.push((at, low.max(0.0), high));
        }
        Line { label: label.into(), points, band }
    }

    /// A line without intervals.
    pub(crate) fn plain(label: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { label: label.into(), points, band: Vec::new() }
    }
}

/// The distribution of `values`: points (value, share of values not above it).
/// A point that rises less than can be seen is left out, so that where most
/// values are every step is there.
pub(crate) fn distribution(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let (mut points, mut shown): (Vec<(f64, f64)>, f64) = (Vec::new(), 0.0);
    for (index, value) in values.iter().enumerate() {
        let share = (index + 1) as f64 / count;
        let last = index + 1 == values.len();
        let more_to_come = !last && values[index + 1] == *value;
        if !more_to_come && (points.is_empty() || last || share - shown >= 1.0 / MOST as f64) {
            points.push((*value, share));
            shown = share;
        }
    }
    points
}

/// Points of a line; more could not be told apart.
const MOST: usize = 300;

/// At most [`MOST`] points, evenly spread, with the last one kept.
pub(crate) fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let stride = points.len().div_ceil(MOST).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate();
    kept.filter(|(index, _)| index % stride == 0 || *index == last).map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_seed_has_is_left_out_and_no_interval_goes_below_zero() {
        let line = Line::over_seeds("", [(1.0, vec![0.0, 2.0]), (2.0, vec![]), (3.0, vec![5.0])]);
        assert_eq!(line.points, [(1.0, 1.0), (3.0, 5.0)]);
        assert_eq!((line.band[0].1, line.band[1]), (0.0, (3.0, 5.0, 5.0)));
        assert!(line.band[0].2 > 13.0);
    }

    #[test]
    fn a_distribution_counts_what_is_not_above() {
        let points = distribution(vec![3.0, 1.0, 1.0, 2.0]);
        assert_eq!(points, [(1.0, 0.5), (2.0, 0.75), (3.0, 1.0)]);
        // A hundredth of all lies at a thousand places, the rest at one.
        let rare = (0..1_000).map(f64::from);
        let points = distribution(rare.chain(std::iter::repeat_n(2_000.0, 99_000)).collect());
        assert_eq!(points, [(0.0, 0.000_01), (334.0, 0.003_35), (668.0, 0.006_69), (2_000.0, 1.0)]);
        assert_eq!(thinned((0..1_000).map(|i| (f64::from(i), 0.0)).collect()).len(), 251);
    }
}
