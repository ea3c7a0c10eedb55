//! The report on gateways: complete, escaped, the same each time, and a finding
//! that says what the numbers do.

use roxmltree::Node;
use tidegate_sim::requests::Weights;
use tidegate_study::requests::{Class, Counts, Standard, Summary, Way};
use tidegate_study::{Centre, Sample};

use super::{Results, figures, finding};
use crate::report::Provenance;
use crate::report::tests::{needs_nothing_else, parsed, words};

const CLASSES: [(&str, u32); 3] = [("office", 4), ("teachers", 2), ("pupils", 1)];

/// What a report is made of.
struct Fixture {
    summary: Summary,
    standard: Standard,
    provenance: Provenance,
}

impl Fixture {
    fn results(&self) -> Results<'_> {
        let Fixture { summary, standard, provenance } = self;
        Results { summary, standard, provenance }
    }

    fn html(&self) -> String {
        super::html(self.results(), &figures::all(self.results()))
    }

    /// The text of the summary's elements of this name.
    fn finding(&self, element: &str) -> Vec<String> {
        let section = finding::section(self.results(), &[]).0.to_string();
        let section = parsed(&section);
        section.descendants().filter(|node| node.has_tag_name(element)).map(words).collect()
    }
}

/// A value over so many runs that alternate between two values, `apart` from it; a
/// single run has the value itself.
fn around(value: f64, apart: f64, runs: usize) -> Option<Sample> {
    let apart = if runs > 1 { apart } else { 0.0 };
    let run = |seed| (seed, Some(if seed % 2 == 0 { value - apart } else { value + apart }));
    Sample::of(Centre::Mean, (1..=runs as u64).map(run))
}

/// A way with this median of small responses and these shares.
fn way(label: &str, small: f64, shares: [f64; 3], runs: usize) -> Way {
    let about = |value: f64| around(value, value * 0.01, runs);
    let class = |((name, weight), share): ((&str, u32), f64)| Class {
        name: name.into(),
        weight,
        throughput_bps: about(share * 2e6),
        share: about(share),
        due_share: None,
        response_mean_s: about(small * 3.0),
        response_p50_s: about(small * 2.0),
        response_p95_s: about(small * 9.0),
        response_p99_s: about(small * 20.0),
        small_p50_s: about(small),
        counts: Counts {
            asked: 1_000,
            completed: 990,
            reset: 4,
            unfinished: 6,
            ..Counts::default()
        },
    };
    Way {
        label: label.into(),
        runs,
        utilisation: about(0.97),
        full: about(0.9),
        shares_tested: true,
        queueing_p95_s: about(0.2),
        small_p50_s: about(small),
        classes: CLASSES.into_iter().zip(shares).map(class).collect(),
    }
}

const BY_WEIGHT: [f64; 3] = [4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0];
const EVEN: [f64; 3] = [1.0 / 3.0; 3];

/// Four ways, with so many seeds; the third has no gateway.
fn fixture(runs: usize) -> Fixture {
    let summary = Summary {
        title: "A school".into(),
        description: "Three classes share a link.".into(),
        file: "school".into(),
        duration_s: 200.0,
        warm_up_s: 20.0,
        seeds: (1..=runs as u64).collect(),
        partial: false,
        ways: vec![
            way("msf", 0.74, BY_WEIGHT, runs),
            way("htb", 3.8, BY_WEIGHT, runs),
            way("direct", 1.8, EVEN, runs),
            way("fifo", 1.805, [0.35, 0.34, 0.31], runs),
        ],
    };
    let standard = Standard {
        no_gateway: Some(2),
        weights: vec![Weights::Users, Weights::Classes, Weights::Nobody, Weights::Classes],
        by_class: BY_WEIGHT.into(),
        by_user: BY_WEIGHT.into(),
    };
    let provenance = Provenance {
        version: "tidegate 0.1.0".into(),
        command: "tidegate requests compare school".into(),
        links: vec!["access: 2 Mbit/s".into()],
        traffic: vec!["office: weight 4".into()],
        other: vec![("servers".into(), "6, 5 ms to 30 ms away".into())],
        scenario: "title = \"A school\"".into(),
        ..Provenance::default()
    };
    Fixture { summary, standard, provenance }
}

