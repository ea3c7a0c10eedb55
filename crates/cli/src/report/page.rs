//! The page and the order of its parts.

use std::collections::BTreeMap;

use tidegate_sim::scenario::MOST_OPEN;
use tidegate_study::comparison::Comparison;

use super::Provenance;
use super::figures::{Figure, listed, sources};
use super::markup::{Element, element};
use super::number::{Quantity, count, counted, short};
use super::plot::{self, STYLES, swatch};
use super::summary::{self, Clause, Summary, Verdict};
use super::verdict;
use super::{calls, measured, tables};
use crate::answered::Answered;

const CSS: &str = include_str!("page.css");
/// The number of links and sources named at the head of the page; its end names all.
const MOST_NAMED: usize = 4;

/// The whole file.
pub(super) fn html(answered: &Answered, provenance: &Provenance, figures: &[Figure]) -> String {
    let Answered { said, verdict, live_forms, comparison } = answered;
    let (measured, calls) = (measured::measured(comparison), calls::calls(comparison));
    let contents = [
        Some(("verdict", "Verdict")),
        measured.is_some().then_some(("measured", "Measured")),
        calls.is_some().then_some(("calls", "Calls")),
        Some(("figures", "Figures")),
        Some(("main-figures", "Numbers")),
        Some(("summary", "In words")),
        Some(("tables", "Tables")),
        Some(("reproduce", "How to reproduce")),
    ];
    let contents: Vec<_> = contents.into_iter().flatten().collect();
    let header = header(
        &comparison.title,
        &comparison.description,
        [],
        notices(
            comparison.partial.then(|| comparison.disciplines.iter().map(|it| it.runs).sum()),
            comparison.seeds.len(),
            comparison.disciplines.len(),
            "disciplines",
            verdict.parts > 0,
        )
        .chain(crowded(comparison.waited)),
        &contents,
    );
    let sizes = |text: &str| {
        let size = |bytes: u64| short(Quantity::Size, bytes as f64);
        text.replace("SHORT", &size(comparison.short_flow_bytes))
            .replace("LONG", &size(comparison.long_flow_bytes))
    };
    let definitions = DEFINITIONS.iter().filter(|(word, _)| {
        // One run has none.
        *word != INTERVAL || comparison.seeds.len() > 1
    });
    let definitions = definitions.map(|(word, meaning)| (word.to_string(), sizes(meaning)));
    let (verdict, mentions) = verdict::verdict(said, verdict, "seed by seed", live_forms, figures);
    let ran = [network(provenance), runs(comparison)].map(|it| paragraph(it).class("ran"));
    let main = element("main")
        .child(verdict.children(ran))
        .children(measured)
        .children(calls)
        .child(all_figures(figures, &mentions))
        .child(main_table("Numbers", tables::main(comparison)))
        .child(summary(comparison))
        .child(all_tables("Tables behind the figures", tables::detailed(comparison)))
        .child(reproduction(&comparison.seeds, provenance, "Scenario file", definitions));
    document(&comparison.title, element("body").child(header).child(main))
}

/// A file with this `body` that needs no other files.
pub(super) fn document(title: &str, body: Element) -> String {
    let head = element("head")
        .child(element("meta").with("charset", "utf-8"))
        .child(
            element("meta")
                .with("name", "viewport")
                .with("content", "width=device-width, initial-scale=1"),
        )
        .child(element("meta").with("name", "color-scheme").with("content", "light dark"))
        .child(element("title").text(title))
        .child(element("style").text(style_sheet()));
    let page = element("html").with("lang", "en").child(head).child(body);
    format!("<!DOCTYPE html>\n{page}\n")
}

fn style_sheet() -> String {
    format!(
        ":root {{ {} }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n\
         {}{CSS}",
        plot::colours(false),
        plot::colours(true),
        plot::style_sheet()
    )
}

pub(super) fn paragraph(text: impl Into<String>) -> Element {
    element("p").text(text)
}

pub(super) fn section(id: &str, heading: &str) -> Element {
    element("section").with("id", id).child(element("h2").text(heading))
}

