//! A full link for long: memory stays flat, and counters add up to the packet.
//!
//! Offloads of the hosts are off, so that the kernel's counters of interfaces count what the
//! link counts: packets.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::hosts::{Bed, Form};
use crate::load::Load;
use crate::network::{assert_prompt, percentile, setting, skip};

const RATES: [&str; 6] = ["--down", "100 Mbit/s", "--up", "100 Mbit/s", "--framing", "ethernet"];
/// Buffers and tables have grown by then.
const WARM_UP: u64 = 60;
/// What memory may grow by afterwards.
const GROWTH: u64 = 1 << 20;

/// Packets that each interface has received and sent.
fn packets(bed: &Bed) -> [[u64; 2]; 2] {
    let text = bed.network.says("cat", &["/proc/thread-self/net/dev"]);
    ["wan0:", "lan0:"].map(|name| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
        let columns: Vec<u64> = line.split_whitespace().map(|it| it.parse().unwrap()).collect();
        [columns[1], columns[9]]
    })
}

fn lost(queue: &Value) -> u64 {
    queue["counts"]["lost"].as_object().unwrap().values().map(|it| it.as_u64().unwrap()).sum()
}

#[test]
fn memory_stays_flat_and_counters_add_up_to_the_packet() {
    soak("link-soak", Form::Between);
}

#[test]
fn the_same_holds_on_a_router() {
    soak("router-soak", Form::Router);
}

fn soak(name: &str, form: Form) {
    let Some(bed) = Bed::new(name, form) else { return };
    for host in [&bed.user, &bed.provider] {
        if let Err(missing) = host.words("ethtool", "-K eth tso off gso off gro off") {
            return skip(name, &missing);
        }
    }
    let seconds = setting("TIDEGATE_LINK_SOAK_SECONDS", 4);
    let every = if seconds < 60 { 1 } else { 10 };
    let before = packets(&bed);
    let link = bed.network.run(&bed.words(&RATES)).unwrap();
    let load = Load::begin(&bed, true);
    let since = Instant::now();
    let mut memory = Vec::new();
    let mut times = Vec::new();
    let mut bytes = [0, 0];
    println!(
        "                   s  RSS MB  HWM MB  down Mbit/s  up Mbit/s  probes: p50 p99 max ms  flows  peak"
    );
    while since.elapsed() < Duration::from_secs(seconds) {
        sleep(Duration::from_secs(every));
        let at = since.elapsed().as_secs();
        let now = link.memory();
        if at >= WARM_UP.min(seconds / 2) {
            memory.push(now.now);
        }
        let new: [u64; 2] =
            std::array::from_fn(|it| load.bytes[it].load(std::sync::atomic::Ordering::Relaxed));
        let rates: [f64; 2] =
            std::array::from_fn(|it| (new[it] - bytes[it]) as f64 * 8.0 / 1e6 / every as f64);
        bytes = new;
        let mut trips = load.trips().times;
        let status = bed.network.status();
        println!(
            "{name:>12} {at:>7} {:>7.2} {:>7.2} {:>12.1} {:>10.1}          {:>5.1} {:>5.1} {:>5.1} {:>6} {:>5}",
            now.now as f64 / 1e6,
            now.most as f64 / 1e6,
            rates[0],
            rates[1],
            percentile(&mut trips, 50),
            percentile(&mut trips, 99),
            percentile(&mut trips, 100),
            status["queues"][0]["flows"],
            status["queues"][0]["flows_peak"],
        );
        times.append(&mut trips);
    }
    load.end();
    // Until nothing moves any more: connections that are closed say so for a while.
    let mut last = packets(&bed);
    for _ in 0..100 {
        sleep(Duration::from_millis(500));
        let now = packets(&bed);
        if std::mem::replace(&mut last, now) == now {
            break;
        }
    }
    let status = bed.network.status();
    let after = packets(&bed);
    let moved = |interface: usize, way: usize| after[interface][way] - before[interface][way];
    for (number, (from, to)) in [(0, 1), (1, 0)].into_iter().enumerate() {
        let queue = &status["queues"][number];
        let count = |group: &str, key: &str| queue[group][key].as_u64().unwrap();
        let (arrived, sent) = (count("counts", "arrived_packets"), count("counts", "sent_packets"));
        let missed = count("failures", "missed_frames");
        println!(
            "{name}, {}: {} came to the interface, {arrived} to the link, {missed} were missed; {} were lost \
             there, {sent} sent; {} left by the interface",
            queue["direction"],
            moved(from, 0),
            lost(queue),
            moved(to, 1)
        );
        assert_eq!(moved(from, 0), arrived + missed, "{queue}");
        assert_eq!(arrived, sent + lost(queue), "{queue}");
        assert_eq!(sent, moved(to, 1) + count("failures", "unsent_packets"), "{queue}");
    }
    let p99 = percentile(&mut times, 99);
    let (least, most) = (memory.iter().min().unwrap(), memory.iter().max().unwrap());
    println!(
        "{name}, {seconds} s: resident {:.2} to {:.2} MB after the first {} s; probes p50 {:.2} ms, p99 {p99:.2} ms, at most {:.2} ms",
        *least as f64 / 1e6,
        *most as f64 / 1e6,
        WARM_UP.min(seconds / 2),
        percentile(&mut times, 50),
        percentile(&mut times, 100),
    );
    link.stop(&bed.network);
    bed.network.assert_clean("a soak");
    if seconds >= 2 * WARM_UP {
        assert!(*most <= memory[0] + GROWTH, "memory grows from {} to {most}", memory[0]);
    }
    assert_prompt(&mut times);
}
