//! Viewers behind simulated links: times by hand on an empty link, every segment once,
//! the same for the same seed, and what an overloaded link does.

use std::sync::atomic::AtomicBool;

use tidegate_core::{Span, registry};
use tidegate_sim::metrics::{FlowRecord, Recorder, RunSummary};
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};
use tidegate_sim::simulation;

#[derive(Default)]
struct Rows(Vec<FlowRecord>);

impl Recorder for Rows {
    fn flow(&mut self, row: &FlowRecord) {
        self.0.push(row.clone());
    }
}

fn scenario(rate: &str, what: &str) -> Scenario {
    let text = format!(
        r#"
        title = "video"
        duration = "120 s"
        disciplines = ["fifo"]
        [[link]]
        name = "down"
        from = "server"
        to = "user"
        queue = "tested"
        rate = "{rate}"
        delay = "10 ms"
        buffer = "100 packets"
        back = {{ name = "up", queue = "tested" }}
        [[traffic.video]]
        name = "film"
        from = "server"
        to = "user"
        segment = "2 s"
        {what}
        "#
    );
    let folder = Folder(".".into());
    file::parse("test.toml", &text, &folder).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, discipline: &str, seed: u64) -> (Vec<FlowRecord>, RunSummary) {
    let entry = registry::find(discipline).expect("it is registered");
    let choice = DisciplineChoice::with_defaults(entry);
    let mut rows = Rows::default();
    let stop = AtomicBool::new(false);
    let summary = simulation::run(scenario, &choice, seed, &mut rows, &stop);
    (rows.0, summary)
}

const THREE: &str = r#"qualities = ["1 Mbit/s", "2 Mbit/s", "4 Mbit/s"]"#;

/// At 8 Mbit/s each byte takes 1 us and 10 ms. There are three round trips before the response:
/// of SYN, of TLS and of the request. Then come 250 kB in packets of 1 448 bytes and 52 of
/// headers. TLS takes 4 ms of the link, and slow start leaves it idle for less than a round trip
/// twice: its windows of 10 and 20 packets take 15 and 30 ms of 20 and more.
#[test]
fn the_first_picture_comes_after_three_round_trips_and_the_segment() {
    let scenario = scenario("8 Mbit/s", THREE);
    let (rows, summary) = run(&scenario, "fifo", 1);
    let first = rows.first().expect("a segment");
    assert_eq!(first.size.map(|size| size.0), Some(250_000));
    let startup = summary.traffic[0].viewings[0].startup.expect("a picture");
    assert_eq!(Some(startup), first.response);
    let least = 0.060 + 250_000.0 / 1_448.0 * 1_500.0 * 1e-6;
    let startup = startup.as_seconds();
    assert!((least..least + 0.004 + 2.0 * 0.020).contains(&startup), "{startup} {least}");
}

#[test]
fn a_fast_link_carries_the_best_quality_and_a_slow_one_does_not_stall() {
    for (rate, low, high) in [("20 Mbit/s", 3.8e6, 4e6), ("3 Mbit/s", 1.8e6, 2.9e6)] {
        for choice in ["bola", "rate"] {
            let what = format!("{THREE}\nchoice = \"{choice}\"");
            let (rows, summary) = run(&scenario(rate, &what), "fifo", 1);
            let [seen] = summary.traffic[0].viewings[..] else { panic!("one viewer") };
            let quality = seen.mean_rate().expect("a picture").0 as f64;
            println!("{rate} {choice}: {quality} {seen:?}");
            assert!(quality > low && quality < high, "{rate} {choice}: {quality}");
            assert_eq!(seen.stalled, Span::ZERO);
            let mut numbers: Vec<_> = rows.iter().map(|row| row.number).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..rows.len() as u64), "each segment once");
        }
    }
}

/// Half of the lowest quality: the player stalls for half of the time.
#[test]
fn a_link_below_the_lowest_quality_stalls() {
    let (_, summary) = run(&scenario("500 kbit/s", THREE), "fifo", 1);
    let ratio = summary.traffic[0].viewings[0].stalled_ratio().expect("a picture");
    assert!((0.45..0.60).contains(&ratio), "{ratio}");
}

#[test]
fn a_viewer_that_stops_is_counted_until_then() {
    let what = format!("{THREE}\nstart = \"10 s\"\nstop = \"40 s\"");
    let (rows, summary) = run(&scenario("20 Mbit/s", &what), "fifo", 1);
    let seen = summary.traffic[0].viewings[0];
    assert!(seen.played > Span::seconds(27) && seen.played < Span::seconds(30), "{seen:?}");
    assert!(rows.iter().all(|row| row.start.as_seconds() < 40.0));
}

#[test]
fn runs_are_the_same_for_a_seed_and_differ_with_another() {
    let scenario = scenario("5 Mbit/s", THREE);
    let rows = |seed| run(&scenario, "fq-codel", seed).0;
    assert_eq!(rows(1), rows(1));
    assert_ne!(rows(1), rows(2));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let refused = |what: &str| {
        let text = format!(
            "title = \"x\"\nduration = \"1 s\"\ndisciplines = [\"fifo\"]\n[access]\nhosts = 1\n\
             down = \"1 Mbit/s\"\nup = \"1 Mbit/s\"\n[[traffic.video]]\nname = \"film\"\n\
             from = \"servers\"\nto = \"hosts\"\n{what}"
        );
        let folder = Folder(".".into());
        let error = file::parse("test.toml", &text, &folder).expect_err("it is wrong").to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    let neither = refused("");
    assert!(neither.contains("one of movie, qualities"), "{neither}");
    let descending = refused("qualities = [\"2 Mbit/s\", \"1 Mbit/s\"]");
    assert!(descending.contains("the lowest first"), "{descending}");
    let short = refused("qualities = [\"1 Mbit/s\"]\nsegment = \"4 s\"\nbuffer = \"5 s\"");
    assert!(short.contains("two segments"), "{short}");
    let missing = refused("movie = \"none.json\"");
    assert!(missing.contains("none.json"), "{missing}");
}
