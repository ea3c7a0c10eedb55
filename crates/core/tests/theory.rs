//! Disciplines against queueing theory, where theory has an exact answer.
//!
//! Jobs arrive as a Poisson process, each as one batch of equal packets with a flow
//! of its own: the M/G/1 queue. With `S` the size of a job in packet times, `rho`
//! the load, and `rho_x`, `m2_x` the load and second moment of sizes cut off at
//! `x`, the mean response of a job of size `x` is (Kleinrock, volume 2, chapter 4;
//! style of `EFD section 2`)
//!
//! - FIFO: `x + lambda E[S^2] / 2(1 - rho)`;
//! - LAS, which is foreground-background: `x/(1 - rho_x) + lambda m2_x / 2(1 - rho_x)^2`;
//! - two FIFO levels with threshold `a`, which is EFD without feedback:
//!   `x + lambda m2_a / 2(1 - rho_a)` up to `a`, and
//!   `(x + lambda E[S^2] / 2(1 - rho)) / (1 - rho_a)` above;
//! - processor sharing, which is SCFQ, or DRR with a quantum of one packet: `x/(1 - rho)`;
//! - LARS with a half-life far beyond all responses is LAS.
//!
//! Theory serves jobs in infinitely small pieces and preempts at once. A packet in
//! service is not preempted, which shifts a response by up to a packet time
//! wherever theory would have preempted: [`QUANTUM`] allows for this. Each mean is
//! estimated from independent replications; theory must lie in their 99% interval,
//! widened by the quantum. The same test with a link that is 5% slower must fail,
//! which shows that it can detect such an error.

use tidegate_core::{Buffer, Bytes, FlowKey, Packet, Port, Span, Time, registry};

use rand::Rng;
use rand_pcg::Pcg64;

/// A packet time.
const PACKET: Span = Span::micros(1_000);
/// Size of a job in packets, with its probability: mean 75, coefficient of variation 1.6.
const SIZES: [(u64, f64); 3] = [(20, 0.7), (100, 0.2), (410, 0.1)];
const LOAD: f64 = 0.7;
const THRESHOLD: u64 = 60;
const REPLICATIONS: u64 = 24;
const JOBS: usize = 12_000;
/// The first jobs meet a queue that is still filling up.
const WARM_UP: usize = JOBS / 10;
/// 99.5% quantile of Student's distribution with 23 degrees of freedom.
const STUDENT_99: f64 = 2.807;
/// Packet times by which packets may differ from theory's fluid.
const QUANTUM: f64 = 1.5;

/// `E[min(S, cut)^power]`.
fn moment(power: i32, cut: u64) -> f64 {
    SIZES.iter().map(|(size, p)| p * ((*size).min(cut) as f64).powi(power)).sum()
}

fn arrival_rate() -> f64 {
    LOAD / moment(1, u64::MAX)
}

/// Mean response times by size, one line for each replication.
fn replicate(name: &'static str, settings: &[(&str, &str)], packet: Span) -> Vec<Vec<f64>> {
    let one = |seed| {
        let discipline = registry::find(name).expect("it is registered");
        let built = discipline.build(settings, Buffer::packets(u32::MAX), seed).expect("valid");
        mean_responses(Port::new(built), &jobs(seed), packet)
    };
    (1..=REPLICATIONS).map(one).collect()
}

/// Times of arrival and sizes.
fn jobs(seed: u64) -> Vec<(Time, u64)> {
    let mut random = Pcg64::new(u128::from(seed), 1);
    let mut uniform = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut now = 0.0;
    let mut job = || {
        now -= (1.0 - uniform()).ln() / arrival_rate();
        let (mut rest, mut which) = (uniform(), 0);
        while which < SIZES.len() - 1 && rest >= SIZES[which].1 {
            rest -= SIZES[which].1;
            which += 1;
        }
        (Time((now * PACKET.0 as f64) as u64), SIZES[which].0)
    };
    (0..JOBS).map(|_| job()).collect()
}