/// A section that begins with its finding.
pub(super) fn finding(id: &str, kind: &str, finding: Element) -> Element {
    let kind = element("span").class("kind").text(format!("{kind}: "));
    let heading = element("h2").class("headline").child(kind).child(finding);
    element("section").with("id", id).child(heading)
}

/// What may be wider than the window scrolls by itself, by keyboard too, and says its name
/// when the keyboard gets there.
pub(super) fn scrolling(name: &str, content: Element) -> Element {
    let scroll = element("div").class("scroll").with("tabindex", 0);
    scroll.with("role", "group").with("aria-label", name).child(content)
}

/// Lines to type or to keep.
pub(super) fn listing(name: &str, text: &str) -> Element {
    scrolling(name, element("pre").text(text))
}

pub(super) fn link(to: &str, text: &str) -> Element {
    element("a").with("href", format!("#{to}")).text(text)
}

/// The head of the page: its subject, what to know before reading on, and the contents.
pub(super) fn header(
    title: &str,
    description: &str,
    ran: impl IntoIterator<Item = String>,
    notices: impl IntoIterator<Item = Element>,
    contents: &[(&str, &str)],
) -> Element {
    let description = Some(description.trim()).filter(|text| !text.is_empty());
    element("header")
        .child(element("h1").text(title))
        .children(description.map(paragraph))
        .children(ran.into_iter().map(|line| paragraph(line).class("ran")))
        .children(notices)
        .child(
            element("nav")
                .with("aria-label", "Contents")
                .children(contents.iter().map(|(id, text)| link(id, text))),
        )
}

pub(super) fn notice(lead: &str, text: String) -> Element {
    let lead = element("strong").text(lead);
    element("p").class("notice").with("role", "note").child(lead).text(text)
}

/// What to know when transfers had to wait for a place.
fn crowded(waited: u64) -> Option<Element> {
    let text = || {
        format!(
            "{} of all runs did not begin at the time that the scenario says, because {} others \
             were open. Response times are counted from that time. The links cannot carry what \
             they are asked to.",
            counted(waited, "transfer", "transfers"),
            count(MOST_OPEN.into()),
        )
    };
    (waited > 0).then(|| notice("Too many at once. ", text()))
}

/// What to know before reading on: how many runs of a `partial` comparison have
/// results, and what a single seed, or a recording in parts, and more lines than colours
/// mean.
pub(super) fn notices(
    partial: Option<usize>,
    seeds: usize,
    lines: usize,
    compared: &str,
    in_parts: bool,
) -> impl Iterator<Item = Element> {
    let incomplete = partial.map(|runs| {
        let text = format!(
            "The comparison was interrupted: it has results of {} of at least {}, and the last of \
             these may have been cut short. Take the numbers as a first impression.",
            count(runs as u64),
            counted((lines * seeds) as u64, "run", "runs"),
        );
        notice("Incomplete. ", text)
    });
    let recording = in_parts.then(|| {
        let text = "It runs once, so that figures and tables have no intervals. The verdict \
                    compares equal parts of it: it is about this traffic, and about other hours \
                    as far as they are like these.";
        notice("One recording. ", text.into())
    });
    let single = (seeds == 1 && !in_parts).then(|| {
        let text = "There are no confidence intervals, so nothing below says whether a difference \
                    would persist with other arrivals.";
        notice("One run of each. ", text.into())
    });
    let crowded = (lines > STYLES).then(|| {
        let text = format!(
            "Colours repeat after {STYLES} {compared}, with other dashes and markers; compare \
             fewer at a time for figures that are easy to read."
        );
        notice("Crowded. ", text)
    });
    incomplete.into_iter().chain(recording).chain(single).chain(crowded)
}

