//! Examples of CAKE worked by hand.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::packet::{Dscp, TcpFacts};

/// The parameter and what it is set to, and a buffer of so many packets.
fn cake(parameter: &Parameter, value: &str, packets: u32) -> Cake {
    let settings = ENTRY.settings(&[(parameter.name, value)]).expect("it is a value");
    Cake::new(&settings, Buffer::packets(packets), 1)
}

fn key(source: u8, destination: u8, port: u16) -> FlowKey {
    FlowKey::v4([192, 0, 2, source], port, [198, 51, 100, destination], 443, FlowKey::TCP)
}

fn packet(handle: u64, flow: FlowKey) -> Packet {
    Packet::new(handle, flow, Bytes(1_000))
}

/// Packets that each flow has sent of 1 200, while all are backlogged.
fn shares(isolation: &str, flows: &[FlowKey]) -> Vec<usize> {
    let (mut cake, mut losses) = (cake(&ISOLATION, isolation, 100_000), Losses::new());
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
fn assert_shares(isolation: &str, flows: &[FlowKey], expected: &[usize]) {
    let shares = shares(isolation, flows);
    // The start of each flow is served as that of a sparse one.
    let near = |(share, expected): (&usize, &usize)| share.abs_diff(*expected) <= 5;
    assert!(shares.iter().zip(expected).all(near), "{isolation}: {shares:?}");
}

#[test]
fn hosts_get_equal_shares_and_so_do_the_flows_of_each() {
    // Source 1 has three flows and source 2 has one, each to a host of its own.
    let flows = [key(1, 1, 1), key(1, 2, 2), key(1, 3, 3), key(2, 4, 4)];
    assert_shares("flows", &flows, &[300; 4]);
    assert_shares("dual-dsthost", &flows, &[300; 4]);
    for isolation in ["triple-isolate", "dual-srchost"] {
        assert_shares(isolation, &flows, &[200, 200, 200, 600]);
    }
    let answers = flows.map(FlowKey::reversed);
    assert_shares("dual-srchost", &answers, &[300; 4]);
    for isolation in ["triple-isolate", "dual-dsthost"] {
        assert_shares(isolation, &answers, &[200, 200, 200, 600]);
    }
    // To one server, three flows of one host are as one, in one queue.
    let pairs = [key(1, 9, 1), key(1, 9, 2), key(1, 9, 3), key(2, 9, 4)];
    let shares = shares("hosts", &pairs);
    assert!(shares[3].abs_diff(600) <= 5, "{shares:?}");
}

#[test]
fn a_flow_that_was_idle_goes_first() {
    let (mut cake, mut losses) = (cake(&ISOLATION, "triple-isolate", 100), Losses::new());
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
    let (mut cake, mut losses) = (cake(&ISOLATION, "triple-isolate", 3), Losses::new());
    for (handle, port) in [(0, 1), (1, 2), (2, 2), (3, 1)] {
        cake.enqueue(Time::ZERO, packet(handle, key(1, 1, port)), &mut losses);
    }
    // Both have 2 000 bytes; that of port 1 has been backlogged for longer.
    let lost: Vec<_> = losses.drain().map(|loss| (loss.packet.handle, loss.reason)).collect();
    assert_eq!(lost, [(0, LossReason::PushedOut)]);
}

#[test]
fn an_acknowledgement_supersedes_one_in_its_queue_and_does_not_empty_it() {
    let (mut cake, mut losses) = (cake(&ACK_FILTER, "aggressive", 100), Losses::new());
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
    let (mut cake, mut losses) = (cake(&ISOLATION, "triple-isolate", 100), Losses::new());
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
        let mut cake = cake(&ISOLATION, "triple-isolate", 60);
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
fn a_queue_is_its_flows_for_an_interval_and_then_nothing_is_left_of_it() {
    let (mut cake, mut losses) = (cake(&ISOLATION, "triple-isolate", 100), Losses::new());
    for handle in 0..50 {
        let host = (handle % 50) as u8;
        cake.enqueue(Time::ZERO, packet(handle, key(host, host % 5, 1)), &mut losses);
    }
    while cake.dequeue(Time::ZERO, &mut losses).is_some() {}
    let mut tracked_at = |millis: u64, cake: &mut Cake| {
        let now = Time(millis * 1_000_000);
        cake.enqueue(now, packet(0, key(0, 0, 1)), &mut losses);
        assert!(cake.dequeue(now, &mut losses).is_some());
        cake.flows_tracked()
    };
    for millis in 0..99 {
        assert_eq!(tracked_at(millis, &mut cake), 50);
    }
    // From then on each packet makes one forgotten, but that of the packets.
    for (packets, millis) in (1..=49).zip(200..) {
        assert_eq!(tracked_at(millis, &mut cake), 50 - packets);
    }
    assert_eq!(cake.tins.tin(0).flows.hosts.known(), [1, 1]);
}

/// Packets of 1 000 bytes that wait from the start, so many of each codepoint, each of a
/// flow and host of its own.
fn waiting(given: &[(&str, &str)], packets: &[(Dscp, u64)]) -> Cake {
    let settings = ENTRY.settings(given).expect("they are values");
    let mut cake = Cake::new(&settings, Buffer::packets(10_000), 1);
    for (host, (dscp, count)) in (1..).zip(packets) {
        for _ in 0..*count {
            let plain = packet(dscp.number().into(), key(host, host, 1));
            let packet = Packet { dscp: *dscp, ..plain };
            cake.enqueue(Time::ZERO, packet, &mut Losses::new());
        }
    }
    cake
}

/// The codepoints of what leaves, a letter each, and when, in microseconds.
fn leaving(cake: &mut Cake, count: usize) -> (String, Vec<u64>) {
    let mut now = Time::ZERO;
    let one = || {
        now = cake.next_ready(now).expect("packets are left");
        let sent = cake.dequeue(now, &mut Losses::new()).expect("it said that one may leave");
        let letter = match sent.dscp {
            Dscp::EF => 'v',
            Dscp::LE => 'l',
            _ => 'b',
        };
        (letter, now.0 / 1_000)
    };
    std::iter::repeat_with(one).take(count).unzip()
}

const BESIDE: &[(Dscp, u64)] = &[(Dscp::DEFAULT, 40), (Dscp::EF, 40)];

#[test]
fn where_no_rate_is_known_tins_take_turns() {
    // Quanta of 1 024 and 256 bytes, and 64 for the tin without packets. Best effort
    // sends 1 000 bytes of every 1 024 and goes on; voice is at -1 000 and has its turn
    // when four quanta have brought it to 24, and then to 48.
    let (order, times) = leaving(&mut waiting(&[], BESIDE), 17);
    assert_eq!(order, "bvbbbbvbbbbvbbbbv");
    assert_eq!(times, [0; 17]);
}

#[test]
fn a_tin_goes_first_up_to_its_share_of_the_rate() {
    // A packet takes 1 ms at 8 Mbit/s and 4 ms at the 2 Mbit/s of voice, whose clock is
    // due at 0, 4 and 8 ms.
    let shaped = &[("bandwidth", "8 Mbit/s")];
    let (order, times) = leaving(&mut waiting(shaped, BESIDE), 10);
    assert_eq!(order, "vbbbvbbbvb");
    assert_eq!(times, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|millis| millis * 1_000));
    // Lower effort has a sixteenth, and first of best effort up to that.
    let (order, _) = leaving(&mut waiting(shaped, &[(Dscp::DEFAULT, 40), (Dscp::LE, 40)]), 33);
    assert_eq!(order, format!("l{0}l{0}l", "b".repeat(15)));
    // A tin that is alone has it all.
    let (order, times) = leaving(&mut waiting(shaped, &[(Dscp::EF, 40)]), 5);
    assert_eq!((&order[..], &times[..]), ("vvvvv", &[0, 1_000, 2_000, 3_000, 4_000][..]));
    // Without tins, in turns: a quantum of 300 bytes at this rate, so one packet each.
    let one_tin = &[("bandwidth", "8 Mbit/s"), ("tins", "besteffort")];
    assert_eq!(leaving(&mut waiting(one_tin, BESIDE), 6).0, "bvbvbv");
}

#[test]
fn a_packet_takes_what_it_takes_of_the_link() {
    let times = |given: &[(&str, &str)]| {
        let given = [&[("bandwidth", "8 Mbit/s")], given].concat();
        leaving(&mut waiting(&given, &[(Dscp::DEFAULT, 3)]), 3).1
    };
    assert_eq!(times(&[("overhead", "18 B")]), [0, 1_018, 2_036]);
    // 22 cells of 53 bytes.
    assert_eq!(times(&[("overhead", "40 B"), ("framing", "atm")]), [0, 1_166, 2_332]);
}

#[test]
fn a_shaper_that_was_idle_has_saved_up_nothing() {
    let settings = ENTRY.settings(&[("bandwidth", "8 Mbit/s")]).expect("it is a value");
    let mut cake = Cake::new(&settings, Buffer::packets(100), 1);
    let later = Time(1_000_000_000);
    for handle in 0..3 {
        let packet = Packet { arrived: later, ..packet(handle, key(1, 1, 1)) };
        cake.enqueue(later, packet, &mut Losses::new());
    }
    let mut send = |at: Time| cake.dequeue(at, &mut Losses::new()).map(|packet| packet.handle);
    assert_eq!(send(later), Some(0));
    assert_eq!(send(later + Span(999_999)), None);
    // Half a millisecond late, and the next is on time.
    assert_eq!(send(later + Span(1_500_000)), Some(1));
    assert_eq!(send(later + Span(1_999_999)), None);
    assert_eq!(send(later + Span(2_000_000)), Some(2));
}

#[test]
fn another_rate_holds_from_the_next_packet_on() {
    let mut cake = waiting(&[("bandwidth", "8 Mbit/s")], &[(Dscp::DEFAULT, 10)]);
    let place = Place::from(Buffer::packets(100));
    let mut now = Time::ZERO;
    let mut leave = |cake: &mut Cake, bandwidth: &str| {
        now = cake.next_ready(now).expect("packets are left");
        assert!(cake.dequeue(now, &mut Losses::new()).is_some());
        let settings = ENTRY.settings(&[("bandwidth", bandwidth)]).expect("it is a value");
        cake.reconfigure(now, &settings, place);
        now.0 / 1_000
    };
    let times = ["1 Mbit/s", "1 Mbit/s", "unlimited", "unlimited", "unlimited", "8 Mbit/s"]
        .map(|bandwidth| leave(&mut cake, bandwidth));
    assert_eq!(times, [0, 1_000, 9_000, 17_000, 17_000, 17_000]);
    assert_eq!(["8 Mbit/s"; 2].map(|bandwidth| leave(&mut cake, bandwidth)), [17_000, 18_000]);
}
