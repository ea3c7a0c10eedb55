//! A sweep on the terminal: what to run at each point, and the values of one measure.

use std::fmt::Write as _;

use tidegate_study::sweep::{Point, Sweep, Theme};

use super::{Advice, NOTHING, advice, brief, chosen_of, in_one_unit, keys, title};
use crate::output::filled;

/// Sentences are no wider, whatever the terminal.
const PROSE: usize = 100;
/// Between two columns.
const GAP: usize = 2;

/// What to run, and the values of the measure called `chosen`, in lines of at most `width`
/// columns.
pub(crate) fn text(sweep: &Sweep, chosen: &str, width: usize) -> String {
    let state = if sweep.partial() { " (PARTIAL: points are missing)" } else { "" };
    let mut text = format!("{}{state}\n\nWhat to run over {}:\n\n", sweep.title, keys(sweep));
    match &sweep.axes[..] {
        [_, _] => grid(&mut text, sweep, width),
        _ => list(&mut text, sweep, width),
    }
    for theme in &chosen_of(sweep, chosen) {
        let unit = match in_one_unit(sweep, theme).name {
            "" => String::new(),
            name => format!(", in {name}"),
        };
        let _ = writeln!(text, "\n{}{unit}:\n", title(theme));
        values(&mut text, sweep, theme, width);
    }
    let _ =
        writeln!(text, "\nIntervals and the other measures are in the report and in sweep.csv.");
    text
}

/// The letters of what to run, and what they mean: the first key across, the second down.
fn grid(text: &mut String, sweep: &Sweep, width: usize) {
    let (signs, known) = advice(sweep);
    let (across, down) = (&sweep.axes[0], &sweep.axes[1]);
    let corner = format!("{} \\ {}", down.key, across.key);
    let names: Vec<_> = [corner].iter().chain(&down.values).cloned().collect();
    let columns: Vec<Vec<String>> = across
        .values
        .iter()
        .enumerate()
        .map(|(column, value)| {
            let signs = &signs[column * down.values.len()..][..down.values.len()];
            [value].into_iter().chain(signs).cloned().collect()
        })
        .collect();
    table(text, &[names], &columns, width);
    text.push('\n');
    for (sign, advice) in &known {
        text.push_str(&filled(&format!("{sign}  "), &advice.text, width.min(PROSE)));
    }
}

/// What to run at each value of the only key.
fn list(text: &mut String, sweep: &Sweep, width: usize) {
    let names = first_columns(sweep);
    let room = names[0].iter().map(|it| it.chars().count()).max().unwrap_or(0);
    for (name, point) in names[0].iter().skip(1).zip(&sweep.points) {
        let advice = Advice::of(point.result.as_ref());
        text.push_str(&filled(&format!("{name:room$}  "), &advice.text, width.min(PROSE)));
    }
}

/// A row for each point, a column for each discipline.
fn values(text: &mut String, sweep: &Sweep, theme: &Theme, width: usize) {
    let unit = in_one_unit(sweep, theme);
    let column = |(place, label): (usize, &String)| {
        let value = |point: &Point| {
            let row = point.result.as_ref()?.value(place, theme)?;
            Some(brief(row.value / unit.factor))
        };
        let cells = sweep.points.iter().map(|point| value(point).unwrap_or(NOTHING.into()));
        [label.clone()].into_iter().chain(cells).collect()
    };
    let columns: Vec<Vec<String>> = sweep.disciplines.iter().enumerate().map(column).collect();
    table(text, &first_columns(sweep), &columns, width);
}

/// The keys with their values at each point.
fn first_columns(sweep: &Sweep) -> Vec<Vec<String>> {
    let axes = sweep.axes.iter().enumerate();
    axes.map(|(place, axis)| {
        let values = sweep.points.iter().map(|point| point.at[place].clone());
        [axis.key.clone()].into_iter().chain(values).collect()
    })
    .collect()
}

/// Writes the `names` of rows and the columns beside them, in as many blocks as the width
/// takes.
fn table(text: &mut String, names: &[Vec<String>], columns: &[Vec<String>], width: usize) {
    let room =
        |column: &Vec<String>| GAP + column.iter().map(|it| it.chars().count()).max().unwrap_or(0);
    let beside: usize = names.iter().map(room).sum::<usize>() - GAP;
    let mut rest = columns;
    while !rest.is_empty() {
        let mut used = beside;
        let fits = rest.iter().take_while(|column| {
            used += room(column);
            used <= width
        });
        let (block, next) = rest.split_at(fits.count().max(1));
        for row in 0..names[0].len() {
            let mut line = String::new();
            for (place, column) in names.iter().enumerate() {
                let width = room(column) - if place == 0 { GAP } else { 0 };
                let gap = if place == 0 { 0 } else { GAP };
                let _ = write!(line, "{:gap$}{:<left$}", "", column[row], left = width - gap);
            }
            for column in block {
                let _ = write!(line, "{:>width$}", column[row], width = room(column));
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        if !next.is_empty() {
            text.push('\n');
        }
        rest = next;
    }
}
