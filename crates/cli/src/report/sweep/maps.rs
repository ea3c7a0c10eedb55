//! The figures of a sweep: maps over two keys, lines over one key of numbers, and a row of
//! cells over one key of words.

use tidegate_study::sweep::{Scale, Sweep, Theme};

use super::{Figure, advice, all_values, brief, fill, in_one_unit, keys, title};
use crate::report::figures;
use crate::report::number::short;
use crate::report::plot::{
    Axis, Field, Fill, HeatChart, Key, Legend, Line, LineChart, STEPS, Side,
};

/// From this ratio of its ends on, a scale has equal ratios.
const RATIOS_FROM: f64 = 20.0;

/// What to run at each point.
pub(super) fn winners(sweep: &Sweep) -> Figure {
    let (signs, known) = advice(sweep);
    let cells = signs.iter().map(|sign| {
        let (_, advice) = known.iter().find(|(other, _)| other == sign).expect("it is known");
        let measured = advice.sign != Some(super::NOTHING);
        measured.then(|| (fill(sweep, advice), sign.clone()))
    });
    let cells: Vec<_> = cells.collect();
    let (x, y) = sides(sweep);
    let entries = known.iter().filter(|(sign, _)| sign != super::NOTHING);
    let legend: Vec<_> = entries
        .map(|(sign, advice)| (fill(sweep, advice), sign.clone(), advice.text.clone()))
        .collect();
    let told: Vec<_> = known.iter().map(|(sign, it)| format!("{sign}: {}", it.text)).collect();
    let chart = HeatChart {
        x,
        y,
        fields: vec![Field { of: None, cells: in_rows(sweep, &cells) }],
        legend: Legend::Letters(legend),
    };
    Figure {
        id: "what-to-run".into(),
        title: format!("What to run over {}", keys(sweep)),
        caption: "The verdict at each point. A letter names disciplines that nobody beats by as \
                  much as people notice; several are equals. = and ○ stand for no difference, ? \
                  for runs that do not say, and a dashed border for what was not measured."
            .into(),
        description: format!("Letters in a grid. {}.", told.join("; ")),
        table: None,
        plot: Ok(chart.draw()),
    }
}

/// A measure over all points: one field or line for each discipline.
pub(super) fn of(sweep: &Sweep, theme: &Theme) -> Figure {
    let values = all_values(sweep, theme);
    let name = figures::id(&theme.facts.name.replace('_', "-"), &theme.name);
    let scale = match &sweep.axes[..] {
        [axis] => axis.scale().filter(|it| it.values.len() > 1),
        _ => None,
    };
    let (plot, how) = match scale {
        _ if values.is_empty() => (Err("No run has a value.".into()), String::new()),
        Some(scale) => (
            Ok(lines(sweep, theme, &scale).draw()),
            "The bands are 95% confidence intervals over seeds.".to_string(),
        ),
        None => {
            let (chart, ratios) = heat(sweep, theme, &values);
            let steps = if ratios { "equal ratios" } else { "equal differences" };
            (Ok(chart.draw()), format!("All fields share one scale, in steps of {steps}."))
        }
    };
    let ends = |text: &str, value: Option<f64>| {
        value.map(|it| format!("{text} {}", short(theme.facts.quantity, it)))
    };
    let least = ends("from", values.iter().copied().min_by(f64::total_cmp));
    let most = ends("to", values.iter().copied().max_by(f64::total_cmp));
    let range: Vec<_> = least.into_iter().chain(most).collect();
    let better = match theme.facts.better {
        tidegate_study::measure::Better::More => "Higher is better. ",
        tidegate_study::measure::Better::Less => "Lower is better. ",
        tidegate_study::measure::Better::Neither => "",
    };
    Figure {
        id: name,
        title: title(theme),
        caption: format!("{better}{how}"),
        description: format!(
            "Over {}, for each of {}: values {}. The table below has all of them.",
            keys(sweep),
            figures::listed(&sweep.disciplines),
            range.join(" ")
        ),
        table: None,
        plot,
    }
}

