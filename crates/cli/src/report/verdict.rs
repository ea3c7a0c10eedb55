//! The head of the report: the verdict in words, who wins what, and the lines to type.

use std::collections::BTreeSet;

use tidegate_study::measure::Quantity;
use tidegate_study::verdict::{
    Answer, Contest, ContestResult, Effect, Grade, Latency, Need, Verdict,
};

use super::answer::{self, Words};
use super::figures::Figure;
use super::markup::{Element, element};
use super::number::{Unit, Units, brief, short};
use super::page::{self, Mentions, link, paragraph};
use super::tables::{Table, cell, column, row_name};
use crate::live_form::{self, LiveForm};

/// Shown where nothing was measured.
const NOTHING: &str = "–";

/// The section, and where it first speaks of each figure; `by` says what is compared with
/// what, such as `seed by seed`.
pub(super) fn verdict(
    words: &Words,
    verdict: &Verdict,
    by: &str,
    forms: &[LiveForm],
    figures: &[Figure],
) -> (Element, Mentions) {
    let mut mentions = Mentions::default();
    let mut said = |sentence: Element, about: &[usize]| mentions.said(sentence, about, figures);
    let mut points = Vec::new();
    for point in &words.points {
        let (class, name) = effect(point.effect);
        let mark = mark(name, symbol(point.effect));
        // What is claimed stands out; the numbers behind it do not.
        let claim = point.text.find(" (").unwrap_or(point.text.len());
        let sentence = element("li")
            .child(mark)
            .child(element("span").class(class).text(&point.text[..claim]))
            .text(&point.text[claim..]);
        points.push(said(sentence, &figures_of(&point.about, figures)));
    }
    let points = (!points.is_empty()).then(|| element("ul").class("points").children(points));
    let mut asides = Vec::new();
    if let Some(grade) = &words.grade {
        asides.push(said(paragraph(grade), &figures_of_delay(figures)));
    }
    for aside in &words.asides {
        asides.push(said(paragraph(&aside.text), &figures_of(&aside.about, figures)));
    }
    let matrix = (!verdict.contests.is_empty() && verdict.latency.len() > 1)
        .then(|| matrix(verdict, by, figures).html());
    let section = page::finding("verdict", "Verdict", element("span").text(&words.headline))
        .children(points)
        .children(asides)
        .children(matrix)
        .children(to_type(forms));
    (section, mentions)
}

/// Who wins what: a row for each discipline, a column for each need.
fn matrix(verdict: &Verdict, by: &str, figures: &[Figure]) -> Table {
    let head = |contest: &Contest| {
        let text = match unit(contest).name {
            "" => heading(contest),
            name => format!("{} ({name})", heading(contest)),
        };
        let heading = element("th").with("scope", "col");
        match figure_of(contest.need, &contest.source, figures) {
            Some(place) => heading.child(link(&figures[place].anchor(), &text)),
            None => heading.text(text),
        }
    };
    let graded = verdict.latency.iter().any(|it| it.grade.is_some());
    let columns = std::iter::once(column(""))
        .chain(graded.then(|| column("Latency under load")))
        .chain(verdict.contests.iter().map(head));
    let row = |(place, latency): (usize, &Latency)| {
        let results = verdict.contests.iter().map(|it| result(unit(it), &it.results[place]));
        std::iter::once(row_name(place, &latency.label))
            .chain(graded.then(|| grade(latency)))
            .chain(results)
            .collect()
    };
    let scale = Grade::SCALE.iter().map(|(grade, below)| match below {
        below if below.is_finite() => format!("{grade} below {}", short(Quantity::Time, *below)),
        _ => format!("{grade} else"),
    });
    let scale: Vec<_> = scale.collect();
    let baseline = verdict.baseline.as_deref().unwrap_or(NOTHING);
    let over = match verdict.parts {
        0 if verdict.answer == Answer::TooFewRuns => "over several runs".into(),
        0 => by.into(),
        parts => format!("over {parts} equal parts of the recording"),
    };
    Table {
        id: "table-verdict",
        name: "Who wins what",
        note: format!(
            "Who wins what, beside {baseline}. ▲ better, ▼ worse and = alike are certain {over} \
             (95% intervals of the differences), ? is not. ★ marks those that nobody beats \
             by as much as anybody notices: 2 points of a call’s rating, a tenth of a time or \
             speed. Grades are of the delay that load adds: {}.",
            scale.join(", ")
        ),
        columns: columns.collect(),
        groups: vec![(String::new(), verdict.latency.iter().enumerate().map(row).collect())],
    }
}

