//! Once it has reached its working size, a discipline allocates nothing.

use allocation_counter::measure;
use tidegate_core::assignment::Scheme;
use tidegate_core::discipline::fifo::Fifo;
use tidegate_core::egress::{Egress, Poll};
use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::shaper::{Htb, Paced};
use tidegate_core::{
    Buffer, Bytes, Discipline, FlowKey, LossReason, Packet, Port, Rate, Span, Time,
};

/// Two packets arrive for each one sent, so that the buffer is full and losses
/// happen; flows come and go, far more of them than are remembered at a time;
/// now and then the queue is drained, and flow tables are swept.
fn traffic(port: &mut Port, now: &mut Time, packets: u32) {
    for number in 0..packets {
        *now += Span::millis(7);
        let [_, a, b, c] = (number / 16).to_be_bytes();
        let flow = FlowKey::v4([10, a, b, c], 443, [192, 0, 2, 1], 50_000, FlowKey::TCP);
        let size = Bytes(40 + u64::from(number * 97 % 1_461));
        port.offer(*now, Packet::new(u64::from(number), flow, size));
        if number % 2 == 0 {
            port.take(*now);
        }
        if number % 5_000 == 0 {
            while port.take(*now).is_some() {}
        }
    }
}

#[test]
fn no_discipline_allocates_in_its_steady_state() {
    for buffer in [Buffer::packets(300), Buffer::bytes(Bytes(200_000))] {
        for entry in DISCIPLINES {
            let discipline = entry.build(&[], buffer, 1).expect("defaults are valid");
            let (mut port, mut now) = (Port::new(discipline), Time::ZERO);
            // Long: a table that is filled by chance takes time to be at its fullest.
            let warm_up = measure(|| traffic(&mut port, &mut now, 300_000));
            assert!(warm_up.count_total > 0, "allocations are counted");
            let steady = measure(|| traffic(&mut port, &mut now, 100_000));
            assert_eq!(steady.count_total, 0, "{} with {buffer}", entry.name);
            assert!(port.counters().lost() > 0);
        }
    }
}

/// One packet in seven is of the class that the defaults of `deadlines` make a
/// promise to; some of it is in excess.
fn promised(port: &mut Port, now: &mut Time, packets: u32) {
    for number in 0..packets {
        *now += Span::millis(7);
        let class = u8::from(number % 7 == 0);
        let [_, a, b, c] = (number / 16).to_be_bytes();
        let flow = FlowKey::v4([10, a, b, c], 443, [192, 0, 2, class], 50_000, FlowKey::UDP);
        let size = Bytes(40 + u64::from(number * 97 % 1_461));
        port.offer(
            *now,
            Packet { class: class.into(), ..Packet::new(u64::from(number), flow, size) },
        );
        if number % 2 == 0 {
            port.take(*now);
        }
        if number % 5_000 == 0 {
            while port.take(*now).is_some() {}
        }
    }
}

#[test]
fn promises_are_kept_without_allocating_under_every_assignment_but_the_exact_one() {
    let entry = registry::find("deadlines").expect("it is registered");
    for assignment in Scheme::NAMES.iter().chain(&["idle"]).filter(|name| **name != "exact") {
        let settings = [("assignment", *assignment)];
        let discipline = entry.build(&settings, Buffer::packets(300), 1).expect("it is valid");
        let (mut port, mut now) = (Port::new(discipline), Time::ZERO);
        promised(&mut port, &mut now, 300_000);
        let before: Vec<u64> = port.levels().iter().map(|level| level.enqueued).collect();
        let steady = measure(|| promised(&mut port, &mut now, 100_000));
        assert_eq!(steady.count_total, 0, "{assignment}");
        let levels = port.levels().iter().zip(before);
        let joined: Vec<u64> = levels.map(|(level, before)| level.enqueued - before).collect();
        assert!(joined.iter().all(|packets| *packets > 5_000), "{assignment}: {joined:?}");
        assert!(
            [LossReason::PushedOut, LossReason::Refused]
                .iter()
                .all(|reason| port.counters().lost_as(*reason) > 0)
        );
    }
}

/// A link of half the rate of what arrives, polled a little late.
fn over_a_link(egress: &mut Egress, now: &mut Time, packets: u32) {
    for number in 0..packets {
        *now += Span::micros(500);
        let [_, a, b, c] = (number / 16).to_be_bytes();
        let flow = FlowKey::v4([10, a, b, c], 443, [192, 0, 2, 1], 50_000, FlowKey::TCP);
        let class = (number % 3) as u16;
        let packet = Packet { class, ..Packet::new(u64::from(number), flow, Bytes(1_000)) };
        egress.offer(*now, packet);
        while let Poll::Packet { .. } = egress.poll(*now) {}
    }
}

#[test]
fn no_shaper_and_no_egress_allocates_in_its_steady_state() {
    const RATE: Rate = Rate(8_000_000);
    let fifo = || -> Box<dyn Discipline> { Box::new(Fifo::new(Buffer::packets(100))) };
    let shapers: [(&str, Box<dyn Discipline>); 3] = [
        ("egress", fifo()),
        ("paced", Box::new(Paced::new(fifo(), RATE))),
        ("htb", Box::new(Htb::new(RATE, (1..=3).map(|part| (RATE / 6 * part, fifo())).collect()))),
    ];
    for (name, shaper) in shapers {
        let (mut egress, mut now) = (Egress::new(shaper, RATE), Time::ZERO);
        over_a_link(&mut egress, &mut now, 10_000);
        let steady = measure(|| over_a_link(&mut egress, &mut now, 10_000));
        assert_eq!(steady.count_total, 0, "{name}");
        let counters = egress.port().counters();
        assert!(counters.lost() > 0 && counters.delivered > 9_000, "{name}: {counters:?}");
    }
}