/// Serves all jobs over a link that takes `packet` for each packet; mean
/// responses by size, in units of [`PACKET`].
fn mean_responses(mut port: Port, jobs: &[(Time, u64)], packet: Span) -> Vec<f64> {
    let mut left: Vec<u64> = jobs.iter().map(|(_, packets)| *packets).collect();
    let mut sums = vec![(0.0, 0_u32); SIZES.len()];
    let (mut now, mut arrived) = (Time::ZERO, 0);
    loop {
        if port.backlog().packets == 0 {
            let Some((at, _)) = jobs.get(arrived) else { break };
            now = now.max(*at);
        }
        while let Some((at, packets)) = jobs.get(arrived).filter(|(at, _)| *at <= now) {
            let [a, b, c, d] = (arrived as u32).to_be_bytes();
            let flow = FlowKey::v4([a, b, c, d], 1, [10, 0, 0, 1], 1, FlowKey::UDP);
            for _ in 0..*packets {
                port.offer(now.max(*at), Packet::new(arrived as u64, flow, Bytes(1_000)));
            }
            arrived += 1;
        }
        let sent = port.take(now).expect("a packet is queued");
        now += packet;
        let job = sent.handle as usize;
        left[job] -= 1;
        if left[job] == 0 && job >= WARM_UP {
            let size =
                SIZES.iter().position(|(size, _)| *size == jobs[job].1).expect("a known size");
            sums[size].0 += now.since(jobs[job].0).0 as f64 / PACKET.0 as f64;
            sums[size].1 += 1;
        }
    }
    sums.iter().map(|(sum, count)| sum / f64::from(*count)).collect()
}

/// For each size: theory, the estimate, half of the interval.
fn compare(replications: &[Vec<f64>], theory: impl Fn(f64) -> f64) -> Vec<(f64, f64, f64)> {
    let one = |which: usize| {
        let values: Vec<f64> = replications.iter().map(|means| means[which]).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half = STUDENT_99 * (squares / (count - 1.0) / count).sqrt();
        (theory(SIZES[which].0 as f64), mean, half)
    };
    (0..SIZES.len()).map(one).collect()
}

fn agrees(rows: &[(f64, f64, f64)]) -> bool {
    rows.iter().all(|(theory, mean, half)| (theory - mean).abs() <= half + QUANTUM)
}

fn check(name: &'static str, settings: &[(&str, &str)], theory: impl Fn(f64) -> f64) {
    let right = compare(&replicate(name, settings, PACKET), &theory);
    assert!(agrees(&right), "{name}: (theory, mean, half width) by size: {right:.1?}");
    let slower = Span(PACKET.0 * 105 / 100);
    let wrong = compare(&replicate(name, settings, slower), &theory);
    assert!(!agrees(&wrong), "{name}: a link that is 5% slower goes unnoticed: {wrong:.1?}");
}

/// Wait of a job that arrives in front of the work of jobs cut off at `cut`.
fn wait(cut: u64) -> f64 {
    let rate = arrival_rate();
    rate * moment(2, cut) / (2.0 * (1.0 - rate * moment(1, cut)))
}

#[test]
fn fifo_has_the_response_times_of_pollaczek_and_khinchine() {
    check("fifo", &[], |x| x + wait(u64::MAX));
}

/// Mean response under LAS.
fn foreground_background(x: f64) -> f64 {
    let load = arrival_rate() * moment(1, x as u64);
    x / (1.0 - load) + wait(x as u64) / (1.0 - load)
}

#[test]
fn las_has_those_of_foreground_background() {
    check("las", &[], foreground_background);
}

#[test]
fn lars_that_hardly_decays_has_those_of_foreground_background() {
    check("lars", &[("half_life", "86400 s")], foreground_background);
}

#[test]
fn efd_has_those_of_two_fifo_levels() {
    let load = arrival_rate() * moment(1, THRESHOLD);
    let theory = |x: f64| {
        if x <= THRESHOLD as f64 {
            x + wait(THRESHOLD)
        } else {
            (x + wait(u64::MAX)) / (1.0 - load)
        }
    };
    check("efd", &[("threshold", &format!("{THRESHOLD} packets"))], theory);
}

#[test]
fn fair_queueing_with_small_packets_has_those_of_processor_sharing() {
    check("scfq", &[], |x| x / (1.0 - LOAD));
    check("drr", &[("quantum", "1000 B")], |x| x / (1.0 - LOAD));
}
