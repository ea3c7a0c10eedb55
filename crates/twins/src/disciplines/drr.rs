//! Deficit round robin without going round (Shreedhar 1996): it computes the round
//! in which each flow will be able to send its first packet, sends the one that
//! comes first, and gives every other flow the turns that it had until then. SFQ is
//! the same with buckets instead of flows (McKenney 1990).

use tidegate_core::entry::Place;
use tidegate_core::flow_table::FlowHash;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Bytes, Discipline, LossReason, Losses, Packet, Time};

use super::WhenFull;

pub(super) struct Drr {
    pub(super) quantum: Bytes,
    pub(super) when_full: WhenFull,
    pub(super) buffer: Buffer,
    /// What has a queue of its own: the flow, or what it hashes to.
    pub(super) queue_of: Box<dyn Fn(&Packet) -> String + Send>,
    /// In the order of their turns. A queue that has begun a turn is first.
    pub(super) queues: Vec<Queue>,
    /// Queues in the order in which they last began to be backlogged.
    pub(super) began: Vec<String>,
}

pub(super) struct Queue {
    name: String,
    deficit: u128,
    in_turn: bool,
    packets: Vec<Packet>,
}

impl Queue {
    fn bytes(&self) -> u128 {
        self.packets.iter().map(|packet| u128::from(packet.size.0)).sum()
    }
}

impl Drr {
    /// A queue for each flow.
    pub(super) fn by_flow(quantum: Bytes, when_full: WhenFull, buffer: Buffer) -> Drr {
        let queue_of = Box::new(|packet: &Packet| packet.flow.to_string());
        Drr { quantum, when_full, buffer, queue_of, queues: Vec::new(), began: Vec::new() }
    }

    /// A queue for each of `count` values of the hash.
    pub(super) fn by_hash(quantum: Bytes, count: u32, buffer: Buffer, seed: u64) -> Drr {
        let hash = FlowHash::new(seed);
        let queue_of = Box::new(move |packet: &Packet| {
            // The top 64 bits of a product of 128.
            (u128::from(hash.of(&packet.flow)) * u128::from(count) / (1 << 64)).to_string()
        });
        Drr { queue_of, ..Drr::by_flow(quantum, WhenFull::PushOut, buffer) }
    }

    fn is_over(&self, packets: usize, bytes: u128) -> bool {
        match self.buffer.amount() {
            Amount::Packets(limit) => packets > limit as usize,
            Amount::Bytes(limit) => bytes > u128::from(limit.0),
        }
    }

    fn packets(&self) -> usize {
        self.queues.iter().map(|queue| queue.packets.len()).sum()
    }

    fn bytes(&self) -> u128 {
        self.queues.iter().map(Queue::bytes).sum()
    }

    /// The number of turns, including the present one, that the queue needs to send
    /// its first packet.
    fn turns(&self, queue: &Queue) -> u128 {
        let size = u128::from(queue.packets[0].size.0);
        let missing = size.saturating_sub(queue.deficit);
        missing.div_ceil(self.quantum.0.into()).max(1)
    }
}

impl Discipline for Drr {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        let (packets, bytes) = match self.when_full {
            WhenFull::Refuse => (self.packets(), self.bytes()),
            WhenFull::PushOut => (0, 0),
        };
        if self.is_over(packets + 1, bytes + u128::from(packet.size.0)) {
            return losses.push(packet, LossReason::Refused);
        }
        let name = (self.queue_of)(&packet);
        match self.queues.iter_mut().find(|queue| queue.name == name) {
            Some(queue) => queue.packets.push(packet),
            None => {
                self.began.retain(|other| *other != name);
                self.began.push(name.clone());
                let packets = vec![packet];
                self.queues.push(Queue { name, deficit: 0, in_turn: false, packets });
            }
        }
        while self.is_over(self.packets(), self.bytes()) {
            let most = self.queues.iter().map(Queue::bytes).max().expect("something is queued");
            let longest = |name: &&String| {
                self.queues.iter().any(|queue| queue.name == **name && queue.bytes() == most)
            };
            // Among equal ones, the one that began first.
            let name = self.began.iter().find(longest).expect("one is the longest").clone();
            for queue in &mut self.queues {
                if queue.name == name {
                    losses.push_out(queue.packets.pop().expect("it is backlogged"), &packet);
                }
            }
            self.queues.retain(|queue| !queue.packets.is_empty());
        }
    }

    fn dequeue(&mut self, _now: Time, _losses: &mut Losses) -> Option<Packet> {
        let first = self.queues.first_mut()?;
        if first.in_turn && first.deficit < first.packets[0].size.0.into() {
            // Its turn is over.
            first.in_turn = false;
            self.queues.rotate_left(1);
        }
        if !self.queues[0].in_turn {
            let turns: Vec<u128> = self.queues.iter().map(|queue| self.turns(queue)).collect();
            let least = *turns.iter().min().expect("something is queued");
            let next = turns.iter().position(|turns| *turns == least).expect("one has the least");
            for (place, queue) in self.queues.iter_mut().enumerate() {
                // Those behind it have not had their turn in its round.
                let had = if place <= next { least } else { least - 1 };
                queue.deficit += had * u128::from(self.quantum.0);
            }
            self.queues.rotate_left(next);
            self.queues[0].in_turn = true;
        }
        let queue = &mut self.queues[0];
        let packet = queue.packets.remove(0);
        queue.deficit -= u128::from(packet.size.0);
        self.queues.retain(|queue| !queue.packets.is_empty());
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        let bytes = u64::try_from(self.bytes()).unwrap_or(u64::MAX);
        Backlog { packets: self.packets() as u32, bytes: Bytes(bytes) }
    }

    fn flows_tracked(&self) -> usize {
        self.queues.len()
    }
}
