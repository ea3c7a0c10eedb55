//! A sender whose every packet has other addresses and ports, beside a user who sends a
//! hundred small packets a second.
//!
//! Such a sender fills tables of flows, and each of its packets is the first of its flow, to
//! which disciplines give a turn at once. No discipline can tell the user from it; what a link
//! promises is that memory has a bound, and that each packet is counted. Where the order is
//! bound to that of arrival, or queues take turns, nobody starves. LAS and its kin prefer every
//! newcomer to a user who has had a few packets, and deadlines prefer short flows: there, the
//! user's packets wait or are given up for as long as the flood lasts, as the disciplines say.
//!
//! A wait is counted in bytes, so that a machine that pauses a program does not lengthen it:
//! what was in the queue before a packet is bounded by the buffer, and what came later and
//! went out earlier is known from the numbers that all packets carry. Times are printed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::cable::{Cable, HOST, ethernet, receive, udp};
use crate::hosts::Form;
use crate::network::{percentile, setting};

/// With those whose users do not starve.
const DISCIPLINES: [(&str, bool); 7] = [
    ("efd", true),
    ("las", false),
    ("las-log", false),
    ("lars", false),
    ("fq-codel", true),
    ("cake", true),
    ("deadlines", false),
];
/// Flows that a discipline may remember, and those with packets in the queue or on their way.
const MOST_FLOWS: u64 = 65_536 + 4_000;
const RATE: &str = "20 Mbit/s";
/// 100 ms at this rate.
const BUFFER: u64 = 250_000;
const PACKETS_A_SECOND: u64 = 30_000;
const BETWEEN_PROBES: Duration = Duration::from_millis(10);
const PORT: u16 = 4_780;
/// The most that overtakes a probe where it does not starve. Of round robin with 1024 queues,
/// a round takes a turn of each, and all of it may have come later. In 9000 floods like this
/// one, simulated as the tests of the core do, it was 222 kB at most, and 381 kB where the sender
/// pauses for up to 300 ms; what starves is overtaken by all the rest of a flood, 2.5 MB each
/// second.
const MOST_OVERTAKING: u64 = 2 * BUFFER;
/// As many probes come back where none starves: the simulated floods had 13 of a hundred at
/// least. LAS lets one pass, which comes before all others.
const FEWEST_PROBES: usize = 3;
/// As much as two times 16 MB of frames, and the program with its tables.
const MOST_MEMORY: u64 = 96 << 20;
/// What memory may grow by in the second half of a flood, in which a table of flows may still
/// be filling.
const GROWTH: u64 = 8 << 20;

#[test]
fn a_flood_of_flows_takes_neither_memory_nor_time_without_bound() {
    floods("floods", Form::Between);
}

#[test]
fn nor_does_it_on_a_router() {
    floods("router-floods", Form::Router);
}

fn floods(name: &str, form: Form) {
    let Some(cable) = Cable::new(name, form) else { return };
    let seconds = setting("TIDEGATE_FLOOD_SECONDS", 1);
    println!(
        "{name}, {seconds} s each: RSS before, VmHWM half way, VmHWM at the end, memory for frames in MB; \
         flows_peak; packets offered, lost; probes sent, back, ms p50 p99 max; most that overtook one, kB"
    );
    for (discipline, is_prompt) in DISCIPLINES {
        flood(&cable, discipline, is_prompt, Duration::from_secs(seconds));
        cable.network.assert_clean("a flood");
    }
}

fn flood(cable: &Cable, discipline: &str, is_prompt: bool, time: Duration) {
    let words = ["--down", RATE, "--up", RATE, "--discipline", discipline];
    let link = cable.network.run(&cable.form.words(&words)).unwrap();
    let before = link.memory();
    let over = AtomicBool::new(false);
    let ((offered, probes, half), queued, came) = thread::scope(|scope| {
        let reader = scope.spawn(|| read(cable, &over));
        let sent = send(cable, time, || link.memory());
        let queued = cable.network.status()["queues"][0]["queued_bytes"].as_u64().unwrap();
        // The buffer is empty by then.
        thread::sleep(Duration::from_millis(400));
        over.store(true, Ordering::Relaxed);
        (sent, queued, reader.join().unwrap())
    });
    let after = link.memory();
    let status = cable.network.status();
    let queue = &status["queues"][0];
    let count = |value: &serde_json::Value| value.as_u64().unwrap();
    let counts = &queue["counts"];
    let lost: u64 = counts["lost"].as_object().unwrap().values().map(count).sum();
    let failures = &queue["failures"];
    let frames = count(&queue["memory_bytes"]);
    let mut trips: Vec<f64> = came.iter().filter_map(|came| came.trip_ms).collect();
    let back = trips.len();
    let overtaking = most_overtaking(&came);
    let p99 = percentile(&mut trips, 99);
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    println!(
        "{discipline:>9} {:>6} {:>6} {:>6} {:>5} {:>6} {:>7} {lost:>7} {probes:>5} {back:>5} {:>6.1} {p99:>6.1} {:>6.1} {:>6.1}",
        megabytes(before.now),
        megabytes(half.most),
        megabytes(after.most),
        megabytes(frames),
        count(&queue["flows_peak"]),
        offered,
        percentile(&mut trips, 50),
        percentile(&mut trips, 100),
        overtaking as f64 / 1e3,
    );
    link.stop(&cable.network);
    let missed = count(&failures["missed_frames"]) + count(&failures["no_memory_packets"]);
    assert_eq!(offered + probes, count(&counts["arrived_packets"]) + missed, "{queue}");
    assert_eq!(count(&counts["arrived_packets"]), count(&counts["sent_packets"]) + lost, "{queue}");
    assert_eq!(
        came.len() as u64 + count(&failures["unsent_packets"]),
        count(&counts["sent_packets"]),
        "{queue}"
    );
    assert!(after.most < MOST_MEMORY, "{discipline}: {after:?}");
    assert!(after.most < half.most + GROWTH, "{discipline}: {half:?}, {after:?}");
    assert!(count(&queue["flows_peak"]) < MOST_FLOWS, "{discipline}: {queue}");
    assert!(queued <= BUFFER, "{discipline}: {queued} bytes");
    let starves = back < FEWEST_PROBES || overtaking > MOST_OVERTAKING;
    assert!(!is_prompt || !starves, "{discipline}: {back} probes, {overtaking} bytes");
}

