//! The same axes for each discipline, side by side: for series over time, which
//! would hide each other in one plot.

use super::{Area, Axis, Drawing, LEADING, WIDTH, colour, cut, label, marker, path, steps};
use crate::report::markup::{Element, element};

/// One discipline's part.
#[derive(Clone, Debug)]
pub(in crate::report) struct Panel {
    pub(in crate::report) label: String,
    pub(in crate::report) style: usize,
    /// The series; more than one are drawn alike.
    pub(in crate::report) series: Vec<Vec<(f64, f64)>>,
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
}

const COLUMNS: usize = 2;
const HEIGHT: f64 = 104.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 20.0;
const BETWEEN: f64 = 28.0;

impl PanelChart {
    pub(in crate::report) fn draw(&self) -> Drawing {
        let columns = COLUMNS.min(self.panels.len()).max(1);
        let count = self.panels.len();
        let width = (WIDTH - LEFT - RIGHT - BETWEEN * (columns - 1) as f64) / columns as f64;
        let row_height = HEIGHT + LEADING + 14.0;
        let area_of = |index: usize| Area {
            left: LEFT + (width + BETWEEN) * (index % columns) as f64,
            top: LEADING + row_height * (index / columns) as f64,
            width,
            height: HEIGHT,
        };
        let mut content = Vec::new();
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
            content
                .extend(panel.series.iter().flat_map(|series| self.series(&area, panel, series)));
            if let Some(remark) = &panel.remark {
                let (x, y) = (area.left + area.width / 2.0, area.top + area.height / 2.0 + 4.5);
                content.push(label(x, y, "remark middle", remark));
            }
            content.push(area.frame());
        }
        let rows = count.div_ceil(columns).max(1);
        let all = Area {
            left: LEFT,
            top: LEADING,
            width: WIDTH - LEFT - RIGHT,
            height: row_height * rows as f64 - LEADING - 14.0,
        };
        content.extend(all.titles(&self.x, &self.y));
        Drawing { height: all.bottom() + 52.0, content }
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
