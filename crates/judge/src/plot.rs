//! A chart of lines over time as SVG: the kernel's beside the simulator's.
//!
//! The file has its own colours, dark if the reader's screen is, and the second line is
//! also dashed.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 230.0;
/// Room for the labels at the left, right, top and bottom.
const MARGINS: (f64, f64, f64, f64) = (52.0, 12.0, 34.0, 34.0);
/// About how many marks an axis has.
const MARKS: f64 = 5.0;

const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.ground { fill: #ffffff } .grid { stroke: #e3e6ea } .axis { stroke: #8b949e }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round }
.line-0 { stroke: #305398 } .line-1 { stroke: #c73827; stroke-dasharray: 6 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e8e9eb } .ground { fill: #15191e } .grid { stroke: #2c333b } .axis { stroke: #6b747e }
.line-0 { stroke: #6f98dd } .line-1 { stroke: #ff6e10 }
}";

/// A line: what it is of, and its points by ascending x.
pub(crate) type Line = (String, Vec<(f64, f64)>);

/// The chart; both axes begin at zero.
pub(crate) fn chart(title: &str, x: &str, lines: &[Line; 2]) -> String {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let most = |values: Vec<f64>| values.into_iter().fold(1e-9, f64::max);
    let most_x = most(points().map(|point| point.0).collect());
    let most_y = most(points().map(|point| point.1).collect()) * 1.05;
    let (left, right, top, bottom) = MARGINS;
    let across = |value: f64| left + value / most_x * (WIDTH - left - right);
    let up = |value: f64| HEIGHT - bottom - value / most_y * (HEIGHT - top - bottom);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text x=\"{left}\" y=\"18\">{title}</text>\n"
    );
    let mut add = |part: String| writeln!(svg, "{part}").expect("memory does not fail");
    for mark in marks(most_y) {
        let y = up(mark);
        add(format!("<path class=\"grid\" d=\"M{left} {y:.1}H{:.1}\"/>", WIDTH - right));
        add(format!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>",
            left - 6.0,
            y + 4.0
        ));
    }
    for mark in marks(most_x) {
        let (x, y) = (across(mark), HEIGHT - bottom + 16.0);
        add(format!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{mark}</text>"));
    }
    let base = HEIGHT - bottom;
    add(format!("<path class=\"axis\" d=\"M{left} {base}H{}\"/>", WIDTH - right));
    let (x_at, y_at) = (WIDTH - right, HEIGHT - 4.0);
    add(format!("<text x=\"{x_at}\" y=\"{y_at}\" text-anchor=\"end\">{x}</text>"));
    for (number, (label, points)) in lines.iter().enumerate() {
        let places = points.iter().map(|(x, y)| format!("{:.1},{:.1}", across(*x), up(*y)));
        let places: Vec<String> = places.collect();
        add(format!("<polyline class=\"line line-{number}\" points=\"{}\"/>", places.join(" ")));
        // The legend stands at the right of the title.
        let x = WIDTH - right - 130.0 * (2 - number) as f64;
        add(format!("<path class=\"line line-{number}\" d=\"M{x} 14h26\"/>"));
        add(format!("<text x=\"{}\" y=\"18\">{label}</text>", x + 32.0));
    }
    svg + "</svg>\n"
}

/// Round numbers from zero to `most`.
fn marks(most: f64) -> Vec<f64> {
    let rough = most / MARKS;
    let power = libm::pow(10.0, libm::log10(rough).floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
    (0..).map(|count| f64::from(count) * step).take_while(|mark| *mark <= most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_cover_the_axis() {
        assert_eq!(marks(23.0), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(marks(60.0), [0.0, 20.0, 40.0, 60.0]);
    }

    #[test]
    fn a_point_stands_where_its_values_say() {
        let line = |label: &str, points: &[(f64, f64)]| (label.to_owned(), points.to_vec());
        let svg = chart("t", "s", &[line("a", &[(0.0, 0.0), (10.0, 20.0)]), line("b", &[])]);
        // From the corner to the right end, and a twentieth below the top.
        assert!(svg.contains("points=\"52.0,196.0 748.0,41.7\""), "{svg}");
    }
}
