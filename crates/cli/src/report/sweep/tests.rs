//! The report and the text of small sweeps, some of whose points were not measured.

use std::sync::atomic::AtomicBool;

use tidegate_sim::scenario::file::{Folder, Overrides, vary};
use tidegate_study::sweep::{self, Plan};

use super::*;
use crate::report::tests::{needs_nothing_else, parsed, words};

const SMALL: &str = r#"
    title = "Small"
    duration = "2 s"
    seeds = 2
    disciplines = ["fifo", "fq-codel", "efd"]
    dumbbell = { pairs = 2, rate = "4 Mbit/s", buffer = "30 packets" }
    [[traffic.transfers]]
    name = "files <&>"
    from = "senders"
    to = "receivers"
    load = "3 Mbit/s"
    sizes = "20 kB"
"#;

/// A sweep over these axes whose last point was not measured.
fn small(axes: &[&str]) -> Sweep {
    let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
    let read = |settings: &[vary::Setting]| {
        vary::parse("small", SMALL, &Folder(".".into()), &Overrides::default(), settings)
    };
    let plan = Plan::of(axes, read).unwrap();
    let mut found = sweep::run(&plan, 2, &AtomicBool::new(false), None, &|_| ()).unwrap();
    *found.last_mut().unwrap() = None;
    plan.sum_up(found)
}

const GRID: [&str; 2] = ["rate=1 Mbit/s,4 Mbit/s,40 Mbit/s", "dumbbell.pairs=1,3"];

fn page_of(sweep: &Sweep, measure: &str) -> String {
    let mut figures = vec![maps::winners(sweep)];
    let themes = shown(sweep, measure);
    figures.extend(themes.iter().map(|theme| maps::of(sweep, theme)));
    html(sweep, measure, &Provenance::default(), &themes, &figures)
}

#[test]
fn a_report_needs_nothing_else_whatever_is_varied() {
    for axes in [&GRID[..], &GRID[..1], &["tcp.profile=today,papers,mix"]] {
        let sweep = small(axes);
        assert!(sweep.partial());
        needs_nothing_else(&page_of(&sweep, "response_mean_s"));
        // A measure that judges nothing is drawn where it is asked for.
        assert!(page_of(&sweep, "started_flows").contains("started_flows"));
    }
}

#[test]
fn every_map_has_a_field_for_each_discipline_and_its_numbers_in_a_table() {
    let sweep = small(&GRID);
    let text = page_of(&sweep, "response_mean_s");
    let document = parsed(&text);
    let named = |name: &'static str| document.descendants().filter(move |it| it.has_tag_name(name));
    let maps = named("figure").count();
    assert!(maps > 5, "{maps}");
    assert_eq!(named("table").filter(|it| it.attribute("aria-label").is_some()).count(), maps);
    let first = named("svg").filter(|it| it.attribute("class") == Some("plot")).nth(1).unwrap();
    let cells = |class: &str| {
        let rects = first.descendants().filter(|it| it.has_tag_name("rect"));
        rects.filter(|it| it.attribute("class").unwrap().starts_with(class)).count()
    };
    // Nine steps of the legend, and five of the six points of each of three disciplines.
    assert_eq!((cells("cell"), cells("missing")), (9 + 15, 3));
    assert!(words(document.root()).contains("1 of 6"), "{text}");
}

#[test]
fn the_text_has_what_to_run_and_the_measure_in_the_width_of_the_terminal() {
    let sweep = small(&GRID);
    for width in [40, 80, 200] {
        let text = text(&sweep, "response_mean_s", width);
        assert!(text.contains("(PARTIAL: points are missing)"), "{text}");
        assert!(text.contains("dumbbell.pairs \\ rate"), "{text}");
        assert!(text.contains("–  not measured"), "{text}");
        let rows = text.lines().filter(|line| line.starts_with("40 Mbit/s")).count();
        assert!(rows >= 4 && rows.is_multiple_of(4), "{rows}: {text}");
        let widest =
            text.lines().filter(|it| !it.ends_with([':', '.'])).map(|it| it.chars().count());
        assert!(widest.max() <= Some(width), "{width}:\n{text}");
    }
    let text = text(&small(&GRID[..1]), "response_mean_s", 80);
    assert!(text.contains("\n40 Mbit/s  not measured\n"), "{text}");
}

#[test]
fn advice_is_that_of_the_verdict_and_letters_do_not_end() {
    let sweep = small(&GRID);
    let (signs, known) = advice(&sweep);
    assert_eq!(signs.len(), sweep.points.len());
    for (sign, point) in signs.iter().zip(&sweep.points) {
        let (_, advice) = known.iter().find(|(other, _)| other == sign).unwrap();
        assert_eq!(*advice, Advice::of(point.result.as_ref()));
    }
    let letters: Vec<_> = [1, 26, 27, 52, 53, 703].map(letter).into();
    assert_eq!(letters, ["A", "Z", "AA", "AZ", "BA", "AAA"]);
}
