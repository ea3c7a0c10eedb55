//! A bridge is its discipline: with a virtual clock, the same frames at the same times give
//! the departures, drops and marks that `core` gives for the same packets.
//!
//! The twin is as plain as can be: it cuts super-packets by arithmetic on sizes, hands
//! packets to an egress of `core` whenever they arrive, and asks it at each time that it
//! names. What the bridge sends is compared frame by frame and nanosecond by nanosecond.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use tidegate_core::entry::Place;
use tidegate_core::framing::Framing;
use tidegate_core::registry::DISCIPLINES;
use tidegate_core::{Buffer, Bytes, Ecn, Egress, Packet, Poll, Rate, Span, Time};
use tidegate_link::Queue;
use tidegate_link::bridge::{Bridge, Turn, WHOLE_FROM};
use tidegate_link::offload::{Cut, CutKind, Offload, PartialChecksum};
use tidegate_wire::{Headers, Link};

/// A frame on its way in.
#[derive(Clone, Debug)]
struct Arrival {
    /// After the one before.
    gap: Span,
    flow: u8,
    version: u8,
    tagged: bool,
    ecn: Ecn,
    /// Bytes of TCP payload; of more than [`SEGMENT`] the kernel has merged it.
    payload: usize,
}

const SEGMENT: usize = 1_000;
const TCP_HEADER: usize = 20;

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (
        prop_oneof![3 => Just(0), 3 => 0..200_000_u64, 1 => 0..30_000_000_u64],
        0..6_u8,
        prop_oneof![Just(4), Just(6)],
        any::<bool>(),
        prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)],
        prop_oneof![2 => 0..200_usize, 3 => Just(SEGMENT), 1 => SEGMENT..9 * SEGMENT],
    );
    let arrival = arrival.prop_map(|(gap, flow, version, tagged, ecn, payload)| Arrival {
        gap: Span(gap),
        flow,
        version,
        tagged,
        ecn,
        payload,
    });
    prop::collection::vec(arrival, 1..120)
}

