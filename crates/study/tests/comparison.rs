//! What a comparison makes of runs whose figures are known.

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, DataFiles};
use tidegate_study::comparison::{Comparison, TrafficResult};
use tidegate_study::experiment::{self, Forget};

/// Every file that a scenario names holds this.
struct OneFile(&'static str);

impl DataFiles for OneFile {
    fn open(&self, _name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.as_bytes()))
    }
}

fn scenario(text: &str, data: &'static str) -> Scenario {
    file::parse("test.toml", text, &OneFile(data)).unwrap_or_else(|error| panic!("{error}"))
}

/// What the sources of traffic got under the one discipline.
fn traffic(scenario: &Scenario) -> Vec<TrafficResult> {
    let Ok(runs) = experiment::run(scenario, 1, &AtomicBool::new(false), &Forget);
    let mut comparison = Comparison::of(scenario, &runs);
    comparison.disciplines.remove(0).traffic
}

#[test]
fn throughput_of_what_has_no_end_counts_from_the_end_of_the_warm_up() {
    let text = r#"
        title = "endless"
        duration = "20 s"
        warm_up = "10 s"
        seeds = [1]
        disciplines = ["efd"]
        dumbbell = { pairs = 2, rate = "8 Mbit/s", buffer = "100 packets" }
        [[traffic.transfers]]
        name = "backup"
        from = "sender1"
        to = "receiver1"
        count = 1
        sizes = "endless"
        [[traffic.cbr]]
        name = "call"
        from = "sender2"
        to = "receiver2"
        rate = "80 kbit/s"
        packet = "200 B"
    "#;
    let sources = traffic(&scenario(text, ""));
    let rate = |index: usize| {
        sources[index].throughput_bps.as_ref().expect("there is one run").estimate().value
    };
    // 8 Mbit/s less the headers and the call.
    assert!((7.2e6..8.0e6).contains(&rate(0)), "{}", rate(0));
    assert!((79_000.0..80_200.0).contains(&rate(1)), "{}", rate(1));
}

const ROWS: &str = "start_s,size_bytes\n\
                    0,125\n0,125\n0,125\n0,125\n0,125\n\
                    0,125\n0,125\n0,125\n0,125\n0,125\n";

/// Ten packets of 125 bytes at once on a link on which each takes a millisecond, and
/// another to get there: the fourth is the last to be there in 5 ms.
fn ten(deadline: &str) -> TrafficResult {
    let text = format!(
        "title = \"t\"\nduration = \"10 s\"\nseeds = [1]\ndisciplines = [\"fifo\"]\n\
         [[link]]\nfrom = \"left\"\nto = \"right\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
         queue = \"tested\"\nbuffer = \"300 packets\"\n\
         [[traffic.frames]]\nname = \"ten\"\nfrom = \"left\"\nto = \"right\"\n\
         file = \"frames\"\n{deadline}"
    );
    traffic(&scenario(&text, ROWS)).remove(0)
}

#[test]
fn datagrams_are_late_only_where_the_scenario_sets_a_deadline() {
    let with = ten("deadline = \"5 ms\"\n");
    assert_eq!(with.deadline_s, Some(0.005));
    assert_eq!(with.late_ratio.as_ref().map(|ratio| ratio.estimate().value), Some(0.6));
    let without = ten("");
    assert_eq!((without.deadline_s, without.late_ratio), (None, None));
}

/// A run may have been kept from a comparison of several seeds, which has no parts.
#[test]
fn a_recording_whose_run_is_not_cut_has_no_parts() {
    let text = "title = \"t\"\nduration = \"30 s\"\nseeds = 1\ndisciplines = [\"fifo\"]\n[dumbbell]\n\
                [[traffic.transfers]]\nname = \"log\"\nfrom = \"senders\"\nto = \"receivers\"\n\
                log = \"log.csv\"\n";
    let scenario = scenario(text, "start_s,size_bytes\n0,1000\n9,2000\n");
    assert_eq!(scenario.part(), Some(tidegate_core::Span::seconds(3)));
    let run = RunSummary::new(&scenario, "fifo", 1);
    assert!(Comparison::of(&scenario, std::slice::from_ref(&run)).parts.is_empty());
    let cut = Comparison::of(&scenario, &[run.in_parts(&scenario)]);
    assert_eq!(cut.parts[0].runs, 10);
}

#[test]
fn a_lookup_that_fails_takes_as_long_as_its_host_waits() {
    let text = r#"
        title = "names"
        duration = "300 s"
        warm_up = "10 s"
        seeds = [1]
        disciplines = ["fifo"]
        [[link]]
        from = "host"
        to = "resolver"
        rate = "10 Mbit/s"
        delay = "10 ms"
        queue = "tested"
        loss = 0.5
        back = { loss = 0 }
        [[traffic.dns]]
        name = "names"
        from = "host"
        to = "resolver"
        per_second = 20
        timeout = "1 s"
        attempts = 3
        stop = "290 s"
    "#;
    let source = traffic(&scenario(text, "")).remove(0);
    assert!(!source.datagrams && !source.is_transfers());
    let lookups = source.lookups.expect("it is a source of lookups");
    assert_eq!(lookups.ended, source.started);
    let value = |sample: Option<tidegate_study::Sample>| sample.unwrap().estimate().value;
    // Half of the queries are lost: half of the lookups are asked again, an eighth fails. They
    // take 0, 1, 2 and 3 s in 1/2, 1/4, 1/8 and 1/8 of all, and 20.2 ms where an answer comes.
    let deviation = 5.0 / (lookups.ended as f64).sqrt();
    assert!((value(lookups.asked_again_ratio) - 0.5).abs() < 0.5 * deviation);
    assert!((value(lookups.failed_ratio) - 0.125).abs() < 0.33 * deviation);
    let mean = value(lookups.time.mean_s);
    assert!((mean - (0.875 + 0.875 * 0.0202)).abs() < 1.05 * deviation, "{mean}");
    assert!((value(lookups.time.max_s) - 3.0).abs() < 1e-9);
}