/// The links and the traffic, in a line.
pub(super) fn network(provenance: &Provenance) -> String {
    let some = |all: &[String]| {
        let mut named: Vec<String> = all.iter().take(MOST_NAMED).cloned().collect();
        if all.len() > MOST_NAMED {
            named.push(format!("and {} more", all.len() - MOST_NAMED));
        }
        named.join("; ")
    };
    match (&provenance.links[..], &provenance.traffic[..]) {
        ([], []) => String::new(),
        (links, []) => format!("Links: {}.", some(links)),
        ([], traffic) => format!("Traffic: {}.", some(traffic)),
        (links, traffic) => format!("Links: {}. Traffic: {}.", some(links), some(traffic)),
    }
}

/// The disciplines, the time and the seeds, in a line.
fn runs(comparison: &Comparison) -> String {
    let names: Vec<_> = comparison.disciplines.iter().map(|d| d.label.as_str()).collect();
    ran(
        comparison.seeds.len(),
        [comparison.duration_s, comparison.warm_up_s],
        &names,
        ["discipline", "disciplines"],
    )
}

/// The number and duration of the runs that each of `names` had.
pub(super) fn ran<T: AsRef<str>>(
    seeds: usize,
    [duration_s, warm_up_s]: [f64; 2],
    names: &[T],
    [singular, plural]: [&str; 2],
) -> String {
    let warm_up = match warm_up_s {
        0.0 => String::new(),
        warm_up => format!(" (the first {} not counted)", short(Quantity::Time, warm_up)),
    };
    format!(
        "{} of {}{warm_up} for each of {}: {}.",
        counted(seeds as u64, "run", "runs"),
        short(Quantity::Time, duration_s),
        counted(names.len() as u64, singular, plural),
        listed(names),
    )
}

fn summary(comparison: &Comparison) -> Element {
    let summaries = summary::of(comparison);
    let Some(baseline) = summaries.first() else {
        return section("summary", "In words").child(paragraph("No run finished."));
    };
    let intro = if summaries.len() > 1 && comparison.seeds.len() == 1 {
        format!(
            "What users see beside {}, in one run: numbers without a claim, since the next run \
             may turn them round.",
            baseline.label
        )
    } else if summaries.len() > 1 {
        format!(
            "What users gain and lose against {}. A gain or loss is stated only where the 95% \
             confidence interval of the difference, seed by seed, lies on one side of zero. \
             Response times and speeds are means over seeds; delays (95th percentiles, below which \
             95 of 100 packets stay) and longest stalls are medians.",
            baseline.label
        )
    } else {
        "There is one discipline only, so there is nothing to compare it with.".into()
    };
    let each = element("details")
        .child(element("summary").text("What each discipline changes"))
        .child(paragraph(intro))
        .child(sentences(&summaries, 0));
    section("summary", "In words").child(each).children(unmeasured(comparison))
}

/// Names the sources without results.
fn unmeasured(comparison: &Comparison) -> Option<Element> {
    let all = sources(comparison, |_| true);
    let measured =
        sources(comparison, |source| source.started > 0 || source.delay.mean_s.is_some());
    let missing: Vec<_> = all
        .iter()
        .filter(|source| !measured.contains(source))
        .map(|(_, name)| format!("‘{name}’"))
        .collect();
    (!missing.is_empty()).then(|| {
        paragraph(format!(
            "No results for {}: the report covers only traffic that began after the warm-up.",
            listed(&missing)
        ))
    })
}

/// A sentence on each; the others are compared with the one at `baseline`.
pub(super) fn sentences(summaries: &[Summary], baseline: usize) -> Element {
    let items = summaries.iter().enumerate().map(|(style, it)| {
        let role = (style == baseline).then(|| element("span").class("role").text("baseline"));
        sentence(style, it, role)
    });
    element("ul").class("summary").children(items)
}

