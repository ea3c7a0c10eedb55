//! Two real captures, cut to 80 bytes a frame. The expected numbers were
//! counted by another program, which shares no code with the readers.

use std::collections::BTreeSet;

use tidegate_core::{Bytes, FlowKey, Span};
use tidegate_sim::trace::{Capture, Direction};

fn shipped(name: &str) -> Capture {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    Capture::read(path.as_ref()).unwrap_or_else(|error| panic!("{error}"))
}

struct Expected {
    name: &'static str,
    packets: usize,
    micros: u64,
    ip_bytes: u64,
    flows_both_ways: usize,
    syns: usize,
    fins: usize,
    tcp_payload: u64,
    up: usize,
    down: usize,
    /// The direction that carried most, its packets, IP bytes and payload.
    largest: (FlowKey, u64, u64, u64),
}

#[test]
fn real_captures_have_the_numbers_counted_elsewhere() {
    let tables = [
        Expected {
            name: "bro.org.pcap",
            packets: 751,
            micros: 17_492_054,
            ip_bytes: 483_623,
            flows_both_ways: 13,
            syns: 26,
            fins: 24,
            tcp_payload: 453_271,
            up: 247,
            down: 504,
            largest: (
                FlowKey::v4([192, 150, 187, 43], 80, [10, 0, 2, 15], 55_080, FlowKey::TCP),
                239,
                244_648,
                235_084,
            ),
        },
        Expected {
            name: "example.pcap",
            packets: 200,
            micros: 3_833_089,
            ip_bytes: 118_476,
            flows_both_ways: 28,
            syns: 26,
            fins: 0,
            tcp_payload: 106_551,
            // The host asks its router for names: 28 packets stay inside.
            up: 81,
            down: 91,
            largest: (
                FlowKey::v4([212, 199, 202, 9], 80, [10, 0, 0, 6], 44_147, FlowKey::TCP),
                80,
                106_592,
                102_424,
            ),
        },
    ];
    for expected in tables {
        let capture = shipped(expected.name);
        let packets = &capture.packets;
        assert_eq!(packets.len(), expected.packets);
        assert_eq!(capture.skipped.total(), 0);
        assert_eq!(capture.clock_steps_back, 0);
        assert_eq!(capture.duration, Span::micros(expected.micros));
        assert_eq!(packets.iter().map(|p| p.size).sum::<Bytes>(), Bytes(expected.ip_bytes));
        let flows: BTreeSet<_> = packets.iter().map(|p| p.flow.min(p.flow.reversed())).collect();
        assert_eq!(flows.len(), expected.flows_both_ways);
        let facts = || packets.iter().filter_map(|packet| packet.tcp);
        assert_eq!(facts().filter(|tcp| tcp.syn).count(), expected.syns);
        assert_eq!(facts().filter(|tcp| tcp.fin).count(), expected.fins);
        assert_eq!(facts().map(|tcp| u64::from(tcp.payload)).sum::<u64>(), expected.tcp_payload);
        let hosts = capture.local_hosts();
        let ways = |way| packets.iter().filter(|p| hosts.direction(p.flow) == Some(way)).count();
        assert_eq!((ways(Direction::Up), ways(Direction::Down)), (expected.up, expected.down));
        let totals = capture.flow_totals();
        let (flow, total) = totals.iter().max_by_key(|(_, total)| total.size).expect("has flows");
        let largest = (*flow, total.packets, total.size.0, total.payload.0);
        assert_eq!(largest, expected.largest);
    }
}
