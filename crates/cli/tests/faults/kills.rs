//! A link that is killed at any time, under load, and starts anew.
//!
//! Every fourth is killed while it starts. What carries next is another run, `link stop`, or
//! with `--fail open` the bridge or no rules; each has to find whatever the last one left.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::hosts::{Bed, Form};
use crate::load::Load;
use crate::network::{assert_prompt, percentile, setting};

const RATES: [&str; 4] = ["--down", "50 Mbit/s", "--up", "20 Mbit/s"];
/// What a link may have resident: two times 16 MB of frames, and the program.
const MOST_MEMORY: u64 = 64 << 20;

fn killed(form: Form, name: &str, count: u64, seed: u64) {
    let Some(bed) = Bed::new(name, form) else { return };
    let network = &bed.network;
    let mut random = Pcg64::seed_from_u64(seed);
    let first = network.run(&bed.words(&RATES)).unwrap();
    let load = Load::begin(&bed, false);
    first.kill();
    let mut memory = Vec::new();
    let mut starts = Vec::new();
    let (mut during_start, mut mended) = (0, 0);
    for number in 0..count {
        let fail = ["closed", "open"][usize::from(random.random_bool(0.5))];
        let words = bed.words(&[&RATES[..], &["--fail", fail]].concat());
        if number % 4 == 3 {
            let link = network.start(&words);
            sleep(Duration::from_millis(random.random_range(0..120)));
            link.kill();
            during_start += 1;
        } else {
            let since = Instant::now();
            let link = network.run(&words).unwrap_or_else(|said| panic!("run {number}: {said}"));
            starts.push(since.elapsed().as_secs_f64() * 1e3);
            sleep(Duration::from_millis(random.random_range(20..400)));
            // The process beside the last one has not undone what this one needs.
            let is_in_place = match form {
                Form::Between => !network.ip("-oneline link show dev lan0").contains(" master "),
                Form::Router => !network.rules().is_empty(),
            };
            assert!(is_in_place, "run {number}, {fail}: {:#?}", network.left());
            memory.push(link.memory().most);
            link.kill();
        }
        // Every other time, the next one comes at once.
        let pause = random.random_range(0..150) * random.random_range(0..2);
        sleep(Duration::from_millis(pause));
        if random.random_bool(0.25) {
            // With nothing left to mend, it says that no link runs; both are right.
            let said = network.link(&["stop"]);
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(said.is_empty() || said.contains("no link runs"), "{number}: {said}");
            mended += 1;
        }
    }
    let last = network.run(&bed.words(&RATES)).unwrap();
    // Connections have survived all of it, or are far into their waiting by now.
    sleep(Duration::from_secs(1));
    let trips = load.trips();
    last.stop(network);
    load.end();
    network.assert_clean("kills");
    let mut times = trips.times;
    let p99 = percentile(&mut times, 99);
    let most = memory.iter().copied().max().unwrap_or_default();
    println!(
        "{name}: {count} kills, {during_start} of them during the start; {mended} times 'stop'; \
         a start takes {:.0} ms (p50), {:.0} ms at most; memory at most {:.1} MB, of the last \
         {:.1} MB; {} probes, {} back, p50 {:.1} ms, p99 {p99:.1} ms, at most {:.1} ms",
        percentile(&mut starts, 50),
        percentile(&mut starts, 100),
        most as f64 / 1e6,
        memory.last().copied().unwrap_or_default() as f64 / 1e6,
        trips.sent,
        times.len(),
        percentile(&mut times, 50),
        percentile(&mut times, 100),
    );
    assert_prompt(&mut times);
    assert!(most < MOST_MEMORY, "{most} bytes");
}

#[test]
fn a_cable_that_is_killed_leaves_nothing() {
    killed(Form::Between, "kills-cable", setting("TIDEGATE_KILLS", 6), 1);
}

#[test]
fn a_router_whose_link_is_killed_keeps_nothing_of_it() {
    killed(Form::Router, "kills-router", setting("TIDEGATE_KILLS", 6), 2);
}