fn heading(contest: &Contest) -> String {
    let source = &contest.source;
    match contest.need {
        Need::Call => "Worst call, R of 100".into(),
        Need::Reaction => "Delay, slowest stream".into(),
        Need::Delay => format!("Delay of ‘{source}’"),
        Need::VideoStalls => format!("Stalls of ‘{source}’"),
        Need::CallRate => format!("Rate of ‘{source}’"),
        Need::VideoQuality => format!("Quality of ‘{source}’"),
        Need::VideoSwitches => format!("Switches of ‘{source}’ a minute"),
        Need::PagesLoaded => format!("Pages of ‘{source}’ that load"),
        Need::Lookups => format!("Lookup of ‘{source}’"),
        Need::Pages => format!("Page of ‘{source}’"),
        Need::ShortTransfers => "Short transfer".into(),
        Need::LongTransfers => format!("Speed of ‘{source}’"),
    }
}

fn grade(latency: &Latency) -> Element {
    let (Some(grade), Some(added)) = (latency.grade, latency.added_s) else { return cell(NOTHING) };
    let added = element("small").text(format!("\u{a0}{}", answer::added(added)));
    element("td").child(element("strong").text(grade.name())).child(added)
}

/// One unit for all values of a need.
fn unit(contest: &Contest) -> Unit {
    let values = contest.results.iter().filter_map(|it| it.value);
    contest.need.quantity().unit_for(values)
}

fn result(unit: Unit, result: &ContestResult) -> Element {
    let Some(value) = result.value else { return cell(NOTHING) };
    let best = result.best.then(|| mark("best", "★"));
    let effect = result.effect.map(|it| {
        let (class, name) = effect(it);
        element("span").class(class).child(mark(name, symbol(it)))
    });
    let class = if result.best { "best" } else { "" };
    element("td")
        .class(class)
        .children(best)
        .text(brief(value / unit.factor))
        .text("\u{a0}")
        .children(effect)
}

/// A symbol with its name for those who do not see it.
fn mark(name: &str, symbol: &str) -> Element {
    element("span").class("mark").with("role", "img").with("aria-label", name).text(symbol)
}

fn symbol(effect: Effect) -> &'static str {
    match effect {
        Effect::Gain => "▲",
        Effect::Price => "▼",
        Effect::Same => "=",
        Effect::Unclear => "?",
    }
}

/// The class of its text and its name.
fn effect(effect: Effect) -> (&'static str, &'static str) {
    match effect {
        Effect::Gain => ("gain", "better"),
        Effect::Price => ("loss", "worse"),
        Effect::Same => ("", "alike"),
        Effect::Unclear => ("", "not certain"),
    }
}

/// The place of the figure that shows most of a need.
fn figure_of(need: Need, source: &str, figures: &[Figure]) -> Option<usize> {
    let of = |stem: &str| {
        let id = super::figures::id(stem, source);
        figures.iter().position(move |it| it.id == id)
    };
    let first = |stem: &str| figures.iter().position(|it| it.id.starts_with(stem));
    match need {
        Need::Call | Need::Reaction => first("delay-"),
        Need::Delay | Need::CallRate => of("delay"),
        Need::Lookups => of("lookups"),
        Need::PagesLoaded | Need::Pages => of("pages"),
        Need::ShortTransfers => first("response-by-size"),
        Need::VideoStalls | Need::VideoQuality | Need::VideoSwitches | Need::LongTransfers => {
            of("throughput").or_else(|| first("throughput"))
        }
    }
}

/// The places of the figures on all that a sentence is about, each once.
fn figures_of(about: &[(Need, String)], figures: &[Figure]) -> Vec<usize> {
    let found = about.iter().filter_map(|(need, source)| figure_of(*need, source, figures));
    found.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The places of the figures from which a grade comes: delays, or else queues.
fn figures_of_delay(figures: &[Figure]) -> Vec<usize> {
    let all = |stem: &str| {
        let places = figures.iter().enumerate().filter(|(_, it)| it.id.starts_with(stem));
        places.map(|(place, _)| place).collect::<Vec<_>>()
    };
    [all("delay-percentiles"), all("queue-")]
        .into_iter()
        .find(|it| !it.is_empty())
        .unwrap_or_default()
}

/// The lines to type for each of those to run, the shortest open.
fn to_type(forms: &[LiveForm]) -> Vec<Element> {
    let simplest = live_form::simplest(forms).next();
    let part = |title: &str, lines: &[String]| {
        let listing = || page::listing(title, &lines.join("\n"));
        (!lines.is_empty()).then(|| [element("h3").text(title), listing()])
    };
    let form = |form: &LiveForm| {
        let parts = [
            part("Linux, as root", &form.tc),
            part("OpenWrt, with SQM", &form.sqm),
            part("To undo the lines for Linux", &form.undo),
            part("To undo those for OpenWrt", &form.sqm_undo),
        ];
        let folded = element("details")
            .child(element("summary").text(format!("How to run {}", form.label)))
            .children(form.notes.iter().map(paragraph))
            .children(parts.into_iter().flatten().flatten());
        if Some(form) == simplest { folded.with("open", "") } else { folded }
    };
    forms.iter().map(form).collect()
}
