//! Two levels by what each packet's flow has had so far: Run2C, EFD and their kin.
//!
//! These disciplines differ in what is counted and in how long it is remembered. In
//! all of them, a packet is high while its flow has had less than a threshold, and
//! a full buffer gives up the end of low, or else of high, which may be the packet
//! that just came (`EFD section 3.2`). A lost packet stays counted.
//!
//! What a flow has had never falls while it has anything queued, so its packets go
//! high first and low later, and low is served after high: they stay in order.
//! Where a level is in the order of LAS, the same holds within it. When the
//! threshold is raised, a flow that has low packets queued stays low until it has
//! none.

use super::flow_state::Flows;
use super::two_level::{Order, Priority, TwoLevelQueue};
use super::{Backlog, Level, LossReason, Losses};
use crate::buffer::Buffer;
use crate::packet::Packet;
use crate::units::Time;

/// Packets in two levels, and what is known of each flow in `F`.
#[derive(Debug)]
pub(crate) struct ThresholdQueue<F> {
    threshold: u64,
    buffer: Buffer,
    queue: TwoLevelQueue,
    flows: F,
    /// Whether flows may be held in low.
    has_held: bool,
}

impl<F: Flows> ThresholdQueue<F> {
    /// An empty queue that holds at most `buffer`, puts the first `threshold` of
    /// a flow high and knows of `flows`; `[high, low]` is the order in each level.
    pub(crate) fn new(
        threshold: u64,
        [high, low]: [Order; 2],
        buffer: Buffer,
        flows: F,
    ) -> ThresholdQueue<F> {
        let queue = TwoLevelQueue::with_orders(high, low);
        ThresholdQueue { threshold, buffer, queue, flows, has_held: false }
    }

    /// Takes another threshold and holds at most `buffer`. What else the flows
    /// are to know is for the caller to say, by [`ThresholdQueue::flows`].
    pub(crate) fn reconfigure(&mut self, threshold: u64, buffer: Buffer) {
        let ThresholdQueue { queue, flows, has_held, .. } = self;
        queue.low().for_each(|flow| {
            flows.hold(flow);
            *has_held = true;
        });
        self.threshold = threshold;
        self.buffer = buffer;
    }

    /// What is known of flows.
    pub(crate) fn flows(&mut self) -> &mut F {
        &mut self.flows
    }

    /// Takes in a packet; `count` counts it for its flow and says what the flow
    /// had before it, in the unit of the threshold.
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        losses: &mut Losses,
        count: impl FnOnce(&mut F::State) -> u64,
    ) {
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queue.backlog());
        let (flow, state) = self.flows.join(now, &packet.flow);
        let volume = count(state);
        let is_low = volume >= self.threshold || self.has_held && self.flows.is_held(flow);
        let priority = if is_low { Priority::Low } else { Priority::High };
        self.queue.push(priority, volume, packet, flow);
        while !room.holds(self.queue.backlog()) {
            let Some((victim, flow)) = self.queue.pop_last() else { return };
            self.flows.leave(now, flow);
            losses.push_out(victim, &packet);
        }
    }

    /// Takes out the packet to serve next.
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<Packet> {
        let (packet, flow) = self.queue.pop_first()?;
        self.flows.leave(now, flow);
        self.has_held &= self.queue.backlog().packets > 0;
        Some(packet)
    }

    /// What is queued in both levels.
    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// The number of flows that have an entry.
    pub(crate) fn flows_tracked(&self) -> usize {
        self.flows.len()
    }

    /// What is queued in each level.
    pub(crate) fn levels(&self) -> &[Level] {
        self.queue.levels()
    }
}
