//! What CAKE's tins and shaper promise, and who would gain by gaming them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::entry::Entry;
use tidegate_core::registry;
use tidegate_core::shaper::Paced;
use tidegate_core::{Buffer, Bytes, Discipline, Dscp, FlowKey, Packet, Port, Rate, Span, Time};
use tidegate_twins::audit::{Audited, Operation};

fn cake(given: &[(&str, &str)], buffer: Buffer) -> Box<dyn Discipline> {
    entry("cake").build(given, buffer, 1).expect("they are values")
}

fn entry(name: &str) -> &'static Entry {
    registry::find(name).expect("it is registered")
}

/// Packets of these flows that come and go within some hundred milliseconds.
fn operations(flows: &'static [u8]) -> impl Strategy<Value = Vec<Operation>> {
    let arrive = (select(flows), select(&[40_u64, 600, 1_500][..]))
        .prop_map(|(flow, size)| Operation::Arrive { flow, size: Bytes(size) });
    let operation = prop_oneof![
        6 => arrive,
        2 => Just(Operation::Send),
        4 => Just(Operation::SendWhenReady),
        2 => (0..8_000_000_u64).prop_map(|nanos| Operation::Wait(Span(nanos))),
    ];
    prop::collection::vec(operation, 0..300)
}

fn bandwidth() -> impl Strategy<Value = String> {
    let rate = prop_oneof![(100_000..30_000_000_u64), Just(1_000_000_000)];
    prop_oneof![Just("unlimited".to_owned()), rate.prop_map(|rate| format!("{rate} bit/s"))]
}

/// The same to two disciplines of which each answer must be the same.
fn assert_alike(disciplines: [Box<dyn Discipline>; 2], operations: &[Operation]) {
    let [mut one, mut other] = disciplines.map(|it| Audited::new(it, Buffer::packets(10_000)));
    for operation in operations {
        assert_eq!(one.apply(*operation), other.apply(*operation), "{operation:?}");
    }
    assert_eq!(one.drain(), other.drain());
}

proptest! {
    /// Flows 0, 3, 8 and 11 of the audit have no codepoint: their tin has the whole rate.
    #[test]
    fn packets_without_a_codepoint_know_nothing_of_tins(
        scheme in select(&["diffserv3", "diffserv4", "precedence"][..]),
        bandwidth in bandwidth(),
        operations in operations(&[0, 3, 8, 11]),
    ) {
        let alike = [scheme, "besteffort"].map(|tins| {
            cake(&[("tins", tins), ("bandwidth", &bandwidth)], Buffer::packets(10_000))
        });
        assert_alike(alike, &operations);
    }

    /// One queue whose delay is no concern.
    #[test]
    fn with_nobody_to_be_fair_to_it_is_a_fifo_held_back_to_a_rate(
        rate in 100_000..30_000_000_u64,
        operations in operations(&[0, 1, 2, 3, 4]),
    ) {
        let buffer = Buffer::packets(10_000);
        let bandwidth = format!("{rate} bit/s");
        let given = [
            ("bandwidth", &bandwidth[..]),
            ("tins", "besteffort"),
            ("isolation", "flowblind"),
            ("rtt", "3600 s"),
        ];
        let fifo = entry("fifo").build(&[], buffer, 1).expect("it has no settings");
        assert_alike([cake(&given, buffer), Box::new(Paced::new(fifo, Rate(rate)))], &operations);
    }
}

/// A source of packets of 1 000 bytes from a host of its own.
#[derive(Clone, Copy)]
struct Source {
    dscp: Dscp,
    /// At each look this many are kept waiting.
    waiting: usize,
    /// Whether each packet is a flow of its own.
    new_ports: bool,
}

const PLAIN: Source = Source { dscp: Dscp::DEFAULT, waiting: 5, new_ports: false };
const URGENT: Source = Source { dscp: Dscp::EF, ..PLAIN };

/// How many packets each source has sent of `count`, when none ever runs out.
fn sent(given: &[(&str, &str)], sources: &[Source], count: usize) -> Vec<usize> {
    let mut port = Port::new(cake(given, Buffer::packets(10_000)));
    let mut now = Time::ZERO;
    let mut waiting = vec![0; sources.len()];
    let mut sent = vec![0; sources.len()];
    let mut arrivals = 0_u64;
    for _ in 0..count {
        for (host, source) in sources.iter().enumerate() {
            while waiting[host] < source.waiting {
                let fresh = if source.new_ports { arrivals as u16 } else { 1 };
                let address = host as u8 + 1;
                let flow = FlowKey::v4(
                    [192, 0, 2, address],
                    fresh,
                    [198, 51, 100, address],
                    443,
                    FlowKey::UDP,
                );
                let plain = Packet::new(host as u64, flow, Bytes(1_000));
                port.offer(now, Packet { dscp: source.dscp, ..plain });
                waiting[host] += 1;
                arrivals += 1;
            }
        }
        now = port.next_ready(now).expect("packets wait");
        let packet = port.take(now).expect("it said that one may leave");
        let lost: Vec<usize> =
            port.losses().iter().map(|loss| loss.packet.handle as usize).collect();
        for host in lost.into_iter().chain([packet.handle as usize]) {
            waiting[host] -= 1;
        }
        sent[packet.handle as usize] += 1;
    }
    sent
}