fn sentence(style: usize, summary: &Summary, role: Option<Element>) -> Element {
    let mut text = element("span");
    for (index, Clause { verdict, text: words }) in summary.clauses.iter().enumerate() {
        let class = match verdict {
            Verdict::Gain => "gain",
            Verdict::Loss => "loss",
            Verdict::Same | Verdict::Unclear | Verdict::Told => "",
        };
        let words = if index == 0 { capitalised(words) } else { words.clone() };
        // What is claimed stands out; the numbers behind it do not.
        let claim = words.find(" (").unwrap_or(words.len());
        text = match class {
            "" => text.text(words),
            class => text
                .child(element("strong").class(class).text(&words[..claim]))
                .text(&words[claim..]),
        };
        text = text.text(if index + 1 < summary.clauses.len() { "; " } else { "." });
    }
    let name = element("span").class("name").child(swatch(style)).text(summary.label.clone());
    let name = name.children(role);
    element("li").child(name).text(" ").child(text)
}

pub(super) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

pub(super) fn main_table(heading: &str, table: Element) -> Element {
    section("main-figures", heading).child(table)
}

/// The sentences that speak of figures, and where each figure is first spoken of.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    sentences: usize,
    /// The id of the sentence, by the id of the figure.
    first: BTreeMap<String, String>,
}

impl Mentions {
    /// The sentence with links to the figures at the places `about`, which link back.
    pub(super) fn said(
        &mut self,
        sentence: Element,
        about: &[usize],
        figures: &[Figure],
    ) -> Element {
        if about.is_empty() {
            return sentence;
        }
        self.sentences += 1;
        let id = format!("said-{}", self.sentences);
        for place in about {
            self.first.entry(figures[*place].id.clone()).or_insert_with(|| id.clone());
        }
        let links = about.iter().enumerate().flat_map(|(index, place)| {
            let before = if index == 0 { " " } else { ", " };
            let text = format!("Figure\u{a0}{}", place + 1);
            [element("span").text(before), link(&figures[*place].anchor(), &text)]
        });
        sentence.with("id", &id).children(links)
    }
}

/// All figures, each with a link to where it was first spoken of.
pub(super) fn all_figures(figures: &[Figure], mentions: &Mentions) -> Element {
    let numbered = (1..).zip(figures);
    let draw = |(number, it): (_, &Figure)| figure(number, it, mentions.first.get(&it.id));
    section("figures", "Figures").children(numbered.map(draw))
}

/// A figure under its number, with links to its numbers and to the sentence `said`.
pub(super) fn figure(number: usize, figure: &Figure, said: Option<&String>) -> Element {
    let plot = match &figure.plot {
        Ok(drawing) => {
            scrolling(&figure.title, drawing.inline(&figure.id, &figure.title, &figure.description))
        }
        Err(reason) => paragraph(format!("Nothing to draw: {reason}")).class("gap"),
    };
    let numbers = figure.table.filter(|_| figure.plot.is_ok());
    let numbers = numbers.map(|table| link(table, "Numbers"));
    let said = said.map(|id| link(id, "What it shows"));
    let links = numbers.into_iter().chain(said).enumerate().flat_map(|(index, link)| {
        let before = if index == 0 { " " } else { ", " };
        [element("span").text(before), link]
    });
    let caption = element("figcaption").text(figure.caption.clone()).children(links);
    element("figure")
        .with("id", figure.anchor())
        .child(element("h3").text(format!("{number}. {}", figure.title)))
        .child(plot)
        .child(caption)
}

pub(super) fn all_tables(heading: &str, tables: Vec<tables::Table>) -> Element {
    let fold = |table: tables::Table| {
        element("details").child(element("summary").text(table.name)).child(table.html())
    };
    section("tables", heading).children(tables.into_iter().map(fold))
}

/// What only several runs have.
const INTERVAL: &str = "Interval";

