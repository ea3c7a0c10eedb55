//! FIFO with drop-tail: the baseline.
//!
//! Packets leave in the order in which they came; a packet that finds the buffer
//! full is refused. FIFO keeps no state but the queue and costs O(1) per packet. It
//! is what most equipment does, and the baseline for every other discipline.

use std::collections::VecDeque;

use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::Settings;
use crate::units::Time;

/// The registry's entry for [`Fifo`].
pub const ENTRY: Entry = Entry {
    name: "fifo",
    summary: "first in, first out; a full buffer refuses the arriving packet",
    source: "EFD section 5.2",
    linux: Some("pfifo"),
    drops: Drops::WhenFull,
    parameters: &[],
    fixed: &[],
    build: |_, Place { buffer, .. }, _| Box::new(Fifo::new(buffer)),
};

/// A queue in order of arrival.
#[derive(Debug)]
pub struct Fifo {
    buffer: Buffer,
    backlog: Backlog,
    queue: VecDeque<Packet>,
}

impl Fifo {
    /// An empty queue that holds at most `buffer`.
    #[must_use]
    pub fn new(buffer: Buffer) -> Fifo {
        Fifo { buffer, backlog: Backlog::default(), queue: VecDeque::new() }
    }
}

impl Discipline for Fifo {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        if !self.buffer.has_room(self.backlog, packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        self.backlog.add(packet.size);
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, _now: Time, _losses: &mut Losses) -> Option<Packet> {
        let packet = self.queue.pop_front()?;
        self.backlog.remove(packet.size);
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, Place { buffer, .. }: Place) {
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;

    #[test]
    fn leaves_in_order_of_arrival_and_refuses_what_does_not_fit() {
        let mut trial = Trial::new(Fifo::new(Buffer::packets(2)));
        trial.arrive_all([('a', 1_500), ('b', 40), ('a', 40)]);
        assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0, 1]);
    }
}
