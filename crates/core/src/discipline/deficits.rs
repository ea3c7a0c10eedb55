//! Deficit round robin over numbered queues: what DRR and SFQ share.
//!
//! Backlogged queues take turns. A turn adds the quantum to the queue's deficit;
//! then the queue sends as long as its head's size is within the deficit, from
//! which it is paid; a queue that has nothing more to send loses what is left
//! (Shreedhar 1996). With a quantum of at least the largest packet, every turn
//! sends something. With a smaller one, a queue may save up over several turns.
//! When a whole round has sent nothing, the rounds until one does are made up for
//! at once: otherwise a packet of a gigabyte and a quantum of a byte would go round
//! for seconds. A packet costs O(1), or O(n) for n queues if its size exceeds the
//! quantum.

use super::Backlog;
use super::flow_queues::{FlowQueues, Rotation};
use crate::packet::Packet;
use crate::units::Bytes;

/// Queues that are served in proportion to turns times the quantum.
#[derive(Debug)]
pub(crate) struct DeficitRoundRobin {
    quantum: u128,
    /// Each with its deficit, 0 while it is empty.
    queues: FlowQueues<u128>,
    /// The backlogged queues.
    turns: Rotation,
    /// Whether the first of them has got the quantum of its turn.
    has_quantum: bool,
}

impl DeficitRoundRobin {
    /// Queues without packets; `quantum` is at least a byte.
    pub(crate) fn new(quantum: Bytes) -> DeficitRoundRobin {
        DeficitRoundRobin {
            quantum: quantum.0.into(),
            queues: FlowQueues::new(),
            turns: Rotation::default(),
            has_quantum: false,
        }
    }

    /// Adds another quantum in the turns to come.
    pub(crate) fn set_quantum(&mut self, quantum: Bytes) {
        self.quantum = quantum.0.into();
    }

    /// Puts a packet at the end of a queue, and an empty one last in turn.
    pub(crate) fn push(&mut self, queue: u32, packet: Packet) {
        if self.queues.is_empty(queue) {
            self.turns.push_back(queue);
        }
        self.queues.push(queue, packet);
    }

    /// Takes out the packet to serve next, and says from which queue.
    pub(crate) fn pop_next(&mut self) -> Option<(u32, Packet)> {
        let mut turns_over = 0;
        loop {
            let queue = self.turns.first()?;
            if !self.has_quantum {
                *self.queues.state(queue) += self.quantum;
                self.has_quantum = true;
            }
            let size = u128::from(self.queues.first(queue)?.size.0);
            let deficit = self.queues.state(queue);
            if size <= *deficit {
                *deficit -= size;
                let packet = self.queues.pop_first(queue)?;
                self.retire_if_empty(queue);
                return Some((queue, packet));
            }
            self.turns.rotate();
            self.has_quantum = false;
            turns_over += 1;
            if turns_over == self.turns.len() {
                self.skip_rounds();
            }
        }
    }

    /// Takes out the packet at the tail of the queue with the most bytes.
    pub(crate) fn pop_last_of_fattest(&mut self) -> Option<(u32, Packet)> {
        let queue = self.queues.fattest()?;
        let packet = self.queues.pop_last(queue)?;
        self.retire_if_empty(queue);
        Some((queue, packet))
    }

    fn retire_if_empty(&mut self, queue: u32) {
        if !self.queues.is_empty(queue) {
            return;
        }
        *self.queues.state(queue) = 0;
        if self.turns.first() == Some(queue) {
            self.has_quantum = false;
        }
        self.turns.remove(queue);
    }

    /// Gives every queue its quanta of the rounds in which still none can send.
    fn skip_rounds(&mut self) {
        let mut rounds = u128::MAX;
        for _ in 0..self.turns.len() {
            let Some(queue) = self.turns.first() else { return };
            let size: u128 = self.queues.first(queue).map_or(0, |packet| packet.size.0.into());
            let missing = size.saturating_sub(*self.queues.state(queue));
            rounds = rounds.min(missing.div_ceil(self.quantum));
            self.turns.rotate();
        }
        let quanta = rounds.saturating_sub(1).saturating_mul(self.quantum);
        for _ in 0..self.turns.len() {
            let Some(queue) = self.turns.first() else { return };
            *self.queues.state(queue) += quanta;
            self.turns.rotate();
        }
    }

    /// Whether a queue has no packets.
    pub(crate) fn is_empty(&self, queue: u32) -> bool {
        self.queues.is_empty(queue)
    }

    /// The number of backlogged queues.
    pub(crate) fn backlogged(&self) -> usize {
        self.turns.len()
    }

    /// What is queued in all.
    pub(crate) fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }
}