/// What the words of this report mean.
const DEFINITIONS: [(&str, &str); 13] = [
    (
        "Response time",
        "From the first packet of a transfer (with TCP, the SYN) until its last byte has reached \
         the receiver. Only finished transfers have one.",
    ),
    (
        "Finished",
        "All data delivered, and with TCP both directions closed, before the end of the run. \
         Transfers that began during the warm-up are left out.",
    ),
    ("Short and long", "Short transfers have at most SHORT, long ones at least LONG or no end."),
    (
        "Slowdown",
        "Response time divided by the response time that a transfer of the same size has when it \
         is alone on the links.",
    ),
    (
        "Delay",
        "One-way time from sending to arrival, for packets of calls and replays. Lost packets \
         have none.",
    ),
    (
        "Loss",
        "Packets lost at a link, divided by the packets that arrived there. Refused packets were \
         lost on arrival at a full buffer; pushed-out packets were queued and had to make room \
         for another. Packets dropped early were lost although there was room, to tell their \
         senders of congestion; a marked packet carries the same message and is not lost.",
    ),
    (
        "Throughput",
        "Payload that all flows of a source delivered to their receivers, divided by the time of \
         the run. The ratio of two sources is taken run by run; a source that carried next to \
         nothing counts as one full segment.",
    ),
    (
        "Goodput",
        "Payload delivered in order, divided by the duration of the flow, without headers and \
         retransmissions.",
    ),
    (
        "Longest stall",
        "The longest time in which no new byte of a long flow reached its receiver; each run \
         counts the longest of all its long flows.",
    ),
    (
        "Fairness",
        "Jain's index over the goodputs of long flows: 1 when all are equal, 1/n when one of n \
         has everything.",
    ),
    (
        "Utilisation",
        "Bytes sent, divided by the bytes that the link could have sent in that time. For a \
         wireless link, the airtime: the share of the time in which the medium was busy with the \
         link's frames, including acknowledgements and repetitions.",
    ),
    ("Flows tracked", "Flows for which the discipline keeps state at a given moment."),
    (
        INTERVAL,
        "95% confidence interval over seeds: of a mean by Student's distribution; of a median \
         between two values of runs, which holds whatever their distribution and needs six seeds. \
         Quantiles, largest values and ratios have medians, since one run can carry their mean \
         anywhere. Every discipline meets the same arrivals with the same seed, so \
         differences are taken seed by seed.",
    ),
];

/// How to obtain the same numbers, with the file whose title is `file`, and what words mean.
pub(super) fn reproduction(
    seeds: &[u64],
    provenance: &Provenance,
    file: &str,
    definitions: impl IntoIterator<Item = (String, String)>,
) -> Element {
    let several = seeds.len() > 1;
    let seeds: Vec<_> = seeds.iter().filter(|_| several).map(u64::to_string).collect();
    let mut facts = vec![
        ("Program".to_string(), provenance.version.clone()),
        ("Seeds".into(), seeds.join(", ")),
    ];
    let each = |name: &str, values: &[String]| {
        values.iter().map(|value| (name.to_string(), value.clone())).collect::<Vec<_>>()
    };
    facts.extend(each("Link", &provenance.links));
    facts.extend(each("Traffic", &provenance.traffic));
    let disciplines = provenance.disciplines.iter();
    facts.extend(disciplines.map(|(label, parameters)| {
        let parameters = if parameters.is_empty() { "no parameters" } else { parameters };
        (format!("Discipline {label}"), parameters.to_string())
    }));
    facts.extend(provenance.other.iter().map(|(name, value)| (capitalised(name), value.clone())));
    facts.extend(provenance.files.iter().map(|(name, what)| (name.clone(), what.clone())));
    facts.retain(|(_, value)| !value.is_empty());
    let command = (!provenance.command.is_empty()).then(|| listing("Command", &provenance.command));
    let scenario = (!provenance.scenario.is_empty()).then(|| {
        element("details")
            .child(element("summary").text(file))
            .child(listing(file, &provenance.scenario))
    });
    section("reproduce", "How to reproduce")
        .child(paragraph(if several {
            "The same version, file and seeds give the same numbers on any machine."
        } else {
            "The same version and file give the same numbers on any machine."
        }))
        .children(command)
        .child(list(facts))
        .children(scenario)
        .child(element("h3").text("What the words mean"))
        .child(list(definitions))
}

pub(super) fn list(entries: impl IntoIterator<Item = (String, String)>) -> Element {
    entries.into_iter().fold(element("dl"), |list, (name, value)| {
        list.child(element("dt").text(name)).child(element("dd").text(value))
    })
}
