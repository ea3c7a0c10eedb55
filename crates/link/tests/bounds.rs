//! What a hostile sender cannot make grow.

use tidegate_core::framing::Framing;
use tidegate_core::registry::DISCIPLINES;
use tidegate_core::{Buffer, Bytes, FlowKey, Packet, Rate, Time};
use tidegate_link::Queue;
use tidegate_link::lane::{Lane, MOST_FLOWS, Step};

/// Packets in the queue, and those that come until a discipline looks.
const MORE: usize = 4_000;

#[test]
fn no_discipline_remembers_more_flows_than_there_may_be() {
    for entry in DISCIPLINES {
        let settings = entry.settings(&[]).expect("defaults are right");
        let queue = Queue {
            entry,
            settings,
            limit: Buffer::packets(1_000).into(),
            rate: Rate(100_000_000),
            framing: Framing::RAW,
        };
        let mut lane = Lane::new(queue, 1);
        let mut lost = Vec::new();
        // Half a million packets a second, each of a flow of its own but every tenth.
        for number in 0..500_000_u32 {
            let now = Time(u64::from(number) * 2_000);
            let [a, b, c, d] = if number % 10 == 0 { [0; 4] } else { number.to_be_bytes() };
            let flow = FlowKey::v4([a, b, c, d], 1, [10, 0, 0, 1], 443, FlowKey::UDP);
            lane.offer(now, Packet::new(number.into(), flow, Bytes(200)), &mut lost);
            while let Step::Send { .. } = lane.poll(now, &mut lost) {}
            lost.clear();
        }
        let status = lane.status(Time(1_000_000_000));
        assert!(status.flows_peak <= MOST_FLOWS + MORE, "{}: {}", entry.name, status.flows_peak);
    }
}

#[test]
fn a_lane_that_has_forgotten_remembers_as_long_as_before() {
    let entry = tidegate_core::registry::find("las").expect("it is registered");
    let settings = entry.settings(&[]).expect("defaults are right");
    let limit = Buffer::packets(1_000).into();
    let queue = Queue { entry, settings, limit, rate: Rate(1_000_000_000), framing: Framing::RAW };
    let mut lane = Lane::new(queue, 1);
    let mut lost = Vec::new();
    let mut offer = |lane: &mut Lane, now: Time, number: u32| {
        let flow = FlowKey::v4(number.to_be_bytes(), 1, [10, 0, 0, 1], 443, FlowKey::UDP);
        lane.offer(now, Packet::new(0, flow, Bytes(100)), &mut lost);
        while let Step::Send { .. } = lane.poll(now, &mut lost) {}
    };
    for number in 0..100_000 {
        offer(&mut lane, Time(u64::from(number) * 10_000), number);
    }
    let then = 1_000_000_000;
    let before = lane.status(Time(then)).flows;
    assert!((1_000..MOST_FLOWS).contains(&before), "{before}");
    // 25 s later, none of those has been forgotten.
    for number in 0..100 {
        offer(&mut lane, Time(then + u64::from(number) * 250_000_000), 200_000 + number);
    }
    assert_eq!(lane.status(Time(then)).flows, before + 100);
}