/// Nothing was finished.
fn empty() -> Fixture {
    let mut fixture = fixture(3);
    for way in &mut fixture.summary.ways {
        (way.utilisation, way.queueing_p95_s, way.small_p50_s) = (None, None, None);
        for class in &mut way.classes {
            let Class { name, weight, .. } = class.clone();
            *class = Class {
                name,
                weight,
                throughput_bps: None,
                share: None,
                due_share: None,
                response_mean_s: None,
                response_p50_s: None,
                response_p95_s: None,
                response_p99_s: None,
                small_p50_s: None,
                counts: Counts::default(),
            };
        }
    }
    fixture
}

fn alone() -> Fixture {
    let mut fixture = fixture(3);
    fixture.summary.ways.truncate(1);
    fixture.summary.ways[0].classes.truncate(1);
    fixture.standard.no_gateway = None;
    fixture.standard.by_class = vec![1.0];
    fixture.standard.by_user = vec![1.0];
    fixture
}

#[test]
fn every_report_is_well_formed_and_needs_nothing_else() {
    let mut without_ways = fixture(3);
    without_ways.summary.ways.clear();
    without_ways.standard.no_gateway = None;
    for fixture in [fixture(5), fixture(1), empty(), alone(), without_ways] {
        needs_nothing_else(&fixture.html());
    }
}

#[test]
fn every_figure_and_every_table_shows_every_way() {
    let fixture = fixture(5);
    let html = fixture.html();
    let page = parsed(&html);
    let shown: Vec<_> = page
        .descendants()
        .filter(|node| ["figure", "table", "ul"].contains(&node.tag_name().name()))
        .map(words)
        .collect();
    // The sentences, three figures and two tables.
    assert_eq!(shown.len(), 6);
    for way in &fixture.summary.ways {
        assert!(shown.iter().all(|text| text.contains(&way.label)), "{}", way.label);
    }
    assert!(html.contains("Over 5\u{a0}seeds: means"));
    for of_the_setup in ["2 Mbit/s", "office: weight 4", "5 ms to 30 ms", "tidegate 0.1.0"] {
        assert!(html.contains(of_the_setup), "{of_the_setup}");
    }
}

#[test]
fn the_finding_comes_first_and_then_figures_tables_and_set_up() {
    let html = fixture(5).html();
    let places: Vec<_> = ["summary", "figures", "main-figures", "tables", "reproduce"]
        .map(|id| html.find(&format!("<section id=\"{id}\">")).expect("every section is there"))
        .into();
    assert!(places.is_sorted());
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(fixture(10).html(), fixture(10).html());
}

#[test]
fn text_from_files_is_text() {
    let evil = "</style><script>alert(\"&\")</script>\u{0}";
    let mut fixture = fixture(3);
    let Fixture { summary, provenance, .. } = &mut fixture;
    (summary.title, summary.description) = (evil.into(), evil.into());
    summary.ways[2].label = evil.into();
    for way in &mut summary.ways {
        way.classes[1].name = evil.into();
    }
    (provenance.scenario, provenance.command) = (evil.into(), evil.into());
    provenance.traffic = vec![evil.into()];
    let html = fixture.html();
    let page = parsed(&html);
    assert!(!page.descendants().any(|node| node.has_tag_name("script")));
    let title = page.descendants().find(|node| node.has_tag_name("h1")).map(words);
    assert_eq!(title, Some(evil.replace('\u{0}', "\u{fffd}")));
    // In the sentences, the captions, both tables, the set-up and the title.
    let texts = page.descendants().filter(Node::is_text).filter_map(|node| node.text());
    assert!(texts.filter(|text| text.contains("<script>")).count() > 20);
}

#[test]
fn the_finding_says_what_the_numbers_do() {
    let fixture = fixture(10);
    let lead = &fixture.finding("h2")[0];
    assert_eq!(
        lead,
        "Summary: Small responses arrive soonest under ‘msf’, half of them within 740\u{a0}ms. Classes \
         receive what their weights promise under ‘msf’ and ‘htb’."
    );
    let said = fixture.finding("li");
    let given = "classes receive what weights promise (‘office’ 57%, ‘teachers’ 29% and ‘pupils’ \
                 14%)";
    assert_eq!(
        said[0].trim(),
        format!(
            "msf Small responses finish 2.4 times sooner (740\u{a0}ms instead of 1.8\u{a0}s); \
             {given}."
        )
    );
    assert!(said[1].contains("take 2.1 times as long (3.8 instead of 1.8\u{a0}s)"), "{}", said[1]);
    assert!(
        said[2]
            .trim_start()
            .starts_with("directbaseline Half of the small responses arrive within 1.8")
    );
    assert!(said[3].contains("Small responses take the same time"), "{}", said[3]);
    assert!(said[3].contains("‘office’ 35% instead of 57%"), "{}", said[3]);
}

