//! Two levels in one buffer: low is served only while high is empty.
//!
//! The queue of a multi-level discipline forms one line (`EFD section 3`): all of
//! high stands before all of low, so the end of the line, from which a full buffer
//! takes its victims, is the end of low, or of high if low is empty. Each level is
//! FIFO, or in the order of what flows have had.

use std::collections::VecDeque;

use super::ranked::RankedQueue;
use super::{Backlog, Level};
use crate::flow_table::FlowId;
use crate::packet::Packet;

/// The level that a packet joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Served first.
    High,
    /// Served while nothing is in high.
    Low,
}

/// The order of service within a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Arrival.
    Fifo,
    /// Ascending volume of the packet's flow as the packet came, then arrival.
    Las,
}

/// A line of two levels. Every packet carries the identifier of its flow's entry,
/// so that the discipline finds it again without a second hash.
#[derive(Debug)]
pub(crate) struct TwoLevelQueue<E = FlowId> {
    queues: [LevelQueue<E>; 2],
    levels: [Level; 2],
    backlog: Backlog,
}

#[derive(Debug)]
enum LevelQueue<E> {
    Fifo(VecDeque<(Packet, E)>),
    Las(RankedQueue<u64, E>),
}

impl<E: Copy> TwoLevelQueue<E> {
    /// An empty queue of two FIFO levels.
    pub(crate) fn new() -> TwoLevelQueue<E> {
        TwoLevelQueue::with_orders(Order::Fifo, Order::Fifo)
    }

    /// An empty queue with these orders in its levels.
    pub(crate) fn with_orders(high: Order, low: Order) -> TwoLevelQueue<E> {
        TwoLevelQueue {
            queues: [high, low].map(LevelQueue::new),
            levels: [Level::new("high"), Level::new("low")],
            backlog: Backlog::default(),
        }
    }

    /// Puts a packet where it belongs in its level. `volume` is what its flow has
    /// had; a FIFO level ignores it.
    pub(crate) fn push(&mut self, priority: Priority, volume: u64, packet: Packet, flow: E) {
        let level = priority as usize;
        self.queues[level].push(volume, packet, flow);
        self.levels[level].enqueued += 1;
        self.levels[level].backlog.add(packet.size);
        self.backlog.add(packet.size);
    }

    /// Takes out the packet to serve next.
    pub(crate) fn pop_first(&mut self) -> Option<(Packet, E)> {
        let level = self.levels.iter().position(|level| level.backlog.packets > 0)?;
        let taken = self.queues[level].pop_first();
        self.count_out(level, taken)
    }

    /// Takes out the packet at the end of the line.
    pub(crate) fn pop_last(&mut self) -> Option<(Packet, E)> {
        let level = self.levels.iter().rposition(|level| level.backlog.packets > 0)?;
        let taken = self.queues[level].pop_last();
        self.count_out(level, taken)
    }

    fn count_out(&mut self, level: usize, taken: Option<(Packet, E)>) -> Option<(Packet, E)> {
        let (packet, _) = taken?;
        self.levels[level].backlog.remove(packet.size);
        self.backlog.remove(packet.size);
        taken
    }

    /// The flows of the packets in low, once for each.
    pub(crate) fn low(&self) -> impl Iterator<Item = E> + '_ {
        self.queues[Priority::Low as usize].flows()
    }

    /// What is queued in both levels.
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// What is queued in each.
    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }
}

impl<E: Copy> LevelQueue<E> {
    fn new(order: Order) -> LevelQueue<E> {
        match order {
            Order::Fifo => LevelQueue::Fifo(VecDeque::new()),
            Order::Las => LevelQueue::Las(RankedQueue::new()),
        }
    }

    fn flows(&self) -> Box<dyn Iterator<Item = E> + '_> {
        match self {
            LevelQueue::Fifo(queue) => Box::new(queue.iter().map(|(_, flow)| *flow)),
            LevelQueue::Las(queue) => Box::new(queue.flows()),
        }
    }

    fn push(&mut self, volume: u64, packet: Packet, flow: E) {
        match self {
            LevelQueue::Fifo(queue) => queue.push_back((packet, flow)),
            LevelQueue::Las(queue) => queue.insert(volume, packet, flow),
        }
    }

    fn pop_first(&mut self) -> Option<(Packet, E)> {
        match self {
            LevelQueue::Fifo(queue) => queue.pop_front(),
            LevelQueue::Las(queue) => queue.pop_first().map(|first| (first.packet, first.flow)),
        }
    }

    fn pop_last(&mut self) -> Option<(Packet, E)> {
        match self {
            LevelQueue::Fifo(queue) => queue.pop_back(),
            LevelQueue::Las(queue) => queue.pop_last().map(|last| (last.packet, last.flow)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_table::FlowTable;
    use crate::packet::FlowKey;
    use crate::units::Bytes;

    #[test]
    fn high_is_ahead_of_low_and_both_are_counted() {
        let key = FlowKey::v4([192, 0, 2, 1], 1, [198, 51, 100, 1], 2, FlowKey::UDP);
        let (flow, ()) = FlowTable::new(1).entry(&key, || ());
        let mut queue = TwoLevelQueue::new();
        for (handle, priority) in [Priority::Low, Priority::High, Priority::High].iter().enumerate()
        {
            queue.push(*priority, 0, Packet::new(handle as u64, key, Bytes(100)), flow);
        }
        let counts = |queue: &TwoLevelQueue| {
            [0, 1].map(|level| {
                let Level { name, backlog, enqueued } = queue.levels()[level];
                (name, backlog.packets, backlog.bytes.0, enqueued)
            })
        };
        assert_eq!(counts(&queue), [("high", 2, 200, 2), ("low", 1, 100, 1)]);
        assert_eq!(queue.pop_last().map(|(packet, _)| packet.handle), Some(0));
        assert_eq!(counts(&queue), [("high", 2, 200, 2), ("low", 0, 0, 1)]);
        assert_eq!(queue.pop_first().map(|(packet, _)| packet.handle), Some(1));
        assert_eq!(queue.pop_last().map(|(packet, _)| packet.handle), Some(2));
        assert_eq!(counts(&queue), [("high", 0, 0, 2), ("low", 0, 0, 1)]);
        assert_eq!(queue.backlog(), Backlog::default());
    }

    #[test]
    fn each_level_keeps_its_own_order() {
        let key = FlowKey::v4([192, 0, 2, 1], 1, [198, 51, 100, 1], 2, FlowKey::UDP);
        let mut queue = TwoLevelQueue::with_orders(Order::Las, Order::Fifo);
        for (handle, (priority, volume)) in [
            (Priority::Low, 9),
            (Priority::High, 3),
            (Priority::Low, 8),
            (Priority::High, 2),
            (Priority::High, 2),
            (Priority::High, 4),
        ]
        .into_iter()
        .enumerate()
        {
            queue.push(priority, volume, Packet::new(handle as u64, key, Bytes(100)), ());
        }
        let handle = |taken: Option<(Packet, ())>| taken.map(|(packet, ())| packet.handle);
        assert_eq!([(); 2].map(|()| handle(queue.pop_last())), [Some(2), Some(0)]);
        assert_eq!(handle(queue.pop_last()), Some(5));
        assert_eq!([(); 3].map(|()| handle(queue.pop_first())), [Some(3), Some(4), Some(1)]);
    }
}