/// Sends for some time; returns packets of the flood, probes, and what `look` found half way.
fn send<T>(cable: &Cable, time: Duration, look: impl Fn() -> T) -> (u64, u64, T) {
    let mut random = Pcg64::seed_from_u64(3);
    let begun = Instant::now();
    let (mut offered, mut probes, mut half) = (0, 0, None);
    while begun.elapsed() < time {
        let now = begun.elapsed();
        if half.is_none() && now > time / 2 {
            half = Some(look());
        }
        while probes * (BETWEEN_PROBES.as_millis() as u64) < now.as_millis() as u64 {
            let number = (offered + probes).to_ne_bytes();
            let payload = [&number[..], &monotonic().to_ne_bytes(), &[0; 56]].concat();
            let packet = udp([[203, 0, 113, 9], HOST], [PORT, PORT], &payload);
            cable.outside.send(&[ethernet(&[], 0x800), packet].concat()).unwrap();
            probes += 1;
        }
        let due = (now.as_secs_f64() * PACKETS_A_SECOND as f64) as u64;
        // Not so many at once that probes have to wait here.
        for _ in 0..(due.saturating_sub(offered)).min(64) {
            // A router gives up on some addresses, and asks for others.
            let addresses = match cable.form {
                Form::Between => [random.random(), random.random()],
                Form::Router => {
                    let [b, c, d] = random.random();
                    [[random.random_range(128..190), b, c, d], HOST]
                }
            };
            let ports = [random.random(), random.random_range(0..PORT)];
            let mut payload = vec![0; random.random_range(18..400)];
            payload[..8].copy_from_slice(&(offered + probes).to_ne_bytes());
            let packet = udp(addresses, ports, &payload);
            cable.outside.send(&[ethernet(&[], 0x800), packet].concat()).unwrap();
            offered += 1;
        }
        if due <= offered {
            thread::sleep(Duration::from_micros(300));
        }
    }
    (offered, probes, half.unwrap())
}

/// Nanoseconds of the clock that both threads have.
fn monotonic() -> u64 {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A packet that came out.
struct Came {
    /// In the order in which they were sent.
    number: u64,
    bytes: u64,
    /// How long it was under way, of a probe.
    trip_ms: Option<f64>,
}

/// Reads what comes out until it is over.
fn read(cable: &Cable, over: &AtomicBool) -> Vec<Came> {
    let (mut came, mut buffer) = (Vec::new(), vec![0; 2_000]);
    while !over.load(Ordering::Relaxed) {
        let look = Duration::from_millis(20);
        let Some(frame) = receive(&cable.inside, &mut buffer, look) else { continue };
        let word = |at: usize| u64::from_ne_bytes(frame[at..at + 8].try_into().unwrap());
        // Nobody else sends to this port.
        let is_probe = frame[36..38] == PORT.to_be_bytes();
        let trip_ms = is_probe.then(|| (monotonic() - word(50)) as f64 / 1e6);
        came.push(Came { number: word(42), bytes: frame.len() as u64, trip_ms });
    }
    came
}

/// The most bytes that were sent later than a probe and came out before it.
fn most_overtaking(came: &[Came]) -> u64 {
    let probes = came.iter().enumerate().filter(|(_, probe)| probe.trip_ms.is_some());
    let overtaking = probes.map(|(at, probe)| {
        let later = came[..at].iter().filter(|other| other.number > probe.number);
        later.map(|other| other.bytes).sum()
    });
    overtaking.max().unwrap_or(0)
}
