//! The report of `tidegate sweep`: what to run over the values of one or two keys.
//!
//! Principles. Those of the report on disciplines, whose parts this report uses: the
//! answer first, then figures, each with its numbers in a table, and at the end how to
//! obtain them again. What to run at a point is the verdict on that point, which knows
//! equals; a map never names a winner that the verdict does not name. All maps of a measure
//! share one scale, so that disciplines can be compared by eye.

mod maps;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tidegate_study::sweep::{Found, Sweep, Theme};
use tidegate_study::verdict::{Answer, Verdict};

use super::Provenance;
use super::answer::{self, either};
use super::figures::{self, Figure, listed};
use super::markup::{Element, element};
use super::number::{Units, counted, significant};
use super::page::{self, section};
use super::plot::Fill;
use super::tables::{cell, estimated};

pub(crate) use text::text;

/// Shown where nothing was measured.
const NOTHING: &str = "–";

/// What the words of this report mean.
const DEFINITIONS: [(&str, &str); 3] = [
    (
        "What to run",
        "The verdict of ‘tidegate compare’ at a point: those disciplines that no other one beats \
         by a difference that people notice, seed by seed. Several are equals.",
    ),
    (
        "Point",
        "The scenario with its keys set to one value each. All disciplines meet the same \
         arrivals under the same seed.",
    ),
    (
        "Not measured",
        "The sweep was interrupted before all runs of the point were complete. A point counts \
         only with all its runs.",
    ),
];

/// Writes `report.html` and `plots/*.svg` into `directory`. The measure called `chosen`
/// is shown first.
pub(crate) fn write(
    directory: &Path,
    sweep: &Sweep,
    chosen: &str,
    provenance: &Provenance,
) -> io::Result<()> {
    let winners = maps::winners(sweep);
    let mut figures = vec![winners];
    let themes = shown(sweep, chosen);
    figures.extend(themes.iter().map(|theme| maps::of(sweep, theme)));
    figures::distinct(&mut figures);
    let html = html(sweep, chosen, provenance, &themes, &figures);
    super::write_page(directory, &html, &figures)
}

/// What is drawn: the `chosen` measure, and then all that disciplines are judged by.
fn shown(sweep: &Sweep, chosen: &str) -> Vec<Theme> {
    let mut shown = chosen_of(sweep, chosen);
    let others = sweep.themes().into_iter().filter(|theme| theme.judges);
    let others: Vec<Theme> = others.filter(|theme| !shown.contains(theme)).collect();
    shown.extend(others);
    shown
}

/// The measure called `name`, of the subjects that disciplines are judged by, or of all if
/// it judges none.
fn chosen_of(sweep: &Sweep, name: &str) -> Vec<Theme> {
    let all: Vec<Theme> = sweep.themes().into_iter().filter(|it| it.facts.name == name).collect();
    let judging: Vec<Theme> = all.iter().filter(|it| it.judges).cloned().collect();
    if judging.is_empty() { all } else { judging }
}

fn html(
    sweep: &Sweep,
    chosen: &str,
    provenance: &Provenance,
    themes: &[Theme],
    figures: &[Figure],
) -> String {
    let title = format!("{}: over {}", sweep.title, keys(sweep));
    let missing = sweep.points.iter().filter(|point| point.result.is_none()).count();
    let header = page::header(
        &title,
        &sweep.description,
        [ran(sweep)],
        incomplete(missing, sweep.points.len()).into_iter().chain(page::notices(
            None,
            sweep.seeds.len(),
            sweep.disciplines.len(),
            "disciplines",
            false,
        )),
        &[
            ("verdict", "What to run"),
            ("figures", "Maps"),
            ("others", "Other measures"),
            ("reproduce", "How to reproduce"),
        ],
    );
    let (winners, maps) = figures.split_first().expect("the first one says what to run");
    let verdict = section("verdict", "What to run")
        .child(page::figure(1, winners, None))
        .child(folded("What to run, point by point", verdicts(sweep)));
    let chosen = chosen_of(sweep, chosen);
    let numbered = || (2..).zip(maps.iter().zip(themes));
    let map = |(number, (figure, theme)): (usize, (&Figure, &Theme))| {
        let table = values(sweep, theme);
        element("div").child(page::figure(number, figure, None)).child(folded("Numbers", table))
    };
    let first = numbered().filter(|(_, (_, theme))| chosen.contains(theme)).map(map);
    let mut subjects: BTreeMap<usize, (String, Vec<Element>)> = BTreeMap::new();
    for it @ (number, (_, theme)) in numbered().filter(|(_, (_, it))| !chosen.contains(it)) {
        let subject = subject(theme);
        let known = subjects.iter().find(|(_, (name, _))| *name == subject).map(|(key, _)| *key);
        let group = subjects.entry(known.unwrap_or(number)).or_insert((subject, Vec::new()));
        group.1.push(map(it));
    }
    let others = subjects
        .into_values()
        .map(|(name, maps)| element("details").child(element("summary").text(name)).children(maps));
    let definitions = DEFINITIONS.map(|(word, meaning)| (word.into(), meaning.into()));
    let body = element("main")
        .child(verdict)
        .child(section("figures", "Maps").children(first))
        .child(section("others", "Other measures").children(others))
        .child(page::reproduction(&sweep.seeds, provenance, "Scenario file", definitions));
    page::document(&title, element("body").child(header).child(body))
}