impl Arrival {
    fn frame(&self, number: u32) -> (Offload, Vec<u8>) {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if self.tagged {
            frame.extend([0x81, 0, 0, 5]);
        }
        let length = TCP_HEADER + self.payload;
        let (protocol, octet) = (6, self.ecn as u8);
        let host = [198, 51, 100, self.flow];
        if self.version == 4 {
            frame.extend([8, 0, 0x45, octet]);
            frame.extend(((20 + length) as u16).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1]);
            frame.extend(host);
        } else {
            frame.extend([0x86, 0xdd, 0x60, octet << 4, 0, 0]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend(host);
        }
        let transport = frame.len() as u16;
        frame.extend([1, 187, 195, 80]);
        frame.extend((number * 10_000).to_be_bytes());
        frame.extend([0, 0, 0, 9, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.extend((0..self.payload).map(|at| (at % 251) as u8));
        let kind = if self.version == 4 { CutKind::Tcp4 } else { CutKind::Tcp6 };
        let merged = self.payload > SEGMENT;
        let cut = Cut { kind, size: SEGMENT as u16, congestion_window_reduced_once: false };
        let offload = Offload {
            checksum: Some(PartialChecksum { start: transport, offset: 16 }),
            cut: merged.then_some(cut),
            headers: 0,
        };
        (offload, frame)
    }
}

/// A packet that left: when, its first number of TCP, its size, and whether it was marked.
type Departure = (Time, u32, Bytes, bool);

fn departure(at: Time, packet: &Headers, before: Ecn) -> Departure {
    let sequence = packet.tcp.expect("all of them are TCP").sequence;
    (at, sequence, packet.ip_length, packet.ecn == Ecn::Ce && before != Ecn::Ce)
}

/// What comes out of the bridge, and how many packets it has lost.
fn through_the_bridge(queue: &Queue, arrivals: &[Arrival]) -> (Vec<Departure>, u64) {
    let mut bridge = Bridge::new(queue.clone(), Bytes(64_000_000), 7);
    let mut out = Vec::new();
    let mut until = |bridge: &mut Bridge, from: Time, end: Time| {
        let mut now = from;
        loop {
            match bridge.poll(now) {
                Turn::Send(number) => {
                    let headers = Headers::read(Link::Ethernet, bridge.frame(number)).unwrap();
                    let sequence = headers.tcp.unwrap().sequence;
                    let before = arrivals[(sequence / 10_000) as usize].ecn;
                    out.push(departure(now, &headers, before));
                    bridge.release(number);
                }
                Turn::Wait(Some(time)) if time <= end => now = time,
                Turn::Wait(_) => return,
            }
        }
    };
    let mut now = Time::ZERO;
    for (number, arrival) in arrivals.iter().enumerate() {
        let next = now + arrival.gap;
        until(&mut bridge, now, next);
        now = next;
        let (offload, frame) = arrival.frame(number as u32);
        bridge.receive(now, offload, &frame);
    }
    until(&mut bridge, now, Time::FAR_FUTURE);
    let status = bridge.status(now);
    assert_eq!(status.queued_packets, 0);
    assert_eq!(status.failures, tidegate_link::Failures::default());
    (out, status.counts.lost.all())
}

/// What `core` makes of the same packets.
fn through_core(queue: &Queue, arrivals: &[Arrival]) -> (Vec<Departure>, u64) {
    let place = Place::from(queue.buffer()).at_rate(queue.rate);
    let mut egress = Egress::new((queue.entry.build)(&queue.settings, place, 7), queue.rate);
    let mut packets: Vec<Headers> = Vec::new();
    let mut out = Vec::new();
    let mut now = Time::ZERO;
    let mut until = |egress: &mut Egress, packets: &[Headers], from: Time, end: Time| {
        let mut now = from;
        loop {
            match egress.poll(now) {
                Poll::Packet { packet, .. } => {
                    let headers = packets[packet.handle as usize];
                    out.push(departure(now, &Headers { ecn: packet.ecn, ..headers }, headers.ecn));
                }
                Poll::ReadyAt(time) if time <= end => now = time,
                Poll::ReadyAt(_) | Poll::Idle => return,
            }
        }
    };
    for (number, arrival) in arrivals.iter().enumerate() {
        let next = now + arrival.gap;
        until(&mut egress, &packets, now, next);
        now = next;
        let (_, frame) = arrival.frame(number as u32);
        let whole = Headers::read(Link::Ethernet, &frame).unwrap();
        let headers = whole.ip_length.0 - arrival.payload as u64;
        let parts = arrival.payload.div_ceil(SEGMENT).max(1);
        for part in 0..parts {
            let payload = SEGMENT.min(arrival.payload - part * SEGMENT);
            let mut facts = whole.tcp.unwrap();
            facts.sequence += (part * SEGMENT) as u32;
            facts.payload = payload as u32;
            let ip_length = Bytes(headers + payload as u64);
            let part = Headers { ip_length, tcp: Some(facts), ..whole };
            let packet =
                Packet::new(packets.len() as u64, part.flow, queue.framing.charge(ip_length));
            packets.push(part);
            egress.offer(now, Packet { dscp: part.dscp, ecn: part.ecn, tcp: part.tcp, ..packet });
        }
    }
    until(&mut egress, &packets, now, Time::FAR_FUTURE);
    (out, egress.port().counters().lost())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_discipline_behaves_on_the_bridge_as_in_core(
        arrivals in arrivals(),
        megabits in prop_oneof![Just(1_u64), Just(10), Just(100)],
        packets in 1..60_u32,
        framing in prop_oneof![Just("raw"), Just("docsis"), Just("pppoe-ptm")],
    ) {
        for entry in DISCIPLINES {
            let queue = Queue {
                entry,
                settings: entry.settings(&[]).unwrap(),
                limit: Buffer::packets(packets).into(),
                rate: Rate(megabits * 1_000_000),
                framing: framing.parse::<Framing>().unwrap(),
            };
            let bridge = through_the_bridge(&queue, &arrivals);
            let core = through_core(&queue, &arrivals);
            prop_assert_eq!(bridge, core, "{}", entry.name);
        }
    }
}

#[test]
fn a_fast_link_passes_super_packets_whole_and_charges_their_packets() {
    let arrival = Arrival {
        gap: Span::ZERO,
        flow: 1,
        version: 4,
        tagged: true,
        ecn: Ecn::Ect0,
        payload: 3_500,
    };
    let entry = &DISCIPLINES[0];
    let queue = Queue {
        entry,
        settings: entry.settings(&[]).unwrap(),
        limit: Buffer::packets(10).into(),
        rate: WHOLE_FROM,
        framing: Framing::RAW,
    };
    let mut bridge = Bridge::new(queue, Bytes(1_000_000), 7);
    let (offload, frame) = arrival.frame(0);
    bridge.receive(Time::ZERO, offload, &frame);
    let Turn::Send(number) = bridge.poll(Time::ZERO) else { panic!("it may leave at once") };
    assert_eq!(bridge.frame(number), frame);
    assert_eq!(bridge.whole(number)[..10], offload.write());
    bridge.release(number);
    // Four packets, of which each has 40 bytes of headers.
    assert_eq!(bridge.status(Time::ZERO).counts.sent_bytes, 3_500 + 4 * 40);
    assert_eq!(bridge.poll(Time::ZERO), Turn::Wait(None));
}

#[test]
fn what_is_not_ip_passes_and_has_a_flow_of_its_own() {
    let entry = tidegate_core::registry::find("fq").unwrap();
    let queue = Queue {
        entry,
        settings: entry.settings(&[]).unwrap(),
        limit: Buffer::packets(10).into(),
        rate: Rate(1_000_000),
        framing: Framing::RAW,
    };
    let mut bridge = Bridge::new(queue, Bytes(1_000_000), 7);
    let arp = [vec![0xff; 6], vec![2; 6], vec![8, 6], vec![0; 46]].concat();
    let broken = [vec![2; 12], vec![8, 0, 0x45, 0, 0xff, 0xff], vec![0; 20]].concat();
    for frame in [&arp, &broken, &vec![1, 2, 3], &Vec::new()] {
        bridge.receive(Time::ZERO, Offload::default(), frame);
    }
    let mut sent = Vec::new();
    let mut now = Time::ZERO;
    loop {
        match bridge.poll(now) {
            Turn::Send(number) => {
                sent.push(bridge.frame(number).to_vec());
                bridge.release(number);
            }
            Turn::Wait(Some(time)) => now = time,
            Turn::Wait(None) => break,
        }
    }
    assert_eq!(sent, [arp, broken, vec![1, 2, 3], Vec::new()]);
    let status = bridge.status(now);
    assert_eq!((status.counts.other_frames, status.failures.malformed_frames), (1, 3));
}

#[test]
fn packets_without_memory_are_counted_and_memory_stays_within_its_bound() {
    let entry = tidegate_core::registry::find("fifo").unwrap();
    let queue = Queue {
        entry,
        settings: entry.settings(&[]).unwrap(),
        limit: Buffer::packets(1_000_000).into(),
        rate: Rate(8_000),
        framing: Framing::RAW,
    };
    let mut bridge = Bridge::new(queue, Bytes(100_000), 7);
    let arrival = Arrival {
        gap: Span::ZERO,
        flow: 1,
        version: 6,
        tagged: false,
        ecn: Ecn::NotEct,
        payload: 100,
    };
    for number in 0..1_000 {
        let (offload, frame) = arrival.frame(number);
        bridge.receive(Time::ZERO, offload, &frame);
    }
    let status = bridge.status(Time::ZERO);
    assert!(status.memory_bytes <= 100_000);
    assert_eq!(u64::from(status.queued_packets), status.memory_bytes / 2_048);
    assert_eq!(status.failures.no_memory_packets, 1_000 - u64::from(status.queued_packets));
}
