//! The pages of `tidegate serve`: a list of results, and results side by side.
//!
//! Principles. The list says of each what to run, so that most need no report to be
//! opened. Side by side stand the verdicts, the figures of one name, and the numbers by
//! which contenders are judged. Two results are of different scenarios or times, so their
//! runs are not paired: a difference is stated only where the two 95% intervals have
//! nothing in common, which is stricter than a test of the difference would be.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate_study::comparison::{ClassResult, LinkResult, TrafficResult};
use tidegate_study::measure::{Better, Measure, Quantity};
use tidegate_study::requests::{Class, Way};
use tidegate_study::{Centre, Estimate};

use super::markup::{Element, element};
use super::number::{Units, counted, short, significant, value_and_interval};
use super::page::{document, header, paragraph, section};
use super::tables::{Table, cell, column};
use crate::kept::{Kept, Number, PLOTS};

/// The path of all results.
pub(crate) const RUNS: &str = "/runs/";
/// Where those that are chosen stand side by side.
const BESIDE: &str = "/beside";
/// The name of a chosen result in the address.
const CHOSEN: &str = "run";
/// Characters of a name that an address keeps as they are (RFC 3986 section 2.3).
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const NOTHING: &str = "–";

fn address(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// The path of the report called `name`, without the first slash.
pub(crate) fn report(name: &str) -> String {
    format!("{}{}/{}", &RUNS[1..], address(name), super::NAME)
}

/// How an address says that the result called `name` is chosen.
pub(crate) fn chosen(name: &str) -> String {
    format!("{CHOSEN}={}", address(name))
}

/// All results of a `folder`, as they are `now`.
pub(crate) fn list(folder: &str, all: &[Kept], now: SystemTime) -> String {
    let title = format!("Results in {folder}");
    let header = header(&title, "", [], [], &[]);
    let names: Vec<_> = all.iter().map(|it| format!("{} {:?}", it.name, it.made)).collect();
    let results = element("div").with("id", "results").with("data-names", names.join("\n"));
    let results = if all.is_empty() {
        results
            .child(paragraph(
                "There are none yet. They appear here as soon as a comparison has ended, for \
                 example this one:",
            ))
            .child(element("pre").text("tidegate compare --down '50 Mbit/s' --up '10 Mbit/s'"))
    } else {
        let columns = ["Choose", "Result", "What to run", "Compared", "Written"];
        let table = Table {
            id: "table-results",
            name: "Results",
            note: "The newest first. Choose two or more to see them side by side.".into(),
            columns: columns.map(column).into(),
            groups: vec![(String::new(), all.iter().map(|it| row(it, now)).collect())],
        };
        let button = element("button").with("type", "submit").text("Set side by side");
        let form = element("form").with("action", BESIDE).with("method", "get");
        results.child(form.child(table.html()).child(button))
    };
    let script = element("script").with("src", "/serve.js").with("defer", "");
    let main = element("main").child(results);
    document(&title, element("body").child(header).child(main).child(script))
}

fn row(kept: &Kept, now: SystemTime) -> Vec<Element> {
    let tick = element("input")
        .with("type", "checkbox")
        .with("name", CHOSEN)
        .with("value", &kept.name)
        .with("aria-label", format!("Choose {}", kept.name));
    let report = element("a").with("href", format!("/{}", report(&kept.name)));
    let incomplete = if kept.partial { ", incomplete" } else { "" };
    let runs = format!(
        "{}, {} of {}{incomplete}",
        kept.contenders.join(", "),
        counted(kept.seeds as u64, "run", "runs"),
        short(Quantity::Time, kept.duration_s),
    );
    let words = |text: String| element("td").class("words").text(text);
    vec![
        element("td").child(tick),
        element("th")
            .with("scope", "row")
            .child(report.text(kept.title.clone()))
            .text(" ")
            .child(element("small").text(kept.name.clone())),
        words(kept.headline.clone().unwrap_or(NOTHING.into())),
        words(runs),
        cell(ago(now.duration_since(kept.made).unwrap_or_default())),
    ]
}

/// How long ago something was, in words.
fn ago(time: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let ago = |number, one, many| format!("{} ago", counted(number, one, many));
    match time.as_secs() {
        0..MINUTE => "just now".into(),
        seconds @ MINUTE..HOUR => ago(seconds / MINUTE, "minute", "minutes"),
        seconds @ HOUR..DAY => ago(seconds / HOUR, "hour", "hours"),
        seconds => ago(seconds / DAY, "day", "days"),
    }
}

/// These results side by side.
pub(crate) fn beside(chosen: &[&Kept]) -> String {
    let title = "Side by side";
    let contents = [("verdicts", "Verdicts"), ("figures", "Figures"), ("numbers", "Numbers")];
    let back = paragraph("").child(element("a").with("href", "/").text("All results"));
    let body = element("body");
    let body = if chosen.len() < 2 {
        let text = "Fewer than two results are chosen, so there is nothing to set side by side.";
        body.child(header(title, text, [], [], &[])).child(element("main").child(back))
    } else {
        let main = element("main")
            .child(verdicts(chosen).child(back))
            .child(figures(chosen))
            .child(section("numbers", "Numbers").child(numbers(chosen).html()));
        body.child(header(title, "", [], [], &contents)).child(main)
    };
    document(title, body)
}

fn verdicts(chosen: &[&Kept]) -> Element {
    let each = chosen.iter().map(|kept| {
        let report = element("a").with("href", format!("/{}", report(&kept.name)));
        let said = kept.headline.clone().map(|it| paragraph(it).class("headline"));
        element("div")
            .child(element("h3").child(report.text(kept.title.clone())))
            .child(paragraph(kept.name.clone()).class("ran"))
            .children(said)
            .children(kept.grade.clone().map(paragraph))
    });
    section("verdicts", "Verdicts").child(element("div").class("beside").children(each))
}

/// The figures that at least two of them have.
fn figures(chosen: &[&Kept]) -> Element {
    let own: Vec<_> = chosen.iter().map(|it| it.figures()).collect();
    let names: BTreeSet<_> = own.iter().flatten().collect();
    let shared =
        names.into_iter().filter(|name| own.iter().filter(|it| it.contains(*name)).count() > 1);
    let figure = |name: &String| {
        let has = chosen.iter().zip(&own).filter(|(_, own)| own.contains(name));
        let has: Vec<_> = has.map(|(kept, _)| *kept).collect();
        let words = has.iter().map(|it| it.figure_in_words(name).unwrap_or_default());
        let words: Vec<[String; 2]> = words.collect();
        let title = words.iter().map(|[title, _]| title).find(|it| !it.is_empty());
        let title = title.unwrap_or(name);
        let drawings = has.iter().zip(&words).map(|(kept, [_, description])| {
            let source = format!("{RUNS}{}/{PLOTS}/{}.svg", address(&kept.name), address(name));
            let image = element("img")
                .class("plot")
                .with("src", &source)
                .with("loading", "lazy")
                .with("alt", format!("{title}: {}", kept.name))
                .with("title", description);
            element("figure")
                .child(element("a").with("href", source).child(image))
                .child(element("figcaption").text(kept.name.clone()))
        });
        element("div")
            .child(element("h3").text(title.clone()))
            .child(element("div").class("beside").children(drawings))
    };
    let all: Vec<_> = shared.map(figure).collect();
    let none = all.is_empty().then(|| paragraph("They have no figure in common."));
    section("figures", "Figures").children(none).children(all)
}

/// What a number of a file measures.
#[derive(Clone, Copy)]
struct Measured {
    headline: &'static str,
    quantity: Quantity,
    better: Better,
}

/// The measure that judges contenders and is called `name`, whatever it is a measure of.
fn measured(number: &Number) -> Option<Measured> {
    fn find<R>(measures: &'static [Measure<R>], name: &str) -> Option<Measured> {
        let found = measures.iter().find(|it| it.name == name)?;
        let Measure { quantity, better, .. } = *found;
        Some(Measured { headline: found.headline?, quantity, better })
    }
    let name = number.metric.as_str();
    find(TrafficResult::MEASURES, name)
        .or_else(|| find(ClassResult::MEASURES, name))
        .or_else(|| find(LinkResult::MEASURES, name))
        .or_else(|| find(Way::MEASURES, name))
        .or_else(|| find(Class::MEASURES, name))
}

/// The numbers by which contenders are judged: a group for each subject and measure, a row
/// for each contender, a column for each result.
fn numbers(chosen: &[&Kept]) -> Table {
    let all: Vec<_> = chosen.iter().map(|it| it.numbers()).collect();
    let mut subjects: Vec<(&Number, Measured)> = Vec::new();
    for number in all.iter().flatten() {
        let known = subjects.iter().any(|(it, _)| it.is_about(number));
        if let Some(measured) = measured(number).filter(|_| !known) {
            subjects.push((number, measured));
        }
    }
    let groups = subjects.iter().map(|(subject, measured)| {
        let mut contenders: Vec<&str> = Vec::new();
        for number in all.iter().flatten().filter(|it| it.is_about(subject)) {
            if !contenders.contains(&number.contender.as_str()) {
                contenders.push(&number.contender);
            }
        }
        let rows = contenders.iter().map(|contender| {
            let of = |numbers: &'_ [Number]| {
                numbers
                    .iter()
                    .find(|it| it.is_about(subject) && it.contender == *contender)
                    .cloned()
            };
            let values: Vec<_> = all.iter().map(|it| of(it)).collect();
            let first = values.first().cloned().flatten();
            let cells = values.iter().enumerate().map(|(place, value)| {
                let Some(value) = value else { return cell(NOTHING) };
                let compared = first.as_ref().filter(|_| place > 0);
                value.cell(*measured, compared)
            });
            std::iter::once(element("th").with("scope", "row").text(*contender))
                .chain(cells)
                .collect()
        });
        let place = match &*subject.name {
            "" => subject.kind.clone(),
            name => format!("{} ‘{name}’", subject.kind),
        };
        (format!("{}, {place}", measured.headline), rows.collect())
    });
    let names = chosen.iter().map(|it| it.name.clone());
    Table {
        id: "table-beside",
        name: "Numbers side by side",
        note: "With 95% intervals. ▲ better and ▼ worse than the first column, where the two \
               intervals have nothing in common; without a mark, the difference may be noise."
            .into(),
        columns: std::iter::once(String::new()).chain(names).map(column).collect(),
        groups: groups.collect(),
    }
}

