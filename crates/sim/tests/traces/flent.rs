//! Results of Flent: the four versions of the format, and files that are something else.

use tidegate_core::Rate;
use tidegate_sim::trace::{Direction, Flent, FlentKind, FlentSample, ReadError};

/// An input of the fuzz target, which are small results of each version.
fn corpus(name: &str) -> Vec<u8> {
    let path = format!("{}/../../fuzz/corpus/flent/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(name: &str) -> Flent {
    Flent::parse(name, &corpus(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(contents: &[u8]) -> String {
    let error: ReadError = Flent::parse("file", contents).expect_err("it is no result of Flent");
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

/// The samples of a series: when, over how long, and how much.
fn samples(run: &Flent, name: &str) -> Vec<(f64, f64, f64)> {
    let series = run.series.iter().find(|series| series.name == name);
    let samples = &series.unwrap_or_else(|| panic!("{name} in {run:?}")).samples;
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    let sample = |it: &FlentSample| (rounded(it.at_s), rounded(it.covers_s), rounded(it.value));
    samples.iter().map(sample).collect()
}

#[test]
fn version_4_is_read_with_raw_values() {
    let run = read("version-4-rrul");
    assert_eq!((run.version, &*run.test, &*run.title), (4, "rrul_be", "home"));
    assert_eq!((&*run.client, &run.servers[..]), ("laptop", &["server".to_string()][..]));
    assert_eq!((run.length_s, run.congestion.as_deref()), (Some(60.0), Some("cubic")));
    assert!(run.ecn && run.paced);
    assert_eq!(samples(&run, "Ping (ms) ICMP"), [(0.0, 0.0, 10.0), (1.5, 0.0, 20.0)]);
    // What is no throughput, such as the state of TCP, is left out.
    assert_eq!(samples(&run, "TCP upload BE"), [(1.0, 0.5, 5.0), (2.0, 1.0, 4.0)]);
    assert_eq!(run.of(FlentKind::Throughput(Direction::Down)).count(), 1);
    let upload = run.of(FlentKind::Throughput(Direction::Up)).next().unwrap();
    assert_eq!(upload.congestion.as_deref(), Some("bbr"));
    // Counters are of each interval in this version.
    assert_eq!(samples(&run, "router, dropped"), [(1.0, 0.0, 2.0), (2.0, 0.0, 3.0)]);
    assert_eq!(run.not_read, ["CPU"]);
}

#[test]
fn earlier_versions_have_other_units() {
    let run = read("version-3-counters");
    // 50 transactions a second.
    assert_eq!(samples(&run, "Ping (ms) UDP BE"), [(0.2, 0.2, 20.0)]);
    assert_eq!(samples(&run, "router, dropped"), [(0.4, 0.0, 0.0), (1.4, 0.0, 6.0)]);
    let run = read("version-2-call-and-page");
    assert_eq!(samples(&run, "HTTP latency"), [(0.0, 0.0, 250.0)]);
    assert_eq!(samples(&run, "VoIP"), [(0.0, 0.0, -5.0), (0.01, 0.0, -4.5)]);
    assert_eq!(run.of(FlentKind::CallDelay).next().unwrap().payload, Some(92));
    assert_eq!(samples(&run, "VoIP::jitter"), [(0.0, 0.0, 0.1), (0.2, 0.0, 0.1)]);
    let run = read("version-1-without-raw-values");
    assert_eq!(samples(&run, "Ping (ms) ICMP"), [(0.0, 0.0, 20.5), (0.4, 0.0, 21.5)]);
    assert_eq!(samples(&run, "TCP upload"), [(0.2, 0.2, 1.5), (0.4, 0.2, 2.5)]);
    let run = read("version-1-raw-values-in-the-metadata");
    assert_eq!(samples(&run, "Ping (ms) ICMP"), [(0.0, 0.0, 7.0)]);
}

#[test]
fn shaped_queues_are_found_with_their_direction() {
    let run = read("version-3-counters");
    let [up, down] = &run.queues[..] else { panic!("{:?}", run.queues) };
    assert_eq!((up.direction, down.direction), (Direction::Up, Direction::Down));
    assert_eq!((&*up.name, up.rate), ("codel", Rate(10_000_000)));
    assert_eq!((up.dropped, up.marked), (Some(26), Some(5)));
    assert_eq!(up.parameters["limit"], "1000p");
    assert_eq!((&*down.name, down.rate), ("cake", Rate(20_000_000)));
}

#[test]
fn values_of_other_types_are_no_values() {
    let run = read("types-of-any-kind");
    assert_eq!((&*run.test, run.servers.len(), run.queues.len()), ("", 0, 0));
    assert!(run.series.iter().all(|series| series.name != "TCP upload"), "{run:?}");
}

#[test]
fn numbers_that_are_none_in_python_are_no_values() {
    let run = read("numbers-that-are-none");
    assert_eq!(run.title, "a \"NaN\" b");
    assert_eq!(samples(&run, "Ping (ms) ICMP"), [(2.0, 0.0, 21.5)]);
}

#[test]
fn other_files_are_refused_with_what_they_are() {
    let names = ["version-of-the-future", "nothing-measured", "cut", "a-page-load", "empty"];
    let all = names.map(|name| refused(&corpus(name)));
    for (text, part) in all.iter().zip([
        "found version '9' of the format, expected a result of Flent, version 1 to 4",
        "found nothing to use, expected a result of Flent with a ping",
        "file:1: found 'EOF while parsing an object'",
        "file:1: found 'missing field `metadata`'",
        "found an empty file",
    ]) {
        assert!(text.contains(part), "{text}");
    }
    assert!(refused(b"\x1f\x8b\x08").contains("found '"));
}

#[test]
fn results_are_recognised_and_page_loads_are_not() {
    assert!(Flent::recognises(&corpus("version-4-rrul")));
    assert!(!Flent::recognises(&corpus("a-page-load")));
    assert!(!Flent::recognises(b""));
}
