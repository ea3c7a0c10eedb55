//! Our CoDel, FQ-CoDel and PIE compared with those of ns-3.37 on the same transfers
//! over the same dumbbell: a short form of the example `crosscheck_aqm`, which has
//! the tolerances and all figures. A discipline with one parameter that is a fifth
//! off must fail.

#[path = "../examples/crosscheck_aqm/figures.rs"]
mod figures;
#[path = "../examples/crosscheck_aqm/transfers.rs"]
mod transfers;
#[path = "../examples/crosscheck_aqm/workload.rs"]
mod workload;

use tidegate_core::Span;
use tidegate_sim::scenario::DisciplineChoice;

use figures::{Cell, Verdict};
use workload::{WORKLOADS, Workload};

/// So many of ns-3's seeds.
const SEEDS: usize = 2;
/// Half as long as ns-3 ran: transfers without end are soon in a steady state.
const LONG_RUN: Span = Span::seconds(320);

/// Our name, ns-3's, and the workloads. Among several long transfers with a
/// queue each, or under marks, TCP decides how long a packet waits more than
/// the discipline does: `benches/ns3/README.md` has that.
const CASES: [(&str, &str, &[&str]); 3] = [
    ("codel", "codel", &["load8", "long1", "long4", "long16"]),
    ("fq-codel", "fqcodel", &["load8", "long1"]),
    ("pie", "pie", &["load8", "long1", "long4", "long16"]),
];

/// A discipline in the RFC's form, which is that of ns-3, with its sizes of packets.
fn as_in_ns3(name: &str, settings: &[(&str, &str)]) -> DisciplineChoice {
    let sizes: &[_] = match name {
        "codel" => &[("mtu", "1514 B")],
        "fq-codel" => &[("mtu", "1514 B"), ("quantum", "1514 B")],
        _ => &[],
    };
    let settings = [&[("form", "rfc"), ("ecn", "on")], sizes, settings].concat();
    DisciplineChoice::new(name, None, &settings).expect("valid settings")
}

/// The figures that are beyond tolerance when the discipline has these settings.
fn disagreements(name: &str, settings: &[(&str, &str)]) -> Vec<String> {
    let discipline = as_in_ns3(name, settings);
    let (_, queue, names) =
        CASES.into_iter().find(|case| case.0 == name).expect("one of the cases");
    let workloads = WORKLOADS.iter().filter(|workload| names.contains(&workload.name));
    workloads.flat_map(|workload| disagreements_on(workload, queue, &discipline)).collect()
}

fn disagreements_on(
    workload: &Workload,
    queue: &str,
    discipline: &DisciplineChoice,
) -> Vec<String> {
    let mut peer = figures::peer(workload, queue);
    peer.truncate(SEEDS);
    assert_eq!(peer.len(), SEEDS, "{queue} has not been measured on {}", workload.name);
    let ours: Vec<_> =
        peer.iter().map(|run| workload.run(discipline, run.seed, LONG_RUN, None)).collect();
    let cells = figures::compare(&peer, &ours).into_iter().filter(is_steady);
    cells
        .filter(|cell| cell.verdict() != Verdict::Inside)
        .map(|cell| format!("{}, {}: {cell}", workload.name, cell.name))
        .collect()
}

/// Whether two seeds are enough to say: of the response times, the medians of
/// the many short transfers are.
fn is_steady(cell: &Cell) -> bool {
    let many = ["6 segments, median s", "7-10 segments, median s", "11-20 segments, median s"];
    !cell.name.contains("segments") || many.contains(&cell.name.as_str())
}

/// Transfers that are repaired in a queue of their own, where nothing but TCP decides how
/// long that takes: with the departures of ns-3's recovery they take as long as in
/// ns-3, and by the RFCs up to a quarter longer.
#[test]
fn repairs_under_fq_codel_take_as_long_as_in_ns3() {
    let disagreements = |departures| -> Vec<String> {
        let workload = &WORKLOADS[0];
        let fq_codel = as_in_ns3("fq-codel", &[]);
        let peer = figures::peer(workload, "fqcodel");
        let run = |seed| workload.run(&fq_codel, seed, LONG_RUN, departures);
        let ours: Vec<_> = peer.iter().map(|peer| run(peer.seed)).collect();
        let repaired = ["21-50 segments, mean s", "51-200 segments, mean s"];
        let cells = figures::compare(&peer, &ours).into_iter();
        cells
            .filter(|cell| repaired.contains(&cell.name.as_str()))
            .filter(|cell| cell.verdict() != Verdict::Inside)
            .map(|cell| cell.to_string())
            .collect()
    };
    assert_eq!(disagreements(None), [""; 0]);
    assert_eq!(disagreements(Some("")).len(), 2, "both are out without the departures");
}

#[test]
fn codel_does_as_that_of_ns3() {
    assert_eq!(disagreements("codel", &[]), [""; 0]);
}

#[test]
fn fq_codel_does_as_that_of_ns3() {
    assert_eq!(disagreements("fq-codel", &[]), [""; 0]);
}

#[test]
fn pie_does_as_that_of_ns3() {
    assert_eq!(disagreements("pie", &[]), [""; 0]);
}

#[test]
fn a_parameter_that_is_a_fifth_off_is_noticed() {
    for (name, fault) in [
        ("codel", ("target", "6 ms")),
        ("codel", ("interval", "120 ms")),
        ("fq-codel", ("target", "6 ms")),
        ("fq-codel", ("interval", "120 ms")),
        ("pie", ("target", "18 ms")),
        ("pie", ("update", "18 ms")),
    ] {
        assert!(!disagreements(name, &[fault]).is_empty(), "{name} with {fault:?} goes unnoticed");
    }
}
