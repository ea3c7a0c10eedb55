//! Interfaces that vanish under a link, and come back.

use std::thread::sleep;
use std::time::Duration;

use crate::hosts::{Bed, Form};
use crate::load::Load;
use crate::network::setting;

const RATES: [&str; 4] = ["--down", "50 Mbit/s", "--up", "20 Mbit/s"];

#[test]
fn a_link_whose_interface_vanishes_ends_and_runs_again_when_it_is_back() {
    let Some(bed) = Bed::new("removed", Form::Between) else { return };
    let network = &bed.network;
    let count = setting("TIDEGATE_REMOVALS", 2);
    for number in 0..count {
        let fail = ["closed", "open"][(number / 2) as usize % 2];
        let words = bed.words(&[&RATES[..], &["--fail", fail]].concat());
        let link = network.run(&words).unwrap_or_else(|said| panic!("{number}: {said}"));
        let load = Load::begin(&bed, false);
        sleep(Duration::from_millis(200 + 37 * (number % 10)));
        let gone = ["wan0", "lan0"][number as usize % 2];
        network.ip(&format!("link delete {gone}"));
        assert_eq!(link.ended(), Some(1), "{number}");
        load.end();
        // With `--fail open`, the bridge has the other one, until the link is stopped.
        let _ = network.link(&["stop"]);
        network.assert_clean("the removal of an interface");
        for name in ["lan0", "wan0"].into_iter().filter(|name| *name != gone) {
            network.ip(&format!("link delete {name}"));
        }
        bed.connect();
    }
    let link = network.run(&bed.words(&RATES)).unwrap();
    let load = Load::begin(&bed, false);
    sleep(Duration::from_millis(500));
    assert!(!load.trips().times.is_empty());
    link.stop(network);
    load.end();
    network.assert_clean("the end");
    println!("removed: {count} removals");
}
