//! Which flows Tide remembers: those that have something queued, and for a while those that
//! had. What a flow has had counts for as long as it would make a difference; then its entry
//! goes, and it is as a new one.

use super::mark::Mark;
use super::{Flow, PACKET, Tide};
use crate::flow_table::FlowId;
use crate::packet::Packet;
use crate::units::{Amount, Bytes, Span, Time};

/// An idle flow's tag is let off a byte in this time: 3.8 kB/s, less than any
/// transfer and about what a keep-alive or a game sends. Ten times as much would make a flow
/// new that sends a whole credit each second. A power of two, for a shift.
const RELIEF: Span = Span(1 << 18);

impl Tide {
    /// The number of entries from which on idle flows have to go.
    fn capacity(&self) -> usize {
        match self.buffer.amount() {
            Amount::Packets(count) => count as usize,
            Amount::Bytes(size) => usize::try_from(size.0 / PACKET.0).unwrap_or(usize::MAX).max(1),
        }
    }

    /// The queue of a packet's flow, which is idle no longer.
    pub(super) fn admit(&mut self, now: Time, packet: &Packet) -> u32 {
        let mut is_new = false;
        let queue = self.flows.entry(&packet.flow, || is_new = true).0.slot();
        if is_new {
            *self.queues.state(queue) = Flow::new(self.virtual_time.before(self.credit));
        } else if self.queues.is_empty(queue) {
            self.resume(now, queue);
            return queue;
        }
        if self.flows.len() > self.capacity()
            && let Some(longest) = self.idle.first()
        {
            self.forget(longest);
        }
        queue
    }

    /// An idle flow is so no longer.
    fn resume(&mut self, now: Time, queue: u32) {
        self.idle.remove(queue);
        let standing = self.standing(queue, now);
        let begins = self.virtual_time.before(self.credit);
        let flow = self.flow(queue);
        match standing {
            Some(tag) => flow.tag = tag,
            None => *flow = Flow { sides: flow.sides, ..Flow::new(begins) },
        }
    }

    /// The tag of an idle flow, less what it has been let off; nothing if it could be
    /// forgotten.
    fn standing(&mut self, queue: u32, now: Time) -> Option<Mark> {
        let start = self.virtual_time.before(self.credit);
        let flow = self.flow(queue);
        let idle = now.since(flow.idle_since);
        let had = flow.tag.ahead_of(start) - Bytes(idle.0 / RELIEF.0);
        (had > self.negligible).then(|| start.after(had))
    }

    /// Looks at one idle flow, for each packet that has made an entry.
    pub(super) fn look_at_idle(&mut self, now: Time) {
        let Some(queue) = self.idle.first() else { return };
        if self.flows.len() > self.capacity() || self.standing(queue, now).is_none() {
            self.forget(queue);
        } else {
            self.idle.rotate();
        }
    }

    fn forget(&mut self, queue: u32) {
        self.idle.remove(queue);
        self.remove(queue);
    }

    fn remove(&mut self, queue: u32) {
        self.flows.remove(FlowId::at_slot(queue));
        if let Some(hosts) = &mut self.hosts {
            hosts.leave(self.queues.state_and_length(queue).0.sides);
        }
    }

    /// The last packet of a flow has left.
    pub(super) fn emptied(&mut self, queue: u32, now: Time) {
        self.turns.remove(queue);
        self.tails.remove(queue);
        let (flow, ..) = self.queues.state_and_length(queue);
        flow.idle_since = now;
        let paid = std::mem::take(&mut flow.pays);
        self.payers -= u32::from(paid);
        if let Some(hosts) = &mut self.hosts {
            hosts.end(flow.sides);
            if paid {
                hosts.pays(flow.sides, false);
            }
        }
        if flow.tag.ahead_of(self.virtual_time.before(self.credit)) > self.negligible {
            self.idle.push_back(queue);
        } else {
            self.remove(queue);
        }
    }
}
