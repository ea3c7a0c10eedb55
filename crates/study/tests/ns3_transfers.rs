//! Transfers of ns-3.37 in our dumbbell, one by one: a short form of what the example
//! `crosscheck_aqm` prints for `repairs` and `transfers`.

// The modules are the example's, and this test uses its own part of them.
#![allow(dead_code)]

#[path = "../examples/crosscheck_aqm/figures.rs"]
mod figures;
#[path = "../examples/crosscheck_aqm/one_by_one.rs"]
mod one_by_one;
#[path = "../examples/crosscheck_aqm/repairs.rs"]
mod repairs;
#[path = "../examples/crosscheck_aqm/transfers.rs"]
mod transfers;
#[path = "../examples/crosscheck_aqm/workload.rs"]
mod workload;

use one_by_one::Pair;
use tidegate_sim::scenario::DisciplineChoice;

/// `dumbbell --load 8 --seed 1 --duration 60 --flows`.
const MINUTE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/ns3/results/transfers-load8-minute.csv");

fn alike(pairs: &[Pair]) -> usize {
    pairs.iter().filter(|pair| pair.is_alike()).count()
}

/// Of 300 transfers that lose the same packets, at least 95% end within a millisecond of
/// when ns-3's end, and fewer do when any of the departures of its recovery is left out.
#[test]
fn lost_packets_are_repaired_as_in_ns3() {
    let all = repairs::pairs(None);
    assert_eq!(all.len(), 300);
    assert!(alike(&all) >= 285, "{} of 300", alike(&all));
    for (without, most) in [
        ("recovery_point,repair_end", 200),
        ("recovery_window,repair_end", alike(&all) - 1),
        ("recovery_window,recovery_point", 200),
        ("", 100),
    ] {
        let left = alike(&repairs::pairs(Some(without)));
        assert!(left <= most, "{left} of 300 with only [{without}]");
    }
}

/// The 1 015 transfers that ns-3 begins in a minute at 8 Mb/s: at least 95% take as long
/// as there to a millisecond, which is less than one packet at the bottleneck. Through
/// another queue they do not.
#[test]
fn transfers_take_as_long_as_in_ns3() {
    let through = |name| {
        let discipline = DisciplineChoice::new(name, None, &[]).expect("it is registered");
        one_by_one::pairs(&discipline, 8.0, 1, MINUTE, None).expect("the file is kept")
    };
    let fifo = through("fifo");
    assert_eq!(fifo.len(), 1_015);
    assert!(alike(&fifo) >= 964, "{} of 1 015", alike(&fifo));
    let codel = alike(&through("codel"));
    assert!(codel < 500, "{codel} of 1 015 are alike through another queue");
}