/// `rate and rtt`.
fn keys(sweep: &Sweep) -> String {
    let keys: Vec<_> = sweep.axes.iter().map(|axis| axis.key.as_str()).collect();
    listed(&keys)
}

fn ran(sweep: &Sweep) -> String {
    format!(
        "{} with {} each; disciplines: {}.",
        counted(sweep.points.len() as u64, "point", "points"),
        counted(sweep.seeds.len() as u64, "seed", "seeds"),
        listed(&sweep.disciplines)
    )
}

fn incomplete(missing: usize, all: usize) -> Option<Element> {
    let text = || {
        format!(
            "The sweep was interrupted: {missing} of {} have no result, and are drawn with a \
             dashed border.",
            counted(all as u64, "point", "points")
        )
    };
    (missing > 0).then(|| page::notice("Incomplete. ", text()))
}

/// The subject of a map, as a heading.
fn subject(theme: &Theme) -> String {
    let Theme { kind, name, .. } = theme;
    match kind.as_str() {
        "size class" => format!("Transfers: {name}"),
        "link" => format!("Link ‘{name}’"),
        _ => format!("‘{name}’"),
    }
}

/// The title of a map.
fn title(theme: &Theme) -> String {
    let measure = theme.facts.headline.unwrap_or(theme.facts.name);
    format!("{measure} – {}", subject(theme))
}

/// What to run at a point, in short. Points that say the same have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Advice {
    /// In words.
    text: String,
    /// A sign for everything but a gain, which has a letter.
    sign: Option<&'static str>,
    /// The first of those to run.
    run: Option<String>,
}

impl Advice {
    fn of(found: Option<&Found>) -> Advice {
        let plain = |sign, text: String| Advice { text, sign: Some(sign), run: None };
        let Some(Found { verdict, .. }) = found else {
            return plain(NOTHING, "not measured".into());
        };
        let Verdict { answer, baseline, run, .. } = verdict;
        let baseline = baseline.as_deref().unwrap_or("what there is");
        let worse: Vec<_> = verdict.avoid.iter().map(|it| it.label.as_str()).collect();
        let worse = match &worse[..] {
            [] => String::new(),
            labels => format!(", and worse: {}", listed(labels)),
        };
        let with_tidegate = match &verdict.with_tidegate[..] {
            [] => String::new(),
            labels => format!("; better still, by Tidegate itself: {}", listed(labels)),
        };
        match answer {
            Answer::Run => Advice {
                text: format!("run {} instead of {baseline}{with_tidegate}", either(run)),
                sign: None,
                run: run.first().cloned(),
            },
            Answer::Alike if with_tidegate.is_empty() && verdict.avoid.is_empty() => {
                plain("=", format!("keep {baseline}: no difference that is noticed"))
            }
            Answer::Alike => Advice {
                text: format!("keep {baseline}: none is better{worse}{with_tidegate}"),
                sign: None,
                run: None,
            },
            Answer::NotTheBottleneck => {
                plain("○", format!("keep {baseline}: this link is not the bottleneck"))
            }
            Answer::Unclear => plain("?", "the runs do not say".into()),
            Answer::TooFewRuns => plain("?", "one seed does not say".into()),
            Answer::OneOnly => plain("1", "there is one discipline only".into()),
            Answer::DoesNotReact => plain("×", "recorded packets do not react".into()),
            Answer::NothingMeasured => {
                plain("×", "nothing was measured that anybody waits for".into())
            }
        }
    }
}

