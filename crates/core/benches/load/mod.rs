//! The load of all measurements of disciplines: a queue of constant length that one
//! packet joins and one leaves, with packets of flows drawn at random. Every other
//! flow belongs to a class with promises, if the discipline makes any.

use std::hint::black_box;

use tidegate_core::entry::Entry;
use tidegate_core::setting::Kind;
use tidegate_core::{Buffer, Bytes, Discipline, FlowKey, Losses, Packet, Span, Time};

/// How long the queue is, and how many flows it has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// Packets in the queue.
    pub(crate) queued: u32,
    /// Flows that packets are drawn from; all have been seen before.
    pub(crate) flows: u32,
}

/// Around the usual case, longer and shorter queues, more and fewer flows.
pub(crate) const POINTS: [Point; 5] = [
    Point { queued: 10, flows: 1_000 },
    Point { queued: 300, flows: 1_000 },
    Point { queued: 10_000, flows: 1_000 },
    Point { queued: 300, flows: 10 },
    Point { queued: 300, flows: 1_000_000 },
];

/// What packets of class 1 need, with some to spare.
const PROMISES: &str = "link 20 Gbit/s; packets to 1500 B; \
    promised = class 1: 15 MB + 8 Gbit/s within 10 ms";

/// A discipline under load, in its steady state.
pub(crate) struct Load {
    discipline: Box<dyn Discipline>,
    losses: Losses,
    now: Time,
    flows: u32,
    /// Two if promises are made to the second, and otherwise one.
    classes: u32,
    random: u64,
}

impl Load {
    /// Shows all flows to the discipline, then fills the queue.
    pub(crate) fn new(entry: &'static Entry, point: Point) -> Load {
        let promises = |kind: &Kind| matches!(kind, Kind::Contracts);
        let contracts = entry.parameters.iter().filter(|parameter| promises(&parameter.kind));
        let given: Vec<_> = contracts.map(|parameter| (parameter.name, PROMISES)).collect();
        // Twice the length, so that nothing is lost.
        let discipline = entry
            .build(&given, Buffer::packets(2 * point.queued), 1)
            .unwrap_or_else(|error| panic!("{error}"));
        let (flows, classes) = (point.flows, if given.is_empty() { 1 } else { 2 });
        let (losses, now) = (Losses::new(), Time::ZERO);
        let mut load = Load { discipline, losses, now, flows, classes, random: 1 };
        for number in 0..flows {
            load.enqueue(number);
            load.discipline.dequeue(load.now, &mut load.losses);
        }
        for _ in 0..point.queued {
            let flow = load.draw();
            load.enqueue(flow);
        }
        load
    }

    /// One packet joins and one leaves: what a packet costs in all.
    pub(crate) fn pair(&mut self) {
        let flow = self.draw();
        self.enqueue(flow);
        black_box(self.discipline.dequeue(self.now, &mut self.losses));
    }

    fn enqueue(&mut self, flow: u32) {
        // A million packets per second: sweeps happen, and take their share.
        self.now += Span::micros(1);
        let [a, b, c, d] = flow.to_be_bytes();
        let key = FlowKey::v4([10, b, c, d], 443, [192, 0, 2, a], 50_000, FlowKey::TCP);
        let class = (flow % self.classes) as u16;
        let packet = Packet::new(u64::from(flow), key, Bytes(1_500));
        // A port sets the arrival; where it is not set, every packet is late.
        let packet = Packet { class, arrived: self.now, ..packet };
        self.discipline.enqueue(self.now, black_box(packet), &mut self.losses);
    }

    /// A linear congruential generator (Knuth's MMIX): two instructions, so
    /// that it does not hide what is measured.
    fn draw(&mut self) -> u32 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (((self.random >> 32) * u64::from(self.flows)) >> 32) as u32
    }
}
