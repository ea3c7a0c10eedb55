//! Examples of CAKE worked by hand.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::packet::TcpFacts;
use crate::units::Bytes;

fn cake(isolation: Isolation, filter: Option<AckFilter>, packets: u32) -> Cake {
    Cake::new(Span::millis(100), isolation, filter, Buffer::packets(packets), 1)
}

fn key(source: u8, destination: u8, port: u16) -> FlowKey {
    FlowKey::v4([192, 0, 2, source], port, [198, 51, 100, destination], 443, FlowKey::TCP)
}

fn packet(handle: u64, flow: FlowKey) -> Packet {
    Packet::new(handle, flow, Bytes(1_000))
}

/// Packets that each flow has sent of 1 200, while all are backlogged.
fn shares(isolation: Isolation, flows: &[FlowKey]) -> Vec<usize> {
    let (mut cake, mut losses) = (cake(isolation, None, 100_000), Losses::new());
    for round in 0..1_200 {
        for flow in flows {
            cake.enqueue(Time::ZERO, packet(round, *flow), &mut losses);
        }
    }
    let mut sent = BTreeMap::<FlowKey, usize>::new();
    for _ in 0..1_200 {
        let packet = cake.dequeue(Time::ZERO, &mut losses).unwrap();
        *sent.entry(packet.flow).or_default() += 1;
    }
    assert_eq!(losses.as_slice(), []);
    flows.iter().map(|flow| sent[flow]).collect()
}

#[track_caller]
fn assert_shares(isolation: Isolation, flows: &[FlowKey], expected: &[usize]) {
    let shares = shares(isolation, flows);
    // The start of each flow is served as that of a sparse one.
    let near = |(share, expected): (&usize, &usize)| share.abs_diff(*expected) <= 5;
    assert!(shares.iter().zip(expected).all(near), "{isolation:?}: {shares:?}");
}

#[test]
fn hosts_get_equal_shares_and_so_do_the_flows_of_each() {
    // Source 1 has three flows and source 2 has one, each to a host of its own.
    let flows = [key(1, 1, 1), key(1, 2, 2), key(1, 3, 3), key(2, 4, 4)];
    assert_shares(Isolation::Flows, &flows, &[300; 4]);
    assert_shares(Isolation::Destinations, &flows, &[300; 4]);
    for isolation in [Isolation::Triple, Isolation::Sources] {
        assert_shares(isolation, &flows, &[200, 200, 200, 600]);
    }
    let answers = flows.map(FlowKey::reversed);
    assert_shares(Isolation::Sources, &answers, &[300; 4]);
    for isolation in [Isolation::Triple, Isolation::Destinations] {
        assert_shares(isolation, &answers, &[200, 200, 200, 600]);
    }
    // To one server, three flows of one host are as one, in one queue.
    let pairs = [key(1, 9, 1), key(1, 9, 2), key(1, 9, 3), key(2, 9, 4)];
    let shares = shares(Isolation::HostPairs, &pairs);
    assert!(shares[3].abs_diff(600) <= 5, "{shares:?}");
}

#[test]
fn a_flow_that_was_idle_goes_first() {
    let (mut cake, mut losses) = (cake(Isolation::Triple, None, 100), Losses::new());
    for handle in 0..10 {
        cake.enqueue(Time::ZERO, packet(handle, key(1, 1, 1)), &mut losses);
    }
    let mut send = |cake: &mut Cake| cake.dequeue(Time::ZERO, &mut losses).unwrap().handle;
    // The flow has spent its quantum after two packets.
    assert_eq!([send(&mut cake), send(&mut cake)], [0, 1]);
    cake.enqueue(Time::ZERO, packet(10, key(2, 2, 2)), &mut Losses::new());
    assert_eq!([send(&mut cake), send(&mut cake)], [10, 2]);
}

