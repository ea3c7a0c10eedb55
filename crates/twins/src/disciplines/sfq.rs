//! SFQ as in Linux, with its queues in a list in the order of their turns. What is
//! longest is looked for among all of them.

use tidegate_core::entry::Place;
use tidegate_core::flow_table::FlowHash;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Discipline, LossReason, Losses, Packet, Time};

use super::codel::{backlog, bytes};

pub(super) struct Sfq {
    buffer: Buffer,
    hash: FlowHash,
    count: u32,
    quantum: i128,
    flows: usize,
    depth: usize,
    /// Backlogged ones.
    queues: Vec<Queue>,
    changes: u64,
}

struct Queue {
    number: u32,
    allotment: i128,
    packets: Vec<Packet>,
    /// The number of its last change among all of them.
    changed: u64,
}

impl Sfq {
    pub(super) fn boxed(settings: &Settings, buffer: Buffer, seed: u64) -> Box<dyn Discipline> {
        Box::new(Sfq {
            buffer,
            hash: FlowHash::new(seed),
            count: settings.count("queues"),
            quantum: settings.bytes("quantum").0.into(),
            flows: settings.count("flows") as usize,
            depth: settings.count("depth") as usize,
            queues: Vec::new(),
            changes: 0,
        })
    }

    fn all(&self) -> Vec<Packet> {
        self.queues.iter().flat_map(|queue| queue.packets.iter().copied()).collect()
    }

    fn is_over(&self, packets: &[Packet]) -> bool {
        match self.buffer.amount() {
            Amount::Packets(limit) => packets.len() > limit as usize,
            Amount::Bytes(limit) => bytes(packets) > u128::from(limit.0),
        }
    }

    fn changed(&mut self, number: u32) {
        self.changes += 1;
        for queue in self.queues.iter_mut().filter(|queue| queue.number == number) {
            queue.changed = self.changes;
        }
        self.queues.retain(|queue| !queue.packets.is_empty());
    }
}

impl Discipline for Sfq {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        let number = self.hash.bucket(&packet.flow, self.count);
        let at = self.queues.iter().position(|queue| queue.number == number);
        let is_full = match at {
            Some(at) => self.queues[at].packets.len() >= self.depth,
            None => self.queues.len() >= self.flows,
        };
        if is_full || self.is_over(&[packet]) {
            return losses.push(packet, LossReason::Refused);
        }
        match at {
            Some(at) => self.queues[at].packets.push(packet),
            None => self.queues.push(Queue {
                number,
                allotment: self.quantum,
                packets: vec![packet],
                changed: 0,
            }),
        }
        self.changed(number);
        while self.is_over(&self.all()) {
            let most = self.queues.iter().map(|queue| queue.packets.len()).max();
            let longest = match most.expect("something is queued") {
                1 => 0,
                most => {
                    let are_longest =
                        self.queues.iter().enumerate().filter(|(_, q)| q.packets.len() == most);
                    are_longest.max_by_key(|(_, queue)| queue.changed).expect("one has the most").0
                }
            };
            let queue = &mut self.queues[longest];
            let number = queue.number;
            losses.push_out(queue.packets.pop().expect("it is backlogged"), &packet);
            self.changed(number);
        }
    }

    fn dequeue(&mut self, _now: Time, _losses: &mut Losses) -> Option<Packet> {
        // Quanta that each has to wait for, the first one of the least.
        let waits = |queue: &Queue| match queue.allotment {
            1.. => 0,
            debt => -debt / self.quantum + 1,
        };
        let least = self.queues.iter().map(waits).min()?;
        let next = self.queues.iter().position(|queue| waits(queue) == least)?;
        for (at, queue) in self.queues.iter_mut().enumerate() {
            queue.allotment += (least + i128::from(at < next)) * self.quantum;
        }
        self.queues.rotate_left(next);
        let queue = &mut self.queues[0];
        let (number, packet) = (queue.number, queue.packets.remove(0));
        queue.allotment -= i128::from(packet.size.0);
        self.changed(number);
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        backlog(&self.all())
    }

    fn flows_tracked(&self) -> usize {
        self.queues.len()
    }
}
