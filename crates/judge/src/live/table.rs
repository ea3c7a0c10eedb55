//! The figures of a case as text.

use std::fmt::Write as _;

use super::figures::{Figure, Measure, Unit};
use tidegate_study::Sample;

/// The width of a column.
const WIDTH: usize = 9;

/// A row of a table for each of what is known of a way: live and its interval, predicted,
/// and the ratio of both, with a mark where it is out of tolerance.
#[must_use]
pub fn text(measures: &[Measure], ways: &[(&str, &[Figure])]) -> String {
    let mut text = String::new();
    for line in 0..2 {
        let _ = write!(text, "{:<12} {:<10}", ["", "way"][line], "");
        for measure in measures {
            let _ = write!(text, " {:>WIDTH$}", shortened(&measure.heading[line]));
        }
        text.push('\n');
    }
    for (way, figures) in ways {
        let has_interval = |figure: &Figure| half(figure.live.as_ref()).is_some();
        let mut row = |name: &str, what: &str, cell: &dyn Fn(&Figure) -> String| {
            let _ = write!(text, "{name:<12} {what:<10}");
            for figure in *figures {
                let _ = write!(text, " {:>WIDTH$}", cell(figure));
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        };
        row(way, "live", &|figure| mean(figure.live.as_ref(), figure.unit));
        if figures.iter().any(has_interval) {
            row("", "  ±", &|figure| {
                half(figure.live.as_ref()).map_or(String::new(), |it| number(it, figure.unit))
            });
        }
        if figures.iter().any(|figure| figure.predicted.is_some()) {
            row("", "predicted", &|figure| mean(figure.predicted.as_ref(), figure.unit));
            row("", "ratio", &|figure| match figure.ratio {
                Some(_) if figure.unit == Unit::Count => String::new(),
                Some(ratio) => format!("{ratio:.2}{}", if figure.differs { "*" } else { " " }),
                None => String::new(),
            });
        }
    }
    text
}

fn shortened(heading: &str) -> String {
    heading.chars().take(WIDTH).collect()
}

fn half(sample: Option<&Sample>) -> Option<f64> {
    sample?.estimate().half_width()
}

fn mean(sample: Option<&Sample>, unit: Unit) -> String {
    sample.map_or("-".into(), |sample| number(sample.estimate().value, unit))
}

fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::KbitPerSecond => format!("{value:.0}"),
        Unit::Percent | Unit::PerSecond | Unit::Count => format!("{value:.1}"),
        Unit::Seconds => format!("{value:.2}"),
        Unit::Plain => format!("{value:.3}"),
    }
}
