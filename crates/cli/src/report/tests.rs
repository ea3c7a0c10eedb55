//! The report as a whole: well-formed, self-contained, complete, the same each time.

use std::fs;
use std::path::PathBuf;

use roxmltree::{Document, Node, ParsingOptions};
use tidegate_study::comparison::Comparison;
use tidegate_study::{Centre, Sample};

use super::fixture;
use super::page;
use super::{Provenance, figures};

fn html(comparison: &Comparison, provenance: &Provenance) -> String {
    page::html(&fixture::answered(comparison.clone()), provenance, &figures::all(comparison))
}

pub(super) fn parsed(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn words(node: Node) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

/// A comparison in which nothing was measured.
fn empty() -> Comparison {
    let mut comparison = fixture::comparison(3, 2);
    for discipline in &mut comparison.disciplines {
        for class in
            discipline.classes.iter_mut().chain([&mut discipline.short, &mut discipline.all])
        {
            (class.started, class.completed, class.with_loss) = (0, 0, 0);
            (class.mean_s, class.median_s, class.p95_s, class.slowdown) = (None, None, None, None);
        }
        discipline.response_by_size.clear();
        discipline.short_distribution.clear();
        discipline.traffic.clear();
        discipline.links.clear();
    }
    comparison
}

fn without_disciplines() -> Comparison {
    Comparison { disciplines: Vec::new(), seeds: Vec::new(), ..empty() }
}

#[test]
fn every_report_is_well_formed_and_needs_nothing_else() {
    for comparison in [
        fixture::comparison(5, 10),
        fixture::comparison(8, 1),
        fixture::comparison(1, 2),
        empty(),
        without_disciplines(),
    ] {
        needs_nothing_else(&html(&comparison, &fixture::provenance()));
    }
}

/// That a page is well-formed, fetches nothing and runs nothing.
pub(super) fn needs_nothing_else(html: &str) {
    let page = parsed(html);
    for node in page.descendants().filter(Node::is_element) {
        assert!(!["script", "link", "img", "iframe", "object"].contains(&node.tag_name().name()));
        for attribute in node.attributes() {
            assert!(!["src", "srcset", "data", "onload"].contains(&attribute.name()));
            assert!(!attribute.value().contains("NaN"), "{attribute:?}");
            if attribute.name() == "href" {
                let id = attribute.value().strip_prefix('#').expect("links stay within the page");
                assert!(page.descendants().any(|node| node.attribute("id") == Some(id)), "{id}");
            }
        }
    }
    for reference in ["http:", "https:", "url(", "@import"] {
        assert!(!html.contains(reference), "{reference}");
    }
}

#[test]
fn ids_are_unique_even_when_names_are_not() {
    let mut comparison = fixture::comparison(2, 3);
    for discipline in &mut comparison.disciplines {
        discipline.links[1].tested = true;
        discipline.links[0].name = "to: home".into();
        discipline.links[1].name = "to/ home".into();
    }
    let html = html(&comparison, &fixture::provenance());
    let page = parsed(&html);
    let mut ids: Vec<_> = page.descendants().filter_map(|node| node.attribute("id")).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(ids.contains(&"figure-queue-to--home-2"));
}

#[test]
fn every_figure_shows_every_discipline() {
    let comparison = fixture::comparison(8, 5);
    let figures = figures::all(&comparison);
    assert_eq!(figures.len(), 14);
    for figure in figures {
        let drawing = figure.plot.expect("the fixture has data for every figure");
        let svg = drawing.stand_alone(&figure.id, &figure.title, &figure.description);
        let svg = parsed(&svg);
        let drawn = words(svg.root_element());
        for discipline in &comparison.disciplines {
            assert!(drawn.contains(&discipline.label), "{}: {}", figure.id, discipline.label);
        }
    }
}

#[test]
fn every_figure_is_a_file_of_its_own() {
    let directory = Directory::new("figures");
    let comparison = fixture::comparison(3, 4);
    super::write(&directory.0, &fixture::answered(comparison.clone()), &fixture::provenance())
        .unwrap();
    let figures = figures::all(&comparison);
    for figure in &figures {
        let svg = fs::read_to_string(directory.0.join(format!("plots/{}.svg", figure.id))).unwrap();
        let svg = parsed(&svg);
        assert_eq!(svg.root_element().tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
        let style = svg.descendants().find(|node| node.has_tag_name("style"));
        let style = words(svg.root_element()) + style.map(words).unwrap_or_default().as_str();
        assert!(!style.contains("var("), "{}", figure.id);
    }
    let files = fs::read_dir(directory.0.join("plots")).unwrap().count();
    assert_eq!(files, figures.len());
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let once = html(&fixture::comparison(5, 10), &fixture::provenance());
    assert_eq!(once, html(&fixture::comparison(5, 10), &fixture::provenance()));
}

#[test]
fn text_from_scenarios_is_text() {
    let mut comparison = fixture::comparison(2, 3);
    let evil = "</style><script>alert(\"&\")</script>\u{0}";
    comparison.title = evil.into();
    comparison.description = evil.into();
    comparison.disciplines[1].label = evil.into();
    for discipline in &mut comparison.disciplines {
        discipline.classes[0].label = evil.into();
        discipline.traffic.iter_mut().for_each(|source| source.name = evil.into());
        discipline.links.iter_mut().for_each(|link| link.name = evil.into());
    }
    let mut provenance = fixture::provenance();
    provenance.scenario = evil.into();
    provenance.command = evil.into();
    let html = html(&comparison, &provenance);
    let page = parsed(&html);
    assert!(!page.descendants().any(|node| node.has_tag_name("script")));
    let title = page.descendants().find(|node| node.has_tag_name("h1")).map(words);
    assert_eq!(title, Some(evil.replace('\u{0}', "\u{fffd}")));
}

#[test]
fn nonsense_in_the_numbers_does_not_reach_the_plots() {
    let mut comparison = fixture::comparison(2, 3);
    let discipline = &mut comparison.disciplines[1];
    discipline.response_by_size[3].mean_s.value = f64::NAN;
    discipline.short_distribution[7].at_s = f64::INFINITY;
    discipline.links[0].utilisation = Sample::of(Centre::Mean, [(1, Some(f64::NAN))]);
    let html = html(&comparison, &fixture::provenance());
    for node in parsed(&html).descendants() {
        for name in ["d", "x", "y", "width"] {
            let value = node.attribute(name).unwrap_or_default();
            assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
        }
    }
}

#[test]
fn what_is_missing_is_said() {
    let html = html(&empty(), &Provenance::default());
    for said in [
        "Nothing to draw: No transfer finished.",
        "Nothing to draw: No transfer of at most 15\u{a0}kB finished.",
        "no measured value can be compared",
    ] {
        assert!(html.contains(said) || html.contains(&super::page::capitalised(said)), "{said}");
    }
}

#[test]
fn an_interrupted_comparison_says_so() {
    let whole = fixture::comparison(2, 3);
    let partial = Comparison { partial: true, ..whole.clone() };
    assert!(html(&partial, &fixture::provenance()).contains("Incomplete. "));
    assert!(!html(&whole, &fixture::provenance()).contains("Incomplete. "));
    assert!(html(&fixture::comparison(2, 1), &fixture::provenance()).contains("One run of each. "));
}

/// A directory for one test, gone afterwards.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let name = format!("tidegate-report-{name}-{}", std::process::id());
        Directory(std::env::temp_dir().join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Nothing depends on it; the system clears what is left.
        let _ = fs::remove_dir_all(&self.0);
    }
}
