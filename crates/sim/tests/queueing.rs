//! A link of the simulator against queueing theory: the delay of Poisson arrivals
//! through FIFO is that of M/D/1 and M/M/1 (Pollaczek and Khinchine), within the
//! 99% interval of independent replications. The same test on a link that is 5%
//! slower must fail. And each single packet waits exactly as long as Lindley's recursion
//! says, which no interval can show.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tidegate_core::Stream;
use tidegate_core::{Buffer, Bytes, Dscp, Ecn, FlowKey, Rate, Span, Time, discipline::fifo};
use tidegate_sim::metrics::{Discard, PacketEvent, PacketRecord, Recorder, RunSummary};
use tidegate_sim::scenario::{
    Capacity, DisciplineChoice, LinkSpec, Marking, NodeId, QueueSpec, Scenario, TrafficKind,
    TrafficSpec,
};
use tidegate_sim::simulation;
use tidegate_sim::trace::capture::{Capture, CapturedPacket};
use tidegate_sim::trace::hosts::Hosts;

const RATE: Rate = Rate(8_000_000);
/// A rate at which a packet takes 5% longer.
const SLOWER: Rate = Rate(RATE.0 * 100 / 105);
const PROPAGATION: Span = Span::millis(3);
/// Mean packet: 1 ms at [`RATE`].
const MEAN_SIZE: f64 = 1_000.0;
const LOAD: f64 = 0.8;
const REPLICATIONS: u64 = 24;
const SECONDS: u64 = 120;
const WARM_UP: Span = Span::seconds(2);
/// 99.5% quantile of Student's distribution with 23 degrees of freedom.
const STUDENT_99: f64 = 2.807;

/// Poisson arrivals at [`LOAD`] with sizes from `size`, which has mean [`MEAN_SIZE`].
fn arrivals(seed: u64, size: impl Fn(&mut Stream) -> f64) -> Capture {
    let mut stream = Stream::new(seed, "arrivals");
    let between = Span::from_seconds(0.001 / LOAD);
    let flow = FlowKey::v4([192, 0, 2, 1], 1, [10, 0, 0, 1], 1, FlowKey::UDP);
    let mut at = Time::ZERO;
    let mut packets = Vec::new();
    while at < Time(Span::seconds(SECONDS).0) {
        at += stream.exponential_span(between);
        let dscp = Dscp::DEFAULT;
        let size = Bytes(size(&mut stream).round().max(1.0) as u64);
        packets.push(CapturedPacket { at, flow, size, tcp: None, dscp, ecn: Ecn::NotEct });
    }
    Capture { packets, ..Capture::default() }
}

/// The packets through a link of this rate.
fn run(capture: Capture, rate: Rate, seed: u64, recorder: &mut dyn Recorder) -> RunSummary {
    let fifo = DisciplineChoice::with_defaults(&fifo::ENTRY);
    let link = |name: &str, from, to| LinkSpec {
        name: name.into(),
        from: NodeId(from),
        to: NodeId(to),
        capacity: Capacity::Fixed(rate),
        delay: PROPAGATION,
        loss: 0.0,
        queue: QueueSpec::Tested(Buffer::packets(u32::MAX)),
    };
    let scenario = Scenario {
        measured: Vec::new(),
        title: "one link".into(),
        description: String::new(),
        duration: Span::seconds(SECONDS),
        warm_up: WARM_UP,
        seeds: vec![seed],
        sample_every: Span::seconds(1),
        size_classes: vec![],
        short_flow: Bytes(30_000),
        long_flow: Bytes(1_000_000),
        disciplines: vec![fifo.clone()],
        nodes: vec!["inside".into(), "outside".into()],
        links: vec![link("down", 1, 0), link("up", 0, 1)],
        talks: Vec::new(),
        traffic: vec![TrafficSpec {
            name: "packets".into(),
            start: Time::ZERO,
            stop: Time::FAR_FUTURE,
            class: 0,
            marking: Marking::default(),
            deadline: None,
            kind: TrafficKind::Packets {
                call: None,
                inside: NodeId(0),
                outside: NodeId(1),
                capture: Arc::new(capture),
                hosts: Hosts::new([[10, 0, 0, 1].into()]),
                only: None,
            },
        }],
    };
    let never = AtomicBool::new(false);
    let summary = simulation::run(&scenario, &fifo, seed, recorder, &never);
    assert_eq!(summary.traffic[0].datagrams_lost, 0);
    summary
}