#[test]
fn nothing_is_claimed_of_a_single_run() {
    let said = fixture(1).finding("li").join(" ");
    assert!(said.contains("Small responses take 740\u{a0}ms instead of 1.8\u{a0}s"), "{said}");
    assert!(said.contains("where weights promise 57%, 29% and 14%"), "{said}");
    for claim in ["sooner", "as long", "the same time", "receive"] {
        assert!(!said.contains(claim), "{claim}");
    }
    assert!(!fixture(1).finding("h2")[0].contains("soonest"));
    // Two seeds give a mean an interval; a median has none before six.
    let mut few = fixture(2);
    for way in &mut few.summary.ways {
        let values = (1..=2).map(|seed| (seed, Some(0.5)));
        way.small_p50_s = Sample::of(Centre::Median, values);
    }
    assert!(!few.finding("h2")[0].contains("small responses arrive"), "{:?}", few.finding("h2"));
}

#[test]
fn shares_are_held_against_the_weights_that_the_way_goes_by() {
    let mut fixture = fixture(10);
    fixture.standard.by_user = EVEN.into();
    let said = fixture.finding("li");
    assert!(said[0].contains("do not receive what the weights of users promise"), "{}", said[0]);
    assert!(said[0].contains("‘office’ 57% instead of 33%"), "{}", said[0]);
    assert!(said[1].contains("receive what the weights of classes promise"), "{}", said[1]);
    assert!(said[2].contains("it has no weights (‘office’ 33%, ‘teachers’ 33%"), "{}", said[2]);
    // Clearly not what they are due, but for one class that perhaps is.
    let shares = [(0.39, 0.005), (0.29, 0.005), (0.32, 0.2)];
    for (class, (mean, half)) in fixture.summary.ways[3].classes.iter_mut().zip(shares) {
        class.share = around(mean, half, 10);
    }
    fixture.standard.by_class = vec![0.39, 0.29, 0.2];
    let said = fixture.finding("li");
    assert!(said[3].contains("no clear difference between shares and the weights of classes"));
}

#[test]
fn shares_on_a_link_that_is_rarely_full_are_not_tested_and_nobody_is_blamed() {
    let mut fixture = fixture(10);
    // Every class receives what it asks for, which is not what weights would give.
    for way in &mut fixture.summary.ways {
        way.full = around(0.0, 0.0, 10);
        for class in &mut way.classes {
            class.share = around(1.0 / 3.0, 0.001, 10);
        }
    }
    let never = "shares are not tested, since the link was never full (‘office’ 33%, ‘teachers’ \
                 33% and ‘pupils’ 33%)";
    let said = fixture.finding("li");
    assert!(said[0].contains(never) && said[1].contains(never), "{said:?}");
    assert!(said[2].contains("it has no weights"), "{}", said[2]);
    assert!(fixture.finding("h2")[0].ends_with("Shares are not tested: the link was never full."));
    assert!(!fixture.html().contains("do not receive"));

    // Under one way it was full for long enough: that one can fail.
    fixture.summary.ways[0].full = around(0.07, 0.01, 10);
    fixture.summary.ways[1].full = around(0.5, 0.0, 10);
    let said = fixture.finding("li");
    let rarely = "shares are not tested, since the link was full for only 7.0% of the time";
    assert!(said[0].contains(rarely), "{}", said[0]);
    assert!(said[1].contains("classes do not receive what weights promise"), "{}", said[1]);
}

#[test]
fn without_a_way_that_has_no_gateway_the_first_is_the_measure() {
    let mut fixture = fixture(10);
    fixture.standard.no_gateway = None;
    assert!(fixture.finding("p")[0].contains("against ‘msf’, the first way"));
    assert!(fixture.finding("li")[0].trim_start().starts_with("msfbaseline"));
}

#[test]
fn requests_without_an_answer_are_told_where_they_differ() {
    let mut fixture = fixture(10);
    for class in &mut fixture.summary.ways[1].classes {
        class.counts.unfinished = 246;
    }
    let said = fixture.finding("li");
    assert!(said[1].contains("25% instead of 1% of all requests remain unanswered"), "{}", said[1]);
    assert!(!said[0].contains("remain unanswered"));
}