/// The advice at each point, and each different one with its sign, as they first appear.
fn advice(sweep: &Sweep) -> (Vec<String>, Vec<(String, Advice)>) {
    let mut known: Vec<(String, Advice)> = Vec::new();
    let mut letters = (1..).map(letter);
    let signs = sweep.points.iter().map(|point| {
        let advice = Advice::of(point.result.as_ref());
        if let Some((sign, _)) = known.iter().find(|(_, other)| *other == advice) {
            return sign.clone();
        }
        let sign = match advice.sign {
            Some(sign) => sign.to_string(),
            None => letters.next().expect("letters do not end"),
        };
        known.push((sign.clone(), advice));
        sign
    });
    let signs = signs.collect();
    (signs, known)
}

/// `A` to `Z`, then `AA`.
fn letter(mut number: usize) -> String {
    let mut text = Vec::new();
    while number > 0 {
        number -= 1;
        text.insert(0, char::from(b'A' + (number % 26) as u8));
        number /= 26;
    }
    text.into_iter().collect()
}

/// The colour of an advice.
fn fill(sweep: &Sweep, advice: &Advice) -> Fill {
    let style =
        advice.run.as_ref().and_then(|run| sweep.disciplines.iter().position(|it| it == run));
    style.map_or(Fill::Plain, Fill::Discipline)
}

fn folded(summary: &str, table: Element) -> Element {
    let table = page::scrolling(summary, table);
    element("details").child(element("summary").text(summary)).child(table)
}

/// A table with a row for each point, whose first cells are its values.
fn by_point(
    sweep: &Sweep,
    caption: String,
    columns: &[String],
    row: impl Fn(Option<&Found>) -> Vec<Element>,
) -> Element {
    let heads = sweep.axes.iter().map(|axis| &axis.key).chain(columns);
    let heads = heads.map(|text| element("th").with("scope", "col").text(text));
    let rows = sweep.points.iter().map(|point| {
        let at = point.at.iter().map(|text| element("th").with("scope", "row").text(text));
        element("tr").children(at).children(row(point.result.as_ref()))
    });
    element("table")
        .with("aria-label", caption)
        .child(element("thead").child(element("tr").children(heads)))
        .child(element("tbody").children(rows))
}

fn verdicts(sweep: &Sweep) -> Element {
    let columns = ["What to run", "Latency under load", "In words"].map(String::from);
    by_point(sweep, "What to run at each point".into(), &columns, |found| {
        let words = |text: String| element("td").class("words").text(text);
        let Some(found) = found else {
            return [NOTHING, NOTHING, "Not measured."].map(|it| words(it.into())).to_vec();
        };
        let said = answer::words(&found.verdict);
        let grade = said.grade.unwrap_or(NOTHING.into());
        [Advice::of(Some(found)).text, grade, said.headline].map(words).to_vec()
    })
}

/// The numbers of a map.
fn values(sweep: &Sweep, theme: &Theme) -> Element {
    by_point(sweep, title(theme), &sweep.disciplines, |found| {
        let value = |place: usize| match found.and_then(|it| it.value(place, theme)) {
            Some(row) => cell(estimated(theme.facts.quantity, row)),
            None => cell(NOTHING),
        };
        (0..sweep.disciplines.len()).map(value).collect()
    })
}

/// Every value of a map in one unit, with that unit.
fn in_one_unit(sweep: &Sweep, theme: &Theme) -> super::number::Unit {
    theme.facts.quantity.unit_for(all_values(sweep, theme))
}

/// All values of a map.
fn all_values(sweep: &Sweep, theme: &Theme) -> Vec<f64> {
    let found = sweep.points.iter().filter_map(|point| point.result.as_ref());
    let of_point = |found: &Found| -> Vec<f64> {
        let values = (0..sweep.disciplines.len()).filter_map(|it| found.value(it, theme));
        values.map(|row| row.value).collect()
    };
    found.flat_map(of_point).collect()
}

/// A number in a cell.
fn brief(value: f64) -> String {
    significant(value, 3)
}
