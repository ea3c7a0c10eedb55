//! What a run's transfers cost in memory: nothing once they have ended, a few
//! kilobytes while they are open, which only so many are, and little while they wait.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use allocation_counter::measure;
use tidegate_core::{Bytes, Span, Time, discipline::fifo};
use tidegate_sim::metrics::{Discard, FlowRecord, Recorder, RunSummary};
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::scenario::{Arrivals, DisciplineChoice, MOST_OPEN, Scenario, TrafficKind};
use tidegate_sim::simulation;

/// A link with today's TCP and this source of transfers.
fn link(mbits: u32, seconds: f64, source: &str) -> Scenario {
    let text = format!(
        r#"
        title = "many"
        duration = "{seconds} s"
        disciplines = ["fifo"]
        sample_every = "10 ms"
        dumbbell = {{ pairs = 2, rate = "{mbits} Mbit/s", delay = "2 ms", buffer = "300 packets" }}
        [[traffic.transfers]]
        name = "transfers"
        from = "senders"
        to = "receivers"
        {source}
        "#
    );
    file::parse("many.toml", &text, &Folder(".".into())).unwrap_or_else(|error| panic!("{error}"))
}

/// The same with `count` transfers of 1 kB from a log, one every `gap`.
fn logged(mbits: u32, seconds: f64, count: u64, gap: Span) -> Scenario {
    let mut scenario = link(mbits, seconds, "count = 1\nsizes = \"1 kB\"");
    let entries = (0..count).map(|number| (Time(number * gap.0), Bytes(1_000)));
    let TrafficKind::Transfers { arrivals, .. } = &mut scenario.traffic[0].kind else {
        unreachable!("it is written so")
    };
    *arrivals = Arrivals::Log(Arc::new(entries.collect()));
    scenario
}

fn run(scenario: &Scenario, recorder: &mut dyn Recorder) -> RunSummary {
    let fifo = DisciplineChoice::with_defaults(&fifo::ENTRY);
    simulation::run(scenario, &fifo, 1, recorder, &AtomicBool::new(false))
}

/// The most memory that a run has at a time, in bytes, without the scenario's.
fn peak(scenario: &Scenario, recorder: &mut dyn Recorder) -> f64 {
    measure(|| drop(run(scenario, recorder))).bytes_max as f64
}

/// Keeps the rows of flows, as a run must not.
#[derive(Default)]
struct Keeps(Vec<FlowRecord>);

impl Recorder for Keeps {
    fn flow(&mut self, row: &FlowRecord) {
        self.0.push(row.clone());
    }
}

/// Bytes for each transfer that has ended: those of a long log less those of a short
/// one, which have as many open at a time.
fn per_ended(recorder: impl Fn() -> Box<dyn Recorder>) -> f64 {
    const FEW: u64 = 20_000;
    const MANY: u64 = 100_000;
    let of = |count| {
        let scenario = logged(20, count as f64 / 1e3 + 1.0, count, Span::millis(1));
        peak(&scenario, &mut *recorder())
    };
    (of(MANY) - of(FEW)) / (MANY - FEW) as f64
}

/// Lookups on a link that no answer crosses if it is `broken`.
fn names(seconds: u32, per_second: u32, broken: bool) -> Scenario {
    let loss = if broken { 0.999_999_999 } else { 0.0 };
    let text = format!(
        r#"
        title = "names"
        duration = "{seconds} s"
        sample_every = "10 ms"
        disciplines = ["fifo"]
        [[link]]
        from = "host"
        to = "resolver"
        rate = "1 Gbit/s"
        delay = "10 ms"
        queue = "tested"
        back = {{ loss = {loss} }}
        [[traffic.dns]]
        name = "names"
        from = "host"
        to = "resolver"
        per_second = {per_second}
        "#
    );
    file::parse("names.toml", &text, &Folder(".".into())).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_lookup_that_has_ended_takes_no_memory_and_only_so_many_are_open() {
    let of = |seconds| peak(&names(seconds, 1_000, false), &mut Discard);
    let bytes = (of(100) - of(20)) / 80_000.0;
    println!("{bytes:.3} bytes for each lookup that has ended");
    assert!(bytes < 1.0, "{bytes}");
    // Of 200 000 a second none is answered, and as many are open as there are ports.
    let bytes = peak(&names(3, 200_000, true), &mut Discard);
    println!("{bytes} bytes for a flood of lookups");
    assert!(bytes / f64::from(MOST_OPEN) < 500.0, "{bytes}");
}

#[test]
fn a_transfer_that_has_ended_takes_no_memory() {
    let bytes = per_ended(|| Box::new(Discard));
    println!("{bytes:.3} bytes for each transfer that has ended");
    assert!(bytes < 1.0, "{bytes}");
    let kept = per_ended(|| Box::new(Keeps::default()));
    assert!(kept > 100.0, "rows that are kept go unnoticed: {kept}");
}

#[test]
fn an_open_transfer_takes_less_than_7_kilobytes() {
    let of = |count: u32| {
        let source = format!("count = {count}\nsizes = \"endless\"");
        peak(&link(100, 20.0, &source), &mut Discard)
    };
    let (few, many) = (1_024, 8_192);
    let bytes = (of(many) - of(few)) / f64::from(many - few);
    println!("{bytes:.0} bytes for each open transfer");
    assert!((1_000.0..7_000.0).contains(&bytes), "{bytes}");
}

#[test]
fn a_transfer_that_waits_takes_less_than_100_bytes() {
    let all = u64::from(MOST_OPEN);
    let of = |count| peak(&logged(1, 0.5, count, Span(1_000)), &mut Discard);
    let more = 65_536;
    let bytes = (of(all + more) - of(all)) / more as f64;
    println!("{bytes:.0} bytes for each transfer that waits");
    assert!((30.0..100.0).contains(&bytes), "{bytes}");
}

#[test]
fn transfers_wait_when_no_more_may_be_open_and_all_of_them_are_told_of() {
    let all = u64::from(MOST_OPEN);
    let of = |mbits, seconds, count, gap| {
        let mut rows = Keeps::default();
        let summary = run(&logged(mbits, seconds, count, gap), &mut rows);
        let in_order = |row: &&FlowRecord| row.start == Time(row.number * gap.0);
        assert_eq!(rows.0.iter().filter(in_order).count() as u64, count, "each at its own time");
        (summary.waited, summary.all.started, summary.all.completed)
    };
    // None has ended by then, and nobody waits but those without a place.
    assert_eq!(of(1, 0.03, all, Span(1)), (0, all, 0));
    assert_eq!(of(1, 0.0301, all + 100, Span(1)), (100, all + 100, 0));
    // They are carried as soon as there is a place, and all are in the end.
    let (waited, started, completed) = of(1_000, 400.0, all + 5_000, Span(1_000));
    assert!((1..=5_000).contains(&waited), "{waited}");
    assert_eq!((started, completed), (all + 5_000, all + 5_000));
}
