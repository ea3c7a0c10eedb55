//! The table of the parts of a replayed capture: for each application or host, in each
//! direction, the delay and loss under each discipline.

use std::fmt::Write as _;

use tidegate_study::Sample;
use tidegate_study::comparison::{Comparison, TrafficResult};

use crate::output;

/// The width where there is no terminal.
const WIDTH: usize = 100;
/// Longer names are cut off.
const NAME: usize = 48;
/// The columns of a discipline, with the gap in front.
const GROUP: usize = 25;

/// Delay and loss of each source, in as many blocks of disciplines as the width takes.
pub(crate) fn table(comparison: &Comparison) -> String {
    let names = comparison.disciplines.iter().flat_map(|discipline| &discipline.traffic);
    let longest = names.map(|source| source.name.chars().count()).max().unwrap_or(0);
    let name_width = longest.clamp("part".len(), NAME);
    let most = output::columns(WIDTH).saturating_sub(name_width) / GROUP;
    let mut text = String::new();
    for disciplines in comparison.disciplines.chunks(most.max(1)) {
        let mut lines = [String::new(), format!("{:name_width$}", "part"), String::new()];
        for line in [0, 2] {
            lines[line] = " ".repeat(name_width);
        }
        for discipline in disciplines {
            let label: String = discipline.label.chars().take(GROUP - 2).collect();
            let _ = write!(lines[0], "  {label:>width$}", width = GROUP - 2);
            let _ = write!(lines[1], "  {:>7} {:>8} {:>6}", "median", "p95", "lost");
            let _ = write!(lines[2], "  {:>7} {:>8} {:>6}", "ms", "ms", "%");
        }
        for line in &lines {
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let parts = disciplines.first().map_or(0, |discipline| discipline.traffic.len());
        for part in 0..parts {
            let name: String = disciplines[0].traffic[part].name.chars().take(NAME).collect();
            let mut line = format!("{name:name_width$}");
            for discipline in disciplines {
                line += &cells(&discipline.traffic[part]);
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text.push('\n');
    }
    text.push_str(
        "Delay of the packets of each part, and what is lost. Each flow is in recorded.csv.\n",
    );
    text
}

fn cells(part: &TrafficResult) -> String {
    let value = |sample: &Option<Sample>, scale: f64| {
        sample.as_ref().map(|sample| sample.estimate().value * scale)
    };
    let millis = |sample| value(sample, 1e3).map_or("-".into(), number);
    let lost = value(&part.loss_ratio, 100.0).map_or("-".into(), |percent| format!("{percent:.2}"));
    format!("  {:>7} {:>8} {lost:>6}", millis(&part.delay.median_s), millis(&part.delay.p95_s))
}

/// Three significant digits.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}
