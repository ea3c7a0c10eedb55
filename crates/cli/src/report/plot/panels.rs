//! The same axes for each discipline, side by side: for series over time, which
//! would hide each other in one plot.

use super::{
    Area, Axis, Drawing, LEADING, SAMPLE, WIDTH, band, colour, cut, label, marker, path, rule,
    steps,
};
use crate::report::markup::{Element, element};

/// One discipline's part.
#[derive(Clone, Debug)]
pub(in crate::report) struct Panel {
    pub(in crate::report) label: String,
    pub(in crate::report) style: usize,
    /// The series; more than one are drawn alike.
    pub(in crate::report) series: Vec<Vec<(f64, f64)>>,
    /// Lower and upper bound around a point of a single series: (x, from, to).
    pub(in crate::report) band: Vec<(f64, f64, f64)>,
    /// Shown instead of an empty plot.
    pub(in crate::report) remark: Option<String>,
}

/// Panels with the same axes.
#[derive(Clone, Debug)]
pub(in crate::report) struct PanelChart {
    pub(in crate::report) x: Axis,
    pub(in crate::report) y: Axis,
    pub(in crate::report) panels: Vec<Panel>,
    /// Hold each value until the next.
    pub(in crate::report) stepped: bool,
    /// Fill the area under a single series.
    pub(in crate::report) filled: bool,
    /// What all panels are compared with.
    pub(in crate::report) reference: Option<Reference>,
}

/// A line that is the same in each panel.
#[derive(Clone, Debug)]
pub(in crate::report) struct Reference {
    pub(in crate::report) label: String,
    pub(in crate::report) points: Vec<(f64, f64)>,
    /// Hold each value until the next.
    pub(in crate::report) stepped: bool,
}

const COLUMNS: usize = 2;
const HEIGHT: f64 = 104.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 28.0;
const BETWEEN: f64 = 46.0;

impl PanelChart {
    pub(in crate::report) fn draw(&self) -> Drawing {
        let columns = COLUMNS.min(self.panels.len()).max(1);
        let count = self.panels.len();
        let width = (WIDTH - LEFT - RIGHT - BETWEEN * (columns - 1) as f64) / columns as f64;
        let row_height = HEIGHT + LEADING + 14.0;
        let mut content = self.reference.iter().flat_map(key).collect::<Vec<_>>();
        let top = if content.is_empty() { LEADING } else { LEADING * 2.0 };
        let area_of = |index: usize| Area {
            left: LEFT + (width + BETWEEN) * (index % columns) as f64,
            top: top + row_height * (index / columns) as f64,
            width,
            height: HEIGHT,
        };
        for (index, panel) in self.panels.iter().enumerate() {
            let area = area_of(index);
            let lowest_of_its_column = index + columns >= count;
            content.extend(area.x_grid(&self.x, lowest_of_its_column));
            content.extend(area.y_grid(&self.y, index % columns == 0));
            content.push(marker(panel.style, area.left + 5.0, area.top - 11.0));
            content.push(label(
                area.left + 15.0,
                area.top - 6.5,
                "note strong",
                &cut(&panel.label),
            ));
            content.extend(band(panel.style, &panel.band, |it| area.place(&self.x, &self.y, it)));
            content
                .extend(panel.series.iter().flat_map(|series| self.series(&area, panel, series)));
            content.extend(self.reference.iter().map(|it| self.reference(&area, it)));
            if let Some(remark) = &panel.remark {
                let (x, y) = (area.left + area.width / 2.0, area.top + area.height / 2.0 + 4.5);
                content.push(label(x, y, "remark middle", remark));
            }
            content.push(area.frame());
        }
        let rows = count.div_ceil(columns).max(1);
        let all = Area {
            left: LEFT,
            top,
            width: WIDTH - LEFT - RIGHT,
            height: row_height * rows as f64 - LEADING - 14.0,
        };
        content.push(all.x_title(&self.x));
        content.push(all.y_title(&self.y));
        Drawing { height: all.bottom() + 52.0, content }
    }

    /// The range and the mean of each panel, for readers who cannot see the plot.
    pub(in crate::report) fn in_words(&self) -> String {
        let panel = |panel: &Panel| {
            let label = &panel.label;
            if let Some(remark) = &panel.remark {
                return format!("{label}: {remark}");
            }
            let values = || panel.series.iter().flatten().map(|(_, value)| *value);
            let mean = values().sum::<f64>() / values().count().max(1) as f64;
            let (least, most) =
                (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
            let [least, most, mean] = [least, most, mean].map(|it| self.y.in_words(it));
            format!("{label}: {least} to {most}, {mean} on average")
        };
        self.panels.iter().map(panel).collect::<Vec<_>>().join("; ") + "."
    }

    fn reference(&self, area: &Area, reference: &Reference) -> Element {
        let points = reference.points.iter();
        let places: Vec<_> = points.map(|point| area.place(&self.x, &self.y, *point)).collect();
        let places = if reference.stepped { steps(&places) } else { places };
        element("path").class("reference").with("d", path(&places))
    }

    fn series(&self, area: &Area, panel: &Panel, series: &[(f64, f64)]) -> Vec<Element> {
        let places: Vec<_> =
            series.iter().map(|point| area.place(&self.x, &self.y, *point)).collect();
        let places = if self.stepped { steps(&places) } else { places };
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return Vec::new() };
        let class = |kind: &str| format!("{kind} {}", colour(panel.style));
        let line = element("path").class(class("thin")).with("d", path(&places));
        let mut out = Vec::new();
        if self.filled && panel.series.len() == 1 {
            let mut ground = vec![(first.0, area.bottom())];
            ground.extend(&places);
            ground.push((last.0, area.bottom()));
            out.push(element("path").class(class("band")).with("d", path(&ground) + "Z"));
        }
        out.push(line);
        out
    }
}

/// What the line in each panel means.
fn key(reference: &Reference) -> [Element; 2] {
    let y = LEADING / 2.0;
    [
        rule("reference", (LEFT, y), (LEFT + SAMPLE, y)),
        label(LEFT + SAMPLE + 6.0, y + 4.5, "note", &reference.label),
    ]
}