/// The keys across and down. The first one is across.
fn sides(sweep: &Sweep) -> (Side, Side) {
    let side = |axis: Option<&tidegate_study::sweep::Axis>| match axis {
        Some(axis) => Side { title: axis.key.clone(), values: axis.values.clone() },
        None => Side { title: String::new(), values: vec![String::new()] },
    };
    (side(sweep.axes.first()), side(sweep.axes.get(1)))
}

/// One cell for each point, row by row of the map. Points have the second key fastest.
fn in_rows<T: Clone>(sweep: &Sweep, cells: &[T]) -> Vec<T> {
    let across = sweep.axes[0].values.len();
    let down = sweep.axes.get(1).map_or(1, |axis| axis.values.len());
    let places = (0..down).flat_map(|row| (0..across).map(move |column| column * down + row));
    places.map(|place| cells[place].clone()).collect()
}

/// A map, and whether its steps are ratios.
fn heat(sweep: &Sweep, theme: &Theme, values: &[f64]) -> (HeatChart, bool) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let ratios = least > 0.0 && most / least >= RATIOS_FROM;
    let along = |value: f64| if ratios { value.ln() } else { value };
    let step = |value: f64| {
        let part = (along(value) - along(least)) / (along(most) - along(least));
        // All alike: the middle.
        let part = if part.is_finite() { part } else { 0.5 };
        ((part * STEPS as f64) as usize).min(STEPS - 1)
    };
    let unit = in_one_unit(sweep, theme);
    let field = |(place, label): (usize, &String)| {
        let cell = |point: &tidegate_study::sweep::Point| {
            let row = point.result.as_ref()?.value(place, theme)?;
            Some((Fill::Step(step(row.value)), brief(row.value / unit.factor)))
        };
        let cells: Vec<_> = sweep.points.iter().map(cell).collect();
        Field { of: Some((place, label.clone())), cells: in_rows(sweep, &cells) }
    };
    let (x, y) = sides(sweep);
    let name = match unit.name {
        "" => "Scale".to_string(),
        unit => format!("Scale ({unit})"),
    };
    let end = |value: f64| brief(value / unit.factor);
    let chart = HeatChart {
        x,
        y,
        fields: sweep.disciplines.iter().enumerate().map(field).collect(),
        legend: Legend::Scale { title: name, low: end(least), high: end(most) },
    };
    (chart, ratios)
}

fn lines(sweep: &Sweep, theme: &Theme, scale: &Scale) -> LineChart {
    let line = |(style, label): (usize, &String)| {
        let at = scale.values.iter().zip(&sweep.points);
        let rows =
            at.filter_map(|(x, point)| Some((*x, point.result.as_ref()?.value(style, theme)?)));
        let rows: Vec<_> = rows.collect();
        let band = rows.iter().map(|(x, row)| {
            let (low, high) = row.interval.unwrap_or((row.value, row.value));
            (*x, low, high)
        });
        Line {
            label: label.clone(),
            style,
            points: rows.iter().map(|(x, row)| (*x, row.value)).collect(),
            band: band.collect(),
        }
    };
    let lines: Vec<Line> = sweep.disciplines.iter().enumerate().map(line).collect();
    let (key, quantity) = (&sweep.axes[0].key, scale.quantity);
    let (first, last) = (scale.values[0], scale.values[scale.values.len() - 1]);
    let x = if first > 0.0 && last / first >= 10.0 {
        Axis::log(key, quantity, scale.values.iter().copied())
    } else {
        Axis::linear(key, quantity, last)
    };
    let values = || lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let most = values().fold(0.0, f64::max);
    // A wide interval ends at the edge rather than pressing everything else down.
    let highs = lines.iter().flat_map(|line| &line.band).map(|(_, _, high)| high.min(most * 1.5));
    let (measure, quantity) =
        (theme.facts.headline.unwrap_or(theme.facts.name), theme.facts.quantity);
    let least = values().fold(f64::INFINITY, f64::min);
    let y = if least > 0.0 && most / least >= RATIOS_FROM {
        Axis::log(measure, quantity, values())
    } else {
        Axis::linear(measure, quantity, highs.fold(most, f64::max)).rounded()
    };
    LineChart { x, y, lines, below: None, key: Key::Above, stepped: false }
}