#[test]
fn a_full_buffer_loses_the_head_of_the_longest_queue() {
    let (mut cake, mut losses) = (cake(Isolation::Triple, None, 3), Losses::new());
    for (handle, port) in [(0, 1), (1, 2), (2, 2), (3, 1)] {
        cake.enqueue(Time::ZERO, packet(handle, key(1, 1, port)), &mut losses);
    }
    // Both have 2 000 bytes; that of port 1 has been backlogged for longer.
    let lost: Vec<_> = losses.drain().map(|loss| (loss.packet.handle, loss.reason)).collect();
    assert_eq!(lost, [(0, LossReason::PushedOut)]);
}

#[test]
fn an_acknowledgement_supersedes_one_in_its_queue_and_does_not_empty_it() {
    let filter = Some(AckFilter::Aggressive);
    let (mut cake, mut losses) = (cake(Isolation::Triple, filter, 100), Losses::new());
    for number in 1..=3 {
        let facts = TcpFacts {
            sequence: 1,
            acknowledgement: Some(number),
            payload: 0,
            syn: false,
            fin: false,
            plain: true,
        };
        let plain = packet(number.into(), key(1, 1, 1));
        cake.enqueue(Time::ZERO, Packet { tcp: Some(facts), ..plain }, &mut losses);
    }
    let lost: Vec<_> = losses.drain().map(|loss| (loss.packet.handle, loss.reason)).collect();
    assert_eq!(lost, [(1, LossReason::Superseded), (2, LossReason::Superseded)]);
    assert_eq!(cake.dequeue(Time::ZERO, &mut losses).map(|packet| packet.handle), Some(3));
}

/// Twelve flows that hash to one set of eight queues.
fn crowd(cake: &Cake) -> Vec<FlowKey> {
    let flows = (0..u16::MAX).map(|port| key(1, 1, port));
    let set = |flow: &FlowKey| cake.hash.of(flow) >> (64 - (QUEUES / WAYS).ilog2());
    flows.filter(|flow| set(flow) == 5).take(12).collect()
}

#[test]
fn eight_flows_of_a_set_have_queues_of_their_own_and_the_ninth_shares() {
    let (mut cake, mut losses) = (cake(Isolation::Triple, None, 100), Losses::new());
    let crowd = crowd(&cake);
    for (flow, active) in crowd.iter().zip([1, 2, 3, 4, 5, 6, 7, 8, 8]) {
        cake.enqueue(Time::ZERO, packet(0, *flow), &mut losses);
        assert_eq!(cake.flows_tracked(), active);
    }
}

proptest! {
    /// Where queues are shared, and owners come and go.
    #[test]
    fn flows_that_crowd_a_set_stay_in_order(
        operations in prop::collection::vec(prop::option::of(0..12_usize), 0..400),
    ) {
        let mut cake = cake(Isolation::Triple, None, 60);
        let crowd = crowd(&cake);
        let mut losses = Losses::new();
        let mut latest = BTreeMap::new();
        for (handle, operation) in (1_u64..).zip(operations) {
            if let Some(flow) = operation {
                cake.enqueue(Time::ZERO, packet(handle, crowd[flow]), &mut losses);
                continue;
            }
            let Some(packet) = cake.dequeue(Time::ZERO, &mut losses) else { continue };
            let before = latest.insert(packet.flow, packet.handle).unwrap_or(0);
            prop_assert!(before < packet.handle);
        }
    }
}

#[test]
fn nothing_is_left_of_hosts_once_their_queues_are_idle() {
    let (mut cake, mut losses) = (cake(Isolation::Triple, None, 20), Losses::new());
    for handle in 0..200 {
        let host = (handle * 7 % 50) as u8;
        cake.enqueue(Time::ZERO, packet(handle, key(host, host % 5, 1)), &mut losses);
    }
    while cake.dequeue(Time::ZERO, &mut losses).is_some() {}
    assert_eq!(cake.flows_tracked(), 0);
    assert!(cake.hosts.0.iter().all(FlowTable::is_empty));
}
