//! Two FIFO levels in one buffer: low is served only while high is empty.
//!
//! The queue of a multi-level discipline seen as one line (`EFD section 3`):
//! all of high stands before all of low, so the end of the line, where a full
//! buffer takes its victims, is the end of low, or of high when low is empty.

use std::collections::VecDeque;

use super::{Backlog, Level};
use crate::flow_table::FlowId;
use crate::packet::Packet;

/// The level that a packet is put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Served first.
    High,
    /// Served while nothing is in high.
    Low,
}

/// A line of two levels. Every packet carries the entry of its flow, so that
/// the discipline finds it again without a second hash.
#[derive(Debug)]
pub(crate) struct TwoLevelQueue {
    queues: [VecDeque<(Packet, FlowId)>; 2],
    levels: [Level; 2],
    backlog: Backlog,
}

impl TwoLevelQueue {
    /// An empty queue.
    pub(crate) fn new() -> TwoLevelQueue {
        TwoLevelQueue {
            queues: [VecDeque::new(), VecDeque::new()],
            levels: [Level::new("high"), Level::new("low")],
            backlog: Backlog::default(),
        }
    }

    /// Puts a packet at the end of its level.
    pub(crate) fn push(&mut self, priority: Priority, packet: Packet, flow: FlowId) {
        let level = priority as usize;
        self.queues[level].push_back((packet, flow));
        self.levels[level].enqueued += 1;
        self.levels[level].backlog.add(packet.size);
        self.backlog.add(packet.size);
    }

    /// Takes out the packet to serve next.
    pub(crate) fn pop_first(&mut self) -> Option<(Packet, FlowId)> {
        let level = self.queues.iter().position(|queue| !queue.is_empty())?;
        let taken = self.queues[level].pop_front();
        self.count_out(level, taken)
    }

    /// Takes out the packet at the end of the line.
    pub(crate) fn pop_last(&mut self) -> Option<(Packet, FlowId)> {
        let level = self.queues.iter().rposition(|queue| !queue.is_empty())?;
        let taken = self.queues[level].pop_back();
        self.count_out(level, taken)
    }

    fn count_out(
        &mut self,
        level: usize,
        taken: Option<(Packet, FlowId)>,
    ) -> Option<(Packet, FlowId)> {
        let (packet, _) = taken?;
        self.levels[level].backlog.remove(packet.size);
        self.backlog.remove(packet.size);
        taken
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
            queue.push(*priority, Packet::new(handle as u64, key, Bytes(100)), flow);
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
}
