//! Active queue management near its targets, which the random operations of the
//! conformance test rarely reach.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use tidegate_core::entry::Entry;
use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::{Buffer, Bytes, Ecn, LossReason, Packet, Port, Span, Time};
use tidegate_twins::audit::{self, Audited, Event, Operation};
use tidegate_twins::disciplines;

/// A queue that grows and shrinks over some hundred milliseconds.
fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let arrive = |arrivals| {
        (0..4_u8, select(&[40_u64, 600, 1_500, 1_500][..])).prop_map(move |(flow, size)| {
            vec![Operation::Arrive { flow, size: Bytes(size) }; arrivals]
        })
    };
    let busy = prop_oneof![
        5 => arrive(1),
        1 => arrive(8),
        4 => Just(vec![Operation::Send]),
        4 => (0..8_000_000_u64).prop_map(|nanos| vec![Operation::Wait(Span(nanos))]),
    ];
    prop::collection::vec(busy, 50..400).prop_map(|operations| operations.concat())
}

fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        (5..200_u32).prop_map(Buffer::packets),
        (8_000..200_000_u64).prop_map(|size| Buffer::bytes(Bytes(size))),
    ]
}

/// Runs a discipline beside its twin and returns in how many of the cases it
/// gave up a packet early, and in how many it marked one.
fn early_and_marked(name: &str, values: &[(&'static str, BoxedStrategy<String>)]) -> (u32, u32) {
    let entry = registry::find(name).expect("it is registered");
    let (names, values): (Vec<_>, Vec<_>) = values.iter().cloned().unzip();
    let (early, marked) = (Cell::new(0), Cell::new(0));
    TestRunner::new(Config { cases: 500, ..Config::with_source_file(file!()) })
        .run(&(values, buffer(), any::<u64>(), operations()), |(values, buffer, seed, operations)| {
            let values = values.iter().map(String::as_str);
            let given: Vec<_> = names.iter().copied().zip(values).collect();
            disciplines::compare(entry, &given, buffer, seed, &operations);
            let discipline = entry.build(&given, buffer, seed).expect("values are within range");
            let mut audited = Audited::new(discipline, buffer);
            let mut events: Vec<_> =
                operations.iter().flat_map(|operation| audited.apply(*operation)).collect();
            events.append(&mut audited.drain());
            let is_early = |event: &Event| {
                matches!(event, Event::Lost(loss) if loss.reason == LossReason::Early)
            };
            let is_marked = |event: &Event| {
                matches!(event, Event::Sent(packet) if packet.ecn == Ecn::Ce)
            };
            early.set(early.get() + u32::from(events.iter().any(is_early)));
            marked.set(marked.get() + u32::from(events.iter().any(is_marked)));
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{}: {failure}", entry.name));
    (early.get(), marked.get())
}

fn millis(range: std::ops::Range<u64>) -> BoxedStrategy<String> {
    range.prop_map(|millis| format!("{millis} ms")).boxed()
}

/// One of a few words.
fn word(words: &'static [&'static str]) -> BoxedStrategy<String> {
    select(words).prop_map(String::from).boxed()
}

/// The parameters that PIE has also where it is one of many.
fn pie_values(form: &'static str) -> Vec<(&'static str, BoxedStrategy<String>)> {
    let threshold = (0.0..1.0).prop_map(|share: f64| share.to_string()).boxed();
    let (target, update, burst) = (millis(1..20), millis(1..20), millis(0..60));
    vec![
        ("form", Just(form.to_owned()).boxed()),
        ("target", target),
        ("update", update),
        ("burst", burst),
        ("ecn", Just("on".to_owned()).boxed()),
        ("ecn_threshold", threshold),
    ]
}

#[test]
fn pie_agrees_with_its_twin_at_moderate_probabilities() {
    for form in ["linux", "rfc"] {
        let (early, marked) = early_and_marked("pie", &pie_values(form));
        assert!(early > 100 && marked > 100, "{form}: {early} with early losses, {marked} marks");
    }
}

#[test]
fn fq_pie_agrees_with_its_twin_at_moderate_probabilities() {
    for form in ["linux", "rfc"] {
        let (early, marked) = early_and_marked("fq-pie", &pie_values(form));
        assert!(early > 100 && marked > 50, "{form}: {early} with early losses, {marked} marks");
    }
}

#[test]
fn dualpi2_agrees_with_its_twin_at_moderate_probabilities() {
    let given = [
        ("target", millis(1..20)),
        ("update", millis(1..20)),
        ("alpha", number(0.0..4.0)),
        ("beta", number(0.0..20.0)),
        ("coupling", word(&["1", "2", "3"])),
        ("step", millis(0..40)),
        ("classic_protection", word(&["0", "10", "50", "100"])),
        ("overload", word(&["drop", "overflow"])),
    ];
    let (early, marked) = early_and_marked("dualpi2", &given);
    assert!(early > 100 && marked > 100, "{early} cases with early losses, {marked} with marks");
}

#[test]
fn cake_agrees_with_its_twin_at_moderate_delays() {
    let rtt = (2..200_u64).prop_map(|millis| format!("{millis} ms")).boxed();
    let filter = word(&["off", "on", "aggressive"]);
    let bandwidth = word(&["unlimited", "1 Mbit/s", "12 Mbit/s"]);
    let step = ("ce_threshold", millis(0..10));
    let given = [("rtt", rtt), ("ack_filter", filter), ("bandwidth", bandwidth), step];
    let (early, marked) = early_and_marked("cake", &given);
    assert!(early > 100 && marked > 100, "{early} cases with early losses, {marked} with marks");
}

fn number(range: std::ops::Range<f64>) -> BoxedStrategy<String> {
    range.prop_map(|number| number.to_string()).boxed()
}

fn switch() -> BoxedStrategy<String> {
    word(&["on", "off"])
}

#[test]
fn codel_agrees_with_its_twin_while_it_is_dropping() {
    let given = [
        ("form", word(&["linux", "rfc"])),
        ("target", millis(1..20)),
        ("interval", millis(1..60)),
        ("ecn", Just("on".to_owned()).boxed()),
        ("ce_threshold", millis(0..40)),
        ("drop_batch", word(&["4", "64"])),
        ("ce_threshold_selector", word(&["any", "ect1"])),
    ];
    for (name, given) in [("codel", &given[..5]), ("fq-codel", &given)] {
        let (early, marked) = early_and_marked(name, given);
        assert!(early > 100 && marked > 100, "{name}: {early} with early losses, {marked} marks");
    }
}

#[test]
fn red_agrees_with_its_twin_between_its_thresholds() {
    let packets = |range: std::ops::Range<u32>| {
        range.prop_map(|packets| format!("{packets} packets")).boxed()
    };
    let (early, marked) = early_and_marked(
        "red",
        &[
            ("form", word(&["linux", "paper"])),
            ("idle", switch()),
            ("ecn", switch()),
            ("min", packets(0..20)),
            ("max", packets(0..60)),
            ("probability", number(0.0..0.5)),
            ("weight", number(0.0..0.5)),
            ("guard", switch()),
            ("wait", switch()),
        ],
    );
    assert!(early > 100 && marked > 100, "{early} cases with early losses, {marked} with marks");
}

/// What came of 5 000 packets of four flows with this codepoint, half as many again as
/// the link carries: each packet's number and whether it was sent, marked or lost.
fn signals(entry: &'static Entry, ecn: Ecn) -> Vec<(u64, Option<bool>)> {
    let ecn_is_set = entry.parameters.iter().any(|parameter| parameter.name == "ecn");
    let given: &[_] = if ecn_is_set { &[("ecn", "on")] } else { &[] };
    let buffer = Buffer::packets(300);
    let mut port = Port::new(entry.build(given, buffer, 1).expect("ECN can be on"));
    let mut fates = Vec::new();
    for number in 0..5_000 {
        let now = Time(number * 1_000_000);
        let packet = Packet::new(number, audit::key(number as u8 % 4), Bytes(1_500));
        let lost = port.offer(now, Packet { ecn, ..packet });
        fates.extend(lost.iter().map(|loss| (loss.packet.handle, None)));
        if number % 3 > 0 {
            let sent = port.take(now);
            fates.extend(port.losses().iter().map(|loss| (loss.packet.handle, None)));
            fates.extend(sent.map(|sent| (sent.handle, Some(sent.ecn == Ecn::Ce))));
        }
    }
    fates
}

#[test]
fn every_discipline_treats_ect_1_as_ect_0_unless_it_sorts_by_them() {
    let mut marking = 0;
    let sorts = |entry: &&'static Entry| {
        (entry.build)(&entry.settings(&[]).unwrap(), Buffer::packets(1).into(), 1).sorts_by_ecn()
    };
    for entry in DISCIPLINES.iter().filter(|entry| !sorts(entry)) {
        let [scalable, classic] = [Ecn::Ect1, Ecn::Ect0].map(|ecn| signals(entry, ecn));
        assert_eq!(scalable, classic, "{}", entry.name);
        marking += u32::from(scalable.iter().any(|(_, fate)| *fate == Some(true)));
    }
    // RED, CoDel, FQ-CoDel, PIE, FQ-PIE and CAKE at least.
    assert!(marking >= 6, "{marking} disciplines mark");
}

/// With little credit or none, so that flows soon pay.
#[test]
fn tide_agrees_with_its_twin_while_it_is_dropping() {
    let credit = (0..6_000_u64).prop_map(|bytes| format!("{bytes} B")).boxed();
    let (early, marked) = early_and_marked("tide", &[("credit", credit)]);
    assert!(early > 100 && marked > 100, "{early} cases with early losses, {marked} with marks");
}