impl Number {
    /// Whether both measure the same.
    fn is_about(&self, other: &Number) -> bool {
        (&self.kind, &self.name, &self.metric) == (&other.kind, &other.name, &other.metric)
    }

    fn interval(&self) -> Option<(f64, f64)> {
        Some((self.low_95?, self.high_95?))
    }

    /// Its cell, with what it is beside the same number of the `first` result.
    fn cell(&self, measured: Measured, first: Option<&Number>) -> Element {
        let unit = measured.quantity.unit(self.value);
        let centre =
            if self.estimate == Centre::Median.name() { Centre::Median } else { Centre::Mean };
        let estimate = Estimate { centre, value: self.value, interval: self.interval(), runs: 0 };
        let (value, interval) = value_and_interval(unit, &estimate);
        let interval = interval.map(|it| element("small").text(format!("\u{a0}{it}")));
        let change = first.and_then(|first| self.change(first, measured.better));
        element("td").text(unit.behind(&value)).children(interval).children(change)
    }

    /// By how much it is certain to differ from `first`.
    fn change(&self, first: &Number, better: Better) -> Option<Element> {
        let (low, high) = self.interval()?;
        let (first_low, first_high) = first.interval()?;
        let apart = low > first_high || high < first_low;
        let part = self.value / first.value - 1.0;
        if !apart || !part.is_finite() {
            return None;
        }
        let (class, name, symbol) = match (better, part > 0.0) {
            (Better::Neither, true) => ("", "more", "+"),
            (Better::Neither, false) => ("", "less", "−"),
            (Better::More, true) | (Better::Less, false) => ("gain", "better", "▲"),
            (Better::More, false) | (Better::Less, true) => ("loss", "worse", "▼"),
        };
        let mark = element("span").with("role", "img").with("aria-label", name).text(symbol);
        let percent = significant(part.abs() * 100.0, 2);
        Some(
            element("span")
                .class(class)
                .text("\u{a0}")
                .child(mark)
                .text(format!("\u{a0}{percent}%")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: f64, low: f64, high: f64) -> Number {
        Number {
            contender: "fifo".into(),
            kind: "traffic".into(),
            name: "web".into(),
            metric: "page_load_mean_s".into(),
            estimate: "mean".into(),
            value,
            low_95: Some(low),
            high_95: Some(high),
        }
    }

    #[test]
    fn only_differences_beyond_both_intervals_are_stated() {
        let first = number(2.0, 1.8, 2.2);
        let change = |other: Number, better| {
            other.change(&first, better).map(|it| it.to_string()).unwrap_or_default()
        };
        assert_eq!(change(number(2.3, 2.1, 2.5), Better::Less), "");
        let worse = change(number(3.0, 2.5, 3.5), Better::Less);
        assert!(worse.contains("worse") && worse.contains("50%"), "{worse}");
        assert!(change(number(3.0, 2.5, 3.5), Better::More).contains("better"));
        assert!(change(number(1.0, 0.9, 1.1), Better::Less).contains("better"));
        assert!(change(number(1.0, 0.9, 1.1), Better::Neither).contains("less"));
    }

    #[test]
    fn every_measure_that_judges_is_found_by_its_name() {
        let found =
            |metric: &str| measured(&Number { metric: metric.into(), ..number(1.0, 1.0, 1.0) });
        assert_eq!(found("page_load_mean_s").map(|it| it.quantity), Some(Quantity::Time));
        assert!(found("started_flows").is_none(), "it judges nobody");
        assert!(found("no_such_measure").is_none());
    }

    #[test]
    fn times_are_told_as_people_tell_them() {
        let told = |seconds| ago(Duration::from_secs(seconds));
        assert_eq!(
            [0, 59, 60, 7_200, 90_000].map(told),
            ["just now", "just now", "1\u{a0}minute ago", "2\u{a0}hours ago", "1\u{a0}day ago"]
        );
    }

    #[test]
    fn a_name_can_have_any_character() {
        assert_eq!(report("a b/ü"), "runs/a%20b%2F%C3%BC/report.html");
    }
}