/// Shares of a rate that two sources have, in percent, and within one.
#[track_caller]
fn assert_percent(given: &[(&str, &str)], sources: &[Source], expected: &[usize]) {
    let sent = sent(given, sources, 10_000);
    let near = |(sent, expected): (&usize, &usize)| sent.abs_diff(expected * 100) <= 100;
    assert!(sent.iter().zip(expected).all(near), "{sent:?} of 10 000");
}

#[test]
fn who_marks_everything_as_urgent_has_the_share_of_the_urgent_tin() {
    for bandwidth in ["1 Mbit/s", "20 Mbit/s", "1 Gbit/s"] {
        let shaped = [("bandwidth", bandwidth)];
        // A quarter, or all of it if nobody else wants any.
        assert_percent(&shaped, &[URGENT, PLAIN], &[25, 75]);
        assert_percent(&shaped, &[URGENT], &[100]);
        // In the same tin two hosts share as they do without tins.
        assert_percent(&shaped, &[URGENT, URGENT, PLAIN, PLAIN], &[12, 13, 38, 37]);
    }
    // A fifth where no rate is known: 256 of 1 024 and 256.
    assert_percent(&[], &[URGENT, PLAIN], &[20, 80]);
    assert_percent(&[("tins", "besteffort")], &[URGENT, PLAIN], &[50, 50]);
}

#[test]
fn a_packet_below_the_tin_s_share_waits_for_one_packet_at_most() {
    for rate in [1_000_000, 20_000_000, 1_000_000_000] {
        let bandwidth = format!("{rate} bit/s");
        let mut port = Port::new(cake(&[("bandwidth", &bandwidth)], Buffer::packets(10_000)));
        let packet = Rate(rate).transmission(Bytes(1_500));
        // 500 bytes urgently in the time of four packets: a twelfth of the rate.
        let every = packet * 4;
        let flow = |host| FlowKey::v4([192, 0, 2, host], 1, [198, 51, 100, 1], 2, FlowKey::UDP);
        let (mut now, mut next, mut worst) = (Time::ZERO, Time::ZERO, Span::ZERO);
        let mut looked_at = 0;
        while looked_at < 500 {
            while next <= now {
                let urgent = Packet::new(1, flow(1), Bytes(500));
                port.offer(next, Packet { dscp: Dscp::EF, ..urgent });
                next += every;
            }
            while port.backlog().packets < 40 {
                port.offer(now, Packet::new(0, flow(2), Bytes(1_500)));
            }
            let at = port.next_ready(now).expect("packets wait");
            now = at.min(next.max(now));
            if now < at {
                continue;
            }
            let sent = port.take(now).expect("it said that one may leave");
            if sent.handle == 1 {
                worst = worst.max(now.since(sent.arrived));
                looked_at += 1;
            }
        }
        assert!(worst <= packet + Span(1), "{worst} at {bandwidth}");
        assert!(worst > packet / 2, "it competes: {worst} at {bandwidth}");
    }
}

/// A weakness that it shares with Linux: flows of one packet count for no host and go
/// first until all queues are taken, and often afterwards.
#[test]
fn who_opens_a_flow_for_each_packet_has_nearly_all_and_then_more_than_his_share() {
    let many = Source { waiting: 50, new_ports: true, ..PLAIN };
    for given in [&[("bandwidth", "20 Mbit/s")][..], &[]] {
        let start = sent(given, &[many, PLAIN], 1_000)[1];
        assert!(start < 20, "{start} of 1 000 at {given:?}");
        let longer = sent(given, &[many, PLAIN], 20_000)[1];
        assert!((2_000..10_000).contains(&longer), "{longer} of 20 000 at {given:?}");
    }
}

#[test]
fn the_rate_is_kept_to_a_packet_from_a_megabit_to_a_gigabit() {
    let names: BTreeMap<&str, u64> =
        [("1 Mbit/s", 1_000_000), ("18 Mbit/s", 18_000_000), ("1 Gbit/s", 1_000_000_000)].into();
    for (name, rate) in names {
        let mut port = Port::new(cake(&[("bandwidth", name)], Buffer::packets(100)));
        let flow = FlowKey::v4([192, 0, 2, 1], 1, [198, 51, 100, 1], 2, FlowKey::UDP);
        let (mut now, end) = (Time::ZERO, Time(2_000_000_000));
        let mut bytes = 0;
        while now < end {
            port.offer(now, Packet::new(0, flow, Bytes(1_200)));
            port.offer(now, Packet::new(0, flow, Bytes(1_200)));
            now = port.next_ready(now).expect("packets wait");
            bytes += port.take(now).map_or(0, |packet| packet.size.0);
        }
        let carried = rate / 8 * 2;
        assert!(bytes.abs_diff(carried) <= 2 * 1_200, "{bytes} of {carried} at {name}");
    }
}