/// Mean delay in milliseconds through a link of this rate.
fn mean_delay(capture: Capture, rate: Rate, seed: u64) -> f64 {
    let source = &run(capture, rate, seed, &mut Discard).traffic[0];
    source.delay.mean().expect("packets arrived") * 1e3
}

/// Whether `theory` (milliseconds in queue and service) is in the interval.
fn agrees(theory: f64, rate: Rate, size: impl Fn(&mut Stream) -> f64 + Copy) -> bool {
    let delays: Vec<f64> =
        (1..=REPLICATIONS).map(|seed| mean_delay(arrivals(seed, size), rate, seed)).collect();
    let count = delays.len() as f64;
    let mean = delays.iter().sum::<f64>() / count;
    let squares: f64 = delays.iter().map(|delay| (delay - mean).powi(2)).sum();
    let half = STUDENT_99 * (squares / (count - 1.0) / count).sqrt();
    let measured = mean - PROPAGATION.as_seconds() * 1e3;
    println!("theory {theory:.3} ms, measured {measured:.3} +- {half:.3} ms");
    (measured - theory).abs() <= half
}

#[test]
fn constant_packets_have_the_delay_of_m_d_1() {
    let theory = 1.0 + LOAD / (2.0 * (1.0 - LOAD));
    assert!(agrees(theory, RATE, |_| MEAN_SIZE));
    assert!(!agrees(theory, SLOWER, |_| MEAN_SIZE), "a slower link goes unnoticed");
}

#[test]
fn exponential_packets_have_the_delay_of_m_m_1() {
    let theory = 1.0 / (1.0 - LOAD);
    assert!(agrees(theory, RATE, |stream| stream.exponential() * MEAN_SIZE));
    let slower = agrees(theory, SLOWER, |stream| stream.exponential() * MEAN_SIZE);
    assert!(!slower, "a slower link goes unnoticed");
}

/// The times at which packets come to the queue, and leave it.
#[derive(Default)]
struct Visits {
    arrived: Vec<Time>,
    left: Vec<Time>,
}

impl Recorder for Visits {
    fn takes_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, row: &PacketRecord) {
        match row.event {
            PacketEvent::Arrived => self.arrived.push(row.at),
            PacketEvent::Sent => self.left.push(row.at),
            PacketEvent::Lost(reason) => panic!("a packet was lost: {reason:?}"),
        }
    }
}

/// Packets whose wait is not that of Lindley's recursion, of all that were sent: the
/// wait is the one before, and the service before, less the time between the arrivals,
/// or nothing (Lindley 1952).
fn unlike_lindley(rate: Rate, size: impl Fn(&mut Stream) -> f64 + Copy) -> (usize, usize) {
    let (mut unlike, mut sent) = (0, 0);
    for seed in 1..=3 {
        let capture = arrivals(seed, size);
        let packets = capture.packets.clone();
        let mut visits = Visits::default();
        run(capture, rate, seed, &mut visits);
        let mut wait = 0;
        for (place, (arrived, left)) in visits.arrived.iter().zip(&visits.left).enumerate() {
            assert_eq!(*arrived, packets[place].at);
            if place > 0 {
                let before = &packets[place - 1];
                // A byte takes 1 us at 8 Mbit/s.
                let served = before.size.0 * 1_000;
                wait = (wait + served).saturating_sub(arrived.since(before.at).0);
            }
            unlike += usize::from(left.since(*arrived) != Span(wait));
        }
        sent += visits.left.len();
    }
    (unlike, sent)
}

#[test]
fn every_packet_waits_as_long_as_lindley_says_to_the_nanosecond() {
    for law in [|_: &mut Stream| MEAN_SIZE, |stream: &mut Stream| stream.exponential() * MEAN_SIZE]
    {
        let (unlike, sent) = unlike_lindley(RATE, law);
        assert!(sent > 280_000, "{sent}");
        assert_eq!(unlike, 0, "of {sent}");
        // All that find the link busy wait longer for a slower one: more than the load.
        let (unlike, sent) = unlike_lindley(SLOWER, law);
        assert!(unlike as f64 > LOAD * sent as f64, "{unlike} of {sent}");
    }
}
